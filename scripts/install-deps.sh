#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# install-deps.sh [--look] build|check|check-more|bench-mpi - sees that what a build or the tests need is there.
#
# What is missing is installed with apt where that can be done without a question (root, or sudo without a
# password); else the commands to type are printed and the exit status is 1.  With --look nothing is ever
# installed.  Each need is tried, not looked up in a package list: a compiler from elsewhere is fine.
set -euo pipefail

look=no
if [ "${1:-}" = --look ]; then look=yes; shift; fi
goal=${1:?usage: install-deps.sh [--look] build|check|check-more|bench-mpi}
case $goal in
    build | check | check-more | bench-mpi) ;;
    *) echo "install-deps.sh: $goal is not one of build, check, check-more, bench-mpi" >&2; exit 2 ;;
esac
cc=${CC:-cc}
cxx=${CXX:-c++}

has() { command -v "$1" >/dev/null 2>&1; }
includes() { echo "#include <$2>" | $1 -x "$3" -E - "${@:4}" >/dev/null 2>&1; }

links() { echo 'int main(void) { return 0; }' | $1 -x c - -o /dev/null >/dev/null 2>&1; }

cmake_fits() {
    has cmake || return 1
    local major minor
    IFS=. read -r major minor _ < <(cmake --version | sed -n 's/^cmake version //p')
    [ "$major" -gt 3 ] || { [ "$major" -eq 3 ] && [ "$minor" -ge 22 ]; }
}

has_library() {                 # has_library NAME: does the loader, or a CUDA toolkit, have it?
    /sbin/ldconfig -p 2>/dev/null | grep -F "$1" >/dev/null || ls /usr/local/cuda*/lib64/"$1"* "${CUDA_HOME:-/usr/local/cuda}"/lib64/"$1"* \
        >/dev/null 2>&1
}

has_python() {                  # has_python MODULE...: a Python that the package's tests can run with (tests/python.sh)
    local python
    for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3 "${BUILD:-build}/venv/bin/python"; do
        if "$python" -c "import sys, $(IFS=,; echo "$*"); sys.exit(sys.version_info < (3, 9))" >/dev/null 2>&1; then return 0; fi
    done
    return 1
}
has_petsc() { ls /usr/lib/petscdir/"$1"/*-"$2"/include/petscmat.h >/dev/null 2>&1; }

# missing: packages by their Debian names; wished: what a build alone can do without
find_missing() {
    missing=() wished=()
    cmake_fits || missing+=(cmake)
    has make || has ninja || missing+=(make)
    if ! has "$cc" || ! includes "$cc" stdio.h c; then missing+=(gcc libc6-dev); fi
    # without zlib .gz files are refused
    if ! includes "$cc" zlib.h c; then
        if [ "$look" = yes ]; then wished=(zlib1g-dev); else missing+=(zlib1g-dev); fi
    fi
    if [ "$goal" = check ] || [ "$goal" = check-more ]; then
        has "$cxx" || missing+=(g++)
        has pkg-config || missing+=(pkg-config)
        includes "$cc" GraphBLAS.h c || includes "$cc" suitesparse/GraphBLAS.h c ||
            missing+=(libgraphblas-dev)
        includes "$cxx" eigen3/Eigen/SparseCore c++ || includes "$cxx" Eigen/SparseCore c++ ||
            missing+=(libeigen3-dev)
        has_library libOpenCL.so.1 || missing+=(ocl-icd-libopencl1)
        ls "${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"/pocl*.icd >/dev/null 2>&1 || missing+=(pocl-opencl-icd)
        has groff || missing+=(groff-base)
        has python3 || missing+=(python3)
        has objdump || has llvm-objdump || missing+=(binutils)
        has_python numpy scipy.sparse pytest || missing+=(python3-numpy python3-scipy python3-pytest)
    fi
    if [ "$goal" = check-more ]; then
        has oclgrind || missing+=(oclgrind)
        links clang || missing+=(clang)
        links aarch64-linux-gnu-gcc || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
        has qemu-aarch64 || missing+=(qemu-user)
        has_python venv ensurepip || missing+=(python3-venv)
        if ! has mpicc.openmpi || ! has mpirun.openmpi; then missing+=(libopenmpi-dev openmpi-bin); fi
        has_petsc petsc3.18 real || missing+=(libpetsc-real3.18-dev)
        has_petsc petsc3.18 complex || missing+=(libpetsc-complex3.18-dev)
        has_petsc petsc64-3.18 real || missing+=(libpetsc64-real3.18-dev)
        [ -d /usr/share/petsc/3.18/share/petsc/examples/src ] || missing+=(libpetsc3.18-dev-examples)
        if ! has mpicc.mpich || ! has mpirun.mpich; then missing+=(libmpich-dev mpich); fi
    fi
    if [ "$goal" = bench-mpi ]; then
        has "$cxx" || missing+=(g++)
        has pkg-config || missing+=(pkg-config)
        if ! has mpicc.openmpi || ! has mpirun.openmpi; then missing+=(libopenmpi-dev openmpi-bin); fi
        has_petsc petsc3.18 real || missing+=(libpetsc-real3.18-dev)
        includes "$cc" hypre/HYPRE_config.h c || missing+=(libhypre-dev)
        [ -f /usr/include/CombBLAS/CombBLAS.h ] || missing+=(libcombblas-dev)
    fi
}

# NVRTC is not free software: it is named, never installed.
say_nvrtc() {
    if [ "$goal" != check-more ] || has_library libnvrtc.so; then return; fi
    echo "tulle: NVRTC (libnvrtc.so) is not on this machine, so the test of the CUDA kernels will fail." >&2
    echo "It comes with the CUDA toolkit, with \`pip install nvidia-cuda-nvrtc\`, or in Debian's non-free part:" >&2
    echo "    sudo apt-get install nvidia-cuda-toolkit" >&2
}

apt() { $1 env DEBIAN_FRONTEND=noninteractive apt-get -y -q "${@:2}" >"$log" 2>&1; }

install_missing() {
    local sudo=""
    if [ "$(id -u)" -ne 0 ]; then
        has sudo && sudo -n true 2>/dev/null || return 1
        sudo="sudo -n"
    fi
    has apt-get || return 1
    log=$(mktemp)
    echo "installing ${missing[*]}"
    # Package lists may be missing or old: fetch them only when the first try shows it.
    apt "$sudo" install --no-install-recommends "${missing[@]}" ||
        { apt "$sudo" update && apt "$sudo" install --no-install-recommends "${missing[@]}"; } ||
        { tail -n 5 "$log" >&2; rm -f "$log"; return 1; }
    rm -f "$log"
}

say_nvrtc
find_missing
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$look" = no ] && install_missing; then
    find_missing
    [ ${#missing[@]} -eq 0 ] && exit 0
fi
{
    echo "tulle: this machine lacks: ${missing[*]}"
    echo "On Debian or Ubuntu install it with:"
    echo "    sudo apt-get update && sudo apt-get install ${missing[*]} ${wished[*]:-}"
    case " ${missing[*]} " in *" cmake "*) echo "CMake must be 3.22 or newer." ;; esac
} >&2
exit 1
