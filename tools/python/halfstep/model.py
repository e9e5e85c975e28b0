"""Models: parameters on a backend, and what they compute without learning."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Iterable, Iterator, Mapping, Sequence, Union

import numpy as np
import numpy.typing as npt

from halfstep._handles import Handle, Owner, view
from halfstep._library import (
    c_name,
    c_path,
    call,
    choice,
    ffi,
    lib,
    precision_name,
    precision_number,
    products,
    set_fields,
)
from halfstep.context import Context
from halfstep.errors import ArgumentError, DtypeError, ShapeError, TokenError, UnsupportedError
from halfstep.graph import ROWS, Extent, Graph, Input, resolve
from halfstep.number import to_f64

_SCHEMES = {"normal": 0, "xavier": 1}


@dataclass(frozen=True, eq=False)
class Batch:
    """One micro-batch: an array for each input, by name; a decoder's are "tokens" and "targets".

    An input declared with ROWS may be given as [sequences, length, ...]. `sequences` and `length` need to be said only
    where the arrays leave them open. `weight` is what the loss is divided by; 0 stands for the number of targets of a
    cross-entropy, and for 1 with other losses.
    """

    inputs: Mapping[str, npt.ArrayLike]
    sequences: int | None = None
    length: int | None = None
    weight: float = 0.0


#: Where a batch is wanted, its inputs alone will do.
BatchLike = Union[Batch, Mapping[str, npt.ArrayLike]]
#: A window is a sequence of batches, or one.
WindowLike = Union[BatchLike, Sequence[BatchLike]]


def _to_i32(x: npt.ArrayLike, name: str) -> npt.NDArray[np.int32]:
    array = np.asarray(x)
    if array.dtype.kind not in "ui":
        raise DtypeError(f"{name!r} is an array of {array.dtype}; it must hold integers")
    if array.dtype.itemsize >= 4 and array.dtype != np.int32 and array.size:
        worst = max(int(array.max()), -int(array.min()) - 1)
        if worst > 0x7FFFFFFF:
            found = worst if worst == int(array.max()) else -worst - 1
            raise TokenError(f"{name!r} holds {found}, beyond 32 bits", name)
    return np.require(array.astype(np.int32, copy=False), requirements=["C", "A"])


def _as_list(window: Sequence[BatchLike]) -> list[BatchLike]:
    if not isinstance(window, Iterable):
        raise DtypeError(f"a window is a batch or a sequence of batches, not {type(window).__name__}")
    batches = list(window)
    for i, batch in enumerate(batches):
        if not isinstance(batch, (Batch, Mapping)):
            raise DtypeError(
                f"batch {i} of a window is {type(batch).__name__}; give a Batch, or arrays by the names of inputs, "
                'such as {"tokens": ..., "targets": ...}'
            )
    return batches


class Window:
    """Batches as C sees them. Lives as long as the call."""

    def __init__(self, model: Model, window: WindowLike, count: int | None = None) -> None:
        batches = [window] if isinstance(window, (Batch, Mapping)) else _as_list(window)
        self.count = len(batches)
        if count is not None and self.count != count:
            raise ArgumentError(f"{self.count} batches were given where {count} is wanted")
        self.batches = ffi.new("hstep_batch[]", self.count)
        self._kept: list[Any] = []
        for i, batch in enumerate(batches):
            self._fill(self.batches[i], model, batch if isinstance(batch, Batch) else Batch(batch))

    def _fill(self, place: Any, model: Model, batch: Batch) -> None:
        extent = Extent(batch.sequences, batch.length)
        feeds = ffi.new("hstep_feed[]", len(batch.inputs))
        for feed, (name, data) in zip(feeds, batch.inputs.items()):
            declared = model.inputs.get(name)
            if declared is None:
                raise ArgumentError(f"the model has no input {name!r}; it has {', '.join(map(repr, model.inputs))}")
            array: npt.NDArray[Any] = (
                _to_i32(data, name)
                if declared.dtype == "i32"
                else np.require(to_f64(data, name, rounded_again=False), requirements=["C", "A"])
            )
            extent.learn(declared, array.shape)
            input_name = ffi.new("char[]", c_name(name))
            self._kept += [array, input_name]
            feed.input = input_name
            feed.data = ffi.cast("void *", array.ctypes.data)
        place.sequences, place.length = extent.solve(model._sequence_alone, model._needs_length)
        place.feeds, place.feed_count, place.weight = feeds, len(feeds), batch.weight
        self._kept.append(feeds)


class Parameters(Mapping[str, npt.NDArray[np.float64]]):
    """The masters of a model by name, as arrays that look into the model's memory and cannot be written to.

    They always show the present values, keep the memory alive, and exist on CPU backends; UnsupportedError elsewhere.
    `Model.edit` gives one that can be written to.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        return self._model._view(name, writeable=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._model.shapes)

    def __len__(self) -> int:
        return len(self._model.shapes)


class Model(Owner):
    """A graph with its parameters, which are zero until `initialize` draws them or `write` sets them.

    It takes the graph over. Without a context it makes one of its own.
    """

    _sequence_alone = False

    def __init__(self, graph: Graph, context: Context | None = None) -> None:
        self.context = context if context is not None else Context()
        self.inputs = dict(graph.inputs)
        self.precision = graph.precision
        self._needs_length = graph.needs_length
        self._output_shape = graph.output_shape
        place = ffi.new("hstep_model **")
        with self.context._handle.domain:
            call(lib.hstep_model_create, self.context._handle.pointer, graph._handle.pointer, place)
            graph._handle.give_away()
            self._own(place[0])

    def _own(self, pointer: Any) -> None:
        self._handle = Handle("model", pointer, lib.hstep_model_destroy, self.context._handle)
        self._places: dict[str, int] = {}
        #: The shape of every parameter, in their order.
        self.shapes: dict[str, tuple[int, ...]] = {}
        for i in range(lib.hstep_model_parameter_count(pointer)):
            it = self._describe(i)
            name = ffi.string(it.name).decode()
            self._places[name] = i
            self.shapes[name] = tuple(it.dims[d] for d in range(it.rank))

    def _describe(self, index: int) -> Any:
        parameter = ffi.new("hstep_parameter *")
        self._call(lib.hstep_model_parameter, index, parameter)
        return parameter

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._handle.domain:
            call(function, self._handle.pointer, *arguments)

    def _place(self, name: str) -> int:
        if name not in self._places:
            raise KeyError(f"the model has no parameter {name!r}")
        return self._places[name]

    @property
    def products(self) -> dict[str, str]:
        """The precision of every product, by its name, in their order."""
        with self._handle.domain:
            return products(lib.hstep_model_products, self._handle.pointer)

    # ---- Parameters ----

    @property
    def parameters(self) -> Parameters:
        """The masters by name, without copies."""
        return Parameters(self)

    @property
    def scalars(self) -> int:
        """How many numbers it learns."""
        return int(lib.hstep_model_scalar_count(self._handle.pointer))

    def _view(self, name: str, writeable: bool) -> npt.NDArray[np.float64]:
        index = self._place(name)
        place = ffi.new("double **")
        with self._handle.domain:
            call(lib.hstep_model_parameter_data, self._handle.pointer, index, place)
            return view(self._handle, int(ffi.cast("uintptr_t", place[0])), self.shapes[name], writeable)

    def read(self, name: str) -> npt.NDArray[np.float64]:
        """A copy of one parameter, on any backend."""
        values = np.empty(self.shapes[name] if name in self.shapes else (), dtype=np.float64)
        self._call(lib.hstep_model_read_parameter, self._place(name), ffi.cast("double *", values.ctypes.data))
        return values

    def write(self, name: str, values: npt.ArrayLike) -> None:
        """Sets one parameter; its revision rises."""
        index = self._place(name)
        array = np.require(to_f64(values, name, rounded_again=False), requirements=["C", "A"])
        if array.shape != self.shapes[name]:
            raise ShapeError(f"{name} has shape {self.shapes[name]}, not {array.shape}", name)
        self._call(lib.hstep_model_write_parameter, index, ffi.cast("double *", array.ctypes.data))

    @contextmanager
    def edit(self, name: str) -> Iterator[npt.NDArray[np.float64]]:
        """One parameter as an array to change in place. Its revision rises at the end of the block.

        With a backend whose memory the program does not see it is a copy, which the end of the block writes back. What
        is written through the array later has no effect that anybody promises.
        """
        try:
            array = self._view(name, writeable=True)
        except UnsupportedError:
            copy = self.read(name)
            yield copy
            self.write(name, copy)
            return
        try:
            yield array
        finally:
            array.flags.writeable = False
            self._call(lib.hstep_model_mark_parameter, self._place(name))

    def revision(self, name: str) -> int:
        """Rises with every change of the parameter."""
        return int(self._describe(self._place(name)).revision)

    def initialize(self, scheme: str = "normal", seed: int = 0) -> None:
        """Draws every parameter: "normal" (0.02) or "xavier". Gains of norms become 1, other vectors 0."""
        self._call(lib.hstep_model_initialize, choice("scheme", scheme, _SCHEMES), seed)

    def checksum(self) -> int:
        """XXH3 (64 bits) of all parameters' f64 values."""
        place = ffi.new("uint64_t *")
        self._call(lib.hstep_model_checksum, place)
        return int(place[0])

    def load_weights(self, path: str | os.PathLike[str]) -> None:
        """Loads a checkpoint's weights, or those of any safetensors file with exactly these parameters."""
        self._call(lib.hstep_checkpoint_load_weights, c_path(path))

    # ---- Computing ----

    def loss(self, window: WindowLike) -> float:
        """The mean loss over the targets of one batch or several, without learning."""
        bound = Window(self, window)
        total, weights = 0.0, 0.0
        place = ffi.new("double[2]")
        for i in range(bound.count):
            self._call(lib.hstep_model_loss, bound.batches + i, place, place + 1)
            total, weights = total + place[0], weights + place[1]
        return total / weights if weights else float("nan")

    def output(self, batch: BatchLike) -> npt.NDArray[np.float64]:
        """The graph's output for a batch; a decoder's logits, [sequences, length, vocabulary]."""
        bound = Window(self, batch, 1)
        shape = self._shape_of_output(bound.batches[0].sequences, bound.batches[0].length)
        values = np.empty(shape, dtype=np.float64)
        self._call(lib.hstep_model_output, bound.batches, ffi.cast("double *", values.ctypes.data))
        return values

    def _shape_of_output(self, sequences: int, length: int) -> tuple[int, ...]:
        if self._output_shape is None:
            raise ArgumentError("the graph set no output; call Graph.set_output before Graph.set_loss")
        return resolve(self._output_shape, sequences, length)


@dataclass(frozen=True)
class DecoderConfig:
    """The shape of a decoder, and the precision of its products.

    `precision_for` makes exceptions by place: {"head": "f64", "blocks.0.*": "fp16"}. Its keys are names of operations,
    those of `Model.products`, in which `*` stands for any characters. The last one that fits a product counts, and one
    that fits none is an ArgumentError.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    feed_forward: int
    kv_heads: int | None = None  #: divides heads; as many where it is not said
    rotary_base: float = 10000.0
    rms_epsilon: float = 1e-5
    precision: str = "bf16"
    precision_for: Mapping[str, str] = field(default_factory=dict, hash=False)


def _rule(pattern: str, precision: str) -> tuple[bytes, int]:
    encoded = c_name(pattern)
    if len(encoded) >= ffi.sizeof(dict(ffi.typeof("hstep_precision_rule").fields)["pattern"].type):
        raise ArgumentError(f"precision_for: {pattern!r} is longer than any operation's name")
    return encoded, precision_number(precision)


class Decoder(Model):
    """A pre-norm decoder: RMSNorm, rotary grouped-query attention, SwiGLU, tied head, as in Hugging Face's Llama."""

    _sequence_alone = True

    def __init__(self, config: DecoderConfig, context: Context | None = None) -> None:
        self.config = config
        self.context = context if context is not None else Context()
        number = precision_number(config.precision)
        self.precision = precision_name(number)
        self.inputs = {name: Input(name, "i32", (ROWS,)) for name in ("tokens", "targets")}
        self._needs_length = True
        self._output_shape = None
        c_config = ffi.new("hstep_decoder_config *")
        for name in ("vocabulary", "width", "layers", "heads", "feed_forward", "rotary_base", "rms_epsilon"):
            set_fields(c_config, **{name: getattr(config, name)})
        set_fields(c_config, kv_heads=config.kv_heads or 0)
        c_config.precision = number
        if not isinstance(config.precision_for, Mapping):
            raise ArgumentError(f"precision_for: {config.precision_for!r} is no dictionary such as {{'head': 'f64'}}")
        rules = ffi.new("hstep_precision_rule[]", [_rule(*it) for it in config.precision_for.items()])
        c_config.rules, c_config.rule_count = rules, len(rules)
        place = ffi.new("hstep_model **")
        with self.context._handle.domain:
            call(lib.hstep_model_create_decoder, self.context._handle.pointer, c_config, place)
            self._own(place[0])

    def _shape_of_output(self, sequences: int, length: int) -> tuple[int, ...]:
        return (sequences, length, self.config.vocabulary)

    def generate(
        self,
        prompt: npt.ArrayLike,
        count: int,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        seed: int = 0,
        capacity: int = 0,
    ) -> npt.NDArray[np.int32]:
        """The prompt, [known] or [sequences, known], with `count` tokens behind it; greedy at temperature 0.

        `capacity` is the context, and 0 all of the tokens; a full one begins anew with its last half.
        """
        start = _to_i32(prompt, "prompt")
        rows = start[np.newaxis] if start.ndim == 1 else start
        if rows.ndim != 2 or rows.size == 0:
            raise ShapeError(f"the prompt has shape {start.shape}; give [known] or [sequences, known], not empty")
        if count < 0:
            raise ArgumentError(f"count is {count}; give the number of tokens to write, 0 or more")
        sequences, known = rows.shape
        tokens: npt.NDArray[np.int32] = np.zeros((sequences, known + count), dtype=np.int32)
        tokens[:, :known] = rows
        sampling = ffi.new("hstep_sampling *", [temperature, top_k, top_p, repetition_penalty])
        place = ffi.new("hstep_decoding **")
        with self._handle.domain:
            call(lib.hstep_decoding_create, self._handle.pointer, sequences, capacity or known + count, place)
            decoding = Handle("decoding", place[0], lib.hstep_decoding_destroy, self._handle)
        try:
            for at in range(known, known + count):
                with decoding.domain:
                    call(
                        lib.hstep_decoding_extend,
                        decoding.pointer,
                        sampling,
                        seed,
                        ffi.cast("int32_t *", tokens.ctypes.data),
                        known + count,
                        at,
                    )
        finally:
            decoding.end()
        return tokens.reshape(-1) if start.ndim == 1 else tokens
