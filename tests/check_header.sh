#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# check_header.sh ROOT - the public headers are self-contained: in C99, C11 and C++17, with every warning an
# error, included twice. tulle.h includes only stddef.h and stdint.h; tulle_lab.h, tulle_cuda.h,
# tulle_opencl.h and tulle_mpi.h include only tulle.h, and their pointers are compatible with the types of
# the CUDA, OpenCL and MPI headers.
set -euo pipefail
root=${1:?usage: check_header.sh ROOT}
cc=${CC:-cc}
cxx=${CXX:-c++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

others=$(grep -nE '^[[:space:]]*#[[:space:]]*include' "$root/include/tulle.h" |
         grep -vE '<(stddef|stdint)\.h>' || true)
[ -z "$others" ] || { echo "tulle.h includes more than stddef.h and stdint.h: $others"; exit 1; }

for header in tulle_lab.h tulle_cuda.h tulle_opencl.h tulle_mpi.h; do
    others=$(grep -nE '^[[:space:]]*#[[:space:]]*include' "$root/include/$header" | grep -v '"tulle\.h"' || true)
    [ -z "$others" ] || { echo "$header includes more than tulle.h: $others"; exit 1; }
done

cat >"$work/alone.c" <<'C'
#include "tulle.h"
#include "tulle.h"
int use(const tulle_ctx *ctx);
int use(const tulle_ctx *ctx)
{
    const tulle_status ok = TULLE_OK;
    return ok == TULLE_OK && tulle_ctx_error(ctx) != NULL;
}
C
cat >"$work/foreign.c" <<'C'
#include "tulle_lab.h"
#include "tulle_cuda.h"
#include "tulle_opencl.h"
#include "tulle_mpi.h"
#include "tulle_lab.h"
#include "tulle_cuda.h"
#include "tulle_opencl.h"
#include "tulle_mpi.h"
typedef struct CUstream_st *CUstream;                   /* as cuda.h has them   */
typedef struct CUctx_st *CUcontext;
typedef struct _cl_command_queue *cl_command_queue;     /* as CL/cl.h has them  */
typedef struct _cl_context *cl_context;
typedef struct _cl_device_id *cl_device_id;
int use(tulle_ctx *ctx, CUstream stream, cl_command_queue queue);
int use(tulle_ctx *ctx, CUstream stream, cl_command_queue queue)
{
    CUcontext cuda = tulle_cuda_context(ctx);
    CUstream cuda_stream = tulle_cuda_stream(ctx);
    cl_context cl = tulle_opencl_context(ctx);
    cl_device_id device = tulle_opencl_device(ctx);
    cl_command_queue cl_queue = tulle_opencl_queue(ctx);
    tulle_dist *dist = 0;
    tulle_dist_free(dist);
    if (!tulle_merge_name(0)) return 2;
    if (cuda || cuda_stream || cl || device || cl_queue) return 1;
    return tulle_cuda_set_stream(ctx, stream) == TULLE_OK && tulle_opencl_set_queue(ctx, queue) == TULLE_OK;
}
C
cp "$work/alone.c" "$work/alone.cpp"
cp "$work/foreign.c" "$work/foreign.cpp"
strict="-Wall -Wextra -Wshadow -pedantic -pedantic-errors -Werror"
for std in c99 c11; do
    for file in alone foreign; do
        $cc -std=$std $strict -Wstrict-prototypes -Wmissing-prototypes -Wundef -I"$root/include" \
            -c "$work/$file.c" -o "$work/$file.o"
    done
    echo "ok $cc -std=$std"
done
for file in alone foreign; do
    $cxx -std=c++17 $strict -I"$root/include" -c "$work/$file.cpp" -o "$work/$file.o"
done
echo "ok $cxx -std=c++17"
for name in alone:tulle_ctx_error foreign:tulle_cuda_set_stream foreign:tulle_opencl_context foreign:tulle_dist_free foreign:tulle_merge_name; do
    nm -u "$work/${name%:*}.o" | grep -qE " ${name#*:}\$" || { echo "${name#*:} is not extern \"C\""; exit 1; }
done
