# SPDX-License-Identifier: MIT
"""A plain sparse matrix, for results where there is no SciPy."""
from __future__ import annotations

import numpy as np


class Csr:
    """Compressed sparse rows: three arrays and a shape.

    What :func:`tulle.read` and :func:`tulle.gallery` return where SciPy is not installed, and what every
    function takes. A part of the row pointers makes a slice of rows over the same memory: the rows i to j of A
    are ``Csr(A.data, A.indices, A.indptr[i:j + 1], (j - i, A.shape[1]))``.

    >>> A = Csr([1.0, 2.0], [1, 0], [0, 1, 2], (2, 2))
    >>> (A @ A).toarray()
    array([[2., 0.],
           [0., 2.]])
    """
    format = "csr"
    ndim = 2
    __array_ufunc__ = None              # X @ A of an array X comes here

    def __init__(self, data, indices, indptr, shape) -> None:
        self.data, self.indices, self.indptr = np.asarray(data), _integers(indices), _integers(indptr)
        first = int(self.indptr[0]) if self.indptr.size else 0
        if first > 0:                   # a slice of rows: only its pointers are made anew
            self.data, self.indices, self.indptr = self.data[first:], self.indices[first:], self.indptr - first
        self.shape = (int(shape[0]), int(shape[1]))

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1])

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def toarray(self) -> np.ndarray:
        """The matrix with its zeros; entries in the same place are added."""
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
    """An array of indices; NumPy takes an empty list for floats."""
    return np.asarray(x, None if len(x) else "int32") if isinstance(x, (list, tuple)) else np.asarray(x)
