"""Keeps attempts that overflowed and runs them again: the same operation, tensor and element on every tier, and a run
that keeps attempts is the run that does not, also when it is killed meanwhile or its disk is full.

usage: replays.py TRAINER
"""

import json
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

import runs

HIGH = ["--precision", "fp16", "--loss-scale", "16777216", "--max-loss-scale", "16777216"]
LOWER = ["--precision", "fp16", "--loss-scale", "262144"]
# The scale doubles every second update, so that overflows come back; both kinds of sums, and values recomputed.
CASES = {
    "plain": [*LOWER, "--growth-interval", "2"],
    "micro-batches and replicas": [*LOWER, "--growth-interval", "2", "--micro-batches", "2", "--replicas", "2"],
    "recomputed": [*LOWER, "--growth-interval", "3", "--recompute", "blocks", "--layers", "2"],
    "attention of one head": [*LOWER, "--growth-interval", "2", "--heads", "1", "--init", "xavier"],
}
TIERS = [[], ["--threads", "2"], ["--threads", "1", "--levers", "none"], ["--backend", "cpu-reference"]]
KEPT = 4
KILLS = 15


def replay(trainer, path, *arguments, status=0):
    result = subprocess.run([trainer, "replay", "--json", str(path), *arguments], stdin=subprocess.DEVNULL,
                            capture_output=True, timeout=120)
    assert result.returncode == status, (path, arguments, result.returncode, result.stderr.decode())
    return json.loads(result.stdout)


def all_records(folder):
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def check_operands(found):
    """The operands make sense by themselves: shapes, counts, and an output that is not finite."""
    operands = found["explanation"]["operands"]
    for operand in operands:
        elements = 1
        for dim in operand["shape"]:
            elements *= dim
        assert operand["elements"] == elements > 0, operand
        finite = elements - operand["infinities"] - operand["nans"]
        assert operand["zeros"] + operand["to_zero"] + operand["to_subnormal"] + operand["to_infinity"] <= finite
        assert operand["smallest"] <= operand["largest"] and operand["mean"] <= operand["largest"] * (1 + 1e-12)
        assert (operand["largest"] == 0) == (operand["zeros"] == finite)
    outputs = [operand for operand in operands if operand["output"]]
    assert outputs and len(outputs) < len(operands)
    assert any(operand["infinities"] + operand["nans"] for operand in outputs), outputs


def check_state(folder, step, path):
    """The dump holds the state before the attempt, but for what a skip changes."""
    before = runs.tensors(folder / f"checkpoint-{step - 1:08}.safetensors")
    kept = runs.tensors(path)
    assert before.keys() == kept.keys()
    changed = {name for name in before if before[name] != kept[name]}
    assert changed <= {"trainer.loss_scale", "trainer.finite_updates", "trainer.attempts", "trainer.held_out_loss"}, changed


def check_case(trainer, folder, options, data):
    arguments = [*runs.TINY, *data, *options, "--steps", "20", "--checkpoint-every", "1", "--keep-checkpoints", "1000"]
    plain, keeping = folder / "plain", folder / "keeping"
    runs.train(trainer, *arguments, "--out", plain)
    runs.train(trainer, *arguments, "--out", keeping, "--dump-overflow", KEPT)
    runs.assert_same_run(plain, keeping)
    lines = all_records(keeping)
    skips = [line for line in lines if line.get("outcome") == "skipped"]
    dumps = [line for line in lines if line["record"] == "dump"]
    assert len(skips) > KEPT == len(dumps), (len(skips), len(dumps))
    assert len(list(keeping.glob("overflow-*"))) == KEPT
    for skip, dump in zip(skips, dumps):
        assert (skip["step"], skip["attempt"]) == (dump["step"], dump["attempt"])
        path = keeping / f"overflow-{skip['step']:08}-{skip['attempt']:08}.safetensors"
        assert dump["path"] == str(path) and lines.index(dump) == lines.index(skip) + 1
        if skip["step"] > 1:
            check_state(keeping, skip["step"], path)
        for tier in TIERS:
            found = replay(trainer, path, *tier)
            assert found["same"] and found["recorded"] == found["replayed"] == skip["overflow"], (found, skip)
            assert found["loss_scale"] == skip["loss_scale"]
            check_operands(found)
    assert any(skip["step"] > 1 for skip in skips[:KEPT]), "an overflow in the middle of the run is wanted"


def check_failures(trainer, folder, data):
    """A file that cannot be written is a warning, and the run goes on to its end."""
    run = folder / "blocked"
    (run / "overflow-00000001-00000001.safetensors").mkdir(parents=True)
    arguments = [*runs.TINY, *data, "--precision", "fp16", "--loss-scale", 2**28, "--max-loss-scale", 2**28,
                 "--batch-size", "64", "--micro-batches", "8", "--steps", "2"]
    runs.train(trainer, *arguments, "--out", run, "--dump-overflow", "2")
    warnings = [line for line in all_records(run) if line["record"] == "warning" and line["kind"] == "overflow-dump"]
    assert len(warnings) == 1 and "overflow-00000001-00000001" in warnings[0]["message"], warnings
    assert [line["attempt"] for line in all_records(run) if line["record"] == "dump"] == [2]
    # A file may not become longer than a checkpoint: no attempt fits.
    checkpoint = runs.last_checkpoint(run).stat().st_size
    kept = (run / "overflow-00000001-00000002.safetensors").stat().st_size
    limit = (checkpoint + kept) // 2
    assert checkpoint < limit < kept
    full = folder / "full"
    result = subprocess.run([trainer, "train", *map(str, arguments), "--out", str(full), "--dump-overflow", "2"],
                            stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert result.returncode == 0, result.stderr.decode()
    warnings = [line for line in all_records(full) if line["record"] == "warning" and line["kind"] == "overflow-dump"]
    assert len(warnings) == 2, warnings
    assert not list(full.glob("overflow-*")), list(full.iterdir())
    assert all_records(full)[-1]["outcome"] == "finished"


def check_kills(trainer, folder, data):
    """Killed at random moments while it keeps attempt after attempt: what has its name is whole."""
    run, moments = folder / "killed", random.Random(3)
    arguments = [*runs.TINY, *data, *HIGH, "--growth-interval", "1", "--checkpoint-every", "1", "--steps", "4000",
                 "--out", run, "--resume", "--dump-overflow", "100000"]
    cut = 0
    for _ in range(KILLS):
        before = set(run.glob("overflow-*"))
        process = subprocess.Popen([trainer, "train", *map(str, arguments)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        patience = time.monotonic() + 30
        while set(run.glob("overflow-*")) <= before and time.monotonic() < patience:
            time.sleep(0.001)
        time.sleep(0.15 * moments.random())
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[1].decode(errors="replace")
        assert process.returncode == -signal.SIGKILL, (process.returncode, said)
        cut += bool(list(run.glob("overflow-*.tmp")))
    names = sorted(run.glob("overflow-*.safetensors"))
    print(f"{len(names)} attempts kept over {KILLS} kills, {cut} of them while one was written")
    assert len(names) >= 5, len(names)
    for path in moments.sample(names, 5) + names[-5:]:
        inspected = subprocess.run([trainer, "inspect", "--json", str(path)], capture_output=True, timeout=60)
        assert inspected.returncode == 0 and json.loads(inspected.stdout)["kind"] == "attempt", (path, inspected.stderr)
        assert replay(trainer, path)["same"]
    runs.train(trainer, *arguments, "--max-time", "0.001")
    assert not list(run.glob("*.tmp")), "what a kill left is removed with the next checkpoint"


def check_usage(trainer, folder):
    said = runs.train(trainer, "--dump-overflow", "1", "--records", folder / "r", status=2)
    assert "--dump-overflow" in said and "--out" in said, said


def main():
    trainer = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = ["--vocabulary", "61"] + [word for path in runs.write_shards(folder) for word in ("--data", path)]
        for number, options in enumerate(CASES.values()):
            place = folder / str(number)
            place.mkdir()
            check_case(trainer, place, options, data)
        check_failures(trainer, folder, data)
        check_kills(trainer, folder, data)
        check_usage(trainer, folder)
    print("ok")


if __name__ == "__main__":
    main()
