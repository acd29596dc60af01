#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_sources.sh ROOT - rules for all source files:
#   an SPDX line near its head; memory from base/mem.c only; the environment from base/env.c only; nothing
#   printed and no exit from within the library; no code switched off with #if 0; no tabs in C; at most 110
#   columns and 80 lines a function, but for kernels that are named below.
# And: every file that names TULLE_I32_LIMIT is compiled with a lower one for test_*limits.c; the lines of code that
# CONTRIBUTING.md follows are in the sources.
set -euo pipefail
cd "${1:?usage: check_sources.sh ROOT}"
tests=$(cd "$(dirname "$0")" && pwd)

bad=0
complain() { echo "$1"; bad=$((bad + 1)); }

# forbid WHY FILES REGEX [EXCEPT]: no file whose name matches FILES may match REGEX outside comments and
# strings, but the one named EXCEPT
forbid() {
    local hits
    hits=$(grep -E "^$2:[0-9]+:" "$code" | grep -v "^${4:-/}:" | grep -E ":[0-9]+:.*$3" || true)
    [ -z "$hits" ] || complain "$hits"$'\n'"    $1"
}

list() { find src include programs examples tests bench python -type f \( "$@" \) 2>/dev/null | sort; }

mapfile -t sources < <(
    list -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.cl' -o -name '*.sh' -o -name '*.awk' \
         -o -name '*.py' -o -name CMakeLists.txt
    find cmake scripts .ci -type f | sort
    echo CMakeLists.txt
    echo Makefile)
for file in "${sources[@]}"; do
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: MIT' ||
        complain "$file: no SPDX-License-Identifier in its first three lines"
done

code=$(mktemp)
trap 'rm -f "$code"' EXIT
mapfile -t files < <(list -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.cl')
awk -f "$tests/strip.awk" "${files[@]}" >"$code"

library='src/[^:]*' all='[^:]*' before='[^A-Za-z0-9_]' after='([^A-Za-z0-9_]|$)'
heap='malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|strdup|strndup|asprintf|getline|alloca'
forbid "use tl_alloc and tl_free (base/mem.c)" "$library" "[^A-Za-z0-9_>]($heap)[[:space:]]*\\(" src/base/mem.c
forbid "use tl_env (base/env.c)" "$library" "$before(getenv|secure_getenv|setenv|putenv|environ)$after" src/base/env.c
forbid "a library neither prints nor ends the program" "$library" \
    "$before((printf|puts|putchar|perror|exit|_exit|abort|assert)[[:space:]]*\\(|(stderr|stdout)$after)"
forbid "threads are POSIX threads (base/threads.c)" "$library" '#[[:space:]]*(pragma[[:space:]]+omp|include[[:space:]]*<omp)'
forbid "delete it instead" "$all" '[[:space:]]*#[[:space:]]*if[[:space:]]+0'"$after"
forbid "indent with four spaces" "$all" $'\t'

mapfile -t limited < <(grep -rl TULLE_I32_LIMIT src | sort)
for file in "${limited[@]}"; do
    [ "$file" = src/matrix/matrix.h ] || grep -qE "^set\(sources.* ${file#src/}[ )]" tests/CMakeLists.txt ||
        complain "$file: names TULLE_I32_LIMIT, but tests/CMakeLists.txt does not compile it for test_limits.c"
done
[ ${#limited[@]} -gt 1 ] || complain "no file names TULLE_I32_LIMIT"

# At most 110 columns, and 80 lines per function; longer kernels are in this list until they are divided.
mapfile -t narrow < <(find src include programs bench -type f \( -name '*.[ch]' -o -name '*.cl' -o -name '*.py' -o -name '*.sh' \) |
    sort)
longer='^src/kernels/(analyze|bins|merge)\.cl:'
[ ${#narrow[@]} -gt 100 ] || complain "only ${#narrow[@]} files are looked at for long lines"
long=$(awk 'length > 110 {print FILENAME ":" FNR ": " length " columns"}' "${narrow[@]}")
[ -z "$long" ] || complain "$long"$'\n'"    at most 110"
long=$(awk 'FNR == 1 {from = 0}
            /^\{/ {from = FNR}
            /^\}/ && from {if (FNR - from + 1 > 80) print FILENAME ":" from ": " FNR - from + 1 " lines"; from = 0}' \
           "${narrow[@]}" | grep -vE "$longer" || true)
[ -z "$long" ] || complain "$long"$'\n'"    a function has at most 80 lines"

# The example: indented lines below its heading, but for those of shell commands; white space does not count.
squeeze() { tr -d '[:space:]'; }
example=$(awk '/^## /{on = /An accumulator on a GPU/} on && /^       / && /[={(]/' CONTRIBUTING.md)
gpu=$(cat src/gpu/accumulators.c src/gpu/engine.h | squeeze)
while IFS= read -r line; do
    line=$(squeeze <<<"$line")
    [[ $gpu == *"${line%,}"* ]] || complain "CONTRIBUTING.md: \"$line\" is not in src/gpu/accumulators.c or engine.h"
done <<<"$example"
[ "$(wc -l <<<"$example")" -ge 4 ] || complain "CONTRIBUTING.md: the example of an accumulator was not found"

echo "${#sources[@]} files, $bad complaints"
[ $bad -eq 0 ]
