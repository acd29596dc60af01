/* SPDX-License-Identifier: MIT
 *
 * binary.c - .tulle files: the three arrays of a matrix as they are in memory, after a header with checksums.
 *
 * Reading copies the arrays, block by block, and then verifies the checksums (hash.c) and the pattern of the
 * copy, with all threads; the file may change afterwards.  On request the file is mapped instead and the
 * matrix points into the mapping.  The mapping is private: writing new values into the matrix does not change
 * the file, but writing to the file changes the matrix.  docs/formats.md has the layout byte by byte.
 *
 * The checksum of an array is computed from those of its blocks of 1 MiB, so that threads share the work and
 * the result does not depend on their number.  The zeros that pad an array to 64 bytes are included, so every
 * byte of the file is covered.
 * Memory: 8 bytes per MiB of the file. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "matrix/binary.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEADER = TL_TULLE_HEADER, ALIGN = TL_TULLE_ALIGN, BLOCK = TL_TULLE_BLOCK };
enum { ROW_PTR = TL_TULLE_ROW_PTR, COL_IDX = TL_TULLE_COL_IDX, VALUES = TL_TULLE_VALUES };
enum { ARRAYS = TL_TULLE_ARRAYS };

static const char magic[8] = {'T', 'U', 'L', 'L', 'E', '\r', '\n', 0x1a};
static const uint32_t order = 0x01020304;
static const char *const array_names[ARRAYS] = {"row pointers", "column indices", "values"};

typedef tl_tulle_head header;

bool tl_binary_begins(const char *head, int64_t bytes)
{
    return bytes >= 8 && memcmp(head, magic, 8) == 0;
}

uint64_t tl_tulle_padded(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t header_sum(const header *h)
{
    header copy = *h;
    copy.sum = 0;
    return tl_hash(&copy, HEADER, 0);
}

bool tl_tulle_lay_out(header *h)
{
    uint64_t most = (uint64_t)1 << 56;
    uint64_t size[ARRAYS] = {tl_index_size((tulle_index)h->ptr_type),
                             tl_index_size((tulle_index)h->idx_type),
                             h->val_type ? tl_type_size((tulle_type)h->val_type) : 0};
    uint64_t at = HEADER;
    if (h->rows < 0 || h->cols < 0 || h->nnz < 0 || (uint64_t)h->rows > most || (uint64_t)h->nnz > most)
        return false;
    for (int i = 0; i < ARRAYS; i++) {
        h->array[i].at = at;
        h->array[i].bytes = size[i] * (uint64_t)(i == ROW_PTR ? h->rows + 1 : h->nnz);
        at += tl_tulle_padded(h->array[i].bytes);
    }
    h->file_bytes = at;
    return true;
}

/* ---- checksums of the arrays, block by block */

typedef struct sums {
    tl_base    *b;
    char       *data[ARRAYS];
    uint64_t    bytes[ARRAYS];
    int64_t     first[ARRAYS + 1];      /* block of each array */
    uint64_t   *block;
    const char *stage;
    int         fd;                     /* >= 0: each block is read from there first ...  */
    uint64_t    at[ARRAYS];             /* ... where its array lies                       */
    atomic_int  error;                  /* errno, or -1: the file ends too early          */
} sums;

/* Reads a block into its place in memory; 0, errno, or -1 at the end of the file. */
static int load_block(const sums *u, int array, int64_t number)
{
    uint64_t from = (uint64_t)number * BLOCK, bytes = u->bytes[array] - from;
    if (bytes > BLOCK) bytes = BLOCK;
    char *to = u->data[array] + from;
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = pread(u->fd, to + done, bytes - done, (off_t)(u->at[array] + from + done));
        if (n < 0 && errno != EINTR) return errno;
        if (n == 0) return -1;
        if (n > 0) done += (uint64_t)n;
    }
    return 0;
}

uint64_t tl_tulle_block_sum(const char *data, uint64_t bytes, int64_t number)
{
    uint64_t whole = bytes / ALIGN * ALIGN, rest = bytes - whole;
    uint64_t sum = whole > 0 ? tl_hash(data, (int64_t)whole, (uint64_t)number) : 0;
    if (rest > 0) {                     /* the array in memory has no padding */
        char last[ALIGN] = {0};
        memcpy(last, data + whole, rest);
        sum ^= tl_hash(last, ALIGN, ~(uint64_t)number);
    }
    return sum;
}

uint64_t tl_tulle_fold(int array, uint64_t bytes, const uint64_t *block)
{
    uint64_t words[8] = {bytes, (uint64_t)array}, sum = tl_hash(words, ALIGN, 0);
    for (uint64_t k = 0; k < (bytes + BLOCK - 1) / BLOCK; k++) {
        words[0] = sum;
        words[1] = block[k];
        sum = tl_hash(words, ALIGN, 1);
    }
    return sum;
}

static uint64_t block_sum(const sums *u, int array, int64_t number)
{
    uint64_t from = (uint64_t)number * BLOCK, bytes = u->bytes[array] - from;
    return tl_tulle_block_sum(u->data[array] + from, bytes < BLOCK ? bytes : BLOCK, number);
}

static void sum_blocks(void *arg, int thread, int threads)
{
    sums *u = arg;
    int64_t all = u->first[ARRAYS];
    for (int64_t k = thread; k < all; k += threads) {
        if (thread == 0 && k % 16 == 0) tl_progress(u->b, u->stage, (double)k / (double)all);
        if (atomic_load_explicit(&u->b->cancelled, memory_order_relaxed)) return;
        int array = k < u->first[1] ? 0 : k < u->first[2] ? 1 : 2;
        int error = u->fd >= 0 ? load_block(u, array, k - u->first[array]) : 0;
        if (error) atomic_store(&u->error, error);
        if (atomic_load_explicit(&u->error, memory_order_relaxed)) return;
        u->block[k] = block_sum(u, array, k - u->first[array]);
    }
}

static tulle_status sum_arrays(sums *u, uint64_t *sum)
{
    tulle_status status = TULLE_OK;
    tl_base *b = u->b;
    for (int i = 0; i < ARRAYS; i++)
        u->first[i + 1] = u->first[i] + (int64_t)((u->bytes[i] + BLOCK - 1) / BLOCK);
    TRY(tl_alloc(b, &u->block, u->first[ARRAYS] + 8, sizeof *u->block, "checksums"));
    tl_team_run(b->team, 0, sum_blocks, u);
    if (atomic_load(&b->cancelled)) {
        status = tl_fail(b, TULLE_ECANCEL, "cancelled while a .tulle file was summed up");
        goto done;
    }
    for (int i = 0; i < ARRAYS; i++) sum[i] = tl_tulle_fold(i, u->bytes[i], u->block + u->first[i]);
done:
    tl_free(b, u->block);
    return status;
}

/* ---- reading */

static bool little_endian(void)
{
    const uint32_t one = 1;
    return *(const unsigned char *)&one == 1;
}

tulle_status tl_tulle_check(tl_base *b, const char *path, const header *h, int64_t file_bytes)
{
    header fresh = *h;
    if (h->order != order || !little_endian())
        return tl_fail(b, TULLE_EFORMAT, "%s: has another byte order than this machine", path);
    if (h->sum != header_sum(h)) return tl_fail(b, TULLE_EFORMAT, "%s: its header is damaged", path);
    if (h->version != TL_TULLE_VERSION)
        return tl_fail(b, TULLE_EFORMAT, "%s: has version %" PRIu32 " of the format; this tulle reads"
                       " version %d", path, h->version, (int)TL_TULLE_VERSION);
    if ((h->val_type && !tl_type_known((int)h->val_type)) || !tl_index_known((int)h->ptr_type)
        || !tl_index_known((int)h->idx_type))
        return tl_fail(b, TULLE_EFORMAT, "%s: has types this tulle does not know", path);
    if (!tl_tulle_lay_out(&fresh) || memcmp(&fresh, h, sizeof fresh) != 0)
        return tl_fail(b, TULLE_EFORMAT, "%s: its sizes contradict each other", path);
    if (file_bytes >= 0 && (uint64_t)file_bytes != h->file_bytes)
        return tl_fail(b, TULLE_EFORMAT, "%s: has %" PRId64 " bytes and should have %" PRIu64, path,
                       file_bytes, h->file_bytes);
    return TULLE_OK;
}

static tulle_status ends_early(tl_source *s)
{
    return tl_fail(s->b, TULLE_EFORMAT, "%s: ends within its arrays", s->path);
}

static tulle_status check_padding(tl_source *s, const header *h, int array, const char *zeros)
{
    for (uint64_t k = h->array[array].bytes; k < tl_tulle_padded(h->array[array].bytes); k++)
        if (*zeros++)
            return tl_fail(s->b, TULLE_EFORMAT, "%s: the padding of its %s is damaged", s->path,
                           array_names[array]);
    return TULLE_OK;
}

/* Verifies the checksums of the arrays at u->data, after loading them from u->fd where that is set. */
static tulle_status check_sums(tl_source *s, const header *h, sums *u)
{
    tulle_status status = TULLE_OK;
    char why[128];
    uint64_t sum[ARRAYS];
    TRY(sum_arrays(u, sum));
    int error = atomic_load(&u->error);
    if (error < 0) TRY(ends_early(s));
    if (error > 0)
        TRY(tl_fail(s->b, TULLE_EIO, "%s: cannot be read: %s", s->path,
                    tl_errno_text(error, why, sizeof why)));
    for (int i = 0; i < ARRAYS; i++)
        if (sum[i] != h->array[i].sum)
            TRY(tl_fail(s->b, TULLE_EFORMAT, "%s: its %s are damaged", s->path, array_names[i]));
done:
    return status;
}

/* ---- mapped */

static void unmap(void *mapping, size_t bytes)
{
    munmap(mapping, bytes);
}

static tulle_status map_arrays(tl_source *s, const header *h, tulle_matrix *A)
{
    tulle_status status = TULLE_OK;
    char why[128];
    sums u = {.b = s->b, .stage = "read", .fd = -1};
    void *file = mmap(NULL, (size_t)h->file_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, s->fd, 0);
    if (file == MAP_FAILED)
        TRY(tl_fail(s->b, TULLE_EIO, "%s: cannot be mapped: %s", s->path,
                    tl_errno_text(errno, why, sizeof why)));
    A->mapping = file;
    A->mapping_bytes = (size_t)h->file_bytes;
    A->unmap = unmap;
    for (int i = 0; i < ARRAYS; i++) {
        u.data[i] = (char *)file + h->array[i].at;
        u.bytes[i] = h->array[i].bytes;
        TRY(check_padding(s, h, i, u.data[i] + u.bytes[i]));
    }
    TRY(check_sums(s, h, &u));
    A->view.row_ptr = u.data[ROW_PTR];
    A->view.col_idx = u.data[COL_IDX];
    A->view.values = u.data[VALUES];
done:
    return status;
}

/* ---- copied */

/* A pipe cannot be read at offsets: the arrays are read one after the other, and nothing may follow them. */
static tulle_status stream_arrays(tl_source *s, const header *h, sums *u)
{
    tulle_status status = TULLE_OK;
    char zeros[ALIGN];
    int64_t got = 0;
    for (int i = 0; i < ARRAYS; i++) {
        int64_t bytes = (int64_t)u->bytes[i], rest = (int64_t)tl_tulle_padded(u->bytes[i]) - bytes;
        TRY(tl_source_read(s, u->data[i], bytes, &got));
        if (got < bytes) TRY(ends_early(s));
        TRY(tl_source_read(s, zeros, rest, &got));
        if (got < rest) TRY(ends_early(s));
        TRY(check_padding(s, h, i, zeros));
    }
    TRY(tl_source_read(s, zeros, 1, &got));
    if (got > 0)
        TRY(tl_fail(s->b, TULLE_EFORMAT, "%s: goes on behind its %" PRIu64 " bytes", s->path, h->file_bytes));
done:
    return status;
}

static tulle_status copy_arrays(tl_source *s, const header *h, tulle_matrix *A)
{
    tulle_status status = TULLE_OK;
    tl_base *b = s->b;
    bool plain = s->file_bytes >= 0;
    sums u = {.b = b, .stage = "read", .fd = plain ? s->fd : -1};
    void **const own[ARRAYS] = {&A->row_ptr, &A->col_idx, &A->values};
    for (int i = 0; i < ARRAYS; i++) {
        uint64_t rest = tl_tulle_padded(h->array[i].bytes) - h->array[i].bytes;
        char zeros[ALIGN];
        u.at[i] = h->array[i].at;
        u.bytes[i] = h->array[i].bytes;
        if (i != VALUES || h->val_type)
            TRY(tl_alloc_lasting(b, own[i], (int64_t)u.bytes[i], 1, array_names[i]));
        u.data[i] = *own[i];
        if (!plain || rest == 0) continue;
        if (pread(s->fd, zeros, rest, (off_t)(u.at[i] + u.bytes[i])) != (ssize_t)rest) TRY(ends_early(s));
        TRY(check_padding(s, h, i, zeros));
    }
    if (!plain) TRY(stream_arrays(s, h, &u));
    TRY(check_sums(s, h, &u));
    A->view.row_ptr = A->row_ptr;
    A->view.col_idx = A->col_idx;
    A->view.values = A->values;
done:
    return status;
}

/* A pattern gets ones as values, like a pattern from a .mtx file. */
static tulle_status put_ones(tl_base *b, tulle_matrix *A)
{
    tulle_status status = TULLE_OK;
    double *ones = NULL;
    TRY(tl_alloc(b, &ones, A->view.nnz, sizeof *ones, "values of a matrix"));
    for (int64_t k = 0; k < A->view.nnz; k++) ones[k] = 1.0;
    A->values = ones;
    A->view.values = ones;
    A->view.val_type = TULLE_F64;
done:
    return status;
}

tulle_status tl_binary_read(tl_source *s, bool map, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = s->b;
    tulle_matrix *A = NULL;
    header h;
    int64_t got = 0;
    *out = NULL;
    if (s->gz)
        TRY(tl_fail(b, TULLE_EFORMAT, "%s: is a .tulle file packed with gzip; unpack it first", s->path));
    TRY(tl_source_read(s, (char *)&h, HEADER, &got));
    if (got < HEADER) TRY(tl_fail(b, TULLE_EFORMAT, "%s: ends within its header", s->path));
    TRY(tl_tulle_check(b, s->path, &h, s->file_bytes));
    TRY(tl_calloc(b, &A, 1, sizeof *A, "a matrix"));
    A->view = (tulle_csr){.rows = h.rows, .cols = h.cols, .nnz = h.nnz, .ptr_type = (tulle_index)h.ptr_type,
                          .idx_type = (tulle_index)h.idx_type, .val_type = (tulle_type)h.val_type};
    TRY(map && s->file_bytes >= 0 ? map_arrays(s, &h, A) : copy_arrays(s, &h, A));
    if (h.val_type == 0) TRY(put_ones(b, A));
    status = tl_csr_check(b, &A->view, s->path, 0);
    if (status < 0 && status > TULLE_ENOMEM) status = TULLE_EFORMAT; /* the file's fault, not the caller's */
    if (status != TULLE_OK) goto done;
    *out = A;
    A = NULL;
done:
    tl_matrix_free(b, A);
    return status;
}

/* ---- writing */

typedef struct put {
    tl_base      *b;
    tl_out       *out;
    const header *h;
    const void   *data[ARRAYS];
    atomic_int    error;
} put;

/* Each thread writes its part of the blocks of every array. */
static void put_blocks(void *arg, int thread, int threads)
{
    put *u = arg;
    for (int i = 0; i < ARRAYS; i++) {
        uint64_t bytes = u->h->array[i].bytes;
        int64_t blocks = (int64_t)((bytes + BLOCK - 1) / BLOCK);
        for (int64_t k = thread; k < blocks; k += threads) {
            if (thread == 0) tl_progress(u->b, "write", (double)k / (double)blocks);
            if (atomic_load(&u->b->cancelled) || atomic_load(&u->error)) return;
            uint64_t from = (uint64_t)k * BLOCK, n = bytes - from < BLOCK ? bytes - from : BLOCK;
            int error = tl_out_put(u->out, (const char *)u->data[i] + from, (int64_t)n,
                                   (int64_t)(u->h->array[i].at + from));
            if (error) atomic_store(&u->error, error);
        }
    }
}

tulle_status tl_tulle_begin(tl_base *b, const char *path, const tulle_csr *A, header *h)
{
    *h = (header){.version = TL_TULLE_VERSION, .order = order,
                  .rows = A->rows, .cols = A->cols, .nnz = A->nnz,
                  .val_type = (uint32_t)tl_value_type(A), .ptr_type = (uint32_t)A->ptr_type,
                  .idx_type = (uint32_t)A->idx_type};
    memcpy(h->magic, magic, sizeof magic);
    if (!little_endian())
        return tl_fail(b, TULLE_EFORMAT, "%s: .tulle files are little-endian, this machine is not", path);
    if (!tl_tulle_lay_out(h)) return tl_fail(b, TULLE_EINVAL, "%s: the matrix is too large for a file", path);
    return TULLE_OK;
}

void tl_tulle_seal(header *h)
{
    h->sum = header_sum(h);
}

int tl_tulle_put_padding(tl_out *out, const header *h)
{
    static const char zeros[ALIGN];
    int error = 0;
    for (int i = 0; i < ARRAYS && !error; i++) {
        uint64_t bytes = h->array[i].bytes;
        error = tl_out_put(out, zeros, (int64_t)(tl_tulle_padded(bytes) - bytes),
                           (int64_t)(h->array[i].at + bytes));
    }
    return error;
}

tulle_status tl_binary_write(tl_base *b, const char *path, const tulle_csr *A)
{
    tulle_status status = TULLE_OK;
    tl_out out = {.b = b, .fd = -1};
    header h;
    sums u = {.b = b, .stage = "write", .fd = -1};
    put p = {.b = b, .out = &out, .h = &h, .data = {A->row_ptr, A->col_idx, A->values}};
    uint64_t sum[ARRAYS];
    TRY(tl_tulle_begin(b, path, A, &h));
    for (int i = 0; i < ARRAYS; i++) {
        u.data[i] = (char *)(uintptr_t)p.data[i];       /* only read: fd says so */
        u.bytes[i] = h.array[i].bytes;
    }
    TRY(sum_arrays(&u, sum));
    for (int i = 0; i < ARRAYS; i++) h.array[i].sum = sum[i];
    tl_tulle_seal(&h);
    TRY(tl_out_open(b, path, &out));
    tl_team_run(b->team, 0, put_blocks, &p);
    int error = atomic_load(&p.error);
    if (!error) error = tl_tulle_put_padding(&out, &h);
    if (!error) error = tl_out_put(&out, &h, HEADER, 0);
    if (error) TRY(tl_out_fail(&out, error));
    if (atomic_load(&b->cancelled)) TRY(tl_fail(b, TULLE_ECANCEL, "%s: writing was cancelled", path));
    TRY(tl_out_rename(&out));
done:
    tl_out_close(&out);
    return status;
}
