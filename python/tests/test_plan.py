# SPDX-License-Identifier: MIT
"""Plans, forecasts, and what they say."""
import gc
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import DTYPES, same, whole

import tulle


@pytest.mark.parametrize("fmt_b", ("csr", "csc"))
@pytest.mark.parametrize("fmt_a", ("csr", "csc"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_new_values(dtype, fmt_a, fmt_b):
    A, B = whole((20, 30), dtype=dtype, fmt=fmt_a), whole((30, 25), dtype=dtype, fmt=fmt_b, seed=2)
    plan = tulle.Plan(A, B)
    same(plan(), A.toarray() @ B.toarray())
    a, b = (np.arange(A.nnz) % 7).astype(dtype), (np.arange(B.nnz) % 5).astype(dtype)
    C = plan(a, b)
    A.data, B.data = a, b
    same(C, A.toarray() @ B.toarray())
    assert C.nnz == plan.nnz and C.format == fmt_a


def test_out_and_shared_pattern():
    A = whole((20, 20))
    plan = tulle.Plan(A, A)
    C, values = plan(), np.empty(plan.nnz)
    D = plan(2 * A.data, A.data, out=values)
    assert D.data is values and D.indices is C.indices and not C.indices.flags.writeable
    same(D, 2 * C.toarray())
    assert plan(3 * A.data, A.data, out=D) is D
    same(D, 3 * C.toarray())
    same(plan(a_values=A.data.astype("int32")), C.toarray())


@pytest.mark.parametrize("index_b", ("int32", "int64"))
@pytest.mark.parametrize("fmt", ("csr", "csc"))
def test_out_of_another_pattern_is_refused(fmt, index_b):
    """Its values would be those of other places, or go to a copy."""
    A, B = whole((20, 20), fmt=fmt), whole((20, 20), fmt=fmt, index=index_b, seed=2)
    plan, expected = tulle.Plan(A, B), A.toarray() @ B.toarray()
    C = plan()
    for out in (C, C.copy(), type(C)(C, dtype="float64")):
        out.data[:] = 0
        assert plan(out=out) is out
        same(out, expected)
    moved = C.copy()
    moved.indices = moved.indices[::-1].copy()
    other = "csc" if fmt == "csr" else "csr"
    for out in [moved, C.T, A] + [C.asformat(f) for f in (other, "coo", "bsr", "dia", "lil", "dok")]:
        with pytest.raises(tulle.PatternError, match="out must be a C of this plan"):
            plan(out=out)
    with pytest.raises(tulle.ShapeError, match="out is 19 x 20, C is 20 x 20"):
        plan(out=C[:19])


def test_masked_and_sparse_values_are_refused():
    A = whole((20, 20))
    for plan in (tulle.Plan(A, A), tulle.SpmmPlan(A).set_values):
        with pytest.raises(tulle.DtypeError, match="masked array"):
            plan(np.ma.masked_array(A.data, A.data > 1))
        with pytest.raises(tulle.DtypeError, match="a_values is sparse"):
            plan(A)


def test_results_outlive_plan_and_context():
    A = whole((40, 40))
    with tulle.Context("cpu") as ctx:
        plan = tulle.Plan(A, A, device=ctx)
        C = plan()
    with pytest.raises(tulle.InvalidError, match="closed"):
        plan()
    del plan
    gc.collect()
    same(C, A.toarray() @ A.toarray())
    plan = tulle.Plan(A, A)
    plan.close()
    with pytest.raises(tulle.InvalidError, match="closed"):
        plan()


def test_transposed_and_stats():
    A = whole((20, 30))
    plan = tulle.Plan(A, A, transpose_a=True)
    same(plan(2 * A.data, A.data), 2 * (A.toarray().T @ A.toarray()))
    assert plan.stats().c_nnz == plan.nnz


def test_refused():
    A = whole((20, 20))
    plan = tulle.Plan(A, A)
    for call in (lambda: plan(A.data[:-1]), lambda: plan(A.data.reshape(-1, 1)), lambda: plan(out=np.empty(plan.nnz + 1)),
                 lambda: plan(out=np.empty(plan.nnz, "f4")), lambda: plan(out=np.empty(2 * plan.nnz)[::2])):
        with pytest.raises(tulle.ShapeError):
            call()
    with pytest.raises(tulle.DtypeError):
        plan(A.data * 1j)
    unsorted = A.copy()
    unsorted.indices[:A.indptr[1]] = unsorted.indices[:A.indptr[1]][::-1]
    assert A.indptr[1] > 1
    with pytest.raises(tulle.PatternError, match="row 0"):
        tulle.Plan(unsorted, A)
    for thing in (plan, tulle.Context("cpu")):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(thing)


def test_values_in_another_order_than_the_plans_are_refused():
    A = whole((20, 20))
    order = np.random.default_rng(3).permutation(A.nnz)
    C = A.tocoo()
    shuffled = sp.coo_array((C.data[order], (C.row[order], C.col[order])), shape=A.shape)
    plan = tulle.Plan(shuffled, A)
    same(plan(), A.toarray() @ A.toarray())
    same(plan(b_values=2 * A.data), 2 * (A.toarray() @ A.toarray()))
    with pytest.raises(tulle.InvalidError, match="a_values: the operand was no CSR or CSC"):
        plan(shuffled.data)


def test_estimate_and_explain():
    A = tulle.gallery("poisson2d:40")
    C = tulle.matmul(A, A)
    f = tulle.estimate(A, A)
    assert f.nnz_lower <= C.nnz <= f.nnz_upper and f.policy == "auto" and sum(rows for rows, _ in f.shares.values()) == 1600
    text = tulle.explain(A, A)
    assert "1,600 x 1,600" in text and "why" in text and f"{f.products:,}" in text
    with pytest.raises(tulle.ShapeError):
        tulle.estimate(A, A[:5])
    narrow, whole_numbers = tulle.estimate(A, A, out_dtype="float32"), A.astype("int64")
    assert narrow.products == f.products and narrow.bytes_estimate < f.bytes_estimate
    assert tulle.estimate(whole_numbers, A.astype("int8"), out_dtype="float64") == tulle.estimate(A, A.copy())
    assert tulle.explain(whole_numbers, whole_numbers, out_dtype="float64").splitlines()[:4] == text.splitlines()[:4]
