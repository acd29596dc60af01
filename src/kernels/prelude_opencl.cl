/* SPDX-License-Identifier: MIT
 * prelude_opencl.cl - the macros of the kernel dialect, for OpenCL C 1.2. */
#define TULLE_OPENCL 1
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#pragma OPENCL FP_CONTRACT OFF
typedef uchar  u8;
typedef ushort u16;
typedef uint   u32;
typedef int    i32;
typedef ulong  u64;
typedef long   i64;

#define KERNEL(name)    __kernel void name
#define KERNEL_FOR(blocks, name) __kernel void name
#define SHARED_ARG      __local u64 *shared_memory,
#define SHARED_MEMORY
#define GLOBAL          __global
#define SHARED          __local
#define STATIC_SHARED   __local
#define CONSTANT        __constant
#define INLINE \
    static inline __attribute__((always_inline)) /* else PoCL loses addresses of shared variables */
#define RESTRICT                        /* nothing: in inlined functions it becomes an intrinsic that oclgrind
                                         * does not support */
#define ALIGNED(n)      __attribute__((aligned(n)))
#define UNROLL
#define ROLLED
#define GIVEN(p)        ((p)[0] != 0xffffffffu)  /* an argument not given is a buffer of ones, see
                                                         * driver_opencl.c */

#define thread_id()     ((u32)get_local_id(0))
#define thread_count()  ((u32)get_local_size(0))
#define block_id()      ((u32)get_group_id(0))
#define block_count()   ((u32)get_num_groups(0))
#define BARRIER()       barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define FENCE()         mem_fence(CLK_GLOBAL_MEM_FENCE)

/* Without subgroups a team is the whole work group, or one thread, which needs no barrier.  If size > 1,
 * every thread of the group must call it. */
#define TEAM_FIXED      1
#define TEAM_SYNC(size) do { if ((size) > 1u) barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); } while (0)

/* A barrier without a condition: PoCL treats a loop that contains a barrier as uniform, even if the barrier
 * is not executed. */
#define CREW_SYNC(size) BARRIER()
#define OWN_SYNC(size)  BARRIER()               /* of a team that owns a row: the work group */

/* Lanes that can read each other's registers: only the thread itself. */
#define LANES                   1u
#define LANE_FROM(x, j, width)  (x)
#define lanes_vote(yes, width)  ((yes) ? 1u : 0u)
#define lanes_before(vote, width) 0u
#define lanes_match(x)          1u
#define lanes_max(x)            (x)
#define lanes_sum64(x)          (x)

/* Exchange within a team, which is the work group, through shared memory. */
#define LANE_MEMORY             __local u64 pass[THREADS_MAX];
#define LANE_PASS(type, to, x, from, pass)                              \
    do {                                                                \
        ((__local type *)(pass))[thread_id()] = (x);                    \
        BARRIER();                                                      \
        (to) = ((__local type *)(pass))[from];                          \
        BARRIER();                                                      \
    } while (0)
#define LANE_XOR(type, to, x, d, width, pass)   LANE_PASS(type, to, x, thread_id() ^ (d), pass)
#define LANE_UP(type, to, x, d, width, pass) \
    LANE_PASS(type, to, x, thread_id() >= (d) ? thread_id() - (d) : thread_id(), pass)
#define LANE_GET(type, to, x, j, width, pass)   LANE_PASS(type, to, x, j, pass)
#define LANE_VOTE(to, yes, pass)                                                                \
    do {                                                                                        \
        ((__local u32 *)(pass))[thread_id()] = (yes) ? 1u : 0u;                                 \
        BARRIER();                                                                              \
        (to) = 0;                                                                               \
        for (u32 tl_j = 0; tl_j < thread_count(); tl_j++) (to) |= ((__local u32 *)(pass))[tl_j] << tl_j; \
        BARRIER();                                                                              \
    } while (0)
#define COPY_LATER(to, from)    (*(to) = *(from))
#define COPY_WAIT()

#define ATOMIC_ADD32(p, v)      atomic_add((p), (u32)(v))
#define ATOMIC_ADD64(p, v)      atom_add((p), (u64)(v))
#define ATOMIC_OR32(p, v)       atomic_or((p), (u32)(v))
#define ATOMIC_MAX32(p, v)      atomic_max((p), (u32)(v))
#define ATOMIC_MAX64(p, v)      atom_max((p), (u64)(v))
#define ATOMIC_MIN32(p, v)      atomic_min((p), (u32)(v))
#define ATOMIC_MIN64(p, v)      atom_min((p), (u64)(v))
#define ATOMIC_CAS32(p, a, b)   atomic_cmpxchg((p), (u32)(a), (u32)(b))
#define ATOMIC_CAS64(p, a, b)   atom_cmpxchg((p), (u64)(a), (u64)(b))
#define ATOMIC_EXCH32(p, v)     atomic_xchg((p), (u32)(v))
#define PEEK32(p)               atomic_or((p), 0u)
#define PEEK64(p)               atom_cmpxchg((p), (u64)0, (u64)0)

#define popcount32(x)   popcount((u32)(x))
#define clz32(x)        clz((u32)(x))
#define mulhi32(a, b)   mul_hi((u32)(a), (u32)(b))
#define mulhi64(a, b)   mul_hi((u64)(a), (u64)(b))

#define BITS_F32(x)     as_uint(x)
#define BITS_F64(x)     as_ulong(x)
#define FROM_BITS_F32(x) as_float(x)
#define TENSOR_TF32     0

#define TL_ATOMIC_ADD_LOOP(p, v, real, bits, space, cas, as_bits, as_real)      \
    do {                                                                        \
        volatile space bits *at = (volatile space bits *)(p);                   \
        bits seen = cas(at, (bits)0, (bits)0);  /* no comma outside parentheses: */ \
        bits was;                               /* used in macro arguments, too */  \
        do {                                                                    \
            was = seen;                                                         \
            seen = cas(at, was, as_bits(as_real(was) + (real)(v)));             \
        } while (seen != was);                                                  \
    } while (0)
#define ATOMIC_ADD_F32(p, v) \
    TL_ATOMIC_ADD_LOOP(p, v, float, u32, __local, atomic_cmpxchg, as_uint, as_float)
#define ATOMIC_ADD_F64(p, v) \
    TL_ATOMIC_ADD_LOOP(p, v, double, u64, __local, atom_cmpxchg, as_ulong, as_double)
#define ATOMIC_ADD_GLOBAL_F32(p, v) \
    TL_ATOMIC_ADD_LOOP(p, v, float, u32, __global, atomic_cmpxchg, as_uint, as_float)
#define ATOMIC_ADD_GLOBAL_F64(p, v) \
    TL_ATOMIC_ADD_LOOP(p, v, double, u64, __global, atom_cmpxchg, as_ulong, as_double)
