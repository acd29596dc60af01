# SPDX-License-Identifier: MIT
"""Products of sparse matrices, fast on any CPU and on GPUs.

>>> import tulle
>>> A = tulle.gallery("poisson2d:100")
>>> C = tulle.matmul(A, A)
>>> C.shape, C.nnz
((10000, 10000), 128004)

What comes from which file stands in the table below; it is loaded when it is first used, so that importing
tulle takes no time.
"""
from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False                   # type checkers take it as true; importing typing would take longer than all else

_WHERE = {
    "matmul": "_matmul", "verify": "_matmul", "spmm": "_spmm", "SpmmPlan": "_spmm_plan", "Plan": "_plan", "estimate": "_forecast",
    "explain": "_forecast", "Forecast": "_forecast", "read": "_files", "write": "_files", "gallery": "_files",
    "recipes": "_files", "devices": "_devices", "Device": "_devices", "policies": "_devices", "Context": "_context",
    "Stats": "_context", "Csr": "_csr", "install": "_install", "uninstall": "_install", "installed": "_install",
    "TulleError": "errors", "InvalidError": "errors", "ShapeError": "errors", "PatternError": "errors",
    "DtypeError": "errors", "DeviceError": "errors", "OutOfMemoryError": "errors", "MemoryLimitError": "errors",
    "IndexOverflowError": "errors", "FileError": "errors", "FormatError": "errors", "CancelledError": "errors",
    "CheckError": "errors", "DriverError": "errors", "CompileError": "errors", "CommunicationError": "errors",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str):
    if name not in _WHERE:
        raise AttributeError(f"module 'tulle' has no attribute {name!r}")
    from importlib import import_module
    found = getattr(import_module(f"tulle.{_WHERE[name]}"), name)
    globals()[name] = found             # the next time it is found at once
    return found


def __dir__() -> list[str]:
    return sorted(list(globals()) + __all__)


if TYPE_CHECKING:                       # the same table, for type checkers
    from ._context import Context, Stats
    from ._csr import Csr
    from ._devices import Device, devices, policies
    from ._files import gallery, read, recipes, write
    from ._forecast import Forecast, estimate, explain
    from ._install import install, installed, uninstall
    from ._matmul import matmul, verify
    from ._plan import Plan
    from ._spmm import spmm
    from ._spmm_plan import SpmmPlan
    from .errors import (CancelledError, CheckError, CommunicationError, CompileError, DeviceError, DriverError, DtypeError, FileError, FormatError,
                         IndexOverflowError, InvalidError, MemoryLimitError, OutOfMemoryError, PatternError, ShapeError,
                         TulleError)
