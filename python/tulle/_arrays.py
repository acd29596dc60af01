# SPDX-License-Identifier: MIT
"""Arrays of NumPy, and of CuPy and PyTorch on CUDA: conversion to addresses and back.

An operand consists of three arrays (:class:`Parts`); :func:`csr_view` and :func:`dense_view` make the
library's views of them. ``keep`` holds references to what a view points to, as conversions may have made copies.
"""
from __future__ import annotations

from ctypes import addressof, c_char
from typing import Any, NamedTuple, Optional

import numpy as np

from . import _lib
from ._memory import DTYPE, INDEX, INDEX_DTYPE, TYPE, device_array, host_array
from .errors import DtypeError, PatternError, ShapeError

_buffer = c_char.from_buffer
NAMES = "float32, float64, complex64 and complex128"


class Parts(NamedTuple):
    """Compressed rows, or columns, of a matrix of ``rows`` x ``cols``."""
    rows: int
    cols: int
    indptr: Any
    indices: Any
    data: Any
    by_columns: bool            # the arrays are rows of the transpose


class NumpyArrays:
    """Arrays in the host's memory."""
    on_device = False

    @staticmethod
    def dtype(x) -> np.dtype:
        return x.dtype

    @staticmethod
    def cast(x, dtype: np.dtype):
        return x.astype(dtype)

    copy = cast                         # cast() always returns a new array

    @staticmethod
    def flat(x):
        """The array itself if its values are aligned and contiguous, else a copy."""
        flags = x.flags
        return x if flags.c_contiguous and flags.aligned else np.array(x, order="C")

    @staticmethod
    def address(x) -> int:
        try:                            # takes a quarter of the time of the general code below
            return addressof(_buffer(x))
        except (TypeError, ValueError):             # read-only, or empty
            return x.__array_interface__["data"][0]

    @staticmethod
    def strides(x) -> tuple:
        return x.strides

    @staticmethod
    def place(x) -> Optional[str]:
        return None

    @staticmethod
    def stream(x) -> Optional[tuple]:
        """(object, handle) of the stream in which these arrays are used; arrays in host memory have none."""
        return None

    wrap = staticmethod(host_array)

    @staticmethod
    def empty(like, shape, dtype: np.dtype):
        return np.empty(shape, dtype)


class CudaArrays:
    """Arrays in the memory of a CUDA device, through ``__cuda_array_interface__``."""
    on_device = True

    @staticmethod
    def dtype(x) -> np.dtype:
        return np.dtype(x.__cuda_array_interface__["typestr"])

    @staticmethod
    def address(x) -> int:
        return x.__cuda_array_interface__["data"][0]

    @staticmethod
    def strides(x) -> tuple:
        interface = x.__cuda_array_interface__
        strides = interface.get("strides")
        if strides is None:
            size, strides = np.dtype(interface["typestr"]).itemsize, []
            for n in reversed(interface["shape"]):
                strides.insert(0, size)
                size *= n
        return tuple(strides)


class CupyArrays(CudaArrays):
    """Arrays of CuPy; work goes to CuPy's current stream."""

    @staticmethod
    def cast(x, dtype: np.dtype):
        return x.astype(dtype)

    copy = cast

    @staticmethod
    def flat(x):
        import cupy
        return x if x.flags.c_contiguous else cupy.ascontiguousarray(x)

    @staticmethod
    def place(x) -> Optional[str]:
        return f"cuda:{x.device.id}"

    @staticmethod
    def stream(x) -> Optional[tuple]:
        import cupy
        stream = cupy.cuda.get_current_stream(x.device.id)
        return stream, stream.ptr or LEGACY_STREAM

    @staticmethod
    def wrap(owner, address: int, count: int, dtype: np.dtype):
        import cupy
        return device_array(owner, address, count, dtype, cupy.asarray)

    @staticmethod
    def empty(like, shape, dtype: np.dtype):
        import cupy
        with like.device:
            return cupy.empty(shape, dtype)


LEGACY_STREAM = 1               # CU_STREAM_LEGACY; 0 would mean tulle's own stream


class TorchCudaArrays(CudaArrays):
    """Tensors of PyTorch on CUDA; work goes to PyTorch's current stream."""

    @staticmethod
    def cast(x, dtype: np.dtype):
        return x.to(torch_dtype(dtype))

    @staticmethod
    def copy(x, dtype: np.dtype):
        return x.to(torch_dtype(dtype), copy=True)

    @staticmethod
    def flat(x):
        return x.contiguous()

    @staticmethod
    def place(x) -> Optional[str]:
        return f"cuda:{x.device.index or 0}"

    @staticmethod
    def stream(x) -> Optional[tuple]:
        import torch
        stream = torch.cuda.current_stream(x.device)
        return stream, stream.cuda_stream or LEGACY_STREAM

    @staticmethod
    def wrap(owner, address: int, count: int, dtype: np.dtype):
        import torch
        if count == 0:
            return torch.empty(0, dtype=torch_dtype(dtype), device=owner.device)
        return device_array(owner, address, count, dtype, lambda x: torch.as_tensor(x, device=x.device))

    @staticmethod
    def empty(like, shape, dtype: np.dtype):
        import torch
        return torch.empty(shape, dtype=torch_dtype(dtype), device=like.device)


def torch_dtype(dtype: np.dtype):
    """PyTorch's name for a dtype of NumPy."""
    import torch
    return getattr(torch, dtype.name)


NUMPY, CUPY, TORCH_CUDA = NumpyArrays, CupyArrays, TorchCudaArrays

# -------------------------------------------------------------------------------------- value types


def common_dtype(a: np.dtype, b: np.dtype, out: Any = None) -> np.dtype:
    """The type in which a product is computed: NumPy's result type of both, or ``out``.

    >>> common_dtype(np.dtype("int32"), np.dtype("float32"))
    dtype('float64')
    """
    if out is None:
        if a is b and a in TYPE:
            return a
        try:
            found = np.result_type(a, b)
        except TypeError:
            raise DtypeError(f"tulle multiplies {NAMES}; these are {a} and {b} values, which have no type in common") from None
        if found not in TYPE:
            both = f"{a} values" if a == b else f"{a} and {b} values, which NumPy makes {found}"
            kinds = {a.kind, b.kind}
            hint = "" if kinds - set("biufc") else f": out_dtype=numpy.{'complex128' if 'c' in kinds else 'float64'} would convert them"
            raise DtypeError(f"tulle multiplies {NAMES}; these are {both}{hint}")
        return found if found.isnative else found.newbyteorder("=")
    try:
        found = np.dtype(out)
    except TypeError:
        raise DtypeError(f"out_dtype is {out!r}, which is not a dtype of NumPy") from None
    found = found if found.isnative else found.newbyteorder("=")
    if found not in TYPE:
        raise DtypeError(f"out_dtype is {found}; tulle multiplies {NAMES}")
    for operand in (a, b):
        if not np.can_cast(operand, found, "same_kind"):
            raise DtypeError(f"out_dtype is {found}, but an operand has {operand} values, which NumPy does not "
                             f"convert to that")
    return found


# -------------------------------------------------------------------------------------------- views


def csr_view(xp, parts: Parts, dtype: Optional[np.dtype], name: str, keep: list) -> _lib.Csr:
    """The library's view of a matrix, or of its transpose if it is stored by columns.

    dtype None: a view of the pattern, without values.
    """
    if xp is NUMPY:
        view = _plain_view(parts, dtype, keep)
        if view is not None:
            return view
    rows, cols, indptr, indices, data, by_columns = parts
    if by_columns:
        rows, cols = cols, rows
    indptr, ptr_type = _indices(xp, indptr, "row pointers", name)
    indices, idx_type = _indices(xp, indices, "indices", name)
    values = 0
    for x, what in ((indptr, "row pointers"), (indices, "indices"), (data, "values")):
        if len(x.shape) != 1:
            raise PatternError(f"{name}: its {what} are an array of {len(x.shape)} dimensions, they must be one of 1")
    if dtype is not None:
        if xp.dtype(data) != dtype:
            data = xp.cast(data, dtype)
        data = xp.flat(data)
        values = xp.address(data)
    # SciPy allows arrays that are longer than the number of entries.
    nnz = len(indices) if xp.on_device else _entries(indptr, rows, by_columns, name)
    if nnz > len(indices) or dtype is not None and nnz > len(data):
        raise PatternError(f"{name}: {nnz} entries are said to be there, but indices has {len(indices)} and data {len(data)}")
    keep += (indptr, indices, data)
    return _lib.Csr(rows, cols, nnz, xp.address(indptr), xp.address(indices), values, ptr_type, idx_type,
                    TYPE[dtype] if dtype is not None else _lib.TYPE["float64"], _lib.DEVICE if xp.on_device else _lib.HOST)


def _plain_view(parts: Parts, dtype: Optional[np.dtype], keep: list) -> Optional[_lib.Csr]:
    """The view of arrays that need no conversion; None if any of them does.

    It takes half the time of the general code, which matters for products of a hundred rows.
    """
    rows, cols, indptr, indices, data, by_columns = parts
    if by_columns:
        rows, cols = cols, rows
    ptr_type, idx_type = INDEX.get(indptr.dtype), INDEX.get(indices.dtype)
    if ptr_type is None or idx_type is None or data.dtype is not dtype or len(indptr) != rows + 1:
        return None
    nnz = indptr.item(-1)
    try:
        (count,), (values,) = indices.shape, data.shape
        if nnz > count or nnz > values:
            return None
        p, i, d = addressof(_buffer(indptr)), addressof(_buffer(indices)), addressof(_buffer(data))
    except (TypeError, ValueError):     # two-dimensional, not contiguous, read-only, or empty
        return None
    if (p | i | d) & 7:                 # perhaps not aligned
        return None
    keep += (indptr, indices, data)
    return _lib.Csr(rows, cols, nnz, p, i, d, ptr_type, idx_type, TYPE[dtype], _lib.HOST)


def _entries(indptr, rows: int, by_columns: bool, name: str) -> int:
    """The number of entries, from the last row pointer."""
    if len(indptr) != rows + 1:
        raise PatternError(f"{name}: there are {len(indptr)} row pointers for {rows} {'columns' if by_columns else 'rows'}")
    return indptr.item(-1)


def _indices(xp, x, what: str, name: str):
    """An array of indices of a type that the library supports, and the library's number of that type."""
    dtype = xp.dtype(x)
    number = INDEX.get(dtype)
    if number is None:
        if dtype.kind not in "iu":
            raise DtypeError(f"{name}: its {what} are {dtype}, they must be integers")
        number = _lib.I64
        x = xp.cast(x, INDEX_DTYPE[number])
    return xp.flat(x), number


def dense_view(xp, x, dtype: np.dtype, keep: list, copy: bool = True) -> Optional[_lib.Dense]:
    """The library's view of a dense matrix, row-major or column-major, with any leading dimension.

    For any other layout the view is of a copy, or None if ``copy`` is False.
    """
    if xp.dtype(x) != dtype:
        if not copy:
            return None
        x = xp.cast(x, dtype)
    if not xp.on_device and not x.flags.aligned:
        if not copy:
            return None
        x = np.array(x)
    rows, cols = x.shape
    size = dtype.itemsize
    down, right = xp.strides(x)
    if right == size and down % size == 0 and down >= size * cols or cols == 1 and down % size == 0 and down >= size:
        order, ld = _lib.BY_ROWS, down // size
    elif down == size and right % size == 0 and right >= size * rows:
        order, ld = _lib.BY_COLS, right // size
    elif rows == 1 and right == size or rows * cols == 0:
        order, ld = _lib.BY_ROWS, max(cols, 1)
    elif copy:
        x = xp.flat(x)
        order, ld = _lib.BY_ROWS, cols
    else:
        return None
    keep.append(x)
    return _lib.Dense(rows, cols, ld, TYPE[dtype], order, xp.address(x), _lib.DEVICE if xp.on_device else _lib.HOST)


def wrapped(xp, owner, view: _lib.Csr):
    """(indptr, indices, data) over the memory of a matrix of the library, with one index type for both.

    The library's types differ only if there are more entries than the type of the columns can count; then the
    columns are converted to the wider type.
    """
    indptr = xp.wrap(owner, view.row_ptr, view.rows + 1, INDEX_DTYPE[view.ptr_type])
    indices = xp.wrap(owner, view.col_idx, view.nnz, INDEX_DTYPE[view.idx_type])
    data = xp.wrap(owner, view.values, view.nnz, DTYPE[view.val_type])
    if view.ptr_type != view.idx_type:
        wide = INDEX_DTYPE[_lib.I64]
        indptr, indices = xp.cast(indptr, wide), xp.cast(indices, wide)
    return indptr, indices, data


def shapes_meet(a: tuple, b: tuple, name_a: str = "A", name_b: str = "B") -> None:
    """Raises ShapeError if the inner dimensions differ, with the caller's names of the operands."""
    if a[1] != b[0]:
        raise ShapeError(f"{name_a} is {a[0]} x {a[1]} and {name_b} is {b[0]} x {b[1]}: the {a[1]} columns of {name_a} "
                         f"do not meet the {b[0]} rows of {name_b}")
