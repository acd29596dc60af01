/* SPDX-License-Identifier: MIT
 *
 * kernel_types.h - the types and arithmetic of one build of the kernels, and how they read A and B.
 *
 * The build gives TL_VAL, TL_IDX and TL_ISA; without them this is double, 32 bit, any processor. */
#ifndef TL_KERNEL_TYPES_H
#define TL_KERNEL_TYPES_H
#include "cpu/cpu.h"
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef TL_VAL
#define TL_VAL f64
#endif
#ifndef TL_IDX
#define TL_IDX i32
#endif
#ifndef TL_ISA
#define TL_ISA base
#endif
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define KIND_f32 1
#define KIND_f64 2
#define KIND_c32 3
#define KIND_c64 4
#define KIND JOIN(KIND_, TL_VAL)
#define WIDTH_i32 32
#define WIDTH_i64 64
#define WIDTH JOIN(WIDTH_, TL_IDX)

/* With a sanitizer these functions are not inlined: it makes every copy many times as long, and slow to
 * compile. */
#ifdef TULLE_SANITIZED
#define INLINE static inline
#else
#define INLINE static inline __attribute__((always_inline))
#endif
#define NOINLINE __attribute__((noinline))

/* Before a loop of a constant number of steps, at most 16. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if KIND == 1
typedef float val;
#elif KIND == 2
typedef double val;
#elif KIND == 3
typedef tl_c32 val;
#else
typedef tl_c64 val;
#endif

#if KIND <= 2
INLINE val  zero(void) { return 0; }
INLINE val  add(val x, val y) { return x + y; }
INLINE val  mul(val x, val y) { return x * y; }
INLINE bool is_zero(val x) { return x == 0; }
#else
INLINE val  zero(void) { return (val){0, 0}; }
INLINE val  add(val x, val y) { return (val){x.re + y.re, x.im + y.im}; }
/* Written with a sum of two products instead of the difference x.re*y.re - x.im*y.im, which has the same
 * bits: gcc 12.1 and 12.2 turn the difference and the sum into one fused multiply-add-subtract where the
 * processor has it, in spite of -ffp-contract=off (gcc's bug 107647).  Loops are faster this way, too: x and
 * so its negative are loop-invariant, and only multiplications and additions remain. */
INLINE val  mul(val x, val y) { return (val){x.re * y.re + -x.im * y.im, x.re * y.im + x.im * y.re}; }
INLINE bool is_zero(val x) { return x.re == 0 && x.im == 0; }
#endif

#if WIDTH == 32
typedef int32_t idx;
#else
typedef int64_t idx;
#endif

typedef enum { SYMBOLIC, FUSED, NUMERIC } mode;

/* The row loop is compiled twice: PLAIN assumes 32-bit arrays and no twins, ANY assumes nothing. */
typedef enum { PLAIN, ANY } shape;

/* The output arrays of a piece. */
typedef struct out {
    idx *col;                           /* SYMBOLIC: may be NULL */
    val *val;
} out;

#endif
