/* SPDX-License-Identifier: MIT
 *
 * choose_measure.c - the constants of the prediction (choose.h): measured on this machine, and stored.
 *
 * They are stored as an entry of the cache folder, like a compiled kernel (jit/cache.c): named by a hash of
 * the machine (processor, threads, device, driver), and protected by a hash of its contents.  The text is a
 * line for the format, one for the machine, and one for each constant, in attoseconds.  If anything in it is
 * invalid, the defaults are used, and the trace says why.
 *
 * Three products are measured on the CPU and on the GPU: stencils of 27 and of 7 points, where 6 and 2
 * products are added to an entry of C and rows are alike, and a graph, where they are not.  The times of the
 * stencils scale the defaults of an entry and of a product in rows alike by one factor (two equations are too
 * sensitive to noise); that of the graph gives the time of the other products.  On the GPU the operands and C
 * lie there, since copies, measured separately, take most of the time.  The time of a tiny product is that of
 * a start.  The minimum of three runs counts. */
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

/* The minimum time of a product on the CPU or the GPU, and its amount of work; there: with A and C on the
 * GPU. */
static tulle_status time_product(tulle_ctx *ctx, const tulle_csr *A, int use, bool there, double *seconds,
                                 tl_amount *a)
{
    tulle_status status = TULLE_OK;
    tulle_matrix *C = NULL, *moved = NULL;
    const tulle_options o = {.c_place = there ? TULLE_DEVICE : TULLE_HOST};
    tulle_csr X = *A;
    if (there) TRY(ctx->engine->move(ctx, A, TULLE_DEVICE, &moved));
    if (there) X = moved->view;
    ctx->choice->force = use;
    *seconds = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        double start = tl_now() - tl_ctx_compiling(ctx);
        TRY(tl_multiply(ctx, &X, &X, &o, &C));
        double now = tl_now() - tl_ctx_compiling(ctx) - start;
        if (now < *seconds) *seconds = now;
        a->entries = (double)C->view.nnz;
        tl_matrix_free(&ctx->base, C);
        C = NULL;
    }
    a->products = 0;
    for (int64_t k = 0; k < A->nnz; k++) {
        int64_t row = tl_get(A->col_idx, A->idx_type, k);
        a->products += (double)(tl_row_begin(A, row + 1) - tl_row_begin(A, row));
    }
    a->threads = tl_team_size(ctx->base.team);
done:
    ctx->choice->force = 0;
    tl_matrix_free(&ctx->base, C);
    tl_matrix_free(&ctx->base, moved);
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

/* The matrices that are measured. */
enum { STENCIL, THIN_STENCIL, GRAPH, TINY, RANDOM, MATRICES };

/* Seconds t[0] of a product in scattered rows, t[1] in rows alike, and t[2] of an entry of C, from the times
 * of the stencils and of the graph; t has the defaults before. */
static void solve(const tl_amount *a, const double *rest, double *t)
{
    double usual = 0, took = 0;
    for (int i = STENCIL; i <= THIN_STENCIL; i++) {
        usual += a[i].products * t[1] + a[i].entries * t[2];
        took += rest[i];
    }
    const double factor = took / usual;
    t[1] = positive(t[1] * factor);
    t[2] = positive(t[2] * factor);
    const double others = rest[GRAPH] - a[GRAPH].entries * t[2], most = t[0] * factor;
    t[0] = positive(others > 0 ? others / a[GRAPH].products : most);
    if (t[0] < t[1]) t[0] = t[1];
}

static tulle_status measure_side(tulle_ctx *ctx, tulle_matrix *const *M, int use, int start, int product)
{
    tulle_status status = TULLE_OK;
    double *t = ctx->choice->seconds, rest[GRAPH + 1], tiny_there = 0;
    const bool cpu = use == TL_USE_CPU;
    tl_amount a[GRAPH + 1], tiny;
    TRY(time_product(ctx, &M[TINY]->view, use, false, &t[start], &tiny));
    if (!cpu) TRY(time_product(ctx, &M[TINY]->view, use, true, &tiny_there, &tiny));
    for (int i = 0; i <= GRAPH; i++) {
        TRY(time_product(ctx, &M[i]->view, use, !cpu, &rest[i], &a[i]));
        rest[i] -= cpu ? t[start] : tiny_there;
        if (cpu) rest[i] *= a[i].threads;
        rest[i] = rest[i] > 1e-9 ? rest[i] : 1e-9;
    }
    solve(a, rest, &t[product]);
    double spmm, work = (double)M[RANDOM]->view.nnz * (COLUMNS + (cpu ? 4 : 0));
    TRY(time_spmm(ctx, &M[RANDOM]->view, use, &spmm));
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
    tulle_matrix *M[MATRICES] = {NULL};
    char recipe[MATRICES][64];
    if (!c) return TULLE_OK;
    const int points = c->grid * c->grid * c->grid;
    int scale = 1;                      /* of the graph: a vertex for about eight points */
    while (8 << scale < points) scale++;
    snprintf(recipe[STENCIL], sizeof *recipe, "poisson3d:nx=%d,points=27", c->grid);
    snprintf(recipe[THIN_STENCIL], sizeof *recipe, "poisson3d:nx=%d", c->grid);
    snprintf(recipe[GRAPH], sizeof *recipe, "rmat:scale=%d,edges=8,seed=1", scale);
    snprintf(recipe[TINY], sizeof *recipe, "tridiagonal:n=8");
    snprintf(recipe[RANDOM], sizeof *recipe, "er:rows=%d,per_row=8", points / 2);
    b->trace = NULL;
    for (int i = 0; i < MATRICES; i++) TRY(tl_gallery(b, recipe[i], &M[i]));
    TRY(time_copies(ctx, &M[STENCIL]->view, c->seconds));
    TRY(measure_side(ctx, M, TL_USE_CPU, TL_CPU_START, TL_CPU_PRODUCT));
    TRY(measure_side(ctx, M, TL_USE_DEVICE, TL_GPU_START, TL_GPU_PRODUCT));
done:
    b->trace = trace;
    for (int i = 0; i < MATRICES; i++) tl_matrix_free(b, M[i]);
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
