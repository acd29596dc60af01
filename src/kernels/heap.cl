/* SPDX-License-Identifier: MIT
 *
 * heap.cl - bhSPARSE's heap method (Liu and Vinter, Figure 1): rows with at most 32 products, a thread per
 * row.
 *
 * All products are put into a heap in shared memory with the largest column on top.  A heapsort removes the
 * top repeatedly and prepends it to the sorted sequence, which grows downwards from the end of the same
 * array; if it has the same column as the head of that sequence, the two are added.  Only words of column
 * and index are moved, the values stay in place.  Of equal columns the earlier product is removed first, so
 * that sums are computed in the order of A.
 *
 * Shared memory: `most` values and words per thread, interleaved, so that neighbouring threads access
 * different banks.  Threads do not synchronize. */

#define PLACES 31u

INLINE void sift(SHARED key_t *heap, u32 step, u32 i, u32 size, key_t x)
{
    for (u32 child = 2u * i + 1u; child < size; child = 2u * i + 1u) {
        key_t y = heap[child * step];
        if (child + 1u < size) {
            const key_t z = heap[(child + 1u) * step];
            if (z > y) {
                y = z;
                child++;
            }
        }
        if (y <= x) break;
        heap[i * step] = y;
        i = child;
    }
    heap[i * step] = x;
}

KERNEL(heap)(SHARED_ARG u32 first, u32 count, u32 most, GLOBAL const u32 *RESTRICT list,
             GLOBAL const ptr_t *RESTRICT a_ptr, GLOBAL const idx_t *RESTRICT a_col,
             GLOBAL const val_t *RESTRICT a_val, GLOBAL const ptr_t *RESTRICT b_ptr,
             GLOBAL const idx_t *RESTRICT b_col, GLOBAL const val_t *RESTRICT b_val,
             GLOBAL const u32 *RESTRICT products, GLOBAL const idx_t *RESTRICT lo,
             GLOBAL const ptr_t *RESTRICT room, GLOBAL idx_t *RESTRICT t_col, GLOBAL val_t *RESTRICT t_val,
             GLOBAL ptr_t *RESTRICT c_count)
{
    SHARED_MEMORY
    const u32 step = thread_count();
    const u64 i = (u64)block_id() * step + thread_id();
    SHARED val_t *sums = (SHARED val_t *)shared_memory + thread_id();
    SHARED key_t *heap = (SHARED key_t *)((SHARED val_t *)shared_memory + most * step) + thread_id();
    if (i >= count) return;
    const u32 r = list[first + i], n = products[r];
    const idx_t low = lo[r];
    const ptr_t end = a_ptr[r + 1];
    u32 fill = 0;
    for (ptr_t p = a_ptr[r]; p < end; p++) {
        const idx_t k = a_col[p];
        const val_t a = a_val[p];
        const ptr_t b_end = b_ptr[k + 1];
        for (ptr_t q = b_ptr[k]; q < b_end; q++, fill++) {
            sums[fill * step] = VAL_ADD(VAL_ZERO, VAL_MUL(a, b_val[q]));
            heap[fill * step] = (key_t)(b_col[q] - low) << 5 | (key_t)(PLACES - fill);
        }
    }
    for (u32 k = n / 2u; k-- > 0u;) sift(heap, step, k, n, heap[k * step]);
    u32 head = n;                               /* the sorted sequence: [head, n) */
    for (u32 size = n; size-- > 0u;) {
        const key_t root = heap[0];
        if (size) sift(heap, step, 0, size, heap[size * step]);
        if (head < n && heap[head * step] >> 5 == root >> 5) {
            SHARED val_t *sum = &sums[(PLACES - (u32)(heap[head * step] & PLACES)) * step];
            *sum = VAL_ADD(*sum, sums[(PLACES - (u32)(root & PLACES)) * step]);
        } else {
            heap[--head * step] = root;
        }
    }
    const ptr_t to = room[r];
    for (u32 k = head; k < n; k++) {
        const key_t word = heap[k * step];
        t_col[to + (k - head)] = low + (idx_t)(word >> 5);
        t_val[to + (k - head)] = sums[(PLACES - (u32)(word & PLACES)) * step];
    }
    c_count[r] = (ptr_t)(n - head);
}
