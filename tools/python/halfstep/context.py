"""What computes: a backend with its threads, and what became of each faster way to compute."""

from __future__ import annotations

from dataclasses import dataclass

from halfstep._handles import Handle, Owner
from halfstep._library import c_name, call, choice, ffi, lib, text

_BACKENDS = {"auto": 0, "cpu": 1, "cpu-reference": 2, "vulkan": 3}


@dataclass(frozen=True)
class Lever:
    """A faster way to compute, and what became of it on this machine."""

    name: str
    exact: bool  #: it gives the reference's bits
    state: str  #: "absent", "not built", "failed to build", "rejected", "slower", "disabled" or "active"
    reason: str


@dataclass(frozen=True)
class Device:
    """A device of the backend "vulkan"."""

    name: str
    driver: str
    software: bool  #: it computes on the processor
    refusal: str  #: why it cannot serve; empty where it can


class Context(Owner):
    """A backend and its threads. Two contexts share nothing; threads that share one take turns.

    `levers` says which faster ways to compute may be used: "exact", the default, keeps the reference's bits.
    `threads` 0 takes as many as the process may run on.
    """

    def __init__(
        self, backend: str = "auto", *, threads: int = 0, levers: str = "exact", device: str | None = None
    ) -> None:
        options = ffi.new("hstep_context_options *", lib.hstep_context_defaults())
        kept = [ffi.new("char[]", c_name(levers)), ffi.new("char[]", c_name(device)) if device is not None else None]
        options.backend = choice("backend", backend, _BACKENDS)
        options.threads = threads
        options.levers = kept[0]
        options.device = kept[1] if device is not None else ffi.NULL
        place = ffi.new("hstep_context **")
        call(lib.hstep_context_create, options, place)
        self._handle = Handle("context", place[0], lib.hstep_context_destroy)

    @property
    def backend(self) -> str:
        """ "cpu", "cpu-reference" or "vulkan"."""
        return text(lib.hstep_context_backend_name(self._handle.pointer))

    @property
    def device(self) -> str:
        """The processor's or device's own name."""
        return text(lib.hstep_context_device_name(self._handle.pointer))

    @property
    def threads(self) -> int:
        """Threads that compute."""
        return int(lib.hstep_context_threads(self._handle.pointer))

    @property
    def memory(self) -> int:
        """Bytes that its models and trainers hold on the backend."""
        with self._handle.domain:
            return int(lib.hstep_context_memory(self._handle.pointer))

    @property
    def lever_set(self) -> str:
        """The levers in use as text that, given as `levers`, makes a context with exactly that set."""
        return text(lib.hstep_context_lever_set(self._handle.pointer))

    def levers(self) -> list[Lever]:
        """Every lever that the backend knows."""
        table = ffi.new("hstep_lever **")
        count = lib.hstep_context_levers(self._handle.pointer, table)
        return [
            Lever(text(it.name), bool(it.exact), text(lib.hstep_lever_state_name(it.state)), text(it.reason))
            for it in (table[0][i] for i in range(count))
        ]


def devices() -> list[Device]:
    """The devices of the backend "vulkan", in the system's order."""
    table = ffi.new("hstep_device **")
    count = ffi.new("size_t *")
    call(lib.hstep_devices_list, table, count)
    try:
        return [
            Device(text(it.name), text(it.driver), bool(it.software), text(it.refusal))
            for it in (table[0][i] for i in range(count[0]))
        ]
    finally:
        lib.hstep_devices_free(table[0])
