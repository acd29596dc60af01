#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh [OPTIONS] - what `make bench` runs: the readers, SpMM, then the products compared with GraphBLAS and
# Eigen, those of multigrid on one thread first.  The options are passed to bench_spgemm (--quick, --threads
# N, ...).  The programs are in build/bench, or $BUILD/bench.  The output is also written to build/bench.txt;
# `make figures` draws a copy of it in docs/records/cpu.txt.  The last line is
# `geomean_vs_best_peer=X min=Y matrices=N`.
set -uo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
programs=$build/bench
status=0

run() {
    echo
    "$@" || status=1
}

all() {
    echo "machine: $(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
    echo "date: $(date -u +%Y-%m-%d), load $(cut -d' ' -f1 /proc/loadavg)"
    echo "command: make bench${*:+, bench_spgemm $*}"
    [ ! -x "$programs/bench_read" ] || run "$programs/bench_read"
    [ ! -x "$programs/bench_spmm" ] || run "$programs/bench_spmm"
    run "$programs/bench_spgemm" --threads 1 --only multigrid
    run "$programs/bench_spgemm" --scaling "$@"
    return $status
}

all "$@" | tee "$build/bench.txt"
exit "${PIPESTATUS[0]}"
