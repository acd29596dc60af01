# SPDX-License-Identifier: MIT
"""Products of sparse matrices, fast on any CPU and on GPUs.

>>> import tulle
>>> A = tulle.gallery("poisson2d:100")
>>> C = tulle.matmul(A, A)
>>> C.shape, C.nnz
((10000, 10000), 128004)

Modules are imported when one of their names is first used, according to the table below, so that importing
tulle takes no time.
"""
from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False                   # type checkers assume True; importing typing would take longer than all else

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
    globals()[name] = found             # so that later uses do not call this function
    return found


def __dir__() -> list[str]:
    return sorted(list(globals()) + __all__)


if TYPE_CHECKING:                       # the same table, for type checkers; "as" makes a name public for them
    from ._context import Context as Context, Stats as Stats
    from ._csr import Csr as Csr
    from ._devices import Device as Device, devices as devices, policies as policies
    from ._files import gallery as gallery, read as read, recipes as recipes, write as write
    from ._forecast import Forecast as Forecast, estimate as estimate, explain as explain
    from ._install import install as install, installed as installed, uninstall as uninstall
    from ._matmul import matmul as matmul, verify as verify
    from ._plan import Plan as Plan
    from ._spmm import spmm as spmm
    from ._spmm_plan import SpmmPlan as SpmmPlan
    from .errors import (CancelledError as CancelledError, CheckError as CheckError, CommunicationError as CommunicationError,
                         CompileError as CompileError, DeviceError as DeviceError, DriverError as DriverError,
                         DtypeError as DtypeError, FileError as FileError, FormatError as FormatError,
                         IndexOverflowError as IndexOverflowError, InvalidError as InvalidError,
                         MemoryLimitError as MemoryLimitError, OutOfMemoryError as OutOfMemoryError,
                         PatternError as PatternError, ShapeError as ShapeError, TulleError as TulleError)
