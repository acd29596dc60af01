# SPDX-License-Identifier: MIT
"""PyTorch's sparse tensors in the host's memory; where there is no PyTorch, there is nothing to say."""
import numpy as np
import pytest
from conftest import DTYPES, INDICES, whole

import tulle

torch = pytest.importorskip("torch")


def tensor(A, index="int64", layout="csr"):
    A = A.tocsr() if layout == "csr" else A.tocsc()
    make = torch.sparse_csr_tensor if layout == "csr" else torch.sparse_csc_tensor
    parts = [torch.from_numpy(x) for x in (A.indptr.astype(index), A.indices.astype(index), A.data)]
    return make(*parts, size=A.shape)


@pytest.mark.parametrize("layout", ("csr", "csc"))
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_product(dtype, index, layout):
    A, B = whole((20, 30), dtype=dtype), whole((30, 25), dtype=dtype, seed=2)
    C = tulle.matmul(tensor(A, index, layout), tensor(B, index, layout))
    assert C.layout is (torch.sparse_csr if layout == "csr" else torch.sparse_csc) and C.dtype is getattr(torch, dtype)
    pointers = C.crow_indices() if layout == "csr" else C.ccol_indices()
    assert pointers.dtype is getattr(torch, index)
    np.testing.assert_array_equal(C.to_dense().numpy(), A.toarray() @ B.toarray())


def test_dense_and_coo():
    A = whole((20, 30))
    T, X = tensor(A), torch.arange(90.0, dtype=torch.float64).reshape(30, 3)
    for x in (X, X.T.contiguous().T, X[:, 0]):
        np.testing.assert_array_equal(tulle.matmul(T, x).numpy(), A.toarray() @ x.numpy())
    Y = torch.empty(20, 3, dtype=torch.float64)
    assert tulle.spmm(T, X, out=Y) is Y
    np.testing.assert_array_equal(Y.numpy(), A.toarray() @ X.numpy())
    coo = T.to_sparse_coo().coalesce()
    np.testing.assert_array_equal(tulle.matmul(coo, tensor(A.T)).to_dense().numpy(), A.toarray() @ A.toarray().T)


def test_blocks_and_types_that_numpy_lacks():
    A = whole((20, 30))
    T = tensor(A)
    C = tulle.matmul(T.to_sparse_bsr((2, 3)), tensor(A.T))
    np.testing.assert_array_equal(C.to_dense().numpy(), A.toarray() @ A.toarray().T)
    for call in (lambda: tulle.matmul(T, torch.ones(30, 2, dtype=torch.bfloat16)), lambda: tulle.matmul(T.to(torch.bfloat16), T)):
        with pytest.raises(tulle.DtypeError, match="bfloat16"):
            call()


def test_plan_of_sparse_times_dense():
    A = whole((20, 30))
    T, X = tensor(A), torch.arange(60.0, dtype=torch.float64).reshape(20, 3)
    plan = tulle.SpmmPlan(T, op=True)
    Y = torch.empty(30, 3, dtype=torch.float64)
    assert plan(X, out=Y) is Y and isinstance(plan(X[:, 0]), torch.Tensor)
    np.testing.assert_array_equal(Y.numpy(), A.toarray().T @ X.numpy())
    np.testing.assert_array_equal(plan(X[:, :1].expand(20, 4)).numpy(), A.toarray().T @ X[:, :1].expand(20, 4).numpy())
    plan.set_values(2 * T.values())
    np.testing.assert_array_equal(plan(X).numpy(), 2 * Y.numpy())
    with pytest.raises(tulle.DtypeError, match="A is PyTorch's and B is SciPy's"):
        plan(X.numpy())


def test_plan():
    A = whole((20, 20))
    T = tensor(A)
    plan = tulle.Plan(T, T)
    C = plan(2 * T.values(), T.values())
    np.testing.assert_array_equal(C.to_dense().numpy(), 2 * A.toarray() @ A.toarray())
    assert plan(T.values(), T.values(), out=C) is C
    np.testing.assert_array_equal(C.to_dense().numpy(), A.toarray() @ A.toarray())
    with pytest.raises(tulle.DtypeError, match="bfloat16"):
        plan(T.values().to(torch.bfloat16))
    Z = A.astype("complex128") * (1 + 2j)
    plan = tulle.Plan(tensor(Z), tensor(Z))         # values that are only marked as conjugate, or as negative
    np.testing.assert_array_equal(plan(torch.from_numpy(Z.data).conj()).to_dense().numpy(), Z.conj().toarray() @ Z.toarray())
    minus = torch._neg_view(torch.from_numpy(Z.data))
    assert minus.is_neg()
    np.testing.assert_array_equal(plan(minus).to_dense().numpy(), -(Z @ Z).toarray())


@pytest.mark.parametrize("layout", ("csr", "csc"))
def test_verify(layout):
    A = whole((20, 20))
    T, C = tensor(A, layout=layout), tensor(A @ A, layout="csr")
    assert max(tulle.verify(T, T, D) for D in (C, C.to_sparse_csc())) < 1e-14
    with pytest.raises(tulle.DtypeError, match="A is PyTorch's and C is SciPy's"):
        tulle.verify(T, T, A @ A)


def test_gradients_are_not_lost_in_silence():
    X = torch.ones(30, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(tulle.DtypeError, match="gradient"):
        tulle.matmul(tensor(whole((20, 30))), X)
    with torch.no_grad():
        assert tulle.matmul(tensor(whole((20, 30))), X).shape == (20, 2)


def test_other_libraries_operands_are_refused():
    A = whole((5, 5))
    with pytest.raises(tulle.DtypeError, match="A is PyTorch's and B is SciPy's"):
        tulle.matmul(tensor(A), A)


@pytest.mark.parametrize("index_b", INDICES)
@pytest.mark.parametrize("index_a", INDICES)
def test_plan_of_two_widths(index_a, index_b):
    A = whole((20, 20))
    plan = tulle.Plan(tensor(A, index_a), tensor(A, index_b))
    C = plan()
    assert C.col_indices().dtype is C.crow_indices().dtype is getattr(torch, index_a)
    C.values().zero_()
    assert plan(out=C) is C
    np.testing.assert_array_equal(C.to_dense().numpy(), A.toarray() @ A.toarray())
    with pytest.raises(tulle.PatternError, match="out must be a C"):
        plan(out=C.to_sparse_csc())


def test_out_without_memory_of_its_own_is_refused():
    A = tensor(whole((20, 20), dtype="complex128"))
    X, zeros = torch.ones(20, 2, dtype=torch.complex128), torch.zeros(20, 2, dtype=torch.complex128)
    for call in (lambda out: tulle.spmm(A, X, out=out), lambda out: tulle.SpmmPlan(A)(X, out=out),
                 lambda out: tulle.matmul(X.T, A, out=out.T)):
        with pytest.raises(tulle.InvalidError, match="conjugate of another tensor"):
            call(zeros.conj())
    with pytest.raises(tulle.InvalidError, match="or its negative"):
        tulle.spmm(tensor(whole((20, 20))), X.real, out=zeros.conj().imag)
    plan = tulle.Plan(A, A)
    with pytest.raises(tulle.InvalidError, match="conjugate of another tensor"):
        plan(out=torch.zeros(plan.nnz, dtype=torch.complex128).conj())


def test_values_of_a_plan_with_a_gradient_are_refused():
    A = tensor(whole((20, 20)))
    values = A.values().clone().requires_grad_()
    plan, spmm_plan = tulle.Plan(A, A), tulle.SpmmPlan(A)
    for call in (lambda: plan(values), lambda: plan(None, values), lambda: spmm_plan.set_values(values)):
        with pytest.raises(tulle.DtypeError, match="requires its gradient"):
            call()
    spmm_plan.set_values(values.detach())
