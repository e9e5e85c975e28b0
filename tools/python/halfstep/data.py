"""Training data: text as bytes, or token shards; batches are a function of seed and position."""

from __future__ import annotations

import os
from typing import Any, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from halfstep._handles import Handle, Owner
from halfstep._library import c_path, call, choice, ffi, lib
from halfstep.model import Batch

_TYPES = {"auto": 0, "bytes": 1, "uint16": 2, "uint32": 3}

#: The byte vocabulary: begin and end of a text, then byte b as token b + 2.
BOS, EOS, FIRST_BYTE, BYTE_VOCABULARY = 0, 1, 2, 258


def encode_text(text: str | bytes) -> npt.NDArray[np.int32]:
    """A text as tokens of the byte vocabulary."""
    data = text.encode() if isinstance(text, str) else text
    return np.frombuffer(data, dtype=np.uint8).astype(np.int32) + FIRST_BYTE


def decode_text(tokens: npt.ArrayLike) -> str:
    """The text of such tokens; begin and end are left out, and what is no UTF-8 is replaced."""
    array = np.asarray(tokens)
    return (array[array >= FIRST_BYTE] - FIRST_BYTE).astype(np.uint8).tobytes().decode(errors="replace")


class Dataset(Owner):
    """Tokens of files or of a text, with a share at the end held out for evaluation."""

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]] | None = None,
        *,
        text: str | bytes | None = None,
        token_type: str = "auto",
        vocabulary: int = 0,
        hold_out: float = 0.1,
    ) -> None:
        place = ffi.new("hstep_dataset **")
        if text is not None:
            data = text.encode() if isinstance(text, str) else text
            call(lib.hstep_dataset_from_bytes, ffi.from_buffer(data), len(data), place)
        else:
            names = [ffi.new("char[]", c_path(path)) for path in paths or ()]
            options = ffi.new("hstep_dataset_options *")
            options.token_type, options.vocabulary = choice("token type", token_type, _TYPES), vocabulary
            call(lib.hstep_dataset_load, ffi.new("char *[]", names), len(names), options, place)
        self._handle = Handle("dataset", place[0], lib.hstep_dataset_destroy)
        call(lib.hstep_dataset_hold_out, self._handle.pointer, hold_out)

    @property
    def vocabulary(self) -> int:
        """What a model of this data has to tell apart."""
        return int(lib.hstep_dataset_vocabulary(self._handle.pointer))

    def __len__(self) -> int:
        return int(lib.hstep_dataset_tokens(self._handle.pointer))

    def _fill(self, function: Any, sequences: int, length: int, *arguments: Any) -> Batch:
        tokens, targets = np.empty((2, sequences, length), dtype=np.int32)
        places = [ffi.cast("int32_t *", it.ctypes.data) for it in (tokens, targets)]
        with self._handle.domain:
            call(function, self._handle.pointer, *arguments, *places)
        return Batch({"tokens": tokens, "targets": targets})

    def batch(self, first: int, sequences: int, length: int, seed: int = 0) -> Batch:
        """The training windows first .. first + sequences - 1 of an endless row, each of `length` tokens."""
        return self._fill(lib.hstep_dataset_batch, sequences, length, seed, first, sequences, length)

    def batches(self, count: int, sequences: int, length: int, seed: int = 0) -> Iterator[Batch]:
        """`count` batches one after the other, from the first window on."""
        for i in range(count):
            yield self.batch(i * sequences, sequences, length, seed)

    def evaluation(self, length: int, limit: int = 0, sequences: int = 8) -> list[Batch]:
        """Batches over the held-out part: all of its windows, or `limit` of them, evenly spaced."""
        windows = int(lib.hstep_dataset_evaluation_windows(self._handle.pointer, length, limit))
        made: list[Batch] = []
        for first in range(0, windows, sequences):
            rows = min(sequences, windows - first)
            made.append(self._fill(lib.hstep_dataset_evaluation_batch, rows, length, length, limit, first, rows))
        return made
