/* SPDX-License-Identifier: MIT
 *
 * device.h - defines CUDA's kernel language for g++ or clang++; nvrtc.c puts it before every kernel.
 *
 * This file is C++ because NVRTC's language is: kernels use overloads (fma, atomicAdd), and the argument types of
 * a kernel are determined by a template.  No header of the compiler is included, so that the same names are free
 * as in NVRTC.
 *
 * An operation of a warp consists of a struct on each thread's stack and one function that does the work for all
 * threads; they wait in services->meet() (run.c).  Results that CUDA leaves undefined are filled with GARBAGE, so
 * that their use is noticed.  Atomic operations are plain ones, because the threads of a launch are scheduled
 * cooperatively. */
#include "image.h"

extern "C" {
__attribute__((visibility("hidden"))) const cuda_model_services *cuda_model;
__attribute__((visibility("hidden"))) cuda_model_place cuda_model_here;
}
#define threadIdx       cuda_model_here.thread
#define blockIdx        cuda_model_here.block
#define blockDim        cuda_model_here.threads
#define gridDim         cuda_model_here.blocks
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __align__(n)    __attribute__((aligned(n)))
/* __global__, __launch_bounds__, __shared__ and asm are handled by nvrtc.c. */

#define CUDA_MODEL_GARBAGE 0xa5

/* ---- vectors, which are loaded and stored as a whole, and so must be aligned to their size */
#define CUDA_MODEL_VECTOR2(name, type) struct __attribute__((aligned(2 * sizeof(type)))) name { type x, y; };
#define CUDA_MODEL_VECTOR4(name, type) struct __attribute__((aligned(16))) name { type x, y, z, w; };
CUDA_MODEL_VECTOR2(int2, int)
CUDA_MODEL_VECTOR2(uint2, unsigned)
CUDA_MODEL_VECTOR2(float2, float)
CUDA_MODEL_VECTOR2(double2, double)
CUDA_MODEL_VECTOR2(longlong2, long long)
CUDA_MODEL_VECTOR2(ulonglong2, unsigned long long)
CUDA_MODEL_VECTOR4(int4, int)
CUDA_MODEL_VECTOR4(uint4, unsigned)
CUDA_MODEL_VECTOR4(float4, float)

/* ---- numbers */
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
template <class To, class From> static inline To cuda_model_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits of another size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}
static inline unsigned __float_as_uint(float x) { return cuda_model_bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return cuda_model_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return cuda_model_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return cuda_model_bits<double>(x); }
static inline float cuda_model_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double cuda_model_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#define fma cuda_model_fma

/* ---- the block */
static inline void __syncthreads() { cuda_model->barrier(); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}

/* ---- atomic operations */
#define CUDA_MODEL_ATOMIC(name, type, value)                                        \
    static inline type name(type *p, type v)                                        \
    {                                                                               \
        cuda_model->give_way();                                                     \
        const type was = *p;                                                        \
        *p = (value);                                                               \
        return was;                                                                 \
    }
#define CUDA_MODEL_ATOMICS(type)                                                    \
    CUDA_MODEL_ATOMIC(atomicAdd, type, was + v)                                     \
    CUDA_MODEL_ATOMIC(atomicMin, type, v < was ? v : was)                           \
    CUDA_MODEL_ATOMIC(atomicMax, type, v > was ? v : was)                           \
    CUDA_MODEL_ATOMIC(atomicOr, type, was | v)                                      \
    CUDA_MODEL_ATOMIC(atomicAnd, type, was & v)                                     \
    CUDA_MODEL_ATOMIC(atomicExch, type, v)                                          \
    static inline type atomicCAS(type *p, type expected, type v)                    \
    {                                                                               \
        cuda_model->give_way();                                                     \
        const type was = *p;                                                        \
        if (was == expected) *p = v;                                                \
        return was;                                                                 \
    }
CUDA_MODEL_ATOMICS(int)
CUDA_MODEL_ATOMICS(unsigned)
CUDA_MODEL_ATOMICS(unsigned long long)
CUDA_MODEL_ATOMIC(atomicAdd, float, was + v)
CUDA_MODEL_ATOMIC(atomicAdd, double, was + v)

/* ---- the warp */
#define CUDA_MODEL_EACH(j, mask) for (unsigned j = 0; j < 32u; j++) if (mask >> j & 1u)

template <class T> struct cuda_model_shuffle {
    T   give, get;
    int from;                           /* lane */
    static void together(unsigned mask, void *const *operand)
    {
        CUDA_MODEL_EACH(j, mask) {
            cuda_model_shuffle *const me = (cuda_model_shuffle *)operand[j];
            if (mask >> me->from & 1u) me->get = ((const cuda_model_shuffle *)operand[me->from])->give;
            else __builtin_memset((void *)&me->get, CUDA_MODEL_GARBAGE, sizeof me->get);
        }
    }
};
template <class T> static inline T cuda_model_from(const char *name, unsigned mask, T x, int from)
{
    cuda_model_shuffle<T> s = {x, x, from};
    cuda_model->meet(name, cuda_model_shuffle<T>::together, mask, &s);
    return s.get;
}
static inline int cuda_model_lane() { return (int)(threadIdx.x & 31u); }

template <class T> static inline T __shfl_sync(unsigned mask, T x, int j, int width = 32)
{
    return cuda_model_from("__shfl_sync", mask, x, (cuda_model_lane() & ~(width - 1)) | (j & (width - 1)));
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T x, unsigned d, int width = 32)
{
    const int lane = cuda_model_lane(), from = lane - (int)d;
    return cuda_model_from("__shfl_up_sync", mask, x, from >= (lane & ~(width - 1)) ? from : lane);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T x, unsigned d, int width = 32)
{
    const int lane = cuda_model_lane(), from = lane + (int)d;
    return cuda_model_from("__shfl_down_sync", mask, x, from <= (lane | (width - 1)) ? from : lane);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T x, int d, int width = 32)
{
    const int lane = cuda_model_lane(), from = lane ^ d;
    return cuda_model_from("__shfl_xor_sync", mask, x, from <= (lane | (width - 1)) ? from : lane);
}

/* Each thread passes a value; all get the same result, or, for match, their own. */
template <class T> struct cuda_model_vote {
    T        give;
    unsigned get;
    static void ballot(unsigned mask, void *const *operand)
    {
        unsigned votes = 0;
        CUDA_MODEL_EACH(j, mask) votes |= (unsigned)(((cuda_model_vote *)operand[j])->give != 0) << j;
        CUDA_MODEL_EACH(j, mask) ((cuda_model_vote *)operand[j])->get = votes;
    }
    static void match(unsigned mask, void *const *operand)
    {
        CUDA_MODEL_EACH(j, mask) {
            cuda_model_vote *const me = (cuda_model_vote *)operand[j];
            me->get = 0;
            CUDA_MODEL_EACH(k, mask) me->get |= (unsigned)(((cuda_model_vote *)operand[k])->give == me->give) << k;
        }
    }
    static void sum(unsigned mask, void *const *operand)
    {
        unsigned total = 0;
        CUDA_MODEL_EACH(j, mask) total += ((cuda_model_vote *)operand[j])->give;
        CUDA_MODEL_EACH(j, mask) ((cuda_model_vote *)operand[j])->get = total;
    }
    static void most(unsigned mask, void *const *operand)
    {
        unsigned top = 0;
        CUDA_MODEL_EACH(j, mask) if (((cuda_model_vote *)operand[j])->give > top) top = ((cuda_model_vote *)operand[j])->give;
        CUDA_MODEL_EACH(j, mask) ((cuda_model_vote *)operand[j])->get = top;
    }
};
template <class T> static inline unsigned cuda_model_voted(const char *name, cuda_model_together *f, unsigned mask, T x)
{
    cuda_model_vote<T> v = {x, 0};
    cuda_model->meet(name, f, mask, &v);
    return v.get;
}
static inline unsigned __ballot_sync(unsigned mask, int yes)
{
    return cuda_model_voted("__ballot_sync", cuda_model_vote<int>::ballot, mask, yes);
}
static inline int __any_sync(unsigned mask, int yes) { return __ballot_sync(mask, yes) != 0; }
static inline int __all_sync(unsigned mask, int yes) { return __ballot_sync(mask, yes) == mask; }
template <class T> static inline unsigned __match_any_sync(unsigned mask, T x)
{
    return cuda_model_voted("__match_any_sync", cuda_model_vote<T>::match, mask, x);
}
static inline unsigned __reduce_add_sync(unsigned mask, unsigned x)
{
    return cuda_model_voted("__reduce_add_sync", cuda_model_vote<unsigned>::sum, mask, x);
}
static inline unsigned __reduce_max_sync(unsigned mask, unsigned x)
{
    return cuda_model_voted("__reduce_max_sync", cuda_model_vote<unsigned>::most, mask, x);
}
static void cuda_model_nothing(unsigned, void *const *) {}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    cuda_model->meet("__syncwarp", cuda_model_nothing, mask, nullptr);
}

/* ---- PTX: asm("op.x.y ..." : outputs : inputs) becomes cuda_model_ptx_op_x_y(outputs, inputs) */
static inline unsigned __cvta_generic_to_shared(const void *p) { return (unsigned)(unsigned long)p; }

static inline void cuda_model_ptx_cp_async_ca_shared_global(unsigned to, const void *from, unsigned bytes)
{
    cuda_model->copy_later(cuda_model->shared(to), from, bytes);
}
static inline void cuda_model_ptx_cp_async_wait_all() { cuda_model->copy_wait(); }

/* Rounded to 10 bits, ties away from zero. */
static inline void cuda_model_ptx_cvt_rna_tf32_f32(unsigned &to, float x)
{
    const unsigned bits = __float_as_uint(x);
    to = (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}

/* d += a*b: a is 16x8, b 8x8, d 16x8.  With g = lane / 4 and t = lane % 4 a thread holds a(g, t), a(g+8, t), a(g, t+4),
 * a(g+8, t+4); b(t, g), b(t+4, g); d(g, 2t), d(g, 2t+1), d(g+8, 2t), d(g+8, 2t+1).  Tensor cores ignore the lower 13 bits of
 * a and b. */
struct cuda_model_mma {
    float a[4], b[2], d[4];
    static void together(unsigned, void *const *operand)
    {
        float a[16][8], b[8][8];
        for (int lane = 0; lane < 32; lane++) {
            const cuda_model_mma *const m = (const cuda_model_mma *)operand[lane];
            const int g = lane / 4, t = lane % 4;
            for (int i = 0; i < 4; i++) a[g + 8 * (i % 2)][t + 4 * (i / 2)] = m->a[i];
            for (int i = 0; i < 2; i++) b[t + 4 * i][g] = m->b[i];
        }
        for (int lane = 0; lane < 32; lane++) {
            cuda_model_mma *const m = (cuda_model_mma *)operand[lane];
            for (int i = 0; i < 4; i++)
                for (int k = 0; k < 8; k++) m->d[i] += a[lane / 4 + 8 * (i / 2)][k] * b[k][2 * (lane % 4) + i % 2];
        }
    }
};
static inline void cuda_model_ptx_mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(
    float &d0, float &d1, float &d2, float &d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    const unsigned cut = 0xffffe000u;
    cuda_model_mma m = {{__uint_as_float(a0 & cut), __uint_as_float(a1 & cut), __uint_as_float(a2 & cut),
                         __uint_as_float(a3 & cut)}, {__uint_as_float(b0 & cut), __uint_as_float(b1 & cut)}, {d0, d1, d2, d3}};
    cuda_model->meet("mma.sync", cuda_model_mma::together, 0xffffffffu, &m);
    d0 = m.d[0];
    d1 = m.d[1];
    d2 = m.d[2];
    d3 = m.d[3];
}

/* ---- calls a kernel with the arguments of cuLaunchKernel */
template <unsigned... I> struct cuda_model_indices {};
template <unsigned N, unsigned... I> struct cuda_model_count : cuda_model_count<N - 1, N - 1, I...> {};
template <unsigned... I> struct cuda_model_count<0, I...> { typedef cuda_model_indices<I...> type; };
template <class T> struct cuda_model_is_pointer { enum { value = 0 }; };
template <class T> struct cuda_model_is_pointer<T *> { enum { value = 1 }; };
template <class T> struct cuda_model_is_pointer<T *__restrict__> { enum { value = 1 }; };

template <class F, F *kernel> struct cuda_model_entry;
template <class... T, void (*kernel)(T...)> struct cuda_model_entry<void(T...), kernel> {
    template <unsigned... I> static void take(void **arguments, cuda_model_indices<I...>)
    {
        kernel(*(T *)arguments[I]...);
    }
    static void call(void **arguments) { take(arguments, typename cuda_model_count<sizeof...(T)>::type()); }
};
template <class... T> constexpr cuda_model_kernel cuda_model_describe(void (*)(T...), const char *name, void (*call)(void **),
                                                                      unsigned threads, char *shared, char *shared_end)
{
    static_assert(sizeof...(T) <= CUDA_MODEL_ARGS, "too many arguments");
    return {name, call, (int)sizeof...(T), {{(unsigned)sizeof(T), (unsigned)cuda_model_is_pointer<T>::value}...},
            threads, shared, shared_end};
}
