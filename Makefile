# SPDX-License-Identifier: MIT
#
# A thin front for CMake, which is the real build (CMakeLists.txt).
#
#   make            the libraries and the command, at build/tulle
#   make demo       a first look: one product, checked, timed and drawn; builds the command for this processor alone,
#                   and a later make adds the rest
#   make check      the tests, for every instruction set of this processor, also under ASan, UBSan and TSan
#   make check-more by clang, for 64-bit ARM under qemu-user; every instruction set and devices under ASan and UBSan;
#                   GPU kernels at length, by CUDA's compiler and on oclgrind
#   make bench      the product against SuiteSparse:GraphBLAS and Eigen
#   make figures    the table and the picture of README.md, from docs/records/
#   make bench-python   the Python package against SciPy, MKL, GraphBLAS and PyTorch
#   make wheel      the Python package as one file for every Python, into build/wheel
#   make bench-mpi  products over ranks against PETSc, hypre and CombBLAS (it installs them and Open MPI)
#   make gpu-check  on a machine with a GPU: its tests and measurements, into docs/records/
#   make install    into PREFIX (/usr/local), below DESTDIR where that is set
#   make clean      removes build/
#
# JOBS says how many compilers run at once, CC which; CMAKE_FLAGS goes to CMake as it is.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)

export BUILD JOBS CMAKE_FLAGS
export DESTDIR

all:
	@scripts/build.sh

demo:
	@scripts/install-deps.sh build
	@scripts/build.sh --quick tulle_command
	@scripts/demo.sh

check:
	@scripts/install-deps.sh check
	@scripts/check.sh

check-more:
	@scripts/install-deps.sh check-more
	@scripts/check.sh more

bench:
	@scripts/install-deps.sh check
	@scripts/build.sh all bench
	@bench/run.sh

figures:
	@bench/figures.py

bench-python:
	@scripts/install-deps.sh build
	@scripts/build.sh tulle
	@bench/python/run.sh

wheel:
	@scripts/install-deps.sh build
	@scripts/wheel.sh

bench-mpi:
	@scripts/install-deps.sh bench-mpi
	@scripts/build.sh bench_mpi
	@bench/mpi/run.sh

gpu-check:
	@tests/gpu_check.sh

install:
	@CMAKE_FLAGS="$(CMAKE_FLAGS) -DCMAKE_INSTALL_PREFIX=$(PREFIX)" scripts/build.sh
	@cmake --install $(BUILD)
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ! command -v ldconfig >/dev/null || ldconfig

clean:
	rm -rf $(BUILD)

.PHONY: all demo check check-more bench bench-python bench-mpi wheel figures gpu-check install clean
