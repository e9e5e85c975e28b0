"""Updates as transactions: each either commits as a whole or leaves every byte of what is learned."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, fields
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from halfstep._handles import Handle, Owner, view
from halfstep._library import c_name, c_path, call, choice, ffi, lib, precision_number, set_fields, text
from halfstep.errors import ArgumentError, DtypeError, TooManySkipsError
from halfstep.model import BatchLike, Model, Window, WindowLike

_SCHEDULES = {"constant": 0, "cosine": 1}


@dataclass(frozen=True)
class AdamW:
    """AdamW with decoupled weight decay, and clipping of the global gradient norm."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    grad_clip: float = 1.0
    decay_vectors: bool = False


@dataclass(frozen=True)
class Schedule:
    """The learning rate by committed updates: linear warm-up, then "constant", or "cosine" down to the minimum."""

    learning_rate: float = 1e-3
    kind: str = "constant"
    min_learning_rate: float = 0.0
    warmup_steps: int = 0
    steps: int = 0


@dataclass(frozen=True)
class Scaler:
    """Dynamic loss scaling. Scales are powers of two, 1 <= minimum <= initial <= maximum."""

    initial: float
    minimum: float
    maximum: float
    growth_interval: int

    @staticmethod
    def defaults(precision: str) -> Scaler:
        """fp16: 65536, 1, 2^24, 2000. bf16 and f64: 1, 1, 1, 2000."""
        it = lib.hstep_scaler_defaults(precision_number(precision))
        return Scaler(it.initial, it.minimum, it.maximum, it.growth_interval)


@dataclass(frozen=True)
class Overflow:
    """The first nonfinite value of a skipped attempt, in the order of the reference."""

    operation: str
    tensor: str  #: whose adjoint
    phase: str  #: "backward" or "norm"
    kind: str  #: "inf" or "nan"
    index: int


@dataclass(frozen=True)
class Update:
    """What one attempt did."""

    applied: bool
    step: int  #: the scheduled step that was attempted, from 1
    attempt: int
    loss: float  #: mean over the window's targets
    loss_scale: float
    next_loss_scale: float
    finite_updates: int
    gradient_norm: float  #: unscaled, before clipping; NaN when a skip came before the norm
    clipped: bool
    learning_rate: float
    optimizer_step: int
    tokens: int
    threads: int  #: that computed it
    nonfinite_weights: bool  #: the commit itself made a weight infinite or NaN: the run has diverged
    overflow: Overflow | None  #: of a skip

    @property
    def skipped(self) -> bool:
        """A gradient overflowed; nothing changed but the loss scale and the counts of attempts."""
        return not self.applied


def _overflow(it: Any) -> Overflow:
    return Overflow(text(it.operation), text(it.tensor), text(it.phase), text(it.kind), it.index)


def _update(it: Any) -> Update:
    return Update(
        applied=it.outcome == 0,
        step=it.step,
        attempt=it.attempt,
        loss=it.loss,
        loss_scale=it.loss_scale,
        next_loss_scale=it.next_loss_scale,
        finite_updates=it.finite_updates,
        gradient_norm=it.gradient_norm,
        clipped=bool(it.clipped),
        learning_rate=it.learning_rate,
        optimizer_step=it.optimizer_step,
        tokens=it.tokens,
        threads=it.threads,
        nonfinite_weights=bool(it.nonfinite_weights),
        overflow=_overflow(it.overflow) if it.outcome != 0 else None,
    )


@dataclass(frozen=True)
class Operand:
    """What the numbers of one operand are like. Magnitudes and counts of rounding are those of its finite numbers."""

    name: str
    is_output: bool
    is_adjoint: bool
    shape: tuple[int, ...]
    elements: int
    smallest: float  #: smallest magnitude above 0
    largest: float
    mean: float
    zeros: int
    to_subnormal: int
    to_zero: int
    to_infinity: int
    infinities: int
    nans: int


@dataclass(frozen=True)
class Explanation:
    """Why an attempt overflows: what the operation that did read and wrote."""

    overflow: Overflow
    operation: str  #: its kind, such as "matmul"
    operands: list[Operand] = field(default_factory=list)


_PLAIN = [it.name for it in fields(Operand) if it.name not in ("name", "shape", "is_output", "is_adjoint")]


def _operand(it: Any) -> Operand:
    return Operand(
        name=text(it.name),
        is_output=bool(it.is_output),
        is_adjoint=bool(it.is_adjoint),
        shape=tuple(it.dims[d] for d in range(it.rank)),
        **{name: getattr(it, name) for name in _PLAIN},
    )


class _Tensors(Mapping[str, npt.NDArray[np.float64]]):
    """Arrays by the names of the parameters, over a trainer's memory; they cannot be written to."""

    def __init__(self, trainer: Trainer, data: Callable[[int], Any]) -> None:
        self._trainer = trainer
        self._data = data

    def __getitem__(self, name: str) -> npt.NDArray[np.float64]:
        trainer = self._trainer
        with trainer._handle.domain:
            address = int(ffi.cast("uintptr_t", self._data(trainer.model._place(name))))
            return view(trainer._handle, address, trainer.model.shapes[name], writeable=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._trainer.model.shapes)

    def __len__(self) -> int:
        return len(self._trainer.model.shapes)


#: Called with every update after it is done. What it does outside is not undone by a skip.
Callback = Callable[["Trainer", Update], None]


class Trainer(Owner):
    """Trains a model. A model has one trainer at a time.

    A window of `replicas * micro_batches` batches makes one update. Without a scaler it takes the defaults of fp16
    where any product of the model is in it, else of bf16. `recompute` saves memory: inner values of blocks are computed
    again for the backward pass. `head_rows` saves memory, too: logits are there for so many rows at a time; 0 chooses
    by their size.
    """

    def __init__(
        self,
        model: Model,
        *,
        adamw: AdamW = AdamW(),
        schedule: Schedule = Schedule(),
        scaler: Scaler | None = None,
        replicas: int = 1,
        micro_batches: int = 1,
        recompute: bool = False,
        head_rows: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.model = model
        self.callbacks: list[Callback] = list(callbacks)
        if not all(callable(callback) for callback in self.callbacks):
            raise DtypeError("callbacks hold something that cannot be called; give functions of (trainer, update)")
        config = ffi.new("hstep_trainer_config *")
        _copy(config.adamw, adamw)
        _copy(config.schedule, schedule, kind=choice("schedule", schedule.kind, _SCHEDULES))
        if scaler is not None:
            _copy(config.scaler, scaler)
        else:
            defaults = lib.hstep_trainer_defaults_for(model._handle.pointer)  # its scaler lives no longer than it
            config.scaler = defaults.scaler
        set_fields(
            config, replicas=replicas, micro_batches=micro_batches, recompute=bool(recompute), head_rows=head_rows
        )
        place = ffi.new("hstep_trainer **")
        with model._handle.domain:
            call(lib.hstep_trainer_create, model._handle.pointer, config, place)
            self._handle = Handle("trainer", place[0], lib.hstep_trainer_destroy, model._handle)

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._handle.domain:
            call(function, self._handle.pointer, *arguments)

    # ---- Updates ----

    def step(self, window: WindowLike) -> Update:
        """One attempt at one update.

        After a skip, step again with the same data: it takes the same scheduled step under the next loss scale. An
        exception changed nothing, unless a callback raised it: those are called when the attempt is over. Ctrl-C is
        heard when the attempt is over, too, which it therefore never cuts in two.
        """
        bound = Window(self.model, window)
        place = ffi.new("hstep_update *")
        self._call(lib.hstep_trainer_update, bound.batches, bound.count, place)
        return self._report(place)

    def _report(self, place: Any) -> Update:
        update = _update(place)
        for callback in tuple(self.callbacks):  # one may take itself off the list
            callback(self, update)
        return update

    def run(self, windows: Iterable[WindowLike], *, max_skips: int = 32) -> list[Update]:
        """Commits one update for each window, retrying those that are skipped; gives all attempts.

        TooManySkipsError after `max_skips` skips in a row.
        """
        if max_skips < 1:
            raise ArgumentError(f"max_skips is {max_skips}; give at least 1, the number of attempts at an update")
        updates: list[Update] = []
        for window in windows:
            for _ in range(max_skips):
                updates.append(self.step(window))
                if updates[-1].applied:
                    break
            else:
                last = updates[-1].overflow if updates else None
                operation = last.operation if last is not None else ""
                raise TooManySkipsError(f"{max_skips} attempts in a row overflowed, the last in {operation}", operation)
        return updates

    def explain(self, window: WindowLike) -> Explanation | None:
        """Runs an attempt and says what overflows; None where nothing does. It decides nothing and changes nothing."""
        bound = Window(self.model, window)
        place = ffi.new("hstep_explanation *")
        self._call(lib.hstep_trainer_explain, bound.batches, bound.count, place)
        if not place.overflowed:
            return None
        operands = [_operand(place.operands[i]) for i in range(place.operand_count)]
        return Explanation(_overflow(place.overflow), text(place.operation), operands)

    # ---- One step of an update at a time ----

    def record(self, batch: BatchLike) -> float:
        """The forward pass of one batch, kept for `backward`; gives the mean loss."""
        bound = Window(self.model, batch, 1)
        place = ffi.new("double *")
        self._call(lib.hstep_trainer_record, bound.batches, place)
        return float(place[0])

    def backward(self) -> None:
        """Computes the gradients, multiplied by the loss scale, from what was recorded."""
        self._call(lib.hstep_trainer_backward)

    def commit(self) -> Update:
        """Judges the gradients, then commits or skips."""
        place = ffi.new("hstep_update *")
        self._call(lib.hstep_trainer_commit, place)
        return self._report(place)

    def clear(self) -> None:
        """Drops what was recorded, and the gradients."""
        self._call(lib.hstep_trainer_clear)

    # ---- State ----

    @property
    def gradients(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """Gradients by parameter, multiplied by the loss scale, zero when clear; without copies, read-only."""

        def data(index: int) -> Any:
            place = ffi.new("double **")
            call(lib.hstep_trainer_gradient_data, self._handle.pointer, index, place)
            return place[0]

        return _Tensors(self, data)

    def _moments(self, which: int) -> Mapping[str, npt.NDArray[np.float64]]:
        def data(index: int) -> Any:
            place = ffi.new("double *[2]")
            call(lib.hstep_trainer_moments_data, self._handle.pointer, index, place, place + 1)
            return place[which]

        return _Tensors(self, data)

    @property
    def first_moments(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """AdamW's first moments by parameter, without copies, read-only."""
        return self._moments(0)

    @property
    def second_moments(self) -> Mapping[str, npt.NDArray[np.float64]]:
        """AdamW's second moments by parameter, without copies, read-only."""
        return self._moments(1)

    @property
    def loss_scale(self) -> float:
        """The scale that the next attempt starts from."""
        return float(lib.hstep_trainer_loss_scale(self._handle.pointer))

    @property
    def optimizer_step(self) -> int:
        """Committed updates."""
        return int(lib.hstep_trainer_optimizer_step(self._handle.pointer))

    @property
    def attempts(self) -> int:
        """Attempts so far."""
        return int(lib.hstep_trainer_attempts(self._handle.pointer))

    def set_scaler(self, scaler: Scaler) -> None:
        """Replaces the loss scaler and its count."""
        place = ffi.new("hstep_scaler *")
        _copy(place, scaler)
        self._call(lib.hstep_trainer_set_scaler, place)

    def snapshot(self) -> bytes:
        """The bytes of all that a skip must keep; two are equal exactly when the states are."""
        size = ffi.new("size_t *")
        with self._handle.domain:
            call(lib.hstep_trainer_snapshot, self._handle.pointer, ffi.NULL, size)
            buffer = ffi.new("char[]", size[0])
            call(lib.hstep_trainer_snapshot, self._handle.pointer, buffer, size)
        return bytes(ffi.buffer(buffer, size[0]))

    # ---- Checkpoints ----

    def save(
        self, path: str | os.PathLike[str], sections: Mapping[str, bytes] = {}, held_out_loss: float = math.nan
    ) -> None:
        """Writes a checkpoint: all that the future of the run depends on, whole or not at all.

        `sections` are bytes of one's own, which `read_section` gives back.
        """
        rows = ffi.new("hstep_section[]", len(sections))
        kept = [(ffi.new("char[]", c_name(name)), ffi.from_buffer(data)) for name, data in sections.items()]
        for row, (name, data) in zip(rows, kept):
            row.name, row.data, row.size = name, data, len(data)
        extras = ffi.new("hstep_checkpoint_extras *", [rows, len(sections), held_out_loss])
        self._call(lib.hstep_checkpoint_save, c_path(path), extras)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Restores a checkpoint of the same model and settings; the next update has the bits of a run without break."""
        self._call(lib.hstep_checkpoint_load, c_path(path))


def read_section(path: str | os.PathLike[str], name: str) -> bytes:
    """The bytes that were given to `Trainer.save` under that name."""
    place = ffi.new("hstep_tensor_file **")
    call(lib.hstep_tensor_file_open, c_path(path), place)
    try:
        size = ffi.new("size_t *")
        call(lib.hstep_checkpoint_section, place[0], c_name(name), ffi.NULL, size)
        data = ffi.new("char[]", size[0] + 1)
        call(lib.hstep_checkpoint_section, place[0], c_name(name), data, size)
        return bytes(ffi.buffer(data, size[0]))
    finally:
        lib.hstep_tensor_file_close(place[0])


def _copy(place: Any, settings: Any, **other: Any) -> None:
    """Fields of a dataclass into a struct whose fields have the same names."""
    for it in fields(settings):
        set_fields(place, **{it.name: other.get(it.name, getattr(settings, it.name))})
