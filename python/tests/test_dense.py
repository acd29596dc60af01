# SPDX-License-Identifier: MIT
"""Sparse times dense, dense times sparse: orders, gaps, out, alpha and beta."""
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import DTYPES, INDICES, whole

import tulle


def dense(shape, dtype="float64", seed=5):
    x = np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)
    return x + 1j * x[::-1] if np.dtype(dtype).kind == "c" else x


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("fmt", ("csr", "csc", "coo"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_sides(dtype, fmt, index):
    A, X = whole((20, 30), dtype=dtype, fmt=fmt, index=index), dense((30, 7), dtype)
    Y = tulle.matmul(A, X)
    assert Y.dtype == dtype and type(Y) is np.ndarray
    np.testing.assert_array_equal(Y, A.toarray() @ X)
    Z = dense((6, 20), dtype)
    np.testing.assert_array_equal(tulle.matmul(Z, A), Z @ A.toarray())
    np.testing.assert_array_equal(tulle.matmul(A, Z.T, transpose_a=True), A.toarray().T @ Z.T)
    np.testing.assert_array_equal(tulle.matmul(X.T, A, transpose_b=True), X.T @ A.toarray().T)


LAYOUTS = {
    "by rows": lambda X: X, "by columns": np.asfortranarray, "part of rows": lambda X: np.hstack([X, X])[:, :X.shape[1]],
    "part of columns": lambda X: np.asfortranarray(np.vstack([X, X]))[:X.shape[0]], "every other": lambda X: np.repeat(X, 2, 1)[:, ::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1], "broadcast": lambda X: np.broadcast_to(X[:, :1], X.shape),
    "other bytes": lambda X: X.astype(">f8"), "integers": lambda X: X.astype("int16"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("columns", (1, 2, 9))
def test_layouts(layout, columns):
    A, X = whole((20, 30)), LAYOUTS[layout](dense((30, columns)))
    before = X.copy()
    np.testing.assert_array_equal(tulle.matmul(A, X), A.toarray() @ X)
    np.testing.assert_array_equal(tulle.matmul(X.T, A.T.tocsr()), X.T @ A.toarray().T)
    np.testing.assert_array_equal(X, before)


def test_vectors_and_matrix_class():
    A, x = whole((20, 30)), dense(30)
    assert tulle.matmul(A, x).shape == (20,)
    np.testing.assert_array_equal(tulle.matmul(A, x), A.toarray() @ x)
    np.testing.assert_array_equal(tulle.matmul(dense(20), A), dense(20) @ A.toarray())
    np.testing.assert_array_equal(tulle.matmul(A, dense(60)[::2]), A.toarray() @ dense(60)[::2])
    M = sp.csr_matrix(A.toarray())
    Y = tulle.matmul(M, np.asmatrix(dense((30, 2))))
    assert type(Y) is np.matrix and type(M @ np.asmatrix(dense((30, 2)))) is np.matrix


@pytest.mark.parametrize("m, k, n", [(0, 0, 0), (0, 4, 3), (4, 0, 3), (4, 3, 0), (1, 1, 1)])
def test_shapes(m, k, n):
    A, X = whole((m, k), 0.8), dense((k, n))
    np.testing.assert_array_equal(tulle.matmul(A, X), A.toarray() @ X)
    np.testing.assert_array_equal(tulle.matmul(X.T, A.T.tocsr()), X.T @ A.toarray().T)


@pytest.mark.parametrize("order", "CF")
def test_out_alpha_beta(order):
    A, X = whole((20, 30)), dense((30, 4))
    Y = np.array(dense((20, 4), seed=9), order=order)
    expected = 2 * (A.toarray() @ X) - 3 * Y
    assert tulle.spmm(A, X, alpha=2, beta=-3, out=Y) is Y
    np.testing.assert_array_equal(Y, expected)
    wide = np.zeros((20, 9))
    tulle.spmm(A, X, out=wide[:, 2:6])
    np.testing.assert_array_equal(wide[:, 2:6], A.toarray() @ X)
    assert not wide[:, :2].any() and not wide[:, 6:].any()
    y = np.empty(20)
    assert tulle.matmul(A, X[:, 0], out=y) is y
    np.testing.assert_array_equal(y, A.toarray() @ X[:, 0])
    Z = np.empty((4, 30))
    tulle.matmul(dense((4, 20)), A, out=Z)
    np.testing.assert_array_equal(Z, dense((4, 20)) @ A.toarray())


def test_out_is_not_read_without_beta():
    A = whole((5, 5))
    Y = np.full((5, 2), np.nan)
    tulle.spmm(A, np.ones((5, 2)), out=Y)
    np.testing.assert_array_equal(Y, A.toarray() @ np.ones((5, 2)))


def test_complex_factors():
    A, X = whole((9, 9), dtype="complex128"), dense((9, 2), "complex128")
    np.testing.assert_array_equal(tulle.spmm(A, X, alpha=2 - 1j), (2 - 1j) * (A.toarray() @ X))


REFUSED = [
    (lambda A, X: tulle.spmm(A, X[:3]), tulle.ShapeError, "A is 20 x 30 and X is 3 x 4"),
    (lambda A, X: tulle.spmm(A, X[None]), tulle.ShapeError, "3 dimensions"),
    (lambda A, X: tulle.spmm(A, X, out=np.empty((3, 4))), tulle.ShapeError, "out is 3 x 4 and should be as A*X, 20 x 4"),
    (lambda A, X: tulle.spmm(A, X, transpose_a=True), tulle.ShapeError,
     "A^T is 30 x 20 and X is 30 x 4: the 20 columns of A^T do not meet the 30 rows of X"),
    (lambda A, X: tulle.spmm(A, X[:20], transpose_a="conj", out=np.empty((20, 4))), tulle.ShapeError,
     "out is 20 x 4 and should be as A^H*X, 30 x 4"),
    (lambda A, X: tulle.matmul(X.T, A), tulle.ShapeError,
     "X is 4 x 30 and B is 20 x 30: the 30 columns of X do not meet the 20 rows of B"),
    (lambda A, X: tulle.matmul(X.T, A, transpose_b=True, out=np.empty((5, 20))), tulle.ShapeError,
     "out is 5 x 20 and should be as X*B^T, 4 x 20"),
    (lambda A, X: tulle.spmm(A, X, out=np.empty(20)), tulle.ShapeError, "out has 1 dimensions"),
    (lambda A, X: tulle.spmm(A, X, out=np.empty((20, 4), "f4")), tulle.DtypeError, "out has float32 values"),
    (lambda A, X: tulle.spmm(A, X, out=np.empty((20, 8))[:, ::2]), tulle.DtypeError, "strides of"),
    (lambda A, X: tulle.spmm(A, X, out=np.broadcast_to(np.zeros(4), (20, 4))), tulle.InvalidError, "cannot be written"),
    (lambda A, X: tulle.spmm(A, X, beta=1), tulle.InvalidError, "no out to add to"),
    (lambda A, X: tulle.spmm(A, X, alpha=1j), tulle.DtypeError, "alpha is 1j"),
    (lambda A, X: tulle.spmm(A, X.astype("U1")), (tulle.DtypeError, TypeError), ""),
    (lambda A, X: tulle.spmm(A, A), tulle.DtypeError, "a dense X"),
    (lambda A, X: tulle.spmm(X, X), tulle.DtypeError, "a sparse A"),
    (lambda A, X: tulle.matmul(A, X, transpose_b=True), tulle.InvalidError, "B.T"),
    (lambda A, X: tulle.spmm(A, X, out=[0]), tulle.DtypeError, "out is a builtins.list"),
    (lambda A, X: tulle.spmm(A.T.tocsr()[:, :20], Y := np.ones((20, 4)), out=Y[:, :]), (tulle.InvalidError, tulle.ShapeError), ""),
]


@pytest.mark.parametrize("call, kind, words", REFUSED)
def test_refused_with_a_sentence(call, kind, words):
    with pytest.raises(kind) as error:
        call(whole((20, 30)), dense((30, 4)))
    assert words in str(error.value)


def test_out_that_is_x_is_refused():
    A, X = whole((9, 9)), dense((9, 3))
    before = X.copy()
    with pytest.raises(tulle.InvalidError):
        tulle.spmm(A, X, out=X)
    np.testing.assert_array_equal(X, before)
