#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh [OPTIONS] - what `make bench-python` runs: compares the package with SciPy, MKL (sparse_dot_mkl),
# SuiteSparse:GraphBLAS and PyTorch, which are installed from PyPI into build/bench-python; then measures a
# tiny product and the import.  Options are passed to bench.py.
# The last line is `python_vs_scipy=X vs_best=Y min=Z matrices=N`.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${BUILD:-build}
threads=${THREADS:-2}
venv=$build/bench-python
packages=(numpy scipy torch sparse-dot-mkl mkl suitesparse-graphblas)
if ! "$venv/bin/python" -c 'import torch, scipy, suitesparse_graphblas' 2>/dev/null; then
    echo "installing ${packages[*]} into $venv (some gigabytes)"
    "${PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${packages[@]}"
fi
export TULLE_LIBRARY=$PWD/$build/libtulle.so PYTHONPATH=$PWD/python PYTHONWARNINGS=ignore
[ -e "$TULLE_LIBRARY" ] || TULLE_LIBRARY=$build/libtulle.so
export OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads
MKL_RT=$(find "$PWD/$venv/lib" -maxdepth 1 -name 'libmkl_rt.so*' | head -n 1)
export MKL_RT LD_LIBRARY_PATH=$PWD/$venv/lib
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
echo "machine: $(nproc) cores, $processor, load $(cut -d' ' -f1 /proc/loadavg)"
${CC:-cc} -O2 -Iinclude bench/python/tiny.c -o "$build/bench-python/tiny" -L"$build" -ltulle \
    -Wl,-rpath,"$PWD/$build"
exec "$venv/bin/python" bench/python/bench.py --threads "$threads" --tiny "$build/bench-python/tiny" "$@"
