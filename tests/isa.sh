#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# isa.sh ISA COMMAND... - runs a test with the kernels of one instruction set (TULLE_ISA), base, avx2 or
# avx512.
#
# If the processor does not support it, the test is not run: a line says so and the exit status is 77, which
# count.sh and ctest recognize.  Support is read from /proc/cpuinfo, not asked from the library: if the
# library's own choice (src/cpu/dispatch.c) is wrong, test_main() finds other kernels than requested, and
# fails.
set -euo pipefail
isa=${1:?usage: isa.sh ISA COMMAND...}
shift

avx2="avx2 bmi1 bmi2 popcnt"
case $isa in
    base) need="" ;;
    avx2) need=$avx2 ;;
    avx512) need="$avx2 avx512f avx512bw avx512vl avx512dq avx512cd" ;;
    *) echo "isa.sh: $isa is not one of base, avx2, avx512" >&2; exit 1 ;;
esac

# TULLE_TEST_CPUINFO: another file to read, for check_isa.sh
have=" $(sed -nE 's/^flags[[:space:]]*: (.*)/\1/p;T;q' "${TULLE_TEST_CPUINFO:-/proc/cpuinfo}") "
for flag in $need; do
    if [[ $have != *" $flag "* ]]; then
        echo "not run: $isa: this processor has no $flag"
        exit 77
    fi
done
TULLE_ISA=$isa exec "$@"
