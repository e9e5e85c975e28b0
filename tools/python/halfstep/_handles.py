"""When C objects may go: not before the last array or object that needs them, and never while their context computes.

All that hangs on one context shares a domain, whose lock is held during every call, so that threads which share a
context take turns. Objects that end while another thread computes wait for that thread to finish.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType
from typing import Any, Callable, TypeVar

import numpy as np
import numpy.typing as npt

from halfstep.errors import ClosedError

_Self = TypeVar("_Self", bound="Owner")


class Domain:
    """The lock of a context, and the objects that wait for their end."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._ended: deque[Handle] = deque()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: object) -> None:
        self._lock.release()
        if self._ended:
            self.bury()

    def bury(self, handle: Handle | None = None) -> None:
        """Destroys what has ended, unless another thread computes: that one does it when it is done."""
        if handle is not None:
            self._ended.append(handle)
        while self._ended and self._lock.acquire(blocking=False):
            try:
                self._ended.popleft().destroy()
            except IndexError:  # another thread took the last one
                pass
            finally:
                self._lock.release()


class Handle:
    """A C object that is destroyed when its owner has ended and nothing uses it any more."""

    def __init__(self, kind: str, pointer: Any, destroy: Callable[[Any], None], parent: Handle | None = None) -> None:
        self.kind = kind
        self.domain: Domain = parent.domain if parent is not None else Domain()
        self._pointer = pointer
        self._destroy = destroy
        self._parent = parent
        self._users: set[int] = set()  # children and arrays, by id
        self._ended = False
        if parent is not None:
            parent.take(self)

    @property
    def pointer(self) -> Any:
        """The C object; ClosedError when it, or what it was made from, was closed."""
        handle: Handle | None = self
        while handle is not None:
            if handle._ended:
                raise ClosedError(f"the {handle.kind} was closed")
            handle = handle._parent
        return self._pointer

    def take(self, user: object) -> None:
        """Keeps the object alive for a user."""
        with self.domain:
            self._users.add(id(user))

    def drop(self, user: object) -> None:
        """Ends that; callable from finalizers."""
        self._users.discard(id(user))
        if self._ended and not self._users:
            self.domain.bury(self)

    def end(self) -> None:
        """The owner needs it no more."""
        self._ended = True
        if not self._users:
            self.domain.bury(self)

    def give_away(self) -> None:
        """Another C object owns it from now on."""
        self._pointer = None
        self._ended = True

    def destroy(self) -> None:
        """With the domain's lock held. A second call, or one that came too early, does nothing."""
        pointer = self._pointer
        if pointer is None or self._users or not self._ended:
            return
        self._pointer = None
        self._destroy(pointer)
        if self._parent is not None:
            self._parent.drop(self)


class Owner:
    """A Python object that owns a C object. Ends at `close`, at the end of a `with` block, or when it is collected."""

    _handle: Handle

    def close(self) -> None:
        """Ends it. Arrays that look into its memory stay valid; all else is refused."""
        self._handle.end()

    @property
    def closed(self) -> bool:
        """Whether it, or what it was made from, was closed."""
        try:
            return self._handle.pointer is None
        except ClosedError:
            return True

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:
            handle.end()


class _Memory:
    """The base of an array that looks into a C object's memory, which it keeps alive."""

    def __init__(self, handle: Handle, address: int, shape: tuple[int, ...], writeable: bool) -> None:
        handle.take(self)
        self._handle = handle
        self.__array_interface__ = {
            "version": 3,
            "typestr": np.dtype(np.float64).str,
            "shape": shape,
            "data": (address, not writeable),
        }

    def __del__(self) -> None:
        self._handle.drop(self)


def view(handle: Handle, address: int, shape: tuple[int, ...], writeable: bool) -> npt.NDArray[np.float64]:
    """An array over memory of a C object, without a copy."""
    return np.asarray(_Memory(handle, address, shape, writeable))
