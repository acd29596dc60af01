# SPDX-License-Identifier: MIT
"""SciPy's own ``A @ B`` through tulle, for who asks for it.

SciPy multiplies two sparse matrices in one method of CSR and CSC matrices, whatever was typed (``@``, ``*``
of matrices, ``dot``, ``**``). :func:`install` puts a function in its place that gives the product to tulle
and, where tulle does not take the operands (integers, one dimension, ...), to the method that was there.
:func:`uninstall` puts that back.
"""
from __future__ import annotations

from ._matmul import matmul
from .errors import DtypeError, InvalidError, ShapeError

_NAMES = ("_matmul_sparse", "_mul_sparse_matrix")       # the method's name since SciPy 1.12, and before
_original = None


def _class():
    from scipy.sparse import csr_matrix
    for cls in csr_matrix.__mro__:
        for name in _NAMES:
            if cls.__name__ == "_cs_matrix" and name in vars(cls):
                return cls, name
    import scipy
    raise InvalidError(f"SciPy {scipy.__version__} multiplies in another way than those that tulle knows; tulle.matmul works")


def install() -> None:
    """From now on ``A @ B`` of SciPy's sparse matrices goes through tulle, for all of this process.

    The results are those of SciPy, but for rows that are sorted and for the last bits of sums.

    >>> import tulle
    >>> A = tulle.gallery("poisson2d:50")
    >>> tulle.install()
    >>> C = A @ A                       # by tulle
    >>> tulle.uninstall()
    >>> float(abs(C - A @ A).max())     # by SciPy
    0.0
    """
    global _original
    if _original is not None:
        return
    cls, name = _class()
    _original = getattr(cls, name)
    setattr(cls, name, _product)


def uninstall() -> None:
    """SciPy's ``A @ B`` is SciPy's again.

    >>> import tulle
    >>> tulle.install()
    >>> tulle.uninstall()
    >>> tulle.installed()
    False
    """
    global _original
    if _original is not None:
        cls, name = _class()
        setattr(cls, name, _original)
        _original = None


def installed() -> bool:
    """Whether SciPy's ``A @ B`` goes through tulle now.

    >>> import tulle
    >>> tulle.installed()
    False
    """
    return _original is not None


def _product(self, other):
    """What stands in the place of SciPy's method."""
    original = _original
    if len(self.shape) == 2 and len(other.shape) == 2 and self.dtype.char in "fdFD" and other.dtype.char in "fdFD":
        try:
            return matmul(self, other)
        except (DtypeError, ShapeError):
            pass                        # SciPy has its own words for it
    return original(self, other)
