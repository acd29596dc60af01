# SPDX-License-Identifier: MIT
"""Plans of sparse times dense: what they return, which values they hold, how long they live."""
import gc
import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import DTYPES, INDICES, whole
from test_dense import dense

import tulle
from tulle._context import context_for


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("op", (False, True, "conj"))
@pytest.mark.parametrize("fmt", ("csr", "csc", "coo"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_and_new_values(dtype, fmt, op, index):
    A = whole((20, 30), dtype=dtype, fmt=fmt, index=index)
    if fmt == "csc" and op == "conj" and np.dtype(dtype).kind == "c":
        with pytest.raises(tulle.InvalidError, match="conjugate"):
            tulle.SpmmPlan(A, op=op)
        return
    turned = {False: lambda M: M, True: lambda M: M.T, "conj": lambda M: M.conj().T}[op]
    plan = tulle.SpmmPlan(A, op=op)
    assert plan.shape == turned(A.toarray()).shape and plan.dtype == dtype and plan.nnz == A.nnz
    for columns in (1, 5):
        X = dense((plan.shape[1], columns), dtype)
        Y = plan(X)
        assert Y.dtype == dtype and type(Y) is np.ndarray
        np.testing.assert_array_equal(Y, turned(A.toarray()) @ X)
        np.testing.assert_array_equal(Y, tulle.spmm(A, X, transpose_a=op))
    old = A.toarray()
    A.data[:] = (np.arange(A.nnz) % 7).astype(dtype)
    np.testing.assert_array_equal(plan(X), turned(old) @ X)         # its values are a copy
    if fmt == "coo":                                                # the plan has another order than A.data
        with pytest.raises(tulle.InvalidError, match="no CSR or CSC"):
            plan.set_values(A.data)
        return
    plan.set_values(A.data)
    np.testing.assert_array_equal(plan(X), turned(A.toarray()) @ X)


@pytest.mark.parametrize("order", "CF")
def test_out_alpha_beta(order):
    A, X = whole((20, 30)), dense((30, 4))
    plan = tulle.SpmmPlan(A)
    Y = np.array(dense((20, 4), seed=9), order=order)
    expected = 2 * (A.toarray() @ X) - 3 * Y
    assert plan(X, out=Y, alpha=2, beta=-3) is Y
    np.testing.assert_array_equal(Y, expected)
    y = np.full(20, np.nan)
    assert plan(X[:, 1], out=y) is y                                # beta 0: what was there is not read
    np.testing.assert_array_equal(y, A.toarray() @ X[:, 1])
    Z = np.zeros((20, 4))
    plan(X, out=Z, alpha=0, beta=1)
    assert not Z.any()


def test_layouts_and_classes():
    A = whole((20, 30))
    plan = tulle.SpmmPlan(A)
    for X in (np.asfortranarray(dense((30, 4))), dense((30, 9))[:, 2:6], dense((60, 4))[::2], dense((30, 4)).astype("int16"),
              dense((30, 4)).astype(">f8"), np.broadcast_to(dense((30, 1)), (30, 4)), dense(30), dense((30, 0))):
        np.testing.assert_array_equal(plan(X), A.toarray() @ X)
    X.flags.writeable = False
    assert type(plan(np.asmatrix(dense((30, 2))))) is np.matrix
    wide = tulle.SpmmPlan(A.astype("float32"), out_dtype="complex128")
    assert wide.dtype == np.complex128
    np.testing.assert_array_equal(wide(dense((30, 2))), A.toarray() @ dense((30, 2)))
    own = tulle.SpmmPlan(tulle.Csr(A.data, A.indices, A.indptr, A.shape))
    np.testing.assert_array_equal(own(dense((30, 2))), A.toarray() @ dense((30, 2)))
    assert tulle.SpmmPlan(sp.csr_array((0, 5)))(np.ones((5, 2))).shape == (0, 2)


REFUSED = [
    (lambda p, A, X: p(X[:3]), tulle.ShapeError, "A is 20 x 30 and X is 3 x 4"),
    (lambda p, A, X: p(X, out=np.empty((3, 4))), tulle.ShapeError, "out is 3 x 4 and should be as A*X, 20 x 4"),
    (lambda p, A, X: p(X, out=np.empty((20, 4), "f4")), tulle.DtypeError, "out has float32 values"),
    (lambda p, A, X: p(X, beta=1), tulle.InvalidError, "no out to add to"),
    (lambda p, A, X: p(X, alpha=1j), tulle.DtypeError, "alpha is 1j"),
    (lambda p, A, X: p(X, alpha="2"), tulle.DtypeError, "alpha is '2'"),
    (lambda p, A, X: p(X + 1j), tulle.DtypeError, "X has complex128 values and the plan is for float64"),
    (lambda p, A, X: p(A), tulle.DtypeError, "a dense X"),
    (lambda p, A, X: p([1.0]), tulle.DtypeError, "X is a builtins.list"),
    (lambda p, A, X: p.set_values(A.data[:-1]), tulle.ShapeError, "a_values has the shape"),
    (lambda p, A, X: p.set_values(A.data * 1j), tulle.DtypeError, "a_values are complex128"),
    (lambda p, A, X: p.set_values(list(A.data)), tulle.DtypeError, "it must be an array"),
    (lambda p, A, X: tulle.SpmmPlan(X), tulle.DtypeError, "a sparse A"),
    (lambda p, A, X: tulle.SpmmPlan(A, op="T"), tulle.InvalidError, "op is 'T'"),
    (lambda p, A, X: tulle.SpmmPlan(A.astype("int32")), tulle.DtypeError, "int32"),
    (lambda p, A, X: tulle.SpmmPlan(A, policy="fastest"), tulle.InvalidError, "fastest"),
    (lambda p, A, X: tulle.SpmmPlan(A[:, ::-1]), tulle.PatternError, "row"),
]


@pytest.mark.parametrize("call, kind, words", REFUSED, ids=[w for _, _, w in REFUSED])
def test_refused_with_a_sentence(call, kind, words):
    A, X = whole((20, 30)), dense((30, 4))
    plan = tulle.SpmmPlan(A)
    with pytest.raises(kind) as error:
        call(plan, A, X)
    assert words in str(error.value)
    np.testing.assert_array_equal(plan(X), A.toarray() @ X)         # the plan is as it was


def test_life():
    A, X = whole((20, 30)), dense((30, 4))
    expected = A.toarray() @ X
    with tulle.Context("cpu", threads=1) as ctx:
        plan = tulle.SpmmPlan(A, device=ctx)
        Y = plan(X)
        assert plan.stats().a_nnz == A.nnz and plan.stats().threads == 1 and plan.stats().device == "cpu"
    with pytest.raises(tulle.InvalidError, match="closed"):
        plan(X)
    del plan, A
    gc.collect()
    np.testing.assert_array_equal(Y, expected)
    plan = tulle.SpmmPlan(whole((20, 30)))                          # keeps the arrays of an A that nobody else has
    gc.collect()
    np.testing.assert_array_equal(plan(X), expected)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(plan)
    plan.close()
    for call in (lambda: plan(X), plan.stats, lambda: plan.set_values(X[:, 0])):
        with pytest.raises(tulle.InvalidError, match="closed"):
            call()


def test_a_plan_dropped_while_its_context_works():
    gc.collect()                                                    # plans of other tests
    A, X = whole((20, 30)), dense((30, 4))
    held = [tulle.Plan(A, A.T.tocsr()), tulle.SpmmPlan(A)]
    core = context_for(None).core
    inside = []

    def progress(stage, fraction):                                  # the context's lock is taken now
        if held:
            held.clear()
            gc.collect()
            inside.append(len(core.dropped))
    big = tulle.gallery("er:20000,per_row=20")
    tulle.matmul(big, big, progress=progress)
    assert inside == [2] and not core.dropped                       # freed after the product, by its thread
    plan = tulle.SpmmPlan(A)
    other = threading.Thread(target=lambda taken: None, args=(plan,))
    del plan
    other.start()
    other.join()
    del other
    gc.collect()
    assert not core.dropped
    np.testing.assert_array_equal(tulle.spmm(A, X), A.toarray() @ X)


def test_eight_threads_share_a_plan():
    A = whole((80, 80))
    plan, wrong = tulle.SpmmPlan(A), []

    def work(seed):
        X = dense((80, 3), seed=seed)
        for _ in range(40):
            if not np.array_equal(plan(X), A.toarray() @ X):
                wrong.append(seed)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
