/* SPDX-License-Identifier: MIT
 *
 * ellr.cl - FastSpMM (Ortega, Vazquez, Garcia and Garzon, The Computer Journal 2014): a matrix in ELLPACK-R
 * times a dense one.
 *
 * ELLPACK-R consists of rl[], the lengths of the rows, and E[] and J[], the values and columns of the
 * entries.  Rows are padded to the same length, and their number to N'.  T consecutive threads share a row,
 * and they and the neighbouring teams read contiguous, aligned memory: entry k of row i is stored at T*(j*N'
 * + i) + idp, with j = k/T and idp = k%T (Algorithm 1, line 9).  Padding has column 0 and value 0 but is
 * never read, since the loops end at rl; the paper multiplies the zeros, which gives NaN where X is
 * infinite.
 *
 * A team computes Lc columns of Y at a time; each thread has Lc sums in registers for its entries of the row.
 * The sums are then reduced over the team by recursive halving: in each step a thread sends half of its
 * columns to its partner and receives the other half of the partner's.  That is Lc - 1 exchanges instead of
 * Lc*log2(T), and afterwards the columns of a row are distributed over the team in the order in which they
 * are stored.  Exchanges are shuffles on CUDA, and go through shared memory on OpenCL, as in the paper.
 *
 * A block computes its rows for one tile of Lc columns; consecutive blocks compute the other tiles of the
 * same rows, so that all but one of them find E and J in the cache.  Shared memory: none on CUDA, 8 bytes
 * per thread on OpenCL. */

/* ---- vector loads of 16 bytes, for tiles whose rows are aligned */
#if VAL == 1 || VAL == 3
typedef float4 vec_t;
typedef float2 duo_t;
#define VEC_REALS   4u
#else
typedef double2 vec_t;
typedef double2 duo_t;
#define VEC_REALS   2u
#endif
#if VAL == 1
#define VEC_VALUES  4u
INLINE void vec_split(vec_t v, val_t *x) { x[0] = v.x; x[1] = v.y; x[2] = v.z; x[3] = v.w; }
INLINE void vec_join(vec_t *v, const val_t *x) { v->x = x[0]; v->y = x[1]; v->z = x[2]; v->w = x[3]; }
INLINE void duo_split(duo_t v, val_t *x) { x[0] = v.x; x[1] = v.y; }
#elif VAL == 2
#define VEC_VALUES  2u
INLINE void vec_split(vec_t v, val_t *x) { x[0] = v.x; x[1] = v.y; }
INLINE void vec_join(vec_t *v, const val_t *x) { v->x = x[0]; v->y = x[1]; }
INLINE void duo_split(duo_t v, val_t *x) { x[0] = v.x; x[1] = v.y; }
#elif VAL == 3
#define VEC_VALUES  2u
INLINE void vec_split(vec_t v, val_t *x) { x[0] = val_make(v.x, v.y); x[1] = val_make(v.z, v.w); }
INLINE void vec_join(vec_t *v, const val_t *x)
{
    v->x = x[0].re;
    v->y = x[0].im;
    v->z = x[1].re;
    v->w = x[1].im;
}
INLINE void duo_split(duo_t v, val_t *x) { x[0] = val_make(v.x, v.y); }
#else
#define VEC_VALUES  1u
INLINE void vec_split(vec_t v, val_t *x) { x[0] = val_make(v.x, v.y); }
INLINE void vec_join(vec_t *v, const val_t *x) { v->x = x[0].re; v->y = x[0].im; }
INLINE void duo_split(duo_t v, val_t *x) { x[0] = val_make(v.x, v.y); }
#endif
#define VAL_REALS   (VEC_REALS / VEC_VALUES)

/* Loads lc values from an address aligned to their size, or to 16 bytes if they take more. */
INLINE void load_wide(const u32 lc, GLOBAL const val_t *from, val_t *x)
{
    const u32 reals = lc * VAL_REALS;
    if (reals >= VEC_REALS) {
        UNROLL for (u32 k = 0; k < lc / VEC_VALUES; k++)
            vec_split(((GLOBAL const vec_t *)from)[k], x + k * VEC_VALUES);
    } else if (reals == 2u) {
        duo_split(*(GLOBAL const duo_t *)from, x);
    } else {
        x[0] = from[0];
    }
}

/* Loads the first `here` of lc values, and sets the others to zero. */
INLINE void load_each(const u32 lc, u32 here, GLOBAL const val_t *from, val_t *x)
{
    UNROLL for (u32 c = 0; c < lc; c++) x[c] = c < here ? from[c] : VAL_ZERO;
}

/* ---- ELLPACK-R from CSR
 *
 * The entries of a row form `groups` groups of `team` entries; a team of `team` threads converts SPAN groups
 * of a row.  It reads CSR in the order of the row, and its writes are adjacent to those of the teams of the
 * next rows. */
#define SPAN 64u
KERNEL(ellr_build)(u64 rows, u64 pitch, u32 team, u32 groups, u64 spans, GLOBAL const ptr_t *RESTRICT a_ptr,
                   GLOBAL const idx_t *RESTRICT a_col, GLOBAL const val_t *RESTRICT a_val,
                   GLOBAL u32 *RESTRICT rl, GLOBAL idx_t *RESTRICT J, GLOBAL val_t *RESTRICT E)
{
    const u32 teams = thread_count() / team, idp = thread_id() & (team - 1u);
    for (u64 q = (u64)block_id() * teams + thread_id() / team; q < pitch * spans;
         q += (u64)block_count() * teams) {
        const u64 span = q / pitch, i = q - span * pitch;
        ptr_t begin = 0;
        u32 length = 0;
        if (i < rows) {
            begin = a_ptr[i];
            length = (u32)(a_ptr[i + 1] - begin);
        }
        if (span == 0 && idp == 0u) rl[i] = length;
        const u32 first = (u32)span * SPAN, last = groups - first < SPAN ? groups : first + SPAN;
        for (u32 j = first; j < last; j++) {
            const u64 k = (u64)j * team + idp, index = team * (j * pitch + i) + idp;
            val_t v = VAL_ZERO;
            idx_t col = 0;
            if (k < length) {
                v = a_val[begin + k];
                col = a_col[begin + k];
            }
            E[index] = v;
            J[index] = col;
        }
    }
}

/* ---- the product: Algorithm 1
 *
 *   rows, pitch   N and N'
 *   team_log2     log2(T)
 *   cols, tiles   columns of X and Y; number of tiles of Lc columns
 *   works         tiles times blocks of rows
 *   wide          1: rows of a tile of X are aligned; 2: those of Y, to 16 bytes
 *   x_at, x_ld    offset of X and its leading dimension, in values
 *   factors       alpha and beta, real and imaginary parts */
#define ELLR_ARGS \
    u64 rows, u64 pitch, u32 team_log2, u32 cols, u32 tiles, u64 works, u32 wide, \
        GLOBAL const u32 *RESTRICT rl, GLOBAL const idx_t *RESTRICT J, GLOBAL const val_t *RESTRICT E, \
        GLOBAL const val_t *RESTRICT x, u64 x_at, u64 x_ld, GLOBAL val_t *RESTRICT y, u64 y_at, u64 y_ld, \
        double alpha_re, double alpha_im, double beta_re, double beta_im

#define LC_MOST 32u
#if TULLE_CUDA                          /* unrolling would take too many registers */
#define AS_IT_IS _Pragma("unroll 1")
#else
#define AS_IT_IS
#endif

/* One entry of A, in all columns of the tile. */
INLINE void add_entry(const u32 lc, const bool whole, u32 here, val_t v, GLOBAL const val_t *RESTRICT from,
                      val_t *sv)
{
    val_t b[LC_MOST];
    if (whole) load_wide(lc, from, b);
    else load_each(lc, here, from, b);
    UNROLL for (u32 c = 0; c < lc; c++) sv[c] = VAL_ADD(sv[c], VAL_MUL(v, b[c]));
}

/* The sums of thread idp of a team over its entries of the row.  index: of its first entry; step: distance to
 * the next; ahead: number of entries fetched at once, so that the loads of their rows of X overlap. */
INLINE void add_row(const u32 lc, const u32 ahead, const bool whole, u32 here, u32 length, u32 idp,
                    u32 team_log2, u64 index, u64 step, GLOBAL const idx_t *RESTRICT J,
                    GLOBAL const val_t *RESTRICT E, GLOBAL const val_t *RESTRICT x, u64 x_ld, val_t *sv)
{
    u32 left = length > idp ? ((length - 1u - idp) >> team_log2) + 1u : 0u;
    AS_IT_IS for (; left >= ahead; left -= ahead) {
        idx_t col[4];
        val_t v[4];
        UNROLL for (u32 u = 0; u < ahead; u++) {
            v[u] = E[index];
            col[u] = J[index];
            index += step;
        }
        UNROLL for (u32 u = 0; u < ahead; u++) add_entry(lc, whole, here, v[u], x + (u64)col[u] * x_ld, sv);
    }
    AS_IT_IS for (; ahead > 1u && left > 0u; left--) {
        add_entry(lc, whole, here, E[index], x + (u64)J[index] * x_ld, sv);
        index += step;
    }
}

/* Reduction over the team: each thread ends with lc/T of the lc columns, or T/lc threads with the same one.
 * One step: the partner is at distance d, and `less` columns remain; 0: the single column remains. */
INLINE void add_opposite(const u32 less, u32 d, u32 idp, u32 team, val_t *sv, SHARED u64 *pass)
{
    const u32 stay = less ? less : 1u;
    const bool upper = (idp & d) != 0u;
    UNROLL for (u32 c = 0; c < stay; c++) {
        const val_t mine = upper ? sv[c + less] : sv[c], yours = upper ? sv[c] : sv[c + less];
        val_t other;
        VAL_XOR(other, yours, d, team, pass);
        sv[c] = VAL_ADD(mine, other);
    }
}

INLINE void add_team(const u32 lc, u32 idp, u32 team, val_t *sv, SHARED u64 *pass)
{
#if TULLE_CUDA                          /* register indices must be constants */
    if (team > 1u) add_opposite(lc >> 1, team >> 1, idp, team, sv, pass);
    if (team > 2u) add_opposite(lc >> 2, team >> 2, idp, team, sv, pass);
    if (team > 4u) add_opposite(lc >> 3, team >> 3, idp, team, sv, pass);
    if (team > 8u) add_opposite(lc >> 4, team >> 4, idp, team, sv, pass);
    if (team > 16u) add_opposite(lc >> 5, team >> 5, idp, team, sv, pass);
#else                                   /* PoCL duplicates all code after an if with a barrier */
    u32 less = lc >> 1;
    for (u32 d = team >> 1; d > 0u; d >>= 1) {
        add_opposite(less, d, idp, team, sv, pass);
        less >>= 1;
    }
#endif
}

/* Stores n <= lc sums, except for columns beyond the first `here`, which do not exist. */
INLINE void put(const u32 lc, bool wide, u32 n, u32 here, const val_t *sv, GLOBAL val_t *to, double alpha_re,
                double alpha_im, double beta_re, double beta_im)
{
    const bool reads = beta_re != 0.0 || beta_im != 0.0;
    if (wide && n >= VEC_VALUES && here >= n) {
        UNROLL for (u32 k = 0; k < lc / VEC_VALUES; k++)
            if (k * VEC_VALUES < n) {
                GLOBAL vec_t *const at = (GLOBAL vec_t *)to + k;
                val_t old[VEC_VALUES], now[VEC_VALUES];
                vec_t v;
                UNROLL for (u32 c = 0; c < VEC_VALUES; c++) old[c] = VAL_ZERO;
                if (reads) vec_split(*at, old);
                UNROLL for (u32 c = 0; c < VEC_VALUES; c++)
                    now[c] = spmm_end(alpha_re, alpha_im, beta_re, beta_im, sv[k * VEC_VALUES + c], old[c]);
                vec_join(&v, now);
                *at = v;
            }
    } else {
        UNROLL for (u32 c = 0; c < lc; c++)
            if (c < n && c < here)
                to[c] = spmm_end(alpha_re, alpha_im, beta_re, beta_im, sv[c], reads ? to[c] : VAL_ZERO);
    }
}

INLINE void fast_spmm(const u32 lc, const u32 ahead, ELLR_ARGS, SHARED u64 *pass)
{
    const u32 team = 1u << team_log2, idp = thread_id() & (team - 1u), teams = thread_count() >> team_log2;
    const u32 n = lc > team ? lc >> team_log2 : 1u,
              same = team > lc ? team / lc : 1u; /* threads with the same column */
    const u32 first = (idp * lc) >> team_log2;
    AS_IT_IS for (u64 w = block_id(); w < works; w += block_count()) {
        const u64 group = w >> 32 ? w / tiles : (u32)w / tiles,
                  i = group * teams + (thread_id() >> team_log2);
        const u32 begin = (u32)(w - group * tiles) * lc, here = cols - begin < lc ? cols - begin : lc;
        const u32 length = i < rows ? rl[i] : 0u;
        GLOBAL const val_t *const from = x + x_at + begin;
        val_t sv[LC_MOST];
        UNROLL for (u32 c = 0; c < lc; c++) sv[c] = VAL_ZERO;
        const u64 index = (i << team_log2) + idp, step = pitch << team_log2;
        if ((wide & 1u) && here == lc)
            add_row(lc, ahead, true, here, length, idp, team_log2, index, step, J, E, from, x_ld, sv);
        else
            add_row(lc, 1u, false, here, length, idp, team_log2, index, step, J, E, from, x_ld, sv);
        add_team(lc, idp, team, sv, pass);
        if (i < rows && (idp & (same - 1u)) == 0u && first < here)
            put(lc, (wide & 2u) != 0u, n, here - first, sv, y + y_at + i * y_ld + begin + first, alpha_re,
                alpha_im, beta_re, beta_im);
    }
}

/* Entries fetched at once, and blocks of 256 threads per multiprocessor that the registers should allow, by
 * the size of the sums in bytes: 16, 32, 64, 128, more. */
#define BY_BYTES(lc, a, b, c, d, e) ((lc) <= VEC_VALUES ? (a) : (lc) <= 2u * VEC_VALUES ? (b) \
                                     : (lc) <= 4u * VEC_VALUES ? (c) : (lc) <= 8u * VEC_VALUES ? (d) : (e))
#define AHEAD(lc)   BY_BYTES(lc, 4u, 2u, 2u, 1u, 1u)
#define BLOCKS(lc)  BY_BYTES(lc, 5u, 4u, 3u, 2u, 1u)
#define FAST_SPMM(lc)                                                                                        \
    KERNEL_FOR(BLOCKS(lc##u), ellr_##lc)(ELLR_ARGS)                                                          \
    {                                                                                                        \
        LANE_MEMORY                                                                                          \
        fast_spmm(lc##u, AHEAD(lc##u), rows, pitch, team_log2, cols, tiles, works, wide, rl, J, E, x, x_at,  \
                  x_ld,                                                                                      \
                  y, y_at, y_ld, alpha_re, alpha_im, beta_re, beta_im, pass);                                \
    }

FAST_SPMM(1)
FAST_SPMM(2)
FAST_SPMM(4)
FAST_SPMM(8)
FAST_SPMM(16)
FAST_SPMM(32)
