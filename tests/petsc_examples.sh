#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# petsc_examples.sh MPIRUN EXAMPLES PLUGIN COMPILE... - PETSc's own examples, unchanged, with and without the
# plug-in: they print the same, and tulle computed products for them.  EXAMPLES is the folder src/ of PETSc's
# examples, COMPILE the command that compiles a C file.
set -uo pipefail
mpirun=$1 examples=$2 plugin=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
gamg="-ksp_type cg -pc_type gamg -ksp_monitor_short -ksp_converged_reason"
tulle="-dll_append $plugin -mat_seqaij_type seqaijtulle"
backend="-mat_product_algorithm backend"

# example FILE RANKS OPTION...
example() {
    local file=$1 ranks=$2 name
    shift 2
    name=$(basename "$file" .c)
    [ -x "$work/$name" ] || "${compile[@]}" "$examples/$file" -o "$work/$name" "${link[@]}" >"$work/log" 2>&1 ||
        { cat "$work/log"; failed=$((failed + 1)); return; }
    local more="" product=
    [ "$ranks" -gt 1 ] && more=$backend
    # shellcheck disable=SC2086
    {
        "$here/mpirun.sh" "$mpirun" "$ranks" "$work/$name" "$@" >"$work/plain" 2>&1
        "$here/mpirun.sh" "$mpirun" "$ranks" "$work/$name" "$@" $tulle $more >"$work/ours" 2>&1
        "$here/mpirun.sh" "$mpirun" "$ranks" "$work/$name" "$@" $tulle $more -info "$work/info:mat" >/dev/null 2>&1
    }
    product=$(cat "$work"/info* 2>/dev/null | grep -c 'by tulle')
    rm -f "$work"/info*
    if cmp -s "$work/plain" "$work/ours" && [ "$product" -gt 0 ]; then
        echo "ok   $name, $ranks ranks: $product products by tulle, $(wc -l <"$work/plain") lines are the same"
        passed=$((passed + 1))
    else
        echo "FAIL $name, $ranks ranks: $product products by tulle"
        diff "$work/plain" "$work/ours" | head -n 20 | cut -c1-200
        failed=$((failed + 1))
    fi
}

compile=() link=()
for word in "$@"; do case $word in -l* | -L* | -Wl,* | *.so) link+=("$word") ;; *) compile+=("$word") ;; esac; done
# shellcheck disable=SC2086
for ranks in 1 2; do
    example ksp/ksp/tutorials/ex2.c $ranks -m 40 -n 40 $gamg
    example ksp/ksp/tutorials/ex45.c $ranks -da_refine 1 $gamg
    example ksp/ksp/tutorials/ex56.c $ranks -ne 9 -alpha 1.e-3 $gamg -use_mat_nearnullspace -two_solves \
        -pc_gamg_reuse_interpolation true
    example mat/tests/ex93.c $ranks
    example mat/tests/ex96.c $ranks -Mx 10 -My 5 -Mz 10
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
