# SPDX-License-Identifier: MIT
"""Files and the gallery."""
from __future__ import annotations

import os
from ctypes import byref
from typing import Any, Optional, Union

import numpy as np

from . import _lib
from ._arrays import csr_view, wrapped
from ._arrays import NUMPY
from ._context import Context, Progress, _name, context_for
from ._csr import Csr
from ._kinds import kind_of
from ._lib import tl
from ._memory import TYPE, Owned
from .errors import DtypeError, InvalidError, TulleError, in_callers_words

Path = Union[str, bytes, "os.PathLike[str]"]
LONG = 1 << 20                          # the `size` for Context.run(): files and recipes may take long


def _path(path: Path) -> bytes:
    """Encodes a file name for C; rejects zero bytes, which would end it."""
    name = os.fsencode(path)
    if not name or b"\0" in name:
        raise InvalidError(f"{path!r} cannot be the name of a file")
    return name


def _sparse(owner: Owned) -> Any:
    """A matrix of the library as SciPy's CSR, or as tulle's own if SciPy is not installed."""
    view = owner.view()
    indptr, indices, data = wrapped(NUMPY, owner, view)
    try:
        from scipy.sparse import csr_array
    except ImportError:
        return Csr(data, indices, indptr, (view.rows, view.cols))
    from ._kinds import _SCIPY
    return _SCIPY.build(csr_array((1, 1)), (view.rows, view.cols), indptr, indices, data, False)


def read(path: Path, *, mapped: bool = False, device: Union[None, str, Context] = "cpu",
         progress: Optional[Progress] = None) -> Any:
    """Reads a matrix from a file: .mtx, .mtx.gz, SuiteSparse's .tar.gz or .tulle, recognised by its content.

    The result is SciPy's ``csr_array`` (:class:`tulle.Csr` if SciPy is not installed). Values are double or
    complex double. ``"A.tar.gz:NAME"`` is a member of an archive. With ``mapped``, a .tulle file is mapped into
    memory and not copied: the file must not change while the matrix is in use, and the arrays are read-only.

    >>> import os, tempfile, tulle
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "A.mtx.gz")
    ...     tulle.write(path, tulle.gallery("poisson2d:10"))
    ...     tulle.read(path).shape
    (100, 100)
    """
    context = context_for(device)
    owner = Owned()
    function = tl.read_mapped if mapped else tl.read
    context.run(LONG, function, context.handle, _path(path), byref(owner.handle), progress=progress)
    result = _sparse(owner)
    if mapped:                          # writing to the mapping would crash the program
        for array in (result.data, result.indices, result.indptr):
            array.flags.writeable = False
    return result


def write(path: Path, A: Any, *, device: Union[None, str, Context] = None, progress: Optional[Progress] = None) -> None:
    """Writes a sparse matrix; the name determines the format: .mtx, .mtx.gz or .tulle.

    An existing file is replaced only when the new one is complete. Integers are converted to doubles if that
    does not change their values.

    >>> import os, tempfile, tulle
    >>> A = tulle.gallery("cage5")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "A.tulle")
    ...     tulle.write(path, A)
    ...     float(abs(tulle.read(path) - A).max())
    0.0
    """
    kind = kind_of(A, "A")
    if not kind.sparse:
        raise DtypeError("write is for sparse matrices; numpy.save writes dense ones")
    parts = kind.parts(A)
    xp = kind.arrays(A)
    keep: list = []
    view = csr_view(xp, parts, _kept(xp, parts.data), "A", keep)
    context = context_for(device, xp.place(keep[0]))

    def made(function, *given, allow: int = 0) -> Owned:
        """A matrix created by the library; its handle is null if the status was ``allow``."""
        owner = Owned()
        context.run(LONG, function, context.handle, *given, byref(owner.handle), allow=allow, progress=progress,
                    stream=xp.stream(keep[0]))
        return owner

    if parts.by_columns:                # checked here: with an index out of range SciPy writes out of bounds
        try:
            owner = made(tl.csr_transpose, view, _lib.TRANSPOSE, allow=_lib.EPATTERN)
            if not owner.handle:        # unsorted columns
                ordered = made(tl.csr_sort, view)
                owner = made(tl.csr_transpose, ordered.view(), _lib.TRANSPOSE)
        except TulleError as error:
            in_callers_words(error, {"A": ("A", True)})
            raise
        view = owner.view()
    status = context.run(LONG, tl.write, context.handle, _path(path), view, allow=_lib.EPATTERN, progress=progress,
                         stream=xp.stream(keep[0]))
    if status:                          # unsorted rows
        owner = made(tl.csr_sort, view)
        context.run(LONG, tl.write, context.handle, _path(path), owner.view(), progress=progress)


def _kept(xp, data) -> np.dtype:
    """The type to which values can be converted without changing them."""
    dtype = xp.dtype(data)
    if dtype.newbyteorder("=") in TYPE:
        return dtype.newbyteorder("=")
    if dtype.kind in "biu":
        if dtype.itemsize == 8 and len(data) and int(abs(data).max()) > 1 << 53:
            raise DtypeError(f"A has {dtype} values that no double can hold")
        return np.dtype("float64")
    if dtype.kind == "f" and dtype.itemsize < 4:
        return np.dtype("float32")
    raise DtypeError(f"A has {dtype} values, which cannot be written without changing them")


def gallery(recipe: str, *, device: Union[None, str, Context] = "cpu", progress: Optional[Progress] = None) -> Any:
    """Generates a well-known matrix by name, such as ``"poisson2d:1000"``, ``"cage12"``,
    ``"rmat:scale=14,edges=16,seed=1"``.

    :func:`recipes` lists them. The result is SciPy's ``csr_array`` of doubles, the same on every machine.

    >>> gallery("cage5").nnz
    233
    """
    context = context_for(device)
    owner = Owned()
    if not recipe:
        raise InvalidError(f"recipe is {recipe!r}, which cannot be a name")
    context.run(LONG, tl.gallery, context.handle, _name(recipe, "recipe"), byref(owner.handle), progress=progress)
    return _sparse(owner)


def recipes() -> dict[str, str]:
    """The names for :func:`gallery`, each with a line that describes its parameters.

    >>> "poisson2d" in recipes()
    True
    """
    return {name: tl.gallery_text(i).decode() for i, name in enumerate(_lib.words(tl.gallery_name))}
