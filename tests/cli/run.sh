#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh TULLE [PART-OF-A-NAME]            runs the command against its golden files
# run.sh --update TULLE [PART-OF-A-NAME]   writes what it does now into them; read the diff before you commit
#
# A file cases/NAME.txt is a transcript.  A line "$ ..." is a command of the shell; below it stand what it
# must print on standard output ("> "), on standard error ("! ") and its exit status ("= ", 0 where
# missing).  The commands of a case run in one folder that has the files of data/ in it and nothing else.
# Times, speeds and what depends on the machine are masked, see mask() below.  Products run on the CPU, and no
# driver is found, unless a case says otherwise.
set -uo pipefail

update=
if [ "${1:-}" = --update ]; then
    update=1
    shift
fi
tulle=$(realpath "${1:?usage: run.sh [--update] TULLE [PART-OF-A-NAME]}")
part=${2:-}
[ -x "$tulle" ] || { echo "run.sh: $tulle is no program"; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/bin"
ln -s "$tulle" "$work/bin/tulle"
PATH=$work/bin:$PATH
export PATH root LC_ALL=C TULLE_DEVICE=cpu TULLE_LIBCUDA=/no/libcuda.so TULLE_LIBOPENCL=/no/libOpenCL.so
unset COLUMNS

passed=0 failed=0
told() {                        # told NAME STATUS
    if [ "$2" -eq 0 ]; then
        echo "ok $1"
        passed=$((passed + 1))
    else
        echo "FAIL $1"
        failed=$((failed + 1))
    fi
}

mask() {
    sed -E \
        -e 's/^(compile|check|analyze|symbolic|numeric|finish|the rest|total) +[0-9.]+ +<?[0-9.]+%$/\1 MS PART/' \
        -e 's/^(repeated .*: median) .*/\1 MS/' \
        -e 's/(the product needs) [0-9]+ (bytes .C has [0-9]+ entries,) .*/\1 N \2 .../' \
        -e 's/(the product needs) [0-9]+ (bytes even in blocks)/\1 N \2/' \
        -e 's/(the gallery has no "[^"]*"; it has) .*/\1 .../' \
        -e 's/(this machine has) .*/\1 .../' \
        -e 's/(; there are) [0-9]+ free$/\1 N free/' \
        -e '/^\[1\][+] +Exit /d' \
        -e 's/^(GFLOPS|GB.s) +[0-9.]+/\1 SPEED/' \
        -e 's/^(peak memory|memory|workspace) +(about )?[0-9.]+ [KMGT]?i?B?(ytes)?.*/\1 BYTES/' \
        -e 's/^(device +cpu) .*(policy.*)/\1 MACHINE, \2/' \
        -e 's/^(check: [a-zA-Z]+; .* by) [-+0-9.einf]+$/\1 ERROR/' \
        -e 's/^(blocks +)[0-9,]+ /\1N /' \
        -e 's/("(sec_[a-z]+|ms(_min)?|share|compile|check|analyze|symbolic|numeric|finish|total|gflops|error)": )[-+0-9.e]+/\1TIME/' \
        -e 's/("(peak_bytes|workspace_bytes|bytes_estimate|bytes_upper|memory_bytes|memory_free|processors|threads)": )[0-9]+/\1N/' \
        -e 's/("isa": )"[^"]*"/\1"ISA"/' \
        -e 's/( +[0-9]+\.[0-9]+) +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ [KMGi]*B?(ytes)? +[0-9.]+ [KMGi]*B?(ytes)?$/\1 MS MS SPEED BYTES/'
}

run_case() {                    # run_case FILE FOLDER: the transcript as it comes out
    local line status
    while IFS= read -r line; do
        case $line in
        '$ '*)
            (cd "$2" && timeout 300 bash -c "${line#??}" >"$2.out" 2>"$2.err" </dev/null)
            status=$?
            echo "$line"
            mask <"$2.out" | sed 's/^/> /; s/ *$//'
            # PoCL's compiler counts its warnings there, the first time it sees a kernel.
            sed -E '/^[0-9]+ warnings? generated\.$/d' "$2.err" | mask | sed 's/^/! /; s/ *$//'
            [ $status -eq 0 ] || echo "= $status"
            ;;
        '> '* | '! '* | '= '* | '>' | '!') ;;
        *) echo "$line" ;;
        esac
    done <"$1"
}

for file in "$here"/cases/*"$part"*.txt; do
    name=$(basename "$file" .txt)
    mkdir "$work/$name"
    cp "$here"/data/* "$work/$name"
    run_case "$file" "$work/$name" >"$work/$name.txt"
    if [ -n "$update" ]; then
        cp "$work/$name.txt" "$file"
    elif diff -u "$file" "$work/$name.txt" >"$work/diff"; then
        told "$name" 0
    else
        told "$name" 1
        tail -n +3 "$work/diff" | head -n 60
    fi
    rm -rf "${work:?}/$name"
done
[ -z "$update" ] || exit 0

# ---- what the documents say is what there is

block() {                       # block LANGUAGE: that block of the README
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$root/README.md" | sed '1d;$d'
}

if [ -z "$part" ]; then
    diff <(block c) <(tail -n +2 "$root/examples/00_readme.c")
    told "the C example of the README is examples/00_readme.c" $?

    mkdir "$work/readme"
    (cd "$work/readme" && block sh >commands && bash -e commands) >"$work/readme.out" 2>&1 ||
        { cat "$work/readme.out"; false; }
    told "the shell example of the README runs" $?

    missing=0
    for file in $(cd "$root" && find src programs -name '*.[ch]' ! -name 'gallery_*.c' ! -name program.h); do
        grep -qF "$(basename "$file")" "$root/docs/files.md" || { echo "docs/files.md lacks $file"; missing=1; }
    done
    told "docs/files.md names every file of the source" $missing

    missing=0
    for word in $(tulle help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
        grep -q "Cm $word" "$root/docs/tulle.1" || { echo "tulle.1 lacks $word"; missing=1; }
        for option in $(tulle help "$word" | sed -nE 's/^ .*--([a-z0-9-]+).*/\1/p'); do
            grep -qE "Fl -$option( |$)" "$root/docs/tulle.1" || { echo "tulle.1 lacks --$option"; missing=1; }
        done
    done
    while read -r code text; do
        grep -A1 "^\.It $code\$" "$root/docs/tulle.1" | tail -n 1 | grep -qixF "$text." ||
            { echo "tulle.1 says something else about exit code $code"; missing=1; }
    done < <(tulle help | sed -nE 's/^  ([0-9]+ .*)/\1/p')
    told "the man page has every command, option and exit code" $missing
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
