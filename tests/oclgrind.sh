#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# oclgrind.sh [--every TABLE] PROGRAM [ARGUMENT...] - runs a test program on oclgrind, a simulator of an
# OpenCL device that checks every access: reads and writes outside of a buffer, races between threads and
# between groups, barriers that not all threads reach.
#
# Fails if the program fails or anything is found, which is printed. --every: also fails if a kernel of the
# table, X(ID, file, kernel) lines as in src/gpu/engine.h, was not launched. oclgrind's own method, a
# preloaded library, does not work for a library opened at run time, so TULLE_LIBOPENCL is set to that of the
# simulator.
#
#   OCLGRIND_EXTRA    more options, such as --uninitialized
#   OCLGRIND_MEMORY   bytes of device memory (64 MiB); the race detector takes 50 times as much
#   OCLGRIND_LOCAL    bytes of local memory (48 KiB, as with NVIDIA's OpenCL)
#   OCLGRIND_SECONDS  time limit of the program in seconds (600)
set -euo pipefail
table=
[ "${1:-}" != --every ] || { table=${2:?}; shift 2; }
[ $# -gt 0 ] || { echo "usage: oclgrind.sh [--every TABLE] PROGRAM [ARGUMENT...]"; exit 2; }

command=$(command -v oclgrind) || { echo "oclgrind is not installed (Debian: apt-get install oclgrind)"; exit 1; }
runtime=$(dirname "$(dirname "$(readlink -f "$command")")")/lib/oclgrind/liboclgrind-rt.so
[ -e "$runtime" ] || { echo "oclgrind has no $runtime"; exit 1; }

log=$(mktemp) ran=$(mktemp)
trap 'rm -f "$log" "$ran"' EXIT
status=0
# The instruction counts show which kernels ran; only their names are kept.
# shellcheck disable=SC2086  # the extra options are words
TULLE_LIBOPENCL=$runtime TULLE_TEST_DEVICE=opencl:0 timeout "${OCLGRIND_SECONDS:-600}" \
    oclgrind --data-races --uniform-writes --max-errors 50 --log "$log" --global-mem-size "${OCLGRIND_MEMORY:-67108864}" \
    --local-mem-size "${OCLGRIND_LOCAL:-49152}" ${table:+--inst-counts} ${OCLGRIND_EXTRA:-} "$@" |
    awk -v ran="$ran" -v quote="'" '
        /^Instructions executed for kernel/ { split($0, word, quote); print word[2] >ran; skip = 1; next }
        skip && /^$/ { skip = 0; next }
        !skip { print; fflush() }' || status=$?

if [ -s "$log" ]; then
    echo "oclgrind found:"
    head -n 300 "$log"
    exit 1
fi
[ $status -eq 0 ] || { echo "$1 ended with $status"; exit 1; }
if [ -n "$table" ]; then
    known=$(sed -nE 's/^ *X\([A-Z0-9_]+, *[a-z_]+, *([a-z0-9_]+)\).*/\1/p' "$table" | sort -u)
    [ -n "$known" ] || { echo "$table has no kernels"; exit 1; }
    missed=$(comm -23 <(echo "$known") <(sort -u "$ran"))
    # shellcheck disable=SC2086  # one line for all
    [ -z "$missed" ] || { echo "not started at all:" $missed; exit 1; }
    echo "all $(wc -l <<<"$known") kernels were started"
fi
echo "oclgrind found nothing"
