# SPDX-License-Identifier: MIT
"""C = A*B against SciPy: every type, index width, format and shape, and what is refused."""
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import DTYPES, INDICES, same, whole

import tulle
from tulle._arrays import NUMPY, csr_view, dense_view
from tulle._kinds import _SCIPY, is_array
from tulle._matmul import pair_of


@pytest.mark.parametrize("index_a", INDICES)
@pytest.mark.parametrize("index_b", INDICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_types_and_widths(dtype, index_a, index_b):
    A, B = whole((30, 40), dtype=dtype, index=index_a), whole((40, 25), dtype=dtype, index=index_b, seed=2)
    C = tulle.matmul(A, B)
    same(C, A.toarray() @ B.toarray())
    wide = "int64" if "int64" in (index_a, index_b) else "int32"
    assert C.dtype == dtype and C.indices.dtype == C.indptr.dtype == wide and type(C) is type(A)
    assert C.has_sorted_indices and C.has_canonical_format


@pytest.mark.parametrize("b", ("csr", "csc"))
@pytest.mark.parametrize("a", ("csr", "csc"))
def test_indices_are_as_wide_as_the_widest_of_the_operands(a, b):
    A, B = whole((9, 9), fmt=a), whole((9, 9), fmt=b, seed=2)
    for M in (A, B):
        for name in ("indptr", "indices"):
            narrow = getattr(M, name)
            setattr(M, name, narrow.astype("int64"))
            C, expected = tulle.matmul(A, B), A @ B
            assert C.indices.dtype == C.indptr.dtype == "int64"      # older SciPys narrow them
            same(C, A.toarray() @ B.toarray())
            assert tulle.verify(A, B, expected) < 1e-14
            D = tulle.Plan(A, B)()
            same(D, A.toarray() @ B.toarray())
            for x in (D.indices, D.indptr):         # which all results of the plan share
                assert x.dtype == "int64" and not x.flags.writeable
            setattr(M, name, narrow)


@pytest.mark.parametrize("array", (True, False), ids=("array", "matrix"))
@pytest.mark.parametrize("b", ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"))
@pytest.mark.parametrize("a", ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"))
def test_formats(a, b, array):
    A, B = whole((12, 18), fmt=a, array=array), whole((18, 10), fmt=b, seed=2, array=array)
    C = tulle.matmul(A, B)
    same(C, A.toarray() @ B.toarray())
    assert is_array(C) is array and C.format == (a if a in ("csr", "csc", "bsr") else "csr")


def test_blocks_stay_blocks():
    A = sp.bsr_array(np.kron(np.eye(4), np.arange(1.0, 7).reshape(2, 3)), blocksize=(2, 3))
    B = sp.bsr_array(np.kron(np.eye(4), np.arange(1.0, 7).reshape(3, 2)), blocksize=(3, 2))
    C = tulle.matmul(A, B)
    same(C, A.toarray() @ B.toarray())
    assert C.format == "bsr" and C.blocksize == (2, 2)


SHAPES = [(0, 0, 0), (0, 5, 3), (5, 0, 3), (5, 3, 0), (1, 1, 1), (1, 50, 1), (50, 1, 50), (3, 200, 7)]


@pytest.mark.parametrize("fmt", ("csr", "csc"))
@pytest.mark.parametrize("m, k, n", SHAPES)
def test_shapes(m, k, n, fmt):
    A, B = whole((m, k), 0.7, fmt=fmt), whole((k, n), 0.7, fmt=fmt, seed=2)
    same(tulle.matmul(A, B), A.toarray() @ B.toarray())


def test_no_entries():
    A = sp.csr_array((7, 7))
    C = tulle.matmul(A, A)
    same(C, np.zeros((7, 7)))
    assert C.nnz == 0 and C.data.dtype == np.float64


@pytest.mark.parametrize("fmt", ("csr", "csc"))
def test_unsorted_and_duplicate_entries(fmt):
    cls = getattr(sp, fmt + "_array")
    indptr, indices = np.array([0, 3, 5, 5, 7]), np.array([3, 0, 3, 2, 1, 1, 1])
    A = cls((np.arange(1.0, 8), indices, indptr), shape=(4, 4))
    before = A.indices.copy()
    same(tulle.matmul(A, A), A.toarray() @ A.toarray())
    same(tulle.matmul(A, np.eye(4)), A.toarray())
    np.testing.assert_array_equal(A.indices, before)
    assert tulle.estimate(A, A).products > 0


def test_arrays_longer_than_their_entries():
    A = whole((10, 10))
    long = sp.csr_array((10, 10))
    long.indptr, long.indices, long.data = A.indptr, np.append(A.indices, [77, 99]).astype("int32"), np.append(A.data, [8.0, 9.0])
    same(tulle.matmul(long, A), A.toarray() @ A.toarray())


def test_slices_read_only_and_gaps():
    A = whole((40, 40), 0.3)
    part = A[5:25, 3:33]
    same(tulle.matmul(part, part.T.tocsr()), part.toarray() @ part.toarray().T)
    for array in (A.data, A.indices, A.indptr):
        array.flags.writeable = False
    same(tulle.matmul(A, A), A.toarray() @ A.toarray())
    gaps = whole((40, 40), 0.3)
    for name in ("data", "indices", "indptr"):
        wide = np.zeros(2 * len(getattr(gaps, name)), getattr(gaps, name).dtype)
        wide[::2] = getattr(gaps, name)
        setattr(gaps, name, wide[::2])
    same(tulle.matmul(gaps, gaps), A.toarray() @ A.toarray())


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("fmt", ("csr", "csc"))
def test_operands_are_not_copied(fmt, index):
    A, B = whole((20, 30), fmt=fmt, index=index), whole((30, 25), fmt=fmt, index=index, seed=2)
    for x in (A.data, A.indices, A.indptr):
        x.flags.writeable = False
    pair = pair_of(A, B, _SCIPY, _SCIPY)
    first, second = (A, B) if fmt == "csr" else (B, A)          # C^T = B^T * A^T: the same arrays, no transpose
    assert pair.op_left == pair.op_right == 0 and pair.swapped is (fmt == "csc")
    for view, M in ((pair.left, first), (pair.right, second)):
        assert (view.row_ptr, view.col_idx, view.values) == tuple(x.ctypes.data for x in (M.indptr, M.indices, M.data))


def test_slices_of_rows_over_the_same_memory():
    A, B, X = whole((40, 30), 0.3), whole((30, 20), 0.3), np.arange(90.0).reshape(30, 3)
    part = tulle.Csr(A.data, A.indices, A.indptr[5:26], (20, 30))
    expected = A.toarray()[5:25]
    assert part.nnz == np.count_nonzero(expected) and np.shares_memory(part.data, A.data)
    np.testing.assert_array_equal(part.toarray(), expected)
    np.testing.assert_array_equal(tulle.matmul(part, B).toarray(), expected @ B.toarray())
    np.testing.assert_array_equal(tulle.matmul(part, X), expected @ X)
    np.testing.assert_array_equal(tulle.SpmmPlan(part)(X), expected @ X)
    np.testing.assert_array_equal(tulle.Plan(part, B)(2 * part.data).toarray(), 2 * (expected @ B.toarray()))


def unaligned(x):
    """The same values, one byte beside where they belong."""
    raw = np.zeros(x.nbytes + 1, "u1")[1:]
    raw[:] = np.ascontiguousarray(x).view("u1").ravel()
    return raw.view(x.dtype).reshape(x.shape)


def test_unaligned_arrays():
    A, B = whole((40, 30), 0.3), whole((40, 30), 0.3)
    A.data, A.indices, A.indptr = map(unaligned, (A.data, A.indices, A.indptr))
    keep = []
    view = csr_view(NUMPY, _SCIPY.parts(A), A.dtype, "A", keep)
    assert not A.data.flags.aligned and view.values % 8 == view.col_idx % 4 == view.row_ptr % 4 == 0
    same(tulle.matmul(A, B, transpose_b=True), B.toarray() @ B.toarray().T)
    X = unaligned(np.arange(90.0).reshape(30, 3))
    assert dense_view(NUMPY, X, X.dtype, keep).values % 8 == 0
    same(tulle.matmul(A, X), B.toarray() @ X)
    with pytest.raises(tulle.DtypeError, match="aligned"):
        tulle.matmul(B, X, out=unaligned(np.zeros((40, 3))))
    plan = tulle.Plan(A, B.T.tocsr())
    same(plan(unaligned(2 * A.data)), 2 * (B.toarray() @ B.toarray().T))


def test_foreign_byte_order():
    A = whole((9, 9))
    B = A.copy()
    B.data = B.data.astype(">f8")
    C = tulle.matmul(B, A)
    same(C, A.toarray() @ A.toarray())
    assert C.dtype.isnative


def test_inputs_are_not_written():
    A = whole((30, 30))
    copies = [x.copy() for x in (A.data, A.indices, A.indptr)]
    tulle.matmul(A, A, transpose_a=True)
    for x, y in zip((A.data, A.indices, A.indptr), copies):
        np.testing.assert_array_equal(x, y)


def test_results_lie_in_the_librarys_memory():
    A = whole((50, 50))
    C = tulle.matmul(A, A)
    assert type(C.data.base).__name__ == type(C.indices.base).__name__ == "Owned" and C.data.flags.writeable
    C.data *= 2
    same(C, 2 * (A.toarray() @ A.toarray()))
    expected = A.toarray() @ A.toarray()
    same(C + A, 2 * expected + A.toarray())
    same(C.T.tocsr()[3:9], 2 * expected.T[3:9])


MIXED = [("int32", "float32", "float64"), ("bool", "float32", "float32"), ("int8", "complex64", "complex64"),
         ("float32", "float64", "float64"), ("float64", "complex64", "complex128")]


@pytest.mark.parametrize("a, b, expected", MIXED)
def test_types_meet_as_in_numpy(a, b, expected):
    A, B = whole((8, 8)).astype(a), whole((8, 8), seed=2).astype(b)
    C = tulle.matmul(A, B)
    assert C.dtype == expected == np.result_type(a, b)
    same(C, A.toarray().astype(expected) @ B.toarray().astype(expected))


def test_out_dtype():
    A = whole((8, 8)).astype("int64")
    for dtype in DTYPES:
        for name in (dtype, np.dtype(dtype).newbyteorder(">")):
            C = tulle.matmul(A, A, out_dtype=name)
            assert C.dtype == dtype and C.dtype.isnative
            same(C, (A.toarray() @ A.toarray()).astype(dtype))


@pytest.mark.parametrize("op", (True, "conj"))
@pytest.mark.parametrize("fmt", ("csr", "csc"))
@pytest.mark.parametrize("dtype", ("float64", "complex128"))
def test_transposes(dtype, fmt, op):
    A, B = whole((20, 30), dtype=dtype, fmt=fmt), whole((20, 25), dtype=dtype, fmt=fmt, seed=2)
    a = A.toarray().T if op is True else A.toarray().conj().T
    other = "csr" if fmt == "csc" else "csc"
    same(tulle.matmul(A, B, transpose_a=op), a @ B.toarray())
    same(tulle.matmul(A, B.asformat(other), transpose_a=op), a @ B.toarray())
    b = B.toarray().T if op is True else B.toarray().conj().T
    C = whole((7, 25), dtype=dtype, fmt=fmt)
    same(tulle.matmul(C, B, transpose_b=op), C.toarray() @ b)
    if op == "conj" and dtype == "complex128":
        with pytest.raises(ValueError, match="conjugate"):
            tulle.matmul(C, B.asformat(other), transpose_b=op)
    else:
        same(tulle.matmul(C, B.asformat(other), transpose_b=op), C.toarray() @ b)


def test_options():
    A = whole((60, 60))
    expected = A.toarray() @ A.toarray()
    for policy in tulle.policies():
        same(tulle.matmul(A, A, policy=policy), expected)
    same(tulle.matmul(A, A, accumulator="hash", threads=2, memory_limit=1 << 28, trust=True), expected)
    C = tulle.matmul(A, A, drop_zeros=True)
    same(C, expected)
    assert np.count_nonzero(C.data) == C.nnz < tulle.matmul(A, A).nnz
    assert tulle.matmul(A, A, drop_zeros=1 << 32).nnz == C.nnz      # a C int would have lost it


def test_subclass_of_scipys():
    class Mine(sp.csr_array):
        pass
    A = Mine(whole((9, 9)))
    assert type(tulle.matmul(A, A)) is Mine
    same(tulle.matmul(A, A), A.toarray() @ A.toarray())


def test_plain_matrices_without_scipy():
    A = whole((9, 9))
    own = tulle.Csr(A.data, A.indices, A.indptr, A.shape)
    C = own @ own
    assert isinstance(C, tulle.Csr)
    np.testing.assert_array_equal(C.toarray(), A.toarray() @ A.toarray())
    same(tulle.matmul(A, own), A.toarray() @ A.toarray())
    np.testing.assert_array_equal(np.ones((2, 9)) @ own, np.ones((2, 9)) @ A.toarray())
    np.testing.assert_array_equal(own @ np.ones(9), A.toarray() @ np.ones(9))
    same(A @ own, A.toarray() @ A.toarray())
    for none in ([], ()):
        nothing = tulle.Csr(none, none, [0], (0, 0))
        assert (nothing @ nothing).shape == (0, 0)


def test_runs_without_scipy():
    code = ("import sys; sys.modules['scipy'] = None; sys.modules['scipy.sparse'] = None\n"
            "import tulle, numpy\n"
            "A = tulle.gallery('poisson2d:9'); C = A @ A\n"
            "assert type(C) is tulle.Csr and numpy.allclose(C.toarray(), A.toarray() @ A.toarray())")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_takes_neither_numpy_nor_scipy():
    code = "import sys, tulle; assert not {'numpy', 'scipy', 'torch', 'cupy'} & set(sys.modules); tulle.matmul"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_verify():
    A = whole((30, 30))
    C = tulle.matmul(A, A)
    assert tulle.verify(A, A, C) < 1e-14
    C.data[3] += 1
    with pytest.raises(tulle.CheckError):
        tulle.verify(A, A, C)
    with pytest.raises(tulle.ShapeError, match="C is 30 x 30, the product is 9 x 30"):
        tulle.verify(A[:9], A, C)
    for bad, name in (((A.toarray(), A, C), "A"), ((A, A.toarray(), C), "B"), ((A, A, C.toarray()), "C")):
        with pytest.raises(tulle.DtypeError, match=f"{name} is dense"):
            tulle.verify(*bad)


def backwards(A):
    """The same matrix, each row or column from its end."""
    A = A.copy()
    for first, end in zip(A.indptr, A.indptr[1:]):
        A.indices[first:end], A.data[first:end] = A.indices[first:end][::-1].copy(), A.data[first:end][::-1].copy()
    A.has_sorted_indices = False
    return A


@pytest.mark.parametrize("fmt", ("csr", "csc"))
def test_verify_takes_anybodys_product(fmt):
    A, B = whole((20, 30), fmt=fmt), whole((30, 25), fmt=fmt, seed=2)
    C = A.toarray() @ B.toarray()
    for other in ("csr", "csc", "coo"):
        assert tulle.verify(A, B, sp.coo_array(C).asformat(other)) < 1e-14
    assert tulle.verify(backwards(A), backwards(B), backwards(getattr(sp, fmt + "_array")(C))) < 1e-14
    assert tulle.verify(A, B, (A @ B).astype("float32")) < 1e-6
    assert tulle.verify(A.astype("int8"), B.astype("int64"), (A @ B).astype("int64")) < 1e-14
    for op in (True, "conj"):
        assert tulle.verify(B, A, sp.csr_array(C.T), transpose_a=op, transpose_b=op) < 1e-14
    own = tulle.Csr(*(getattr(sp.csr_array(C), x) for x in ("data", "indices", "indptr")), C.shape)
    assert tulle.verify(A, B, own) < 1e-14
    wrong = sp.csr_array(C + np.eye(20, 25))
    for D in (wrong, wrong.tocsc(), backwards(wrong)):
        with pytest.raises(tulle.CheckError, match="row 0"):
            tulle.verify(A, B, D)
    with pytest.raises(tulle.CheckError):
        tulle.verify(A * 1j, B, sp.csr_array(C))
    wrong.indices[3] = 99
    with pytest.raises(tulle.PatternError):
        tulle.verify(A, B, wrong)


REFUSED = [
    (lambda A: tulle.matmul(A, A[:5]), tulle.ShapeError, "A is 30 x 30 and B is 5 x 30: the 30 columns of A do not meet the 5 rows"),
    (lambda A: tulle.matmul(A[:7], A, transpose_a=True), tulle.ShapeError,
     "A^T is 30 x 7 and B is 30 x 30: the 7 columns of A^T do not meet the 30 rows of B"),
    (lambda A: tulle.matmul(A.astype("int64"), A.astype("int64")), tulle.DtypeError, "these are int64 values: out_dtype=numpy.float64"),
    (lambda A: tulle.matmul(A, A.astype("longdouble")), tulle.DtypeError, "which NumPy makes"),
    (lambda A: tulle.matmul(A, A.astype("clongdouble")), tulle.DtypeError, "out_dtype=numpy.complex128 would convert them"),
    (lambda A: tulle.matmul(A, A, out_dtype="int32"), tulle.DtypeError, "out_dtype is int32"),
    (lambda A: tulle.matmul(A, A, out_dtype="no such"), tulle.DtypeError, "not a dtype"),
    (lambda A: tulle.matmul(A.astype(complex), A, out_dtype="float64"), tulle.DtypeError, "complex128 values"),
    (lambda A: tulle.matmul(A, [[1.0]]), tulle.DtypeError, "B is a builtins.list"),
    (lambda A: tulle.matmul("A", A), tulle.DtypeError, "A is a builtins.str"),
    (lambda A: tulle.matmul(A.toarray(), A.toarray()), tulle.DtypeError, "both operands are dense"),
    (lambda A: tulle.matmul(A, A, policy="fastest"), tulle.InvalidError, "fastest"),
    (lambda A: tulle.matmul(A, A, threads=-1), tulle.InvalidError, "threads is -1"),
    (lambda A: tulle.matmul(A, A, threads=1.5), tulle.InvalidError, "whole number"),
    (lambda A: tulle.matmul(A, A, memory_limit=100), tulle.MemoryLimitError, "bytes"),
    (lambda A: tulle.matmul(A, A, device="tpu"), tulle.DeviceError, "tpu"),
    (lambda A: tulle.matmul(A, A, transpose_a="T"), tulle.InvalidError, "transpose_a is 'T'"),
    (lambda A: tulle.matmul(A, A, out=np.zeros((30, 30))), tulle.InvalidError, "out is for dense results"),
    (lambda A: tulle.matmul(A, np.ones((30, 2)), drop_zeros=True), tulle.InvalidError, "two sparse"),
    (lambda A: tulle.matmul(A, 2.0), tulle.DtypeError, "B is a builtins.float"),
    (lambda A: tulle.matmul(A, np.array(2.0)), tulle.ShapeError, "X has 0 dimensions"),
    (lambda A: tulle.matmul(A, np.ones((30, 2), "M8[s]")), tulle.DtypeError, "no type in common"),
    (lambda A: tulle.matmul(A, np.ma.masked_array(np.ones((30, 2)), [[True, False]] * 30)), tulle.DtypeError, "masked array"),
    (lambda A: tulle.matmul(A, A, policy=3), tulle.InvalidError, "policy is 3"),
    (lambda A: tulle.matmul(A, A, policy="auto\0x"), tulle.InvalidError, "cannot be a name"),
    (lambda A: tulle.matmul(A, A, accumulator=b"hash"), tulle.InvalidError, "accumulator is b'hash'"),
    (lambda A: tulle.matmul(A, A, device="cpu\0x"), tulle.InvalidError, "device is"),
    (lambda A: tulle.gallery("poisson2d:9\0x"), tulle.InvalidError, "recipe is"),
    (lambda A: tulle.gallery("poisson2d:9\udce9"), tulle.InvalidError, "recipe is 'poisson2d:9\\udce9'"),
    (lambda A: tulle.gallery(None), tulle.InvalidError, "recipe is None"),
    (lambda A: tulle.read("A.mtx\0x"), tulle.InvalidError, "the name of a file"),
    (lambda A: tulle.write("A.mtx\0.tulle", A), tulle.InvalidError, "the name of a file"),
    (lambda A: tulle.verify(A, A, A.toarray()), tulle.DtypeError, "C is dense"),
    (lambda A: tulle.spmm(A, np.ones(30), alpha=10**400), tulle.DtypeError, "larger than any float64"),
    (lambda A: tulle.spmm(A, np.ones(30), alpha=np.complex64(1)), tulle.DtypeError, "alpha is"),
]


@pytest.mark.parametrize("call, kind, words", REFUSED, ids=[w for _, _, w in REFUSED])
def test_refused_with_a_sentence(call, kind, words):
    with pytest.raises(kind) as error:
        call(whole((30, 30)))
    assert words in str(error.value) and isinstance(error.value, tulle.TulleError) and error.value.status


def test_damaged_operands_are_refused():
    def broken(change):
        A = whole((30, 30))
        change(A)
        return A

    def index(A):
        A.indices[7] = 30

    def negative(A):
        A.indices[7] = -1

    def pointer(A):
        A.indptr[3] = A.indptr[4] + 1

    def short(A):
        A.data = A.data[:-1]

    def count(A):
        A.indptr[-1] += 10**6

    def few(A):
        A.indptr = A.indptr[:-1]

    def below(A):
        A.indptr[-1] = -5

    def pairs(A):
        A.data = np.stack([A.data, A.data], axis=1)

    def column(A):
        A.indices = A.indices[:, None]
    for change in (index, negative, pointer, short, count, few, below, pairs, column):
        with pytest.raises(ValueError) as error:
            tulle.matmul(broken(change), whole((30, 30)))
        assert len(str(error.value)) > 20
        with pytest.raises(ValueError):
            tulle.matmul(broken(change), np.ones((30, 2)))

@pytest.mark.parametrize("fmt", ("csr", "csc"))
def test_damage_is_told_in_the_callers_words(fmt, tmp_path):
    """Which operand, and whether it is a row or a column, as the caller has it, not as the library is given it."""
    bad, A, B = whole((30, 20), 0.5, fmt=fmt), whole((40, 30), 0.3), whole((20, 40), 0.3)
    bad.indices[bad.indptr[5] + 1] = 77
    line, other, size = ("row", "column", 19) if fmt == "csr" else ("column", "row", 29)
    words = f"{line} 5: {other} 77 is outside 0..{size} \\(entry 1 of the {line}\\)$"
    right = sp.csr_array((30, 40))
    calls = {"A": [lambda: tulle.matmul(bad, B), lambda: tulle.matmul(bad, B.tocsc()), lambda: tulle.Plan(bad, B),
                   lambda: tulle.matmul(bad, np.ones((20, 2))), lambda: tulle.spmm(bad, np.ones(30), transpose_a=True),
                   lambda: tulle.SpmmPlan(bad), lambda: tulle.SpmmPlan(bad, op=True), lambda: tulle.estimate(bad, B),
                   lambda: tulle.write(tmp_path / "A.mtx", bad), lambda: tulle.verify(bad, B, right),
                   lambda: tulle.verify(bad, B, right.tocsc())],
             "B": [lambda: tulle.matmul(A, bad), lambda: tulle.matmul(A.tocsc(), bad), lambda: tulle.explain(A, bad),
                   lambda: tulle.matmul(np.ones((2, 30)), bad), lambda: tulle.matmul(np.ones(30), bad)],
             "C": [lambda: tulle.verify(whole((30, 9)), whole((9, 20)), bad),
                   lambda: tulle.verify(whole((30, 9), fmt="csc"), whole((9, 20)), bad)]}
    for name, refused in calls.items():
        for call in refused:
            with pytest.raises(tulle.PatternError, match=f"^{name}: {words}"):
                call()
    with pytest.raises(tulle.InvalidError) as error:
        tulle.matmul(A.tocsc(), whole((30, 20)), policy="fastest")
    assert "stored by columns" not in str(error.value)


def test_sparse_of_one_dimension_is_refused():
    try:
        v = sp.coo_array(np.arange(4.0))
    except (TypeError, ValueError):
        pytest.skip("this SciPy has none")
    if v.ndim == 1:
        with pytest.raises(tulle.ShapeError, match="1 dimensions"):
            tulle.matmul(v, whole((4, 4)))


def test_default_device_is_the_environments():
    code = "import tulle; A = tulle.gallery('identity:5'); tulle.matmul(A, A)"
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TULLE_DEVICE": "tpu"}, capture_output=True, text=True)
    assert run.returncode and "DeviceError" in run.stderr and "tpu" in run.stderr


def test_large_against_scipy():
    A = tulle.gallery("rmat:scale=11,edges=8,values=integer")
    C, expected = tulle.matmul(A, A), A @ A
    for M in (C, expected):             # SciPy leaves out what came out as zero, or not, by version
        M.eliminate_zeros()
        M.sort_indices()
    np.testing.assert_array_equal(C.indptr, expected.indptr)
    np.testing.assert_array_equal(C.indices, expected.indices)
    np.testing.assert_array_equal(C.data, expected.data)


def test_several_devices_give_the_bits_of_one():
    A, B = whole((300, 200), seed=5), whole((200, 250), seed=6)
    A.data *= 0.1
    C, D = tulle.matmul(A, B, device="cpu"), tulle.matmul(A, B, device="cpu,cpu")
    assert (C.data == D.data).all() and (C.indices == D.indices).all() and (C.indptr == D.indptr).all()
    X = B.toarray()
    Y = tulle.matmul(A, X, device="cpu")
    with tulle.Context("cpu,cpu") as several:
        assert several.device == "cpu,cpu"
        same(tulle.matmul(A, X), Y)
    with pytest.raises(tulle.DeviceError, match="device 2 of 2"):
        tulle.matmul(A, B, device="cpu,")
