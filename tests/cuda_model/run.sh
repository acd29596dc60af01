#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# run.sh FOLDER CACHE COMMAND... - runs a program with the CUDA model (model.h) in place of NVIDIA's libraries.
#
#   FOLDER    where libcuda_model.so and libcuda_model_nvrtc.so are: build/tests
#   CACHE     a folder for compiled kernels; below it each state of the model and of the compiler has its own, since
#             tulle's cache does not know of device.h
#
# Tests take the device cuda:0, and those of test_gpu_*.c as few cases as on PoCL; TULLE_TEST_DEVICE and CUDA_MODEL_* may say
# otherwise.
set -euo pipefail
folder=${1:?usage: run.sh FOLDER CACHE COMMAND...} cache=${2:?a folder for compiled kernels} here=$(cd "$(dirname "$0")" && pwd)
shift 2

compiler=${CUDA_MODEL_CXX:-${CXX:-c++}}
state=$({ cat "$here"/*.[ch]; "$compiler" --version; uname -m; } | sha256sum | cut -c 1-16)
export TULLE_CACHE=$cache/cuda-model-$state
mkdir -p "$TULLE_CACHE"
chmod 700 "$TULLE_CACHE"                # what others can write is not used
export TULLE_LIBCUDA=$folder/libcuda_model.so TULLE_LIBNVRTC=$folder/libcuda_model_nvrtc.so TULLE_IMAGES=off
export TULLE_TEST_DEVICE=${TULLE_TEST_DEVICE:-cuda:0} TULLE_TEST_FEW=${TULLE_TEST_FEW:-1} CUDA_MODEL_CXX=$compiler
exec "$@"
