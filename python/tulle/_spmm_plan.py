# SPDX-License-Identifier: MIT
"""Plans for sparse times dense: A is checked, transposed and divided among threads once, and multiplied many
times.
"""
from __future__ import annotations

from ctypes import byref
from typing import Any, Optional, Union

import numpy as np

from . import _lib
from ._arrays import common_dtype, csr_view, dense_view, shapes_meet
from ._context import Context, Progress, Stats, _name, _whole, context_for, stats_of
from ._kinds import kind_of, same_family
from ._lib import tl
from ._matmul import flipped, named, op_of
from ._plan import PlanCore, given_values
from ._spmm import array_of, as_given, as_matrix, factor, out_meets, target
from .errors import DtypeError, InvalidError, TulleError, in_callers_words


class SpmmPlan:
    """A sparse A that is multiplied with many dense X: ``plan(X)`` is ``tulle.spmm(A, X)``.

    ``op`` corresponds to ``transpose_a`` of :func:`tulle.spmm`: True for the transpose of A, "conj" for the
    conjugate transpose. ``plan(X, out=, alpha=, beta=)`` returns alpha\\*op(A)\\*X + beta\\*out. The plan keeps a
    copy of A's values, which :meth:`set_values` replaces; the pattern of A is not copied and must not change
    while the plan exists. ``dtype`` is the type of X and of the product: that of A, or ``out_dtype``. Rows of A
    must be sorted and without duplicates (``A.sum_duplicates()`` of SciPy ensures this).

    >>> import numpy as np, tulle
    >>> A = tulle.gallery("tridiagonal:4")
    >>> plan = tulle.SpmmPlan(A)
    >>> plan(np.ones((4, 2)), alpha=2)
    array([[2., 2.],
           [0., 0.],
           [0., 0.],
           [2., 2.]])
    >>> plan.set_values(-A.data)
    >>> plan(np.ones(4))
    array([-1.,  0.,  0., -1.])
    """

    def __init__(self, A: Any, *, op: Union[bool, str] = False, out_dtype: Any = None,
                 device: Union[None, str, Context] = None, policy: Optional[str] = None, threads: Optional[int] = None,
                 memory_limit: Optional[int] = None, allow_tf32: bool = False, trust: bool = False,
                 progress: Optional[Progress] = None) -> None:
        self._core: Optional[PlanCore] = None
        kind = kind_of(A, "A")
        if not kind.sparse:
            raise DtypeError("a plan of sparse times dense is for a sparse A")
        self._op = number = op_of(op, "op")
        a = kind.parts(A)
        xp = kind.arrays(A)
        self.dtype: np.dtype = common_dtype(xp.dtype(a.data), xp.dtype(a.data), out_dtype)
        self.shape: tuple = (a.cols, a.rows) if number else (a.rows, a.cols)
        self._kind, self._like, self._xp, self._progress = kind, A, xp, progress
        keep: list = []
        view = csr_view(xp, a, self.dtype, "A", keep)
        self.nnz: int = view.nnz
        options = _lib.SpmmOptions(
            policy=_name(policy, "policy"), op_a=flipped(number, a.by_columns, self.dtype),
            memory_limit=_whole(memory_limit, "memory_limit") if memory_limit is not None else 0,
            threads=_whole(threads, "threads") if threads is not None else 0, trust_inputs=int(bool(trust)),
            allow_tf32=int(bool(allow_tf32)))
        self._context = context_for(device, xp.place(keep[0]))
        core = PlanCore(self._context.core, keep, tl.spmm_plan_free)
        try:
            self._context.run(self.nnz, tl.spmm_plan_create, self._context.handle, view, options, byref(core.handle),
                              progress=progress, stream=xp.stream(keep[0]))
        except TulleError as error:
            in_callers_words(error, {"A": ("A", a.by_columns)})
            raise
        self._core = core

    def __call__(self, X: Any, *, out: Any = None, alpha: complex = 1, beta: complex = 0) -> Any:
        core, xp = self._open(), self._xp
        kind_x = kind_of(X, "X")
        if kind_x.sparse:
            raise DtypeError("this plan multiplies a sparse A with a dense X")
        same_family(self._kind, kind_x, self._like, X)
        x = kind_x.array(X)
        vector, x2, out2 = as_matrix(x, None if out is None else array_of(out, kind_x), right=True)
        shapes_meet(self.shape, x2.shape, named("A", self._op), "X")
        out_meets(out2, (self.shape[0], x2.shape[1]), f"{named('A', self._op)}*X")
        if np.result_type(xp.dtype(x2), self.dtype) != self.dtype:
            raise DtypeError(f"X has {xp.dtype(x2)} values and the plan is for {self.dtype}: convert X, or make the plan with "
                             f"out_dtype=")
        keep: list = []
        view_x = dense_view(xp, x2, self.dtype, keep)
        y, view_y = target(xp, x2, out2, (self.shape[0], x2.shape[1]), self.dtype, beta, keep)
        a, b = factor(alpha, 1, self.dtype, "alpha", keep), factor(beta, 0, self.dtype, "beta", keep)
        self._context.run(self.nnz + x2.shape[0] * x2.shape[1], tl.spmm_plan_run, core.handle, a, view_x, b, view_y,
                          progress=self._progress, stream=xp.stream(core.keep[0]))
        return out if out is not None else as_given(X, kind_x, y, (slice(None), 0) if vector else ...)

    def set_values(self, a_values: Any) -> None:
        """Copies new values of A for all later products: one for each entry, in the order of the pattern.
        """
        core, xp = self._open(), self._xp
        values = given_values(xp, a_values, self.nnz, self.dtype, "a_values", self._kind.compressed(self._like))
        self._context.run(self.nnz, tl.spmm_plan_set_values, core.handle, xp.address(values), progress=self._progress,
                          stream=xp.stream(core.keep[0]))

    def stats(self) -> Stats:
        """Counts, times and memory of its last product, or of its creation."""
        raw = _lib.Stats()
        tl.spmm_plan_stats(self._open().handle, byref(raw))
        return stats_of(raw)

    def close(self) -> None:
        """Closes the plan and frees its memory."""
        self._core = None

    def _open(self) -> PlanCore:
        if self._core is None:
            raise InvalidError("this plan is closed")
        return self._core

    def __reduce__(self):
        raise TypeError("a plan belongs to its process and cannot be pickled")
