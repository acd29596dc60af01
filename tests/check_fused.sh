#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_fused.sh OBJDUMP LIST ISA... - no object contains a fused multiply-add, which rounds only once and
# changes results.  Objects are disassembled, so that kernels for instruction sets that this processor lacks
# are checked, too, and compilers that fuse in spite of the options (gcc 12.2: bug 107647) are detected.
#
# Calls of fma() in the source are allowed: allowed() has the only one.
#
# LIST has the path of an object in each line: those of the library and of the tests' reference.  The kernels
# of every ISA must be included. $CC is the compiler that was used; planted objects show that this test can
# fail.
set -euo pipefail
objdump=${1:?usage: check_fused.sh OBJDUMP LIST ISA...}
list=${2:?usage: check_fused.sh OBJDUMP LIST ISA...}
shift 2
cc=${CC:-cc}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }

command -v "$objdump" >/dev/null || { echo "there is no $objdump; it comes with binutils"; exit 1; }

# All fused multiply-adds and -subtracts, scalar, vector and complex, of the processors for which there are
# kernels.
echo 'int nothing;' >"$work/nothing.c"
$cc -c "$work/nothing.c" -o "$work/nothing.o"
case $("$objdump" -f "$work/nothing.o") in
    *x86[-_]64*) machine=x86 fused='^v4?fc?n?m(add|sub)' ;;
    *aarch64*) machine=aarch64 fused='^(fn?m(add|sub|ad|sb)|fn?ml[as]|fcmla|fmmla|bfml|bfmmla|bfdot)' ;;
    *) "$objdump" -f "$work/nothing.o"; echo "check_fused.sh does not know this processor's fused instructions"; exit 1 ;;
esac

options="-d --no-show-raw-insn"         # LLVM's objdump needs an option for new instructions
if [ $machine = aarch64 ] && [[ $("$objdump" --version) == *LLVM* ]]; then options="$options --mattr=+v8.3a,+sve,+complxnum"; fi

# allowed OBJECT: the number of fma() calls in its source
allowed() {
    case $1 in
        */src/matrix/gallery_cage.c.o) echo 1 ;;        # three_digits(): the exact error of a product
        *) echo 0 ;;
    esac
}

# count OBJECT: "FUSED UNKNOWN ALL", numbers of instructions
count() {
    # shellcheck disable=SC2086
    "$objdump" $options "$1" >"$work/text" 2>"$work/error" || { cat "$work/error" >&2; return 1; }
    awk -v fused="$fused" '
        /^ *[0-9a-f]+:/ {
            all++
            if (/<unknown>|\(bad\)|; undefined/) unknown++
            for (i = 2; i <= NF; i++) if ($i ~ fused) { found++; break }
        }
        END { print found + 0, unknown + 0, all + 0 }' "$work/text"
}

# ---- planted: each instruction by name, then the code that a compiler generates for a sum of products

case $machine in
    x86) planted="vfmadd132pd %ymm0,%ymm1,%ymm2
        vfmadd213ps %zmm0,%zmm1,%zmm2
        vfmadd231sd %xmm0,%xmm1,%xmm2
        vfmadd231pd (%rax){1to8},%zmm20,%zmm21{%k1}
        vfmsub132ss %xmm0,%xmm1,%xmm2
        vfnmadd231ps %xmm0,%xmm1,%xmm2
        vfnmsub213pd %zmm0,%zmm1,%zmm2
        vfmaddsub231pd %zmm0,%zmm1,%zmm2
        vfmsubadd231ps %ymm0,%ymm1,%ymm2
        vfmaddpd %xmm0,%xmm1,%xmm2,%xmm3" clean="vmulpd %ymm0,%ymm1,%ymm2
        vaddsubpd %ymm0,%ymm1,%ymm2
        vaddps %zmm0,%zmm1,%zmm2" flags=-mfma ;;
    aarch64) planted="fmadd d0, d1, d2, d3
        fmsub s0, s1, s2, s3
        fnmadd d0, d1, d2, d3
        fnmsub d0, d1, d2, d3
        fmla v0.2d, v1.2d, v2.2d
        fmls v0.4s, v1.4s, v2.s[1]
        fcmla v0.2d, v1.2d, v2.2d, #90
        fmad z0.d, p0/m, z1.d, z2.d
        fnmls z0.s, p0/m, z1.s, z2.s" clean="fmul v0.2d, v1.2d, v2.2d
        fnmul d0, d1, d2
        fadd d0, d1, d2" flags= ;;
esac
assemble() {                    # assemble NAME TEXT
    { [ $machine = x86 ] || echo ".arch armv8.3-a+sve"; echo "$2"; } >"$work/$1.s"
    $cc -c "$work/$1.s" -o "$work/$1.o"
}
assemble planted "$planted"
assemble clean "$clean"
cat >"$work/sum.c" <<'END'
double sum(const double *x, const double *y, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}
END
$cc -O2 $flags -ffp-contract=fast -c "$work/sum.c" -o "$work/contracted.o"
$cc -O2 $flags -ffp-contract=off -c "$work/sum.c" -o "$work/plain.o"
want() {                        # want NAME FUSED; FUSED may be +, at least one
    local found unknown all
    read -r found unknown all < <(count "$work/$1.o")
    if [ "$all" -gt 0 ] && { [ "$found" = "$2" ] || { [ "$2" = + ] && [ "$found" -gt 0 ]; }; }; then
        good
    else
        bad "planted object $1: $found of $all instructions were taken for fused ones, not $2"
        cat "$work/text"
    fi
}
want planted "$(echo "$planted" | wc -l)"
want clean 0
want contracted +
want plain 0

# ---- the objects

objects=0 total=0
while read -r object; do
    objects=$((objects + 1))
    name=${object#*CMakeFiles/}
    if ! numbers=$(count "$object"); then
        bad "$name cannot be disassembled"
        continue
    fi
    read -r found unknown all <<<"$numbers"
    total=$((total + all))
    if [ "$found" -gt "$(allowed "$object")" ]; then
        bad "$name holds $found fused instructions of $all; the first of them:"
        awk -v fused="$fused" '
            /^[0-9a-f]+ </ { at = $2 }
            /^ *[0-9a-f]+:/ {
                for (i = 2; i <= NF; i++) if ($i ~ fused) { print "    " at $0; if (++n == 3) exit }
            }' "$work/text"
    elif [ "$unknown" -gt 0 ]; then
        bad "$name: $objdump does not know $unknown instructions of $all"
    elif [ "$all" -eq 0 ] && [[ $name == *kernels.c.o ]]; then
        bad "$name holds no instruction at all"
    else
        good
    fi
done <"$list"

# Two files of kernels, four value types, two index types.
for isa in "$@"; do
    kernels=$(grep -cE "_${isa}_[fc](32|64)_i(32|64)\.dir/.*kernels\.c\.o(bj)?\$" "$list" || true)
    if [ "$kernels" -eq 16 ]; then good; else bad "$kernels objects hold kernels for $isa, not 16"; fi
done
[ $# -gt 0 ] || bad "no instruction set was named"
echo "$objects objects, $total instructions, $machine: $*"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
