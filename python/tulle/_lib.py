# SPDX-License-Identifier: MIT
"""The declarations of include/tulle.h for ctypes, and libtulle.so itself.

Structures, constants and argument types of the header are declared in this file only; tests/test_header.py
compares them with the header, so a change there that is missing here makes a test fail.

The library is the file that the environment variable ``TULLE_LIBRARY`` names, else the one next to this file.
"""
from __future__ import annotations

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int64, c_size_t,
                    c_uint64, c_void_p)

# -------------------------------------------------------------------------- constants of the header

STATUS = {
    "OK": 0, "EINVAL": -1, "ESHAPE": -2, "EPATTERN": -3, "ETYPE": -4, "EDEVICE": -5, "ENOMEM": -100,
    "ELIMIT": -101, "EOVERFLOW": -102, "EIO": -103, "EFORMAT": -104, "ECANCEL": -105, "ECHECK": -106,
    "EDRIVER": -107, "ECOMPILE": -108, "ECOMM": -109,
}
EPATTERN = STATUS["EPATTERN"]

# Value types and index types by their names in NumPy.
TYPE = {"float32": 1, "float64": 2, "complex64": 3, "complex128": 4}
TYPE_NAMES = {"float32": "F32", "float64": "F64", "complex64": "CF32", "complex128": "CF64"}   # as in the header
INDEX = {"int32": 1, "int64": 2}
INDEX_NAMES = {"int32": "I32", "int64": "I64"}
I32, I64 = INDEX["int32"], INDEX["int64"]
HOST, DEVICE = 0, 1
KEEP, TRANSPOSE, ADJOINT = 0, 1, 2
BY_ROWS, BY_COLS = 0, 1
MAX_SHARES = 16
MAX_STAGES = 16

# ------------------------------------------------------------------------------------- structures


class Csr(Structure):
    """tulle_csr: a view over three arrays."""
    _fields_ = [("rows", c_int64), ("cols", c_int64), ("nnz", c_int64), ("row_ptr", c_void_p),
                ("col_idx", c_void_p), ("values", c_void_p), ("ptr_type", c_int), ("idx_type", c_int),
                ("val_type", c_int), ("place", c_int), ("reserved", c_uint64 * 2)]


class Dense(Structure):
    """tulle_dense: a view over a dense matrix."""
    _fields_ = [("rows", c_int64), ("cols", c_int64), ("ld", c_int64), ("val_type", c_int), ("order", c_int),
                ("values", c_void_p), ("place", c_int), ("reserved", c_uint64 * 2)]


class Options(Structure):
    """tulle_options, of a product of two sparse matrices."""
    _fields_ = [("policy", c_char_p), ("accumulator", c_char_p), ("memory_limit", c_uint64), ("threads", c_int),
                ("op_a", c_int), ("op_b", c_int), ("c_ptr_type", c_int), ("c_idx_type", c_int),
                ("drop_zeros", c_int), ("sort_inputs", c_int), ("trust_inputs", c_int), ("c_place", c_int),
                ("time_stages", c_int), ("reserved", c_uint64 * 7)]


class SpmmOptions(Structure):
    """tulle_spmm_options, of a sparse matrix times a dense one."""
    _fields_ = [("policy", c_char_p), ("memory_limit", c_uint64),
                ("op_a", c_int), ("threads", c_int), ("trust_inputs", c_int), ("allow_tf32", c_int),
                ("time_stages", c_int), ("lab", c_void_p), ("reserved", c_uint64 * 8)]


class Share(Structure):
    """tulle_share: the rows and products of one accumulator."""
    _fields_ = [("name", c_char_p), ("rows", c_int64), ("products", c_int64), ("reserved", c_uint64 * 1)]


class Stage(Structure):
    """tulle_stage: the time of one stage."""
    _fields_ = [("name", c_char_p), ("seconds", c_double), ("reserved", c_uint64 * 2)]


class Stats(Structure):
    """tulle_stats, of the last product."""
    _fields_ = [("sec_compile", c_double), ("sec_check", c_double), ("sec_analyze", c_double),
                ("sec_symbolic", c_double), ("sec_numeric", c_double), ("sec_finish", c_double),
                ("sec_total", c_double), ("a_nnz", c_int64), ("b_nnz", c_int64), ("c_nnz", c_int64),
                ("products", c_int64), ("workspace_bytes", c_uint64), ("peak_bytes", c_uint64),
                ("threads", c_int), ("shares", c_int), ("share", Share * MAX_SHARES), ("stages", c_int),
                ("stage", Stage * MAX_STAGES), ("waits", c_int), ("policy", c_char_p), ("device", c_char_p),
                ("isa", c_char_p), ("sec_upload", c_double), ("sec_download", c_double),
                ("reserved", c_uint64 * 6)]


class Forecast(Structure):
    """tulle_forecast: counts and memory before the work."""
    _fields_ = [("products", c_int64), ("nnz_lower", c_int64), ("nnz_estimate", c_int64), ("nnz_upper", c_int64),
                ("bytes_estimate", c_uint64), ("bytes_upper", c_uint64), ("shares", c_int),
                ("share", Share * MAX_SHARES), ("policy", c_char_p), ("device", c_char_p), ("sec_cpu", c_double),
                ("sec_device", c_double), ("reserved", c_uint64 * 5)]


class DeviceInfo(Structure):
    """tulle_device: one line of the list of devices."""
    _fields_ = [("name", c_char * 64), ("text", c_char * 384), ("arch", c_char * 64), ("driver", c_char * 160),
                ("memory_bytes", c_uint64), ("memory_free", c_uint64), ("processors", c_int), ("threads", c_int),
                ("usable", c_int), ("why_not", c_char * 192), ("reserved", c_uint64 * 8)]


STRUCTURES = {"tulle_csr": Csr, "tulle_dense": Dense, "tulle_options": Options, "tulle_spmm_options": SpmmOptions,
              "tulle_share": Share, "tulle_stage": Stage, "tulle_stats": Stats, "tulle_forecast": Forecast,
              "tulle_device": DeviceInfo}

ProgressFn = CFUNCTYPE(c_int, c_void_p, c_char_p, c_double)
TraceFn = CFUNCTYPE(None, c_void_p, c_char_p)

# -------------------------------------------------------------------------------------- functions

_csr, _dense, _handle = POINTER(Csr), POINTER(Dense), POINTER(c_void_p)

# name: (what it returns, its arguments)
FUNCTIONS = {
    "version": (c_char_p, []),
    "status_name": (c_char_p, [c_int]),
    "status_text": (c_char_p, [c_int]),
    "ctx_create_why": (c_int, [c_char_p, c_void_p, _handle, c_char_p, c_size_t]),
    "ctx_free": (None, [c_void_p]),
    "ctx_error": (c_char_p, [c_void_p]),
    "ctx_device": (c_char_p, [c_void_p]),
    "ctx_set_threads": (c_int, [c_void_p, c_int]),
    "ctx_set_progress": (None, [c_void_p, ProgressFn, c_void_p]),
    "ctx_set_trace": (None, [c_void_p, TraceFn, c_void_p]),
    "ctx_stats": (None, [c_void_p, POINTER(Stats)]),
    "ctx_trim": (None, [c_void_p]),
    "device_count": (c_int, []),
    "device_info": (c_int, [c_int, POINTER(DeviceInfo)]),
    "policy_name": (c_char_p, [c_int]),
    "policy_text": (c_char_p, [c_int]),
    "accumulator_name": (c_char_p, [c_int]),
    "accumulator_text": (c_char_p, [c_int]),
    "spmm_policy_name": (c_char_p, [c_int]),
    "csr_sort": (c_int, [c_void_p, _csr, _handle]),
    "csr_transpose": (c_int, [c_void_p, _csr, c_int, _handle]),
    "csr_from_coo": (c_int, [c_void_p, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_int, c_void_p, c_int,
                             _handle]),
    "matrix_view": (Csr, [c_void_p]),
    "matrix_free": (None, [c_void_p]),
    "read": (c_int, [c_void_p, c_char_p, _handle]),
    "read_mapped": (c_int, [c_void_p, c_char_p, _handle]),
    "write": (c_int, [c_void_p, c_char_p, _csr]),
    "gallery": (c_int, [c_void_p, c_char_p, _handle]),
    "gallery_name": (c_char_p, [c_int]),
    "gallery_text": (c_char_p, [c_int]),
    "multiply": (c_int, [c_void_p, _csr, _csr, POINTER(Options), _handle]),
    "estimate": (c_int, [c_void_p, _csr, _csr, POINTER(Options), POINTER(Forecast)]),
    "product_check": (c_int, [c_void_p, _csr, _csr, _csr, POINTER(Options), POINTER(c_double)]),
    "plan_create": (c_int, [c_void_p, _csr, _csr, POINTER(Options), _handle]),
    "plan_pattern": (Csr, [c_void_p]),
    "plan_run": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "plan_stats": (None, [c_void_p, POINTER(Stats)]),
    "plan_free": (None, [c_void_p]),
    "spmm": (c_int, [c_void_p, c_void_p, _csr, _dense, c_void_p, _dense, POINTER(SpmmOptions)]),
    "spmm_plan_create": (c_int, [c_void_p, _csr, POINTER(SpmmOptions), _handle]),
    "spmm_plan_run": (c_int, [c_void_p, c_void_p, _dense, c_void_p, _dense]),
    "spmm_plan_set_values": (c_int, [c_void_p, c_void_p]),
    "spmm_plan_stats": (None, [c_void_p, POINTER(Stats)]),
    "spmm_plan_free": (None, [c_void_p]),
    "cuda_set_stream": (c_int, [c_void_p, c_void_p]),
}


def library_path() -> str:
    """The file that is loaded: ``$TULLE_LIBRARY``, else libtulle.so in this package.

    >>> "libtulle.so" in library_path()
    True
    """
    return os.environ.get("TULLE_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libtulle.so")


def _load():
    path = library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"tulle's library cannot be loaded: {error}. It is part of the wheel; beside a build of the "
                          f"repository, TULLE_LIBRARY names it (build/libtulle.so)") from None
    names = type("Functions", (), {"__slots__": tuple(FUNCTIONS)})()
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, "tulle_" + name)
        function.restype, function.argtypes = result, arguments
        setattr(names, name, function)
    return names


tl = _load()                            # tl.multiply is tulle_multiply, and so on


def words(name_of) -> list[str]:
    """All names that a function of the library enumerates, such as ``tl.policy_name``.

    >>> "auto" in words(tl.policy_name)
    True
    """
    found: list[str] = []
    while (name := name_of(len(found))) is not None:
        found.append(name.decode())
    return found
