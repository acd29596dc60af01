#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_oclgrind.sh PLANTED - oclgrind.sh finds the bugs planted in kernels, and reports nothing for correct
# kernels.
set -euo pipefail
planted=${1:?usage: check_oclgrind.sh PLANTED}
tests=$(cd "$(dirname "$0")" && pwd)
bad=0

# expect CASE WORDS: the words must be among the findings; no words: there must be none
expect() {
    local out status=0
    out=$(bash "$tests/oclgrind.sh" "$planted" "$1" 2>&1) || status=$?
    if [ -z "$2" ] && [ $status -ne 0 ]; then
        bad=$((bad + 1))
        echo "$1: there is nothing to find, but:"
        echo "$out"
    elif [ -n "$2" ] && { [ $status -eq 0 ] || ! grep -q "$2" <<<"$out"; }; then
        bad=$((bad + 1))
        echo "$1: \"$2\" was not found:"
        echo "$out"
    fi
}

expect clean ""
expect race_global "data race at global"
expect race_equal "Write-write data race at global"
expect race_shared "data race at local"
expect peek "data race at local"
expect write_outside "Invalid write of size 4 at global"
expect read_outside "Invalid read of size 4 at global"
expect shared_outside "Invalid write of size 4 at local"
expect barrier "divergence"
expect fails "ended with 1"

echo "$bad of 10 wrong"
[ $bad -eq 0 ]
