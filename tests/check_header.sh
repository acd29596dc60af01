#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_header.sh ROOT - tulle.h stands alone: in C99, C11 and C++17, with every warning an error, twice in
# one file, and it includes nothing but stddef.h and stdint.h.
set -euo pipefail
root=${1:?usage: check_header.sh ROOT}
cc=${CC:-cc}
cxx=${CXX:-c++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

others=$(grep -nE '^[[:space:]]*#[[:space:]]*include' "$root/include/tulle.h" |
         grep -vE '<(stddef|stdint)\.h>' || true)
[ -z "$others" ] || { echo "tulle.h includes more than stddef.h and stdint.h: $others"; exit 1; }

cat >"$work/alone.c" <<'C'
#include "tulle.h"
#include "tulle.h"
int use(const tulle_ctx *ctx);
int use(const tulle_ctx *ctx)
{
    const tulle_status ok = TULLE_OK;
    return ok == TULLE_OK && tulle_ctx_error(ctx) != NULL;
}
C
cp "$work/alone.c" "$work/alone.cpp"
strict="-Wall -Wextra -Wshadow -pedantic -pedantic-errors -Werror"
for std in c99 c11; do
    $cc -std=$std $strict -Wstrict-prototypes -Wmissing-prototypes -Wundef -I"$root/include" \
        -c "$work/alone.c" -o "$work/alone.o"
    echo "ok $cc -std=$std"
done
$cxx -std=c++17 $strict -I"$root/include" -c "$work/alone.cpp" -o "$work/alone.o"
echo "ok $cxx -std=c++17"
nm -u "$work/alone.o" | grep -qE ' tulle_ctx_error$' || { echo "the functions are not extern \"C\""; exit 1; }
