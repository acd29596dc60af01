# SPDX-License-Identifier: MIT
"""The supported kinds of matrices: sparse ones of SciPy, CuPy, PyTorch and tulle, and dense ones.

A :class:`Kind` extracts the arrays of a matrix, and builds a result of the same kind. The kind of a class is
determined once, from the name of the library that it comes from, without importing that library.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from . import _arrays
from ._arrays import Parts
from ._csr import Csr
from .errors import DtypeError, InvalidError, ShapeError

_tuple = tuple.__new__                  # creates a named tuple in half the time of its constructor


class Kind:
    """How the arrays of matrices of one class are extracted, and results are built."""
    sparse = True
    family = ""                         # kinds of one family can be multiplied with each other

    def arrays(self, A):
        """The library of its arrays: NUMPY, CUPY or TORCH_CUDA."""
        return _arrays.NUMPY

    def parts(self, A) -> Parts:
        raise NotImplementedError

    def build(self, like, shape, indptr, indices, data, by_columns: bool):
        """A result of the same kind as ``like`` with these arrays."""
        raise NotImplementedError

    def target(self, out):
        """The array of values of the caller's ``out``, which will be written."""
        return self.parts(out).data

    def index_type(self, A) -> int:
        """The index type of results if this kind supports only one, or 0."""
        return 0

    def compressed(self, A) -> bool:
        """Whether it is stored as CSR or CSC, so that its values are in the order of ``parts``."""
        return A.format in ("csr", "csc")


# --------------------------------------------------------------------------------------------- SciPy


class ScipyKind(Kind):
    """SciPy's sparse arrays and matrices. CSR and CSC are used as they are, others are converted to CSR, as
    SciPy does.
    """
    family = "SciPy"

    def parts(self, A) -> Parts:
        form, shape = A.format, A.shape
        if len(shape) != 2:
            _two_dimensions(A, "a sparse array of SciPy")
        if form != "csr" and form != "csc":
            A = A.tocsr()
        return _tuple(Parts, (shape[0], shape[1], A.indptr, A.indices, A.data, form == "csc"))

    def build(self, like, shape, indptr, indices, data, by_columns: bool):
        cls = type(like)
        if like.format != ("csc" if by_columns else "csr"):
            cls = type(_empty_like(like, by_columns))
        template = _TEMPLATES.get(cls)
        if template is None:
            template = _template(cls)
        if not template:
            result = cls((data, indices, indptr), shape=shape, copy=False)
            result.has_canonical_format = True
            return result
        result = cls.__new__(cls)
        fields = result.__dict__
        fields.update(template)
        fields["_shape"], fields["data"], fields["indices"], fields["indptr"] = shape, data, indices, indptr
        return result


def _empty_like(like, by_columns: bool):
    import scipy.sparse
    name = ("csc" if by_columns else "csr") + ("_array" if is_array(like) else "_matrix")
    return getattr(scipy.sparse, name)((1, 1))


def is_array(A) -> bool:
    """Whether it is one of SciPy's or CuPy's sparse arrays, not matrices."""
    return any(cls.__name__ in ("sparray", A.format + "_array") for cls in type(A).__mro__)


# SciPy's constructors read every index, which takes longer than a small product. So the attributes are copied
# from an empty matrix of the class; if these are not the expected ones, the constructor is called.
_TEMPLATES: dict[type, dict] = {}


def _template(cls: type) -> dict:
    fields: dict = {}
    if cls.__module__.startswith("scipy."):
        empty = cls((1, 1))
        empty.has_canonical_format = True
        fields = dict(getattr(empty, "__dict__", {}))
        if not {"_shape", "data", "indices", "indptr"} <= set(fields) or fields["_shape"] != (1, 1):
            fields = {}
    _TEMPLATES[cls] = fields
    return fields


# ---------------------------------------------------------------------------------------------- CuPy


class CupyKind(Kind):
    """cupyx.scipy.sparse matrices and, since CuPy 14, arrays. Indices have 32 bits or, since CuPy 14, 64."""
    family = "CuPy"

    def arrays(self, A):
        return _arrays.CUPY

    def parts(self, A) -> Parts:
        _two_dimensions(A, "a sparse array of CuPy")
        if A.format not in ("csr", "csc"):
            A = A.tocsr()
        return Parts(A.shape[0], A.shape[1], A.indptr, A.indices, A.data, A.format == "csc")

    def index_type(self, A) -> int:
        indices = getattr(A, "indices", getattr(A, "row", None))        # COO has `row`
        wide = indices is not None and indices.dtype == np.dtype("int64")
        return _arrays.INDEX[np.dtype("int64" if wide else "int32")]

    def build(self, like, shape, indptr, indices, data, by_columns: bool):
        import cupyx.scipy.sparse
        cls = getattr(cupyx.scipy.sparse, ("csc" if by_columns else "csr") + ("_array" if is_array(like) else "_matrix"))
        if hasattr(cls, "_from_parts"):     # since CuPy 14, whose constructor synchronises and narrows the indices
            return cls._from_parts(data, indices, indptr, shape, has_canonical_format=True)
        result = cls((data, indices, indptr), shape=shape, copy=False)
        result._has_canonical_format = result._has_sorted_indices = True
        return result


# ------------------------------------------------------------------------------------------- PyTorch


class TorchKind(Kind):
    """PyTorch's sparse CSR and CSC tensors, on the CPU or on CUDA; COO and BSR/BSC are converted to CSR."""
    family = "PyTorch"

    def arrays(self, A):
        return _torch_arrays(A)

    def parts(self, A) -> Parts:
        import torch
        if A.dim() != 2:
            _two_dimensions(A, "a sparse tensor")
        _no_gradient(A)
        if A.layout is torch.sparse_csc:
            pointers, indices, by_columns = A.ccol_indices(), A.row_indices(), True
        else:
            if A.layout is not torch.sparse_csr:
                A = A.to_sparse_coo().to_sparse_csr()       # blocks cannot be converted directly
            pointers, indices, by_columns = A.crow_indices(), A.col_indices(), False
        return Parts(A.shape[0], A.shape[1], *(_torch_host(A, x) for x in (pointers, indices, A.values())), by_columns)

    def index_type(self, A) -> int:
        import torch
        indices = {torch.sparse_csr: "col_indices", torch.sparse_csc: "row_indices"}.get(A.layout)
        wide = indices is None or getattr(A, indices)().dtype is torch.int64
        return _arrays.INDEX[np.dtype("int64" if wide else "int32")]

    def target(self, out):
        _own_values(out.values())
        return self.parts(out).data

    def compressed(self, A) -> bool:
        import torch
        return A.layout in (torch.sparse_csr, torch.sparse_csc)

    def build(self, like, shape, indptr, indices, data, by_columns: bool):
        import torch
        if isinstance(data, np.ndarray):
            indptr, indices, data = torch.from_numpy(indptr), torch.from_numpy(indices), torch.from_numpy(data)
        make = torch.sparse_csc_tensor if by_columns else torch.sparse_csr_tensor
        return make(indptr, indices, data, size=tuple(shape), check_invariants=False)


def _torch_arrays(A):
    kind = A.device.type
    if kind == "cpu":
        return _arrays.NUMPY
    if kind == "cuda":
        return _arrays.TORCH_CUDA
    raise DtypeError(f"a tensor on {A.device}: tulle takes those on the CPU and on CUDA")


def _torch_host(A, x):
    """A tensor in host memory as an array of NumPy over the same memory; a CUDA tensor unchanged."""
    x = x.detach().resolve_conj().resolve_neg()
    if A.device.type != "cpu":
        return x
    try:
        return x.numpy()
    except TypeError:                   # the type does not exist in NumPy
        raise DtypeError(f"a tensor of {x.dtype}: tulle multiplies {_arrays.NAMES}") from None


def _own_values(x) -> None:
    """Rejects an ``out`` that is a lazily conjugated or negated tensor: results would be written to a copy."""
    if x.is_conj() or x.is_neg():
        raise InvalidError("out is the conjugate of another tensor, or its negative, without memory of its own: give "
                           "out.resolve_conj().resolve_neg()")


def _no_gradient(x) -> None:
    import torch
    if x.requires_grad and torch.is_grad_enabled():
        raise DtypeError("a tensor requires its gradient, which tulle does not record: give x.detach(), or put the "
                         "product into a torch.autograd.Function (docs/python.md has one)")


# --------------------------------------------------------------------------------- tulle's own, dense


class OwnKind(Kind):
    """:class:`tulle.Csr`, used if SciPy is not installed."""
    family = "SciPy"                    # both consist of arrays of NumPy

    def parts(self, A) -> Parts:
        return Parts(A.shape[0], A.shape[1], A.indptr, A.indices, A.data, False)

    def build(self, like, shape, indptr, indices, data, by_columns: bool):
        return Csr(data, indices, indptr, shape)


class DenseKind(Kind):
    """Dense arrays of NumPy, CuPy and PyTorch."""
    sparse = False

    def __init__(self, family: str) -> None:
        self.family = family

    def arrays(self, A):
        if self.family == "PyTorch":
            return _torch_arrays(A)
        return _arrays.CUPY if self.family == "CuPy" else _arrays.NUMPY

    def array(self, A):
        """The array whose memory is used."""
        if self.family == "PyTorch":
            _no_gradient(A)
            return _torch_host(A, A)
        if isinstance(A, np.ma.MaskedArray) and np.ma.is_masked(A):
            raise DtypeError("a masked array hides some of its values, and a product would use them: give A.filled(0)")
        return np.asarray(A) if self.family == "SciPy" else A

    def target(self, out):
        if self.family == "PyTorch":
            _own_values(out)
        return self.array(out)

    def give(self, like, y):
        """A dense result as an array of the caller's library."""
        if self.family == "PyTorch" and isinstance(y, np.ndarray):
            import torch
            return torch.from_numpy(y)
        return y


_SCIPY, _CUPY, _TORCH, _OWN = ScipyKind(), CupyKind(), TorchKind(), OwnKind()
_DENSE = {family: DenseKind(family) for family in ("SciPy", "CuPy", "PyTorch")}
_BY_CLASS: dict[type, Kind] = {Csr: _OWN, np.ndarray: _DENSE["SciPy"]}


def kind_of(A: Any, name: str) -> Kind:
    """The kind of an operand; ``name`` is its name in error messages."""
    kind = _BY_CLASS.get(type(A))
    if kind is None:
        kind = _find(A, name)
    return kind


def _find(A: Any, name: str) -> Kind:
    def is_a(module: str, *names: str) -> bool:
        loaded = sys.modules.get(module)
        return loaded is not None and any(isinstance(A, getattr(loaded, n)) for n in names if hasattr(loaded, n))

    if is_a("torch", "Tensor"):                 # the same class for sparse and dense
        import torch
        return _DENSE["PyTorch"] if A.layout is torch.strided else _TORCH
    if is_a("scipy.sparse", "sparray", "spmatrix") or _is_old_scipy(A):
        kind: Kind = _SCIPY
    elif is_a("cupyx.scipy.sparse", "sparray", "spmatrix"):
        kind = _CUPY
    elif is_a("cupy", "ndarray"):
        kind = _DENSE["CuPy"]
    elif isinstance(A, np.ndarray):
        kind = _DENSE["SciPy"]
    else:
        raise DtypeError(f"{name} is a {type(A).__module__}.{type(A).__qualname__}: tulle takes sparse matrices of SciPy, CuPy "
                         f"and PyTorch, and dense arrays of them and of NumPy")
    _BY_CLASS[type(A)] = kind
    return kind


def _is_old_scipy(A: Any) -> bool:
    """Whether it is a sparse array of SciPy before 1.11, where these have no public base class."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and scipy.issparse(A)


def same_family(a: Kind, b: Kind, A: Any, B: Any, name: str = "B") -> None:
    """Rejects operands of different libraries, or of which only one is on a device."""
    if a is b and a.family == "SciPy":
        return
    if a.family != b.family:
        raise DtypeError(f"A is {a.family}'s and {name} is {b.family}'s: bring both to one library first")
    if a.arrays(A) is not b.arrays(B):
        raise DtypeError("one operand lies in the host's memory and the other on a CUDA device: move one of them first")


def _two_dimensions(A: Any, what: str) -> None:
    if len(A.shape) != 2:
        raise ShapeError(f"{what} of {len(A.shape)} dimensions: tulle multiplies matrices, which have 2")
