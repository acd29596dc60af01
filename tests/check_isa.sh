#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_isa.sh - isa.sh and count.sh distinguish a missing instruction set, and a crash of the leak
# sanitizer, from a failed test.
set -uo pipefail
tests=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

all="fpu popcnt avx2 bmi1 bmi2 avx512f avx512dq avx512cd avx512bw avx512vl"
# expect WHAT FLAGS STATUS COUNTS TEXT ISA COMMAND...: on a processor with FLAGS the status, the counts and a
# line of the log
expect() {
    local what=$1 status counts=""
    printf 'processor : 0\nflags\t\t: %s\nprocessor : 1\nflags\t\t: %s\n' "$2" "$2" >"$work/cpuinfo"
    rm -f "$work/counts"
    TULLE_TEST_CPUINFO=$work/cpuinfo bash "$tests/count.sh" "$work/counts" program bash "$tests/isa.sh" "${@:6}" \
        >"$work/log" 2>&1
    status=$?
    [ ! -e "$work/counts" ] || counts=$(cat "$work/counts")
    if [ $status -eq "$3" ] && [ "$counts" = "$4" ] && grep -qF -- "$5" "$work/log"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what: status $status, not $3; counts \"$counts\", not \"$4\"; the log must have \"$5\":"
        cat "$work/log"
    fi
}

tell='echo "it is $TULLE_ISA"; echo "2 passed, 0 failed"'
expect "a processor that has all" "$all" 0 "2 0" "it is avx512" avx512 bash -c "$tell"
expect "older instructions on it" "$all" 0 "2 0" "it is avx2" avx2 bash -c "$tell"
expect "base needs nothing" "fpu" 0 "2 0" "it is base" base bash -c "$tell"
expect "no flags at all" "" 0 "2 0" "it is base" base bash -c "$tell"
for flag in $all; do
    case $flag in fpu) continue ;; esac
    expect "no $flag" "${all/ $flag/}" 77 "0 0" "not run: avx512: this processor has no $flag" avx512 bash -c "$tell"
done
expect "no avx2" "fpu popcnt bmi1 bmi2" 77 "0 0" "not run: avx2: this processor has no avx2" avx2 bash -c "$tell"
expect "an unknown name" "$all" 1 "0 1" "avx51 is not one of" avx51 bash -c "$tell"
expect "a test that fails" "$all" 1 "1 1" "" avx2 bash -c 'echo "1 passed, 1 failed"; exit 1'
expect "a test that ends with 77 by itself" "$all" 1 "0 1" "" avx2 bash -c 'exit 77'

# A leak sanitizer that crashes so many times, and then works.
broken='n=$(cat "$1" 2>/dev/null); echo x$n >"$1"; echo "2 passed, 0 failed"; [ ${#n} -lt $2 ] || exit 0
        echo "==1==LeakSanitizer has encountered a fatal error."; exit 1'
for times in 1 2 3; do
    rm -f "$work/tries"
    if [ $times -lt 3 ]; then want=(0 "2 0" "runs again"); else want=(1 "2 1" "ended with status 1"); fi
    expect "a sanitizer that breaks down $times times" "$all" "${want[@]}" base bash -c "$broken" - "$work/tries" $times
done
rm -f "$work/tries"
expect "a leak is a leak" "$all" 1 "2 1" "ended with status 1" base \
    bash -c 'echo "2 passed, 0 failed"; echo "ERROR: LeakSanitizer: detected memory leaks"; exit 1'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
