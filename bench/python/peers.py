# SPDX-License-Identifier: MIT
"""The libraries that are compared: each prepares its operands once, multiplies, and can return its result as
SciPy's CSR.

A peer's ``product(A, B)`` returns two functions: the one that is timed, and one that converts its result to a
matrix of SciPy. ``dense(A, X, Y)`` is the same for sparse times dense, with Y given.
"""
import ctypes

import numpy as np
import scipy.sparse as sp

import tulle


class Tulle:
    """The package, with a context that is reused."""
    name = "tulle"

    def __init__(self, threads):
        self.threads = threads

    def product(self, A, B):
        return lambda: tulle.matmul(A, B, threads=self.threads), lambda C: C

    def dense(self, A, X, Y):
        return lambda: tulle.spmm(A, X, out=Y, threads=self.threads), lambda y: y


class Fresh(Tulle):
    """The package, with a new context for each product."""
    name = "fresh"

    def product(self, A, B):
        def run():
            with tulle.Context("cpu", threads=self.threads) as context:
                return tulle.matmul(A, B, device=context)
        return run, lambda C: C


class Scipy:
    name = "scipy"

    def __init__(self, threads):
        pass

    def product(self, A, B):
        return lambda: A @ B, lambda C: C

    def dense(self, A, X, Y):
        return lambda: A @ X, lambda y: y


class Mkl:
    """Intel's MKL through sparse_dot_mkl; rows of C are left unsorted, which is fastest."""
    name = "mkl"

    def __init__(self, threads):
        import sparse_dot_mkl
        self.dot = sparse_dot_mkl.dot_product_mkl
        sparse_dot_mkl.mkl_set_num_threads(threads)

    @staticmethod
    def spin(milliseconds):
        """Sets how long its threads spin after a product, in ms; the default is 200."""
        ctypes.CDLL("libiomp5.so").kmp_set_blocktime(milliseconds)

    def product(self, A, B):
        A, B = sp.csr_matrix(A), sp.csr_matrix(B)
        return lambda: self.dot(A, B), lambda C: C

    def dense(self, A, X, Y):
        A = sp.csr_matrix(A)
        return lambda: self.dot(A, X, out=Y, out_scalar=0), lambda y: y


class GraphBLAS:
    """SuiteSparse:GraphBLAS, called through cffi: GrB_mxm into a new C, then GrB_wait."""
    name = "graphblas"

    def __init__(self, threads):
        import suitesparse_graphblas as gb
        self.ffi, self.lib = gb.ffi, gb.lib
        gb.initialize(blocking=True)
        self.ok(self.lib.GxB_Global_Option_set(self.lib.GxB_GLOBAL_NTHREADS, self.ffi.cast("int", threads)))

    def ok(self, info):
        if info:
            raise RuntimeError(f"GraphBLAS: status {info}")

    def new(self, shape):
        C = self.ffi.new("GrB_Matrix*")
        self.ok(self.lib.GrB_Matrix_new(C, self.lib.GrB_FP64, *shape))
        return self.ffi.gc(C, self.lib.GrB_Matrix_free)

    def pointers(self, i, j, x):
        """Arrays of rows, columns and values, for GraphBLAS."""
        types = ("GrB_Index[]", i), ("GrB_Index[]", j), ("double[]", x)
        return [self.ffi.from_buffer(name, array) for name, array in types]

    def take(self, A):
        M, coo = self.new(A.shape), A.tocoo()
        parts = [np.ascontiguousarray(v, t) for v, t in ((coo.row, "u8"), (coo.col, "u8"), (coo.data, "f8"))]
        self.ok(self.lib.GrB_Matrix_build_FP64(M[0], *self.pointers(*parts), len(coo.data),
                                               self.lib.GrB_PLUS_FP64))
        return M

    def product(self, A, B):
        a = self.take(A)
        b = a if B is A else self.take(B)
        shape, null = (A.shape[0], B.shape[1]), self.ffi.NULL

        def run():
            C = self.new(shape)
            self.ok(self.lib.GrB_mxm(C[0], null, null, self.lib.GrB_PLUS_TIMES_SEMIRING_FP64, a[0], b[0],
                                     null))
            self.ok(self.lib.GrB_Matrix_wait(C[0], self.lib.GrB_MATERIALIZE))
            return C

        def show(C):
            n = self.ffi.new("GrB_Index*")
            self.ok(self.lib.GrB_Matrix_nvals(n, C[0]))
            i, j, x = np.empty(n[0], "u8"), np.empty(n[0], "u8"), np.empty(n[0])
            self.ok(self.lib.GrB_Matrix_extractTuples_FP64(*self.pointers(i, j, x), n, C[0]))
            return sp.csr_array((x, (i.astype("i8"), j.astype("i8"))), shape=shape)
        return run, show


class Torch:
    """PyTorch's sparse CSR tensors, with 32-bit indices, which it prefers."""
    name = "torch"

    def __init__(self, threads):
        import torch
        self.torch = torch
        torch.set_num_threads(threads)

    def take(self, A):
        torch = self.torch
        parts = (torch.from_numpy(np.ascontiguousarray(x)) for x in (A.indptr, A.indices, A.data))
        return torch.sparse_csr_tensor(*parts, size=A.shape)

    def product(self, A, B):
        a = self.take(A)
        b = a if B is A else self.take(B)
        shape = (A.shape[0], B.shape[1])

        def show(C):
            parts = C.values().numpy(), C.col_indices().numpy(), C.crow_indices().numpy()
            return sp.csr_array(parts, shape=shape)
        return lambda: a @ b, show

    def dense(self, A, X, Y):
        a, x, y = self.take(A), self.torch.from_numpy(X), self.torch.from_numpy(Y)
        return lambda: self.torch.mm(a, x, out=y), lambda y: y.numpy()
