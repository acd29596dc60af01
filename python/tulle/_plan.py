# SPDX-License-Identifier: MIT
"""Plans: products with the same patterns of A and B and other values."""
from __future__ import annotations

from ctypes import byref, c_void_p
from typing import Any, Optional, Union

import numpy as np

from . import _lib
from ._context import Context, Core, Progress, Stats, context_for, stats_of
from ._kinds import kind_of, same_family
from ._lib import tl
from ._matmul import op_of, pair_of
from ._memory import DTYPE, INDEX_DTYPE
from .errors import DtypeError, InvalidError, PatternError, ShapeError, TulleError


class PlanCore:
    """A plan of the library, freed with the last reference of its object and its results, and always before
    its context.
    """
    __slots__ = ("handle", "context", "keep", "free", "device", "__array_interface__", "__cuda_array_interface__")

    def __init__(self, context: Core, keep: list, free, device: str = "cpu") -> None:
        self.handle = c_void_p()
        self.context, self.keep, self.free, self.device = context, keep, free, device

    def __del__(self) -> None:
        if self.handle:
            self.context.drop(self.free, self.handle)


def given_values(xp, values, count: int, dtype: np.dtype, name: str, compressed: bool = True):
    """Checks the caller's values: as many as the operand has entries, and of the plan's type."""
    if not compressed:
        raise InvalidError(f"{name}: the operand was no CSR or CSC matrix, so nobody knows where values of another order belong; "
                           f"make the plan of one that is")
    if not hasattr(values, "shape") or not hasattr(values, "dtype"):
        raise DtypeError(f"{name} is a {type(values).__module__}.{type(values).__qualname__}, it must be an array")
    kind = kind_of(values, name)
    if kind.sparse:
        raise DtypeError(f"{name} is sparse, it must be an array of the operand's values")
    if kind.arrays(values) is not xp:
        raise DtypeError(f"{name} is an array of another library or device than the operand's")
    values = kind.array(values)
    if len(values.shape) != 1 or len(values) < count:
        raise ShapeError(f"{name} has the shape {tuple(values.shape)}, the operand {count} entries")
    if xp.dtype(values) != dtype:
        if xp.dtype(values).kind not in "biuf" + dtype.kind:
            raise DtypeError(f"{name} are {xp.dtype(values)}, the plan is for {dtype}")
        values = xp.cast(values, dtype)
    return xp.flat(values)


class Plan:
    """A product that is repeated with other values of A and B and the same patterns.

    Creating it takes about as long as a product; a run is only the numeric phase. The patterns of A and B must
    not change while the plan exists. ``plan(a_values, b_values, out=)`` returns C. The values are arrays with
    the length and order of those of A and B (``A.data`` in SciPy); None stands for the arrays that A and B had
    when the plan was created, with their current contents. ``out`` is such an array for C, or an earlier C of
    this plan (or a copy of one), whose values are replaced. All results share the read-only arrays of their
    pattern.

    >>> import tulle
    >>> A = tulle.gallery("poisson2d:50")
    >>> plan = tulle.Plan(A, A)
    >>> C = plan()
    >>> D = plan(2 * A.data, A.data)
    >>> float(abs(D - 2 * C).max())
    0.0
    >>> plan(A.data, A.data, out=D) is D
    True
    """

    def __init__(self, A: Any, B: Any, *, out_dtype: Any = None, device: Union[None, str, Context] = None,
                 policy: Optional[str] = None, accumulator: Optional[str] = None, threads: Optional[int] = None,
                 memory_limit: Optional[int] = None, transpose_a: Union[bool, str] = False,
                 transpose_b: Union[bool, str] = False, progress: Optional[Progress] = None) -> None:
        self._core: Optional[PlanCore] = None
        kind_a, kind_b = kind_of(A, "A"), kind_of(B, "B")
        if not (kind_a.sparse and kind_b.sparse):
            raise DtypeError("a plan is for two sparse matrices")
        op_a, op_b = op_of(transpose_a, "transpose_a"), op_of(transpose_b, "transpose_b")
        pair = pair_of(A, B, kind_a, kind_b, out_dtype, op_a, op_b)
        self._pair, self._like, self._xp = pair, A, pair.xp
        self._values = (kind_a.parts(A).data, kind_b.parts(B).data)
        self._compressed = (kind_a.compressed(A), kind_b.compressed(B))
        self._context = context_for(device, pair.xp.place(pair.keep[0]))
        self._progress = progress
        options = pair.options(pair.xp.on_device, policy, accumulator, threads, memory_limit, plan=True)
        core = PlanCore(self._context.core, pair.keep, tl.plan_free, self._context.device)
        try:
            self._context.run(self._size, tl.plan_create, self._context.handle, pair.left, pair.right, options,
                              byref(core.handle), progress=progress, stream=pair.xp.stream(pair.keep[0]))
        except TulleError as error:
            raise pair.said(error) from None
        self._core = core
        self._pattern = self._take_pattern(core)

    @property
    def _size(self) -> int:
        return self._pair.left.nnz + self._pair.right.nnz

    def _take_pattern(self, core: PlanCore):
        """(indptr, indices), which belong to the plan. On a device they are copies, because the pattern is in
        device memory then; also if the array library has no read-only arrays.
        """
        view = tl.plan_pattern(core.handle)
        self.nnz: int = view.nnz
        self.dtype = DTYPE[view.val_type] if not self._pair.dtype else self._pair.dtype
        arrays = []
        wide = self._pair.c_index() or max(view.ptr_type, view.idx_type)
        if max(view.nnz, view.cols) >= 2**31:
            wide = _lib.I64
        scipy = self._pair.kind.family == "SciPy"
        for address, count, number in ((view.row_ptr, view.rows + 1, view.ptr_type), (view.col_idx, view.nnz, view.idx_type)):
            array = self._xp.wrap(core, address, count, INDEX_DTYPE[number])
            if not scipy or number != wide:
                array = self._xp.copy(array, INDEX_DTYPE[wide])
            if scipy:
                array.flags.writeable = False
            arrays.append(array)
        return arrays

    def __call__(self, a_values: Any = None, b_values: Any = None, out: Any = None) -> Any:
        if self._core is None:
            raise InvalidError("this plan is closed")
        xp, pair = self._xp, self._pair
        a, b = (given_values(xp, now if given is None else given, len(now), self.dtype, name, given is None or compressed)
                for given, now, name, compressed in zip((a_values, b_values), self._values, ("a_values", "b_values"),
                                                        self._compressed))
        result, data = self._target(out)
        first, second = (b, a) if pair.swapped else (a, b)
        self._context.run(self._size, tl.plan_run, self._core.handle, xp.address(first), xp.address(second), xp.address(data),
                          progress=self._progress, stream=xp.stream(pair.keep[0]))
        if result is not None:
            return result
        return pair.kind.build(self._like, pair.shape, *self._pattern, data, pair.swapped)

    def _target(self, out):
        """(object to return or None, array for the values)"""
        xp = self._xp
        if out is None:
            return None, xp.empty(self._values[0], (self.nnz,), self.dtype)
        whole = kind_of(out, "out")
        if whole.arrays(out) is not xp:
            raise DtypeError("out is an array of another library or device than the operands")
        if whole.sparse:
            self._as_before(whole, out)
        data = whole.target(out)
        if tuple(data.shape) != (self.nnz,) or xp.dtype(data) != self.dtype or xp.flat(data) is not data:
            raise ShapeError(f"out has the shape {tuple(data.shape)} and {xp.dtype(data)} values; C has {self.nnz} entries of "
                             f"{self.dtype}, side by side")
        if getattr(getattr(data, "flags", None), "writeable", True) is False:
            raise InvalidError("out cannot be written to")
        return (out if whole.sparse else None), data

    def _as_before(self, whole, out) -> None:
        """Rejects a sparse ``out`` whose pattern is not exactly that of C: values would get to wrong positions."""
        pair = self._pair
        same_family(pair.kind, whole, self._like, out, "out")
        if tuple(out.shape) != pair.shape:
            raise ShapeError(f"out is {out.shape[0]} x {out.shape[1]}, C is {pair.shape[0]} x {pair.shape[1]}")
        if whole.compressed(out):
            parts = whole.parts(out)
            if parts.by_columns == pair.swapped and all(map(self._same, (parts.indptr, parts.indices), self._pattern)):
                return
        raise PatternError(f"out must be a C of this plan, or a copy of one: stored by {'columns' if pair.swapped else 'rows'}, with "
                           f"entries in the same places")

    def _same(self, given, own) -> bool:
        """Whether two index arrays are equal; no comparison is needed if they are the same memory."""
        if tuple(given.shape) != tuple(own.shape):
            return False
        xp = self._xp
        return xp.dtype(given) == xp.dtype(own) and xp.address(given) == xp.address(own) and xp.strides(given) == xp.strides(own) \
            or bool((given == own).all())

    def stats(self) -> Stats:
        """Counts, times and memory of the plan, or of its last run."""
        if self._core is None:
            raise InvalidError("this plan is closed")
        raw = _lib.Stats()
        tl.plan_stats(self._core.handle, byref(raw))
        return stats_of(raw)

    def close(self) -> None:
        """Closes the plan; its memory is freed with the last result."""
        self._core = None
        self._pattern = None

    def __reduce__(self):
        raise TypeError("a plan belongs to its process and cannot be pickled")
