#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh FOLDER CACHE COMMAND... - runs a program with the CUDA model (model.h) in place of NVIDIA's libraries.
#
#   FOLDER    where libcuda_model.so and libcuda_model_nvrtc.so are: build/tests
#   CACHE     a folder for compiled kernels; each version of the model and of the compiler has its own folder in it, because
#             the keys of tulle's cache do not cover device.h
#
# Tests use the device cuda:0, and those of test_gpu_*.c as few cases as with PoCL, unless TULLE_TEST_DEVICE, TULLE_TEST_FEW
# or CUDA_MODEL_* are set.
set -euo pipefail
folder=${1:?usage: run.sh FOLDER CACHE COMMAND...} cache=${2:?a folder for compiled kernels} here=$(cd "$(dirname "$0")" && pwd)
shift 2

compiler=${CUDA_MODEL_CXX:-${CXX:-c++}}
state=$({ cat "$here"/*.[ch]; "$compiler" --version; uname -m; } | sha256sum | cut -c 1-16)
export TULLE_CACHE=$cache/cuda-model-$state
mkdir -p "$TULLE_CACHE"
chmod 700 "$TULLE_CACHE"                # tulle ignores a cache that others can write to
export TULLE_LIBCUDA=$folder/libcuda_model.so TULLE_LIBNVRTC=$folder/libcuda_model_nvrtc.so TULLE_IMAGES=off
export TULLE_TEST_DEVICE=${TULLE_TEST_DEVICE:-cuda:0} TULLE_TEST_FEW=${TULLE_TEST_FEW:-1} CUDA_MODEL_CXX=$compiler
exec "$@"
