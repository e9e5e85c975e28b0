"""Shared by the tests of the Python package: where it is, and what to say where NumPy or cffi are not there."""

import json
import os
import sys
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SKIPPED = 77
sys.path.insert(0, os.environ.get("HALFSTEP_PACKAGE", str(SOURCE / "tools" / "python")))
sys.path.insert(0, str(SOURCE / "tests" / "vectors"))

try:
    import cffi  # noqa: F401
    import numpy as np
except ImportError as missing:
    print(f"skipped: {sys.executable} has no {missing.name}; install python3-numpy and python3-cffi")
    sys.exit(SKIPPED)

import halfstep  # noqa: E402

FIXTURE = {"tokens": [0, 99, 100], "targets": [99, 100, 1]}


def vectors(name):
    return json.loads((SOURCE / "tests" / "vectors" / name).read_text(encoding="utf-8"))


def fixture(precision, context=None, **settings):
    """The fixture model with a trainer."""
    model = halfstep.Decoder(
        halfstep.DecoderConfig(258, 4, 2, 2, 8, precision=precision),
        context if context is not None else halfstep.Context("cpu", threads=1),
    )
    model.initialize("xavier", 39)
    return model, halfstep.Trainer(model, **settings)


def same_bits(a, b):
    """Equal shapes and bits, but that any NaN equals any other."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    both_nan = np.isnan(a) & np.isnan(b)
    return a.shape == b.shape and bool(np.all(both_nan | (a.view(np.uint64) == b.view(np.uint64))))


def main():
    """Runs the program's tests. Where one passes over itself ctest shows the program as skipped, unless another fails."""
    result = unittest.main(verbosity=2, argv=sys.argv[:1], exit=False).result
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
