"""Finds libhalfstep, loads it, and calls it."""

from __future__ import annotations

import ctypes.util
import os
import subprocess
from pathlib import Path
from typing import Any

import cffi

from halfstep._declarations import declarations
from halfstep.errors import ArgumentError, DtypeError, LibraryNotFoundError, from_status

#: Major and minor version whose declarations these are.
VERSION = "0.1"

ffi: Any = cffi.FFI()
ffi.cdef(declarations())


def _by_pkg_config() -> str | None:
    try:
        asked = subprocess.run(
            ["pkg-config", "--variable=libdir", "halfstep"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    path = Path(asked.stdout.strip()) / "libhalfstep.so"
    return str(path) if asked.returncode == 0 and path.exists() else None


def _find() -> str:
    named = os.environ.get("HALFSTEP_LIBRARY")
    if named:
        return named
    own = sorted((Path(__file__).parent / "_library").glob("libhalfstep.so*"))
    if own:
        return str(own[0])
    found = _by_pkg_config() or ctypes.util.find_library("halfstep")
    if found is None:
        raise LibraryNotFoundError(
            "libhalfstep was found neither in the package, nor by pkg-config, nor by the dynamic linker; "
            "set HALFSTEP_LIBRARY to the path of libhalfstep.so"
        )
    return found


def _load() -> Any:
    path = _find()
    try:
        # NODELETE: objects may still be destroyed while the interpreter ends.
        loaded = ffi.dlopen(path, ffi.RTLD_NOW | ffi.RTLD_NODELETE)
        version = ffi.string(loaded.hstep_version()).decode()
    except (OSError, AttributeError) as problem:
        raise LibraryNotFoundError(f"{path} cannot be loaded as libhalfstep: {problem}") from None
    if not version.startswith(VERSION + "."):
        raise LibraryNotFoundError(f"{path} is version {version} of libhalfstep; this package needs {VERSION}")
    return loaded


lib: Any = _load()


def call(function: Any, *arguments: Any) -> None:
    """Calls a function that ends in an hstep_error, and raises the exception that belongs to what it reports."""
    error = ffi.new("hstep_error *")
    status = function(*arguments, error)
    if status != 0:
        raise from_status(status, text(error.message), text(error.operation))


def text(characters: Any) -> str:
    """A C string, or "" for NULL."""
    return "" if characters == ffi.NULL else str(ffi.string(characters).decode(errors="replace"))


def c_name(name: str) -> bytes:
    """A name as a C string."""
    if not isinstance(name, str):
        raise DtypeError(f"a name is text, not {type(name).__name__}: {name!r}")
    return _without_zeros(name.encode())


def c_path(path: str | os.PathLike[str]) -> bytes:
    """A path as a C string."""
    return _without_zeros(os.fsencode(path))


def _without_zeros(encoded: bytes) -> bytes:
    if b"\0" in encoded:  # C would take what stands before it for the whole
        raise ArgumentError(f"{encoded!r} holds a zero byte; names and paths must have none")
    return encoded


def set_fields(place: Any, **values: Any) -> None:
    """Fields of a struct, and by name what does not go into one."""
    for name, value in values.items():
        try:
            setattr(place, name, value)
        except OverflowError:
            raise ArgumentError(f"{name} is {value!r}; give a whole number from 0 to 2^64 - 1") from None
        except TypeError as problem:
            raise DtypeError(f"{name} is {value!r}: {problem}") from None


def choice(what: str, name: str, known: dict[str, int]) -> int:
    """The enumerator behind a word."""
    if name not in known:
        raise ArgumentError(f"unknown {what} {name!r}; choose one of {', '.join(known)}")
    return known[name]


def precision_number(name: str) -> int:
    """The hstep_precision behind "f64", "fp16", "bf16", "fp16-fp32" or "bf16-fp32"."""
    return choice("precision", name, {"f64": 0, "fp16": 1, "bf16": 2, "fp16-fp32": 1, "bf16-fp32": 2})


def products(function: Any, pointer: Any) -> dict[str, str]:
    """What a function such as hstep_model_products lists: precisions by the names of operations."""
    count = ffi.new("size_t *")
    call(function, pointer, ffi.NULL, 0, count)
    rows = ffi.new("hstep_product[]", count[0])
    call(function, pointer, rows, count[0], count)
    return {text(it.name): precision_name(it.precision) for it in rows}


def precision_name(number: int) -> str:
    """The name that records carry."""
    return text(lib.hstep_precision_name(number))
