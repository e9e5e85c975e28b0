"""The decoder of bench_step in PyTorch: same shape, weights, tokens, optimizer settings, and lines of JSON.

It waits for a line on standard input before each update that is not a warm-up. Weights and tokens come from integers by
the formula that step.c has too, so that both sides must report nearly the same losses.
"""

import argparse
import json
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

MASK = 0xFFFFFFFF
FACTOR = 2654435769


def scatter(index, stream):
    """Numbers in [0, 2**32) that look random; `index` is a tensor of int64."""
    x = (index * FACTOR + stream * 40503 + 1) & MASK
    for _ in range(3):
        x = ((x ^ (x >> 16)) * FACTOR) & MASK
    return x ^ (x >> 16)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, self.gain.shape, self.gain, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x, cosine, sine):
        def split(y):
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        def rotate(y):
            first, second = y.chunk(2, dim=-1)
            turned = torch.cat((-second, first), dim=-1)
            return y * cosine.to(y.dtype) + turned * sine.to(y.dtype)

        query, key, value = rotate(split(self.query(x))), rotate(split(self.key(x))), split(self.value(x))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention_norm = RMSNorm(width)
        self.attention = Attention(width, heads)
        self.feed_forward_norm = RMSNorm(width)
        self.feed_forward = FeedForward(width, inner)

    def forward(self, x, cosine, sine):
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Module):
    """Parameters stand in the order in which halfstep has them: the formula counts them."""

    def __init__(self, o):
        super().__init__()
        self.token_embedding = nn.Embedding(o.vocabulary, o.width)
        self.blocks = nn.ModuleList(Block(o.width, o.heads, o.feed_forward) for _ in range(o.layers))
        self.final_norm = RMSNorm(o.width)
        head_width = o.width // o.heads
        frequencies = 10000.0 ** -(torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
        angles = torch.arange(o.context, dtype=torch.float64)[:, None] * frequencies[None, :]
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cosine", angles.cos().float())
        self.register_buffer("sine", angles.sin().float())
        self.write_weights(o.layers)

    @torch.no_grad()
    def write_weights(self, layers):
        for number, (name, parameter) in enumerate(self.named_parameters()):
            if parameter.dim() == 1:
                continue
            residual = name.endswith(("attention.output.weight", "feed_forward.down.weight"))
            spread = 0.02 * 12**0.5 / ((2 * layers) ** 0.5 if residual else 1)
            index = torch.arange(parameter.numel(), dtype=torch.int64)
            values = (scatter(index, number + 1).double() / 2**32 - 0.5) * spread
            parameter.copy_(values.view_as(parameter))

    def forward(self, tokens, targets):
        x = self.token_embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        logits = F.linear(self.final_norm(x), self.token_embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_optimizer(model):
    """halfstep's defaults; matrices decay, gains do not. The fused form is PyTorch's fastest on processors."""
    matrices = [p for p in model.parameters() if p.dim() > 1]
    gains = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": gains, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, fused=True)


def make_batch(o, update):
    """On the host, as halfstep's: an update brings it to the device."""
    count = o.batch_size * (o.context + 1)
    index = torch.arange(count, dtype=torch.int64) + update * count
    rows = (scatter(index, 0) % o.vocabulary).view(o.batch_size, o.context + 1)
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def run_update(o, model, optimizer, number):
    tokens, targets = make_batch(o, number)
    start, cpu_start = time.perf_counter(), time.process_time()
    tokens, targets = tokens.to(o.device), targets.to(o.device)
    with torch.autocast(o.device, torch.bfloat16, enabled=o.precision == "bf16"):
        loss = model(tokens, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    value = loss.item()
    if o.device == "cuda":
        torch.cuda.synchronize()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    line = {
        "side": "pytorch",
        "warm_up": number < o.warm_up,
        "update": number,
        "precision": "f32" if o.precision == "f32" else "bf16 autocast",
        "threads": torch.get_num_threads(),
        "version": torch.__version__,
        "capability": torch.cuda.get_device_name() if o.device == "cuda" else torch.backends.cpu.get_cpu_capability(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens": tokens.numel(),
        "outcome": "applied",
        "loss": value,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "tokens_per_second": tokens.numel() / seconds,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    for name in ("vocabulary", "width", "layers", "heads", "feed-forward", "batch-size", "context"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda is a GPU, with ROCm too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=2)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    model = Decoder(o).to(o.device)
    optimizer = make_optimizer(model)
    for number in range(o.warm_up):
        run_update(o, model, optimizer, number)
    for number, _ in enumerate(sys.stdin):
        run_update(o, model, optimizer, o.warm_up + number)


if __name__ == "__main__":
    main()
