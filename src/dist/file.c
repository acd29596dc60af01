/* SPDX-License-Identifier: MIT
 *
 * file.c - parallel reading and writing of a .tulle file, each rank its part.
 *
 * Reading: every rank reads the header, its row pointers, and then its columns and values.  A checksum of the
 * format is computed from those of blocks of 1 MiB; these blocks are divided evenly among the ranks,
 * independently of the rows in them, and the checksums combined.  Every rank detects damage.
 *
 * Writing: rank 0 creates the temporary file, the others open it by its name and write their rows at their
 * offsets; then checksums are computed from the file, block by block.  Rank 0 writes the header and renames
 * the file; until then, and after any failure, the old file is untouched.  The file must be on a file system
 * that all ranks share.
 *
 * Memory: the rank's rows, a MiB, and 8 bytes per MiB of the file. */
#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64
#include "dist/dist.h"
#include "matrix/binary.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = PATH_MAX / 8 };

static tulle_status cannot_read(tulle_dist *d, const char *path, int error)
{
    char why[128];
    if (error == 0) return tl_fail(d->b, TULLE_EFORMAT, "%s: ends within its arrays", path);
    return tl_fail(d->b, TULLE_EIO, "%s: cannot be read: %s", path, tl_errno_text(error, why, sizeof why));
}

static tulle_status get(tulle_dist *d, const char *path, int fd, void *to, uint64_t bytes, uint64_t at)
{
    for (uint64_t done = 0; done < bytes;) {
        uint64_t ask = bytes - done < (uint64_t)1 << 30 ? bytes - done : (uint64_t)1 << 30;
        ssize_t n = pread(fd, (char *)to + done, ask, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return cannot_read(d, path, n < 0 ? errno : 0);
        done += (uint64_t)n;
    }
    return TULLE_OK;
}

/* ---- checksums of blocks, divided among the ranks */

static int64_t blocks_of(const tl_tulle_head *h, int array)
{
    return (int64_t)((h->array[array].bytes + TL_TULLE_BLOCK - 1) / TL_TULLE_BLOCK);
}

static int64_t all_blocks(const tl_tulle_head *h)
{
    int64_t all = 0;
    for (int i = 0; i < TL_TULLE_ARRAYS; i++) all += blocks_of(h, i);
    return all;
}

static tulle_status sum_share(tulle_dist *d, const char *path, int fd, const tl_tulle_head *h, char *buffer,
                              uint64_t *sum)
{
    tulle_status status = TULLE_OK;
    int64_t all = all_blocks(h), k = 0;
    int64_t first = tl_part(all, d->t.rank, d->t.size), end = tl_part(all, d->t.rank + 1, d->t.size);
    for (int i = 0; i < TL_TULLE_ARRAYS; i++)
        for (int64_t number = 0; number < blocks_of(h, i); number++, k++) {
            if (k < first || k >= end) continue;
            uint64_t from = (uint64_t)number * TL_TULLE_BLOCK, bytes = h->array[i].bytes - from;
            if (bytes > TL_TULLE_BLOCK) bytes = TL_TULLE_BLOCK;
            TRY(get(d, path, fd, buffer, bytes, h->array[i].at + from));
            sum[k] = tl_tulle_block_sum(buffer, bytes, number);
            if (tl_progress(d->b, "read", (double)(k - first) / (double)(end - first)))
                TRY(tl_fail(d->b, TULLE_ECANCEL, "%s: cancelled while it was summed up", path));
        }
done:
    return status;
}

/* Computes the checksum of each array from the file. */
static tulle_status sum_arrays(tulle_dist *d, const char *path, int fd, const tl_tulle_head *h, uint64_t *sum)
{
    tulle_status status = TULLE_OK;
    uint64_t *block = NULL;
    char *buffer = NULL;
    int64_t all = all_blocks(h), at = 0;
    status = tl_calloc(d->b, &block, all + 1, sizeof *block, "checksums");
    if (status == TULLE_OK) status = tl_alloc(d->b, &buffer, TL_TULLE_BLOCK, 1, "a block of a file");
    if (status == TULLE_OK) status = sum_share(d, path, fd, h, buffer, block);
    AGREE(status);
    TRY(tl_allreduce(d, (int64_t *)block, (int)all, TULLE_SUM));
    for (int i = 0; i < TL_TULLE_ARRAYS; i++) {
        sum[i] = tl_tulle_fold(i, h->array[i].bytes, block + at);
        at += blocks_of(h, i);
    }
done:
    tl_free(d->b, block);
    tl_free(d->b, buffer);
    return status;
}

/* ---- reading */

static tulle_status open_file(tulle_dist *d, const char *path, int *fd, tl_tulle_head *h)
{
    tulle_status status = TULLE_OK;
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 || fstat(*fd, &st) != 0) return cannot_read(d, path, errno);
    if (!S_ISREG(st.st_mode)) return tl_fail(d->b, TULLE_EIO, "%s: ranks can share plain files only", path);
    memset(h, 0, sizeof *h);
    if (st.st_size >= 8) TRY(get(d, path, *fd, h, 8, 0));
    if (!tl_binary_begins((const char *)h, st.st_size))
        TRY(tl_fail(d->b, TULLE_EFORMAT, "%s: is no .tulle file; \"tulle convert\" makes one of it", path));
    if (st.st_size < TL_TULLE_HEADER) TRY(tl_fail(d->b, TULLE_EFORMAT, "%s: ends within its header", path));
    TRY(get(d, path, *fd, h, TL_TULLE_HEADER, 0));
    TRY(tl_tulle_check(d->b, path, h, (int64_t)st.st_size));
    if (all_blocks(h) > INT_MAX)
        TRY(tl_fail(d->b, TULLE_EFORMAT, "%s: has %" PRId64 " blocks, more than can be shared", path,
                    all_blocks(h)));
done:
    return status;
}

static tulle_status check_padding(tulle_dist *d, const char *path, int fd, const tl_tulle_head *h)
{
    static const char zeros[TL_TULLE_ALIGN];
    tulle_status status = TULLE_OK;
    char rest[TL_TULLE_ALIGN];
    for (int i = 0; i < TL_TULLE_ARRAYS; i++) {
        uint64_t end = h->array[i].at + h->array[i].bytes;
        uint64_t next = i + 1 < TL_TULLE_ARRAYS ? h->array[i + 1].at : h->file_bytes;
        TRY(get(d, path, fd, rest, next - end, end));
        if (memcmp(rest, zeros, next - end) != 0)
            TRY(tl_fail(d->b, TULLE_EFORMAT, "%s: the padding of its arrays is damaged", path));
    }
done:
    return status;
}

static tulle_status read_rows(tulle_dist *d, const char *path, int fd, const tl_tulle_head *h,
                              const int64_t *starts,
                              tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    int64_t first = starts[d->t.rank], rows = starts[d->t.rank + 1] - first;
    tulle_index ptr_type = (tulle_index)h->ptr_type, idx_type = (tulle_index)h->idx_type;
    tulle_type val_type = h->val_type ? (tulle_type)h->val_type : TULLE_F64;
    size_t ptr = tl_index_size(ptr_type), idx = tl_index_size(idx_type), val = tl_type_size(val_type);
    void *row_ptr = NULL;
    tulle_matrix *A = NULL;
    TRY(check_padding(d, path, fd, h));
    TRY(tl_alloc(d->b, &row_ptr, rows + 1, ptr, "row pointers"));
    TRY(get(d, path, fd, row_ptr, (uint64_t)(rows + 1) * ptr,
            h->array[TL_TULLE_ROW_PTR].at + (uint64_t)first * ptr));
    int64_t begin = tl_get(row_ptr, ptr_type, 0), end = tl_get(row_ptr, ptr_type, rows);
    if (begin < 0 || end < begin || end > h->nnz)
        TRY(tl_fail(d->b, TULLE_EFORMAT, "%s: row pointers from row %" PRId64
                    " on are out of range or out of order", path,
                    first));
    TRY(tl_matrix_create(d->b, rows, h->cols, end - begin, ptr_type, idx_type, (int)val_type, &A));
    for (int64_t i = 0; i <= rows; i++) tl_put(A->row_ptr, ptr_type, i, tl_get(row_ptr, ptr_type, i) - begin);
    TRY(get(d, path, fd, A->col_idx, (uint64_t)(end - begin) * idx,
            h->array[TL_TULLE_COL_IDX].at + (uint64_t)begin * idx));
    if (h->val_type)
        TRY(get(d, path, fd, A->values, (uint64_t)(end - begin) * val,
                h->array[TL_TULLE_VALUES].at + (uint64_t)begin * val));
    else
        for (int64_t k = 0; k < end - begin; k++)
            ((double *)A->values)[k] = 1.0;       /* a pattern gets ones as values */
    status = tl_csr_check(d->b, &A->view, path, 0);
    if (status < 0 && status > TULLE_ENOMEM)
        status = TULLE_EFORMAT;    /* the file's fault, not the caller's */
    if (status != TULLE_OK) goto done;
    *out = A;
    A = NULL;
done:
    tl_free(d->b, row_ptr);
    tl_matrix_free(d->b, A);
    return status;
}

tulle_status tl_dist_read(tulle_dist *d, const char *path, const int64_t *given, tulle_dist_matrix **out)
{
    tulle_status status = TULLE_OK;
    static const char *const names[] = {"row pointers", "column indices", "values"};
    int fd = -1, size = d->t.size;
    tl_tulle_head h;
    uint64_t sum[TL_TULLE_ARRAYS];
    int64_t *starts = NULL, number = 0;
    tulle_matrix *mine = NULL;
    status = open_file(d, path, &fd, &h);
    if (status == TULLE_OK) status = tl_alloc(d->b, &starts, size + 1, sizeof *starts, "row blocks");
    if (status == TULLE_OK && given) status = tl_starts_check(d, given, h.rows, path);
    if (status == TULLE_OK) {
        for (int r = 0; r <= size; r++) starts[r] = given ? given[r] : tl_part(h.rows, r, size);
        number = tl_starts_number(starts, size) ^ (int64_t)(h.sum >> 2);
    }
    TRY(tl_same_everywhere(d, status, &(tl_same){path, "its header or its row blocks", number}, 1));
    TRY(sum_arrays(d, path, fd, &h, sum));
    for (int i = 0; i < TL_TULLE_ARRAYS; i++)
        if (sum[i] != h.array[i].sum)
            TRY(tl_fail(d->b, TULLE_EFORMAT, "%s: its %s are damaged", path, names[i]));
    status = read_rows(d, path, fd, &h, starts, &mine);
    TRY(tl_dist_give(d, status, starts, &mine, out));
done:
    if (fd >= 0) close(fd);
    tl_free(d->b, starts);
    tl_matrix_free(d->b, mine);
    return status;
}

/* ---- writing */

/* Broadcasts the name of rank 0's temporary file. */
static tulle_status tell_name(tulle_dist *d, tulle_status status, const tl_out *o, int64_t *words)
{
    memset(words, 0, WORDS * sizeof *words);
    if (d->t.rank == 0 && status == TULLE_OK) {
        if (strlen(o->temp) >= PATH_MAX) status = tl_out_fail((tl_out *)(uintptr_t)o, ENAMETOOLONG);
        else memcpy(words, o->temp, strlen(o->temp));
    }
    AGREE(status);
    TRY(tl_allreduce(d, words, WORDS, TULLE_SUM));
done:
    return status;
}

/* Writes this rank's rows at their offsets; first: entries of lower ranks. */
static int put_rows(tulle_dist *d, tl_out *o, const tl_tulle_head *h, const tulle_dist_csr *A, int64_t first,
                    char *buffer)
{
    const tulle_csr *l = &A->local;
    tulle_index type = (tulle_index)h->ptr_type;
    int64_t ptr = (int64_t)tl_index_size(type), idx = (int64_t)tl_index_size(l->idx_type);
    int64_t val = (int64_t)tl_type_size(l->val_type), most = TL_TULLE_BLOCK / ptr;
    int64_t begin = A->row_starts[d->t.rank], rows = l->rows + (d->t.rank == d->t.size - 1), error = 0;
    for (int64_t i = 0; i < rows && !error; i += most) {        /* the last rank writes row_ptr[rows], too */
        int64_t n = rows - i < most ? rows - i : most;
        for (int64_t k = 0; k < n; k++) tl_put(buffer, type, k, first + tl_row_begin(l, i + k));
        error = tl_out_put(o, buffer, n * ptr, (int64_t)h->array[TL_TULLE_ROW_PTR].at + (begin + i) * ptr);
    }
    if (!error)
        error = tl_out_put(o, l->col_idx, l->nnz * idx, (int64_t)h->array[TL_TULLE_COL_IDX].at + first * idx);
    if (!error && h->val_type)
        error = tl_out_put(o, l->values, l->nnz * val, (int64_t)h->array[TL_TULLE_VALUES].at + first * val);
    return (int)error;
}

static tulle_status write_rows(tulle_dist *d, tl_out *o, const tl_tulle_head *h, const tulle_dist_csr *A,
                               int64_t first)
{
    tulle_status status = TULLE_OK;
    char *buffer = NULL;
    if (d->t.rank > 0) {
        o->fd = open(o->temp, O_WRONLY | O_CLOEXEC);
        if (o->fd < 0) TRY(tl_out_fail(o, errno));
    }
    TRY(tl_alloc(d->b, &buffer, TL_TULLE_BLOCK, 1, "a block of a file"));
    int error = put_rows(d, o, h, A, first, buffer);
    if (!error && d->t.rank == 0) error = ftruncate(o->fd, (off_t)h->file_bytes) == 0 ? 0 : errno;
    if (!error && d->t.rank > 0) error = fsync(o->fd) == 0 || errno == EINVAL ? 0 : errno;
    if (error) TRY(tl_out_fail(o, error));
    if (tl_progress(d->b, "write", 0.5))
        TRY(tl_fail(d->b, TULLE_ECANCEL, "%s: writing was cancelled", o->path));
done:
    tl_free(d->b, buffer);
    return status;
}

/* The header for the whole matrix, and the number of entries on lower ranks. */
static tulle_status head_of_all(tulle_dist *d, const char *path, const tulle_dist_csr *A, tl_tulle_head *h,
                                int64_t *first)
{
    tulle_status status = TULLE_OK;
    int size = d->t.size;
    tulle_csr all = A->local;
    int64_t *count = NULL;
    /* Whether there are values, and whether row pointers have 64 bits, on all ranks. */
    int64_t both[2] = {A->local.values || A->local.nnz == 0, A->local.ptr_type == TULLE_I64};
    AGREE(tl_alloc(d->b, &count, 2 * (int64_t)size, sizeof *count, "counts of entries"));
    for (int r = 0; r < size; r++) count[r] = A->local.nnz;
    TRY(tl_alltoall(d, count, count + size));
    TRY(tl_allreduce(d, both, 2, TULLE_MIN));
    all.rows = tl_dist_rows(d, A);
    all.nnz = 0;
    for (int r = 0; r < size; r++) {
        if (r == d->t.rank) *first = all.nnz;
        all.nnz += count[size + r];
    }
    all.ptr_type = both[1] ? TULLE_I64 : tl_index_for(all.nnz);
    all.values = both[0] ? (const void *)A : NULL;      /* only compared with NULL */
    AGREE(tl_tulle_begin(d->b, path, &all, h));
done:
    tl_free(d->b, count);
    return status;
}

static tulle_status finish(tulle_dist *d, tl_out *o, tl_tulle_head *h)
{
    if (d->t.rank > 0) return TULLE_OK;
    tl_tulle_seal(h);
    int error = tl_out_put(o, h, TL_TULLE_HEADER, 0);
    return error ? tl_out_fail(o, error) : tl_out_rename(o);
}

tulle_status tl_dist_write(tulle_dist *d, const char *path, const tulle_dist_csr *A)
{
    tulle_status status = TULLE_OK;
    tl_out o = {.b = d->b, .path = path, .fd = -1};
    tl_tulle_head h;
    int64_t first = 0, words[WORDS + 1] = {0};
    uint64_t sum[TL_TULLE_ARRAYS];
    int back = -1;
    if (!tl_name_ends(path, ".tulle"))
        status = tl_fail(d->b, TULLE_EFORMAT, "%s: ranks write .tulle files together, no others", path);
    AGREE(status);
    TRY(head_of_all(d, path, A, &h, &first));
    if (d->t.rank == 0) status = tl_out_open(d->b, path, &o);
    TRY(tell_name(d, status, &o, words));
    char *name = o.temp;
    if (d->t.rank > 0) o.temp = (char *)words;
    status = write_rows(d, &o, &h, A, first);
    if (status == TULLE_OK) {
        back = open(o.temp, O_RDONLY | O_CLOEXEC);
        if (back < 0) status = cannot_read(d, path, errno);
    }
    o.temp = name;
    AGREE(status);
    TRY(sum_arrays(d, path, back, &h, sum));
    for (int i = 0; i < TL_TULLE_ARRAYS; i++) h.array[i].sum = sum[i];
    AGREE(finish(d, &o, &h));
done:
    if (back >= 0) close(back);
    tl_out_close(&o);
    return status;
}
