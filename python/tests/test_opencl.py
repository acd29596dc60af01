# SPDX-License-Identifier: MIT
"""Products on an OpenCL device, PoCL's in `make check` (TULLE_TEST_DEVICE names another one)."""
import os

import numpy as np
from conftest import same, whole

import tulle

DEVICE = os.environ.get("TULLE_TEST_DEVICE", "opencl:0")


def test_product_and_plan():
    A = whole((60, 60))
    with tulle.Context(DEVICE) as ctx:
        C = tulle.matmul(A, A)
        assert ctx.stats().device == DEVICE == ctx.device
        plan = tulle.Plan(A, A)
        D = plan(2 * A.data, A.data)
    same(C, A.toarray() @ A.toarray())
    same(D, 2 * C.toarray())
    same(tulle.matmul(A.tocsc(), A.tocsc(), device=DEVICE), C.toarray())


def test_unsorted_and_dense():
    A = whole((60, 60))
    A.indices[:A.indptr[1]] = A.indices[:A.indptr[1]][::-1].copy()
    A.data[:A.indptr[1]] = A.data[:A.indptr[1]][::-1].copy()
    A.has_sorted_indices = False
    same(tulle.matmul(A, A, device=DEVICE), A.toarray() @ A.toarray())
    X = np.arange(180.0).reshape(60, 3)
    np.testing.assert_array_equal(tulle.matmul(A, X, device=DEVICE), A.toarray() @ X)


def test_the_cpu_or_the_device():
    A = whole((60, 60))
    with tulle.Context(f"cpu/{DEVICE}") as ctx:
        C = tulle.matmul(A, A)
        assert ctx.device == DEVICE and ctx.stats().device == "cpu"    # so little is done before a launch
        f = tulle.estimate(A, A)
    same(C, A.toarray() @ A.toarray())
    assert f.device == "cpu" and 0 < f.seconds_cpu < f.seconds_device
    g = tulle.estimate(A, A, device="cpu")
    assert g.device == "cpu" and g.seconds_cpu == g.seconds_device == 0
