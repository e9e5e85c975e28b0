"""Reads and writes safetensors files in plain Python, independently of halfstep."""

import json
import math
import pathlib
import struct

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "U64": 8, "U8": 1}


def read(path):
    """Name to (type, shape, bytes), and the metadata."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    tensors, ends = {}, [0]
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        assert end - begin == SIZES[tensor["dtype"]] * math.prod(tensor["shape"]), name
        ends.append(end)
        tensors[name] = (tensor["dtype"], tensor["shape"], data[start + begin:start + end])
    assert start + max(ends) == len(data)
    return tensors, metadata


def write(path, tensors):
    """Writes name to (shape, list of numbers) as F64, without checksums, as other programs do."""
    header, body = {}, b""
    for name, (shape, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}d", *numbers)
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [len(body), len(body) + len(packed)]}
        body += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def doubles(data):
    return struct.unpack(f"<{len(data) // 8}d", data)
