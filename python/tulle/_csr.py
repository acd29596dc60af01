# SPDX-License-Identifier: MIT
"""A plain sparse matrix, for results if SciPy is not installed."""
from __future__ import annotations

import numpy as np


class Csr:
    """Compressed sparse rows: three arrays and a shape.

    :func:`tulle.read` and :func:`tulle.gallery` return it if SciPy is not installed; every function accepts
    it. With a part of the row pointers it is a slice of rows over the same memory: rows i to j of A are
    ``Csr(A.data, A.indices, A.indptr[i:j + 1], (j - i, A.shape[1]))``.

    >>> A = Csr([1.0, 2.0], [1, 0], [0, 1, 2], (2, 2))
    >>> (A @ A).toarray()
    array([[2., 0.],
           [0., 2.]])
    """
    format = "csr"
    ndim = 2
    __array_ufunc__ = None              # for X @ A with an array X, NumPy then calls __rmatmul__

    def __init__(self, data, indices, indptr, shape) -> None:
        self.data, self.indices, self.indptr = np.asarray(data), _integers(indices), _integers(indptr)
        first = int(self.indptr[0]) if self.indptr.size else 0
        if first > 0:                   # a slice of rows: only its row pointers are new arrays
            self.data, self.indices, self.indptr = self.data[first:], self.indices[first:], self.indptr - first
        self.shape = (int(shape[0]), int(shape[1]))

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1])

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def toarray(self) -> np.ndarray:
        """The dense matrix; duplicate entries are added."""
        dense = np.zeros(self.shape, self.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        np.add.at(dense, (rows, self.indices[:self.nnz]), self.data[:self.nnz])
        return dense

    def __matmul__(self, other):
        from ._matmul import matmul
        return matmul(self, other)

    def __rmatmul__(self, other):
        from ._matmul import matmul
        return matmul(other, self)

    def __repr__(self) -> str:
        return f"<tulle.Csr of {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, {self.dtype}>"


def _integers(x) -> np.ndarray:
    """An array of indices; an empty list, which NumPy would make an array of floats, becomes integers."""
    return np.asarray(x, None if len(x) else "int32") if isinstance(x, (list, tuple)) else np.asarray(x)
