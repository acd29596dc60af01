/* SPDX-License-Identifier: MIT
 *
 * mtx_write.c - writes a matrix to a Matrix Market file, with all threads.
 *
 * Always in coordinate format, rows in order, a pattern where there are no values; general, or the triangle
 * that mtx_symmetric.c passes.  Numbers are the shortest decimals that read back as the same number.  A
 * thread takes the next piece of entries, prints (and packs) it, waits until the lengths of all earlier
 * pieces are known, and writes its text at its offset while other threads go on: the file is the same for any
 * number of threads.
 *
 * Memory: the text of a piece per thread, packed and unpacked; 1 to 3 MiB. */
#define _POSIX_C_SOURCE 200809L
#include "matrix/files.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 1 << 14, HEAD_MAX = 256 };

typedef struct scratch {
    char      *text, *packed;
    tl_packer *packer;
} scratch;

typedef struct job {
    tl_base         *b;
    const tulle_csr *A;
    int64_t          first;                     /* row number of row 0 of A in the file */
    const char      *head;                      /* text before the first piece        */
    tl_out          *out;
    bool             gz;
    int64_t          pieces, handed, turn, at;  /* at: bytes of the file so far */
    int64_t          packed_room;
    pthread_mutex_t  lock;
    pthread_cond_t   moved;
    int              error;
    bool             stop, cancelled;
    scratch         *scratch;
} job;

int tl_mtx_print_head(char *to, size_t room, int val_type, const char *symmetry, int64_t rows, int64_t cols)
{
    const char *field = !val_type ? "pattern" : tl_type_complex((tulle_type)val_type) ? "complex" : "real";
    return snprintf(to, room, "%%%%MatrixMarket matrix coordinate %s %s\n%% written by tulle %s\n"
                    "%" PRId64 " %" PRId64 " ", field, symmetry, TULLE_VERSION, rows, cols);
}

static char *print_value(const tulle_csr *A, int64_t k, char *p)
{
    switch (A->val_type) {
    case TULLE_F32: p += tl_print_float(p, ((const float *)A->values)[k]); break;
    case TULLE_F64: p += tl_print_double(p, ((const double *)A->values)[k]); break;
    case TULLE_CF32:
        p += tl_print_float(p, ((const tl_c32 *)A->values)[k].re);
        *p++ = ' ';
        p += tl_print_float(p, ((const tl_c32 *)A->values)[k].im);
        break;
    case TULLE_CF64:
        p += tl_print_double(p, ((const tl_c64 *)A->values)[k].re);
        *p++ = ' ';
        p += tl_print_double(p, ((const tl_c64 *)A->values)[k].im);
        break;
    }
    return p;
}

/* The row that holds entry k. */
static int64_t row_of(const tulle_csr *A, int64_t k)
{
    int64_t low = 0, high = A->rows;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (tl_row_begin(A, middle) <= k) low = middle;
        else high = middle;
    }
    return low;
}

static int64_t print_piece(const job *j, int64_t number, char *text)
{
    const tulle_csr *A = j->A;
    int64_t from = number * PIECE, to = A->nnz - from < PIECE ? A->nnz : from + PIECE;
    char *p = text, row[TL_NUMBER_MAX];
    if (number == 0) {
        size_t n = strlen(j->head);
        memcpy(p, j->head, n);
        p += n;
    }
    int64_t i = from < to ? row_of(A, from) : 0, end = from;
    int length = 0;
    for (int64_t k = from; k < to; k++) {
        if (k == from || k == end) {
            while (tl_row_begin(A, i + 1) <= k) i++;
            end = tl_row_begin(A, i + 1);
            length = tl_print_index(row, j->first + i + 1);
            row[length++] = ' ';
        }
        memcpy(p, row, (size_t)length);
        p += length;
        p += tl_print_index(p, tl_get(A->col_idx, A->idx_type, k) + 1);
        if (A->values) {
            *p++ = ' ';
            p = print_value(A, k, p);
        }
        *p++ = '\n';
    }
    return p - text;
}

static void work(void *arg, int thread, int threads)
{
    job *j = arg;
    scratch *mine = &j->scratch[thread];
    (void)threads;
    for (;;) {
        pthread_mutex_lock(&j->lock);
        bool stop = j->stop || j->handed == j->pieces;
        int64_t number = stop ? 0 : j->handed++;
        pthread_mutex_unlock(&j->lock);
        if (stop) return;
        if (thread == 0) tl_progress(j->b, "write", (double)number / (double)j->pieces);

        const char *data = mine->text;
        int64_t bytes = print_piece(j, number, mine->text);
        if (j->gz) {
            bytes = tl_gz_pack(mine->packer, mine->text, bytes, mine->packed, j->packed_room);
            data = mine->packed;
        }

        pthread_mutex_lock(&j->lock);
        while (!j->stop && j->turn != number) pthread_cond_wait(&j->moved, &j->lock);
        if (atomic_load_explicit(&j->b->cancelled, memory_order_relaxed)) j->cancelled = j->stop = true;
        int64_t at = j->at;
        j->at += bytes;
        j->turn++;
        stop = j->stop;
        pthread_cond_broadcast(&j->moved);
        pthread_mutex_unlock(&j->lock);
        if (stop) return;

        int error = tl_out_put(j->out, data, bytes, at);
        if (error == 0) continue;
        pthread_mutex_lock(&j->lock);
        j->error = error;
        j->stop = true;
        pthread_cond_broadcast(&j->moved);
        pthread_mutex_unlock(&j->lock);
        return;
    }
}

static int length_of(int64_t number)
{
    char text[TL_NUMBER_MAX];
    return tl_print_index(text, number);
}

tulle_status tl_mtx_put_rows(tl_out *out, const tulle_csr *A, int64_t first, const char *head, bool gz,
                             int64_t *at)
{
    tulle_status status = TULLE_OK;
    tl_base *b = out->b;
    int threads = tl_team_size(b->team);
    job j = {.b = b, .A = A, .first = first, .head = head, .gz = gz, .out = out, .at = *at};
    pthread_mutex_init(&j.lock, NULL);
    pthread_cond_init(&j.moved, NULL);
    j.pieces = A->nnz / PIECE + (A->nnz % PIECE > 0);
    if (j.pieces == 0 && *head) j.pieces = 1;
    if (threads > j.pieces) threads = (int)j.pieces;
    int entry = length_of(first + A->rows) + length_of(A->cols) + 2
              + (A->values ? (tl_type_complex(A->val_type) ? 2 : 1) * 28 : 0);
    int64_t most = A->nnz < PIECE ? A->nnz : PIECE;
    int64_t room = HEAD_MAX + most * entry + TL_NUMBER_MAX;
    j.packed_room = tl_gz_bound(room);
    TRY(tl_calloc(b, &j.scratch, threads, sizeof *j.scratch, "pieces of text"));
    for (int t = 0; t < threads; t++) {
        TRY(tl_alloc(b, &j.scratch[t].text, room, 1, "a piece of text"));
        if (!gz) continue;
        TRY(tl_packer_create(b, &j.scratch[t].packer));
        TRY(tl_alloc(b, &j.scratch[t].packed, j.packed_room, 1, "a piece of packed text"));
    }
    tl_progress(b, "write", 0);         /* the calling thread may get no piece to report progress for */
    if (threads > 0) tl_team_run(b->team, threads, work, &j);
    if (j.error) TRY(tl_out_fail(out, j.error));
    if (tl_progress(b, "write", 1)) j.cancelled = true;
    if (j.cancelled) TRY(tl_fail(b, TULLE_ECANCEL, "%s: writing was cancelled", out->path));
    *at = j.at;
done:
    for (int t = 0; j.scratch && t < threads; t++) {
        tl_free(b, j.scratch[t].text);
        tl_free(b, j.scratch[t].packed);
        tl_packer_free(b, j.scratch[t].packer);
    }
    tl_free(b, j.scratch);
    pthread_cond_destroy(&j.moved);
    pthread_mutex_destroy(&j.lock);
    return status;
}

tulle_status tl_mtx_write(tl_base *b, const char *path, const tulle_csr *A, const char *symmetry, bool gz)
{
    tulle_status status = TULLE_OK;
    tl_out out = {.b = b, .fd = -1};
    char head[HEAD_MAX];
    int64_t at = 0;
    int n = tl_mtx_print_head(head, sizeof head, tl_value_type(A), symmetry, A->rows, A->cols);
    snprintf(head + n, sizeof head - (size_t)n, "%" PRId64 "\n", A->nnz);
    TRY(tl_out_open(b, path, &out));
    TRY(tl_mtx_put_rows(&out, A, 0, head, gz, &at));
    TRY(tl_out_rename(&out));
done:
    tl_out_close(&out);
    return status;
}
