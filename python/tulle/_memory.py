# SPDX-License-Identifier: MIT
"""Memory of the library as arrays, without a copy.

An :class:`Owned` owns a matrix of the library. NumPy, CuPy and PyTorch make arrays over its memory through
their array interfaces and hold a reference to it, so the matrix is freed with the last array. It may outlive
its context.
"""
from __future__ import annotations

from ctypes import c_void_p

import numpy as np

from . import _lib
from ._lib import tl

DTYPE = {number: np.dtype(name) for name, number in _lib.TYPE.items()}          # of values, by the header's constant
INDEX_DTYPE = {number: np.dtype(name) for name, number in _lib.INDEX.items()}
TYPE = {dtype: number for number, dtype in DTYPE.items()}
INDEX = {dtype: number for number, dtype in INDEX_DTYPE.items()}
_TEXT = {dtype: dtype.str for dtype in (*TYPE, *INDEX)}


class Owned:
    """A matrix of the library, freed with the last reference."""
    __slots__ = ("handle", "device", "__array_interface__", "__cuda_array_interface__", "__weakref__")
    _free = tl.matrix_free              # an attribute, as globals may be gone when the interpreter exits

    def __init__(self, device: str = "cpu") -> None:
        self.handle = c_void_p()        # set by the library
        self.device = device            # the device that holds the arrays, such as "cuda:0"

    def __del__(self) -> None:
        if self.handle:
            self._free(self.handle)

    def view(self) -> _lib.Csr:
        """The library's view of it, which has the addresses of the arrays."""
        return tl.matrix_view(self.handle)


def host_array(owner, address: int, count: int, dtype: np.dtype) -> np.ndarray:
    """An array of ``count`` values in host memory that belongs to ``owner``."""
    if count == 0:
        return np.empty(0, dtype)
    owner.__array_interface__ = {"data": (address, False), "shape": (count,), "typestr": _TEXT[dtype], "version": 3}
    return np.asarray(owner)


def device_array(owner, address: int, count: int, dtype: np.dtype, wrap):
    """The same in CUDA memory, as an array made by ``wrap``, a function of CuPy or PyTorch."""
    owner.__cuda_array_interface__ = {"data": (address if count else 0, False), "shape": (count,),
                                      "typestr": dtype.str, "strides": None, "version": 2}
    return wrap(owner)
