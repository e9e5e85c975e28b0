"""Conversion to and from the half formats, and single matrix products under the numeric policy."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from halfstep._library import call, choice, ffi, lib, precision_number
from halfstep.context import Context
from halfstep.errors import ArgumentError, DtypeError, ShapeError

_FORMATS = {"fp16": 0, "bf16": 1}

# What one call of the library is given at most, about a second's work, so that Ctrl-C is heard between calls.
_CONVERSIONS_A_CALL = 1 << 24
_PRODUCTS_A_CALL = 1 << 32
_PRODUCTS_A_CALL_OF_THE_REFERENCE = 1 << 28


def to_f64(x: npt.ArrayLike, what: str, rounded_again: bool) -> npt.NDArray[np.float64]:
    """An array of numbers as f64, layout kept, without a copy where it is one already.

    Integers beyond 2^53 are not all numbers of f64. Where a half format is what they become in the end, they are
    rounded to odd on the way, so that the two roundings have the result of one.
    """
    array = np.asarray(x)
    if array.dtype.kind in "bui" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8):
        if rounded_again and array.dtype.kind in "ui" and array.dtype.itemsize == 8:
            return _to_odd(array)
        return array.astype(np.float64, order="K", copy=False)
    raise DtypeError(
        f"{what} is an array of {array.dtype}; it must hold floats of at most 64 bits, integers or booleans"
    )


def _to_odd(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    negative = array < 0
    magnitude = array.astype(np.uint64)
    magnitude = np.where(negative, ~magnitude + np.uint64(1), magnitude)
    low = np.uint64(0x7FF)
    odd = (magnitude & ~low) | np.where(magnitude & low != 0, np.uint64(0x800), np.uint64(0))
    exact = np.where(magnitude >> np.uint64(53) != 0, odd, magnitude).astype(np.float64)
    return np.where(negative, -exact, exact)


def _convert(function: Any, number: int, count: int, from_: Any, to: Any) -> None:
    for first in range(0, count, _CONVERSIONS_A_CALL):
        call(function, number, min(_CONVERSIONS_A_CALL, count - first), from_ + first, to + first)


@overload
def encode(x: float, format: str) -> np.uint16: ...  # type: ignore[misc]


@overload
def encode(x: npt.ArrayLike, format: str) -> npt.NDArray[np.uint16]: ...


def encode(x: npt.ArrayLike, format: str) -> Any:
    """Rounds numbers to "fp16" or "bf16" once and gives the bits, in an array of the same shape.

    To nearest, ties to even, subnormals kept, overflow to infinity, every NaN to one quiet NaN.

    >>> hex(encode(1 + 2**-11, "fp16"))
    '0x3c00'
    """
    number = choice("format", format, _FORMATS)
    values = np.require(to_f64(x, "x", rounded_again=True), requirements=["C", "A"])
    bits = np.empty(values.shape, dtype=np.uint16)
    _convert(
        lib.hstep_encode_array,
        number,
        values.size,
        ffi.cast("double *", values.ctypes.data),
        ffi.cast("uint16_t *", bits.ctypes.data),
    )
    return bits[()]


@overload
def decode(bits: int, format: str) -> np.float64: ...  # type: ignore[misc]


@overload
def decode(bits: npt.ArrayLike, format: str) -> npt.NDArray[np.float64]: ...


def decode(bits: npt.ArrayLike, format: str) -> Any:
    """The exact values of bits of "fp16" or "bf16", as f64 in an array of the same shape.

    >>> float(decode(0x3C00, "fp16"))
    1.0
    """
    number = choice("format", format, _FORMATS)
    array = np.asarray(bits)
    if array.dtype.kind not in "ui":
        raise DtypeError(f"bits are an array of {array.dtype}; they must be integers")
    if array.dtype != np.uint16 and array.size and (array.min() < 0 or array.max() > 0xFFFF):
        raise ArgumentError("bits must be between 0 and 65535")
    halves = np.require(array.astype(np.uint16, copy=False), requirements=["C", "A"])
    values = np.empty(halves.shape, dtype=np.float64)
    _convert(
        lib.hstep_decode_array,
        number,
        halves.size,
        ffi.cast("uint16_t *", halves.ctypes.data),
        ffi.cast("double *", values.ctypes.data),
    )
    return values[()]


class _Contexts(threading.local):
    """The contexts of this thread that `matmul` computes on, by backend."""

    def __init__(self) -> None:
        self.made: dict[str, Context] = {}

    def get(self, backend: str) -> Context:
        """Made at first use."""
        if backend not in self.made:
            self.made[backend] = Context(backend)
        return self.made[backend]


_contexts = _Contexts()


def _matrix(x: npt.ArrayLike, what: str, rounded_again: bool) -> npt.NDArray[np.float64]:
    matrix = to_f64(x, what, rounded_again)
    if matrix.ndim != 2:
        raise ShapeError(f"{what} has shape {matrix.shape}; give a matrix, with two dimensions")
    return matrix


def _check_depths(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> None:
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"a has shape {a.shape} and b {b.shape}; a's columns must be as many as b's rows")


def _form(matrix: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], int]:
    """The matrix as C sees it, and whether that is its transpose: Fortran order needs no copy."""
    if matrix.flags.f_contiguous and matrix.flags.aligned and not matrix.flags.c_contiguous:
        return matrix.T, 1
    return np.require(matrix, requirements=["C", "A"]), 0


@dataclass(frozen=True)
class Gate:
    """How sums in another order fared by the policy's bounds (section 7)."""

    passed: bool  #: all of the bounds
    max_abs: float  #: largest distance from the policy's sum
    max_abs_limit: float  #: 1% of the mean magnitude; max_abs must be below
    mean_rel: float  #: mean of the distance relative to the sum's magnitude, or to max_abs_limit where that is more
    mean_rel_limit: float  #: mean_rel must be below
    max_rel: float  #: largest of the same; decides nothing
    cells: int  #: cells that have a bound of their own: those that are finite under the policy
    cells_beyond: int  #: how many lie beyond it
    cells_wrong: int  #: finite where they must not be or the other way round, or results that are not the sum rounded once


def gate(
    sums: npt.ArrayLike,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    precision: str = "fp16",
    *,
    results: npt.ArrayLike | None = None,
) -> Gate:
    """Judges a product of a and b that was computed another way, as the library judges its own faster kernels.

    `sums` are what the kernel has before it rounds to the half format: of operands in the format, f32 sums in any order.
    Every cell must stay within K * 2^-23 * sum(|a * b|) of the policy's sum (2^-52 in "f64"), and all together within
    1% and 0.5% of it. `results`, where they are given, must be the sums rounded once.

    The bounds over all cells are for ordinary numbers: a product with infinities, or of zeros alone, does not pass; the
    counts of cells hold for any.
    """
    number = precision_number(precision)
    left, right = (_matrix(x, name, rounded_again=number != 0) for x, name in ((a, "a"), (b, "b")))
    _check_depths(left, right)
    shape = (left.shape[0], right.shape[1])
    given = [(sums, "sums")] if results is None else [(sums, "sums"), (results, "results")]
    kept = [np.require(_matrix(x, name, rounded_again=False), requirements=["C", "A"]) for x, name in given]
    for x, name in zip(kept, ("sums", "results")):
        if x.shape != shape:
            raise ShapeError(f"{name} have shape {x.shape}; the product of a and b has {shape}")
    (a_seen, a_form), (b_seen, b_form) = _form(left), _form(right)
    judged = ffi.new("hstep_gate_case *")
    call(
        lib.hstep_gate,
        number,
        a_form,
        b_form,
        *shape,
        left.shape[1],
        ffi.cast("double *", a_seen.ctypes.data),
        ffi.cast("double *", b_seen.ctypes.data),
        ffi.cast("double *", kept[0].ctypes.data),
        ffi.cast("double *", kept[1].ctypes.data) if results is not None else ffi.NULL,
        judged,
    )
    figures = {it.name: getattr(judged, it.name) for it in fields(Gate)}
    return Gate(**{**figures, "passed": bool(judged.passed)})


def matmul(
    a: npt.ArrayLike, b: npt.ArrayLike, precision: str = "fp16", backend: str = "cpu", *, context: Context | None = None
) -> npt.NDArray[np.float64]:
    """The product of two matrices under the numeric policy, as f64.

    In "fp16" and "bf16" operands are rounded to the format, products and their sums, k ascending, to f32, and the
    result to the format again; in "f64" products and sums are rounded to f64. Every backend gives the same bits.

    A context of one's own takes the place of `backend`.
    """
    number = precision_number(precision)
    left, right = (_matrix(x, name, rounded_again=number != 0) for x, name in ((a, "a"), (b, "b")))
    _check_depths(left, right)
    on = context if context is not None else _contexts.get(backend)
    rows, depth, columns = left.shape[0], left.shape[1], right.shape[1]
    y = np.empty((rows, columns), dtype=np.float64)
    most = _PRODUCTS_A_CALL_OF_THE_REFERENCE if on.backend == "cpu-reference" else _PRODUCTS_A_CALL
    step = max(1 if on.backend == "cpu-reference" else 64, most // max(1, depth * columns))
    b_seen, b_form = _form(right)
    for first in range(0, rows, step):
        a_seen, a_form = _form(left[first : first + step])
        part = y[first : first + step]
        with on._handle.domain:
            call(
                lib.hstep_matmul,
                on._handle.pointer,
                number,
                a_form,
                b_form,
                part.shape[0],
                columns,
                depth,
                ffi.cast("double *", a_seen.ctypes.data),
                ffi.cast("double *", b_seen.ctypes.data),
                ffi.cast("double *", part.ctypes.data),
            )
    return y
