"""What the loss scale does to gradients in fp16: one backward pass at every power of two, held against f64.

Adjoints of a batch are about 1/N and less, and fp16 ends at 2^-24: without a scale many of them become 0. With too large a
scale some become infinite, and the update is skipped. Between the two lies room, in which the gradients are as exact as fp16
makes them.

    python3 examples/python/scale_sweep.py [--precision fp16] [--csv FILE]
"""

import argparse
import csv

import numpy as np

import halfstep


def make(precision, context):
    model = halfstep.Decoder(halfstep.DecoderConfig(258, 32, 2, 4, 64, precision=precision), context)
    model.initialize("normal", seed=7)
    return model


def gradients(model, batch, scale):
    """By name and unscaled, or the operation that overflows."""
    with halfstep.Trainer(model, scaler=halfstep.Scaler(scale, 1, scale, 1)) as trainer:
        trainer.record(batch)
        trainer.backward()
        found = {name: gradient / scale for name, gradient in trainer.gradients.items()}
        trainer.clear()
        if all(np.isfinite(it).all() for it in found.values()):
            return found
        return trainer.explain(batch).overflow.operation


def compare(found, exact):
    """The error relative to the whole gradient, and the share of numbers that are 0 and must not be."""
    error = np.sqrt(sum(np.sum((found[name] - it) ** 2) for name, it in exact.items()))
    norm = np.sqrt(sum(np.sum(it**2) for it in exact.values()))
    lost = sum(np.count_nonzero((found[name] == 0) & (it != 0)) for name, it in exact.items())
    return error / norm, lost / sum(np.count_nonzero(it) for it in exact.values())


def sweep(precision):
    context = halfstep.Context("cpu", threads=1)
    tokens = np.random.default_rng(5).integers(2, 258, (16, 65))
    batch = {"tokens": tokens[:, :-1], "targets": tokens[:, 1:]}
    exact = gradients(make("f64", context), batch, 1.0)
    model = make(precision, context)
    for exponent in range(0, 31, 2):
        found = gradients(model, batch, 2.0**exponent)
        yield (exponent, *(("", "", found) if isinstance(found, str) else (*compare(found, exact), "")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", default="fp16", choices=("fp16", "bf16"))
    parser.add_argument("--csv", help="where the table goes, too")
    arguments = parser.parse_args()
    rows = list(sweep(arguments.precision))
    print("scale  error    lost to 0")
    for exponent, error, lost, overflow in rows:
        figures = f"{error:8.3%} {lost:8.2%}" if not overflow else f"overflow in {overflow}"
        print(f"2^{exponent:<4} {figures}")
    if arguments.csv:
        with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("exponent", "error", "lost", "overflow"), *rows])


if __name__ == "__main__":
    main()
