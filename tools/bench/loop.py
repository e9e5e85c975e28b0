"""What a loop of updates in Python costs over one in C: python3 tools/bench/loop.py [--steps N] [--sizes NAME...]

Both loops run in this process and on the same trainer, for two would have their tensors at other places in the caches: a few
steps each in turn. The figure is the median of the turns' ratios of processor time. The C loop is compiled by cc.
HALFSTEP_LIBRARY and PYTHONPATH say which package is measured (docs/python.md).
"""

import argparse
import ctypes
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import halfstep
from halfstep._library import ffi, lib

SOURCE = r"""
typedef int step(void *trainer, const void *window, size_t count, void *update, void *error);

int loop(step *update, void *trainer, const void *window, void *place, void *error, long steps) {
    int status = 0;
    for (long i = 0; i < steps && status == 0; i++)
        status = update(trainer, window, 1, place, error);
    return status;
}
"""

#: width, layers, heads, feed-forward, sequences, length: the trainer's run without --data, its run on a text, and a toy.
SIZES = {"sums": (64, 2, 4, 192, 32, 32), "text": (128, 4, 4, 384, 12, 64), "fixture": (4, 2, 2, 8, 1, 3)}
TURNS = 125


def compile_loop():
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "loop.c"), Path(folder, "loop.so")
        source.write_text("#include <stddef.h>\n" + SOURCE)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library)).loop


def make(size, context):
    width, layers, heads, feed_forward, sequences, length = size
    model = halfstep.Decoder(halfstep.DecoderConfig(258, width, layers, heads, feed_forward), context)
    model.initialize("normal", 1)
    tokens = np.random.default_rng(1).integers(0, 258, (sequences, length + 1))
    batch = {"tokens": tokens[:, :-1].astype(np.int32), "targets": tokens[:, 1:].astype(np.int32)}
    return halfstep.Trainer(model), batch


def address(pointer):
    return ctypes.c_void_p(int(ffi.cast("uintptr_t", pointer)))


def in_c(loop, trainer, batch, steps):
    from halfstep.model import Window

    bound, place, error = Window(trainer.model, batch), ffi.new("hstep_update *"), ffi.new("hstep_error *")
    pointers = [address(it) for it in (trainer._handle.pointer, bound.batches, place, error)]
    start = time.process_time()
    status = loop(address(ffi.addressof(lib, "hstep_trainer_update")), *pointers, ctypes.c_long(steps))
    assert status == 0, ffi.string(error.message)
    return time.process_time() - start


def in_python(trainer, batch, steps):
    start = time.process_time()
    for _ in range(steps):
        trainer.step(batch)
    return time.process_time() - start


def measure(name, steps):
    loop, context = compile_loop(), halfstep.Context("cpu", threads=1)
    (trainer, batch), (twin, _) = make(SIZES[name], context), make(SIZES[name], context)
    in_python(trainer, batch, 3), in_c(loop, twin, batch, 3)
    assert trainer.model.checksum() == twin.model.checksum(), "the two loops do not do the same"
    twin.close()
    ratios, in_turn = [], max(1, steps // TURNS)
    total = 0.0
    for turn in range(TURNS):
        ahead = in_python(trainer, batch, in_turn) if turn % 2 else None
        c = in_c(loop, trainer, batch, in_turn)
        ratios.append((in_python(trainer, batch, in_turn) if ahead is None else ahead) / c)
        total += c
    low, median, high = statistics.quantiles(ratios, n=4)
    print(f"{name}: {TURNS * in_turn} steps of {1e3 * total / TURNS / in_turn:.3f} ms in C, in Python {median - 1:+.2%} "
          f"(quartiles {low - 1:+.2%} and {high - 1:+.2%})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    arguments = parser.parse_args()
    for name in arguments.sizes:
        measure(name, arguments.steps)


if __name__ == "__main__":
    main()
