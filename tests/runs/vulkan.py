"""Runs on a Vulkan device that are killed, or whose device is lost, in a step: nothing that was saved is lost, and who
goes on ends as a run that nothing befell.

usage: vulkan.py TRAINER FOLDER        FOLDER: that of the layer that loses devices (tests/vulkan/losing_layer.c)
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import kills
import runs

STEPS = 45
DEVICE = ["--backend", "vulkan", "--device", os.environ.get("HALFSTEP_TEST_DEVICE", "llvmpipe")]


def check_kills(trainer, folder, options):
    """Kills each part somewhere in the steps after its first checkpoint, and some before they have one."""
    run, moments = folder / "killed", random.Random(1)

    def wait(process):
        before = kills.acknowledged(run)
        early = moments.random() < 0.2
        while not early and process.poll() is None and kills.acknowledged(run) == before:
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.1))

    interrupted, progressed = kills.kill_and_resume(trainer, run, options, 20, wait)
    assert progressed > 2, f"{progressed} parts only came forward"
    kills.finish_and_compare(trainer, run, options, folder / "whole")
    return interrupted, progressed


def train_until_lost(trainer, layers, arguments, submissions):
    environment = {**os.environ, "VK_LAYER_PATH": layers, "VK_INSTANCE_LAYERS": "VK_LAYER_HALFSTEP_losing",
                   "HALFSTEP_TEST_SUBMISSIONS": str(submissions)}
    result = subprocess.run([trainer, "train", *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                            env=environment, timeout=300)
    return result.returncode, result.stderr.decode(errors="replace")


def count_submissions(trainer, layers, folder, options):
    """How many the whole run takes, as the layer says at its end."""
    status, said = train_until_lost(trainer, layers, [*options, "--checkpoint-every", "3", "--out", folder], 10**9)
    assert status == 0, said
    return int(said.split("submissions: ")[1].split()[0])


def check_losses(trainer, layers, folder, options):
    count = count_submissions(trainer, layers, folder / "counted", options)
    moments = random.Random(2)
    places = [0, 1, count - 1] + [moments.randrange(count // 8, count) for _ in range(5)]
    saved_before = 0
    for place in places:
        run = folder / f"lost-{place}"
        status, said = train_until_lost(trainer, layers, [*options, "--checkpoint-every", "3", "--out", run], place)
        assert status == 5 and "device was lost" in said, (place, status, said)
        saved = kills.acknowledged(run)
        saved_before += saved > 0
        assert said.count("device was lost") == 1, said
        if saved > 0:
            assert f"the last checkpoint is of step {saved}" in said and "--resume" in said, (place, said)
        ends = [line for line in runs.records(run) if line["record"] == "end"] if run.exists() else []
        if saved not in (0, STEPS):
            assert len(ends) == 1 and ends[0]["outcome"] == "failed" and ends[0]["weights_checksum"] is None, ends
        runs.train(trainer, *([] if saved else options), "--out", run, "--resume", "--quiet", timeout=300)
        runs.assert_same_run(folder / "whole", run)
    assert saved_before > 2, "the device was never lost after a checkpoint"
    return len(places)


def main():
    trainer, layers = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        options = [*runs.SKIPPING, *runs.shard_options(folder), *DEVICE, "--eval-every", "0", "--steps", STEPS]
        interrupted, progressed = check_kills(trainer, folder, options)
        lost = check_losses(trainer, layers, folder, options)
    print(f"ok: {interrupted} kills, {progressed} parts came forward; {lost} losses")


if __name__ == "__main__":
    main()
