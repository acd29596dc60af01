/* SPDX-License-Identifier: MIT
 *
 * common.cl - types and small functions, included in every kernel file.
 *
 *   PTR   32 or 64   width of row pointers of A, B and C          ptr_t
 *   IDX   32 or 64   width of column indices                      idx_t (unsigned: none is negative)
 *   KEY   32 or 64   width of a key in a hash table               key_t
 *   VAL   0..4       none, f32, f64, c32, c64                     val_t
 *   THREADS_MAX      the largest block size any kernel of the file is launched with
 *
 * Multiplication and addition are never fused, so that results equal those of the CPU bit for bit. */
#if PTR == 64
typedef u64 ptr_t;
#else
typedef u32 ptr_t;
#endif
#if IDX == 64
typedef u64 idx_t;
#define IDX_NONE        0xffffffffffffffffUL
#define IDX_PEEK(p)     PEEK64(p)
#define IDX_MIN(p, v)   ATOMIC_MIN64(p, v)
#else
typedef u32 idx_t;
#define IDX_NONE        0xffffffffu
#define IDX_PEEK(p)     PEEK32(p)
#define IDX_MIN(p, v)   ATOMIC_MIN32(p, v)
#endif

#define NOTHING32 0xffffffffu

/* ---- keys of hash tables: a column, or a row of the block and a column (5 + 27, 5 + 59 bits) */
#if KEY == 64
typedef u64 key_t;
#define KEY_NONE        0xffffffffffffffffUL
#define KEY_ROW_SHIFT   59
#define KEY_CAS(p, a, b) ATOMIC_CAS64(p, a, b)
#define KEY_PEEK(p)     PEEK64(p)
#define KEY_HASH(k)     ((u32)(((k) * 0x9e3779b97f4a7c15UL) >> 32))
#else
typedef u32 key_t;
#define KEY_NONE        0xffffffffu
#define KEY_ROW_SHIFT   27
#define KEY_CAS(p, a, b) ATOMIC_CAS32(p, a, b)
#define KEY_PEEK(p)     PEEK32(p)
#define KEY_HASH(k)     ((k) * 0x9e3779b1u)
#endif
/* The first slot of a key in a table of `slots` slots, which need not be a power of two. */
#define KEY_SLOT(k, slots) mulhi32(KEY_HASH(k), slots)

/* The slot of a key, found by linear probing.  If the key is new it is inserted, and *fresh becomes true. */
INLINE u32 key_claim(SHARED key_t *keys, u32 slots, key_t key, bool *fresh)
{
    u32 s = KEY_SLOT(key, slots);
    *fresh = false;
    for (;;) {
        key_t k = KEY_PEEK(&keys[s]);
        while (k != key && k != KEY_NONE) {
            s = s + 1u < slots ? s + 1u : 0u;
            k = KEY_PEEK(&keys[s]);
        }
        if (k == key) return s;
        k = KEY_CAS(&keys[s], KEY_NONE, key);
        *fresh = k == KEY_NONE;
        if (k == KEY_NONE || k == key) return s;
    }
}

INLINE u32 key_insert(SHARED key_t *keys, u32 slots, key_t key)     /* 1 if the key is new */
{
    bool fresh;
    key_claim(keys, slots, key, &fresh);
    return fresh ? 1u : 0u;
}

/* ---- values */
#if VAL == 1 || VAL == 3
typedef float real_t;
#define REAL_ADD_SHARED(p, v) ATOMIC_ADD_F32(p, v)
#elif VAL == 2 || VAL == 4
typedef double real_t;
#define REAL_ADD_SHARED(p, v) ATOMIC_ADD_F64(p, v)
#endif

#if VAL == 1 || VAL == 2
typedef real_t val_t;
#define VAL_ZERO        ((val_t)0)
#define VAL_MUL(a, b)   ((a) * (b))
#define VAL_ADD(a, b)   ((a) + (b))
#define VAL_ATOMIC_ADD(p, v)        REAL_ADD_SHARED(p, v)
#define VAL_FROM(v, j, width)       LANE_FROM(v, j, width)
#elif VAL == 3 || VAL == 4
typedef struct { real_t re, im; } val_t;
INLINE val_t val_make(real_t re, real_t im)
{
    val_t v;
    v.re = re;
    v.im = im;
    return v;
}
INLINE val_t val_mul(val_t a, val_t b)
{
    return val_make(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
INLINE val_t val_add(val_t a, val_t b) { return val_make(a.re + b.re, a.im + b.im); }
#define VAL_ZERO        val_make((real_t)0, (real_t)0)
#define VAL_MUL(a, b)   val_mul(a, b)
#define VAL_ADD(a, b)   val_add(a, b)
#define VAL_FROM(v, j, width)       val_make(LANE_FROM((v).re, j, width), LANE_FROM((v).im, j, width))
#define VAL_ATOMIC_ADD(p, v) \
    do { \
        REAL_ADD_SHARED(&(p)->re, (v).re); \
        REAL_ADD_SHARED(&(p)->im, (v).im); \
    } while (0)
#endif

#if VAL
/* a*b + c, fused (rounded once) if the device supports it. */
#if TULLE_CUDA || (VAL % 2 == 1 && defined(FP_FAST_FMAF)) || (VAL % 2 == 0 && defined(FP_FAST_FMA))
#define REAL_FMA(a, b, c)   fma(a, b, c)
#else
#define REAL_FMA(a, b, c)   ((c) + (a) * (b))
#endif
#if VAL == 1 || VAL == 2
#define VAL_FMA(a, b, c)    REAL_FMA(a, b, c)
#else
INLINE val_t val_fma(val_t a, val_t b, val_t c)
{
    return val_make(REAL_FMA(-a.im, b.im, REAL_FMA(a.re, b.re, c.re)),
                    REAL_FMA(a.im, b.re, REAL_FMA(a.re, b.im, c.im)));
}
#define VAL_FMA(a, b, c)    val_fma(a, b, c)
#endif
/* alpha*sum + beta*was.  If beta is 0, `was` is ignored; a real factor multiplies both parts of a complex
 * value. */
INLINE val_t val_scale(double re, double im, val_t v)
{
#if VAL == 1 || VAL == 2
    return (real_t)re * v;
#else
    return im == 0.0 ? val_make((real_t)re * v.re, (real_t)re * v.im)
                     : val_mul(val_make((real_t)re, (real_t)im), v);
#endif
}
INLINE val_t spmm_end(double alpha_re, double alpha_im, double beta_re, double beta_im, val_t sum, val_t was)
{
    const val_t s = val_scale(alpha_re, alpha_im, sum);
    return beta_re == 0.0 && beta_im == 0.0 ? s : VAL_ADD(s, val_scale(beta_re, beta_im, was));
}
#endif

/* A 64-bit sum in two 32-bit words: 32-bit atomics on shared memory are native, 64-bit ones are a loop. */
#define ADD_SPLIT(low, high, x)                                                         \
    do {                                                                                \
        const u64 tl_x = (x);                                                           \
        const u32 tl_was = ATOMIC_ADD32(low, (u32)tl_x);                                \
        const u32 tl_carry = (u32)(tl_x >> 32) + ((u32)(tl_was + (u32)tl_x) < tl_was);  \
        if (tl_carry) ATOMIC_ADD32(high, tl_carry);                                     \
    } while (0)

/* ---- powers of two */
INLINE u32 log2_floor(u32 x) { return x <= 1u ? 0u : 31u - clz32(x); }
INLINE u32 log2_ceil(u32 x) { return x <= 1u ? 0u : 32u - clz32(x - 1u); }
