# SPDX-License-Identifier: MIT
"""Exceptions, one for each kind of failure.

Each is a :class:`TulleError` and, if Python has a corresponding built-in exception, also that one, so ``except
ValueError`` or ``except MemoryError`` work as expected. The text is the library's error message: which row,
which file and line, how many bytes. ``error.status`` is the name of the status in C.
"""
from __future__ import annotations

from ._lib import STATUS


class TulleError(Exception):
    """The base class of all errors of tulle."""
    status = ""


class InvalidError(TulleError, ValueError):
    """An argument is not allowed."""
    status = "EINVAL"


class ShapeError(TulleError, ValueError):
    """The shapes of the matrices do not agree."""
    status = "ESHAPE"


class PatternError(TulleError, ValueError):
    """An index is out of range, or indices are not sorted."""
    status = "EPATTERN"


class DtypeError(TulleError, TypeError):
    """This type, or combination of types, is not supported."""
    status = "ETYPE"


class DeviceError(TulleError, ValueError):
    """There is no such device."""
    status = "EDEVICE"


class OutOfMemoryError(TulleError, MemoryError):
    """The machine or the device has no more memory."""
    status = "ENOMEM"


class MemoryLimitError(TulleError, MemoryError):
    """The memory limit is too small; the message names a sufficient one."""
    status = "ELIMIT"


class IndexOverflowError(TulleError, OverflowError):
    """A count does not fit the index type."""
    status = "EOVERFLOW"


class FileError(TulleError, OSError):
    """A file could not be read or written."""
    status = "EIO"


class FormatError(TulleError, ValueError):
    """A file is damaged or not in a known format."""
    status = "EFORMAT"


class CancelledError(TulleError):
    """The progress callback cancelled the work."""
    status = "ECANCEL"


class CheckError(TulleError, ArithmeticError):
    """A check of a result failed."""
    status = "ECHECK"


class DriverError(TulleError, RuntimeError):
    """A device or its driver failed."""
    status = "EDRIVER"


class CompileError(TulleError, RuntimeError):
    """A kernel could not be compiled."""
    status = "ECOMPILE"


class CommunicationError(TulleError, OSError):
    """Communication between processes failed."""
    status = "ECOMM"


KINDS = {STATUS[kind.status]: kind for kind in TulleError.__subclasses__()}


def error_of(status: int, sentence: str) -> TulleError:
    """The exception for a status of the library.

    >>> error_of(-2, "A is 3 x 4, B is 5 x 5")
    ShapeError('A is 3 x 4, B is 5 x 5')
    """
    kind = KINDS.get(status, TulleError)
    return kind(sentence or f"status {status}")


def in_callers_words(error: TulleError, operands: dict[str, tuple[str, bool]]) -> bool:
    """Rewrites an error message about an operand that has another name for the caller, or that is stored by columns,
    which the library treats as rows. ``operands`` maps the library's name to the caller's and whether it is stored by
    columns. Returns False if the message is not about one operand.

    >>> error = PatternError("A: row 5: column 77 is outside 0..39 (entry 1 of the row)")
    >>> in_callers_words(error, {"A": ("B", True)}), str(error)
    (True, 'B: column 5: row 77 is outside 0..39 (entry 1 of the column)')
    """
    name, colon, rest = str(error).partition(": ")
    if not colon or name not in operands:
        return False
    name, by_columns = operands[name]
    if by_columns:
        import re
        other = {"row": "column", "rows": "columns", "column": "row", "columns": "rows"}
        rest = re.sub(r"\b(rows?|columns?)\b", lambda word: other[word[0]], rest)
    error.args = (f"{name}: {rest}",)
    return True
