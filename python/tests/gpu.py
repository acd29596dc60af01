# SPDX-License-Identifier: MIT
"""gpu.py - the package with CuPy and PyTorch on a CUDA device; tests/gpu_check.sh runs it.

    python python/tests/gpu.py [PART OF A NAME...]

A program of its own, since a machine with a GPU need not have pytest. A library that is not there is a
failure: what is to be proved here is that it works with both. The last line is "N passed, N failed".
"""
import gc
import os
import sys
import traceback

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tulle  # noqa: E402
from plain import DTYPES, same, whole  # noqa: E402

DEVICE = os.environ.get("TULLE_TEST_DEVICE", "cuda:0")
NUMBER = int(DEVICE.partition(":")[2] or 0)


def cupy_csr(A, fmt="csr", kind="matrix"):
    import cupyx.scipy.sparse as cs
    import scipy.sparse as sp
    return getattr(cs, f"{fmt}_{kind}")(getattr(sp, f"{fmt}_{kind}")(A))


def torch_csr(A, index="int64"):
    import torch
    parts = [torch.from_numpy(x).to(DEVICE) for x in (A.indptr.astype(index), A.indices.astype(index), A.data)]
    return torch.sparse_csr_tensor(*parts, size=A.shape)


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"no {kind.__name__}")


# ---------------------------------------------------------------------------------------------- host


def test_host_operands_on_the_device():
    for dtype in DTYPES:
        A = whole((60, 60), dtype=dtype)
        C = tulle.matmul(A, A, device=DEVICE)
        same(C, A.toarray() @ A.toarray())
        X = np.ones((60, 5), dtype)
        same(tulle.matmul(A, X, device=DEVICE), A.toarray() @ X)


# ---------------------------------------------------------------------------------------------- CuPy


def test_cupy_products():
    import cupyx.scipy.sparse as cs
    for dtype in DTYPES:
        for fmt in ("csr", "csc"):
            A, B = whole((40, 60), dtype=dtype), whole((60, 50), dtype=dtype, seed=2)
            C = tulle.matmul(cupy_csr(A, fmt), cupy_csr(B, fmt))
            assert isinstance(C, cs.csr_matrix if fmt == "csr" else cs.csc_matrix) and C.dtype == dtype
            assert C.indices.dtype == C.indptr.dtype == np.int32
            same(C.get(), A.toarray() @ B.toarray())
    empty = cupy_csr(whole((0, 5)))
    assert tulle.matmul(empty, cupy_csr(whole((5, 4)))).shape == (0, 4)
    assert tulle.matmul(cupy_csr(whole((5, 5), 0)), cupy_csr(whole((5, 5)))).nnz == 0
    same(tulle.matmul(cupy_csr(whole((30, 20))), cupy_csr(whole((30, 20))), transpose_a=True).get(),
         whole((30, 20)).toarray().T @ whole((30, 20)).toarray())


def test_cupy_arrays_and_their_indices():
    import cupyx.scipy.sparse as cs
    assert hasattr(cs, "csr_array"), "sparse arrays and wide indices came with CuPy 14"
    for fmt in ("csr", "csc"):
        for index in ("int32", "int64"):
            A = whole((40, 40), fmt=fmt, index=index)
            G = cupy_csr(A, fmt, "array")
            assert G.indices.dtype == index
            for C in (tulle.matmul(G, G), tulle.Plan(G, G)(), tulle.matmul(G, G.tocoo())):
                assert type(C) is type(G) and C.indices.dtype == C.indptr.dtype == index
                same(C.get(), A.toarray() @ A.toarray())
                same((C + C).get(), 2 * (A.toarray() @ A.toarray()))        # CuPy's own functions take it
            assert tulle.verify(G, G, C) < 1e-14


def test_cupy_unsorted():
    import cupy
    A = whole((40, 40))
    G = cupy_csr(A)
    first = int(A.indptr[1])
    assert first > 1
    G.indices[:first] = cupy.asarray(A.indices[:first][::-1].copy())
    G.data[:first] = cupy.asarray(A.data[:first][::-1].copy())
    same(tulle.matmul(G, G).get(), A.toarray() @ A.toarray())
    X = cupy.arange(120.0).reshape(40, 3)
    same(cupy.asnumpy(tulle.matmul(G, X)), A.toarray() @ cupy.asnumpy(X))
    assert tulle.verify(G, G, tulle.matmul(G, G)) < 1e-14


def test_cupy_dense():
    import cupy
    A = whole((40, 60))
    G = cupy_csr(A)
    x = np.arange(300.0).reshape(60, 5)
    for X in (cupy.asarray(x), cupy.asfortranarray(cupy.asarray(x)), cupy.asarray(x)[:, 1:3], cupy.asarray(x)[:, 0]):
        same(cupy.asnumpy(tulle.matmul(G, X)), A.toarray() @ cupy.asnumpy(X))
    Z = cupy.asarray(x[:40].copy()).T
    same(cupy.asnumpy(tulle.matmul(Z, G)), cupy.asnumpy(Z) @ A.toarray())
    Y = cupy.ones((40, 5))
    assert tulle.spmm(G, cupy.asarray(x), alpha=2, beta=-1, out=Y) is Y
    same(cupy.asnumpy(Y), 2 * (A.toarray() @ x) - 1)


def test_cupy_no_copy_and_lifetime():
    import cupy
    A = tulle.gallery("er:20000,per_row=8,values=integer")
    G = cupy_csr(A)
    with tulle.Context(DEVICE):
        C = tulle.matmul(G, G)
    assert type(C.data.data.mem).__name__ == "UnownedMemory", "the values were copied"
    gc.collect()
    same_csr(C.get(), tulle.matmul(A, A))
    C.data *= 2                                     # the caller's to change
    values = C.data
    del C
    gc.collect()
    assert float(values.sum()) == 2 * tulle.matmul(A, A).data.sum()
    del values
    cupy.cuda.Device(NUMBER).synchronize()
    free = []
    for _ in range(12):
        C = tulle.matmul(G, G)
        del C
        free.append(cupy.cuda.runtime.memGetInfo()[0])
    assert min(free[2:]) >= free[2] - (64 << 20), "device memory is not given back"


def test_cupy_streams():
    import cupy
    A = tulle.gallery("er:100000,per_row=8,values=integer")
    G = cupy_csr(A)
    expected = tulle.matmul(A, A)
    for stream in (cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(), cupy.cuda.Stream.null, cupy.cuda.Stream.ptds):
        with stream:
            for turn in range(5):
                values = G.data * 0
                for _ in range(20):                 # the product must wait for all of it
                    values = values + G.data
                H = type(G)((values, G.indices, G.indptr), shape=G.shape)
                C = tulle.matmul(H, G)
                total = C.data.sum()                # and this for the product
                assert float(total) == 20 * expected.data.sum(), (stream, turn)
                del C, H


def test_cupy_plan():
    import cupy
    A = whole((60, 60))
    G = cupy_csr(A)
    plan = tulle.Plan(G, G)
    out = cupy.empty(plan.nnz)
    C = plan(3 * G.data, G.data, out=out)
    assert C.data.data.ptr == out.data.ptr
    same(C.get(), 3 * (A.toarray() @ A.toarray()))
    D = plan()
    del plan, C
    gc.collect()
    for _ in range(3):                              # whatever else may come to lie where the plan was
        tulle.matmul(G, G)
    same(D.get(), A.toarray() @ A.toarray())
    for fmt in ("csr", "csc"):
        A, B = whole((40, 60), fmt=fmt), whole((60, 50), fmt=fmt, seed=2)
        same(tulle.Plan(cupy_csr(A, fmt), cupy_csr(B, fmt))().get(), A.toarray() @ B.toarray())


def test_cupy_refused():
    G = cupy_csr(whole((9, 9)))
    raises(tulle.DtypeError, "A is CuPy's and B is SciPy's", lambda: tulle.matmul(G, whole((9, 9))))
    raises(tulle.DeviceError, "lie on cuda:", lambda: tulle.matmul(G, G, device="cpu"))
    raises(tulle.ShapeError, "do not meet", lambda: tulle.matmul(G, cupy_csr(whole((8, 9)))))
    bad = cupy_csr(whole((9, 9)))
    bad.indices[3] = 99
    raises(tulle.PatternError, "", lambda: tulle.matmul(bad, G))


# ------------------------------------------------------------------------------------------- PyTorch


def test_torch_products():
    import torch
    for dtype in DTYPES:
        for index in ("int32", "int64"):
            A, B = whole((40, 60), dtype=dtype), whole((60, 50), dtype=dtype, seed=2)
            C = tulle.matmul(torch_csr(A, index), torch_csr(B, index))
            assert C.layout is torch.sparse_csr and C.device.type == "cuda" and C.col_indices().dtype is getattr(torch, index)
            same(C.cpu().to_dense().numpy(), A.toarray() @ B.toarray())
    C = tulle.matmul(torch_csr(whole((5, 5), 0)), torch_csr(whole((5, 5))))
    assert C._nnz() == 0 and C.device.type == "cuda"


def test_torch_dense_and_streams():
    import torch
    A = tulle.gallery("er:50000,per_row=8,values=integer")
    T = torch_csr(A)
    X = torch.ones(A.shape[1], 4, dtype=torch.float64, device=DEVICE)
    expected = A @ np.ones((A.shape[1], 4))
    for stream in (torch.cuda.Stream(), torch.cuda.default_stream(), torch.cuda.Stream()):
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(5):
                x = X * 0
                for _ in range(20):
                    x = x + X
                y = tulle.matmul(T, x)
                z = y / 20
                C = tulle.matmul(T, T)
                total = C.values().sum()
            stream.synchronize()
            same(z.cpu().numpy(), expected)
            assert float(total) == tulle.matmul(A, A).data.sum()
    Y = torch.empty(A.shape[0], 4, dtype=torch.float64, device=DEVICE)
    assert tulle.spmm(T, X, out=Y) is Y
    torch.cuda.synchronize()
    same(Y.cpu().numpy(), expected)


def test_torch_plan_and_lifetime():
    A = whole((60, 60))
    T = torch_csr(A)
    with tulle.Context(DEVICE):
        plan = tulle.Plan(T, T)
        C = plan(2 * T.values(), T.values())
        D = tulle.matmul(T, T)
        del plan
    gc.collect()
    same(C.cpu().to_dense().numpy(), 2 * (A.toarray() @ A.toarray()))
    same(D.cpu().to_dense().numpy(), A.toarray() @ A.toarray())


def test_torch_layer():
    """The layer of docs/python.md: its gradients are those of PyTorch's own dense product."""
    import re
    import torch
    text = open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "python.md")).read()
    code = re.search(r"```python\n(class SparseTimesDense.*?)```", text, re.S).group(1)
    space = {"torch": torch, "tulle": tulle}
    exec(code, space)
    A = whole((40, 60), dtype="float32")
    T = torch_csr(A)
    X = torch.rand(60, 8, device=DEVICE, requires_grad=True)
    torch.manual_seed(1)
    Y = space["SparseLayer"](T)(X)
    (Y * Y).sum().backward()
    grad, X.grad = X.grad, None
    Z = torch.from_numpy(A.toarray()).to(DEVICE) @ X
    (Z * Z).sum().backward()
    assert torch.allclose(Y, Z, rtol=1e-4, atol=1e-4) and torch.allclose(grad, X.grad, rtol=1e-4, atol=1e-3)


def same_csr(C, D):
    for a, b in ((C.indptr, D.indptr), (C.indices, D.indices), (C.data, D.data)):
        np.testing.assert_array_equal(a, b)


def main():
    passed = failed = 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_") or (sys.argv[1:] and not any(word in name for word in sys.argv[1:])):
            continue
        try:
            test()
            passed += 1
            print(f"ok   {name}", flush=True)
        except BaseException:
            failed += 1
            print(f"FAIL {name}")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
