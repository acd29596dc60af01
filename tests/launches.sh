#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# launches.sh OUT BUILD TEST... - logs every kernel launch of these tests on OpenCL (PoCL) to OUT/TEST.txt:
# name, blocks, threads and arguments (opencl_log.c).  Two builds whose host code launches the same kernels
# write equal files:
#
#   tests/launches.sh /tmp/before build test_gpu_product test_gpu_bhsparse      # before a change
#   tests/launches.sh /tmp/after build test_gpu_product test_gpu_bhsparse       # and after it
#   diff -rq /tmp/before /tmp/after
set -euo pipefail
out=${1:?usage: launches.sh OUT BUILD TEST...}
build=${2:?usage: launches.sh OUT BUILD TEST...}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
"${CC:-cc}" -std=c11 -shared -fPIC -O1 -I "$here/../src" -I "$here/../include" "$here/opencl_log.c" -o "$log/libopencl_log.so" \
    -Wl,--no-as-needed -l:libOpenCL.so.1 -ldl -lpthread
for test in "$@"; do
    rm -f "$out/$test.txt"
    status=0
    OPENCL_LOG=$out/$test.txt TULLE_LIBOPENCL=$log/libopencl_log.so POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable POCL_SIGFPE_HANDLER=0 \
        TULLE_CACHE=${TULLE_CACHE:-$build/cache} POCL_CACHE_DIR=${POCL_CACHE_DIR:-$build/cache/pocl} \
        "$build/tests/$test" >"$log/said" 2>&1 || status=$?
    tail -n 1 "$log/said"
    [ $status -eq 0 ] || { cat "$log/said"; echo "$test failed"; exit 1; }
    echo "$test: $(wc -l <"$out/$test.txt") kernels started, $(sha256sum <"$out/$test.txt" | cut -c1-16)"
done
