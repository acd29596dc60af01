# SPDX-License-Identifier: MIT
"""Lets SciPy's own ``A @ B`` use tulle, on request.

SciPy multiplies two sparse matrices in one method of CSR and CSC matrices, for every operator (``@``, ``*``
of matrices, ``dot``, ``**``). :func:`install` replaces this method by a function that calls tulle or, if
tulle does not support the operands (integers, one dimension, ...), the original method. :func:`uninstall`
restores that.
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
    """From now on ``A @ B`` of SciPy's sparse matrices uses tulle, in the whole process.

    The results are those of SciPy, except that rows are sorted and sums may be rounded differently.

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
    """Restores SciPy's own ``A @ B``.

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
    """Whether SciPy's ``A @ B`` currently uses tulle.

    >>> import tulle
    >>> tulle.installed()
    False
    """
    return _original is not None


def _product(self, other):
    """The function that replaces SciPy's method."""
    original = _original
    if len(self.shape) == 2 and len(other.shape) == 2 and self.dtype.char in "fdFD" and other.dtype.char in "fdFD":
        try:
            return matmul(self, other)
        except (DtypeError, ShapeError):
            pass                        # SciPy raises its own exception
    return original(self, other)
