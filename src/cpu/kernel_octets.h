/* SPDX-License-Identifier: MIT
 *
 * kernel_octets.h - rows of a stencil, eight entries of C at a time (four doubles with AVX2).
 *
 * In a run of rows that repeat each other, shifted by one column, the products are at the same positions
 * (kernel_stencil.h).  So the work for one row is recorded as a list of steps, which is executed for all of
 * them: a step multiplies eight consecutive entries of a row of B by the entry of A, permutes the products
 * that belong to one octet of the row of C to their lanes, and adds them there.  Lanes without a product are
 * not changed, and the steps of an octet are in the order of A: the bits are the same as with the other
 * accumulators.  An octet is finished before the next begins, so that its sums stay in a register: in memory,
 * each addition would depend on the store of the one before.
 *
 * The next run mostly has the same steps, as lines of a grid do, but begins elsewhere in B: so a step refers
 * to B by the number of a stretch of the current row.
 *
 * For real values where the processor has AVX2 or AVX-512.  Memory: 64 bytes per step, and 2 per product and
 * 24 per entry of A of the row whose steps are stored. */
#ifndef TL_KERNEL_OCTETS_H
#define TL_KERNEL_OCTETS_H
#include "cpu/kernel_lanes.h"

typedef struct octet_step {
    int32_t  stretch, from;             /* the row of B, and the first of eight entries     */
    int32_t  octet;                     /* of the row of C                                  */
    uint32_t lanes;                     /* its lanes that get a product, as bits            */
    uint8_t  source[8];                 /* for each lane the product that goes there ...    */
    int8_t   some[8];                   /* ... if this is not 0                             */
} octet_step;

_Static_assert(sizeof(octet_step) == TL_OCTET_BYTES, "scratch.c gives a step its room");

#if HAVE_MASKS
#define HAVE_OCTETS 1
enum { OCTET = 8, PARTS = 1 };          /* entries; parts of an entry that are permuted separately */
typedef eight octet;
INLINE octet octet_zero(void) { return eight_of(0); }
INLINE void  octet_put(val *to, octet x) { eight_put(to, x); }
typedef struct octet_move { eight_index from; __mmask8 some; } octet_move;
INLINE octet_move octet_move_of(const octet_step *step)
{
    return (octet_move){eight_index_at(step->source), (__mmask8)step->lanes};
}
INLINE octet octet_added(octet_move m, octet sum, val a, const val *b)
{
    return eight_plus(m.some, sum, eight_permuted(eight_times(eight_of(a), eight_at(b)), m.from));
}
INLINE void octet_store(val *to, octet x, int64_t count) { eight_store(to, count, x); }
INLINE void octet_columns(idx *to, const idx *from, idx more, int64_t count)
{
    write_eight_columns(to, count < OCTET, count, from, more);
}

#elif defined(__AVX2__) && KIND <= 2
#define HAVE_OCTETS 1
/* The permutation moves parts of 32 bits, of which a double has two. */
enum { OCTET = 32 / (int)sizeof(val), PARTS = (int)sizeof(val) / 4 };
typedef struct octet_move { __m256i from, some; } octet_move;
INLINE octet_move octet_move_of(const octet_step *step)
{
    const void *from = step->source, *some = step->some;
    return (octet_move){_mm256_cvtepi8_epi32(_mm_loadl_epi64(from)),
                        _mm256_cvtepi8_epi32(_mm_loadl_epi64(some))};
}
#if KIND == 2
typedef __m256d octet;
INLINE octet octet_zero(void) { return _mm256_setzero_pd(); }
INLINE void  octet_put(val *to, octet x) { _mm256_storeu_pd(to, x); }
INLINE octet octet_added(octet_move m, octet sum, val a, const val *b)
{
    const __m256 products = _mm256_castpd_ps(_mm256_mul_pd(_mm256_set1_pd(a), _mm256_loadu_pd(b)));
    const __m256d moved = _mm256_castps_pd(_mm256_permutevar8x32_ps(products, m.from));
    return _mm256_blendv_pd(sum, _mm256_add_pd(sum, moved), _mm256_castsi256_pd(m.some));
}
#else
typedef __m256 octet;
INLINE octet octet_zero(void) { return _mm256_setzero_ps(); }
INLINE void  octet_put(val *to, octet x) { _mm256_storeu_ps(to, x); }
INLINE octet octet_added(octet_move m, octet sum, val a, const val *b)
{
    const __m256 products = _mm256_mul_ps(_mm256_set1_ps(a), _mm256_loadu_ps(b));
    const __m256 moved = _mm256_permutevar8x32_ps(products, m.from);
    return _mm256_blendv_ps(sum, _mm256_add_ps(sum, moved), _mm256_castsi256_ps(m.some));
}
#endif
INLINE void octet_store(val *to, octet x, int64_t count)
{
    val all[OCTET];
    octet_put(all, x);
    for (int64_t i = 0; i < count; i++) to[i] = all[i];
}
INLINE void octet_columns(idx *to, const idx *from, idx more, int64_t count)
{
    if (count < OCTET) for (int64_t i = 0; i < count; i++) to[i] = from[i] + more;
    else for (int64_t i = 0; i < OCTET; i++) to[i] = from[i] + more;
}
#else
#define HAVE_OCTETS 0
#endif

#if HAVE_OCTETS
enum {
    OCTET_ROW = 256,                    /* entries of C at most */
    OCTETS = OCTET_ROW / OCTET,
    OCTET_RUN = 8,                      /* rows at least        */
    OCTET_ROWS = 4,                     /* at once              */
    OCTET_WORTH = 16                    /* ten steps must have this many products: measured, with AVX2 */
};

_Static_assert((int)OCTETS <= (int)TL_OCTETS, "cpu.h gives the ends of all octets their room");

/* Whether the stored steps are those of this row of n entries, whose places are known. */
static bool octets_kept(const tl_scratch *s, const row *r, int64_t n)
{
    const tl_octets *list = s->octets;
    if (list->n != n || list->count != r->count || list->products != r->products) return false;
    for (int64_t i = 0; i < r->count; i++)
        if (s->octet_stretch[i].length != s->stretch[i].length
            || s->octet_stretch[i].first != s->stretch[i].first)
            return false;
    return !memcmp(s->octet_place, s->place, (size_t)r->products * sizeof *s->place);
}

/* Computes the steps of a row, in the order of its products, from their places; 0: there are too many. */
static int64_t octet_steps(const tl_scratch *s, const row *r, octet_step *restrict step)
{
    const uint16_t *place = s->place;
    int64_t n = 0;
    for (int64_t j = 0; j < r->count; place += s->stretch[j].length, j++) {
        for (int64_t k = 0; k < s->stretch[j].length; k++) {
            const int64_t begin = k - k % OCTET, lane = place[k] % OCTET;
            const int32_t at = place[k] / OCTET;
            if (k == begin || at != step[n - 1].octet) {
                if (n == s->octet_steps) return 0;
                step[n++] = (octet_step){.stretch = (int32_t)j, .from = (int32_t)begin, .octet = at};
            }
            step[n - 1].lanes |= 1u << lane;
            for (int p = 0; p < PARTS; p++) {
                step[n - 1].source[lane * PARTS + p] = (uint8_t)((k - begin) * PARTS + p);
                step[n - 1].some[lane * PARTS + p] = -1;
            }
        }
    }
    return n;
}

/* Sorts steps by octet; a stable counting sort. */
static void octets_order(tl_octets *list, const octet_step *restrict from, octet_step *restrict to)
{
    int32_t at[OCTETS], sum = 0;
    for (int64_t i = 0; i < list->steps; i++) list->end[from[i].octet]++;
    for (int i = 0; i < OCTETS; i++) {
        at[i] = sum;
        sum += list->end[i];
        list->end[i] = sum;
    }
    for (int64_t i = 0; i < list->steps; i++) to[at[from[i].octet]++] = from[i];
}

/* Computes the steps of a row of n entries unless they are stored already; false: there are too many of them,
 * or too many for the number of products to pay. */
static bool octets_make(const tl_scratch *s, const row *r, int64_t n)
{
    tl_octets *list = s->octets;
    octet_step *step = s->octet_step, *unordered = step + s->octet_steps;
    if (n > OCTET_ROW || r->products > s->octet_products || r->count > s->octet_steps) return false;
    if (octets_kept(s, r, n)) return list->steps > 0;
    *list = (tl_octets){.n = n, .count = r->count, .products = r->products,
                        .steps = octet_steps(s, r, unordered)};
    if (list->steps * OCTET_WORTH > r->products * 10) list->steps = 0;
    octets_order(list, unordered, step);
    memcpy(s->octet_stretch, s->stretch, (size_t)r->count * sizeof *s->stretch);
    memcpy(s->octet_place, s->place, (size_t)r->products * sizeof *s->place);
    return list->steps > 0;
}

/* For how many rows of a run the steps can be executed: they read whole octets, and B may end before. */
static int64_t octet_rows(const tl_scratch *s, const row *r, int64_t rows, int64_t b_nnz)
{
    for (int64_t j = 0; j < r->count; j++) {
        const tl_stretch *t = &s->stretch[j];
        const int64_t end = t->begin + (t->length + OCTET - 1) / OCTET * OCTET; /* of the first row */
        if (end + (rows - 1) * t->length <= b_nnz) continue;
        rows = end <= b_nnz ? (b_nnz - end) / t->length + 1 : 0;
    }
    return rows;
}

/* Computes the rows i, i+1 ... of a run, `rows` of them with n entries each: values from the entries of A, of
 * which each row has a_length, and columns from those of the first row; o.col NULL: only the values.  A step
 * is loaded once for all these rows. */
INLINE void octet_sums(const int rows, const tl_scratch *s, int64_t i, int64_t n, const val *restrict a,
                       int64_t a_length, const val *restrict b, const idx *col, out o)
{
    const tl_octets *list = s->octets;
    const octet_step *restrict t = s->octet_step, *const first = t;
    const tl_stretch *restrict stretch = s->stretch;
    for (int64_t g = 0; g * OCTET < n; g++) {
        const octet_step *const end = first + list->end[g];
        const int64_t at = g * OCTET, left = n - at;
        octet sum[OCTET_ROWS];
        for (int r = 0; r < rows; r++) sum[r] = octet_zero();
        for (; t < end; t++) {
            const octet_move m = octet_move_of(t);
            const tl_stretch *of = &stretch[t->stretch];
            const int64_t length = of->length;
            const val *from = b + of->begin + t->from + i * length, *w = a + of->first;
            for (int r = 0; r < rows; r++)
                sum[r] = octet_added(m, sum[r], w[r * a_length], from + r * length);
        }
        for (int r = 0; r < rows; r++) {
            if (left >= OCTET) octet_put(o.val + r * n + at, sum[r]);
            else octet_store(o.val + r * n + at, sum[r], left);
        }
        for (int r = 0; r < rows && o.col; r++)
            octet_columns(o.col + r * n + at, col + at, (idx)(i + r), left);
    }
}

/* Computes all rows of a run except the first, whose columns are col. */
static void octet_run(const tl_scratch *s, int64_t rows, int64_t n, const val *a, int64_t a_length,
                      const val *b, const idx *col, out o)
{
    int64_t i = 1;
    for (; i < rows; i += i + OCTET_ROWS <= rows ? OCTET_ROWS : 1) {
        const out to = {o.col ? o.col + i * n : NULL, o.val + i * n};
        if (i + OCTET_ROWS <= rows) octet_sums(OCTET_ROWS, s, i, n, a + i * a_length, a_length, b, col, to);
        else octet_sums(1, s, i, n, a + i * a_length, a_length, b, col, to);
    }
}
#endif

#endif
