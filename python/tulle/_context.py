# SPDX-License-Identifier: MIT
"""Contexts: a device, its memory and its threads.

Every function finds one by itself: each thread of Python has its own for each device it uses, made when it is
first needed, so threads do not wait for each other. A :class:`Context` made by hand may be shared by threads:
they take turns.
"""
from __future__ import annotations

import ctypes
import os
import threading
from threading import get_ident
from typing import Callable, NamedTuple, Optional, Union

from . import _lib
from ._lib import tl
from ._signals import Held, in_main_thread
from .errors import DeviceError, InvalidError, error_of

LONG = 4096             # entries of operands from which on a call can be interrupted: below, it takes no time

Progress = Callable[[str, float], object]


class Stats(NamedTuple):
    """What the last product of a context took."""
    seconds: float
    products: int
    a_nnz: int
    b_nnz: int
    c_nnz: int
    workspace_bytes: int
    peak_bytes: int
    threads: int
    policy: str
    device: str
    isa: str
    shares: dict[str, tuple[int, int]]      # accumulator: (rows, products)


def _text(text: Optional[bytes]) -> str:
    return text.decode(errors="replace") if text else ""


class Core:
    """The library's context, freed when neither a Context nor a plan needs it."""
    __slots__ = ("handle", "lock", "holder", "dropped")
    _free = tl.ctx_free                 # found while the interpreter ends, too

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()
        self.lock = threading.Lock()
        self.holder = 0                 # the thread that has the lock
        self.dropped: list = []         # (free, plan) of plans that went while a call was under way

    def drop(self, free, plan) -> None:
        """Frees a plan of this context: now or, where a call is under way, after it.

        A plan goes when the garbage collector says so, in any thread; its memory is the context's, which
        serves one thread at a time.
        """
        self.dropped.append((free, plan))
        if self.lock.acquire(False):
            try:
                self.free_dropped()
            finally:
                self.lock.release()

    def free_dropped(self) -> None:
        """Frees what was dropped; the caller has the lock."""
        while self.dropped:
            free, plan = self.dropped.pop()
            free(plan)

    def __del__(self) -> None:
        # After a fork, another thread may have been at work with it: then it stays as it is.
        if self.handle and not self.lock.locked():
            self.free_dropped()
            self._free(self.handle)


class Context:
    """A device with its memory and threads.

    ``device`` is a name of :func:`tulle.devices`; several with commas, ``"cpu,cuda:0"``, share each product;
    ``"cpu/cuda:0"`` chooses one of both for each product by a forecast. None is ``$TULLE_DEVICE``, or else that choice
    with the best GPU there is, or the CPU.
    ``threads`` are those of the CPU (None: all cores). ``progress(stage, fraction)`` is called now and then
    during long work; what it returns, when true, cancels, and an exception in it ends the work and comes out
    of the call. In a ``with`` block the context is the one that functions use without being told; the end of
    the last such block, in any thread, closes it. ``device=`` takes a context as well as a name.

    >>> import tulle
    >>> A = tulle.gallery("poisson2d:10")
    >>> with tulle.Context("cpu", threads=2) as ctx:
    ...     C = tulle.matmul(A, A)
    ...     ctx.stats().products
    2148
    """

    def __init__(self, device: Optional[str] = None, *, threads: Optional[int] = None,
                 progress: Optional[Progress] = None) -> None:
        self._core: Optional[Core] = None       # None: closed, or never made
        self._callback = None                   # what the library calls, while it may
        self._stream = None                     # the caller's stream, kept as long as the library may look at it
        self._stream_id = 0
        self._blocks: list = []                 # one entry for each with block, of any thread, that has not ended
        self.progress = progress
        why = ctypes.create_string_buffer(1024)
        core = Core()
        name = None if device is None else _name(str(device), "device")
        status = tl.ctx_create_why(name, None, ctypes.byref(core.handle), why, len(why))
        if status:
            raise error_of(status, _text(why.value))
        self._core = core
        self.device: str = _text(tl.ctx_device(core.handle))
        if threads is not None:
            self.run(0, tl.ctx_set_threads, core.handle, _whole(threads, "threads"))

    # ---- calls

    @property
    def core(self) -> Core:
        """What a plan keeps."""
        if self._core is None:
            raise InvalidError("this context is closed")
        return self._core

    @property
    def handle(self) -> ctypes.c_void_p:
        """The tulle_ctx of the library."""
        return self.core.handle

    def run(self, size: int, function, *arguments, allow: int = 0, progress: Optional[Progress] = None,
            trace: Optional[list] = None, stream: Optional[tuple] = None) -> int:
        """Calls a function of the library, which may take long where ``size`` (entries) is large.

        Raises what its status says, unless that is the one in ``allow``, which is returned. The lines that
        the library tells of its choices go into ``trace``. The work goes to the CUDA stream ``stream``, set
        by who has the lock: another thread's call cannot come in between.
        """
        core = self.core
        lock = core.lock
        if not lock.acquire(False):
            if core.holder == get_ident():
                raise InvalidError("this context is at work: its progress callback cannot use it")
            lock.acquire()
        core.holder = get_ident()
        try:
            if stream is not None:
                self.use_stream(*stream)
            progress = progress or self.progress
            if trace is not None:
                status = self._traced(core, function, arguments, trace)
            elif progress is not None or (size > LONG and in_main_thread()):
                status = self._watched(core, function, arguments, progress)
            else:
                status = function(*arguments)
            if status and status != allow:
                raise error_of(status, _text(tl.ctx_error(core.handle)))
            return status
        finally:
            if core.dropped:
                core.free_dropped()
            core.holder = 0
            lock.release()

    def _watched(self, core: Core, function, arguments, progress: Optional[Progress]) -> int:
        """The call with progress told and signals heeded."""
        raised: list[BaseException] = []

        def told(_user, stage, fraction):
            try:
                held.run()
                return 1 if progress is not None and progress(_text(stage), fraction) else 0
            except BaseException as error:          # whatever it is, it comes out of the call below
                raised.append(error)
                return 1

        self._callback = _lib.ProgressFn(told)
        with Held() as held:
            tl.ctx_set_progress(core.handle, self._callback, None)
            try:
                status = function(*arguments)
            finally:
                tl.ctx_set_progress(core.handle, _lib.ProgressFn(), None)
                self._callback = None
        if raised:
            raise raised[0]
        return status

    @staticmethod
    def _traced(core: Core, function, arguments, lines: list) -> int:
        note = _lib.TraceFn(lambda _user, line: lines.append(_text(line)))
        tl.ctx_set_trace(core.handle, note, None)
        try:
            return function(*arguments)
        finally:
            tl.ctx_set_trace(core.handle, _lib.TraceFn(), None)

    def use_stream(self, stream, number: int) -> None:
        """Work goes to this CUDA stream from now on; ``stream`` is the object that keeps it alive. The caller
        has the lock.
        """
        if number != self._stream_id:
            status = tl.cuda_set_stream(self.handle, number)
            if status:
                raise error_of(status, _text(tl.ctx_error(self.handle)))
            self._stream, self._stream_id = stream, number

    # ---- what it can tell

    def stats(self) -> Stats:
        """Counts, times and memory of its last product."""
        raw = _lib.Stats()
        tl.ctx_stats(self.handle, ctypes.byref(raw))
        return stats_of(raw)

    def trim(self) -> None:
        """Gives memory back that is kept from one product to the next."""
        self.run(0, tl.ctx_trim, self.handle)

    # ---- its life

    def close(self) -> None:
        """Ends its use; the library's context goes with the last plan that was made with it. Results live
        on.
        """
        self._core = None

    def __enter__(self) -> Context:
        self.handle             # a closed one is refused
        _mine.stack.append(self)
        self._blocks.append(None)
        return self

    def __exit__(self, kind, error, trace) -> None:
        stack = _mine.stack     # of the thread that leaves the block, which may be another than has entered it
        for i in range(len(stack) - 1, -1, -1):
            if stack[i] is self:
                del stack[i]
                break
        self._blocks.pop()
        if not self._blocks:
            self.close()

    def __repr__(self) -> str:
        return f"<tulle.Context {self.device}{', closed' if self._core is None else ''}>"

    def __reduce__(self):
        raise TypeError("a context belongs to its process and cannot be pickled")


def stats_of(raw: _lib.Stats) -> Stats:
    """The library's numbers as Python's."""
    shares = {_text(s.name): (s.rows, s.products) for s in raw.share[:raw.shares] if s.rows}
    return Stats(raw.sec_total, raw.products, raw.a_nnz, raw.b_nnz, raw.c_nnz, raw.workspace_bytes, raw.peak_bytes,
                 raw.threads, _text(raw.policy), _text(raw.device), _text(raw.isa), shares)


# ---- which one is used

class _Mine(threading.local):
    def __init__(self) -> None:
        self.stack: list[Context] = []          # of with blocks
        self.contexts: dict[str, Context] = {}
        self.default = os.environ.get("TULLE_DEVICE") or "cpu"


_mine = _Mine()


def context_for(device: Union[None, str, Context], at: Optional[str] = None) -> Context:
    """The context for a call: ``device`` is what the caller said, ``at`` the device on which operands lie.

    Operands of the host are multiplied on the CPU unless somebody says otherwise: ``device``, a ``with``
    block or ``$TULLE_DEVICE``.
    """
    mine = _mine
    if device is None:
        if mine.stack and (at is None or mine.stack[-1].device == at):
            return mine.stack[-1]
        name = at or mine.default
    elif isinstance(device, Context):
        return _checked(device, at)
    else:
        name = str(device)
    found = mine.contexts.get(name)
    if found is None or found._core is None:
        found = Context(name)
        mine.contexts[name] = found
    return found if at is None else _checked(found, at)


def _checked(context: Context, at: Optional[str]) -> Context:
    if at is not None and context.device != at:
        raise DeviceError(f"the operands lie on {at}, but the device asked for is {context.device}")
    return context


def _name(word: Optional[str], what: str) -> Optional[bytes]:
    """A name of a caller as C has it, where a zero would be its end."""
    if word is None or word == "":
        return None
    if isinstance(word, str) and "\0" not in word:
        try:
            return word.encode()
        except UnicodeEncodeError:      # half of a character
            pass
    raise InvalidError(f"{what} is {word!r}, which cannot be a name")


def _whole(number, what: str) -> int:
    """An integer of a caller, for a field of the library."""
    try:
        value = number.__index__()
    except AttributeError:
        raise InvalidError(f"{what} is {number!r}, it must be a whole number") from None
    if not 0 <= value < 2**63 or (what == "threads" and value > 1 << 16):
        raise InvalidError(f"{what} is {value}, which is not possible")
    return value
