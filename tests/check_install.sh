#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_install.sh ROOT BUILD - installs into an empty folder, moves it, and builds and runs an external
# program with it: with pkg-config and with find_package(tulle), each with the shared and the static library.
set -euo pipefail
root=${1:?usage: check_install.sh ROOT BUILD} build=$2
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "-- $*"; }
quiet() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; echo "failed: $*"; exit 1; }; }

say "install, then move"
quiet cmake --install "$build" --prefix "$work/first"
prefix=$work/moved
mv "$work/first" "$prefix"

say "every file is there"
find "$prefix" \( -type f -o -type l \) | sed "s|^$prefix/||" | sort >"$work/files"
for pattern in 'include/tulle\.h' 'include/tulle_lab\.h' 'include/tulle_cuda\.h' 'include/tulle_opencl\.h' 'include/tulle_mpi\.h' 'lib.*/libtulle\.a' 'lib.*/libtulle\.so' 'lib.*/libtulle\.so\.0' \
               'lib.*/libtulle\.so\.0\.[0-9]+\.[0-9]+' 'lib.*/pkgconfig/tulle\.pc' \
               'lib.*/cmake/tulle/tulleConfig\.cmake' 'lib.*/cmake/tulle/tulleConfigVersion\.cmake' \
               'bin/tulle' 'share/man/man1/tulle\.1' 'share/man/man3/tulle\.3' 'share/man/man3/tulle_multiply\.3' 'share/bash-completion/completions/tulle' \
               'share/zsh/site-functions/_tulle' 'share/fish/vendor_completions\.d/tulle\.fish'; do
    grep -qxE "$pattern" "$work/files" || { echo "not installed: $pattern"; cat "$work/files"; exit 1; }
done
lib=$prefix/$(dirname "$(grep -xE 'lib.*/libtulle\.a' "$work/files")")

say "no installed text names the folder it was built in"
if grep -rlIF -e "$build" -e "$work/first" "$prefix"; then exit 1; fi

say "the installed command runs and is what the header says"
version=$(sed -nE 's/^#define TULLE_VERSION "(.*)"/\1/p' "$prefix/include/tulle.h")
"$prefix/bin/tulle" version | grep -qF "$version" || { echo "tulle version does not say $version"; exit 1; }

export PKG_CONFIG_PATH=$lib/pkgconfig
[ "$(pkg-config --modversion tulle)" = "$version" ] || { echo "tulle.pc has another version"; exit 1; }

say "pkg-config, shared"
quiet $cc -std=c99 "$root/tests/install/user.c" -o "$work/pc_shared" $(pkg-config --cflags --libs tulle)
LD_LIBRARY_PATH=$lib "$work/pc_shared"
objdump -p "$work/pc_shared" | grep -qE 'NEEDED +libtulle\.so\.0$' || { echo "linked without the soname"; exit 1; }

say "pkg-config, static"
quiet $cc -std=c99 -static "$root/tests/install/user.c" -o "$work/pc_static" \
    $(pkg-config --static --cflags --libs tulle)
"$work/pc_static"
# a static program cannot open a driver's library: it must say so and not try
"$work/pc_static" devices >"$work/devices" || { cat "$work/devices"; echo "a static program ended with $?"; exit 1; }
for driver in cuda opencl; do
    grep -q "^$driver: .*statically linked" "$work/devices" || { cat "$work/devices"; echo "$driver: no reason"; exit 1; }
done

say "the lines of README.md, as they stand"
mkdir "$work/home" "$work/prog"
cp "$root/tests/install/user.c" "$work/prog/prog.c"
sed -n '/^## Install/,/^## /p' "$root/README.md" | sed -n '/^```bash$/,/^```$/p' | sed '1d;$d' >"$work/lines"
grep -q '^make install PREFIX=\$HOME/tulle ' "$work/lines" || { echo "README.md does not begin with make install"; exit 1; }
# The build exists already; the rest of make install is cmake --install.
sed -i "s|^make install PREFIX=|cmake --install '$build' --prefix |" "$work/lines"
(cd "$work/prog" && unset PKG_CONFIG_PATH LD_LIBRARY_PATH && export HOME=$work/home && quiet bash -e -u "$work/lines")
[ "$(PATH=$work/home/tulle/bin:$PATH command -v tulle)" = "$work/home/tulle/bin/tulle" ] || { echo "no tulle in PATH"; exit 1; }
cc_plain() { (cd "$work/prog" && PKG_CONFIG_PATH=$1/pkgconfig $cc prog.c -o plain $(PKG_CONFIG_PATH=$1/pkgconfig pkg-config --cflags --libs tulle)); }
cc_plain "$work/home/tulle/lib"
if "$work/prog/plain" >/dev/null 2>&1; then echo "a program without rpath runs: README.md need not tell of it"; exit 1; fi
LD_LIBRARY_PATH=$work/home/tulle/lib "$work/prog/plain"

say "find_package, shared and static"
quiet env CC="$cc" cmake -S "$root/tests/install" -B "$work/user" -DCMAKE_PREFIX_PATH="$prefix"
quiet cmake --build "$work/user"
"$work/user/user_shared"
"$work/user/user_static"
objdump -p "$work/user/user_shared" | grep -qE 'NEEDED +libtulle\.so\.0$' || { echo "not shared"; exit 1; }
if objdump -p "$work/user/user_static" | grep -q 'NEEDED.*libtulle'; then echo "not static"; exit 1; fi
