"""What `trainer export` writes, read in plain Python, and by the safetensors package where that is installed.

Usage: export.py TRAINER
"""

import fractions
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import tensors

try:
    import safetensors
except ImportError:
    safetensors = None

TRAINER = pathlib.Path(sys.argv[1]).resolve()
# Precision in bits, the exponent of the smallest subnormal, the largest number; how the bits are made of a float32.
FORMATS = {"f32": ("F32", 24, -149, (2 - 2.0**-23) * 2.0**127), "f16": ("F16", 11, -24, 65504.0),
           "bf16": ("BF16", 8, -133, (2 - 2.0**-7) * 2.0**127)}


def call(*arguments, status=0):
    result = subprocess.run([TRAINER, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=120)
    assert result.returncode == status, (arguments, result.returncode, result.stderr)
    return result.stderr


def rounded(number, precision, lowest, largest):
    """One rounding to nearest, ties to even, in exact arithmetic."""
    if number == 0 or not math.isfinite(number):
        return number
    exponent = max(math.frexp(number)[1] - precision, lowest)
    quotient = fractions.Fraction(number) / fractions.Fraction(2) ** exponent
    result = round(quotient) * fractions.Fraction(2) ** exponent
    value = math.inf if abs(result) > largest else abs(float(result))
    return math.copysign(value, number)


def numbers_of(kind, data):
    if kind == "F64":
        return struct.unpack(f"<{len(data) // 8}d", data)
    if kind == "BF16":
        return [struct.unpack("<f", b"\0\0" + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    return struct.unpack(f"<{len(data) // (4 if kind == 'F32' else 2)}{'f' if kind == 'F32' else 'e'}", data)


def same(left, right):
    return struct.pack("<d", left) == struct.pack("<d", right)


def check_file(path, dtype, weights):
    """Types, shapes and every number; *weights* are the F64 originals by name."""
    found, metadata = tensors.read(path)
    assert metadata["schema"] == "halfstep.weights/1"
    assert found.keys() == weights.keys()
    kind = "F64" if dtype == "f64" else FORMATS[dtype][0]
    for name, (shape, numbers) in weights.items():
        assert found[name][:2] == (kind, shape), (name, found[name][:2])
        stored = numbers_of(kind, found[name][2])
        expected = numbers if dtype == "f64" else [rounded(number, *FORMATS[dtype][1:]) for number in numbers]
        assert len(stored) == len(expected)
        assert all(same(a, b) for a, b in zip(stored, expected)), (dtype, name)
    if safetensors is not None:
        theirs = {name: (tensor["dtype"], tensor["shape"], bytes(tensor["data"]))
                  for name, tensor in safetensors.deserialize(pathlib.Path(path).read_bytes())}
        assert theirs == found
    return metadata


def check_checkpoint():
    call("train", *("--layers 1 --width 8 --heads 2 --feed-forward 8 --context 8 --batch-size 2 --steps 3 --threads 1 "
                    "--out run --quiet").split())
    checkpoint = next(pathlib.Path("run").glob("checkpoint-*.safetensors"))
    whole, _ = tensors.read(checkpoint)
    weights = {name: (shape, tensors.doubles(data)) for name, (kind, shape, data) in whole.items()
               if name.startswith(("token_embedding", "blocks.", "final_norm"))}
    assert len(weights) == 11
    for dtype in ("f64", "f32", "f16", "bf16"):
        said = call("export", checkpoint, "--dtype", dtype)
        path = checkpoint.with_name(f"{checkpoint.stem}.{dtype}.safetensors")
        assert path.name in said, said
        assert check_file(path, dtype, weights)["optimizer_step"] == "3"
    # A folder stands for its newest checkpoint; without --dtype it is f32.
    call("export", "run", "--out", "weights")
    assert pathlib.Path("weights").read_bytes() == checkpoint.with_name(f"{checkpoint.stem}.f32.safetensors").read_bytes()


def check_losses():
    """What a type has no room for is counted, and the first is named."""
    numbers = [1.0, -0.0, 70000.0, 65519.0, 65520.0, 2.0**-25, 2.0**-25 * 1.0000001, -1e-30, 0.1, 1 + 2.0**-11, -3e38, 1e300]
    tensors.write("theirs", {"first": ([2], [1.0, 2.0]), "odd": ([3, 4], numbers)})
    weights = {"first": ([2], [1.0, 2.0]), "odd": ([3, 4], numbers)}
    said = call("export", "theirs", "--dtype", "f16", "--out", "half")
    check_file("half", "f16", weights)
    assert "4 numbers are too large for f16" in said and "in odd at index 2" in said, said
    assert "2 numbers are too small for f16 and became 0" in said, said
    said = call("export", "theirs", "--dtype", "bf16", "--out", "brain", "--quiet")
    check_file("brain", "bf16", weights)
    assert "1 number is too large for bf16" in said and "too small" not in said and "tensors" not in said, said
    said = call("export", "theirs", "--dtype", "f64", "--out", "wide", "--quiet")
    check_file("wide", "f64", weights)
    assert said == "", said


def check_refusals():
    before = pathlib.Path("half").read_bytes()
    said = call("export", "theirs", "--dtype", "f32", "--out", "half", status=4)
    assert "'half'" in said and "--overwrite" in said, said
    assert pathlib.Path("half").read_bytes() == before
    call("export", "theirs", "--dtype", "f32", "--out", "half", "--overwrite")
    assert tensors.read("half")[0]["odd"][0] == "F32"
    theirs = pathlib.Path("theirs").read_bytes()
    os.symlink("theirs", "link")
    for path in ("theirs", "./theirs", "link"):
        said = call("export", "theirs", "--out", path, "--overwrite", status=2)
        assert "checkpoint itself" in said, said
    assert pathlib.Path("theirs").read_bytes() == theirs
    call("export", "theirs", "--out", "no/such/folder", status=4)
    damaged = bytearray(pathlib.Path("weights").read_bytes())
    damaged[-1] ^= 1
    pathlib.Path("damaged").write_bytes(damaged)
    said = call("export", "damaged", "--out", "none", status=3)
    assert "checksum" in said and not pathlib.Path("none").exists(), said


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    check_checkpoint()
    check_losses()
    check_refusals()
    os.chdir("/")
print("read by the safetensors package too" if safetensors else "read in plain Python; there is no package safetensors")
