#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_manuals.sh ROOT - every function of the headers has a manual page, generated from the comment above
# it; there is no page without a function; and groff reports no problems, neither in these nor in
# docs/tulle.1.
set -euo pipefail
root=${1:?usage: check_manuals.sh ROOT}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() { echo "$1"; bad=$((bad + 1)); }

mkdir "$work/man"
headers=("$root"/include/{tulle,tulle_lab,tulle_cuda,tulle_opencl,tulle_mpi}.h)       # as in cmake/TulleInstall.cmake
awk -v out="$work/man" -v date="January 1, 2000" -f "$root/scripts/man3.awk" "${headers[@]}" >"$work/log" 2>"$work/errors" ||
    complain "man3.awk failed"
[ ! -s "$work/errors" ] || complain "$(cat "$work/errors")"

declared=$(cat "${headers[@]}" | sed 's/\r$//' | grep -hoE '^TULLE_(MPI_)?API [^(]*[^A-Za-z0-9_]tulle_[a-z0-9_]+ *\(' |
           sed -E 's/.*[^A-Za-z0-9_](tulle_[a-z0-9_]+) *\($/\1/' | sort)
pages=$(cd "$work/man" && ls ./*.3 | sed -E 's|^\./||; s/\.3$//' | grep -vx tulle | sort)
[ "$(wc -l <<<"$declared")" -gt 50 ] || complain "the functions of the headers were not found"
missing=$(comm -23 <(echo "$declared") <(echo "$pages")) extra=$(comm -13 <(echo "$declared") <(echo "$pages"))
[ -z "$missing" ] || complain "without a page: $missing"
[ -z "$extra" ] || complain "a page without a function: $extra"

for name in $pages; do
    page=$work/man/$name.3
    brief=$(sed -n 's/^\.Nd //p' "$page")
    [ ${#brief} -ge 8 ] && [ ${#brief} -le 110 ] || complain "$name: its line in NAME is \"$brief\""
    grep -qxF ".Fo $name" "$page" || complain "$name: not in its own synopsis"
    grep -qxF ".It Xr $name 3" "$work/man/tulle.3" || complain "$name: not in tulle(3)"
done
same=$(sed -n 's/^\.Nd //p' "$work"/man/tulle_*.3 | sort | uniq -d || true)
[ -z "$same" ] || complain "several functions with one line in NAME: $same"

for page in "$work"/man/*.3 "$root/docs/tulle.1"; do
    groff -mandoc -Tutf8 -ww -z "$page" >"$work/log" 2>&1 || complain "groff failed: $page"
    [ ! -s "$work/log" ] || complain "${page##*/}: $(head -n 3 "$work/log")"
done

echo "$(wc -l <<<"$pages") pages, $bad complaints"
[ $bad -eq 0 ]
