#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh [OPTIONS] - what `make bench` runs: the readers, sparse times dense, then the product against GraphBLAS and Eigen,
# those of multigrid on one thread first.  The
# options go to bench_spgemm (--quick, --threads N, ...).  The programs are in build/bench, or $BUILD/bench.
# The last line is `geomean_vs_best_peer=X min=Y matrices=N`.
set -uo pipefail
cd "$(dirname "$0")/.."

programs=${BUILD:-build}/bench
status=0

echo "machine: $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
     "load $(cut -d' ' -f1 /proc/loadavg)"
if [ -x "$programs/bench_read" ]; then
    echo
    "$programs/bench_read" || status=1
fi
if [ -x "$programs/bench_spmm" ]; then
    echo
    "$programs/bench_spmm" || status=1
fi
echo
"$programs/bench_spgemm" --threads 1 --only multigrid || status=1
echo
"$programs/bench_spgemm" --scaling "$@" || status=1
exit $status
