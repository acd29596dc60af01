# SPDX-License-Identifier: MIT
"""SciPy's own @ through tulle, and back."""
import numpy as np
import pytest
from conftest import same, whole

import tulle
from tulle._kinds import is_array


@pytest.fixture
def through_tulle():
    tulle.install()
    yield
    tulle.uninstall()


def by_tulle(C):
    return type(getattr(C.data, "base", None)).__name__ == "Owned"


@pytest.mark.parametrize("array", (True, False))
@pytest.mark.parametrize("fmt", ("csr", "csc"))
def test_at(through_tulle, fmt, array):
    A = whole((20, 20), fmt=fmt, array=array)
    for C in (A @ A, A.dot(A), A @ A.tocoo()) + (() if array else (A * A,)):
        assert by_tulle(C) and C.format == fmt and is_array(C) is array
        same(C, A.toarray() @ A.toarray())


def test_falls_back(through_tulle):
    A = whole((20, 20)).astype("int64")
    assert not by_tulle(A @ A) and (A @ A).dtype == np.int64
    same(A @ A, A.toarray() @ A.toarray())
    with pytest.raises(ValueError):
        A @ whole((5, 5))
    with pytest.raises(ValueError):
        whole((20, 20)) @ whole((5, 5))


def test_reversible():
    A = whole((20, 20))
    tulle.install()
    tulle.install()
    assert tulle.installed() and by_tulle(A @ A)
    tulle.uninstall()
    assert not tulle.installed() and not by_tulle(A @ A)
    tulle.uninstall()
