# SPDX-License-Identifier: MIT
"""Contexts: a device, its memory and its threads.

By default every Python thread has its own context for each device that it uses, created when it is first
needed, so threads do not wait for each other. A :class:`Context` that is created explicitly may be shared by
threads: they take turns.
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

LONG = 4096             # calls with at least this many entries can be interrupted; shorter ones take no time

Progress = Callable[[str, float], object]


class Stats(NamedTuple):
    """Counts, times and memory of the last product of a context."""
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
    _free = tl.ctx_free                 # an attribute, as globals may be gone when the interpreter exits

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()
        self.lock = threading.Lock()
        self.holder = 0                 # the thread that holds the lock
        self.dropped: list = []         # (free, plan) of plans that were collected during a call

    def drop(self, free, plan) -> None:
        """Frees a plan of this context: now, or after the current call if there is one.

        The garbage collector may delete a plan at any time and in any thread, but its memory belongs to the
        context, which only one thread may use at a time.
        """
        self.dropped.append((free, plan))
        if self.lock.acquire(False):
            try:
                self.free_dropped()
            finally:
                self.lock.release()

    def free_dropped(self) -> None:
        """Frees the plans that were dropped; the caller holds the lock."""
        while self.dropped:
            free, plan = self.dropped.pop()
            free(plan)

    def __del__(self) -> None:
        # In a child of fork(), a thread of the parent may have been using it: then it is not freed.
        if self.handle and not self.lock.locked():
            self.free_dropped()
            self._free(self.handle)


class Context:
    """A device with its memory and threads.

    ``device`` is a name from :func:`tulle.devices`. Several names with commas, ``"cpu,cuda:0"``, share each
    product; ``"cpu/cuda:0"`` chooses one of the two for each product, the one with the shorter predicted time.
    None means ``$TULLE_DEVICE`` if that is set, else the choice between the CPU and the best GPU, or the CPU if
    there is no GPU.

    ``threads`` is the number of CPU threads (None: all cores). ``progress(stage, fraction)`` is called now and
    then during long work; it cancels the work by returning a true value, and an exception in it ends the work
    and is raised by the call. In a ``with`` block the context is the default of all functions in that thread;
    the end of the last such block, in any thread, closes it. ``device=`` accepts a context as well as a name.

    >>> import tulle
    >>> A = tulle.gallery("poisson2d:10")
    >>> with tulle.Context("cpu", threads=2) as ctx:
    ...     C = tulle.matmul(A, A)
    ...     ctx.stats().products
    2148
    """

    def __init__(self, device: Optional[str] = None, *, threads: Optional[int] = None,
                 progress: Optional[Progress] = None) -> None:
        self._core: Optional[Core] = None       # None: closed, or creation failed
        self._callback = None                   # a reference, as long as the library may call it
        self._stream = None                     # a reference to the caller's stream, as long as the library may use it
        self._stream_id = 0
        self._blocks: list = []                 # one entry for each current with block of any thread
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
        """The object that a plan refers to, so that the library's context exists as long as the plan."""
        if self._core is None:
            raise InvalidError("this context is closed")
        return self._core

    @property
    def handle(self) -> ctypes.c_void_p:
        """The tulle_ctx of the library."""
        return self.core.handle

    def run(self, size: int, function, *arguments, allow: int = 0, progress: Optional[Progress] = None,
            trace: Optional[list] = None, stream: Optional[tuple] = None) -> int:
        """Calls a function of the library, which may take long if ``size`` (entries) is large.

        Raises the exception for its status, unless that is the one in ``allow``, which is returned. The trace
        lines of the library are appended to ``trace``. The CUDA stream is set to ``stream`` while the lock is
        held, so that no other thread can change it before the call.
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
        """The call, with progress reports, and with handling of signals."""
        raised: list[BaseException] = []

        def told(_user, stage, fraction):
            try:
                held.run()
                return 1 if progress is not None and progress(_text(stage), fraction) else 0
            except BaseException as error:          # raised again after the call of the library
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
        """Sets the CUDA stream of this context; ``stream`` is the object that keeps it alive. The caller holds
        the lock.
        """
        if number != self._stream_id:
            status = tl.cuda_set_stream(self.handle, number)
            if status:
                raise error_of(status, _text(tl.ctx_error(self.handle)))
            self._stream, self._stream_id = stream, number

    # ---- statistics and memory

    def stats(self) -> Stats:
        """Counts, times and memory of its last product."""
        raw = _lib.Stats()
        tl.ctx_stats(self.handle, ctypes.byref(raw))
        return stats_of(raw)

    def trim(self) -> None:
        """Frees memory that is kept for later products."""
        self.run(0, tl.ctx_trim, self.handle)

    # ---- closing

    def close(self) -> None:
        """Closes the context. The library's context is freed with the last plan that was created with it;
        results remain valid.
        """
        self._core = None

    def __enter__(self) -> Context:
        self.handle             # raises an exception if the context is closed
        _mine.stack.append(self)
        self._blocks.append(None)
        return self

    def __exit__(self, kind, error, trace) -> None:
        stack = _mine.stack     # of the thread that leaves the block, which may not be the one that entered it
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
    """Converts the library's structure."""
    shares = {_text(s.name): (s.rows, s.products) for s in raw.share[:raw.shares] if s.rows}
    return Stats(raw.sec_total, raw.products, raw.a_nnz, raw.b_nnz, raw.c_nnz, raw.workspace_bytes, raw.peak_bytes,
                 raw.threads, _text(raw.policy), _text(raw.device), _text(raw.isa), shares)


# ---- the context for a call

class _Mine(threading.local):
    def __init__(self) -> None:
        self.stack: list[Context] = []          # of nested with blocks
        self.contexts: dict[str, Context] = {}
        self.default = os.environ.get("TULLE_DEVICE") or "cpu"


_mine = _Mine()


def context_for(device: Union[None, str, Context], at: Optional[str] = None) -> Context:
    """The context for a call: ``device`` is the caller's argument, ``at`` the device that holds the operands.

    Operands in host memory are multiplied on the CPU, unless ``device``, a ``with`` block or
    ``$TULLE_DEVICE`` names another device.
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
    """Encodes a name for C; rejects zero bytes, which would end it."""
    if word is None or word == "":
        return None
    if isinstance(word, str) and "\0" not in word:
        try:
            return word.encode()
        except UnicodeEncodeError:      # a lone surrogate
            pass
    raise InvalidError(f"{what} is {word!r}, which cannot be a name")


def _whole(number, what: str) -> int:
    """Checks an integer argument for a field of a library structure."""
    try:
        value = number.__index__()
    except AttributeError:
        raise InvalidError(f"{what} is {number!r}, it must be a whole number") from None
    if not 0 <= value < 2**63 or (what == "threads" and value > 1 << 16):
        raise InvalidError(f"{what} is {value}, which is not possible")
    return value
