"""Kills a run at random moments and goes on, again and again: nothing that was acknowledged is lost, no file is left
unreadable, and the end is that of a run that nobody killed.

usage: kills.py TRAINER [KILLS]
"""

import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import runs


def acknowledged(folder):
    """The last step whose checkpoint a record says is there; 0 for none."""
    path = folder / "records.jsonl"
    if not path.exists():
        return 0
    steps = [0]
    for text in path.read_text().splitlines():
        line = json.loads(text)  # every line is whole, at every moment
        if line["record"] in ("checkpoint", "resume"):
            steps.append(line["step"])
    return max(steps)


def kill_and_resume(trainer, run, options, kills, wait):
    """Starts the run, or goes on with it, and kills it after wait(process), again and again, until it has an end.
    Returns how many parts were killed and how many of them came forward."""
    interrupted = progressed = 0
    while interrupted < kills:
        before = acknowledged(run)
        process = subprocess.Popen([trainer, "train", *map(str, options), "--checkpoint-every", "3", "--out", run,
                                    "--resume"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE)
        wait(process)
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[1].decode()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, (process.returncode, said)
        interrupted += 1
        after = acknowledged(run)
        assert after >= before, f"step {before} was acknowledged, {after} is there"
        progressed += after > before
        if after > 0:
            assert any(int(path.stem.split("-")[1]) >= after for path in run.glob("checkpoint-*.safetensors")), after
    return interrupted, progressed


def finish_and_compare(trainer, run, options, whole):
    """Goes on to the end: nothing else is left behind, and the end is that of a run that nobody stopped."""
    runs.train(trainer, "--out", run, "--resume", "--quiet", timeout=600)
    left = [path.name for path in run.iterdir() if path.suffix != ".safetensors" and path.name != "records.jsonl" and
            not path.name.startswith("records.jsonl.")]
    assert left == [], f"left behind: {left}"
    if not whole.exists():
        runs.train(trainer, *options, "--out", whole, timeout=600)
    runs.assert_same_run(whole, run)


def main():
    trainer, kills = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Long enough that no part reaches the end before the kills are over.
        options = [*runs.SKIPPING, *runs.shard_options(folder), "--eval-every", "0", "--steps", 60 * kills]
        run, moments = folder / "killed", random.Random(1)
        interrupted, progressed = kill_and_resume(trainer, run, options, kills,
                                                  lambda _: time.sleep(moments.uniform(0.0, 0.12)))
        assert interrupted >= kills or interrupted > 20, f"{interrupted} kills only"
        assert progressed > interrupted // 10, f"{progressed} of {interrupted} parts came forward"
        finish_and_compare(trainer, run, options, folder / "whole")
    print(f"ok: {interrupted} kills, {progressed} parts came forward")


if __name__ == "__main__":
    main()
