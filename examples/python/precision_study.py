"""One model, trained under f64, fp16, bf16 and a mixture by layer: what does precision do to learning?

All sides have the same first weights and see the same batches. The loss curves and their distance from f64's go to a CSV
file and, where matplotlib is there, to a plot.

    python3 examples/python/precision_study.py [--steps 200] [--out DIR]
"""

import argparse
import csv
from pathlib import Path

import halfstep

#: f64 where errors enter and leave, fp16 in the first layer, bf16 in between.
MIXTURE = {"blocks.0.*": "fp16", "*.attention": "f64", "head": "f64"}
SIDES = {"f64": ("f64", {}), "fp16": ("fp16", {}), "bf16": ("bf16", {}), "mixture": ("bf16", MIXTURE)}


def sums():
    """Lines such as 12+7=19: a language with something to learn."""
    return "".join(f"{a}+{b}={a + b}\n" for a in range(60) for b in range(60))


def train(precision, places, data, steps, context):
    """Losses of the committed updates, skips by operation, and the loss on what was held out."""
    config = halfstep.DecoderConfig(
        data.vocabulary, width=32, layers=2, heads=4, feed_forward=64, precision=precision, precision_for=places
    )
    model = halfstep.Decoder(config, context)
    model.initialize("xavier", seed=1)
    schedule = halfstep.Schedule(0.01, "cosine", warmup_steps=max(1, steps // 10), steps=steps)
    trainer, skips = halfstep.Trainer(model, schedule=schedule), {}

    def count(_, update):
        if update.skipped:
            skips[update.overflow.operation] = skips.get(update.overflow.operation, 0) + 1

    trainer.callbacks.append(count)
    updates = trainer.run(data.batches(steps, sequences=8, length=32, seed=3))
    losses = [it.loss for it in updates if it.applied]
    return losses, skips, model.loss(data.evaluation(32, limit=40))


def farthest(losses, right, window=20):
    """The largest relative gap of curves of means over the last 20 updates, as `trainer verify` measures it."""
    means = [
        [sum(curve[i : i + window]) / window for i in range(max(1, len(curve) - window + 1))] for curve in (losses, right)
    ]
    return max(abs(it / reference - 1) for it, reference in zip(*means))


def write_csv(path, curves):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *curves])
        writer.writerows([step + 1, *row] for step, row in enumerate(zip(*curves.values())))


def plot(path, curves):
    """False where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 7))
    for i, (name, losses) in enumerate(curves.items()):
        above.plot(losses, color=f"C{i}", label=name, linewidth=1)
        if name != "f64":
            gaps = [abs(it / right - 1) + 1e-17 for it, right in zip(losses, curves["f64"])]
            below.semilogy(gaps, color=f"C{i}", linewidth=1)
    above.set_ylabel("loss, nats a token")
    above.legend()
    below.set_ylabel("distance from f64")
    below.set_xlabel("update")
    figure.savefig(path, dpi=120)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("precision-study"))
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error(f"argument --steps: {arguments.steps}: give at least 1")
    arguments.out.mkdir(parents=True, exist_ok=True)

    data, context, curves = halfstep.Dataset(text=sums()), halfstep.Context("cpu", threads=1), {}
    for name, (precision, places) in SIDES.items():
        curves[name], skips, held_out = train(precision, places, data, arguments.steps, context)
        gap = farthest(curves[name], curves["f64"])
        print(f"{name:8} held out {held_out:.4f}, farthest from f64 {gap:.2%}, skips {skips or 'none'}", flush=True)

    write_csv(arguments.out / "losses.csv", curves)
    print(f"curves: {arguments.out / 'losses.csv'}")
    if plot(arguments.out / "losses.png", curves):
        print(f"plot: {arguments.out / 'losses.png'}")
    else:
        print("no plot: matplotlib is not installed (Debian: python3-matplotlib)")


if __name__ == "__main__":
    main()
