# SPDX-License-Identifier: MIT
"""C = A*B, for two sparse matrices of the caller's kind.

A matrix in CSC is its transpose in CSR. C is stored like A: if A is CSC, C^T = B^T * A^T is computed, and the
rows of C^T are the columns of C, so nothing is converted. If B is not stored like A, the library transposes it.
"""
from __future__ import annotations

from ctypes import byref
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from . import _lib
from ._arrays import common_dtype, csr_view, shapes_meet, wrapped
from ._context import Context, Progress, _name, _whole, context_for
from ._kinds import Kind, _tuple, kind_of, same_family
from ._lib import tl
from ._memory import Owned
from .errors import DtypeError, InvalidError, ShapeError, TulleError, in_callers_words

OPS = {False: _lib.KEEP, True: _lib.TRANSPOSE, "conj": _lib.ADJOINT}


def named(name: str, op: int) -> str:
    """The name of an operand in error messages: ``A``, ``A^T`` or ``A^H``."""
    return name + ("", "^T", "^H")[op]


def op_of(word: Any, name: str) -> int:
    """The library's constant for ``transpose_a=``."""
    try:
        return OPS[word]
    except (KeyError, TypeError):
        raise InvalidError(f"{name} is {word!r}: it may be False, True, or \"conj\" for the conjugate transpose") from None


class Pair(NamedTuple):
    """Two operands as the library sees them."""
    left: _lib.Csr              # the operands in the library's order: A and B, or B^T and A^T
    right: _lib.Csr
    op_left: int
    op_right: int
    swapped: bool
    shape: tuple                # of C
    dtype: np.dtype
    kind: Kind                  # of A, and so of C
    xp: Any                     # the library of the arrays of both
    keep: list
    index_type: int             # of C; 0: any
    by_columns: tuple           # whether the caller's A and B are stored by columns

    def c_index(self) -> int:
        """The index type of C; 0: 32 bits if they suffice. As in SciPy, 64 bits if any index array of A or B has 64."""
        if self.index_type:
            return self.index_type
        a, b = self.left, self.right
        return _lib.I64 if _lib.I64 in (a.idx_type, b.idx_type, a.ptr_type, b.ptr_type) else 0

    def options(self, place: bool = False, policy=None, accumulator=None, threads=None, memory_limit=None, drop_zeros=False,
                trust=False, plan=False) -> Optional[_lib.Options]:
        """The library's options; None if all have default values."""
        wide = self.c_index()
        if not (wide or place or self.op_left or self.op_right or policy or accumulator or threads or memory_limit or drop_zeros
                or trust):
            return None
        return _lib.Options(policy=_name(policy, "policy"), accumulator=_name(accumulator, "accumulator"),
                            threads=_whole(threads, "threads") if threads is not None else 0,
                            memory_limit=_whole(memory_limit, "memory_limit") if memory_limit is not None else 0,
                            op_a=self.op_left, op_b=self.op_right, c_ptr_type=wide,
                            c_idx_type=0 if plan else wide,     # in plans, columns of C have the type of B's
                            drop_zeros=int(bool(drop_zeros)), trust_inputs=int(bool(trust)), c_place=_lib.DEVICE if place else _lib.HOST)

    def transposed(self) -> Pair:
        """The same for C^T = B^T * A^T, whose rows are the columns of C."""
        left, right = (flipped(op, True, self.dtype) for op in (self.op_right, self.op_left))
        return self._replace(left=self.right, right=self.left, op_left=left, op_right=right, swapped=not self.swapped)

    def said(self, error: TulleError) -> TulleError:
        """The library's error message, rewritten if its A and B are not the caller's."""
        a, b = ("A", self.by_columns[0]), ("B", self.by_columns[1])
        if in_callers_words(error, {"A": b if self.swapped else a, "B": a if self.swapped else b}) or not self.swapped:
            return error
        import re
        if re.search(r"\b([AB]|rows?|columns?)\b", str(error)):
            error.args = (f"{error} (C is stored by columns: A stands for the transpose of B here, B for that of A, rows for "
                          f"columns)",)
        return error


def pair_of(A: Any, B: Any, kind_a: Kind, kind_b: Kind, out_dtype=None, op_a: int = 0, op_b: int = 0) -> Pair:
    """Prepares two sparse operands."""
    if kind_a is not kind_b or B is not A:
        same_family(kind_a, kind_b, A, B)
    xp = kind_a.arrays(A)
    a = kind_a.parts(A)
    b = a if B is A else kind_b.parts(B)
    shape_a = (a.cols, a.rows) if op_a else (a.rows, a.cols)
    shape_b = (b.cols, b.rows) if op_b else (b.rows, b.cols)
    if shape_a[1] != shape_b[0]:
        shapes_meet(shape_a, shape_b, named("A", op_a), named("B", op_b))
    dtype = common_dtype(xp.dtype(a.data), xp.dtype(b.data), out_dtype)
    keep: list = []
    view_a = csr_view(xp, a, dtype, "A", keep)
    view_b = view_a if b is a else csr_view(xp, b, dtype, "B", keep)
    shape, index_type = (shape_a[0], shape_b[1]), kind_a.index_type(A)
    if a.by_columns:
        return Pair(view_b, view_a, flipped(op_b, not b.by_columns, dtype), op_a, True, shape, dtype, kind_a, xp, keep,
                    index_type, (True, b.by_columns))
    return _tuple(Pair, (view_a, view_b, op_a, flipped(op_b, b.by_columns, dtype), False, shape, dtype, kind_a, xp, keep, index_type,
                         (False, b.by_columns)))


def flipped(op: int, other: bool, dtype: np.dtype) -> int:
    """The op for a view; ``other``: the view is the transpose of the operand."""
    if not other:
        return op
    if op == _lib.ADJOINT and dtype.kind == "c":
        raise InvalidError("the conjugate transpose would have to be made of a matrix that is stored the other way, by rows or by "
                           "columns: bring both operands to one format first")
    return _lib.KEEP if op else _lib.TRANSPOSE


def matmul(A: Any, B: Any, *, out_dtype: Any = None, device: Union[None, str, Context] = None, policy: Optional[str] = None,
           threads: Optional[int] = None, memory_limit: Optional[int] = None, transpose_a: Union[bool, str] = False,
           transpose_b: Union[bool, str] = False, accumulator: Optional[str] = None, drop_zeros: bool = False,
           trust: bool = False, progress: Optional[Progress] = None, out: Any = None) -> Any:
    """The product of A and B, of which at least one is sparse.

    The product of two sparse matrices is of A's kind (SciPy's CSR, CSC, ..., CuPy's, PyTorch's) and has sorted
    rows; with a dense operand the result is dense, see :func:`tulle.spmm`. Nothing is copied: the result uses
    memory of the library, which is freed with it.

    ======================  =================================================================================
    out_dtype               the type to which both are converted first; None: NumPy's result type
    device                  "cpu", "cuda:0", ... or a :class:`tulle.Context`; None: where the operands are
    policy, accumulator     the algorithm, see ``tulle explain --list``; None: chosen for the matrices
    threads                 the number of threads; None: the context's
    memory_limit            bytes for C and everything else except A and B
    transpose_a, _b         True: the transpose of the operand, "conj": the conjugate transpose
    drop_zeros              drops entries of C that are computed as zero
    trust                   skips the check of the operands: invalid ones may then crash the program
    progress                called as progress(stage, fraction); a true return value cancels
    out                     the array for a dense result
    ======================  =================================================================================

    >>> import numpy as np, scipy.sparse as sp, tulle
    >>> A = sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0]]))
    >>> tulle.matmul(A, A).toarray()
    array([[9., 0., 2.],
           [0., 9., 0.],
           [4., 0., 8.]])
    >>> tulle.matmul(A, np.array([1.0, 1, 1]))
    array([3., 3., 4.])
    """
    kind_a, kind_b = kind_of(A, "A"), kind_of(B, "B")
    op_a = op_of(transpose_a, "transpose_a") if transpose_a else 0
    op_b = op_of(transpose_b, "transpose_b") if transpose_b else 0
    if not (kind_a.sparse and kind_b.sparse):
        return _with_dense(A, B, kind_a, kind_b, op_a, op_b, out, (accumulator, drop_zeros), out_dtype=out_dtype,
                           device=device, policy=policy, threads=threads, memory_limit=memory_limit, trust=trust,
                           progress=progress)
    if out is not None:
        raise InvalidError("out is for dense results; C = A*B of sparse matrices has a pattern of its own")
    pair = pair_of(A, B, kind_a, kind_b, out_dtype, op_a, op_b)
    xp = pair.xp
    context = context_for(device, xp.place(pair.keep[0]))
    options = pair.options(xp.on_device, policy, accumulator, threads, memory_limit, drop_zeros, trust)
    owner = multiplied(context, pair, options, progress)
    indptr, indices, data = wrapped(xp, owner, owner.view())
    result = kind_a.build(A, pair.shape, indptr, indices, data, pair.swapped)
    return _in_blocks(A, B, result) if getattr(A, "format", "") == "bsr" and not op_a else result


def multiplied(context: Context, pair: Pair, options: Optional[_lib.Options], progress: Optional[Progress] = None) -> Owned:
    """Computes the product. If the library's check finds unsorted rows, it is repeated with sorted copies.
    """
    left, right, handle = pair.left, pair.right, context.handle
    stream = pair.xp.stream(pair.keep[0])
    owner = Owned(context.device)
    size = left.nnz + right.nnz
    try:
        status = context.run(size, tl.multiply, handle, left, right, options, byref(owner.handle), allow=_lib.EPATTERN,
                             progress=progress, stream=stream)
        if status:
            options = options or _lib.Options()
            options.sort_inputs = 1
            context.run(size, tl.multiply, handle, left, right, options, byref(owner.handle), progress=progress,
                        stream=stream)
    except TulleError as error:
        raise pair.said(error) from None
    return owner


def _with_dense(A, B, kind_a: Kind, kind_b: Kind, op_a: int, op_b: int, out, sparse_only: tuple, **given):
    from ._spmm import dense_left, dense_right
    if any(sparse_only):
        raise InvalidError("accumulator and drop_zeros are for products of two sparse matrices")
    if kind_a.sparse:
        if op_b:
            raise InvalidError("transpose_b is for sparse operands; the transpose of a dense B is B.T")
        return dense_right(A, B, kind_a, kind_b, op_a, out, **given)
    if kind_b.sparse:
        if op_a:
            raise InvalidError("transpose_a is for sparse operands; the transpose of a dense A is A.T")
        return dense_left(A, B, kind_a, kind_b, op_b, out, **given)
    raise DtypeError("both operands are dense: that is a product for numpy.matmul")


def _in_blocks(A, B, result):
    """If A is BSR, the result is BSR, as in SciPy; the width of its blocks is that of B's."""
    return result.tobsr(blocksize=(A.blocksize[0], B.blocksize[1] if getattr(B, "format", "") == "bsr" else 1))


def verify(A: Any, B: Any, C: Any, *, transpose_a: Union[bool, str] = False, transpose_b: Union[bool, str] = False,
           device: Union[None, str, Context] = None) -> float:
    """Checks that C is the product of A and B. Returns the error relative to the sum of magnitudes; raises
    CheckError if it is too large.

    Compares C*x with A*(B*x) for random x, which takes far less time than the product. C may come from any
    library, in CSR or CSC, with unsorted rows. All are converted to its type, integers to float64.

    >>> import tulle
    >>> A = tulle.gallery("poisson2d:20")
    >>> tulle.verify(A, A, tulle.matmul(A, A)) < 1e-14
    True
    """
    kind_a, kind_b, kind_c = kind_of(A, "A"), kind_of(B, "B"), kind_of(C, "C")
    for kind, name in ((kind_a, "A"), (kind_b, "B"), (kind_c, "C")):
        if not kind.sparse:
            raise DtypeError(f"{name} is dense: verify is for the product of two sparse matrices")
    same_family(kind_a, kind_c, A, C, "C")
    c, ops = kind_c.parts(C), (op_of(transpose_a, "transpose_a"), op_of(transpose_b, "transpose_b"))
    dtype = kind_a.arrays(A).dtype(c.data)
    try:
        pair = pair_of(A, B, kind_a, kind_b, np.dtype("float64") if dtype.kind in "biu" else dtype, *ops)
    except DtypeError:                  # A and B are complex and C is not: it is wrong, and the check says where
        pair = pair_of(A, B, kind_a, kind_b, None, *ops)
    if (c.rows, c.cols) != pair.shape:
        raise ShapeError(f"C is {c.rows} x {c.cols}, the product is {pair.shape[0]} x {pair.shape[1]}")
    if c.by_columns != pair.swapped:
        pair = pair.transposed()
    return _error(context_for(device, pair.xp.place(pair.keep[0])), pair, csr_view(pair.xp, c, pair.dtype, "C", pair.keep))


def _error(context: Context, pair: Pair, c: _lib.Csr) -> float:
    """The check of verify(); if it finds unsorted rows, it is repeated with sorted copies."""
    from ctypes import c_double
    error, options, stream = c_double(), pair.options(), pair.xp.stream(pair.keep[0])
    size = pair.left.nnz + pair.right.nnz + c.nnz
    c_now = c
    for again in (False, True):
        try:
            status = context.run(size, tl.product_check, context.handle, pair.left, pair.right, c_now, options, byref(error),
                                 allow=0 if again else _lib.EPATTERN, stream=stream)
        except TulleError as failure:
            raise pair.said(failure) from None
        if not status:
            break
        owner, options = Owned(context.device), options or _lib.Options()
        options.sort_inputs = 1
        try:
            context.run(size, tl.csr_sort, context.handle, c, byref(owner.handle), stream=stream)
        except TulleError as failure:
            in_callers_words(failure, {"A": ("C", pair.swapped)})       # the operands are swapped if C is by columns
            raise
        c_now = owner.view()
    return error.value
