# SPDX-License-Identifier: MIT
#
# A thin front for CMake, which is the real build (CMakeLists.txt).
#
#   make            the libraries and the command, at build/tulle
#   make demo       a first look: one product, checked, timed and drawn
#   make check      the tests, for every instruction set of this processor, also under ASan, UBSan and TSan
#   make check-more by clang, for 64-bit ARM under qemu-user; every instruction set and devices under ASan and UBSan;
#                   GPU kernels at length, by CUDA's compiler and on oclgrind
#   make bench      the product against SuiteSparse:GraphBLAS and Eigen
#   make bench-mpi  products over ranks against PETSc and hypre (needs both, and Open MPI)
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
	@scripts/build.sh
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

bench-mpi:
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

.PHONY: all demo check check-more bench bench-mpi gpu-check install clean
