#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_symbols.sh libtulle.so libtulle.a tulle.h ... - the symbols of the libraries:
#   the shared one exports exactly the functions of the headers; the static one defines no global name but
#   tulle_* and tl_*; neither has writable data (no global state), nor uses a function that prints or ends the
#   program; the shared one has its soname.
set -euo pipefail
so=${1:?usage: check_symbols.sh SO A HEADER...} a=$2
shift 2

bad=0
complain() { echo "$1"; bad=$((bad + 1)); }
quote() { sed 's/^/    /'; }

declared=$(grep -hE '^TULLE_API ' "$@" | sed -E 's/^[^(]*[^A-Za-z0-9_](tulle_[a-z0-9_]+)[[:space:]]*\(.*/\1/' | sort)
exported=$(nm -D --defined-only "$so" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort)
missing=$(comm -23 <(echo "$declared") <(echo "$exported"))
extra=$(comm -13 <(echo "$declared") <(echo "$exported"))
[ -z "$missing" ] || complain "declared, not in $so:"$'\n'"$(quote <<<"$missing")"
[ -z "$extra" ] || complain "exported from $so, in no header:"$'\n'"$(quote <<<"$extra")"

polluted=$(nm -g --defined-only "$a" 2>/dev/null | awk 'NF == 3 && $3 !~ /^(tulle_|tl_)/ {print $3}' | sort -u)
[ -z "$polluted" ] || complain "$a defines names that are not its own:"$'\n'"$(quote <<<"$polluted")"

# A lock, tl_lock_*, is allowed: it guards the initialization of another library, which exists once per
# process. symbol tables: address flags section size name; a section of written data ends up in .data, .bss,
# COMMON
state=$(objdump -t "$a" | awk 'NF > 2 && $(NF-2) ~ /^(\.(data|bss|tdata|tbss)(\..*)?|\*COM\*)$/ &&
        $(NF-2) !~ /^\.data\.rel\.ro/ && $NF !~ /^\./ && $NF !~ /^tl_lock_/ {print $NF " in " $(NF-2)}' | sort -u)
[ -z "$state" ] || complain "$a has state that is not in a context:"$'\n'"$(quote <<<"$state")"

loud=$(nm -u "$a" | awk '{print $NF}' | sort -u |
       grep -xE 'exit|_exit|quick_exit|abort|__assert_fail|printf|__printf_chk|puts|putchar|perror|stdout|stderr|system|signal|sigaction' || true)
[ -z "$loud" ] || complain "a library does not print, exit or catch signals, $a uses:"$'\n'"$(quote <<<"$loud")"

objdump -p "$so" | grep -qE '^ *SONAME +libtulle\.so\.[0-9]+$' || complain "$so has no soname libtulle.so.N"

echo "$(wc -w <<<"$exported") functions exported, $(wc -w <<<"$declared") declared, $bad complaints"
[ $bad -eq 0 ]
