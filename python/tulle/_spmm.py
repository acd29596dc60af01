# SPDX-License-Identifier: MIT
"""A sparse matrix times a dense one: Y = alpha*op(A)*X + beta*Y; a dense times a sparse one is computed as
the transpose of that.
"""
from __future__ import annotations

from ctypes import byref
from typing import Any, Optional, Union

import numpy as np

from . import _lib
from ._arrays import common_dtype, csr_view, dense_view, shapes_meet
from ._context import Context, Progress, _name, _whole, context_for
from ._kinds import DenseKind, Kind, kind_of, same_family
from ._lib import tl
from ._matmul import flipped, named, op_of
from ._memory import Owned
from .errors import DtypeError, InvalidError, ShapeError, TulleError, in_callers_words


def spmm(A: Any, X: Any, *, alpha: complex = 1, beta: complex = 0, out: Any = None, out_dtype: Any = None,
         device: Union[None, str, Context] = None, policy: Optional[str] = None, threads: Optional[int] = None,
         memory_limit: Optional[int] = None, transpose_a: Union[bool, str] = False, allow_tf32: bool = False,
         trust: bool = False, progress: Optional[Progress] = None) -> Any:
    """``alpha*A*X + beta*out`` for a sparse A and a dense X of one or two dimensions.

    X and ``out`` may be row-major or column-major, with any leading dimension, both in host memory or both on a
    CUDA device. Without ``out`` a new array is allocated; otherwise ``out``, which must have the type of the
    product, is overwritten and returned. The other arguments are those of :func:`tulle.matmul`; ``allow_tf32``
    allows a GPU to round floats to TF32, which has 10 bits of mantissa.

    >>> import numpy as np, tulle
    >>> A = tulle.gallery("tridiagonal:4")
    >>> tulle.spmm(A, np.ones((4, 2)), alpha=2)
    array([[2., 2.],
           [0., 0.],
           [0., 0.],
           [2., 2.]])
    """
    kind_a, kind_x = kind_of(A, "A"), kind_of(X, "X")
    if not kind_a.sparse or kind_x.sparse:
        raise DtypeError("spmm multiplies a sparse A with a dense X")
    return dense_right(A, X, kind_a, kind_x, op_of(transpose_a, "transpose_a"), out, alpha=alpha, beta=beta,
                       out_dtype=out_dtype, device=device, policy=policy, threads=threads, memory_limit=memory_limit,
                       allow_tf32=allow_tf32, trust=trust, progress=progress)


def dense_right(A, X, kind_a: Kind, kind_x: DenseKind, op: int, out, **given):
    """Sparse times dense."""
    same_family(kind_a, kind_x, A, X)
    xp = kind_a.arrays(A)
    x = kind_x.array(X)
    a = kind_a.parts(A)
    vector, x2, out2 = as_matrix(x, None if out is None else array_of(out, kind_x), right=True)
    rows, cols = (a.cols, a.rows) if op else (a.rows, a.cols)
    shapes_meet((rows, cols), x2.shape, named("A", op), "X")
    out_meets(out2, (rows, x2.shape[1]), f"{named('A', op)}*X")
    y = _run(xp, a, x2, out2, op, **given)
    return out if out is not None else as_given(X, kind_x, y, (slice(None), 0) if vector else ...)


def dense_left(X, B, kind_x: DenseKind, kind_b: Kind, op: int, out, **given):
    """Dense times sparse: Y = X*B is computed as Y^T = B^T * X^T; transposing a dense matrix needs no copy.
    """
    same_family(kind_x, kind_b, X, B)
    xp = kind_b.arrays(B)
    x = kind_x.array(X)
    b = kind_b.parts(B)
    vector, x2, out2 = as_matrix(x, None if out is None else array_of(out, kind_x), right=False)
    shapes_meet(x2.shape, (b.cols, b.rows) if op else (b.rows, b.cols), "X", named("B", op))
    rows = b.cols if not op else b.rows
    out_meets(out2, (x2.shape[0], rows), f"X*{named('B', op)}")
    if op == _lib.ADJOINT and xp.dtype(b.data).kind == "c":
        raise InvalidError("a dense matrix times the conjugate transpose of a sparse one: give B.conj() and transpose_b=True")
    if out2 is None:
        dtype = common_dtype(xp.dtype(b.data), xp.dtype(x2), given.get("out_dtype"))
        out2 = xp.empty(x2, (x2.shape[0], rows), dtype)
    y = _run(xp, b, x2.T, out2.T, _lib.KEEP if op else _lib.TRANSPOSE, name="B", **given).T
    return out if out is not None else as_given(X, kind_x, y, (0, slice(None)) if vector else ...)


def as_given(X, kind_x: DenseKind, y, part):
    """The product in the form of the caller's X: a part of the array ``y``, with X's library and class."""
    return np.asmatrix(y) if isinstance(X, np.matrix) else kind_x.give(X, y[part])


def array_of(out, kind_x: DenseKind):
    """The array of a caller's ``out``."""
    kind = kind_of(out, "out")
    if kind is not kind_x:
        raise DtypeError("out must be a dense array of the library that X comes from")
    return kind.target(out)


def out_meets(out, shape: tuple, product: str) -> None:
    """Rejects an ``out`` that does not have the shape of the product."""
    if out is not None and tuple(out.shape) != shape:
        raise ShapeError(f"out is {out.shape[0]} x {out.shape[1]} and should be as {product}, {shape[0]} x {shape[1]}")


def as_matrix(x, out, right: bool):
    """A vector as a matrix of one column (as the left operand: of one row)."""
    if len(x.shape) not in (1, 2):
        raise ShapeError(f"X has {len(x.shape)} dimensions; tulle multiplies matrices and vectors, of 2 and 1")
    if out is not None and len(out.shape) != len(x.shape):
        raise ShapeError(f"out has {len(out.shape)} dimensions, but the product {len(x.shape)}")
    vector = len(x.shape) == 1
    if vector:
        x = x[:, None] if right else x[None, :]
        out = out if out is None else out[:, None] if right else out[None, :]
    return vector, x, out


def _run(xp, a, x, y, op: int, *, out_dtype=None, device=None, policy=None, threads=None, memory_limit=None, trust=False,
         progress=None, alpha=1, beta=0, allow_tf32=False, name: str = "A"):
    """Calls the library: y is overwritten, or allocated if it is None. ``name`` is the caller's name of A."""
    dtype = common_dtype(xp.dtype(a.data), xp.dtype(x), out_dtype)
    keep: list = []
    view_a = csr_view(xp, a, dtype, name, keep)
    view_x = dense_view(xp, x, dtype, keep)
    y, view_y = target(xp, x, y, (a.cols if op else a.rows, x.shape[1]), dtype, beta, keep)
    alpha, beta = (factor(f, default, dtype, word, keep) for f, default, word in ((alpha, 1, "alpha"), (beta, 0, "beta")))
    options = _lib.SpmmOptions(
        policy=_name(policy, "policy"),
        memory_limit=_whole(memory_limit, "memory_limit") if memory_limit is not None else 0,
        op_a=flipped(op, a.by_columns, dtype), threads=_whole(threads, "threads") if threads is not None else 0,
        trust_inputs=int(bool(trust)), allow_tf32=int(bool(allow_tf32)))
    context = context_for(device, xp.place(keep[0]))
    stream = xp.stream(keep[0])
    size = view_a.nnz + x.shape[0] * x.shape[1]
    try:
        status = context.run(size, tl.spmm, context.handle, alpha, view_a, view_x, beta, view_y, options, allow=_lib.EPATTERN,
                             progress=progress, stream=stream)
        if status:                      # the check found unsorted rows: repeat with a sorted copy
            owner = Owned(context.device)
            context.run(size, tl.csr_sort, context.handle, view_a, byref(owner.handle), progress=progress, stream=stream)
            context.run(size, tl.spmm, context.handle, alpha, owner.view(), view_x, beta, view_y, options, progress=progress,
                        stream=stream)
    except TulleError as error:
        in_callers_words(error, {"A": (name, a.by_columns)})
        raise
    return y


def target(xp, x, y, shape: tuple, dtype: np.dtype, beta, keep: list):
    """The array for the product: (y, the library's view of it); y is allocated if it is None."""
    if y is None:
        if beta != 0:
            raise InvalidError("beta is not 0, but there is no out to add to")
        y = xp.empty(x, shape, dtype)
    elif getattr(getattr(y, "flags", None), "writeable", True) is False:
        raise InvalidError("out cannot be written to")
    view_y = dense_view(xp, y, dtype, keep, copy=False)
    if view_y is None:
        raise DtypeError(f"out has {xp.dtype(y)} values and strides of {tuple(xp.strides(y))} bytes; it must have aligned {dtype} "
                         f"values, by rows or by columns")
    return y, view_y


def factor(value, default: int, dtype: np.dtype, word: str, keep: list):
    """The address of alpha or beta in the type of the product; None if it is the library's default."""
    if not isinstance(value, (int, float, complex, np.number)) or dtype.kind == "f" and np.iscomplexobj(value):
        raise DtypeError(f"{word} is {value!r}, which is no factor for {dtype} values")
    if value == default:
        return None
    try:
        number = np.asarray(value, dtype)
    except OverflowError:               # an integer beyond the range of double
        raise DtypeError(f"{word} is larger than any {dtype} value") from None
    keep.append(number)
    return number.__array_interface__["data"][0]
