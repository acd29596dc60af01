/* SPDX-License-Identifier: MIT
 *
 * host.c - from host to host: A and B in ordinary memory of the host, C in memory of the library there.
 *
 * Timed: the wall clock of one call of tulle_multiply with default options, which checks the operands, copies
 * them to the device and C back; C is freed outside of it.  The first call has a pool of host memory that is
 * empty, the second one locks what came back to it; the median of those after WARM calls counts.  Beside it
 * the time of the product alone, with operands and C on the device.
 *
 * The same call is timed on the CPU, and in a context made with NULL, which chooses between both; its time is
 * compared with the better of the two.
 *
 * floor_ms is what no program can be faster than: the largest of the time of the product, and of the bytes up
 * and down at the speed of the link, LINK bytes a millisecond each way. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "host.h"

enum { WARM = 3, RUNS = SUITE_RUNS };
static const double LINK = 55e6;

static bool equal(const tulle_csr *c, const tulle_csr *w)
{
    const uint64_t ptr = c->ptr_type == TULLE_I32 ? 4 : 8, idx = c->idx_type == TULLE_I32 ? 4 : 8;
    const uint64_t nnz = (uint64_t)c->nnz, value = suite_bytes(c) - ((uint64_t)c->rows + 1) * ptr - nnz * idx;
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

void host_open(const char *device, host_contexts *c)
{
    tulle_kernels kernels;
    *c = (host_contexts){.gpu = suite_open(device), .cpu = suite_open("cpu"), .either = suite_open(NULL)};
    if (strcmp(tulle_ctx_device(c->either), device) == 0) {
        if (tulle_cache_warm(c->either, TULLE_F64, TULLE_I32, &kernels) != TULLE_OK)
            suite_stop("%s", tulle_ctx_error(c->either));
        return;
    }
    tulle_ctx_free(c->either);
    c->either = NULL;
}

void host_close(host_contexts *c)
{
    tulle_ctx_free(c->gpu);
    tulle_ctx_free(c->cpu);
    tulle_ctx_free(c->either);
}

/* Calls until there are enough; C of the first two is compared. */
static bool repeat(tulle_ctx *ctx, const host_product *p, const tulle_csr *A, const tulle_csr *B,
                   const tulle_options *o, const tulle_csr *want, times *t)
{
    double sec[RUNS], total = 0;
    memset(t, 0, sizeof *t);
    for (int i = -WARM; i < RUNS && (i < p->runs || total < 0.05); i++) {
        tulle_matrix *C = NULL;
        double start = suite_now();
        if (tulle_multiply(ctx, A, B, o, &C) != TULLE_OK)
            return printf("FAILED: %s: %s\n", p->name, tulle_ctx_error(ctx)), false;
        double seconds = suite_now() - start;
        tulle_csr c = tulle_matrix_view(C);
        bool right = !want || i > 1 - WARM || equal(&c, want);
        t->c_bytes = suite_bytes(&c);
        tulle_matrix_free(C);
        if (!right) return printf("WRONG: %s: another C than the CPU's\n", p->name), false;
        total += i < 0 ? 0 : seconds;
        if (i == -WARM) t->first = 1e3 * seconds;
        if (i >= 0) sec[t->runs++] = seconds;
    }
    tulle_ctx_stats(ctx, &t->stats);
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
    printf("%-20s %12s %12s %9s %9s %9s %9s %9s %7s | %9s %9s %-7s %7s | %8s %8s %8s %8s\n",
           "matrix", "bytes up", "bytes down", "first", "ms", "least", "product", "floor", "ratio", "cpu",
           "chosen", "on", "ratio", "upload", "symbolic", "numeric", "download");
}

void host_tally(const suite_ratio *chosen)
{
    if (chosen->count)
        printf("the chosen device, against the better of both: geomean=%.3f min=%.3f (%s) matrices=%d\n",
               suite_geomean(chosen), exp(chosen->worst), chosen->worst_name, chosen->count);
}

/* The times of one product in all three ways. */
typedef struct row {
    times       alone, gpu, cpu, either;
    uint64_t    up, down;
    double      least;                  /* the floor                              */
    const char *device;                 /* that was chosen; "-": none             */
    double      ratio;                  /* the better of both / the one chosen; 0 */
} row;

static void print_row(const host_product *p, const row *r, FILE *pieces)
{
    const tulle_stats *s = &r->gpu.stats;
    printf("%-20s %12" PRIu64 " %12" PRIu64 " %9.3f %9.3f %9.3f %9.3f %9.3f %7.2f | %9.3f %9.3f %-7s %7.2f | "
           "%8.3f %8.3f %8.3f %8.3f\n", p->name, r->up, r->down, r->gpu.first, r->gpu.ms, r->gpu.least,
           r->alone.ms, r->least, r->gpu.ms / r->least, r->cpu.ms, r->either.ms, r->device, r->ratio,
           1e3 * s->sec_upload, 1e3 * s->sec_symbolic, 1e3 * s->sec_numeric, 1e3 * s->sec_download);
    fflush(stdout);
    if (!pieces) return;
    fprintf(pieces, "{\"section\": \"host\", \"driver\": \"%.*s\", \"device\": \"%s\", \"matrix\": \"%s\", "
            "\"operation\": \"%s\", \"type\": \"%s\", \"ms\": %.5g, \"ms_min\": %.5g, \"ms_first\": %.5g, "
            "\"product_ms\": %.5g, \"up_bytes\": %" PRIu64 ", \"down_bytes\": %" PRIu64 ", "
            "\"floor_ms\": %.5g, \"cpu_ms\": %.5g, ", (int)strcspn(p->device, ":"), p->device, p->device,
            p->name, p->operation, p->type, r->gpu.ms, r->gpu.least, r->gpu.first, r->alone.ms, r->up,
            r->down, r->least, r->cpu.ms);
    if (r->ratio > 0)
        fprintf(pieces, "\"chosen\": \"%s\", \"chosen_ms\": %.5g, ", r->device, r->either.ms);
    fprintf(pieces, "\"upload_ms\": %.4g, \"symbolic_ms\": %.4g, \"numeric_ms\": %.4g, "
            "\"download_ms\": %.4g, \"runs\": %d}\n", 1e3 * s->sec_upload, 1e3 * s->sec_symbolic,
            1e3 * s->sec_numeric, 1e3 * s->sec_download, r->gpu.runs);
    fflush(pieces);
}

bool host_time(const host_contexts *c, const host_product *p, suite_ratio *chosen, FILE *pieces)
{
    row r = {.device = "-", .up = suite_bytes(p->A) + (p->same ? 0 : suite_bytes(p->B))};
    if (!product_alone(c->gpu, p, &r.alone) || !repeat(c->gpu, p, p->A, p->B, NULL, p->want, &r.gpu)
        || !repeat(c->cpu, p, p->A, p->B, NULL, p->want, &r.cpu)
        || (c->either && !repeat(c->either, p, p->A, p->B, NULL, p->want, &r.either)))
        return false;
    r.down = r.gpu.c_bytes;
    r.least = (double)(r.up > r.down ? r.up : r.down) / LINK;
    if (r.least < r.alone.ms) r.least = r.alone.ms;
    if (c->either) {
        const double better = r.gpu.ms < r.cpu.ms ? r.gpu.ms : r.cpu.ms;
        r.device = r.either.stats.device;
        r.ratio = better / r.either.ms;
        suite_compare(chosen, better, r.either.ms, p->name);
    }
    print_row(p, &r, pieces);
    return true;
}
