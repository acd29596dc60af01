#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_record.sh ROOT RECORD - every record in docs/records/ is complete, all its tests passed, and it was
# made from the present GPU sources; without any record the test passes.  RECORD is the program of
# bench/gpu/record.c.
set -euo pipefail
root=${1:?usage: check_record.sh ROOT RECORD}
record=${2:?usage: check_record.sh ROOT RECORD}

hash=$("$root/tests/gpu_sources_hash")
passed=0 failed=0
# The program itself must distinguish good and bad records.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '%s\n' "{\"section\": \"record\", \"device\": \"D\", \"driver\": \"R\", \"date\": \"2026-01-01\", \
\"gpu_sources_sha256\": \"$hash\"}" \
    '{"section": "test", "driver": "opencl", "program": "t", "passed": 2, "failed": 0}' \
    '{"section": "test", "driver": "cpu", "program": "t@base", "passed": 3, "failed": 0}' \
    '{"section": "test", "driver": "cpu", "program": "t@avx2", "passed": 4, "failed": 0}' \
    '{"section": "sanitizer", "tool": "memcheck", "result": "clean"}' \
    '{"section": "product", "driver": "opencl", "matrix": "m", "operation": "A*A", "policy": "speck", "type": "f64",
      "ms": 1, "stages": {"numeric": 0.5}, "peak_bytes": 1, "products": 1, "c_nnz": 1}' \
    '{"section": "spmm", "driver": "opencl", "matrix": "m", "columns": 8, "policy": "auto", "type": "f64", "ms": 0.25}' \
    '{"section": "spmm", "driver": "opencl", "matrix": "m", "columns": 8, "policy": "auto", "type": "f64", "ms": 0.125}' \
    '{"section": "spmm", "driver": "opencl", "matrix": "m", "columns": 32, "policy": "auto", "type": "f64", "ms": 0.5}' \
    '{"section": "host", "driver": "opencl", "matrix": "m", "operation": "A*A", "type": "f64", "ms": 7, "product_ms": 1,
      "up_bytes": 9, "down_bytes": 9, "floor_ms": 1}' \
    '{"section": "host", "driver": "opencl", "matrix": "m", "operation": "A*A", "type": "f64", "ms": 6, "product_ms": 1,
      "up_bytes": 9, "down_bytes": 9, "floor_ms": 1}' \
    '{"command": "bench scaling", "device": "cuda:0", "scaling": [
      {"matrix": "m", "parts": 2, "speedup": 1.9, "cv_symbolic": 0.1, "cv_numeric": 0.1},
      {"matrix": "m", "parts": 3, "speedup": 2.9, "cv_symbolic": 0.1, "cv_numeric": 0.1}]}' |
    "$record" write "$work/good.json"
tell() {                        # tell WHAT WANTED-STATUS COMMAND...
    local what=$1 want=$2 status=0
    shift 2
    "$@" >"$work/out" 2>&1 || status=$?
    if [ "$status" -eq "$want" ]; then
        passed=$((passed + 1))
        echo "ok   $what"
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        cat "$work/out"
    fi
}
tell "a good record" 0 "$record" check "$work/good.json" "$hash"
tell "a record of other sources" 1 "$record" check "$work/good.json" 0000
sed 's/"failed": 0/"failed": 1/' "$work/good.json" >"$work/bad.json"
tell "a record of failed tests" 1 "$record" check "$work/bad.json" "$hash"
sed '/"cpu"/s/"failed": 0/"failed": 1/' "$work/good.json" >"$work/bad.json"
tell "a record of failed tests of the CPU" 1 "$record" check "$work/bad.json" "$hash"
tell "counts of each program" 0 grep -q '"driver": "cpu", "program": "t@avx2", "passed": 4' "$work/good.json"
sed '/"t@base"/s/"failed": 0/"failed": 1/' "$work/good.json" >"$work/bad.json"
tell "programs that passed, for gpu_check.sh --continue" 0 test \
    "$("$record" passed "$work/bad.json" "$hash" | tr '\n' ',')" = "opencl t,cpu t@avx2,"
tell "nothing passed with other sources" 0 test -z "$("$record" passed "$work/good.json" 0000)"
sed 's/"clean"/"3 errors"/' "$work/good.json" >"$work/bad.json"
tell "a record of errors found" 1 "$record" check "$work/bad.json" "$hash"
tell "the last of two times of one case" 1 grep -q '"ms": 0.25' "$work/good.json"
tell "both numbers of columns" 0 grep -q '"columns": 8.*"ms": 0.125' "$work/good.json"
sed 's/"ms": 0.5/"ms": null/' "$work/good.json" >"$work/bad.json"
cp "$work/good.json" "$work/newer.json"
printf '%s\n' '{"section": "record", "device": "D", "driver": "R", "date": "2026-02-02", "gpu_sources_sha256": "1111"}' \
    '{"section": "test", "driver": "opencl", "program": "t", "passed": 5, "failed": 0}' \
    '{"section": "sanitizer", "tool": "racecheck", "result": "clean"}' \
    '{"section": "spmm", "driver": "opencl", "matrix": "m", "columns": 8, "policy": "auto", "type": "f64", "ms": 0.0625}' |
    "$record" write "$work/newer.json"
tell "a record of newer sources, with times of older ones" 0 "$record" check "$work/newer.json" 1111
tell "times of older sources say of which" 0 grep -q "\"ms\": 0.5.*\"of_sources\": \"$hash\", \"of_date\": \"2026-01-01\"" "$work/newer.json"
tell "times measured again do not" 1 grep -q '"ms": 0.0625.*of_sources' "$work/newer.json"
tell "tests of older sources are not kept" 1 grep -qE '"cpu"|memcheck' "$work/newer.json"
{ cat <<EOF
{"section": "record", "device": "D", "driver": "R", "date": "2026-02-02", "gpu_sources_sha256": "$hash"}
{"section": "measure", "name": "tests left out for lack of time", "driver": "opencl", "programs": "t"}
EOF
} | (cp "$work/good.json" "$work/short.json"; "$record" write "$work/short.json")
tell "a record whose tests did not all run" 1 "$record" check "$work/short.json" "$hash"
tell "sparse times dense without a time" 1 "$record" check "$work/bad.json" "$hash"
tell "the last of two times from host to host" 0 grep -qE '"ms": 6.*"up_bytes": 9' "$work/good.json"
sed 's/"floor_ms": 1/"floor_ms": 0/' "$work/good.json" >"$work/bad.json"
tell "from host to host without a floor" 1 "$record" check "$work/bad.json" "$hash"
tell "both lines of bench scaling" 0 test "$(grep -c '"speedup": [12].9.*"device": "cuda:0"' "$work/good.json")" = 2
sed 's/"speedup": 2.9, //' "$work/good.json" >"$work/bad.json"
tell "a prediction for several devices without a speed-up" 1 "$record" check "$work/bad.json" "$hash"
sed '$d' "$work/good.json" >"$work/bad.json"
tell "half a record" 1 "$record" check "$work/bad.json" "$hash"

for file in "$root"/docs/records/*.json; do
    [ -e "$file" ] || continue
    case $file in
        # Tables of the same run are in the same folder as their record.
        *-accumulators.json | *-merges.json) tell "the record beside ${file##*/}" 0 test -e "${file%-*}.json" ;;
        *) tell "${file#"$root"/}" 0 "$record" check "$file" "$hash" ;;
    esac
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
