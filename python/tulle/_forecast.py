# SPDX-License-Identifier: MIT
"""The cost of a product and the algorithms that would be chosen for it, without computing it."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Union

from . import _lib
from ._context import Context, _text, context_for
from ._kinds import kind_of
from ._lib import tl
from ._matmul import Pair, op_of, pair_of
from .errors import DtypeError, TulleError


class Forecast(NamedTuple):
    """Counts and memory of a product before it is computed. nnz_lower and nnz_upper are guaranteed bounds;
    bytes are the peak on the CPU, including C.
    """
    products: int
    nnz_lower: int
    nnz_estimate: int
    nnz_upper: int
    bytes_estimate: int
    bytes_upper: int
    policy: str
    shares: dict[str, tuple[int, int]]      # accumulator: (rows, products)
    device: str                             # on which matmul() would compute it
    seconds_cpu: float                      # with transfers; 0 unless the context chooses between the CPU and a GPU
    seconds_device: float


def estimate(A: Any, B: Any, *, out_dtype: Any = None, policy: Optional[str] = None, accumulator: Optional[str] = None,
             transpose_a: Union[bool, str] = False, transpose_b: Union[bool, str] = False,
             device: Union[None, str, Context] = None) -> Forecast:
    """Counts and memory of the product A*B of sparse matrices.

    >>> import tulle
    >>> A = tulle.gallery("poisson2d:100")
    >>> f = tulle.estimate(A, A)
    >>> f.products, f.nnz_lower <= tulle.matmul(A, A).nnz <= f.nnz_upper
    (246408, True)
    """
    return _forecast(A, B, out_dtype, policy, accumulator, transpose_a, transpose_b, device)[0]


def explain(A: Any, B: Any, *, out_dtype: Any = None, policy: Optional[str] = None, accumulator: Optional[str] = None,
            transpose_a: Union[bool, str] = False, transpose_b: Union[bool, str] = False,
            device: Union[None, str, Context] = None) -> str:
    """The same as text: which algorithms would be chosen for A*B, and why.

    >>> import tulle
    >>> A = tulle.gallery("poisson2d:100")
    >>> print(tulle.explain(A, A).splitlines()[1])
    products       246,408
    """
    lines: list[str] = []
    f, pair = _forecast(A, B, out_dtype, policy, accumulator, transpose_a, transpose_b, device, lines)
    text = [f"C = A*B: {pair.shape[0]:,} x {pair.shape[1]:,}, about {f.nnz_estimate:,} entries ({f.nnz_lower:,} to {f.nnz_upper:,})",
            f"products       {f.products:,}",
            f"peak memory    about {f.bytes_estimate:,} bytes, at most {f.bytes_upper:,}",
            f"policy         {f.policy}"]
    text += [f"{name:14} {rows:,} rows, {products:,} products" for name, (rows, products) in f.shares.items()]
    if lines:
        text += ["why"] + ["  " + line for line in lines]
    return "\n".join(text)


def _forecast(A, B, out_dtype, policy, accumulator, transpose_a, transpose_b, device,
              trace: Optional[list] = None) -> tuple[Forecast, Pair]:
    kind_a, kind_b = kind_of(A, "A"), kind_of(B, "B")
    if not (kind_a.sparse and kind_b.sparse):
        raise DtypeError("a forecast is for the product of two sparse matrices")
    pair = pair_of(A, B, kind_a, kind_b, out_dtype, op_of(transpose_a, "transpose_a"), op_of(transpose_b, "transpose_b"))
    context = context_for(device, pair.xp.place(pair.keep[0]))
    stream = pair.xp.stream(pair.keep[0])
    options = pair.options(False, policy, accumulator) or _lib.Options()
    raw = _lib.Forecast()
    size = pair.left.nnz + pair.right.nnz
    try:
        status = context.run(size, tl.estimate, context.handle, pair.left, pair.right, options, raw, allow=_lib.EPATTERN,
                             trace=trace, stream=stream)
        if status:                      # unsorted rows
            options.sort_inputs = 1
            context.run(size, tl.estimate, context.handle, pair.left, pair.right, options, raw, trace=trace, stream=stream)
    except TulleError as error:
        raise pair.said(error) from None
    shares = {_text(s.name): (s.rows, s.products) for s in raw.share[:raw.shares] if s.rows}
    return Forecast(raw.products, raw.nnz_lower, raw.nnz_estimate, raw.nnz_upper, raw.bytes_estimate, raw.bytes_upper,
                    _text(raw.policy), shares, _text(raw.device), raw.sec_cpu, raw.sec_device), pair
