#!/usr/bin/env python3
"""A second opinion on the fixture: its model written once more, in NumPy, from the text of docs/policy.md alone.

usage: model.py f64|fp16|bf16   the fixture's first loss, logits and gradients, as in fixture-*.json
       model.py probe           the overflow probe of the demonstration record, attempt by attempt

It shares no code with the library and is no part of the test suite: it made fixture-bf16-fp32.json, and gives the
numbers of docs/demonstration.md. exp, log, sine and cosine are NumPy's, which may differ from the library's in the last
place; everything else follows the policy to the bit. Sections named below are those of the policy.
"""

import json
import sys

import numpy as np

NAMES = {"f64": "f64", "fp16": "fp16-fp32", "bf16": "bf16-fp32"}
# Fraction bits, smallest normal exponent, largest number.
FORMATS = {"fp16": (10, -14, 65504.0), "bf16": (7, -126, (2 - 2.0**-7) * 2.0**127)}

VOCABULARY, WIDTH, HEADS, HIDDEN, LAYERS = 258, 4, 2, 8, 2
HEAD = WIDTH // HEADS
BASE, EPSILON = 10000.0, 1e-5
INPUTS, TARGETS = np.array([0, 99, 100]), np.array([99, 100, 1])
ROWS = len(INPUTS)


# Section 1: one rounding from f64, to nearest, ties to even.
def represent(precision, x):
    x = np.asarray(x, dtype=np.float64)
    if precision == "f64":
        return x
    fraction, least, largest = FORMATS[precision]
    finite = np.where(np.isfinite(x), x, 0.0)
    exponent = np.maximum(np.frexp(finite)[1] - 1, least)
    step = np.ldexp(1.0, exponent - fraction)
    rounded = np.rint(finite / step) * step
    rounded = np.where(np.abs(rounded) > largest, np.copysign(np.inf, rounded), rounded)
    return np.where(np.isfinite(x), rounded, x)


# Section 2: one chain for each cell, k ascending, product and sum rounded apart.
def product(precision, a, b):
    kind = np.float64 if precision == "f64" else np.float32
    a, b = represent(precision, a).astype(kind), represent(precision, b).astype(kind)
    total = np.zeros((a.shape[0], b.shape[1]), dtype=kind)
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k : k + 1, :]
    return represent(precision, total.astype(np.float64))


# Section 3: sums in 32 lanes that fold, and sums down rows in blocks of 64.
def row_sum(x):
    lanes = np.zeros(x.shape[:-1] + (32,))
    for i in range(x.shape[-1]):
        lanes[..., i % 32] += x[..., i]
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def sum_down(x):
    total = np.zeros(x.shape[1])
    for first in range(0, len(x), 64):
        block = np.zeros(x.shape[1])
        for row in x[first : first + 64]:
            block = block + row
        total = total + block
    return total


def tensor_sum(x):
    flat = x.ravel()
    return row_sum(np.array([row_sum(flat[i : i + 4096]) for i in range(0, len(flat), 4096)]))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e * (1 / row_sum(e))[..., None]


def rms(x, gain):
    r = 1 / np.sqrt(row_sum(x * x) / x.shape[-1] + EPSILON)
    n = x * r[:, None]
    return n * gain, (r, n, gain)


def rms_backward(dy, kept):
    r, n, gain = kept
    u = dy * gain
    dx = r[:, None] * (u - n * (row_sum(u * n) / n.shape[-1])[:, None])
    return dx, sum_down(dy * n)


def rotary_tables():
    i = np.arange(HEAD // 2)
    angle = np.arange(ROWS)[:, None] * np.exp(-(2 * i / HEAD) * np.log(BASE))
    return np.cos(angle), np.sin(angle)


# The turn by -angle is the adjoint of the turn by +angle.
def rotate(x, sign):
    cos, sin = rotary_tables()
    y = np.empty_like(x)
    half = HEAD // 2
    for h in range(HEADS):
        low, high = slice(h * HEAD, h * HEAD + half), slice(h * HEAD + half, (h + 1) * HEAD)
        y[:, low] = x[:, low] * cos - sign * (x[:, high] * sin)
        y[:, high] = x[:, high] * cos + sign * (x[:, low] * sin)
    return y


# Section 2, causal: cells with a later key are not formed and count as +0.
FORMED = np.tril(np.ones((ROWS, ROWS), dtype=bool))
SCALE = 1 / np.sqrt(HEAD)


def heads_of(x):
    return [x[:, h * HEAD : (h + 1) * HEAD] for h in range(HEADS)]


def attend(precision, q, k, v):
    probabilities = []
    for qh, kh in zip(heads_of(q), heads_of(k)):
        scores = product(precision, qh, kh.T) * SCALE
        p = np.zeros((ROWS, ROWS))
        for t in range(ROWS):
            p[t, : t + 1] = softmax(scores[t, : t + 1])
        probabilities.append(p)
    parts = [product(precision, p, vh) for p, vh in zip(probabilities, heads_of(v))]
    return np.hstack(parts), (q, k, v, probabilities)


def attend_backward(precision, dy, kept):
    q, k, v, probabilities = kept
    dq, dk, dv = [], [], []
    for h, p in enumerate(probabilities):
        qh, kh, vh, dyh = (heads_of(x)[h] for x in (q, k, v, dy))
        dp = np.where(FORMED, product(precision, dyh, vh.T), 0.0)
        ds = np.where(FORMED, p * (dp - row_sum(p * dp)[:, None]), 0.0) * SCALE
        dv.append(product(precision, p.T, dyh))
        dq.append(product(precision, ds, kh))
        dk.append(product(precision, ds.T, qh))
    return np.hstack(dq), np.hstack(dk), np.hstack(dv)


class Fixture:
    """Weights in the order of the tensors, drawn by SplitMix64 from seed 39; a linear weight is [out, in]."""

    def __init__(self, precision):
        self.precision = precision
        self.state = 39
        shapes = [("token_embedding.weight", VOCABULARY, WIDTH)]
        for i in range(LAYERS):
            b = f"blocks.{i}."
            shapes += [(b + "attention_norm.gain", WIDTH)]
            shapes += [(b + f"attention.{n}.weight", WIDTH, WIDTH) for n in ("query", "key", "value", "output")]
            shapes += [(b + "feed_forward_norm.gain", WIDTH), (b + "feed_forward.gate.weight", HIDDEN, WIDTH)]
            shapes += [(b + "feed_forward.up.weight", HIDDEN, WIDTH), (b + "feed_forward.down.weight", WIDTH, HIDDEN)]
        shapes += [("final_norm.gain", WIDTH)]
        self.w = {name: self.draw(shape) for name, *shape in shapes}

    def draw(self, shape):
        if len(shape) == 1:
            return np.ones(shape)
        limit = np.sqrt(6 / sum(shape))
        return np.array([(2 * self.uniform() - 1) * limit for _ in range(shape[0] * shape[1])]).reshape(shape)

    def uniform(self):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return ((z ^ z >> 31) >> 11) * 2.0**-53

    def linear(self, x, name):
        return product(self.precision, x, self.w[name].T)

    def linear_backward(self, dy, x, name, gradients):
        gradients[name] = product(self.precision, dy.T, x)
        return product(self.precision, dy, self.w[name])

    def forward(self):
        x = self.w["token_embedding.weight"][INPUTS]
        tape = []
        for i in range(LAYERS):
            b = f"blocks.{i}."
            a, norm_a = rms(x, self.w[b + "attention_norm.gain"])
            q, k, v = (self.linear(a, b + f"attention.{n}.weight") for n in ("query", "key", "value"))
            y, kept = attend(self.precision, rotate(q, 1), rotate(k, 1), v)
            x = x + self.linear(y, b + "attention.output.weight")
            f, norm_f = rms(x, self.w[b + "feed_forward_norm.gain"])
            gate, up = (self.linear(f, b + f"feed_forward.{n}.weight") for n in ("gate", "up"))
            s = 1 / (1 + np.exp(-gate))
            hidden = (gate * s) * up
            x = x + self.linear(hidden, b + "feed_forward.down.weight")
            tape.append((a, norm_a, y, kept, f, norm_f, gate, up, s, hidden))
        last, norm_last = rms(x, self.w["final_norm.gain"])
        logits = self.linear(last, "token_embedding.weight")
        m = logits.max(axis=1)
        z = row_sum(np.exp(logits - m[:, None]))
        losses = np.log(z) - (logits[np.arange(ROWS), TARGETS] - m)
        return row_sum(losses) / ROWS, logits, (tape, last, norm_last)

    # Contributions to one value add in the reverse of the forward order of its uses.
    def backward(self, logits, kept, scale):
        tape, last, norm_last = kept
        g = {}
        hit = np.arange(VOCABULARY)[None, :] == TARGETS[:, None]
        d_logits = (softmax(logits) - hit) * (scale / ROWS)
        table = "token_embedding.weight"
        d_last = self.linear_backward(d_logits, last, table, g)
        self.head_gradient = g[table].copy()
        dx, g["final_norm.gain"] = rms_backward(d_last, norm_last)
        for i in reversed(range(LAYERS)):
            b = f"blocks.{i}."
            a, norm_a, y, attention, f, norm_f, gate, up, s, hidden = tape[i]
            d_hidden = self.linear_backward(dx, hidden, b + "feed_forward.down.weight", g)
            d_gate = (d_hidden * up) * (s * (1 + gate * (1 - s)))
            d_up = d_hidden * (gate * s)
            df = self.linear_backward(d_up, f, b + "feed_forward.up.weight", g)
            df = df + self.linear_backward(d_gate, f, b + "feed_forward.gate.weight", g)
            back, g[b + "feed_forward_norm.gain"] = rms_backward(df, norm_f)
            dx = dx + back
            dy = self.linear_backward(dx, y, b + "attention.output.weight", g)
            dq, dk, dv = attend_backward(self.precision, dy, attention)
            da = self.linear_backward(dv, a, b + "attention.value.weight", g)
            da = da + self.linear_backward(rotate(dk, -1), a, b + "attention.key.weight", g)
            da = da + self.linear_backward(rotate(dq, -1), a, b + "attention.query.weight", g)
            back, g[b + "attention_norm.gain"] = rms_backward(da, norm_a)
            dx = dx + back
        for row, token in enumerate(INPUTS):
            g[table][token] = g[table][token] + dx[row]
        return {name: g[name] for name in self.w}


class AdamW:
    """Section 6, with its defaults and the learning rate of the fixture; clipping comes after unscaling."""

    def __init__(self, fixture):
        self.fixture, self.p1, self.p2 = fixture, 1.0, 1.0
        self.m = {name: np.zeros_like(w) for name, w in fixture.w.items()}
        self.v = {name: np.zeros_like(w) for name, w in fixture.w.items()}

    def commit(self, gradients, scale, lr=1e-3, b1=0.9, b2=0.999, epsilon=1e-8, decay=0.01, limit=1.0):
        gradients = {name: g / scale for name, g in gradients.items()}
        norm = np.sqrt(sum(tensor_sum(g * g) for g in gradients.values()))
        self.p1, self.p2 = self.p1 * b1, self.p2 * b2
        a, c = lr / (1 - self.p1), 1 / np.sqrt(1 - self.p2)
        for name, w in self.fixture.w.items():
            g = gradients[name] * (limit / norm) if norm > limit else gradients[name]
            self.m[name] = b1 * self.m[name] + (1 - b1) * g
            self.v[name] = b2 * self.v[name] + ((1 - b2) * g) * g
            decayed = w - (lr * (decay if w.ndim > 1 else 0.0)) * w
            self.fixture.w[name] = decayed - (a * self.m[name]) / (np.sqrt(self.v[name]) * c + epsilon)
        return norm


def describe(precision):
    fixture = Fixture(precision)
    loss, logits, kept = fixture.forward()
    gradients = fixture.backward(logits, kept, 1.0)
    bad = [name for name, g in gradients.items() if not np.isfinite(g).all()]
    tensors = {
        name: {"shape": list(g.shape), "l2": float(np.sqrt(np.sum(g * g))), "max_abs": float(np.abs(g).max())}
        for name, g in gradients.items()
    }
    return {
        "precision": NAMES[precision],
        "scale": 1.0,
        "loss": float(loss),
        "nonfinite_ops": bad,
        "tensors": len(gradients),
        "scalars": sum(g.size for g in gradients.values()),
        "logits": [float(x) for x in logits.ravel()[:8]],
        "gradients": tensors,
    }


def probe():
    fixture = Fixture("fp16")
    optimizer = AdamW(fixture)
    loss, logits, kept = fixture.forward()
    norm = optimizer.commit(fixture.backward(logits, kept, 128.0), 128.0)
    print(f"warm-up at 128: loss {loss:.17g}, gradient norm {norm:.17g}")
    scale = 2.0**24
    while True:
        loss, logits, kept = fixture.forward()
        gradients = fixture.backward(logits, kept, scale)
        bad = np.flatnonzero(~np.isfinite(fixture.head_gradient))
        largest = np.abs(softmax(logits) - (np.arange(VOCABULARY) == TARGETS[:, None])).max() * (scale / ROWS)
        print(f"scale {scale:.0f}: largest adjoint at the logits {largest:.2f}, ", end="")
        if all(np.isfinite(g).all() for g in gradients.values()):
            break
        print(f"lowest nonfinite element of the head's gradient of the table: {bad[0] if len(bad) else 'none'}")
        scale /= 2
    print(f"commits: loss {loss:.17g}, gradient norm {optimizer.commit(gradients, scale):.17g}")


def main():
    choice = sys.argv[1] if len(sys.argv) == 2 else ""
    if choice not in (*NAMES, "probe"):
        sys.exit(__doc__)
    with np.errstate(over="ignore", invalid="ignore"):
        if choice == "probe":
            probe()
        else:
            print(json.dumps(describe(choice)))


if __name__ == "__main__":
    main()
