#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_quick.sh ROOT - objects built by `make demo` are reused: a build folder configured with TULLE_QUICK
# has kernels of one instruction set; configured again without it, it has all of them, with the same flags
# for all objects that both have, except kernels of complex values and 64-bit columns, which are less
# optimized with TULLE_QUICK.
set -euo pipefail
root=${1:?usage: check_quick.sh ROOT}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() { echo "$1"; bad=$((bad + 1)); }

configure() { cmake -S "$root" -B "$work" -G "Unix Makefiles" "$@" >"$work.log" 2>&1 || { cat "$work.log"; exit 1; }; }
flags() { (cd "$work/CMakeFiles" && sha256sum -- tulle_*.dir/flags.make | grep -vE "$other" | sort -k 2); }
other=' tulle_core_(dispatch|[a-z0-9]+_(c32|c64)_i(32|64)|[a-z0-9]+_f(32|64)_i64)\.dir/'
kernels() { ls "$work/CMakeFiles" | sed -nE 's/^tulle_core_(base|avx2|avx512)_.*/\1/p' | sort -u; }

configure -DTULLE_QUICK=ON -DTULLE_IMAGES=OFF
one=$(kernels)
[ "$(wc -w <<<"$one")" -eq 1 ] || complain "a quick build has kernels of: $one"
flags >"$work/quick"
[ "$(wc -l <"$work/quick")" -ge 5 ] || complain "the flags of the objects were not found"

less=$(grep -lE 'C_FLAGS.* -O2( |$)' "$work"/CMakeFiles/tulle_*.dir/flags.make | wc -l)
[ "$less" -eq 6 ] || complain "$less kernels of a quick build are optimized less, not 6"

# Once more without TULLE_QUICK: the whole library.
configure -DTULLE_IMAGES=OFF
flags >"$work/whole"
while read -r line; do
    grep -qxF -- "$line" "$work/whole" || complain "compiled again after a quick build: ${line##* }"
done <"$work/quick"
grep -E 'C_FLAGS.* -O2( |$)' "$work"/CMakeFiles/tulle_*.dir/flags.make && complain "the whole library has kernels that are optimized less"
all=$(kernels)
if [ "$(uname -m)" = x86_64 ] && [ "$(wc -w <<<"$all")" -ne 3 ]; then complain "the whole library has kernels of: $all"; fi

echo "quick: $one; whole:" $all
rm -f "$work.log"
[ $bad -eq 0 ]
