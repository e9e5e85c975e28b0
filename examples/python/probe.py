"""The overflow probe of `trainer --precision fp16`, attempt by attempt, from Python.

A decoder of 1372 numbers sees the text `ab`. After one update at loss scale 128 the scale is set to 2^24, far too large: the
same update is tried, and the scale halved, until it commits. docs/demonstration.md says where each number comes from.

    python3 examples/python/probe.py [--json]
"""

import argparse
import json

import halfstep

LARGEST = 2.0**24
TEXT = {"tokens": [0, 99, 100], "targets": [99, 100, 1]}


def make():
    config = halfstep.DecoderConfig(vocabulary=258, width=4, layers=2, heads=2, feed_forward=8, precision="fp16")
    model = halfstep.Decoder(config, halfstep.Context("cpu-reference"))
    model.initialize("xavier", seed=39)
    return halfstep.Trainer(model, scaler=halfstep.Scaler(initial=128, minimum=1, maximum=128, growth_interval=2))


def probe(trainer, most=32):
    """The attempts up to the one that commits, and whether the skips kept every byte of what is learned."""
    trainer.step(TEXT)
    trainer.set_scaler(halfstep.Scaler(LARGEST, 1, LARGEST, growth_interval=2))
    before, attempts, kept = trainer.snapshot(), [], True
    while len(attempts) < most:
        attempts.append(trainer.step(TEXT))
        if attempts[-1].applied:
            break
        kept = kept and trainer.snapshot() == before
    return attempts, kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object with every skip")
    arguments = parser.parse_args()
    attempts, kept = probe(make())
    *skips, last = attempts
    if arguments.json:
        rows = [{"loss_scale": it.loss_scale, "operation": it.overflow.operation, "tensor": it.overflow.tensor,
                 "index": it.overflow.index, "kind": it.overflow.kind} for it in skips]
        print(json.dumps({"skips": rows, "kept": kept, "loss_scale": last.loss_scale, "step": last.optimizer_step}))
        return
    for it in skips:
        print(f"scale 2^{it.loss_scale.hex().split('p+')[1]}: {it.overflow.kind} in {it.overflow.operation}, "
              f"{it.overflow.tensor} at {it.overflow.index}")
    print(f"scale {last.loss_scale:.0f}: committed as update {last.optimizer_step}, gradient norm {last.gradient_norm:.4f}")
    print("the skips kept every byte" if kept else "a skip changed something")


if __name__ == "__main__":
    main()
