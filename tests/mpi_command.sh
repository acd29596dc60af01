#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# mpi_command.sh MPIRUN TULLE - `mpirun -n N tulle multiply`: the same files as with one process, one report,
# and for errors one message and an exit code.
set -uo pipefail
mpirun=$1 tulle=$2
run=$(cd "$(dirname "$0")" && pwd)/mpirun.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0
check() {                       # check WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then passed=$((passed + 1)); echo "ok   $what"; else failed=$((failed + 1)); echo "FAIL $what"; fi
}
ranks() { local n=$1; shift; bash "$run" "$mpirun" "$n" "$tulle" "$@" >out 2>err; }
count_is() { [ "$(grep -c -- "$2" "$1")" -eq "$3" ] || { cat "$1"; return 1; }; }

"$tulle" gen cage:7 -o A.tulle -q && "$tulle" gen rmat:scale=8,edges=4,seed=1 -o R.mtx -q || exit 1
"$tulle" gen poisson2d:30 -o P.tulle -q || exit 1
for n in 1 2 3 4; do
    "$tulle" multiply A.tulle -q -o one.tulle
    check "$n ranks run" ranks $n multiply A.tulle --check -o many.tulle
    check "$n ranks write what one does" cmp one.tulle many.tulle
    check "$n ranks, one report" count_is out 'check: passed' 1
done
"$tulle" multiply A.tulle A.tulle -q -o one.tulle
check "two operands" ranks 3 multiply A.tulle A.tulle --check -o many.tulle
check "two operands, the same file" cmp one.tulle many.tulle
"$tulle" multiply R.mtx -q -o one.mtx
check "text in, text out" ranks 2 multiply R.mtx -o many.mtx
check "text, the same file" cmp one.mtx many.mtx
# the first rows of this graph have most of the products
number() { sed -n "s/.*\"$1\": \([0-9.e-]*\).*/\1/p" out; }
even() { awk -v all="$(number products)" -v most="$(number products_most)" -v n="$1" 'BEGIN {exit !(most <= 1.2 * all / n)}'; }
"$tulle" gen rmat:scale=9,edges=6,seed=2 -o G.tulle -q && "$tulle" gen er:rows=512,per_row=5 -o E.tulle -q || exit 1
for turned in "" --transpose-a --transpose-b; do
    # shellcheck disable=SC2086  # one option or none
    "$tulle" multiply G.tulle $turned -q -o one.tulle
    # shellcheck disable=SC2086
    check "rows move to give ranks equal work ($turned)" ranks 4 multiply G.tulle $turned --json --check -o many.tulle
    check "... and they have it" even 4
    check "... the same file" cmp one.tulle many.tulle
done
check "... in a time that is told" awk -v s="$(number sec_balance)" 'BEGIN {exit !(s > 0)}'
"$tulle" multiply G.tulle E.tulle -q -o one.tulle
check "rows of the first operand alone move" ranks 3 multiply G.tulle E.tulle --json --check -o many.tulle
check "... and the ranks have equal work" even 3
check "... the same file" cmp one.tulle many.tulle
check "rows stay where ranks have equal work" ranks 3 multiply poisson2d:30 --json
check "... and nothing is told" test "$(number sec_balance)" = 0
"$tulle" multiply A.tulle --transpose-b --symmetric -q -o one.mtx
check "one triangle of a symmetric C" ranks 2 multiply A.tulle --transpose-b --symmetric -o many.mtx
check "... the same file" cmp one.mtx many.mtx
ranks 2 multiply A.tulle --symmetric -o many.tulle
check "--symmetric for a .tulle file is refused once" count_is err '--symmetric is for' 1
ranks 2 multiply A.tulle --stages
check "--stages is refused once" count_is err '--stages' 1
ranks 3 multiply A.tulle -o none/many.tulle
check "a folder that is not there is told once" count_is err 'none/many.tulle' 1
check "... before the product" test ! -s out
check "a recipe, as JSON" ranks 2 multiply poisson2d:20 --json --check
check "JSON is printed once" count_is out '"ranks": 2' 1
check "bytes are those that must move" test "$(sed -n 's/.*"bytes": //p' out)" = "$(sed -n 's/.*"bytes_exact": //p' out)"
ranks 3 multiply none.tulle
check "a missing file has its exit code" test $? -ne 0
check "a missing file is told once" count_is err 'none.tulle: cannot be read' 1
ranks 3 multiply A.tulle P.tulle
check "shapes are told once" count_is err 'columns' 1
echo old >kept.tulle
head -c 300 A.tulle >cut.tulle
ranks 3 multiply cut.tulle -o kept.tulle
check "a damaged file is told once" count_is err 'cut.tulle' 1
check "what stood there stays" grep -qx old kept.tulle
TULLE_LIBMPI=/none/libtulle_mpi.so ranks 2 multiply A.tulle
check "a library that is not there is told once" count_is err 'cannot be opened' 1
check "nothing half-written is left" test -z "$(ls ./*.part 2>/dev/null)"
# One rank with another command line than the others: one message, no deadlock, no partial file.
cat >one.sh <<'END'
#!/usr/bin/env bash
# one.sh TULLE ODD ARGUMENT... - rank 1 does ODD first
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} tulle=$1 odd=$2
shift 2
[ "$rank" -ne 1 ] || eval "$odd"
exec "$tulle" "$@"
END
odd() {                         # odd RANKS ODD SENTENCE ARGUMENT... : all ranks fail, with this message once
    local n=$1 odd=$2 sentence=$3 code
    shift 3
    rm -f odd.tulle
    bash "$run" "$mpirun" "$n" bash ./one.sh "$tulle" "$odd" "$@" -o odd.tulle >out 2>err
    code=$?
    check "rank 1 does '$odd': an exit code" test $code -ne 0 -a $code -ne 124
    check "... and one sentence" count_is err "$sentence" 1
    check "... and no file" test -z "$(ls odd* 2>/dev/null)"
}
differ='started with different commands'
odd 3 'set -- multiply A.tulle' "$differ: --output" multiply A.tulle
odd 3 'set -- "$@" --check' "$differ: --check" multiply A.tulle
odd 3 'set -- "$@" --transpose-a' "$differ: the operands" multiply A.tulle
odd 3 'set -- "$@" A.tulle' "$differ: the number of operands" multiply A.tulle
odd 3 'set -- "$@" --symmetric' 'rank 1: --symmetric is for' multiply A.tulle
odd 3 'set -- "$@" --repeat 3' "$differ: --repeat" multiply A.tulle
odd 3 'set -- multiply R.mtx -o odd.tulle' "$differ: what is read" multiply A.tulle
odd 3 'set -- multiply P.tulle -o odd.tulle' 'do not agree on its header' multiply A.tulle
odd 3 'set -- multiply none.tulle -o odd.tulle' 'rank 1: none.tulle: cannot be read' multiply A.tulle
odd 3 'set -- multiply none.mtx -o odd.tulle' 'rank 1: .*none.mtx' multiply R.mtx
odd 3 'set -- "$@" --memory-limit 1000' 'rank 1: .*the limit is 1000 bytes' multiply A.tulle
odd 3 'set -- "$@" --device cuda:99' 'rank 1: .*cuda:99' multiply A.tulle
odd 3 'set -- "$@" --policy none' 'rank 1: .*none' multiply A.tulle
odd 3 'set -- multiply A.tulle -o odd.xyz' 'rank 1: .*odd.xyz' multiply A.tulle
odd 3 'export TULLE_ISA=none' 'rank 1: .*TULLE_ISA' multiply A.tulle
# (MPICH does not start under such a limit)
[[ $mpirun != *openmpi* ]] || odd 3 'ulimit -f 8' 'rank 1: odd.tulle: cannot be written' multiply A.tulle
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 5\n3 1 2\n1 1 1\n2 2 3\n1 3 4\n1 1 6\n' >small.mtx
"$tulle" multiply small.mtx -q -o one.tulle
check "9 ranks, 3 rows, entries in any order and one twice" ranks 9 multiply small.mtx --check -o many.tulle
check "... the same file" cmp one.tulle many.tulle
"$tulle" multiply A.tulle --index i64 -q -o one.tulle
check "64-bit indices" ranks 3 multiply A.tulle --index i64 --check -o many.tulle
check "... the same file" cmp one.tulle many.tulle
# A signal to a single rank: all ranks end, with its exit code.
rm -f odd.tulle
bash "$run" "$mpirun" 3 bash ./one.sh "$tulle" '(sleep 1; kill -INT $$) &' multiply cage:11 --repeat 2000 -o odd.tulle >out 2>err
check "rank 1 is interrupted: an exit code" test $? -ne 124 -a $? -ne 0
check "... and one sentence" count_is err 'rank 1: .*\(cancelled\|interrupted\)' 1
check "... and no file" test -z "$(ls odd* 2>/dev/null)"
# If mpirun runs in a terminal, rank 0 alone shows a progress bar, although the ranks have no terminal.
# bar COMMAND [REDIRECTION] : number of lines that begin a bar on a terminal, and its parts in err
bar() {
    printf '#!/usr/bin/env bash\nexec bash %q %q 3 bash ./one.sh %q "(sleep 4; kill -INT \\$\\$) &" multiply cage:11 --repeat 5000 %s\n' \
        "$run" "$mpirun" "$tulle" "$1" >bar.sh
    script -qec 'bash bar.sh' /dev/null </dev/null >out 2>&1
}
if command -v script >/dev/null; then
    bar ''
    check "a bar on the terminal of mpirun" grep -q '\[#*\.*\] *[0-9]*%' out
    bar '2>err'
    check "none where its errors go to a file" test "$(cat out err | grep -c '%')" -eq 0
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
