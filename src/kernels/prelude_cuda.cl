/* SPDX-License-Identifier: MIT
 * prelude_cuda.cl - the macros of the kernel dialect, for CUDA (NVRTC). */
#define TULLE_CUDA 1
typedef unsigned char      u8;
typedef unsigned short     u16;
typedef unsigned int       u32;
typedef int                i32;
typedef unsigned long long u64;
typedef long long          i64;

#define KERNEL(name) \
    extern "C" __global__ void __launch_bounds__(THREADS_MAX, THREADS_MAX < 1024 ? 1280 / THREADS_MAX : 1) \
        name
/* The same with registers limited so that `blocks` blocks fit on a multiprocessor. */
#define KERNEL_FOR(blocks, name) extern "C" __global__ void __launch_bounds__(THREADS_MAX, blocks) name
#define SHARED_ARG                      /* first in the argument list of a kernel with dynamic shared
                                         * memory */
#define SHARED_MEMORY   extern __shared__ __align__(16) u64 shared_memory[];
#define GLOBAL
#define SHARED                          /* of a pointer                              */
#define STATIC_SHARED   __shared__      /* of an array at kernel scope               */
#define CONSTANT        __constant__ const
#define INLINE          static __device__ __forceinline__
#define RESTRICT        __restrict__
#define ALIGNED(n)      __align__(n)            /* of a struct                               */
#define UNROLL          _Pragma("unroll")
#define ROLLED          _Pragma("unroll 1") /* to save registers                   */
#define GIVEN(p)        ((p) != 0)      /* is an optional argument given?  Its first 32-bit word may
                                                         * not be all ones */

#define thread_id()     ((u32)threadIdx.x)
#define thread_count()  ((u32)blockDim.x)
#define block_id()      ((u32)blockIdx.x)
#define block_count()   ((u32)gridDim.x)
#define BARRIER()       __syncthreads()
#define FENCE()         __threadfence()

/* A team: `size` consecutive threads of one warp, a power of two up to 32. */
INLINE u32 team_mask(u32 size)
{
    return size >= 32 ? 0xffffffffu : ((1u << size) - 1u) << ((threadIdx.x & 31u) & ~(size - 1u));
}
#define TEAM_SYNC(size) __syncwarp(team_mask(size))
#define OWN_SYNC(size)  TEAM_SYNC(size) /* of a team that owns a row                 */
#define TEAM_FIXED      0               /* a block may have several teams             */
/* The same for a team that may also be the whole block. */
#define CREW_SYNC(size) do { if ((size) <= 32u) TEAM_SYNC(size); else __syncthreads(); } while (0)

/* Lanes: threads that can read each other's registers, in teams of `width`, a power of two up to LANES. */
#define LANES                   32u
#define LANE_FROM(x, j, width)  __shfl_sync(team_mask(width), x, (int)(j), (int)(width))
INLINE u32 lanes_vote(bool yes, u32 width)      /* bit j: `yes` of lane j of the team */
{
    const u32 votes = __ballot_sync(team_mask(width), yes), first = threadIdx.x & 31u & ~(width - 1u);
    return width >= 32u ? votes : votes >> first & ((1u << width) - 1u);
}
INLINE u32 lanes_before(u32 vote, u32 width)    /* votes of the lanes before this one */
{
    return (u32)__popc(vote & ((1u << (threadIdx.x & (width - 1u))) - 1u));
}
#define lanes_match(x)          __match_any_sync(0xffffffffu, x)    /* bit j: lane j of the warp has the
                                                                     * same x */

/* Exchange within teams of `width` threads; without lanes, within the work group.  Every thread of the warp
 * must call it. to = x of the thread whose index is this one's xor d (LANE_XOR), less d (LANE_UP; its own x
 * if there is none), or j (LANE_GET). */
#define LANE_MEMORY                             u64 *const pass = 0;
#define LANE_XOR(type, to, x, d, width, pass)   ((to) = __shfl_xor_sync(0xffffffffu, x, (int)(d)))
#define LANE_UP(type, to, x, d, width, pass)    ((to) = __shfl_up_sync(0xffffffffu, x, d, (int)(width)))
#define LANE_GET(type, to, x, j, width, pass)   ((to) = __shfl_sync(0xffffffffu, x, (int)(j), (int)(width)))
/* to: a ballot, bit j for thread j of the warp; without lanes, of the work group, which has at most 32. */
#define LANE_VOTE(to, yes, pass)                ((to) = __ballot_sync(0xffffffffu, yes))

/* *to = *from: an asynchronous copy of 4, 8 or 16 aligned bytes from global to shared memory, not through
 * registers.  It is complete for this thread after COPY_WAIT(), for others after a barrier following that. */
#if __CUDA_ARCH__ >= 800
#define COPY_LATER(to, from)                                                                            \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::                                         \
                 "r"((u32)__cvta_generic_to_shared(to)), "l"(from), "n"(sizeof *(to)) : "memory")
#define COPY_WAIT()             asm volatile("cp.async.wait_all;" ::: "memory")
#else
#define COPY_LATER(to, from)    (*(to) = *(from))
#define COPY_WAIT()
#endif

/* Reductions over all lanes of a warp, or those of a mask. */
INLINE u32 lanes_sum_of(u32 mask, u32 x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(mask, x);
#else
    u32 sum = 0;
    for (u32 d = 0; d < 32u; d++) {
        const u32 y = __shfl_sync(mask, x, d);
        if (mask >> d & 1u) sum += y;
    }
    return sum;
#endif
}
INLINE u32 lanes_max_of(u32 mask, u32 x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(mask, x);
#else
    u32 most = 0;
    for (u32 d = 0; d < 32u; d++) {
        const u32 y = __shfl_sync(mask, x, d);
        if ((mask >> d & 1u) && y > most) most = y;
    }
    return most;
#endif
}
INLINE u32 lanes_max(u32 x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, x);
#else
    for (u32 d = 16; d > 0u; d >>= 1) {
        const u32 y = __shfl_xor_sync(0xffffffffu, x, d);
        if (y > x) x = y;
    }
    return x;
#endif
}
INLINE u64 lanes_sum64(u64 x)
{
    for (u32 d = 16; d > 0u; d >>= 1) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

#define ATOMIC_ADD32(p, v)      atomicAdd((u32 *)(p), (u32)(v))
#define ATOMIC_ADD64(p, v)      atomicAdd((u64 *)(p), (u64)(v))
#define ATOMIC_OR32(p, v)       atomicOr((u32 *)(p), (u32)(v))
#define ATOMIC_MAX32(p, v)      atomicMax((u32 *)(p), (u32)(v))
#define ATOMIC_MAX64(p, v)      atomicMax((u64 *)(p), (u64)(v))
#define ATOMIC_MIN32(p, v)      atomicMin((u32 *)(p), (u32)(v))
#define ATOMIC_MIN64(p, v)      atomicMin((u64 *)(p), (u64)(v))
#define ATOMIC_CAS32(p, a, b)   atomicCAS((u32 *)(p), (u32)(a), (u32)(b))
#define ATOMIC_CAS64(p, a, b)   atomicCAS((u64 *)(p), (u64)(a), (u64)(b))
#define ATOMIC_EXCH32(p, v)     atomicExch((u32 *)(p), (u32)(v))
/* Reads memory that other threads may be writing. */
#define PEEK32(p)               (*(volatile u32 *)(p))
#define PEEK64(p)               (*(volatile u64 *)(p))

#define popcount32(x)   ((u32)__popc(x))
#define clz32(x)        ((u32)__clz((int)(x)))
#define mulhi32(a, b)   __umulhi(a, b)
#define mulhi64(a, b)   __umul64hi(a, b)

#define BITS_F32(x)     __float_as_uint(x)
#define BITS_F64(x)     ((u64)__double_as_longlong(x))
#define FROM_BITS_F32(x) __uint_as_float(x)
#define TENSOR_TF32     (__CUDA_ARCH__ >= 800)  /* tensor cores that take float as TF32 */

#define ATOMIC_ADD_F32(p, v)    atomicAdd((float *)(p), v)
#define ATOMIC_ADD_F64(p, v)    atomicAdd((double *)(p), v)
#define ATOMIC_ADD_GLOBAL_F32(p, v)    atomicAdd((float *)(p), v)
#define ATOMIC_ADD_GLOBAL_F64(p, v)    atomicAdd((double *)(p), v)
