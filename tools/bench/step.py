#!/usr/bin/env python3
"""Whole training steps of halfstep and of PyTorch, side by side: docs/performance.md says what the figures mean.

    tools/bench/step.py --install                  once: PyTorch in an environment of its own, build/bench-python
    tools/bench/step.py [--sizes small medium 124m] [--threads 1 2] [--repeats 9]
    tools/bench/step.py --gpu DEVICE [--sizes 124m 124m-2048]     halfstep on a Vulkan device, PyTorch on its GPU

All sides stay in memory and take turns, one update each, so that what else the machine does hits all alike. A ratio is
that of two updates of the same turn; the median over the turns stands in the table, with the quartiles. One thread is
timed by its processor time, several by the clock on the wall.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = ROOT / "build/bench-python/bin/python"

SIZES = {
    "small": dict(width=128, layers=4, heads=4, feed_forward=384, vocabulary=258, batch_size=12, context=64),
    "medium": dict(width=384, layers=6, heads=6, feed_forward=1024, vocabulary=258, batch_size=4, context=256),
    "124m": dict(width=768, layers=12, heads=12, feed_forward=2048, vocabulary=50257, batch_size=4, context=64),
    "124m-2048": dict(width=768, layers=12, heads=12, feed_forward=2048, vocabulary=50257, batch_size=8, context=256),
    "tiny": dict(width=32, layers=1, heads=2, feed_forward=64, vocabulary=258, batch_size=2, context=16),
}
OURS, THEIRS = ("fp16", "bf16"), ("f32", "bf16")

# Settings of the threads and libraries underneath would favour one side.
FOREIGN = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "ONEDNN_", "DNNL_", "TORCH_", "ATEN_")

# Both sides compute the same function of the same numbers, so their losses differ by rounding alone, which every further
# update makes larger. So the first ones are judged.
LARGEST_LOSS_GAP = 0.02
JUDGED_UPDATES = 7


def multiply_adds(size):
    """Of the products in one update: forward, and twice that backward. Attention counts its lower triangle alone."""
    rows = size["batch_size"] * size["context"]
    width, layers = size["width"], size["layers"]
    weights = layers * (4 * width**2 + 3 * width * size["feed_forward"]) + size["vocabulary"] * width
    attention = layers * size["batch_size"] * size["context"] * (size["context"] + 1) * width
    return 3 * (rows * weights + attention)


class Side:
    """One program, which makes an update when asked."""

    def __init__(self, name, command, environment):
        self.name = name
        self.lines = []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def read(self):
        text = self.process.stdout.readline()
        if not text:
            sys.exit(f"step.py: {self.name} ended early")
        self.lines.append(json.loads(text))
        return self.lines[-1]

    def update(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def clean_environment(spin):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    if spin is not None:
        kept["GOMP_SPINCOUNT"] = str(spin)
    return kept


def start_sides(options, size, threads):
    shape = [word for name, value in size.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    common = shape + ["--threads", str(threads), "--warm-up", str(options.warm_up)]
    environment = clean_environment(options.spin)
    sides = []
    for precision in OURS:
        command = [str(options.build / "bin/bench_step"), "--serve", "--levers", options.levers[0]]
        command += ["--precision", precision, *common]
        sides.append(Side(f"halfstep {precision}", command, environment))
        for _ in range(options.warm_up):
            sides[-1].read()
    for precision in THEIRS:
        command = [str(options.python), str(HERE / "step_pytorch.py"), "--precision", precision, *common]
        sides.append(Side(f"PyTorch {precision}", command, environment))
        for _ in range(options.warm_up):
            sides[-1].read()
    return sides


def start_gpu_sides(options, size, has_pytorch):
    """bf16 alone: with the reference's bits, with whatever levers pass and win on the device, and PyTorch's autocast."""
    shape = [word for name, value in size.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    common = shape + ["--precision", "bf16", "--warm-up", str(options.warm_up)]
    ours = [str(options.build / "bin/bench_step"), "--serve", "--backend", "vulkan", "--device", options.gpu]
    commands = {f"halfstep, levers {levers}": [*ours, "--levers", levers, *common] for levers in options.levers}
    if has_pytorch:
        script = str(HERE / "step_pytorch.py")
        commands["PyTorch bf16"] = [str(options.python), script, "--device", "cuda", *common]
    sides = []
    for name, command in commands.items():
        sides.append(Side(name, command, clean_environment(options.spin)))
        for _ in range(options.warm_up):
            sides[-1].read()
    return sides


def why_no_pytorch(options):
    """None where the Python at hand has PyTorch and that a GPU."""
    if not options.python.exists():
        return f"there is no {options.python}: name a Python with --python or HALFSTEP_BENCH_PYTHON"
    probe = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 'PyTorch has no GPU')"
    run = subprocess.run([str(options.python), "-c", probe], stderr=subprocess.PIPE, text=True)
    return None if run.returncode == 0 else run.stderr.strip().split("\n")[-1]


def measure_gpu(options, log):
    """Every side keeps its model on the device, so that a table holds what was measured in turns."""
    absent = why_no_pytorch(options)
    print(f"PyTorch is not measured: {absent}" if absent else "PyTorch is measured on its first GPU")
    for name in options.sizes:
        size = SIZES[name]
        sides = start_gpu_sides(options, size, absent is None)
        for _ in range(options.repeats):
            for side in sides:
                side.update()
        for side in sides:
            side.close()
            for line in side.lines:
                log.write(json.dumps({"size": name, **line}) + "\n")
        gap = check_alike(sides)
        print(f"\n{name}: {options.repeats} updates of each in turns, gap of losses {gap:.4f}")
        for side in sides:
            first = side.lines[0]
            print(f"  {side.name}: {first.get('device') or first['capability']}, {' '.join(first.get('levers', []))}")
        print("| side | ms for an update | tokens/s | TFLOP/s | updates while PyTorch makes one |\n|---|---|---|---|---|")
        for side in sides:
            seconds = statistics.median(times(side, 0))
            beside = "" if absent else ratio(side, sides[-1], 0)
            print(
                f"| {side.name} | {1e3 * seconds:.2f} | {side.lines[0]['tokens'] / seconds:,.0f} "
                f"| {2 * multiply_adds(size) / seconds / 1e12:.3f} | {beside} |",
                flush=True,
            )


def check_alike(sides):
    """Ends the program where the sides do not train the same model on the same data."""
    if len({side.lines[0]["parameters"] for side in sides}) != 1:
        sys.exit("step.py: the sides have different numbers of parameters")
    gap = 0.0
    for update, lines in enumerate(zip(*(side.lines for side in sides))):
        if any(line["outcome"] != "applied" for line in lines):
            sys.exit("step.py: an update was skipped, and a skipped one takes less time")
        losses = [line["loss"] for line in lines]
        if update < JUDGED_UPDATES:
            gap = max(gap, max(losses) - min(losses))
    if gap > LARGEST_LOSS_GAP:
        sys.exit(f"step.py: losses differ by {gap:.4f}: the sides do not compute the same")
    return gap


def times(side, threads):
    key = "cpu_seconds" if threads == 1 else "seconds"
    return [line[key] for line in side.lines if not line["warm_up"]]


def ratio(ours, theirs, threads):
    """"1.23 (1.20-1.25)": how often the first one makes an update while the second makes one."""
    quotients = [b / a for a, b in zip(times(ours, threads), times(theirs, threads))]
    if len(quotients) < 2:
        return f"{quotients[0]:.2f}"
    low, _, high = statistics.quantiles(quotients, n=4, method="inclusive")
    return f"{statistics.median(quotients):.2f} ({low:.2f}-{high:.2f})"


def busy_seconds():
    """Processor time of all programs on the machine, and of those that this one started and saw end."""
    fields = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    idle = fields[3] + fields[4]
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK"), children.ru_utime + children.ru_stime


def measure(options, name, threads, peak, log):
    start, (all_before, own_before) = time.monotonic(), busy_seconds()
    size = SIZES[name]
    sides = start_sides(options, size, threads)
    for _ in range(options.repeats):
        for side in sides:
            side.update()
    for side in sides:
        side.close()
    all_after, own_after = busy_seconds()
    others = ((all_after - all_before) - (own_after - own_before)) / (time.monotonic() - start)
    for side in sides:
        for line in side.lines:
            log.write(json.dumps({"size": name, **line}) + "\n")
    log.flush()
    gap = check_alike(sides)
    rows = []
    for side in sides:
        seconds = statistics.median(times(side, threads))
        rate = 2 * multiply_adds(size) / seconds / 1e9
        rows.append(
            f"| {name} | {threads} | {side.name} | {sides[0].lines[0]['tokens'] / seconds:,.0f} | {rate:.1f} "
            f"| {100 * rate / (peak * threads):.0f}% | {side.lines[-1]['peak_rss_bytes'] / 1e9:.2f} |"
        )
    ours, theirs = sides[: len(OURS)], sides[len(OURS) :]
    cells = [ratio(a, b, threads) for a in ours for b in theirs]
    return rows, f"| {name} | {threads} | {' | '.join(cells)} | {gap:.4f} | {max(others, 0):.1f} |", sides


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    fields = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    known = fields.get("flags", "").split()
    sets = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_bf16") if flag in known]
    return (
        f"{fields.get('model name', 'unknown')} (family {fields.get('cpu family', '?')}, "
        f"model {fields.get('model', '?')}), {os.cpu_count()} cores, {' '.join(sets)}"
    )


def install():
    venv.create(PYTHON.parent.parent, with_pip=True)
    if subprocess.run([str(PYTHON), "-m", "pip", "install", "--quiet", "torch", "numpy"]).returncode != 0:
        sys.exit("step.py: pip could not install PyTorch")
    print(f"PyTorch stands in {PYTHON.parent.parent}")


def read_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--install", action="store_true", help="get PyTorch with pip, and do nothing else")
    parser.add_argument("--gpu", metavar="DEVICE", help="on this Vulkan device, as `trainer train --device`")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, help="small, medium and 124m; with --gpu 124m and 124m-2048")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--warm-up", type=int, default=2, help="updates before those that count")
    parser.add_argument(
        "--levers", nargs="+", help="of halfstep, as `trainer train --levers`: exact, and with --gpu a side of auto too"
    )
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="where bench_step was built")
    parser.add_argument(
        "--python",
        type=pathlib.Path,
        default=pathlib.Path(os.environ.get("HALFSTEP_BENCH_PYTHON", PYTHON)),
        help="a Python that has PyTorch; HALFSTEP_BENCH_PYTHON says it too",
    )
    parser.add_argument(
        "--spin",
        type=int,
        default=10000,
        help="GOMP_SPINCOUNT of all sides: how long threads that wait keep a processor; the trainer's own",
    )
    parser.add_argument("--log", type=pathlib.Path, default=pathlib.Path(os.devnull), help="every update as JSON")
    options = parser.parse_args()
    options.levers = options.levers or (["exact", "auto"] if options.gpu else ["exact"])
    options.sizes = options.sizes or (["124m", "124m-2048"] if options.gpu else ["small", "medium", "124m"])
    return options


def main():
    options = read_options()
    if options.install:
        install()
        return
    if not (options.build / "bin/bench_step").exists():
        sys.exit(f"step.py: no {options.build}/bin/bench_step; build first, or name the folder with --build")
    if options.gpu:
        with options.log.open("w") as log:
            measure_gpu(options, log)
        return
    if not options.python.exists():
        sys.exit(f"step.py: no {options.python}; run `tools/bench/step.py --install` first")
    run = subprocess.run([str(options.build / "bin/bench_peak")], stdout=subprocess.PIPE, check=True)
    peak = json.loads(run.stdout)
    rows, ratios, sides = [], [], []
    with options.log.open("w") as log:
        for name in options.sizes:
            for threads in options.threads:
                more, line, sides = measure(options, name, threads, peak["gflops"], log)
                rows += more
                ratios.append(line)
    print(f"Processor: {processor()}")
    print(f"Roof of one thread: {peak['gflops']} GFLOP/s in f32 ({peak['instructions']})")
    print(f"halfstep: {sides[0].lines[0]['backend']}, levers {' '.join(sides[0].lines[0]['levers'])}")
    print(f"PyTorch {sides[-1].lines[0]['version']}, {sides[-1].lines[0]['capability']}")
    print(f"{options.repeats} interleaved updates of each side\n")
    print("| size | threads | side | tokens/s | GFLOP/s | of the f32 roof | peak memory, GB |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    heads = [f"{a} to PyTorch {b}" for a in OURS for b in THEIRS]
    print(f"\n| size | threads | {' | '.join(heads)} | gap of losses | cores busy with other work |")
    print(f"|---|---|{'---|' * len(heads)}---|---|")
    print("\n".join(ratios))


if __name__ == "__main__":
    main()
