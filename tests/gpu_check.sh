#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# gpu_check.sh [--out FILE] [--continue] [PART...] - run by `make gpu-check` on a machine with a GPU: every GPU test with
# CUDA and with the GPU's OpenCL, the CPU tests for every instruction set of the processor, sanitizers on a
# selection, measurements.  Results are written to docs/records/<device>.json, with tables of accumulators
# and merges in the same folder.
#
#   --out FILE               the file of the record
#   --continue               leave out the device tests that an existing record of the same sources says passed,
#                            as where an earlier run had no time for all
#   PART                     cpu, tests, sanitizers, measures, python; by default all.  An existing record of
#                            the same sources keeps the results of the other parts
#   TULLE_TEST_DEVICES       the devices, as "cuda:0 opencl:1"; else cuda:0 and the OpenCL device of NVIDIA
#   GPU_CHECK_MATRICES       a folder of .tpat.xz, .mtx or .tulle files to measure; else a few of the gallery
#   GPU_CHECK_ANCHORS        a .csv with times of other libraries to compare with
#   GPU_CHECK_SPMM_ANCHORS   the same for SpMM; then only its matrices of the folder are measured
#   GPU_CHECK_HOST           matrices to multiply from host to host (those of products)
#   GPU_CHECK_SCALING        matrices whose products are predicted for 2 to 8 such devices (a small stencil)
#   GPU_CHECK_WAYS           policies measured by bench_gpu (every policy)
#   GPU_CHECK_SPMM_WAYS      policies measured by bench_gpu_spmm (auto)
#   GPU_CHECK_AT_ONCE        number of tests to run in parallel on CUDA (3); one on OpenCL; for CPU tests, which
#                            run before, JOBS
#   GPU_CHECK_SECONDS        a time limit: device tests and sanitizers that have not finished so many seconds
#                            after the start are stopped and listed as left out; check_record.sh refuses such
#                            a record
#   GPU_CHECK_BUILT          if set: BUILD was copied from elsewhere with all programs, and nothing is built
#   TULLE_TEST_FEW           if set: device tests use the reduced combinations of make check; the record says
#                            so
#   PYTHON                   for the part python: an interpreter with NumPy, SciPy, CuPy and PyTorch (python3)
#   GPU_CHECK_PAPER          substrings of names of the folder's matrices for the experiments of FastSpMM
#   BUILD, JOBS              as for make
#
# The exit status is 0 only if every test passed, the sanitizers found nothing and no product was wrong.
set -uo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
out= parts= continue=
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=${2:?--out needs a file}; shift 2 ;;
        --continue) continue=1; shift ;;
        cpu | tests | sanitizers | measures | python) parts="$parts $1 "; shift ;;
        *) echo "usage: gpu_check.sh [--out FILE] [--continue] [cpu] [tests] [sanitizers] [measures] [python]" >&2; exit 2 ;;
    esac
done
wanted() { [ -z "$parts" ] || [[ $parts == *" $1 "* ]]; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pieces=$work/pieces
wrong=0
say() { echo "== $*"; }

programs=$(cd tests && echo test_gpu_*.c test_driver.c | sed 's/\.c//g')
unset MAKEFLAGS MFLAGS MAKELEVEL
read -r -a flags <<<"${CMAKE_FLAGS:-}"
mkdir -p "$build"
# shellcheck disable=SC2086
if [ -z "${GPU_CHECK_BUILT:-}" ] &&
    ! { cmake -S . -B "$build" ${flags[@]+"${flags[@]}"} &&
       cmake --build "$build" --parallel "$jobs" --target tulle tulle_command bench_gpu bench_gpu_spmm record \
             unit_tests $programs; } >"$work/log" 2>&1; then
    tail -n 60 "$work/log"
    exit 1
fi
say "build: $SECONDS s"
build=$(cd "$build" && pwd)
tulle=$build/tulle
# A new cache, so that kernels are compiled by the present compiler.
export TULLE_CACHE=$work/cache POCL_CACHE_DIR=$work/pocl POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable
mkdir -p "$TULLE_CACHE" "$POCL_CACHE_DIR"

# ---- devices.  devices --json has one value per line.

list() { "$tulle" devices --json | sed -nE 's/^ *"(name|text)": "(.*)",?$/\1 \2/p'; }
text_of() { list | awk -v want="name $1" '$0 == want {found = 1; next} found && /^text / {sub(/^text /, ""); print; exit}'; }
nvidia_opencl() {
    list | awk '/^name / {name = $2} /^text / && name ~ /^opencl:/ && /NVIDIA|CUDA/ {print name; exit}'
}

devices=${TULLE_TEST_DEVICES:-}
if [ -z "$devices" ]; then
    devices=cuda:0
    opencl=$(nvidia_opencl)
    if [ -z "$opencl" ]; then           # the driver's OpenCL exists, but is not registered with the loader
        mkdir "$work/vendors"
        cp "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/*.icd "$work/vendors/" 2>/dev/null || true
        echo libnvidia-opencl.so.1 >"$work/vendors/nvidia.icd"
        export OCL_ICD_VENDORS=$work/vendors
        opencl=$(nvidia_opencl)
    fi
    if [ -n "$opencl" ]; then
        devices="$devices $opencl"
    else
        echo "NVIDIA's OpenCL is not there: the OpenCL tests run on no GPU"
        wrong=1
    fi
fi
"$tulle" devices
first=${devices%% *}
device=$(text_of "$first")
if [ -z "$device" ]; then
    echo "there is no device $first"
    exit 1
fi
# "NVIDIA H200, sm_90, CUDA 13.0, driver 580.159": the name is before the first comma
name=${device%%,*}
driver=${device#*,}
driver=${driver# }
short=$(echo "$name" | awk '{print tolower($NF)}' | tr -cd 'a-z0-9_-')
out=${out:-docs/records/$short.json}
mkdir -p "$(dirname "$out")"
quote() { printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g' | tr -d '\000-\037'; }
printf '{"section": "record", "device": "%s", "driver": "%s", "date": "%s", "gpu_sources_sha256": "%s"}\n' \
    "$(quote "$name")" "$(quote "$driver")" "$(date -u +%Y-%m-%d)" "$(tests/gpu_sources_hash)" >"$pieces"

# ---- tests

# count FILE: "PASSED FAILED" of its last line "N passed, N failed"; without such a line one failure
count() {
    local line
    line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$1" | tail -n 1)
    if [ -n "$line" ]; then
        read -r passed _ failed _ <<<"$line"
    else
        passed=0 failed=1
    fi
}

tested() {                      # tested DRIVER PROGRAM [TIME]: adds its counts to the record
    if [ "$failed" -ne 0 ]; then wrong=1; fi
    say "$2 on $1: $passed passed, $failed failed${3:+, $3}"
    printf '{"section": "test", "driver": "%s", "program": "%s", "passed": %d, "failed": %d}\n' \
        "${1%%:*}" "$2" "$passed" "$failed" >>"$pieces"
}

# The processor of this machine may have instruction sets that others lack.
if wanted cpu; then
    start=$SECONDS
    rm -rf "$build/counts"
    if ! ctest --test-dir "$build" -L unit --parallel "$jobs" --output-on-failure --no-tests=error >"$work/log" 2>&1; then
        tail -n 200 "$work/log"
        wrong=1
    fi
    while read -r p passed failed; do
        if [ $((passed + failed)) -eq 0 ]; then say "$p: not run, this processor lacks it"; else tested cpu "$p"; fi
    done < <(tests/tally.sh "$build" -L unit)
    say "tests on the CPU: $((SECONDS - start)) s"
fi

first_ones() {                  # the most informative tests, then the longest, then the others
    local first="small engine delta motifs bands product larger budget spmm bhsparse"
    { printf 'test_gpu_%s\n' $first; printf '%s\n' "$@"; } |
        awk -v all=" $* " '!seen[$1]++ && index(all, " " $1 " ")'
}

# Few tests run in parallel, and one device after the other: processes that share a GPU take turns on it, which
# slows those of many small products most, since they wait for the device all the time (test_gpu_larger took 34 s
# alone on an H200, and 165 s beside four others).  A test that failed to get memory or a context while others
# ran (NVIDIA's OpenCL frees sub-buffers only at the end) is repeated alone, and only that result counts.
time_for() {                    # time_for MOST: seconds that something may take
    local left=$((${GPU_CHECK_SECONDS:-100000} - SECONDS))
    [ $left -ge 1 ] || left=1
    echo $((left < $1 ? left : $1))
}
no_time() { [ -n "${GPU_CHECK_SECONDS:-}" ] && [ "$1" -eq 124 ] && [ $SECONDS -ge "$GPU_CHECK_SECONDS" ]; }
at_once=${GPU_CHECK_AT_ONCE:-3}
at_once_of() { case $1 in opencl*) echo 1 ;; *) echo "$at_once" ;; esac; }    # beside others OpenCL refuses contexts
test_log() { echo "$work/test-${1%%:*}-$2"; }
# Each gets processors of its own, so that threads of one do not wait for those of another.
turn=0 each=$(($(nproc) / at_once))
[ $each -ge 1 ] || each=1
run_test() {                    # run_test DEVICE PROGRAM [TURN]
    local start=$SECONDS first=$((${3:-0} * each % $(nproc)))
    (cd "$work" && TULLE_TEST_DEVICE=$1 timeout "$(time_for 300)" taskset -c "$first-$((first + each - 1))" \
        "$build/tests/$2" >"$(test_log "$1" "$2")" 2>&1)
    echo "$? $((SECONDS - start))" >"$(test_log "$1" "$2").status"
}
refused() { grep -qE 'TULLE_ENOMEM|no context: |CL_OUT_OF_HOST_MEMORY' "$(test_log "$1" "$2")"; }
if wanted tests; then
    start=$SECONDS
    combinations=$([ -z "${TULLE_TEST_FEW:-}" ] && echo all || echo "few, as in make check")
    if [ -n "$continue" ] && grep -qsF "\"combinations\": \"$combinations\"" "$out"; then
        "$build/bench/record" passed "$out" "$(tests/gpu_sources_hash)" >"$work/passed" || wrong=1
    fi
    touch "$work/passed"
    left_on() {                 # left_on DEVICE PROGRAM...: those that have not passed yet
        local d=${1%%:*} p
        shift
        for p; do grep -qxF "$d $p" "$work/passed" || echo "$p"; done
    }
    # Compiles most kernels once in advance; otherwise parallel programs would compile the same ones.
    for d in $devices; do
        # shellcheck disable=SC2086  # one word a program
        [ -n "$(left_on "$d" $programs)" ] || continue
        for types in "f64 i32" "f32 i32" "cf64 i32" "f64 i64" "cf64 i64"; do
            "$tulle" cache --warm --device "$d" --type "${types% *}" --index "${types#* }" >/dev/null 2>&1 &
        done
    done
    wait
    say "kernels: $((SECONDS - start)) s"
    printf '{"section": "measure", "name": "tests of devices", "combinations": "%s"}\n' \
        "$combinations" >>"$pieces"
    for d in $devices; do
        # shellcheck disable=SC2086  # one word a program
        for p in $(left_on "$d" $(first_ones $programs)); do
            while [ "$(jobs -rp | wc -l)" -ge "$(at_once_of "$d")" ]; do wait -n || true; done
            run_test "$d" "$p" $turn &
            turn=$((turn + 1))
        done
        wait
        say "tests on $d: $((SECONDS - start)) s"
    done
    for d in $devices; do
        for p in $(left_on "$d" $programs); do
            read -r status _ <"$(test_log "$d" "$p").status"
            if [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && refused "$d" "$p"; then
                say "$p on $d: refused memory or a context beside the others, again alone"
                run_test "$d" "$p"
            fi
        done
    done
    for d in $devices; do
        left_out=
        for p in $(left_on "$d" $programs); do
            log=$(test_log "$d" "$p")
            read -r status seconds <"$log.status"
            if no_time "$status" && ! grep -aq '^FAIL ' "$log"; then
                left_out="$left_out $p"
                say "$p on $d: no time was left after $seconds s; until then $(grep -ac '^ok ' "$log") cases passed"
                continue
            fi
            count "$log"
            if [ "$status" -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
            if [ "$failed" -ne 0 ]; then tail -n 40 "$log"; fi
            tested "$d" "$p" "$seconds s"
        done
        [ -z "$left_out" ] || wrong=1
        printf '{"section": "measure", "name": "tests left out for lack of time", "driver": "%s", "programs": "%s"}\n' \
                "${d%%:*}" "${left_out# }" >>"$pieces"
    done
    say "tests on $devices: $((SECONDS - start)) s"
fi

# ---- the Python package, with CuPy and PyTorch on CUDA

case $first in
    cuda*)
        if wanted python; then
            export TULLE_LIBRARY=$build/libtulle.so PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1
            TULLE_TEST_DEVICE=$first timeout 600 "${PYTHON:-python3}" python/tests/gpu.py >"$work/log" 2>&1
            status=$?
            count "$work/log"
            if [ $status -ne 0 ] && [ "$failed" -eq 0 ]; then failed=1; fi
            if [ "$failed" -ne 0 ]; then tail -n 60 "$work/log"; fi
            tested "$first" python
            say "A*A beside CuPy and PyTorch"
            measured=${GPU_CHECK_MATRICES:-poisson2d:300 poisson3d:40 rmat:scale=13,edges=8,seed=1 cage:10}
            # shellcheck disable=SC2086  # a folder, or several recipes
            timeout 900 "${PYTHON:-python3}" -W ignore bench/python/on_gpu.py --device "$first" --pieces "$pieces" $measured \
                || wrong=1
        fi ;;
esac

# ---- sanitizers, on the small test through CUDA

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
for tool in memcheck racecheck; do
    wanted sanitizers || break
    case $first in
        cuda*) ;;
        *) continue ;;
    esac
    if [ -z "$sanitizer" ]; then
        result="unavailable: there is no compute-sanitizer"
    else
        say "compute-sanitizer $tool"
        start=$SECONDS
        # A query whether a pointer is pinned returns an error if it is not.
        quiet=
        [ $tool != memcheck ] || quiet="--report-api-errors no"
        # shellcheck disable=SC2086  # two words or none
        (cd "$work" && TULLE_TEST_DEVICE=$first timeout "$(time_for 400)" "$sanitizer" --tool $tool $quiet --error-exitcode 77 --print-limit 20 \
            "$build/tests/test_gpu_small") >"$work/log" 2>&1
        status=$?
        count "$work/log"
        if grep -qiE 'device not supported|failed to initialize' "$work/log"; then
            result="unavailable: compute-sanitizer does not work on this machine"
        elif [ $status -eq 0 ] && [ "$failed" -eq 0 ] && grep -qE '(ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$work/log"
        then
            result=clean
        elif no_time "$status" && ! grep -qE '^========= *(Invalid|Error|Program hit|Race|Warning)' "$work/log"; then
            wrong=1
            result="no time was left after $((SECONDS - start)) s; $(grep -ac '^ok ' "$work/log") cases passed until then"
        else
            result="status $status, $failed tests failed: $(grep -aE 'SUMMARY|=========' "$work/log" | tail -n 1)"
            tail -n 60 "$work/log"
            wrong=1
        fi
        say "compute-sanitizer $tool: $result, $((SECONDS - start)) s"
    fi
    printf '{"section": "sanitizer", "tool": "%s", "program": "test_gpu_small", "driver": "%s", "result": "%s"}\n' \
        $tool "${first%%:*}" "$(quote "$result")" >>"$pieces"
done

# ---- measurements

if wanted measures; then
    bench=$build/bench/bench_gpu
    say "first product"
    "$bench" --device "$first" --first >/dev/null || wrong=1    # fills the cache if images are missing
    "$bench" --device "$first" --first --pieces "$pieces" || wrong=1
    say "small products"
    "$bench" --device "$first" --small --pieces "$pieces" || wrong=1
    say "products"
    if [ -n "${GPU_CHECK_MATRICES:-}" ]; then
        matrices=("$GPU_CHECK_MATRICES")
    else
        matrices=(poisson2d:300 poisson3d:40 rmat:scale=13,edges=8,seed=1 cage:10 banded:20000,lower=20,upper=20)
    fi
    anchors=()
    [ -z "${GPU_CHECK_ANCHORS:-}" ] || anchors=(--anchors "$GPU_CHECK_ANCHORS")
    "$bench" --device "$first" --ways "${GPU_CHECK_WAYS:-auto,speck,bhsparse,regsort,regmerge,reghash,delta}" --plans \
        ${anchors[@]+"${anchors[@]}"} --pieces "$pieces" "${matrices[@]}" || wrong=1
    "$bench" --device "$first" --ways auto --plans --type f32 --no-cusparse --pieces "$pieces" "${matrices[@]}" || wrong=1
    say "products from host to host"
    # shellcheck disable=SC2086  # a folder, or several recipes
    "$bench" --device "$first" --host --pieces "$pieces" ${GPU_CHECK_HOST:-"${matrices[@]}"} || wrong=1
    say "several devices, predicted"
    for a in ${GPU_CHECK_SCALING:-poisson3d:40,points=27}; do
        "$tulle" bench scaling "$a" --device "$first" --json >>"$pieces" || wrong=1
    done
    say "sparse times dense"
    anchors=()
    [ -z "${GPU_CHECK_SPMM_ANCHORS:-}" ] || anchors=(--anchors "$GPU_CHECK_SPMM_ANCHORS")
    "$build/bench/bench_gpu_spmm" --device "$first" --ways "${GPU_CHECK_SPMM_WAYS:-auto}" ${anchors[@]+"${anchors[@]}"} \
        --pieces "$pieces" "${matrices[@]}" || wrong=1
    case $first in
        cuda*)
            say "sparse times dense: FastSpMM's experiments"
            "$build/bench/bench_gpu_spmm" --device "$first" --paper --pieces "$pieces" \
                --only "${GPU_CHECK_PAPER:-cant_like,pwtk_mesh6,conf5_4,hpcg_64,ship_001,cage13}" \
                ${GPU_CHECK_MATRICES:+"$GPU_CHECK_MATRICES"} || wrong=1 ;;
    esac
    say "accumulators and merges"
    "$tulle" bench accumulators --device "$first" --json -o "${out%.json}-accumulators.png" >"${out%.json}-accumulators.json" || wrong=1
    "$tulle" bench merges --device "$first" --json >"${out%.json}-merges.json" || wrong=1
fi

"$build/bench/record" write "$out" <"$pieces" || wrong=1
say "$out is written, $SECONDS s"
[ $wrong -eq 0 ] || say "something FAILED"
exit $wrong
