# SPDX-License-Identifier: MIT
"""Matrices of small whole numbers, whose sums are exact in every order and type. Needs no pytest."""
import numpy as np
import scipy.sparse as sp

DTYPES = ("float32", "float64", "complex64", "complex128")
INDICES = ("int32", "int64")


def whole(shape, density=0.2, dtype="float64", fmt="csr", index="int32", seed=1, array=True):
    """A random sparse matrix of whole numbers from -4 to 4."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(-4, 5, shape) * (rng.random(shape) < density)
    if np.dtype(dtype).kind == "c":
        dense = dense + 1j * rng.integers(-4, 5, shape) * (dense != 0)
    cls = getattr(sp, fmt + ("_array" if array else "_matrix"))
    A = cls(dense.astype(dtype))
    if hasattr(A, "indptr"):
        A.indptr, A.indices = A.indptr.astype(index), A.indices.astype(index)
    return A


def same(C, dense):
    """C has exactly these values, and arrays that SciPy finds right."""
    if sp.issparse(C):
        C.check_format(full_check=True) if C.format in ("csr", "csc") else None
        C = C.toarray()
    assert C.shape == dense.shape
    np.testing.assert_array_equal(C, dense)
