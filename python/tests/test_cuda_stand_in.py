# SPDX-License-Identifier: MIT
"""The road of arrays on CUDA without a GPU: stand-ins for CuPy, whose device is the host's memory and whose
streams only note that they were asked for. What a GPU does with it is tests/gpu.py's to prove."""
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import DTYPES, INDICES, same, whole

import tulle
from tulle import _context, _kinds, _lib
from tulle._arrays import NUMPY


class Array:
    """An array that shows its memory through __cuda_array_interface__ alone."""
    def __init__(self, x, owner=None):
        self.x, self.owner = x, owner

    shape = property(lambda self: self.x.shape)
    dtype = property(lambda self: self.x.dtype)
    flags = property(lambda self: self.x.flags)
    T = property(lambda self: Array(self.x.T, self.owner))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, key):
        return Array(self.x[key], self.owner)

    def __mul__(self, factor):
        return Array(self.x * factor)

    def astype(self, dtype):
        return Array(self.x.astype(dtype))

    @property
    def __cuda_array_interface__(self):
        face = self.x.__array_interface__
        return {"data": (face["data"][0], False), "shape": self.x.shape, "typestr": self.x.dtype.str, "strides": face["strides"],
                "version": 2}


class Device:
    id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


Array.device = Device()


def asarray(thing):
    if isinstance(thing, np.ndarray):
        return Array(thing.copy())
    face = thing.__cuda_array_interface__
    assert thing.device == "cuda:0"
    if face["shape"][0] == 0:
        return Array(np.empty(0, face["typestr"]))
    holder = types.SimpleNamespace(__array_interface__={**face, "version": 3})
    return Array(np.asarray(holder), thing)


class Compressed:
    """A matrix as cupyx.scipy.sparse has them."""

    def __init__(self, parts, shape, copy=False):
        (self.data, self.indices, self.indptr), self.shape = parts, tuple(shape)

    def tohost(self):
        cls = sp.csr_array if self.format == "csr" else sp.csc_array
        return cls((self.data.x, self.indices.x, self.indptr.x), shape=self.shape)


class Matrix(Compressed):
    """What CuPy's sparse matrices have in common."""


class csr_matrix(Matrix):
    format = "csr"


class csc_matrix(Matrix):
    format = "csc"


class sparray:
    """What CuPy's sparse arrays have in common since CuPy 14: a way to be made that looks at nothing."""
    @classmethod
    def _from_parts(cls, data, indices, indptr, shape, has_canonical_format=None):
        made = cls((data, indices, indptr), shape)
        made._has_canonical_format = has_canonical_format
        return made


class csr_array(sparray, Compressed):
    format = "csr"


class csc_array(sparray, Compressed):
    format = "csc"


@pytest.fixture
def streams(monkeypatch):
    """CuPy and a device cuda:0 for one test; yields the numbers of the streams that were set."""
    seen, stream = [], types.SimpleNamespace(ptr=0)
    cupy = types.ModuleType("cupy")
    cupy.ndarray, cupy.asarray, cupy.cuda = Array, asarray, types.SimpleNamespace(get_current_stream=lambda device: stream)
    cupy.ascontiguousarray = lambda a: Array(np.ascontiguousarray(a.x))
    cupy.empty = lambda shape, dtype: Array(np.empty(shape, dtype))
    sparse = types.ModuleType("cupyx.scipy.sparse")
    for cls in (csr_matrix, csc_matrix, csr_array, csc_array, sparray):
        setattr(sparse, cls.__name__, cls)
    sparse.spmatrix = Matrix
    for name, module in (("cupy", cupy), ("cupyx", types.ModuleType("cupyx")), ("cupyx.scipy", types.ModuleType("cupyx.scipy")),
                         ("cupyx.scipy.sparse", sparse)):
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["cupyx"].scipy, sys.modules["cupyx.scipy"].sparse = sys.modules["cupyx.scipy"], sparse
    monkeypatch.setattr(_lib, "DEVICE", _lib.HOST)
    monkeypatch.setattr(NUMPY, "wrap", no_wrap)
    monkeypatch.setattr(_kinds, "_BY_CLASS", dict(_kinds._BY_CLASS))
    context = tulle.Context("cpu")
    context.device = "cuda:0"
    context.use_stream = lambda kept, number: seen.append(number)
    monkeypatch.setitem(_context._mine.contexts, "cuda:0", context)
    yield seen


def no_wrap(*_):
    raise AssertionError("a device's memory was taken for the host's")


def put(A, kind="matrix"):
    cls = globals()[f"{A.format}_{kind}"]
    return cls(tuple(Array(x.copy()) for x in (A.data, A.indices, A.indptr)), A.shape)


@pytest.mark.parametrize("fmt", ("csr", "csc"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(streams, dtype, fmt):
    A, B = whole((20, 30), dtype=dtype, fmt=fmt), whole((30, 25), dtype=dtype, fmt=fmt, seed=2)
    C = tulle.matmul(put(A), put(B))
    assert C.format == fmt and type(C.data.owner).__name__ == "Owned" and streams == [1]
    same(C.tohost(), A.toarray() @ B.toarray())
    same(tulle.matmul(put(whole((4, 4), 0)), put(whole((4, 4)))).tohost(), np.zeros((4, 4)))


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("fmt", ("csr", "csc"))
def test_sparse_arrays_and_their_indices(streams, fmt, index):
    A = whole((20, 20), fmt=fmt, index=index)
    G = put(A, "array")
    for C in (tulle.matmul(G, G), tulle.Plan(G, G)()):
        assert type(C) is type(G) and C._has_canonical_format and C.indices.dtype == C.indptr.dtype == index
        same(C.tohost(), A.toarray() @ A.toarray())
    np.testing.assert_array_equal(tulle.matmul(G, Array(np.ones(20))).x, A.toarray().sum(1))
    assert tulle.matmul(put(A), put(A)).indices.dtype == index
    G.shape = (20,)
    with pytest.raises(tulle.ShapeError, match="a sparse array of CuPy of 1 dimensions"):
        tulle.matmul(G, G)


def test_dense_and_plan(streams):
    A = whole((20, 20))
    X = np.arange(60.0).reshape(20, 3)
    for x in (X, np.asfortranarray(X), X[:, 1:], X[:, 0]):
        np.testing.assert_array_equal(tulle.matmul(put(A), Array(x)).x, A.toarray() @ x)
    np.testing.assert_array_equal(tulle.matmul(Array(X.T), put(A)).x, X.T @ A.toarray())
    Y = Array(np.empty((20, 3)))
    assert tulle.spmm(put(A), Array(X), out=Y) is Y
    np.testing.assert_array_equal(Y.x, A.toarray() @ X)
    G = put(A)
    plan = tulle.Plan(G, G)
    same(plan(G.data * 2, G.data).tohost(), 2 * (A.toarray() @ A.toarray()))
    out = Array(np.empty(plan.nnz))
    assert plan(out=out).data is out
    C = plan()
    C.data.x[:] = 0
    assert plan(out=C) is C
    same(C.tohost(), A.toarray() @ A.toarray())
    for call in (lambda: plan(A.data, G.data), lambda: plan(out=out.x), lambda: plan(out=A)):
        with pytest.raises(tulle.DtypeError, match="another library or device"):
            call()
    same(plan().tohost(), A.toarray() @ A.toarray())


def test_refused(streams):
    G = put(whole((9, 9)))
    for words, call in (("A is CuPy's and B is SciPy's", lambda: tulle.matmul(G, whole((9, 9)))),
                        ("lie on cuda:0", lambda: tulle.matmul(G, G, device="cpu")),
                        ("do not meet", lambda: tulle.matmul(G, put(whole((8, 9)))))):
        with pytest.raises(tulle.TulleError, match=words):
            call()
