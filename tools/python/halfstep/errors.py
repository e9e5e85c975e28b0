"""What can go wrong: one exception for each status of the C library, and a few of Python's own."""

from __future__ import annotations


class Error(Exception):
    """Any error of halfstep.

    `operation` names the operation or tensor of a graph that is to blame, or is empty.
    """

    def __init__(self, message: str, operation: str = "") -> None:
        super().__init__(message)
        self.operation = operation


class ArgumentError(Error, ValueError):
    """An argument or setting is outside what is accepted."""


class ShapeError(Error, ValueError):
    """Shapes do not fit together."""


class DtypeError(Error, TypeError):
    """An array is of a type that does not serve here."""


class TokenError(Error, ValueError):
    """A token or target lies outside the vocabulary."""


class NoTargetsError(Error, ValueError):
    """The window has nothing to learn from."""


class MissingGradientError(Error):
    """A parameter has no gradient."""


class DirtyGradientError(Error):
    """Gradients of an earlier backward pass are still there."""


class StaleTapeError(Error):
    """Parameters changed after the forward pass was recorded."""


class NonfiniteForwardError(Error, ArithmeticError):
    """A forward value is infinite or NaN; a smaller loss scale cannot mend it."""


class UnsupportedError(Error):
    """The backend lacks an operation, or keeps memory that programs do not see."""


class BackendUnavailableError(Error):
    """The backend or device asked for is not there."""


class OutOfMemoryError(Error, MemoryError):
    """Memory could not be had."""


class InputFileError(Error):
    """A file is missing, unreadable, empty or malformed."""


class OutputFileError(Error):
    """A file could not be written."""


class ClosedError(Error):
    """The object, or one that it was made from, was closed."""


class TooManySkipsError(Error, ArithmeticError):
    """Too many attempts in a row overflowed."""


class LibraryNotFoundError(ImportError):
    """The C library is not there, or is of another version."""


# By the numbers of hstep_status, which stay as they are in later versions.
_BY_STATUS: dict[int, type[Error]] = {
    1: ArgumentError,
    2: ShapeError,
    3: TokenError,
    4: NoTargetsError,
    5: MissingGradientError,
    6: DirtyGradientError,
    7: StaleTapeError,
    8: NonfiniteForwardError,
    9: UnsupportedError,
    10: BackendUnavailableError,
    11: OutOfMemoryError,
    12: InputFileError,
    13: OutputFileError,
}


def from_status(status: int, message: str, operation: str) -> Error:
    """The exception that stands for a status of the C library."""
    return _BY_STATUS.get(status, Error)(message, operation)
