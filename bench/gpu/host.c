/* SPDX-License-Identifier: MIT
 *
 * host.c - from host to host: A and B in ordinary memory of the host, C in memory of the library there.
 *
 * Timed: the wall clock of one call of tulle_multiply with default options, which checks the operands, copies
 * them to the device and C back; C is freed outside of it.  The first call has a pool of host memory that is
 * empty, the second one locks what came back to it; the median of those after WARM calls counts.  Beside it
 * the time of the product alone, with operands and C on the device.
 *
 * floor_ms is what no program can be faster than: the largest of the time of the product, and of the bytes up
 * and down at the speed of the link, LINK bytes a millisecond each way. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <string.h>
#include "host.h"

enum { WARM = 3, RUNS = SUITE_RUNS };
static const double LINK = 55e6;

static uint64_t bytes_of(const tulle_csr *A)
{
    static const uint64_t value[] = {0, 4, 8, 8, 16};
    return (uint64_t)(A->rows + 1) * (A->ptr_type == TULLE_I32 ? 4 : 8)
         + (uint64_t)A->nnz * ((A->idx_type == TULLE_I32 ? 4 : 8) + value[A->val_type]);
}

static bool equal(const tulle_csr *c, const tulle_csr *w)
{
    const uint64_t ptr = c->ptr_type == TULLE_I32 ? 4 : 8, idx = c->idx_type == TULLE_I32 ? 4 : 8;
    const uint64_t nnz = (uint64_t)c->nnz, value = bytes_of(c) - ((uint64_t)c->rows + 1) * ptr - nnz * idx;
    return c->rows == w->rows && c->nnz == w->nnz && c->ptr_type == w->ptr_type && c->idx_type == w->idx_type
        && memcmp(c->row_ptr, w->row_ptr, (size_t)((uint64_t)c->rows + 1) * ptr) == 0
        && memcmp(c->col_idx, w->col_idx, (size_t)(nnz * idx)) == 0
        && memcmp(c->values, w->values, (size_t)value) == 0;
}

typedef struct times {
    double      first, ms, least;
    int         runs;
    uint64_t    c_bytes;
    tulle_stats stats;
} times;

/* Calls until there are enough, C compared after the first of them and after the last. */
static bool repeat(tulle_ctx *gpu, const host_product *p, const tulle_csr *A, const tulle_csr *B,
                   const tulle_options *o, const tulle_csr *want, times *t)
{
    double sec[RUNS], total = 0;
    memset(t, 0, sizeof *t);
    for (int i = -WARM; i < RUNS && (i < p->runs || total < 0.05); i++) {
        tulle_matrix *C = NULL;
        double start = suite_now();
        if (tulle_multiply(gpu, A, B, o, &C) != TULLE_OK)
            return printf("FAILED: %s: %s\n", p->name, tulle_ctx_error(gpu)), false;
        double seconds = suite_now() - start;
        tulle_csr c = tulle_matrix_view(C);
        bool right = !want || i > 1 - WARM || equal(&c, want);          /* the first one and the second */
        t->c_bytes = bytes_of(&c);
        tulle_matrix_free(C);
        if (!right) return printf("WRONG: %s: another C than the CPU's\n", p->name), false;
        total += i < 0 ? 0 : seconds;
        if (i == -WARM) t->first = 1e3 * seconds;
        if (i >= 0) sec[t->runs++] = seconds;
    }
    tulle_ctx_stats(gpu, &t->stats);
    t->ms = 1e3 * suite_median(sec, t->runs);
    t->least = 1e3 * sec[0];
    return true;
}

static bool product_alone(tulle_ctx *gpu, const host_product *p, times *t)
{
    tulle_matrix *a = NULL, *b = NULL;
    const tulle_options o = {.c_place = TULLE_DEVICE, .trust_inputs = 1};
    bool good = tulle_csr_move(gpu, p->A, TULLE_DEVICE, &a) == TULLE_OK
             && (p->same || tulle_csr_move(gpu, p->B, TULLE_DEVICE, &b) == TULLE_OK);
    if (!good) printf("FAILED: %s: %s\n", p->name, tulle_ctx_error(gpu));
    if (good) {
        tulle_csr va = tulle_matrix_view(a), vb = b ? tulle_matrix_view(b) : va;
        good = repeat(gpu, p, &va, &vb, &o, NULL, t);
    }
    tulle_matrix_free(a);
    tulle_matrix_free(b);
    return good;
}

void host_heading(void)
{
    printf("%-20s %12s %12s %9s %9s %9s %9s %9s %7s | %8s %8s %8s %8s\n", "matrix", "bytes up", "bytes down",
           "first", "ms", "least", "product", "floor", "ratio", "upload", "symbolic", "numeric",
           "download");
}

bool host_time(tulle_ctx *gpu, const host_product *p, FILE *pieces)
{
    times alone, t;
    if (!product_alone(gpu, p, &alone) || !repeat(gpu, p, p->A, p->B, NULL, p->want, &t)) return false;
    const uint64_t up = bytes_of(p->A) + (p->same ? 0 : bytes_of(p->B)), down = t.c_bytes;
    double least = (double)(up > down ? up : down) / LINK;
    if (least < alone.ms) least = alone.ms;
    const tulle_stats *s = &t.stats;
    printf("%-20s %12" PRIu64 " %12" PRIu64 " %9.3f %9.3f %9.3f %9.3f %9.3f %7.2f | "
           "%8.3f %8.3f %8.3f %8.3f\n", p->name, up,
           down, t.first, t.ms, t.least, alone.ms, least, t.ms / least, 1e3 * s->sec_upload,
           1e3 * s->sec_symbolic, 1e3 * s->sec_numeric, 1e3 * s->sec_download);
    fflush(stdout);
    if (!pieces) return true;
    fprintf(pieces, "{\"section\": \"host\", \"driver\": \"%.*s\", \"device\": \"%s\", \"matrix\": \"%s\", "
            "\"operation\": \"%s\", \"type\": \"%s\", \"ms\": %.5g, \"ms_min\": %.5g, \"ms_first\": %.5g, "
            "\"product_ms\": %.5g, \"up_bytes\": %" PRIu64 ", \"down_bytes\": %" PRIu64 ", "
            "\"floor_ms\": %.5g, \"upload_ms\": %.4g, \"symbolic_ms\": %.4g, \"numeric_ms\": %.4g, "
            "\"download_ms\": %.4g, \"runs\": %d}\n", (int)strcspn(p->device, ":"), p->device, p->device,
            p->name, p->operation, p->type, t.ms, t.least, t.first, alone.ms, up, down, least,
            1e3 * s->sec_upload, 1e3 * s->sec_symbolic, 1e3 * s->sec_numeric, 1e3 * s->sec_download, t.runs);
    fflush(pieces);
    return true;
}
