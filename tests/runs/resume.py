"""Run N steps equals run k, stop, resume, run N - k: weights, moments, state and records.

usage: resume.py TRAINER
"""

import fcntl
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

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


def changes(run):
    """What the last resume of a run says to have changed."""
    lines = (run / "records.jsonl").read_text().splitlines()
    last = [line for line in map(json.loads, lines) if line["record"] == "resume"][-1]
    return [(change["option"], change["before"], change["after"]) for change in last["changes"]]


def check_refusals(trainer, folder, data):
    run = folder / "refusals"
    runs.train(trainer, *runs.TINY, *data, "--steps", "6", "--out", run)
    said = runs.train(trainer, "--out", run, "--resume", "--learning-rate", "0.1", "--seed", "9", "--threads", "2",
                      status=2)
    assert "--learning-rate" in said and "--seed" in said and "--threads" not in said, said
    assert "--allow-changes" in said and "says 0.1\n" in said, said
    runs.train(trainer, "--out", run, "--resume", "--steps", "8", "--allow-changes", "--quiet")
    assert runs.last_checkpoint(run).name == "checkpoint-00000008.safetensors"
    assert changes(run) == [("steps", 6, 8)], changes(run)
    runs.train(trainer, "--out", run, "--resume", "--steps", "9", "--learning-rate", "0.5", "--trace", "3", *data[2:4],
               "--allow-changes", "--quiet")
    assert changes(run) == [("data", " + ".join(data[3::2]), data[3]), ("steps", 8, 9), ("learning-rate", 0.001, 0.5),
                            ("trace", 0, 3)], changes(run)
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
    other = run / "checkpoint-00000099.safetensors"
    (run / "checkpoint-00000003.safetensors").rename(other)
    said = runs.train(trainer, "--out", run, "--resume", status=3)
    assert "is that of step 3" in said and "checkpoint-00000003" in said, said
    other.rename(run / "checkpoint-00000003.safetensors")
    for path in run.glob("checkpoint-*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    said = runs.train(trainer, "--out", run, "--resume", status=3)
    assert "none of its checkpoints verifies" in said, said


def check_longer(trainer, folder, data):
    """More steps for a run that is finished end as those of any run: with an evaluation of the weights it ends with."""
    run = folder / "longer"
    runs.train(trainer, *runs.TINY, *data, "--steps", "4", "--out", run)
    runs.train(trainer, "--out", run, "--resume", "--steps", "7", "--allow-changes", "--quiet")
    kinds = [line["record"] for line in runs.records(run)]
    assert kinds[-4:] == ["update", "update", "evaluation", "end"], kinds
    assert runs.records(run)[-2]["step"] == 7, runs.records(run)[-2]


def check_records(trainer, folder, data):
    """Records that the checkpoint does not know are not cut, be they of the same run or somebody's notes."""
    run, elsewhere, notes = folder / "records", folder / "elsewhere.jsonl", folder / "notes"
    stop = ["--max-time", "0.02", "--quiet"]
    runs.train(trainer, *runs.TINY, *data, "--steps", "100000", "--out", run, *stop)
    runs.train(trainer, "--out", run, "--resume", "--records", elsewhere, *stop)
    runs.train(trainer, "--out", run, "--resume", "--records", elsewhere, *stop)
    (run / "records.jsonl").write_bytes((run / "records.jsonl").read_bytes() * 40)
    notes.write_bytes(b"a line of somebody's\n" * 100000)
    for other, arguments in ((run / "records.jsonl", []), (notes, ["--records", notes])):
        before = other.read_bytes()
        said = runs.train(trainer, "--out", run, "--resume", *arguments, *stop, status=4)
        assert "does not hold the records" in said and "--records" in said, said
        assert other.read_bytes() == before, other
    runs.train(trainer, "--out", run, "--resume", "--records", elsewhere, *stop)
    steps = [line["step"] for line in map(json.loads, elsewhere.read_text().splitlines()) if line["record"] == "update"]
    assert steps == list(range(steps[0], steps[-1] + 1)), steps
    # A pipe is no file that one can go on in: the run waits for its reader, and may be told not to.
    os.mkfifo(folder / "pipe")
    waiting = subprocess.Popen([trainer, "train", "--out", run, "--resume", "--records", folder / "pipe"],
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    assert waiting.poll() is None
    waiting.terminate()
    assert waiting.wait(30) == 130, waiting.returncode


def check_two_at_once(trainer, folder, data):
    """A second run in a folder is refused as long as the first one lives, and the records stay whole."""
    run = folder / "two"
    arguments = [*runs.TINY, *data, "--steps", "100000", "--out", str(run)]
    first = subprocess.Popen([trainer, "train", *arguments, "--checkpoint-every", "1"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not list(run.glob("checkpoint-*.safetensors")):
            assert first.poll() is None, first.returncode
            time.sleep(0.01)
        for resume in ([], ["--resume"]):
            said = runs.train(trainer, *arguments, *resume, "--max-time", "0.01", status=4)
            assert "another run is writing there" in said, said
    finally:
        first.kill()
        first.wait()
    runs.train(trainer, "--out", run, "--resume", "--max-time", "0.01", "--quiet")
    steps = [line["step"] for line in runs.records(run) if line["record"] == "update"]
    assert steps == list(range(1, len(steps) + 1)), steps
    # It is refused before it reads checkpoints, which the first run may remove at any moment.
    lock = os.open(run, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for checkpoint in run.glob("checkpoint-*.safetensors"):
        checkpoint.write_bytes(b"half of one")
    said = runs.train(trainer, *arguments, "--resume", status=4)
    assert "another run is writing there" in said and "verifies" not in said, said
    os.close(lock)


def check_no_room(trainer, folder, data):
    """A checkpoint that finds no room ends the run, which says so in its last record."""
    run = folder / "no-room"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
    result = subprocess.run([trainer, "train", *runs.TINY, *data, "--steps", "6", "--checkpoint-every", "3", "--out",
                             run], stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limit)
    assert result.returncode == 4, result
    end = runs.records(run)[-1]
    assert end["record"] == "end" and end["outcome"] == "failed" and "checkpoint-00000003" in end["message"], end


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
        check_longer(trainer, folder, data)
        check_records(trainer, folder, data)
        check_two_at_once(trainer, folder, data)
        check_no_room(trainer, folder, data)
        check_levers(trainer, folder)
    print("ok")


if __name__ == "__main__":
    main()
