#!/usr/bin/env python3
"""What PyTorch computes of the weights and tokens of a `trainer trace-forward`, by the same names.

    trace_pytorch.py --like TRACE --dtype float64 --out FILE [--model plain|llama] [--as-shipped] [--weights FILE]

TRACE says the shape, and which tensors are wanted. Weights and tokens that were made from integers are made anew here, by
the formula of docs/comparing.md; others come from --weights, what `trainer export` wrote, and from TRACE itself. Two models:
plain is a decoder in PyTorch's functions, llama the LlamaForCausalLM of the package transformers.
"""

import argparse
import json
import math
import struct
import sys

try:
    import numpy as np
    import torch
    from torch.nn import functional as F
except ImportError as error:
    sys.exit(
        f"trace_pytorch.py: there is no {error.name}; tools/python/compare_pytorch.py --install gets it into "
        "build/compare-python, whose bin/python runs this"
    )

# ---- Files ----

TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}


def read_file(path):
    """Tensors of a safetensors file by name, and its metadata."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        start = 8 + struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:start])
    except (struct.error, ValueError):
        sys.exit(f"trace_pytorch.py: '{path}' is no safetensors file, or a damaged one")
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in TYPES:
            sys.exit(f"trace_pytorch.py: '{path}': tensor {name} is of type {entry['dtype']}; export as f64 or f32")
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[start + begin : start + end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def write_file(path, tensors, metadata):
    """Writes tensors of float64 or float32 as they are."""
    header, place = {"__metadata__": metadata}, 0
    for name, tensor in tensors.items():
        kind = {"float64": "F64", "float32": "F32"}[str(tensor.dtype)]
        header[name] = {"dtype": kind, "shape": tensor.shape, "data_offsets": [place, place + tensor.nbytes]}
        place += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(np.ascontiguousarray(tensor).tobytes())


# ---- Weights and tokens from integers ----


def scatter(index, stream):
    """Numbers in [0, 2^32) that look random, by the formula of docs/comparing.md."""
    mask, factor = 0xFFFFFFFF, 2654435769
    x = (index * factor + stream * 40503 + 1) & mask
    for _ in range(3):
        x = ((x ^ (x >> 16)) * factor) & mask
    return x ^ (x >> 16)


def parameter_shapes(c):
    """Names and shapes of all parameters, in halfstep's order; `c` is the configuration."""
    width, inner = c["width"], c["feed_forward"]
    kv_width = width // c["heads"] * c["kv_heads"]
    yield "token_embedding.weight", (c["vocabulary"], width)
    for layer in range(c["layers"]):
        for name, shape in (
            ("attention_norm.gain", (width,)),
            ("attention.query.weight", (width, width)),
            ("attention.key.weight", (kv_width, width)),
            ("attention.value.weight", (kv_width, width)),
            ("attention.output.weight", (width, width)),
            ("feed_forward_norm.gain", (width,)),
            ("feed_forward.gate.weight", (inner, width)),
            ("feed_forward.up.weight", (inner, width)),
            ("feed_forward.down.weight", (width, inner)),
        ):
            yield f"blocks.{layer}.{name}", shape
    yield "final_norm.gain", (width,)


def weights_from_integers(c):
    weights = {}
    for number, (name, shape) in enumerate(parameter_shapes(c)):
        index = torch.arange(math.prod(shape), dtype=torch.int64)
        r = ((scatter(index, number + 1) >> 16) - 32768).double().view(shape)
        exponent = (shape[-1].bit_length() - 1) // 2
        weights[name] = 1 + r * 2.0**-17 if len(shape) == 1 else r * 2.0 ** (-15 - exponent)
    return weights


def tokens_from_integers(c):
    index = torch.arange(c["sequences"] * (c["length"] + 1), dtype=torch.int64)
    rows = (scatter(index, 0) % c["vocabulary"]).view(c["sequences"], c["length"] + 1)
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


# ---- A decoder in PyTorch's functions ----


def rotary_tables(c, dtype):
    """Cosines and sines [length, head width], made in float64 and rounded once."""
    width = c["width"] // c["heads"]
    frequencies = c["rotary_base"] ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(c["length"], dtype=torch.float64)[:, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x, cosine, sine):
    """The half-split convention: element i turns with element i + width / 2."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


def run_plain(c, weights, tokens, dtype, keep):
    """Logits [sequences, length, vocabulary]; `keep` is shown every value on the way."""
    cosine, sine = rotary_tables(c, dtype)
    norm = lambda x, gain: F.rms_norm(x, gain.shape, gain, c["rms_epsilon"])  # noqa: E731
    split = lambda x: x.unflatten(-1, (-1, c["width"] // c["heads"])).transpose(1, 2)  # noqa: E731
    join = lambda x: x.transpose(1, 2).flatten(2)  # noqa: E731
    x = keep("token_embedding", F.embedding(tokens, weights["token_embedding.weight"]))
    for layer in range(c["layers"]):
        at = f"blocks.{layer}."
        linear = lambda name, y: keep(at + name, F.linear(y, weights[f"{at}{name}.weight"]))  # noqa: B023, E731
        y = keep(at + "attention_norm", norm(x, weights[at + "attention_norm.gain"]))
        query, key, value = (split(linear(f"attention.{part}", y)) for part in ("query", "key", "value"))
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        keep(at + "attention.query_rotary", join(query))
        keep(at + "attention.key_rotary", join(key))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        x = x + linear("attention.output", keep(at + "attention", join(mixed)))
        y = norm(keep(at + "attention_residual", x), weights[at + "feed_forward_norm.gain"])
        keep(at + "feed_forward_norm", y)
        y = F.silu(linear("feed_forward.gate", y)) * linear("feed_forward.up", y)
        x = keep(at + "output", x + linear("feed_forward.down", keep(at + "feed_forward.activation", y)))
    x = keep("final_norm", norm(x, weights["final_norm.gain"]))
    return keep("logits", F.linear(x, weights["token_embedding.weight"]))


def trace_plain(c, weights, tokens, targets, dtype, as_shipped):
    values = {}

    def keep(name, value):
        values[name] = value
        return value

    parameters = {name: weight.to(dtype).requires_grad_() for name, weight in weights.items()}
    logits = run_plain(c, parameters, tokens, dtype, keep)
    values["loss"] = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    return values, parameters


# ---- Llama of the package transformers ----

# Both store linear weights [out, in]; in both query head h reads key head h / (heads / kv_heads); both rotate halves.
LLAMA = {
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.up": "mlp.up_proj",
    "feed_forward.down": "mlp.down_proj",
}
# What a module reads rather than what it gives.
LLAMA_READS = {
    "attention": "self_attn.o_proj",
    "attention_residual": "post_attention_layernorm",
    "feed_forward.activation": "mlp.down_proj",
}


def build_llama(c, weights, dtype):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=c["vocabulary"],
        hidden_size=c["width"],
        intermediate_size=c["feed_forward"],
        num_hidden_layers=c["layers"],
        num_attention_heads=c["heads"],
        num_key_value_heads=c["kv_heads"],
        max_position_embeddings=c["length"],
        rms_norm_eps=c["rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": c["rotary_base"]},
        tie_word_embeddings=True,
        attn_implementation="sdpa",
        use_cache=False,
    )
    model = LlamaForCausalLM(config).to(dtype)
    parameters = {name: model.get_parameter(llama_name(name)) for name in weights}
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name].view_as(parameter))
    return model, parameters


def llama_name(name):
    """halfstep's name of a parameter as Llama's."""
    if name == "token_embedding.weight":
        return "model.embed_tokens.weight"
    if name == "final_norm.gain":
        return "model.norm.weight"
    _, layer, part = name.split(".", 2)
    return f"model.layers.{layer}.{LLAMA[part.rsplit('.', 1)[0]]}.weight"


def watch_llama(model, values, turn):
    """Keeps every value under halfstep's name; what is returned is to take the place of the rotary function `turn`."""

    def gives(name):
        return lambda _, __, output: values.__setitem__(name, output[0] if isinstance(output, tuple) else output)

    def reads(name):
        return lambda _, inputs: values.__setitem__(name, inputs[0])

    base = model.model
    base.embed_tokens.register_forward_hook(gives("token_embedding"))
    base.norm.register_forward_hook(gives("final_norm"))
    model.lm_head.register_forward_hook(gives("logits"))
    for number, layer in enumerate(base.layers):
        at = f"blocks.{number}."
        layer.register_forward_hook(gives(at + "output"))
        for ours, theirs in LLAMA.items():
            layer.get_submodule(theirs).register_forward_hook(gives(at + ours))
        for ours, theirs in LLAMA_READS.items():
            layer.get_submodule(theirs).register_forward_pre_hook(reads(at + ours))
    turned = []

    def watched(*arguments, **options):
        query, key = turn(*arguments, **options)
        at = f"blocks.{len(turned)}.attention."
        values[at + "query_rotary"], values[at + "key_rotary"] = (x.transpose(1, 2).flatten(2) for x in (query, key))
        turned.append(at)
        return query, key

    return watched


def widen_llama(model, c, dtype):
    """transformers computes norms and rotary tables in float32 whatever the model's type is: no referee does."""
    for name, module in model.named_modules():
        if name.endswith("norm"):
            module.forward = lambda x, m=module: F.rms_norm(x, m.weight.shape, m.weight, m.variance_epsilon)
    tables = tuple(table[None] for table in rotary_tables(c, dtype))
    model.model.rotary_emb.forward = lambda x, position_ids: tables


def trace_llama(c, weights, tokens, targets, dtype, as_shipped):
    from transformers.models.llama import modeling_llama

    values = {}
    model, parameters = build_llama(c, weights, dtype)
    if dtype == torch.float64 and not as_shipped:
        widen_llama(model, c, dtype)
    turn = modeling_llama.apply_rotary_pos_emb
    modeling_llama.apply_rotary_pos_emb = watch_llama(model, values, turn)
    logits = model(input_ids=tokens).logits
    modeling_llama.apply_rotary_pos_emb = turn
    values["loss"] = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    return values, parameters


# ---- The command ----


def trace(like_path, model, dtype, out, as_shipped=False, weights_path=None):
    """Writes `out`: what `model` computes in `dtype` of the weights and tokens of a trace."""
    like, metadata = read_file(like_path)
    if metadata.get("schema") != "halfstep.trace/1":
        sys.exit(f"trace_pytorch.py: '{like_path}' was not written by trainer trace-forward")
    if (metadata["weights"] == "integers") == (weights_path is not None):
        sys.exit("trace_pytorch.py: give --weights where the weights are not made from integers, and only there")
    c = json.loads(metadata["configuration"])
    weights = weights_from_integers(c)
    if weights_path is not None:
        stored, _ = read_file(weights_path)
        missing = [name for name in weights if name not in stored]
        if missing:
            sys.exit(f"trace_pytorch.py: '{weights_path}' has no {missing[0]}; give the weights that '{like_path}' was made with")
        weights = {name: torch.tensor(stored[name], dtype=torch.float64) for name in weights}
    tokens, targets = (torch.tensor(like[name], dtype=torch.int64) for name in ("tokens", "targets"))
    if metadata["tokens"] == "integers":
        tokens, targets = tokens_from_integers(c)
    torch.set_num_threads(1)
    of_type = getattr(torch, dtype)
    run = {"plain": trace_plain, "llama": trace_llama}[model]
    values, parameters = run(c, weights, tokens, targets, of_type, as_shipped)
    values["probabilities"] = F.softmax(values["logits"], dim=-1)
    rows = tokens.numel()
    found = {"tokens": tokens.to(of_type), "targets": targets.to(of_type)}
    found |= {name: value.reshape(1) if name == "loss" else value.reshape(rows, -1) for name, value in values.items()}
    if any(name.startswith("gradient.") for name in like):
        values["loss"].backward()
        found |= {f"gradient.{name}": parameter.grad for name, parameter in parameters.items()}
    metadata = {"made by": f"PyTorch {torch.__version__}, {model}, {dtype}"}
    write_file(out, {name: tensor.detach().numpy() for name, tensor in found.items()}, metadata)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--like", required=True, metavar="TRACE", help="what trainer trace-forward wrote")
    parser.add_argument("--dtype", required=True, choices=("float32", "float64"))
    parser.add_argument("--out", required=True, metavar="FILE")
    parser.add_argument("--model", choices=("plain", "llama"), default="plain")
    parser.add_argument("--weights", metavar="FILE", help="where TRACE's weights are not made from integers")
    parser.add_argument(
        "--as-shipped", action="store_true", help="llama in float64 with norms and rotary tables in float32, as it comes"
    )
    o = parser.parse_args()
    try:
        trace(o.like, o.model, o.dtype, o.out, o.as_shipped, o.weights)
    except OSError as error:
        sys.exit(f"trace_pytorch.py: '{error.filename}': {error.strerror}")
    except ImportError as error:
        sys.exit(f"trace_pytorch.py: there is no {error.name}; --model plain does without it")


if __name__ == "__main__":
    main()
