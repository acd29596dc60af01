/* SPDX-License-Identifier: MIT
 *
 * dense.cl - dense matrices: transpose and scale.
 *
 * A matrix is `lines` lines of `length` values with leading dimension `ld`: rows if it is row-major, columns
 * if it is column-major.  Its start is passed as an offset in values, since a buffer can only be passed from
 * multiples of 512 bytes.
 *
 * turn transposes tiles of 1024 values through shared memory, so that accesses to both matrices are
 * coalesced.  A tile has 2^t lines: more if lines are short (a row-major matrix with eight columns: 128 lines
 * of 8), fewer if there are few lines. */

#define TILE        1024u
#define TILE_LINES  256u                /* of a tile at most; the least is 4                      */
#define TURN_AHEAD  4u                  /* loads in flight per thread   */

/* to[j*to_ld + i] = from[i*from_ld + j] for i < lines, j < length; any number of blocks. */
KERNEL_FOR(4, turn)
(u64 lines, u64 length, u32 lines_log2, GLOBAL const val_t *RESTRICT from, u64 from_at, u64 from_ld,
 GLOBAL val_t *RESTRICT to, u64 to_at, u64 to_ld)
{
    STATIC_SHARED val_t tile[TILE + TILE_LINES];
    const u32 high = 1u << lines_log2, wide_log2 = 10u - lines_log2, wide = 1u << wide_log2;
    const u32 pitch = wide + (high < 32u ? 32u / high : 1u);    /* reduces bank conflicts */
    const u64 across = (length + wide - 1u) >> wide_log2,
              tiles = across * ((lines + high - 1u) >> lines_log2);
    for (u64 k = block_id(); k < tiles; k += block_count()) {
        const u64 line = k / across << lines_log2, at = k % across << wide_log2;
        const u32 rows = lines - line < high ? (u32)(lines - line) : high;
        const u32 cols = length - at < wide ? (u32)(length - at) : wide;
        for (u32 e = thread_id(); e < TILE; e += TURN_AHEAD * thread_count()) {
            val_t v[TURN_AHEAD];
            UNROLL for (u32 q = 0; q < TURN_AHEAD; q++) {
                const u32 i = (e + q * thread_count()) >> wide_log2,
                          j = (e + q * thread_count()) & (wide - 1u);
                if (i < rows && j < cols) v[q] = from[from_at + (line + i) * from_ld + at + j];
                else v[q] = VAL_ZERO;
            }
            UNROLL for (u32 q = 0; q < TURN_AHEAD; q++) {
                const u32 i = (e + q * thread_count()) >> wide_log2,
                          j = (e + q * thread_count()) & (wide - 1u);
                if (i < rows && j < cols) tile[i * pitch + j] = v[q];
            }
        }
        BARRIER();
        for (u32 e = thread_id(); e < TILE; e += thread_count()) {
            const u32 i = e & (high - 1u), j = e >> lines_log2;
            if (i < rows && j < cols) to[to_at + (at + j) * to_ld + line + i] = tile[i * pitch + j];
        }
        BARRIER();
    }
}

/* y = beta*y; if beta is 0, y is not read.  A real factor multiplies both parts of a complex value. */
KERNEL(scale)(u64 lines, u64 length, GLOBAL val_t *RESTRICT y, u64 y_at, u64 y_ld, double re, double im)
{
    const u64 step = (u64)block_count() * thread_count(),
              first = (u64)block_id() * thread_count() + thread_id();
    const u64 down = step / length, right = step % length;
    const bool zero = re == 0.0 && im == 0.0;
    u64 i = first / length, j = first % length;
    while (i < lines) {
        GLOBAL val_t *const at = y + y_at + i * y_ld + j;
        if (zero) *at = VAL_ZERO;
        else {
#if VAL == 1 || VAL == 2
            *at = (real_t)re * *at;
#else
            const val_t v = *at;
            *at = im == 0.0 ? val_make((real_t)re * v.re, (real_t)re * v.im)
                            : val_mul(val_make((real_t)re, (real_t)im), v);
#endif
        }
        i += down;
        j += right;
        if (j >= length) {
            j -= length;
            i++;
        }
    }
}
