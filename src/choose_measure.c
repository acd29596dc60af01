/* SPDX-License-Identifier: MIT
 *
 * choose_measure.c - the constants of the prediction (choose.h): measured on this machine, and stored.
 *
 * They are stored as an entry of the cache folder, like a compiled kernel (jit/cache.c): named by a hash of
 * the machine (processor, threads, device, driver), and protected by a hash of its contents.  The text is a
 * line for the format, one for the machine, and one for each constant, in attoseconds.  If anything in it is
 * invalid, the defaults are used, and the trace says why.
 *
 * Two products are measured on the CPU and on the GPU: a 27-point stencil, where six products are added to an
 * entry of C on average, and a random matrix, where it is little more than one.  From the two times, less the
 * time of copies (measured separately) and that of a tiny product, the time per product and the time per
 * entry can be solved for.  The minimum of three runs counts. */
#include "choose.h"
#include "jit/parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 3, GRID = 48, TEXT = 2048, COLUMNS = 32 };
static const char format[] = "tulle forecast 2";
static const double UNIT = 1e18;        /* attoseconds: integers look the same in every locale */

#define TL_CONSTANT(id, name, seconds) {name, seconds},
static const struct { const char *name; double seconds; } constants[TL_CONSTANTS] = {
    TL_CONSTANT_LIST(TL_CONSTANT)
};
#undef TL_CONSTANT

/* ---- open and close */

tulle_status tl_choice_open(tulle_ctx *ctx, const char *device)
{
    tulle_status status = TULLE_OK;
    tulle_device cpu;
    tl_choice *c = NULL;
    TRY(tl_calloc(&ctx->base, &c, 1, sizeof *c, "the choice of a device"));
    ctx->choice = c;
    c->grid = GRID;
    for (int i = 0; i < TL_CONSTANTS; i++) c->seconds[i] = constants[i].seconds;
    TRY(tl_device_info(0, &cpu));
    snprintf(c->machine, sizeof c->machine, "%.150s, %d threads; %.60s, %.200s", cpu.text,
             tl_team_size(ctx->base.team), ctx->device, device);
done:
    return status;
}

void tl_choice_close(tulle_ctx *ctx)
{
    tl_free(&ctx->base, ctx->choice);
    ctx->choice = NULL;
}

/* ---- on disk */

static tl_hash key_of(const tl_choice *c)
{
    char text[sizeof format + sizeof c->machine + 1];
    int n = snprintf(text, sizeof text, "%s\n%s", format, c->machine);
    return tl_sha256_of(text, (size_t)n);
}

/* The line at *at, terminated by a zero; moves *at to the next line.  NULL: there is none. */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end) return NULL;
    *end = 0;
    *at = end + 1;
    return line;
}

/* Parses the constants into seconds; returns NULL, or why the text is invalid. */
static const char *parse(char *text, const char *machine, double *seconds)
{
    char *line = next_line(&text);
    if (!line || strcmp(line, format) != 0) return "it is of another format";
    line = next_line(&text);
    if (!line || strcmp(line, machine) != 0) return "it is of another machine";
    for (int i = 0; i < TL_CONSTANTS; i++) {
        size_t n = strlen(constants[i].name);
        line = next_line(&text);
        if (!line || strncmp(line, constants[i].name, n) != 0 || line[n] != ' ')
            return "a constant is missing";
        const char *digits = line + n + 1;
        size_t length = strlen(digits);
        if (length < 1 || length > 18 || strspn(digits, "0123456789") != length) return "a constant is none";
        seconds[i] = (double)strtoull(digits, NULL, 10) / UNIT;
        if (seconds[i] <= 0) return "a constant is none";
    }
    return *text ? "something stands behind it" : NULL;
}

static bool is_there(const tl_cache *cache, const tl_hash *key)
{
    char path[sizeof cache->path + 80];
    size_t n = (size_t)snprintf(path, sizeof path, "%s/", cache->path);
    for (int i = 0; i < 32; i++) n += (size_t)snprintf(path + n, sizeof path - n, "%02x", key->byte[i]);
    snprintf(path + n, sizeof path - n, ".image");
    return cache->path[0] && access(path, F_OK) == 0;
}

void tl_constants_find(tulle_ctx *ctx)
{
    tl_choice *c = ctx->choice;
    tl_base *b = &ctx->base;
    tl_cache cache;
    tl_image image = {0};
    double seconds[TL_CONSTANTS];
    char text[TEXT];
    const char *why = NULL;
    if (c->looked) return;
    c->looked = true;
    tl_cache_open(&cache);
    const tl_hash key = key_of(c);
    if (!tl_cache_get(b, &cache, &key, &image)) {
        if (is_there(&cache, &key)) why = "it is damaged, or others can write it";
    } else if (image.bytes >= sizeof text) {
        why = "it is too long";
    } else {
        memcpy(text, image.data, (size_t)image.bytes);
        text[image.bytes] = 0;
        why = parse(text, c->machine, seconds);
        c->measured = !why;
    }
    if (c->measured) memcpy(c->seconds, seconds, sizeof seconds);
    if (why) tl_trace(b, "the measured constants in %s are not taken: %s", cache.path, why);
    tl_free(b, image.data);
}

static void keep(tulle_ctx *ctx)
{
    tl_choice *c = ctx->choice;
    tl_cache cache;
    char text[TEXT];
    size_t n = (size_t)snprintf(text, sizeof text, "%s\n%s\n", format, c->machine);
    for (int i = 0; i < TL_CONSTANTS && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %.0f\n", constants[i].name,
                              UNIT * c->seconds[i]);
    tl_cache_open(&cache);
    const tl_hash key = key_of(c);
    tl_cache_put(&cache, &key, &(tl_image){.data = text, .bytes = n});
    if (cache.trouble[0]) tl_trace(&ctx->base, "measured constants are not kept: %s", cache.trouble);
}

/* ---- measurement */

/* A value that the file format can store. */
static double positive(double seconds)
{
    return seconds > 1e-15 ? seconds < 0.5 ? seconds : 0.5 : 1e-15;
}

/* The minimum time of a product on the CPU or the GPU, and its amount of work. */
static tulle_status time_product(tulle_ctx *ctx, const tulle_csr *A, int use, double *seconds, tl_amount *a)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = NULL;
    ctx->choice->force = use;
    *seconds = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        double start = tl_now() - tl_ctx_compiling(ctx);
        TRY(tl_multiply(ctx, A, A, NULL, &C));
        double now = tl_now() - tl_ctx_compiling(ctx) - start;
        if (now < *seconds) *seconds = now;
        a->down = (double)tl_csr_bytes(&C->view);
        a->entries = (double)C->view.nnz;
        tl_matrix_free(&ctx->base, C);
        C = NULL;
    }
    a->up = (double)tl_csr_bytes(A);
    a->products = 0;
    for (int64_t k = 0; k < A->nnz; k++) {
        int64_t row = tl_get(A->col_idx, A->idx_type, k);
        a->products += (double)(tl_row_begin(A, row + 1) - tl_row_begin(A, row));
    }
    a->threads = tl_team_size(ctx->base.team);
done:
    ctx->choice->force = 0;
    tl_matrix_free(&ctx->base, C);
    return status;
}

/* Seconds per byte to the device and back. */
static tulle_status time_copies(tulle_ctx *ctx, const tulle_csr *A, double *t)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *there = NULL, *back = NULL;
    double up = INFINITY, down = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        double start = tl_now();
        TRY(ctx->engine->move(ctx, A, TULLE_DEVICE, &there));
        double middle = tl_now();
        TRY(ctx->engine->move(ctx, &there->view, TULLE_HOST, &back));
        double end = tl_now();
        if (middle - start < up) up = middle - start;
        if (end - middle < down) down = end - middle;
        tl_matrix_free(&ctx->base, there);
        tl_matrix_free(&ctx->base, back);
        there = back = NULL;
    }
    t[TL_GPU_UP] = positive(up / (double)tl_csr_bytes(A));
    t[TL_GPU_DOWN] = positive(down / (double)tl_csr_bytes(A));
done:
    tl_matrix_free(&ctx->base, there);
    tl_matrix_free(&ctx->base, back);
    return status;
}

/* SpMM: seconds per product of an entry of A and one of X, without its fixed costs. */
static tulle_status time_spmm(tulle_ctx *ctx, const tulle_csr *A, int use, double *seconds)
{
    tulle_status status = TULLE_OK;
    tulle_dense_matrix *X = NULL, *Y = NULL;
    TRY(tl_dense_create(&ctx->base, A->cols, COLUMNS, TULLE_BY_ROWS, A->val_type, &X));
    TRY(tl_dense_create(&ctx->base, A->rows, COLUMNS, TULLE_BY_ROWS, A->val_type, &Y));
    memset((void *)(uintptr_t)X->view.values, 0, (size_t)tl_dense_bytes(&X->view));
    ctx->choice->force = use;
    *seconds = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        double start = tl_now() - tl_ctx_compiling(ctx);
        TRY(tl_spmm(ctx, NULL, A, &X->view, NULL, &Y->view, NULL));
        double now = tl_now() - tl_ctx_compiling(ctx) - start;
        if (now < *seconds) *seconds = now;
    }
    if (use != TL_USE_CPU) {
        const double *t = ctx->choice->seconds, x = (double)tl_dense_bytes(&X->view),
                     y = (double)tl_dense_bytes(&Y->view);
        *seconds -= ((double)tl_csr_bytes(A) + x + y) * t[TL_GPU_UP] + y * t[TL_GPU_DOWN];
    }
done:
    ctx->choice->force = 0;
    tl_dense_free(&ctx->base, X);
    tl_dense_free(&ctx->base, Y);
    return status;
}

/* Solves for the seconds per product and per entry from two times; if the solution is not positive, both
 * defaults are scaled by one factor instead. */
static void solve(const tl_amount a[2], const double rest[2], double *product, double *entry)
{
    double det = a[0].products * a[1].entries - a[1].products * a[0].entries;
    double p = (rest[0] * a[1].entries - rest[1] * a[0].entries) / det;
    double e = (a[0].products * rest[1] - a[1].products * rest[0]) / det;
    if (p > 0 && e > 0 && det != 0) {
        *product = positive(p);
        *entry = positive(e);
        return;
    }
    double usual = (a[0].products + a[1].products) * *product + (a[0].entries + a[1].entries) * *entry;
    double factor = (rest[0] + rest[1]) / usual;
    *product = positive(*product * factor);
    *entry = positive(*entry * factor);
}

static tulle_status measure_side(tulle_ctx *ctx, tulle_matrix *const *M, int use, int start, int product)
{
    tulle_status status = TULLE_OK;
    double *t = ctx->choice->seconds, rest[2];
    const bool cpu = use == TL_USE_CPU;
    tl_amount a[2], tiny;
    TRY(time_product(ctx, &M[2]->view, use, &t[start], &tiny));
    for (int i = 0; i < 2; i++) {
        TRY(time_product(ctx, &M[i]->view, use, &rest[i], &a[i]));
        rest[i] -= t[start];
        if (cpu) rest[i] *= a[i].threads;
        else rest[i] -= a[i].up * t[TL_GPU_UP] + a[i].down * t[TL_GPU_DOWN];
        rest[i] = rest[i] > 1e-9 ? rest[i] : 1e-9;
    }
    solve(a, rest, &t[product], &t[product + 1]);
    double spmm, work = (double)M[1]->view.nnz * (COLUMNS + (cpu ? 4 : 0));
    TRY(time_spmm(ctx, &M[1]->view, use, &spmm));
    spmm = (spmm - t[start]) / work;
    t[cpu ? TL_CPU_COLUMN : TL_GPU_COLUMN] = positive(cpu ? spmm * tl_team_size(ctx->base.team) : spmm);
    t[start] = positive(t[start]);
done:
    return status;
}

tulle_status tl_choice_measure(tulle_ctx *ctx)
{
    tulle_status status = TULLE_OK;
    tl_base *b = &ctx->base;
    tl_choice *c = ctx->choice, before = c ? *c : (tl_choice){0};
    tulle_trace_fn trace = b->trace;
    tulle_matrix *M[3] = {NULL};
    char recipe[3][64];
    if (!c) return TULLE_OK;
    snprintf(recipe[0], sizeof recipe[0], "poisson3d:nx=%d,points=27", c->grid);
    snprintf(recipe[1], sizeof recipe[1], "er:rows=%d,per_row=8", c->grid * c->grid * c->grid / 2);
    snprintf(recipe[2], sizeof recipe[2], "tridiagonal:n=8");
    b->trace = NULL;
    for (int i = 0; i < 3; i++) TRY(tl_gallery(b, recipe[i], &M[i]));
    TRY(time_copies(ctx, &M[0]->view, c->seconds));
    TRY(measure_side(ctx, M, TL_USE_CPU, TL_CPU_START, TL_CPU_PRODUCT));
    TRY(measure_side(ctx, M, TL_USE_DEVICE, TL_GPU_START, TL_GPU_PRODUCT));
done:
    b->trace = trace;
    for (int i = 0; i < 3; i++) tl_matrix_free(b, M[i]);
    if (status != TULLE_OK) {
        *c = before;
        return status;
    }
    c->looked = c->measured = true;
    for (int i = 0; i < TL_CONSTANTS; i++)
        tl_trace(b, "measured: %s %.3g s", constants[i].name, c->seconds[i]);
    keep(ctx);
    return status;
}
