# SPDX-License-Identifier: MIT
"""The lists of devices and policies."""
from __future__ import annotations

from ctypes import byref
from typing import NamedTuple

from . import _lib
from ._context import _text
from ._lib import tl


class Device(NamedTuple):
    """A device, or a driver that is missing. ``name`` is for ``device=``."""
    name: str
    text: str
    arch: str
    driver: str
    memory_bytes: int
    memory_free: int
    processors: int
    threads: int
    usable: bool
    why_not: str


def devices() -> list[Device]:
    """The CPU, then every device of every driver, usable or not.

    >>> devices()[0].name
    'cpu'
    """
    found = []
    raw = _lib.DeviceInfo()
    for i in range(tl.device_count()):
        if tl.device_info(i, byref(raw)) == 0:          # the list may have become shorter meanwhile
            found.append(Device(_text(raw.name), _text(raw.text), _text(raw.arch), _text(raw.driver), raw.memory_bytes,
                                raw.memory_free, raw.processors, raw.threads, bool(raw.usable), _text(raw.why_not)))
    return found


def policies() -> dict[str, str]:
    """The names for ``policy=``, each with a one-line description.

    >>> "auto" in policies()
    True
    """
    return {name: tl.policy_text(i).decode() for i, name in enumerate(_lib.words(tl.policy_name))}
