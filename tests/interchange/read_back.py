"""The safetensors package of Python reads what halfstep writes, and the other way round.

Usage: read_back.py PROGRAM SOURCES
PROGRAM is what checkpoint.c becomes. Exit status 77, with the reason, where the package is not installed.
"""

import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

try:
    import numpy
    import safetensors.numpy
except ImportError as missing:
    print(f"skipped: {missing}; to run this, pip install safetensors numpy xxhash into an environment of its own and")
    print("configure with -DHALFSTEP_PYTHON=ENVIRONMENT/bin/python3")
    sys.exit(77)

PROGRAM, SOURCES = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
GAIN = [1 + 2.0**-11 + 2.0**-40, 70000, -0.0, 5e-324, math.inf, -1e300, 0.1, 1e-30]
GAIN_F16 = [1 + 2.0**-10, math.inf, -0.0, 0, math.inf, -math.inf, 0.0999755859375, 0]


def load(path):
    """All tensors of a file, checked by the package: name to (type, shape, bytes)."""
    tensors = safetensors.deserialize(pathlib.Path(path).read_bytes())
    return {name: (tensor["dtype"], tensor["shape"], bytes(tensor["data"])) for name, tensor in tensors}


def bits(numbers):
    return [struct.pack("<d", number) for number in numbers]


def check_checkpoint():
    tensors = load("checkpoint")
    weights = [name for name in tensors if "." in name and name.split(".")[0] in ("blocks", "final_norm", "token_embedding")]
    assert len(weights) == 11, weights
    kind, shape, data = tensors["final_norm.gain"]
    assert (kind, shape) == ("F64", [8]) and data == b"".join(bits(GAIN)), data
    for name in weights:
        assert tensors["adamw.m." + name][:2] == tensors["adamw.v." + name][:2] == tensors[name][:2]
    assert tensors["trainer.optimizer_step"] == ("U64", [], struct.pack("<Q", 1))
    assert tensors["trainer.beta1_power"] == ("F64", [], struct.pack("<d", 0.9))
    assert tensors["trainer.held_out_loss"] == ("F64", [], struct.pack("<d", 5.5))
    assert tensors["section.configuration"] == ("U8", [12], b'{"width": 8}')
    assert tensors["section.odd"] == ("U8", [3], b"\0\1\2")
    return weights


def check_exports(weights):
    for name, kind in (("f64", "F64"), ("f32", "F32"), ("f16", "F16"), ("bf16", "BF16")):
        tensors = load(name)
        assert set(tensors) == set(weights)
        assert all(tensor[0] == kind for tensor in tensors.values())
    half = struct.unpack("<8e", load("f16")["final_norm.gain"][2])
    assert bits(half) == bits(GAIN_F16), half
    brain = struct.unpack("<8H", load("bf16")["final_norm.gain"][2])
    assert brain[0] == 0x3F80 and brain[2] == 0x8000 and brain[5] == 0xFF80, brain


def check_reading():
    """Files that the package writes, read by halfstep."""
    tensors = {
        "z": numpy.array([[1.5, -0.0], [5e-324, math.inf]]),
        "halves": numpy.array([1, -2, 65504], dtype=numpy.float16),
        "flags": numpy.array([True, False, True]),
        "count": numpy.array(-5, dtype=numpy.int64),
    }
    safetensors.numpy.save_file(tensors, "theirs", {"made by": "safetensors"})
    listed = subprocess.run([PROGRAM, "list", "theirs"], check=True, capture_output=True, text=True).stdout.splitlines()
    assert sorted(listed) == [
        "count I64",
        "flags BOOL 3",
        "halves F16 3 = 1 -2 65504",
        "z F64 2 2 = 1.5 -0 4.9406564584124654e-324 inf",
    ], listed


def check_document():
    """The program that docs/checkpoints.md shows, as far as its packages are there."""
    text = (SOURCES / "docs/checkpoints.md").read_text(encoding="utf-8")
    shown = re.search(r"In Python.*?:\n\n(.*?)\n\n(?=\S)", text, flags=re.S).group(1)
    try:
        import xxhash  # noqa: F401
    except ImportError as missing:
        print(f"not checked: the program of docs/checkpoints.md ({missing})")
        return
    os.rename("checkpoint", "checkpoint-00000100.safetensors")
    names = {}
    exec(re.sub(r"^    ", "", shown, flags=re.M), names)
    assert names["weights"].shape == (8, 8)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    subprocess.run([PROGRAM, "write"], check=True)
    check_exports(check_checkpoint())
    check_reading()
    check_document()
    os.chdir("/")
