#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# build.sh [TARGET...] - configures build/ (or $BUILD) and builds the targets, all when none is named.
# $JOBS compilers at once; $CMAKE_FLAGS goes to CMake.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
scripts/install-deps.sh --look build

# A parent make's job server is not for the make below CMake.
unset MAKEFLAGS MFLAGS MAKELEVEL
read -r -a flags <<<"${CMAKE_FLAGS:-}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake -S . -B "$build" ${flags[@]+"${flags[@]}"} >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build "$build" --parallel "$jobs" --target "${@:-all}"
