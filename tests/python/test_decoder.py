"""The decoder once more, in NumPy: every value and every gradient that `trainer trace-forward` stores.

Forward and backward are written from their equations, weights and tokens from the formula of docs/comparing.md; nothing of
halfstep takes part but the program that is tried.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
TRAINER = os.environ["HALFSTEP_TRAINER"]
sys.path.insert(0, str(SOURCE / "tests" / "interchange"))

import tensors  # noqa: E402

try:
    import numpy as np
except ImportError:
    print(f"skipped: {sys.executable} has no numpy; install python3-numpy")
    sys.exit(77)

# ---- Weights and tokens from integers ----


def scatter(index, stream):
    x = (index.astype(np.uint64) * 2654435769 + stream * 40503 + 1) % 2**32
    for _ in range(3):
        x = ((x ^ x >> np.uint64(16)) * np.uint64(2654435769)) % 2**32
    return x ^ x >> np.uint64(16)


def make_weights(c):
    d, f = c["width"], c["feed_forward"]
    kv = d // c["heads"] * c["kv_heads"]
    block = [("attention_norm.gain", d), ("attention.query.weight", d, d), ("attention.key.weight", kv, d),
             ("attention.value.weight", kv, d), ("attention.output.weight", d, d), ("feed_forward_norm.gain", d),
             ("feed_forward.gate.weight", f, d), ("feed_forward.up.weight", f, d), ("feed_forward.down.weight", d, f)]
    listed = [("token_embedding.weight", c["vocabulary"], d)]
    for layer in range(c["layers"]):
        listed += [(f"blocks.{layer}.{name}", *shape) for name, *shape in block]
    listed.append(("final_norm.gain", d))
    weights = {}
    for number, (name, *shape) in enumerate(listed):
        r = (scatter(np.arange(np.prod(shape)), number + 1) // 2**16).astype(np.float64) - 32768
        e = next(e for e in range(64) if 4 ** (e + 1) > shape[-1])
        weights[name] = (1 + r / 2**17 if len(shape) == 1 else r / 2 ** (15 + e)).reshape(shape)
    return weights


def make_tokens(c):
    rows = scatter(np.arange(c["sequences"] * (c["length"] + 1)), 0) % np.uint64(c["vocabulary"])
    rows = rows.astype(np.int64).reshape(c["sequences"], -1)
    return rows[:, :-1], rows[:, 1:]


# ---- Operations; each gives its value and the function from the value's adjoint to those of what it read ----


def linear(x, w):
    return x @ w.T, lambda dy: (dy @ w, dy.T @ x)


def rmsnorm(x, gain, epsilon):
    r = (np.mean(x**2, axis=-1, keepdims=True) + epsilon) ** -0.5
    n = x * r

    def back(dy):
        u = dy * gain
        return r * (u - n * np.mean(u * n, axis=-1, keepdims=True)), np.sum(dy * n, axis=0)

    return n * gain, back


def rotary(x, c):
    """Pairs (i, i + half), as complex numbers that turn."""
    width = c["width"] // c["heads"]
    half = width // 2
    position = np.arange(c["length"])[:, None]
    turn = np.exp(1j * position * float(c["rotary_base"]) ** (-2 * np.arange(half) / width))

    def turned(x, turn):
        parts = x.reshape(c["sequences"], c["length"], -1, width)
        z = (parts[..., :half] + 1j * parts[..., half:]) * turn[None, :, None, :]
        return np.concatenate((z.real, z.imag), axis=-1).reshape(x.shape)

    return turned(x, turn), lambda dy: turned(dy, turn.conj())


def attention(q, k, v, c):
    """Head h of the queries reads key head h // (heads // kv_heads)."""
    width, group = c["width"] // c["heads"], c["heads"] // c["kv_heads"]
    shape = c["sequences"], c["length"], -1, width
    q, k, v = (np.moveaxis(x.reshape(shape), 2, 1) for x in (q, k, v))
    rows = lambda x: np.moveaxis(x, 1, 2).reshape(c["sequences"] * c["length"], -1)  # noqa: E731
    mine = np.arange(c["heads"]) // group
    future = np.triu(np.ones((c["length"], c["length"]), dtype=bool), 1)
    scores = np.where(future, -np.inf, q @ np.swapaxes(k[:, mine], 2, 3) / width**0.5)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)

    def shared(x):
        return x.reshape(c["sequences"], c["kv_heads"], group, c["length"], width).sum(axis=2)

    def back(dy):
        dy = np.moveaxis(dy.reshape(shape), 2, 1)
        dp = dy @ np.swapaxes(v[:, mine], 2, 3)
        ds = p * (dp - np.sum(p * dp, axis=-1, keepdims=True)) / width**0.5
        dk, dv = shared(np.swapaxes(ds, 2, 3) @ q), shared(np.swapaxes(p, 2, 3) @ dy)
        return rows(ds @ k[:, mine]), rows(dk), rows(dv)

    return rows(p @ v[:, mine]), back


def swiglu(g, u):
    s = 1 / (1 + np.exp(-g))
    return g * s * u, lambda dy: (dy * u * s * (1 + g * (1 - s)), dy * g * s)


# ---- The decoder ----


def block(x, at, w, c, seen, gradients):
    """One block; keeps what it computes in `seen` and returns its value and its way back."""

    def see(name, value):
        seen[at + name] = value
        return value

    def product(name, x):
        y, back = linear(x, w[f"{at}{name}.weight"])

        def through(dy):
            dx, gradients[f"{at}{name}.weight"] = back(dy)
            return dx

        return see(name, y), through

    def norm(name, x):
        y, back = rmsnorm(x, w[f"{at}{name}.gain"], c["rms_epsilon"])

        def through(dy):
            dx, gradients[f"{at}{name}.gain"] = back(dy)
            return dx

        return see(name, y), through

    h, norm_back = norm("attention_norm", x)
    q, q_back = product("attention.query", h)
    k, k_back = product("attention.key", h)
    v, v_back = product("attention.value", h)
    q, q_turn = rotary(q, c)
    k, k_turn = rotary(k, c)
    mixed, mixed_back = attention(see("attention.query_rotary", q), see("attention.key_rotary", k), v, c)
    y, output_back = product("attention.output", see("attention", mixed))
    middle = see("attention_residual", x + y)
    h, inner_norm_back = norm("feed_forward_norm", middle)
    g, gate_back = product("feed_forward.gate", h)
    u, up_back = product("feed_forward.up", h)
    a, activation_back = swiglu(g, u)
    y, down_back = product("feed_forward.down", see("feed_forward.activation", a))

    def back(dy):
        dg, du = activation_back(down_back(dy))
        dy = dy + inner_norm_back(gate_back(dg) + up_back(du))
        dq, dk, dv = mixed_back(output_back(dy))
        return dy + norm_back(q_back(q_turn(dq)) + k_back(k_turn(dk)) + v_back(dv))

    return see("output", middle + y), back


def run(c, w, tokens, targets):
    """All values by name, and all gradients as gradient.NAME."""
    seen, gradients, blocks = {"tokens": tokens, "targets": targets}, {}, []
    table, rows, targets = w["token_embedding.weight"], tokens.ravel(), targets.ravel()
    x = seen["token_embedding"] = table[rows]
    for layer in range(c["layers"]):
        x, back = block(x, f"blocks.{layer}.", w, c, seen, gradients)
        blocks.append(back)
    x, norm_back = rmsnorm(x, w["final_norm.gain"], c["rms_epsilon"])
    seen["final_norm"] = x
    logits, head_back = linear(x, table)
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    seen |= {"logits": logits, "probabilities": p}
    counted = np.flatnonzero(targets >= 0)
    seen["loss"] = np.array([-np.mean(np.log(p[counted, targets[counted]]))])
    dy = np.zeros_like(p)
    dy[counted] = p[counted] / len(counted)
    dy[counted, targets[counted]] -= 1 / len(counted)
    dx, dtable = head_back(dy)
    dx, gradients["final_norm.gain"] = norm_back(dx)
    for back in reversed(blocks):
        dx = back(dx)
    np.add.at(dtable, rows, dx)
    gradients["token_embedding.weight"] = dtable
    return seen | {f"gradient.{name}": value for name, value in gradients.items()}


# ---- Beside the program ----


def call(*arguments):
    run = subprocess.run([TRAINER, "trace-forward", "--quiet", "--gradients", "--threads", "2", *map(str, arguments)],
                         capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr


def options_of(c):
    words = {"sequences": "batch-size", "length": "context"}
    return [word for name, value in c.items() for word in (f"--{words.get(name, name).replace('_', '-')}", value)]


def largest_gaps(path, expected):
    """Largest distance by tensor, as a share of the largest value of the tensor."""
    stored, metadata = tensors.read(path)
    assert stored.keys() == expected.keys(), stored.keys() ^ expected.keys()
    gaps = {}
    for name, (kind, shape, data) in stored.items():
        values = np.frombuffer(data, "<f8").reshape(shape)
        assert kind == "F64" and values.shape == expected[name].shape, (name, shape, expected[name].shape)
        gap, scale = np.max(np.abs(values - expected[name])), np.max(np.abs(expected[name]))
        assert np.isfinite(gap), name
        gaps[name] = gap / scale if scale > 0 else gap
    return gaps, metadata


def model(vocabulary, layers, width, heads, kv_heads, feed_forward, sequences, length):
    return dict(vocabulary=vocabulary, layers=layers, width=width, heads=heads, kv_heads=kv_heads,
                feed_forward=feed_forward, sequences=sequences, length=length)


FIXED = {"rotary_base": 10000, "rms_epsilon": 1e-5}
SHAPES = [model(258, 2, 64, 8, 2, 172, 2, 32), model(97, 3, 48, 6, 3, 65, 3, 21), model(31, 1, 32, 2, 2, 50, 1, 70),
          model(300, 1, 96, 4, 1, 33, 4, 9), model(11, 2, 20, 1, 1, 7, 5, 1)]


class Decoder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "trace.safetensors"

    def expect(self, expected, within=1e-12):
        gaps, metadata = largest_gaps(self.path, expected)
        worst = max(gaps, key=gaps.get)
        self.assertLessEqual(gaps[worst], within, worst)
        return metadata

    def test_values_and_gradients_of_several_shapes(self):
        for c in SHAPES:
            for backend in ("cpu", "cpu-reference"):
                with self.subTest(shape=c, backend=backend):
                    call("--out", self.path, "--overwrite", "--backend", backend, *options_of(c))
                    metadata = self.expect(run(c | FIXED, make_weights(c), *make_tokens(c)))
                    self.assertEqual(json.loads(metadata["configuration"]), c | FIXED)
                    self.assertEqual(metadata["schema"], "halfstep.trace/1")
                    self.assertEqual(metadata["precision"], "f64")

    def test_gradients_do_not_know_the_loss_scale(self):
        c = SHAPES[1]
        call("--out", self.path, "--loss-scale", 2**40, *options_of(c))
        self.expect(run(c | FIXED, make_weights(c), *make_tokens(c)))

    def test_half_precisions_are_near_and_no_nearer(self):
        c = SHAPES[0]
        expected = run(c | FIXED, make_weights(c), *make_tokens(c))
        for precision, step in (("fp16", 2.0**-11), ("bf16", 2.0**-8)):
            with self.subTest(precision=precision):
                call("--out", self.path, "--overwrite", "--precision", precision, *options_of(c))
                gaps, metadata = largest_gaps(self.path, expected)
                self.assertEqual(metadata["precision"], f"{precision}-fp32")
                self.assertLess(gaps["logits"], 30 * step)
                self.assertGreater(gaps["logits"], step / 30)
                self.assertLess(gaps["gradient.token_embedding.weight"], 60 * step)

    def test_weights_and_tokens_of_a_run(self):
        """Targets that are left out, and the number of heads from the checkpoint."""
        text = Path(self.path.parent) / "text"
        text.write_bytes(bytes(range(65, 65 + 50)))
        out = self.path.parent / "run"
        subprocess.run([TRAINER, "train", "--quiet", "--steps", "2", "--layers", "1", "--width", "32", "--heads", "4",
                        "--kv-heads", "2", "--feed-forward", "20", "--context", "8", "--batch-size", "2", "--data", text,
                        "--out", out, "--sample-tokens", "0"], check=True, capture_output=True, timeout=120)
        call("--out", self.path, "--weights", out, "--data", text, "--context", "32")
        checkpoint, _ = tensors.read(next(out.glob("checkpoint-*.safetensors")))
        c = model(258, 1, 32, 4, 2, 20, 2, 32) | FIXED
        weights = {name: np.frombuffer(checkpoint[name][2], "<f8").reshape(checkpoint[name][1])
                   for name in make_weights(c)}
        tokens = np.zeros((2, 32), dtype=np.int64)
        targets = np.full((2, 32), -1)
        row = np.arange(65, 65 + 50) + 2
        tokens[0], tokens[1, :17], targets[0], targets[1, :17] = row[:32], row[32:49], row[1:33], row[33:]
        stored, _ = tensors.read(self.path)
        tokens[1, 17:] = np.frombuffer(stored["tokens"][2], "<f8").reshape(2, 32)[1, 17:]  # without targets: anything
        self.expect(run(c, weights, tokens, targets))


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv[:1])
