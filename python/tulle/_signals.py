# SPDX-License-Identifier: MIT
"""Ctrl-C, alarms and other signals while the library works.

Python runs the handler of a signal when the main thread next executes Python code. During a long product that
is the progress callback; but ctypes prints and discards an exception that leaves a callback. So while the
library works, handlers that are Python functions are replaced by one that only records the signal, and the
progress callback runs the recorded ones where it can catch their exceptions: an exception cancels the product,
and is raised again after it.
"""
from __future__ import annotations

import signal
import threading

try:                                    # without the enums of the module signal, which take 20 us per call
    from _signal import getsignal as _get, signal as _set
except ImportError:
    from signal import getsignal as _get, signal as _set

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGPROF")
_NUMBERS = tuple(int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name))


def in_main_thread() -> bool:
    """Whether this is the thread that handles signals."""
    return threading.current_thread() is threading.main_thread()


class Held:
    """``with Held() as held: ...; held.run()`` - signals are recorded inside the block and handled by
    ``run()``.
    """

    def __init__(self) -> None:
        self._handlers: dict = {}
        self._noted: list = []

    def _note(self, number, frame) -> None:
        self._noted.append((number, frame))

    def run(self) -> None:
        """Runs the handlers of the recorded signals; raises their exceptions."""
        while self._noted:
            number, frame = self._noted.pop(0)
            self._handlers[number](number, frame)

    def __enter__(self) -> Held:
        if in_main_thread():
            for number in _NUMBERS:
                handler = _get(number)
                if callable(handler):
                    self._handlers[number] = handler
                    _set(number, self._note)
        return self

    def __exit__(self, kind, error, trace) -> None:
        for number, handler in self._handlers.items():
            if _get(number) == self._note:      # a handler may have set another one
                _set(number, handler)
        if kind is None:
            self.run()
