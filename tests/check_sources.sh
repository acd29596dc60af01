#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_sources.sh ROOT - what every source file keeps:
#   an SPDX line near its head; memory from base/mem.c only; the environment from base/env.c only; nothing
#   printed and no exit from within the library; no code switched off with #if 0; no tabs in C.
set -euo pipefail
cd "${1:?usage: check_sources.sh ROOT}"
tests=$(cd "$(dirname "$0")" && pwd)

bad=0
complain() { echo "$1"; bad=$((bad + 1)); }

# forbid WHY REGEX FILE...: no file may match outside comments and strings
forbid() {
    local why=$1 regex=$2 file hits
    shift 2
    for file; do
        hits=$(awk -f "$tests/strip.awk" "$file" | grep -nE "$regex" || true)
        [ -z "$hits" ] || complain "$(sed "s|^|$file:|" <<<"$hits")"$'\n'"    $why"
    done
}

list() { find src include programs examples tests bench -type f \( "$@" \) 2>/dev/null | sort; }

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

mapfile -t library < <(find src -name '*.[ch]' | sort)
mapfile -t no_mem < <(printf '%s\n' "${library[@]}" | grep -v '^src/base/mem\.c$')
mapfile -t no_env < <(printf '%s\n' "${library[@]}" | grep -v '^src/base/env\.c$')
mapfile -t code < <(list -name '*.c' -o -name '*.h' -o -name '*.cpp')

word='(^|[^A-Za-z0-9_])'
forbid "use tl_alloc and tl_free (base/mem.c)" \
    "$word(malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|strdup|strndup|asprintf|getline|alloca)[[:space:]]*\\(" \
    "${no_mem[@]}"
forbid "use tl_env (base/env.c)" "$word(secure_)?(getenv|setenv|putenv|environ)([^A-Za-z0-9_]|$)" "${no_env[@]}"
forbid "a library neither prints nor ends the program" \
    "$word((printf|puts|putchar|perror|exit|_exit|abort|assert)[[:space:]]*\\(|(stderr|stdout)([^A-Za-z0-9_]|$))" \
    "${library[@]}"
forbid "threads are POSIX threads (base/threads.c)" '#[[:space:]]*(pragma[[:space:]]+omp|include[[:space:]]*<omp)' \
    "${library[@]}"
forbid "delete it instead" '^[[:space:]]*#[[:space:]]*if[[:space:]]+0' "${code[@]}"
forbid "indent with four spaces" $'\t' "${code[@]}"

echo "${#sources[@]} files, $bad complaints"
[ $bad -eq 0 ]
