"""Models of one's own: a graph of operations on named tensors, ended by a loss."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Iterator, Sequence

from halfstep._handles import Handle, Owner
from halfstep._library import c_name, call, choice, ffi, lib, precision_name, precision_number, products
from halfstep.errors import ArgumentError, ShapeError

#: Symbolic dimensions of inputs: sequences * length, sequences, and length of the batch.
ROWS, SEQUENCES, LENGTH = -1, -2, -3

_DTYPES = {"f64": 0, "i32": 1}


@dataclass(frozen=True)
class Input:
    """Data that each batch brings."""

    name: str
    dtype: str  #: "f64" or "i32"
    shape: tuple[int, ...]  #: may hold ROWS, SEQUENCES and LENGTH


class Value:
    """A tensor of a graph. `+`, `-` and `*` declare operations with names of their own making."""

    __slots__ = ("graph", "number")

    def __init__(self, graph: Graph, number: int) -> None:
        self.graph = graph
        self.number = number

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions, ROWS, SEQUENCES and LENGTH among them."""
        rank, dims = ffi.new("size_t *"), ffi.new("int64_t[4]")
        self.graph._call(lib.hstep_graph_describe, self.number, ffi.NULL, rank, dims)
        return tuple(dims[i] for i in range(rank[0]))

    def __add__(self, other: Value) -> Value:
        return self.graph.add(self, other)

    def __neg__(self) -> Value:
        return self.graph.scale(self, -1)

    def __sub__(self, other: Value) -> Value:
        return self.graph.add(self, -other)

    def __mul__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return self.graph.multiply(self, other)
        return self.graph.scale(self, other)

    __rmul__ = __mul__


class Graph(Owner):
    """Operations on named tensors.

    Declare inputs and parameters, then operations; `set_loss` ends the graph, and `Model` takes it over. A product
    carries the precision that is said when it is declared; everything else is f64. Names must be unique: they are what
    parameters, errors and records bear. An operation without one is named after its kind, with a number.
    """

    def __init__(self) -> None:
        place = ffi.new("hstep_graph **")
        call(lib.hstep_graph_create, place)
        self._handle = Handle("graph", place[0], lib.hstep_graph_destroy)
        self.inputs: dict[str, Input] = {}
        self.output_shape: tuple[int, ...] | None = None
        self.needs_length = False  #: positions matter: a batch must say its length
        self._unnamed = 0

    @property
    def precision(self) -> str:
        """Of its products, the one with the narrowest range, which loss scaling is for; "f64" without any."""
        there = {precision_number(it) for it in self.products.values()}
        narrowest_first = (precision_number(it) for it in ("fp16", "bf16", "f64"))
        return precision_name(next((it for it in narrowest_first if it in there), precision_number("f64")))

    @property
    def products(self) -> dict[str, str]:
        """The precision of every product, by its name, in their order."""
        with self._handle.domain:
            return products(lib.hstep_graph_products, self._handle.pointer)

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._handle.domain:
            call(function, self._handle.pointer, *arguments)

    def _declare(self, function: Any, name: str | None, *arguments: Any) -> Value:
        if name is None:
            kind = function_name(function)
            self._unnamed += 1
            name = f"{kind}.{self._unnamed}"
        numbers = [self._number(it) if isinstance(it, Value) else it for it in arguments]
        value = ffi.new("hstep_value *")
        self._call(function, c_name(name), *numbers, value)
        return Value(self, value[0])

    def _number(self, value: Value) -> int:
        if value.graph is not self:
            raise ArgumentError("a value of another graph")
        return value.number

    def input(self, name: str, shape: Sequence[int], dtype: str = "f64") -> Value:
        """Data of each batch, "f64" or "i32". Dimensions are numbers, or ROWS, SEQUENCES, LENGTH."""
        number = choice("dtype", dtype, _DTYPES)
        value = self._declare(lib.hstep_graph_input, name, number, len(shape), list(shape))
        self.inputs[name] = Input(name, dtype, tuple(shape))
        return value

    def parameter(self, name: str, shape: Sequence[int]) -> Value:
        """A learned tensor. Parameters keep the order in which they are declared."""
        return self._declare(lib.hstep_graph_parameter, name, len(shape), list(shape))

    def matmul(
        self,
        a: Value,
        b: Value,
        precision: str,
        *,
        transpose_a: bool = False,
        transpose_b: bool = False,
        name: str | None = None,
    ) -> Value:
        """The product of two matrices; adjoints are products of the same precision."""
        number = precision_number(precision)
        return self._declare(lib.hstep_graph_matmul, name, number, a, int(transpose_a), b, int(transpose_b))

    def gather(self, table: Value, indices: Value, *, name: str | None = None) -> Value:
        """y[r, :] = table[indices[r], :]."""
        return self._declare(lib.hstep_graph_gather, name, table, indices)

    def rmsnorm(self, x: Value, gain: Value, epsilon: float = 1e-5, *, name: str | None = None) -> Value:
        """x / sqrt(mean(x^2) + epsilon) * gain, along the last dimension."""
        return self._declare(lib.hstep_graph_rmsnorm, name, x, gain, epsilon)

    def rotary(self, x: Value, head_width: int, base: float = 10000.0, *, name: str | None = None) -> Value:
        """Rotary position embedding in the half-split convention."""
        value = self._declare(lib.hstep_graph_rotary, name, x, head_width, base)
        self.needs_length = True
        return value

    def attention(
        self,
        query: Value,
        key: Value,
        value: Value,
        precision: str,
        heads: int,
        kv_heads: int | None = None,
        *,
        name: str | None = None,
    ) -> Value:
        """Causal attention; `kv_heads` divides `heads` and is as many where it is not said."""
        number = precision_number(precision)
        y = self._declare(
            lib.hstep_graph_attention, name, number, query, key, value, heads, heads if kv_heads is None else kv_heads
        )
        self.needs_length = True
        return y

    def swiglu(self, gate: Value, up: Value, *, name: str | None = None) -> Value:
        """silu(gate) * up."""
        return self._declare(lib.hstep_graph_swiglu, name, gate, up)

    def add(self, a: Value, b: Value, *, name: str | None = None) -> Value:
        """a + b, equal shapes."""
        return self._declare(lib.hstep_graph_add, name, a, b)

    def add_bias(self, x: Value, bias: Value, *, name: str | None = None) -> Value:
        """x[r, :] + bias."""
        return self._declare(lib.hstep_graph_add_bias, name, x, bias)

    def multiply(self, a: Value, b: Value, *, name: str | None = None) -> Value:
        """a * b element by element, equal shapes."""
        return self._declare(lib.hstep_graph_multiply, name, a, b)

    def scale(self, x: Value, factor: float, *, name: str | None = None) -> Value:
        """factor * x for a finite constant."""
        return self._declare(lib.hstep_graph_scale, name, x, factor)

    def sum(self, x: Value, *, name: str | None = None) -> Value:
        """The sum of all elements, of shape [1]."""
        return self._declare(lib.hstep_graph_sum, name, x)

    def transpose(self, x: Value, *, name: str | None = None) -> Value:
        """A matrix turned over."""
        return self._declare(lib.hstep_graph_transpose, name, x)

    def softmax(self, x: Value, *, name: str | None = None) -> Value:
        """Softmax along the last dimension."""
        return self._declare(lib.hstep_graph_softmax, name, x)

    def log(self, x: Value, *, name: str | None = None) -> Value:
        """Natural logarithm, element by element."""
        return self._declare(lib.hstep_graph_log, name, x)

    def silu(self, x: Value, *, name: str | None = None) -> Value:
        """x / (1 + exp(-x)), element by element."""
        return self._declare(lib.hstep_graph_silu, name, x)

    def cross_entropy(self, logits: Value, targets: Value, *, name: str | None = None) -> Value:
        """The sum over the rows of log(sum(exp(logits))) - logits[target]; a target of -1 leaves its row out."""
        return self._declare(lib.hstep_graph_cross_entropy, name, logits, targets)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Operations declared inside form a block, whose inner values a trainer may compute again (`recompute`)."""
        self._call(lib.hstep_graph_begin_block)
        try:
            yield
        finally:
            self._call(lib.hstep_graph_end_block)

    def set_precision(self, pattern: str, precision: str) -> None:
        """Gives the products declared so far whose names fit another precision; `*` stands for any characters.

        Before `set_loss`, so that adjoints follow. ArgumentError, with the names there are, where none fits.
        """
        self._call(lib.hstep_graph_set_precision, c_name(pattern), precision_number(precision))

    def set_output(self, value: Value) -> None:
        """What `Model.output` returns."""
        self._call(lib.hstep_graph_set_output, self._number(value))
        self.output_shape = value.shape

    def set_loss(self, value: Value) -> None:
        """Ends the graph with its loss, a value of one element, and writes the derivatives."""
        self._call(lib.hstep_graph_set_loss, self._number(value))


def function_name(function: Any) -> str:
    """The last word of an operation's C function: "matmul" of hstep_graph_matmul."""
    return _OPERATIONS[function]


_OPERATIONS = {
    getattr(lib, f"hstep_graph_{kind}"): kind
    for kind in (
        "matmul gather rmsnorm rotary attention swiglu add add_bias multiply scale sum transpose softmax log silu "
        "cross_entropy"
    ).split()
}


def resolve(shape: Sequence[int], sequences: int, length: int) -> tuple[int, ...]:
    """A shape with numbers for its symbols."""
    numbers = {ROWS: sequences * length, SEQUENCES: sequences, LENGTH: length}
    return tuple(numbers.get(dim, dim) for dim in shape)


class Extent:
    """Sequences and length of a batch, found from the shapes of its arrays."""

    def __init__(self, sequences: int | None, length: int | None) -> None:
        self._known: dict[int, int] = {}
        for symbol, number in ((SEQUENCES, sequences), (LENGTH, length)):
            if number is not None:
                self._known[symbol] = number

    def learn(self, declared: Input, shape: tuple[int, ...]) -> None:
        """Compares an array's shape with its input's, and takes from it what the symbols stand for."""
        dims = declared.shape
        if len(shape) == len(dims) + 1 and dims[0] == ROWS:  # rows given as [sequences, length]
            dims = (SEQUENCES, LENGTH, *dims[1:])
        if len(shape) != len(dims):
            raise ShapeError(f"{declared.name!r} has shape {shape}; {_in_words(declared.shape)} was declared")
        for dim, number in zip(dims, shape):
            if (self._known.setdefault(dim, number) if dim < 0 else dim) != number:
                raise ShapeError(
                    f"{declared.name!r} has shape {shape}; {_in_words(declared.shape)} was declared"
                    + (f", with {_SYMBOLS[dim]} {self._known[dim]} from elsewhere in the batch" if dim < 0 else "")
                )

    def solve(self, sequence_alone: bool, needs_length: bool) -> tuple[int, int]:
        """Sequences and length. Where only the rows are known they are one sequence, or as many as rows."""
        rows, sequences, length = (self._known.get(symbol) for symbol in (ROWS, SEQUENCES, LENGTH))
        if rows is not None and sequences is None and length is None:
            if needs_length and not sequence_alone:
                raise ShapeError(f"{rows} rows: how many sequences are they? Say sequences or length")
            sequences = 1 if sequence_alone else rows
        if sequences is None:
            sequences = rows // length if rows is not None and length else 1
        if length is None:
            length = rows // sequences if rows is not None and sequences else 1
        if rows is not None and rows != sequences * length:
            raise ShapeError(f"{rows} rows are not {sequences} sequences of {length}")
        return sequences, length


_SYMBOLS = {ROWS: "rows", SEQUENCES: "sequences", LENGTH: "length"}


def _in_words(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(_SYMBOLS.get(dim, str(dim)) for dim in shape) + "]"
