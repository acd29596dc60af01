# SPDX-License-Identifier: MIT
"""Memory of the library as arrays, without a copy.

An :class:`Owned` holds a matrix of the library. NumPy, CuPy and PyTorch make arrays over it through the
interfaces that they have for that, and keep it: when the last array is gone, so is the matrix. It may outlive
its context.
"""
from __future__ import annotations

from ctypes import c_void_p

import numpy as np

from . import _lib
from ._lib import tl

DTYPE = {number: np.dtype(name) for name, number in _lib.TYPE.items()}          # of values, by the header's number
INDEX_DTYPE = {number: np.dtype(name) for name, number in _lib.INDEX.items()}
TYPE = {dtype: number for number, dtype in DTYPE.items()}
INDEX = {dtype: number for number, dtype in INDEX_DTYPE.items()}
_TEXT = {dtype: dtype.str for dtype in (*TYPE, *INDEX)}


class Owned:
    """A matrix of the library, freed when nobody refers to it."""
    __slots__ = ("handle", "device", "__array_interface__", "__cuda_array_interface__", "__weakref__")
    _free = tl.matrix_free              # found while the interpreter ends, too

    def __init__(self, device: str = "cpu") -> None:
        self.handle = c_void_p()        # the library fills it in
        self.device = device            # where arrays of a device lie, as "cuda:0"

    def __del__(self) -> None:
        if self.handle:
            self._free(self.handle)

    def view(self) -> _lib.Csr:
        """Where its arrays are."""
        return tl.matrix_view(self.handle)


def host_array(owner, address: int, count: int, dtype: np.dtype) -> np.ndarray:
    """``count`` values of the host's memory that ``owner`` keeps."""
    if count == 0:
        return np.empty(0, dtype)
    owner.__array_interface__ = {"data": (address, False), "shape": (count,), "typestr": _TEXT[dtype], "version": 3}
    return np.asarray(owner)


def device_array(owner, address: int, count: int, dtype: np.dtype, wrap):
    """The same of a CUDA device, as an array of the library whose function ``wrap`` is."""
    owner.__cuda_array_interface__ = {"data": (address if count else 0, False), "shape": (count,),
                                      "typestr": dtype.str, "strides": None, "version": 2}
    return wrap(owner)
