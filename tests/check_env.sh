#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_env.sh ROOT - environment variables agree everywhere: in the table of src/base/env.c, where the
# library reads them (tl_env), where tests, benchmarks and examples set them, and in docs/tulle.1, which
# lists those for tests separately.
set -euo pipefail
cd "${1:?usage: check_env.sh ROOT}"

bad=0
complain() { echo "$1"; bad=$((bad + 1)); }

# each LIST WHY: complains about every line of a list
each() { while read -r name; do [ -z "$name" ] || complain "$name: $2"; done <<<"$1"; }

table() { sed -nE 's/^    \{"([A-Z0-9_]+)", .*, FOR_('"$1"'), .*/\1/p' src/base/env.c | sort; }
users=$(table USERS) tests=$(table TESTS) all=$(table 'USERS|TESTS')
[ "$(wc -l <<<"$all")" -gt 10 ] || complain "the table in src/base/env.c was not found"

read=$(grep -rhoE 'tl_env\("[A-Z0-9_]+"\)' src --include=*.c | sed -E 's/.*"(.*)".*/\1/' | sort -u)
each "$(comm -13 <(echo "$all") <(echo "$read"))" "is read, but not in the table of src/base/env.c"
each "$(comm -23 <(echo "$all") <(echo "$read"))" "is in the table of src/base/env.c, but never read"

# tl_env with anything but a literal name would bypass these checks
! grep -rnE 'tl_env\([^"]' src --include=*.c | grep -vE 'src/base/env\.c|const char \*name' || complain "tl_env takes a name in quotes"

set_somewhere=$(grep -rhoE '((un)?setenv|gpu_ctx_env)\("TULLE_[A-Z0-9_]+"' tests bench examples --include=*.c --include=*.h |
    grep -oE 'TULLE_[A-Z0-9_]+' | grep -vE '^TULLE_(TEST_|NO_SUCH)' | sort -u)
each "$(comm -13 <(echo "$all") <(echo "$set_somewhere"))" "is set by tests or benches, but not in the table"

programs=$(grep -rhoE '"TULLE_LIB[A-Z0-9_]+"' programs --include=*.c | tr -d '"' | sort -u)
# The section ENVIRONMENT has two parts: before and after "For tests and measurements"
names() { sed -nE 's/^\.It Ev //p' | tr -d ' ' | tr ',' '\n' | sort; }
man=$(sed -n '/^\.Sh ENVIRONMENT/,/^\.Ss For tests/p' docs/tulle.1 | names)
told=$(sed -n '/^\.Ss For tests/,/^\.Sh EXIT/p' docs/tulle.1 | names)
each "$(comm -23 <(printf '%s\n' "$users" "$programs" | sort -u) <(echo "$man"))" "is for users, but not in docs/tulle.1"
each "$(comm -13 <(printf '%s\n' "$users" "$programs" | sort -u) <(echo "$man"))" "is in docs/tulle.1, but not in the table"
each "$(comm -23 <(echo "$tests") <(echo "$told"))" "is for tests, but not in that part of docs/tulle.1"
each "$(comm -13 <(echo "$tests") <(echo "$told"))" "is in docs/tulle.1 as one for tests, but the table has no such"

echo "$(wc -l <<<"$all") variables, $bad complaints"
[ $bad -eq 0 ]
