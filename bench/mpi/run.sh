#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh [OPTIONS] - what `make bench-mpi` runs: products over 2 and 4 ranks of this machine (or $RANKS),
# compared with PETSc, hypre and CombBLAS.  The options are passed to bench_mpi (--quick, --only NAME, --runs
# N).  A run that fails with CombBLAS is repeated without it.  The output is kept in build/bench-mpi.txt, too;
# docs/records/mpi.txt is such a one.  The last line is `mpi_vs_best=X min=Y cases=N` over all runs.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
program=$build/bench/bench_mpi
mpirun=$(command -v mpirun.openmpi || command -v mpirun) || { echo "there is no mpirun"; exit 1; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_plm_rsh_agent=false
log=$(mktemp)
trap 'rm -f "$log" "$log.one"' EXIT
status=0

# once RANKS [OPTIONS]: one run, shown as it goes
once() {
    "$mpirun" -n "$1" "$program" "${@:2}" | tee "$log.one" | grep -v '^mpi_vs_best'
    return "${PIPESTATUS[0]}"
}

all() {
    local ranks rc
    echo "machine: $(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
    echo "date: $(date -u +%Y-%m-%d), load $(cut -d' ' -f1 /proc/loadavg)"
    echo "command: make bench-mpi${*:+, bench_mpi $*}"
    for ranks in ${RANKS:-2 4}; do
        echo
        echo "== $ranks ranks"
        [ "$ranks" -le "$(nproc)" ] || echo "more ranks than cores: right or wrong can be seen, speed cannot"
        once "$ranks" "$@"
        rc=$?
        if [ "$rc" -ne 0 ] && ! grep -q '^combblas is not' "$log.one"; then
            echo "a run with combblas ended with $rc; again without it"
            once "$ranks" "$@" --no-combblas
            rc=$?
        fi
        [ "$rc" -eq 0 ] || status=1
        cat "$log.one" >> "$log"
    done
    echo
    awk '/^case / {r = $NF; s += log(r); n++; if (n == 1 || r < least) least = r}
         END {printf "mpi_vs_best=%.3f min=%.3f cases=%d\n", n ? exp(s / n) : 0, least, n}' "$log"
    return $status
}

all "$@" | tee "$build/bench-mpi.txt"
exit "${PIPESTATUS[0]}"
