"""halfstep: half precision, whole steps. Mixed-precision training whose updates are transactions.

From the simple to the advanced:

1. `encode`, `decode`, `matmul` and `gate`: numbers and products under the numeric policy.
2. `Decoder`, `Trainer` and `Dataset`: train a decoder; `Trainer.step` says whether an update was applied or skipped.
3. `Graph` and `Model`: models and losses of one's own.
4. Arrays over masters, gradients and moments without copies; an update one step at a time; checkpoints.
5. `read_records`: what the trainer's runs recorded.

docs/python.md has a program for each.
"""

from halfstep._library import VERSION, lib as _lib, text as _text
from halfstep.context import Context, Device, Lever, devices
from halfstep.data import BOS, BYTE_VOCABULARY, EOS, FIRST_BYTE, Dataset, decode_text, encode_text
from halfstep.errors import (
    ArgumentError,
    BackendUnavailableError,
    ClosedError,
    DirtyGradientError,
    DtypeError,
    Error,
    InputFileError,
    LibraryNotFoundError,
    MissingGradientError,
    NonfiniteForwardError,
    NoTargetsError,
    OutOfMemoryError,
    OutputFileError,
    ShapeError,
    StaleTapeError,
    TokenError,
    TooManySkipsError,
    UnsupportedError,
)
from halfstep.graph import LENGTH, ROWS, SEQUENCES, Graph, Input, Value
from halfstep.model import Batch, BatchLike, Decoder, DecoderConfig, Model, Parameters, WindowLike
from halfstep.number import Gate, decode, encode, gate, matmul
from halfstep.records import configuration, read_records
from halfstep.trainer import (
    AdamW,
    Callback,
    Explanation,
    Operand,
    Overflow,
    Scaler,
    Schedule,
    Trainer,
    Update,
    read_section,
)

#: The version of the C library.
__version__ = _text(_lib.hstep_version())

__all__ = [name for name in dir() if not name.startswith("_") and name != "VERSION"]
