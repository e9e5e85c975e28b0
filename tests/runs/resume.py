"""Run N steps equals run k, stop, resume, run N - k: weights, moments, state and records.

usage: resume.py TRAINER
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import runs

STEPS = 20
HASWELL = {"OPENBLAS_CORETYPE": "Haswell"}

# Scales that start high skip from the first step on; those that double after three updates skip again and again.
SKIPPING = ["--loss-scale", "16777216", "--max-loss-scale", "16777216", "--growth-interval", "3"]
CASES = {
    "fp16 with skips": ["--precision", "fp16", *SKIPPING],
    "fp16 in micro-batches and replicas": ["--precision", "fp16", *SKIPPING, "--micro-batches", "3", "--replicas", "2"],
    "bf16": ["--precision", "bf16"],
    "bf16, blocks recomputed": ["--precision", "bf16", "--recompute", "blocks", "--micro-batches", "2"],
    "f64": ["--precision", "f64", "--schedule", "constant"],
}


def check_case(trainer, folder, case, options, data):
    whole = folder / "whole"
    runs.train(trainer, *runs.TINY, *data, *options, "--steps", STEPS, "--out", whole)
    if "skips" in case:
        assert any(line.get("outcome") == "skipped" for line in runs.records(whole)), case
    for k in (1, 7, 19):
        # A limit of time of no length stops after the step at which the last checkpoint is made.
        parts = folder / f"parts-{k}"
        stop_after(trainer, [*runs.TINY, *data, *options, "--steps", STEPS, "--out", parts], parts, k)
        runs.train(trainer, "--out", parts, "--resume", "--quiet")
        runs.assert_same_run(whole, parts)
    said = runs.train(trainer, "--out", whole, "--resume")
    assert "finished" in said, said


def stop_after(trainer, arguments, folder, k):
    """Leaves a folder as a run leaves it that is killed just after its checkpoint of step k."""
    runs.train(trainer, *arguments, "--checkpoint-every", k, "--keep-checkpoints", "1000")
    for path in folder.glob("checkpoint-*.safetensors"):
        if int(path.stem.split("-")[1]) != k:
            path.unlink()


def check_refusals(trainer, folder, data):
    run = folder / "refusals"
    runs.train(trainer, *runs.TINY, *data, "--steps", "6", "--out", run)
    said = runs.train(trainer, "--out", run, "--resume", "--learning-rate", "0.5", "--seed", "9", "--threads", "2",
                      status=2)
    assert "--learning-rate" in said and "--seed" in said and "--threads" not in said, said
    assert "--allow-changes" in said, said
    runs.train(trainer, "--out", run, "--resume", "--steps", "8", "--allow-changes", "--quiet")
    assert runs.last_checkpoint(run).name == "checkpoint-00000008.safetensors"
    said = runs.train(trainer, "--resume", status=2)
    assert "--out" in said, said
    # A run that is there is not written over, and a folder without a run starts one.
    runs.train(trainer, *runs.TINY, *data, "--steps", "2", "--out", run, status=4)
    runs.train(trainer, *runs.TINY, *data, "--steps", "2", "--out", folder / "fresh", "--resume")
    assert len(runs.records(folder / "fresh")) >= 3


def check_levers(trainer, folder):
    """A run goes on with the very kernels that it had, or not at all."""
    run = folder / "levers"
    arguments = [*runs.TINY, "--precision", "f64", "--levers", "+cpu.openblas", "--steps", "4", "--checkpoint-every",
                 "2", "--out", str(run)]
    result = subprocess.run([trainer, "train", *arguments], capture_output=True, env={**os.environ, **HASWELL})
    if result.returncode == 5:
        print("no OpenBLAS here: pinned levers were not tried")
        return
    assert result.returncode == 0, result.stderr
    runs.last_checkpoint(run).unlink()
    os.environ["OPENBLAS_CORETYPE"] = "Prescott"
    said = runs.train(trainer, "--out", run, "--resume", status=5)
    assert "cpu.openblas" in said and "has changed" in said, said
    os.environ.update(HASWELL)
    runs.train(trainer, "--out", run, "--resume", "--quiet")
    assert runs.last_checkpoint(run).name == "checkpoint-00000004.safetensors"


def check_paths(trainer, folder):
    """A path need not be UTF-8."""
    path = bytes(folder) + b"/text-\xe9"
    with open(path, "wb") as file:
        file.write(bytes(range(256)) * 20)
    run = folder / "paths"
    runs.call(trainer, [*runs.TINY, "--data", path, "--steps", "4", "--checkpoint-every", "2", "--out", str(run)])
    runs.last_checkpoint(run).unlink()
    said = runs.train(trainer, "--out", run, "--resume")
    assert "going on after step 2" in said, said


def check_damage(trainer, folder, data):
    """The newest checkpoint that verifies counts, and what was passed over is said; with none left, nothing starts."""
    run = folder / "damage"
    runs.train(trainer, *runs.TINY, *data, "--steps", "6", "--checkpoint-every", "3", "--out", run)
    newest = runs.last_checkpoint(run)
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 4
    newest.write_bytes(content)
    said = runs.train(trainer, "--out", run, "--resume")
    assert newest.name in said and "going on after step 3" in said, said
    for path in run.glob("checkpoint-*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    said = runs.train(trainer, "--out", run, "--resume", status=3)
    assert "none of its checkpoints verifies" in said, said


def main():
    trainer = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shards = runs.write_shards(folder)
        data = ["--vocabulary", "61"] + [word for path in shards for word in ("--data", path)]
        for number, (case, options) in enumerate(CASES.items()):
            place = folder / str(number)
            place.mkdir()
            check_case(trainer, place, case, options, data)
        place = folder / "built-in"
        place.mkdir()
        check_case(trainer, place, "built-in corpus", ["--precision", "bf16"], [])
        check_refusals(trainer, folder, data)
        check_damage(trainer, folder, data)
        check_paths(trainer, folder)
        check_levers(trainer, folder)
    print("ok")


if __name__ == "__main__":
    main()
