#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# tally.sh DIR CTEST_OPTION... - prints "NAME PASSED FAILED" for each test that ctest runs in DIR with these
# options, from the files of count.sh; a test without counts has failed. "NAME 0 0" was not run (isa.sh).
set -euo pipefail
dir=${1:?usage: tally.sh DIR CTEST_OPTION...}
shift
ctest --test-dir "$dir" -N "$@" | sed -nE 's/^ *Test +#[0-9]+: (.*)$/\1/p' |
    while read -r name; do
        if [ -s "$dir/counts/$name" ]; then
            echo "$name $(cat "$dir/counts/$name")"
        else
            echo "$name told no count" >&2
            echo "$name 0 1"
        fi
    done
