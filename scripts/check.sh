#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check.sh [more] - every test there is; `make check` and `make check-more` call it.
#
# Without a word, what every change must pass:
#
#   build/            the release build, warnings are errors: tests, those of the CPU for each instruction set it has
#   build/asan        address and undefined-behaviour sanitizers: the C programs that need no device, the fuzzers, the command
#   build/tsan        the thread sanitizer: the C programs that need no device
#
# With "more", other compilers, other instructions, and what takes long and looks at GPU kernels alone:
#
#   build/            the release build: programs that try GPU kernels at length; kernels by CUDA's compiler, and on oclgrind,
#                     which watches each access; the Python package's wheel; ranks over Open MPI and MPICH; PETSc's products
#   build/clang       the C programs, examples and the command by clang, warnings are errors
#   build/aarch64     the C programs and examples for 64-bit ARM, under qemu-user
#   build/asan-isas   address and undefined-behaviour sanitizers: the kernels of newer instructions, and the programs that need
#                     a device; not those that try its kernels at length, which no sanitizer of the host sees
#
# Devices are PoCL's, oclgrind's and a model of CUDA's (tests/cuda_model/model.h); kernels are compiled once, into build/cache, for all builds of this machine.
#
# The last line is "N passed, N failed" over all builds; the exit status is 0 only if nothing failed and
# every test told its count.  Tests of instructions that this processor lacks are named before it.
set -uo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
unset MAKEFLAGS MFLAGS MAKELEVEL
read -r -a flags <<<"${CMAKE_FLAGS:-}"
passed=0 failed=0 lacking=()
mode=${1:-all}

step() {                        # step WHAT COMMAND...: says what runs and how long it took
    local what=$1 start=$SECONDS status
    shift
    echo "== $what"
    "$@"
    status=$?
    echo "== $what: $((SECONDS - start)) s$([ $status -eq 0 ] || echo ", FAILED")"
    return $status
}

compile() {                     # compile DIR TARGETS CMAKE_OPTION...
    local dir=$1 targets=$2 log=$1/compile.log
    shift 2
    mkdir -p "$dir"
    cmake -S . -B "$dir" ${flags[@]+"${flags[@]}"} "$@" >"$log" 2>&1 || { cat "$log"; return 1; }
    # shellcheck disable=SC2086
    cmake --build "$dir" --parallel "$jobs" --target $targets >"$log" 2>&1 ||
        { grep -vE '^\[ *[0-9]+%\]' "$log" | tail -n 60; return 1; }
}

run() {                         # run DIR CTEST_OPTION...
    local dir=$1 status name p f
    shift
    rm -rf "$dir/counts"
    # shellcheck disable=SC2086
    $launch ctest --test-dir "$dir" --parallel "$jobs" --output-on-failure --no-tests=error "$@"
    status=$?
    while read -r name p f; do
        passed=$((passed + p)) failed=$((failed + f))
        [ $((p + f)) -gt 0 ] || lacking+=("$name")
    done < <(tests/tally.sh "$dir" "$@")
    return $status
}

# The sanitizers of some compilers cannot start where addresses are chosen with more random bits than they
# know of; then the tests run without that randomness.
find_launcher() {
    local sanitizer=$1 work
    launch=""
    work=$(mktemp -d)
    echo 'int main(void) { return 0; }' >"$work/a.c"
    if ! ${CC:-cc} -fsanitize="$sanitizer" "$work/a.c" -o "$work/a"; then
        echo "${CC:-cc} cannot build with -fsanitize=$sanitizer"
        rm -rf "$work"
        return 1
    fi
    # Not every run fails where some do: try a few.
    if ! (for _ in 1 2 3 4 5 6 7 8; do "$work/a" >/dev/null 2>&1 || exit 1; done); then
        launch="setarch $(uname -m) -R"
        $launch "$work/a" || { echo "no program with -fsanitize=$sanitizer starts here"; rm -rf "$work"; return 1; }
    fi
    rm -rf "$work"
}

# part NAME DIR TARGETS LABELS CMAKE_OPTION...; a part that does not build is one failure
part() {
    local name=$1 dir=$2 targets=$3 labels=$4 label
    shift 4
    if ! step "$name: build" compile "$dir" "$targets" "$@"; then
        failed=$((failed + 1))
        return
    fi
    for label in ${labels//|/ }; do         # a kind of test that has vanished is a failure, too
        if [ -z "$(ctest --test-dir "$dir" -N -L "$label" | grep -E '^ *Test +#')" ]; then
            echo "$name: there is no test of the kind: $label"
            failed=$((failed + 1))
        fi
    done
    step "$name: tests" run "$dir" -L "$labels" || wrong=1
}

mkdir -p "$build"
start=$SECONDS
wrong=0 launch=""
export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=allocator_may_return_null=1

cache=-DTULLE_TEST_CACHE=$(cd "$build" && pwd)/cache

sanitized() {                   # sanitized SANITIZERS PART_ARGUMENT...: a part where programs of that kind start
    if find_launcher "$1"; then part "${@:2}" -DTULLE_SANITIZE="$1" "$cache"; else failed=$((failed + 1)); fi
    launch=""
}

check() {
    part release "$build" "all tests" "unit|gpu|warps|fuzz|example|cli|oracle|script|python" -DTULLE_WERROR=ON "$cache"
    sanitized address,undefined "address and undefined-behaviour sanitizers" "$build/asan" "unit_tests fuzzers tulle_command" \
        "unit|example|fuzz|cli" -DTULLE_ISAS=base
    sanitized thread "thread sanitizer" "$build/tsan" unit_tests "unit|example" -DTULLE_ISAS=base
}

check_more() {
    part "release, GPU kernels, wheel, MPI, PETSc" "$build" "all tests" "kernels|lanes|nvrtc|oclgrind|wheel|mpi|petsc" \
        -DTULLE_WERROR=ON "$cache"
    part clang "$build/clang" "all unit_tests" "unit|example|cli|fused" -DCMAKE_C_COMPILER=clang -DTULLE_WERROR=ON "$cache"
    part "64-bit ARM" "$build/aarch64" unit_tests "unit|example|fused" \
        -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64-linux-gnu.cmake" -DTULLE_WERROR=ON
    local newer="avx2|avx512|"
    if [ "$(uname -m)" != x86_64 ]; then
        echo "== $(uname -m) has one instruction set: nothing newer for the sanitizers"
        newer=""
    fi
    # gcc 12 puts what it watches for use after return on a stack that is not aligned to 64 bytes, as AVX-512 wants it.
    # LLVM, PoCL's compiler, leaves a signal stack of its own in the thread that called it; when that thread ends, the
    # sanitizer takes it for the one it made, and breaks off.
    export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=0:use_sigaltstack=0
    sanitized address,undefined "sanitizers, newer instructions and devices" "$build/asan-isas" tests "${newer}gpu"
}

case $mode in
    all) check ;;
    more) check_more ;;
    *) echo "usage: check.sh [more]" >&2; exit 2 ;;
esac

if [ ${#lacking[@]} -gt 0 ]; then
    echo "== not run for lack of hardware: ${lacking[*]}"
    for isa in $(printf '%s\n' "${lacking[@]##*@}" | sort -u); do tests/isa.sh "$isa" true || true; done
    echo "   (check_fused has looked at the objects of their kernels)"
fi
[ $wrong -eq 0 ] || [ $failed -gt 0 ] || failed=1
echo "== all: $((SECONDS - start)) s"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
