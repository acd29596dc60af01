# SPDX-License-Identifier: MIT
"""scikit-build-core, told where the C library's CMakeLists.txt is.

In the repository that is the folder above python/. A source distribution holds python/ alone, so what the
library is built from is put into it as library/, and is built from there.
"""
from __future__ import annotations

import os
import shutil

from scikit_build_core import build as _core

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_REPOSITORY = os.path.dirname(_HERE)
_PACKED = os.path.join(_HERE, "library")
_NEEDED = ("CMakeLists.txt", "LICENSE", "cmake", "include", "src", "tools")

get_requires_for_build_sdist = _core.get_requires_for_build_sdist


def _source() -> str:
    return _PACKED if os.path.isdir(_PACKED) else _REPOSITORY


def _settings(given):
    return {"cmake.source-dir": _source(), **(given or {})}


def get_requires_for_build_wheel(config_settings=None):
    return _core.get_requires_for_build_wheel(_settings(config_settings))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _core.build_wheel(wheel_directory, _settings(config_settings), metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    packed = os.path.isdir(_PACKED)
    if not packed:
        os.mkdir(_PACKED)
    try:
        for name in () if packed else _NEEDED:
            path = os.path.join(_REPOSITORY, name)
            copy = shutil.copytree if os.path.isdir(path) else shutil.copy2
            copy(path, os.path.join(_PACKED, name))
        return _core.build_sdist(sdist_directory, config_settings)
    finally:
        if not packed:
            shutil.rmtree(_PACKED)
