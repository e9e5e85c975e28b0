"""What the tests of whole runs share: data, calls, and comparing two runs of the trainer."""

import json
import pathlib
import struct
import subprocess

TINY = ("--layers 1 --width 8 --heads 2 --kv-heads 1 --feed-forward 12 --context 8 --batch-size 2 --warmup-steps 2 "
        "--eval-every 5 --eval-batches 2 --sample-tokens 4 --threads 1 --quiet").split()

# In fp16 from a scale at which gradients overflow: attempts are skipped again and again.
SKIPPING = [*TINY, "--precision", "fp16", "--loss-scale", "16777216", "--max-loss-scale", "16777216",
            "--growth-interval", "5"]


def train(trainer, *arguments, status=0, timeout=120):
    return call(trainer, list(map(str, arguments)), status, timeout)


def call(trainer, arguments, status=0, timeout=120):
    """Runs `trainer train` and returns what it said on stderr."""
    result = subprocess.run([trainer, "train", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                            timeout=timeout)
    assert result.returncode == status, (arguments, result.returncode, result.stderr.decode(errors="replace"))
    return result.stderr.decode(errors="replace")


def write_shards(folder, count=3, tokens=150):
    """Shards in the format of llm.c, so small that an epoch is short and its windows end before the shards do."""
    paths = []
    for shard in range(count):
        values = [(7 * i * i + 13 * shard + i // 3) % 61 for i in range(tokens + shard)]
        header = struct.pack("<256i", 20240520, 1, len(values), *([0] * 253))
        path = pathlib.Path(folder) / f"shard-{shard}.bin"
        path.write_bytes(header + struct.pack(f"<{len(values)}H", *values))
        paths.append(str(path))
    return paths


def shard_options(folder):
    """Options that name shards as data, which are written into the folder."""
    return ["--vocabulary", "61"] + [word for path in write_shards(folder) for word in ("--data", path)]


def records(folder):
    """The records of a run without times, and without what tells only in how many parts it was made."""
    lines = []
    for text in (pathlib.Path(folder) / "records.jsonl").read_text().splitlines():
        line = json.loads(text)
        line.pop("seconds", None)
        line.pop("tokens_per_second", None)
        line.pop("threads", None)
        if line["record"] == "end":
            del line["totals"]["seconds"]
        if line["record"] not in ("run", "resume", "checkpoint", "dump"):
            lines.append(line)
    return lines


def tensors(path):
    """Bytes of a checkpoint by tensor: weights, moments and state; sections say where files and records are."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    return {name: data[start + tensor["data_offsets"][0]:start + tensor["data_offsets"][1]]
            for name, tensor in header.items() if name != "__metadata__" and not name.startswith("section.")}


def last_checkpoint(folder):
    return sorted(pathlib.Path(folder).glob("checkpoint-*.safetensors"))[-1]


def assert_same_run(whole, parts):
    assert records(whole) == records(parts), f"records of {whole} and {parts} differ"
    first, second = last_checkpoint(whole), last_checkpoint(parts)
    assert first.name == second.name, (first, second)
    one, other = tensors(first), tensors(second)
    assert one.keys() == other.keys()
    for name in one:
        assert one[name] == other[name], f"{name} of {first} and {second} differ"
