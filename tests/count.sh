#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# count.sh FILE KIND COMMAND... - runs a test and writes "PASSED FAILED" into FILE.
#
# KIND program: the command must print a line "N passed, N failed"; none is a failure.
# KIND script:  if there is such a line, it counts, otherwise the command is one test.
# Status 77 after a line "not run: WHY" is neither passed nor failed: this machine lacks what the test needs
# (isa.sh).  A command that ends with an error although it counted none failed adds one (a crash at exit, a
# leak).  If the leak sanitizer itself crashes after the last test (rarely, with threads of OpenCL
# libraries), leaks are unknown: the command is run again, at most twice.
set -uo pipefail

file=$1 kind=$2
shift 2
mkdir -p "$(dirname "$file")"
rm -f "$file"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

for try in 1 2 3; do
    "$@" 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    [ "$status" -ne 0 ] && [ $try -lt 3 ] && grep -aq 'LeakSanitizer has encountered a fatal error' "$log" || break
    echo "count.sh: the leak sanitizer broke down, try $try; $1 runs again"
done
if [ "$status" -eq 77 ] && grep -q '^not run: ' "$log"; then
    echo "0 0" >"$file"
    exit 77
fi

line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
if [ -n "$line" ]; then
    read -r passed _ failed _ <<<"$line"
elif [ "$kind" = script ]; then
    passed=$((status == 0)) failed=0
else
    echo "count.sh: $1 printed no line 'N passed, N failed'"
    passed=0 failed=0 status=${status/#0/1}
fi
if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then
    echo "count.sh: $1 ended with status $status"
    failed=1
fi
if [ $((passed + failed)) -eq 0 ]; then
    echo "count.sh: $1 ran no test at all"
    failed=1
fi
echo "$passed $failed" >"$file"
[ "$failed" -eq 0 ]
