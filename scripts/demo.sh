#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# demo.sh [TULLE] - a first look: makes a matrix of real size, multiplies it by itself, verifies the product
# and draws both.  `make demo` calls it after building.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
tulle=${1:-$build/tulle}
out=$build/demo
mkdir -p "$out"
trap 'rm -f "$out/A.tulle" "$out/C.tulle"' EXIT

show() {                        # prints a command as one could type it, then runs it
    echo "\$ tulle $*"
    "$tulle" "$@"
    echo
}

echo "cage12 models the motion of a polymer in a gel; its 130,228 rows are a real-size problem."
echo
show gen cage12 -o "$out/A.tulle"
show multiply "$out/A.tulle" --repeat 3 --check -o "$out/C.tulle"
"$tulle" spy "$out/A.tulle" --quiet -o "$out/demo-A.png"
"$tulle" spy "$out/C.tulle" --quiet -o "$out/demo-C.png"

echo "A in a picture:   $out/demo-A.png"
echo "C in a picture:   $out/demo-C.png   (C.tulle itself is large and is removed again)"
echo
echo "Next, see what would be chosen for a power-law graph, and why:"
echo "    $tulle explain rmat:scale=14"
