#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_layers.sh ROOT - folders of src/ depend downwards only.
#
# A file may include the public header, headers of its own folder, and headers of folders of lower rank.
# Files directly in src/ (api.c, ctx.h) have the highest rank. programs/, examples/ and bench/ may include
# the public header and their own.  A folder that is not in the table is an error: give it a rank.
set -euo pipefail
cd "${1:?usage: check_layers.sh ROOT}"
tests=$(cd "$(dirname "$0")" && pwd)

declare -A rank=([base]=0 [matrix]=1 [plan]=2 [cpu]=3 [jit]=3 [kernels]=3 [gpu]=4 [dist]=5 [mpi]=5 [petsc]=5 [.]=6)
bad=0 seen=0
complain() { echo "$1"; bad=$((bad + 1)); }

# file:line:header of each #include "header" (and <tulle*>) below the folders named
includes() {
    find "$@" -type f \( -name '*.c' -o -name '*.h' -o -name '*.cl' -o -name '*.cpp' \) -print0 | sort -z |
        xargs -0 grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*("|<tulle)' |
        sed -E 's/^([^:]*:[0-9]+:)[^"<]*["<]([^">]*)[">].*/\1\2/'
}

while IFS=: read -r file line header; do
    seen=$((seen + 1))
    from=$(dirname "${file#src/}")
    from=${from%%/*}
    case $header in
        tulle.h | tulle_lab.h | tulle_cuda.h | tulle_opencl.h | tulle_mpi.h) continue ;;
        *..*) complain "$file:$line: \"$header\": name headers from src/ down, without .."; continue ;;
        */*) to=${header%%/*} ;;
        *) if [ -e "$(dirname "$file")/$header" ]; then to=$from; else to=.; fi ;;
    esac
    if [ -z "${rank[$from]+x}" ]; then complain "$file: the folder src/$from has no rank in $0"; continue; fi
    if [ -z "${rank[$to]+x}" ]; then complain "$file:$line: the folder src/$to has no rank in $0"; continue; fi
    if [ ! -e "src/$header" ] && [ ! -e "$(dirname "$file")/$header" ]; then
        complain "$file:$line: \"$header\" is not there"
    elif [ "$to" != "$from" ] && [ "${rank[$to]}" -ge "${rank[$from]}" ]; then
        complain "$file:$line: src/$from must not include \"$header\": that is not below it"
    fi
done < <(includes src)

for folder in programs examples bench; do
    [ -d $folder ] || continue
    while IFS=: read -r file line header; do
        seen=$((seen + 1))
        case $header in
            tulle.h | tulle_lab.h | tulle_cuda.h | tulle_opencl.h | tulle_mpi.h) ;;
            cusparse.h) [ $folder != examples ] || complain "$file:$line: examples need nothing but tulle" ;;
            *) [ -e "$(dirname "$file")/$header" ] && [ "${header#*..}" = "$header" ] ||
                   complain "$file:$line: \"$header\": $folder/ uses the public headers only" ;;
        esac
    done < <(includes $folder)
done

# A declaration outside a header would bypass these checks.
find src -name '*.c' -print0 | xargs -0 awk -f "$tests/strip.awk" |
    { ! grep -E '^[^:]*:[0-9]+:[[:space:]]*extern[[:space:]]'; } || complain "declare it in a header"

# Differences between engines are in their tables: only the GPU engine, the function that opens it, and the
# functions for handles of drivers depend on whether a context has a GPU.
while IFS=: read -r file line _; do
    complain "$file:$line: asks for the GPU of a context: give it a function or a flag in src/engines.h"
done < <(find src -maxdepth 1 -name '*.c' ! -name engine_gpu.c ! -name context.c ! -name foreign.c -print0 |
         xargs -0 awk -f "$tests/strip.awk" | grep -E -- '->gpu([^a-z_]|$)|tl_gpu_' || true)

[ $seen -gt 0 ] || complain "no #include line was found at all"
echo "$seen includes, $bad wrong"
[ $bad -eq 0 ]
