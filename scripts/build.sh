#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh [--quick] [TARGET...] - configures build/ (or $BUILD) and builds the targets, all when none is named.
# $JOBS compilers at once; $CMAKE_FLAGS goes to CMake.
#
# With --quick kernels are compiled for this processor alone, and none for GPUs ahead of time.  A later build in
# the same folder adds what is missing and keeps what is there; one after a whole build is whole, too.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=no
if [ "${1:-}" = --quick ]; then quick=yes; shift; fi
build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
scripts/install-deps.sh --look build

# A parent make's job server is not for the make below CMake.
unset MAKEFLAGS MFLAGS MAKELEVEL
read -r -a flags <<<"${CMAKE_FLAGS:-}"
# The shared library is made by whole builds only.
[ $quick = no ] || ls "$build"/libtulle.* 2>/dev/null | grep -v '\.a$' >/dev/null || flags+=(-DTULLE_QUICK=ON)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake -S . -B "$build" ${flags[@]+"${flags[@]}"} >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build "$build" --parallel "$jobs" --target "${@:-all}"
