#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check.sh - every test there is, in three builds; `make check` calls it.
#
#   build/        the release build, warnings are errors: all tests
#   build/asan    address and undefined-behaviour sanitizers: the C programs, the fuzzers, the command; not those that
#                 try kernels at length, which no sanitizer of the host sees
#   build/tsan    the thread sanitizer: the C programs that need no device
#
# Devices are PoCL's and oclgrind's; kernels are compiled once, into build/cache, for all three.
#
# The last line is "N passed, N failed" over all three; the exit status is 0 only if nothing failed and
# every test told its count.
set -uo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
unset MAKEFLAGS MFLAGS MAKELEVEL
read -r -a flags <<<"${CMAKE_FLAGS:-}"
passed=0 failed=0

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
    local dir=$1 targets=$2
    shift 2
    cmake -S . -B "$dir" ${flags[@]+"${flags[@]}"} "$@" >"$dir.log" 2>&1 || { cat "$dir.log"; return 1; }
    # shellcheck disable=SC2086
    cmake --build "$dir" --parallel "$jobs" --target $targets >"$dir.log" 2>&1 ||
        { grep -vE '^\[ *[0-9]+%\]' "$dir.log" | tail -n 60; return 1; }
}

run() {                         # run DIR CTEST_OPTION...
    local dir=$1 status name p f
    shift
    rm -rf "$dir/counts"
    # shellcheck disable=SC2086
    $launch ctest --test-dir "$dir" --parallel "$jobs" --output-on-failure --no-tests=error "$@"
    status=$?
    while read -r name; do
        if [ -s "$dir/counts/$name" ]; then
            read -r p f <"$dir/counts/$name"
        else
            echo "$name told no count"
            p=0 f=1
        fi
        passed=$((passed + p)) failed=$((failed + f))
    done < <(ctest --test-dir "$dir" -N "$@" | sed -nE 's/^ *Test +#[0-9]+: (.*)$/\1/p')
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

part release "$build" "all tests" "unit|gpu|kernels|nvrtc|oclgrind|fuzz|example|cli|oracle|script" -DTULLE_WERROR=ON "$cache"
for sanitizer in address,undefined thread; do
    if ! find_launcher $sanitizer; then
        failed=$((failed + 1))
    elif [ $sanitizer = thread ]; then
        part "thread sanitizer" "$build/tsan" tests "unit|example" \
            -DTULLE_SANITIZE=thread -DTULLE_ISAS=base "$cache"
    else
        part "address and undefined-behaviour sanitizers" "$build/asan" tests "unit|gpu|example|fuzz|cli" \
            -DTULLE_SANITIZE=address,undefined -DTULLE_ISAS=base "$cache"
    fi
done

[ $wrong -eq 0 ] || [ $failed -gt 0 ] || failed=1
echo "== all: $((SECONDS - start)) s"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
