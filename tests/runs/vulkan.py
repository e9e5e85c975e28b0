"""Runs on a Vulkan device end as on the reference, and so do runs that are killed in a step, or whose device is lost:
nothing that was saved is lost.

usage: vulkan.py TRAINER FOLDER        FOLDER: that of the layer that loses devices (tests/vulkan/losing_layer.c)
"""

import json
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


def ask(trainer, command, *arguments, status=0):
    """What a command prints, without its times."""
    result = subprocess.run([trainer, command, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                            timeout=120)
    assert result.returncode == status, (command, arguments, result.returncode, result.stderr.decode())
    said = result.stdout.decode() if status == 0 else result.stderr.decode()
    return "\n".join(line for line in said.splitlines() if "seconds" not in line)


def check_commands(trainer, folder):
    """Commands that read what a run left give on the device what they give on the reference, and refuse other devices."""
    whole, reference = folder / "whole", ["--backend", "cpu-reference"]
    dumped = sorted(whole.glob("overflow-*"))[0]
    questions = {"sample": ["--quiet", "--prompt-tokens", "1,2,3", "--tokens", "5", whole],
                 "eval": ["--json", "--data", folder / "shard-1.bin", whole],
                 "replay": ["--json", dumped]}
    for command, arguments in questions.items():
        expected, found = ask(trainer, command, *reference, *arguments), ask(trainer, command, *DEVICE, *arguments)
        if command == "replay":
            # Backends differ in what they keep in 16 bits, of which the explanation of operands tells.
            expected, found = json.loads(expected), json.loads(found)
            assert (expected.pop("backend"), found.pop("backend")) == ("cpu-reference", "vulkan")
            assert expected.pop("explanation")["kind"] == found.pop("explanation")["kind"] and found["same"]
        assert expected == found, (command, expected, found)
        said = ask(trainer, command, *reference, "--device", "0", *arguments, status=2)
        assert "--device 0 goes with --backend vulkan" in said, said
        said = ask(trainer, command, "--backend", "vulkan", "--device", "none such", *arguments, status=5)
        assert "no Vulkan device \"none such\"" in said, said


def check_reference(trainer, folder, options):
    """The same run on the reference, from the beginning and from a checkpoint of the device's: the same end."""
    elsewhere = [word for word in options if word not in DEVICE] + ["--backend", "cpu-reference"]
    runs.train(trainer, *elsewhere, "--out", folder / "reference", timeout=300)
    runs.assert_same_run(folder / "whole", folder / "reference")
    run = folder / "moved"
    runs.train(trainer, *options, "--checkpoint-every", "5", "--keep-checkpoints", "100", "--out", run, timeout=300)
    for path in run.glob("checkpoint-*.safetensors"):
        if int(path.stem.split("-")[1]) > 10:
            path.unlink()
    runs.train(trainer, "--out", run, "--resume", "--backend", "cpu-reference", "--quiet", timeout=300)
    runs.assert_same_run(folder / "whole", run)


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
        options = [*runs.SKIPPING, *runs.shard_options(folder), *DEVICE, "--eval-every", "0", "--steps", STEPS,
                   "--dump-overflow", "1"]
        interrupted, progressed = check_kills(trainer, folder, options)
        check_commands(trainer, folder)
        check_reference(trainer, folder, options)
        lost = check_losses(trainer, layers, folder, options)
    print(f"ok: {interrupted} kills, {progressed} parts came forward; {lost} losses")


if __name__ == "__main__":
    main()
