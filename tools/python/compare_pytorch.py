#!/usr/bin/env python3
"""The figures of docs/comparing.md: halfstep in f64, fp16 and bf16 beside PyTorch and the package transformers.

    tools/python/compare_pytorch.py --install      once: PyTorch and transformers, in an environment of their own
    tools/python/compare_pytorch.py                the tables of the document, for this machine
    tools/python/compare_pytorch.py --agreement    only halfstep's f64 beside float64; status 1 where they do not agree
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build/compare-python/bin/python"
SKIPPED = 77

SHAPE = dict(vocabulary=258, layers=4, width=128, heads=8, kv_heads=2, feed_forward=344, batch_size=2, context=64)
# Grouped heads, head widths from 8, sizes that no vector divides.
SHAPES = [
    SHAPE,
    dict(vocabulary=97, layers=2, width=64, heads=8, kv_heads=4, feed_forward=65, batch_size=3, context=21),
    dict(vocabulary=31, layers=1, width=48, heads=2, kv_heads=1, feed_forward=50, batch_size=1, context=150),
    dict(vocabulary=11, layers=3, width=40, heads=4, kv_heads=1, feed_forward=7, batch_size=5, context=5),
]
PRECISIONS = ("f64", "fp16", "bf16")
MODELS = ("plain", "llama")
CLAIMS = ("equal bits", "within the target", "no farther than theirs", "outside")
SHOWN = (
    "token_embedding",
    "blocks.0.attention_norm",
    "blocks.0.attention.query",
    "blocks.0.attention",
    "blocks.0.feed_forward.activation",
    "blocks.0.output",
    "blocks.3.output",
    "final_norm",
    "logits",
    "probabilities",
    "loss",
    "gradient.token_embedding.weight",
    "gradient.blocks.0.attention.query.weight",
    "gradient.blocks.3.feed_forward.down.weight",
)
AGREEMENT = 1e-12


def call(trainer, *words):
    """Standard output of a command; compare's status 1 is a verdict."""
    run = subprocess.run([trainer, *map(str, words)], capture_output=True, text=True)
    if run.returncode > (words[0] == "compare"):
        sys.exit(f"trainer {' '.join(map(str, words))}: {run.stderr}")
    return run.stdout


def trace_ours(o, out, shape, precision="f64"):
    options = [word for name, value in shape.items() for word in (f"--{name.replace('_', '-')}", value)]
    # Every value in f64, also those that products alone read. It changes no bit of the results.
    call(o.trainer, "trace-forward", "--gradients", "--quiet", "--backend", "cpu", "--levers", "none", "--threads", 1,
         "--precision", precision, "--out", out, *options)  # fmt: skip


def compare(o, ours, theirs, referee):
    return json.loads(call(o.trainer, "compare", "--json", "--ours", ours, "--theirs", theirs, "--referee", referee))


def largest_gap(rows, of_gradients):
    """Largest distance from the referee, as a share of the tensor's largest value, and the tensor's name."""
    chosen = [row for row in rows if row["tensor"].startswith("gradient.") == of_gradients]
    return max((row["our_error"] / row["largest"] if row["largest"] else row["our_error"], row["tensor"]) for row in chosen)


def agreement(o, folder, models):
    """halfstep in f64 beside PyTorch's float64, in several shapes."""
    import trace_pytorch

    print(f"Shapes: {' '.join(SHAPE).replace('_', '-')}\n")
    print("| shape | beside | largest gap of values | of gradients |\n|---|---|---|---|")
    worst = 0
    for number, shape in enumerate(SHAPES):
        ours = folder / f"shape-{number}"
        trace_ours(o, ours, shape)
        for model in models:
            theirs = folder / f"shape-{number}-{model}"
            trace_pytorch.trace(ours, model, "float64", theirs)
            rows = compare(o, ours, theirs, theirs)["tensors"]
            failed = [row for row in rows if row["verdict"] not in CLAIMS]
            if failed:
                sys.exit(f"compare_pytorch.py: {failed[0]['tensor']}: {failed[0]['verdict']}")
            values, gradients = largest_gap(rows, False), largest_gap(rows, True)
            worst = max(worst, values[0], gradients[0])
            sizes = " ".join(str(size) for size in shape.values())
            print(f"| {sizes} | {model} | {values[0]:.1e} ({values[1]}) | {gradients[0]:.1e} ({gradients[1]}) |")
    print(f"\nThe largest gap is {worst:.1e} of the largest value; {AGREEMENT:.0e} was the aim.\n")
    return worst <= AGREEMENT


def claims(o, folder):
    """Counts of claims, and figures of some tensors."""
    import trace_pytorch

    found = {}
    for precision in PRECISIONS:
        trace_ours(o, folder / precision, SHAPE, precision)
    for model in MODELS:
        for dtype in ("float32", "float64"):
            trace_pytorch.trace(folder / "f64", model, dtype, folder / f"{model}-{dtype}")
        for precision in PRECISIONS:
            rows = compare(o, folder / precision, folder / f"{model}-float32", folder / f"{model}-float64")["tensors"]
            found[precision, model] = {row["tensor"]: row for row in rows}
    print(f"| halfstep in | beside | {' | '.join(CLAIMS)} | argmax flips of logits |\n|---|---|---|---|---|---|---|")
    for (precision, model), rows in found.items():
        counts = [sum(row["verdict"] == claim for row in rows.values()) for claim in CLAIMS]
        flips = f"{rows['logits']['argmax_flips']} of {rows['logits']['argmax_rows']}"
        print(f"| {precision} | {model} | {' | '.join(map(str, counts))} | {flips} |")
    print("\n| tensor | largest | f32 step | f64 | fp16 | bf16 | plain float32 | Llama float32 | claims in f64, fp16, bf16 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in SHOWN:
        ours = [found[precision, "plain"][name] for precision in PRECISIONS]
        errors = [row["our_error"] for row in ours] + [found["f64", model][name]["their_error"] for model in MODELS]
        figures = " | ".join(f"{error:.2g}" for error in (ours[0]["f32_step"], *errors))
        print(f"| `{name}` | {ours[0]['largest']:.3g} | {figures} | {', '.join(row['verdict'] for row in ours)} |")


def shipped(o, folder):
    """transformers' Llama in float64 as it comes, beside float64 throughout."""
    import trace_pytorch

    trace_pytorch.trace(folder / "f64", "llama", "float64", folder / "shipped", as_shipped=True)
    result = compare(o, folder / "shipped", folder / "llama-float32", folder / "llama-float64")
    rows = {row["tensor"]: row for row in result["tensors"]}
    print("\n| tensor | Llama in float64 as it comes, from float64 throughout | in float32 |\n|---|---|---|")
    for name in ("blocks.0.attention_norm", "blocks.0.attention.query_rotary", "blocks.3.output", "logits"):
        print(f"| `{name}` | {rows[name]['our_error']:.2g} | {rows[name]['their_error']:.2g} |")


def install():
    venv.create(PYTHON.parent.parent, with_pip=True)
    if subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "torch", "numpy", "transformers"]).returncode != 0:
        sys.exit("compare_pytorch.py: pip could not install PyTorch")
    print(f"PyTorch and transformers stand in {PYTHON.parent.parent}")


def read_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--install", action="store_true", help="get PyTorch and transformers with pip, and do nothing else")
    parser.add_argument("--agreement", action="store_true", help="the first table, and its verdict as exit status")
    parser.add_argument("--trainer", type=Path, default=ROOT / "build/release/bin/trainer")
    parser.add_argument("--python", type=Path, default=PYTHON, help="a Python that has both")
    return parser.parse_args()


def main():
    o = read_options()
    if o.install:
        install()
        return 0
    there = [name for name in ("numpy", "torch", "transformers") if importlib.util.find_spec(name)]
    if len(there) < 3 and o.python.exists() and sys.prefix != str(o.python.parent.parent):
        os.execv(o.python, [str(o.python), "-B", *sys.argv])
    if "torch" not in there or "numpy" not in there:
        print("skipped: there is no PyTorch; tools/python/compare_pytorch.py --install gets it, or name a Python by --python")
        return SKIPPED
    if not o.trainer.exists():
        sys.exit(f"compare_pytorch.py: no {o.trainer}; build first, or name the program with --trainer")
    models = MODELS if "transformers" in there else MODELS[:1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if o.agreement:
            return 0 if agreement(o, folder, models) else 1
        if len(models) < 2:
            sys.exit("compare_pytorch.py: there is no transformers; --install gets it")
        import torch
        import transformers

        print(f"PyTorch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, one thread; ", end="")
        print(f"transformers {transformers.__version__}\n")
        agreed = agreement(o, folder, models)
        claims(o, folder)
        shipped(o, folder)
        return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
