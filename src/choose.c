/* SPDX-License-Identifier: MIT
 *
 * choose.c - chooses whether the CPU or the GPU of a context computes a product: whichever is predicted to
 * finish first, with operands and C on the host.
 *
 * The CPU's predicted time is a cost per product and per entry of C, divided by its threads; the GPU's also
 * includes copying the operands to the device and C back, which is most of it.  The bytes are known exactly.
 * The number of products is estimated from up to 256 entries of A and the lengths of their rows of B, the
 * number of entries of C from up to 32 rows of C, whose columns are counted in a small hash table; for
 * transposed operands both are derived from averages.  Nothing more is estimated where the CPU would finish
 * before the GPU could start.  The arrays were not checked yet: indices are tested before they are
 * used.
 *
 * The choice is forced where operands, or C, lie on the device, and by an accumulator that one of the two
 * does not have.  If one fails for lack of memory, the other computes the product.  For a plan of a sparse
 * product the times of one run are compared, which copies only values; a plan of SpMM always uses the GPU, as
 * X may lie there.
 *
 * Whether rows are alike decides how fast a product is, on a CPU by a factor of ten: for 64 rows of A (and of
 * B) some entries are compared with those of the next rows.
 *
 * Memory: 128 KiB, temporarily. */
#include "choose.h"
#include <math.h>

enum { SAMPLES = 256, ROWS = 32, BUDGET = 8192, TABLE = 2 * BUDGET };
enum { LOOKS = 64, AHEAD = 8, COMPARED = 64 };  /* rows, next rows, and entries of each that are compared */

/* ---- the prediction */

/* A product costs t[0], if its row is like its neighbours t[1], and an entry of C t[2]. */
static double work_of(const tl_amount *a, const double *t)
{
    return a->products * ((1 - a->alike) * t[0] + a->alike * t[1]) + a->entries * t[2];
}

double tl_forecast_cpu(const tl_choice *c, const tl_amount *a)
{
    const double *t = c->seconds;
    return t[TL_CPU_START] + work_of(a, &t[TL_CPU_PRODUCT]) / (double)a->threads;
}

double tl_forecast_device(const tl_choice *c, const tl_amount *a)
{
    const double *t = c->seconds;
    return t[TL_GPU_START] + a->up * t[TL_GPU_UP] + a->down * t[TL_GPU_DOWN]
           + work_of(a, &t[TL_GPU_PRODUCT]);
}

/* ---- the amount of work.  Only the shapes of the views were checked, not their arrays. */

/* Whether the first and last row pointer agree with nnz; otherwise the arrays are not read. */
static bool ends_meet(const tulle_csr *A)
{
    int64_t first = tl_row_begin(A, 0);
    return first >= 0 && tl_row_begin(A, A->rows) - first == A->nnz;
}

static int64_t row_length(const tulle_csr *A, int64_t row)
{
    int64_t first, n;
    if (row < 0 || row >= A->rows) return 0;
    first = tl_row_begin(A, row);
    n = tl_row_begin(A, row + 1) - first;
    first -= tl_row_begin(A, 0);
    return first >= 0 && n > 0 && n <= A->nnz && first <= A->nnz - n ? n : 0;
}

static int64_t column_of(const tulle_csr *A, int64_t entry)
{
    return tl_get(A->col_idx, A->idx_type, entry);
}

/* Estimates the products of A*B from a sample of entries of A and the lengths of their rows of B. */
static double count_products(const tulle_csr *A, const tulle_csr *B)
{
    int64_t n = A->nnz < SAMPLES ? A->nnz : SAMPLES, first = tl_row_begin(A, 0);
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)row_length(B, column_of(A, first + tl_part(A->nnz, (int)i, (int)n)));
    return n > 0 ? sum / (double)n * (double)A->nnz : 0;
}

/* Estimates the products of A^T*B: each row of A with the same row of B. */
static double count_turned(const tulle_csr *A, const tulle_csr *B)
{
    int64_t n = A->rows < SAMPLES ? A->rows : SAMPLES;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = tl_part(A->rows, (int)i, (int)n);
        sum += (double)row_length(A, row) * (double)row_length(B, row);
    }
    return n > 0 ? sum / (double)n * (double)A->rows : 0;
}

/* Inserts a key into a hash table; whether it was new.  0 is not a valid key. */
static bool put(uint64_t *table, uint64_t key)
{
    uint64_t at = key * 0x9e3779b97f4a7c15u >> 32 & (TABLE - 1);
    while (table[at] && table[at] != key) at = (at + 1) & (TABLE - 1);
    bool fresh = !table[at];
    table[at] = key;
    return fresh;
}

/* A place in 0 .. n - 1 for the i-th sample, spread evenly by the golden ratio. */
static int64_t sample(int i, int64_t n)
{
    double place = (double)i * 0.6180339887498949;
    return (int64_t)((place - floor(place)) * (double)n);
}

/* For a sample of rows of A*B: returns the entries of C, and in *seen the products. */
static int64_t count_first(const tulle_csr *A, const tulle_csr *B, uint64_t *table, int64_t *seen)
{
    int64_t first = 0;
    *seen = 0;
    for (int r = 0; r < ROWS; r++) {
        int64_t row = sample(r, A->rows), at = tl_row_begin(A, row);
        for (int64_t k = at, end = at + row_length(A, row); k < end; k++) {
            int64_t j = column_of(A, k), n = row_length(B, j), from = n > 0 ? tl_row_begin(B, j) : 0;
            for (int64_t i = 0; i < n; i++) {
                if (*seen == BUDGET) return first;
                first += put(table, (uint64_t)column_of(B, from + i) * ROWS + (uint64_t)r + 1);
                ++*seen;
            }
        }
    }
    return first;
}

/* Whether two rows of the same length have the same columns, or all moved by the distance of the rows. */
static bool rows_alike(const tulle_csr *A, int64_t row, int64_t next)
{
    const int64_t n = row_length(A, row), some = n < COMPARED ? n : COMPARED;
    if (n == 0 || row_length(A, next) != n) return false;
    const int64_t a = tl_row_begin(A, row), b = tl_row_begin(A, next);
    const uint64_t moved = (uint64_t)column_of(A, b) - (uint64_t)column_of(A, a);       /* of any 64 bits */
    if (moved != 0 && moved != (uint64_t)(next - row)) return false;
    for (int64_t k = 1; k < some; k++)
        if ((uint64_t)column_of(A, b + k) - (uint64_t)column_of(A, a + k) != moved) return false;
    return true;
}

/* The share of the entries of A, by a sample, whose row is like one of the next rows. */
static double share_alike(const tulle_csr *A)
{
    double alike = 0, all = 0;
    for (int i = 0; i < LOOKS && A->rows > 0; i++) {
        const int64_t row = sample(i, A->rows), length = row_length(A, row);
        bool found = false;
        for (int d = 1; d <= AHEAD && row + d < A->rows && !found; d++) found = rows_alike(A, row, row + d);
        all += (double)length;
        if (found) alike += (double)length;
    }
    return all > 0 ? alike / all : 0;
}

/* The expected entries of C if products were distributed at random. */
static double spread(double products, double rows, double cols)
{
    double places = rows * cols;
    return places > 0 ? places * -expm1(-products / places) : 0;
}

static double count_entries(tl_base *b, const tulle_csr *A, const tulle_csr *B, double products)
{
    uint64_t *table = NULL;
    int64_t seen = 0, first;
    if (A->rows == 0 || tl_calloc(b, &table, TABLE, sizeof *table, "a sample of C") != TULLE_OK) {
        b->error[0] = 0;
        return spread(products, (double)A->rows, (double)B->cols);
    }
    first = count_first(A, B, table, &seen);
    tl_free(b, table);
    return seen > 0 ? products * (double)first / (double)seen : 0;
}

static double values_of(const tulle_csr *A)
{
    return (double)A->nnz * (double)tl_type_size(A->val_type);
}

static void find_products(const tulle_csr *A, const tulle_csr *B, const tulle_options *o, tl_amount *a)
{
    double inner = o->op_a ? (double)A->rows : (double)A->cols;
    if (!o->op_a && !o->op_b) a->products = count_products(A, B);
    else if (o->op_a && !o->op_b) a->products = count_turned(A, B);
    else if (o->op_a) a->products = count_products(B, A);
    else a->products = inner > 0 ? (double)A->nnz * (double)B->nnz / inner : 0;
}

/* Estimates the work.  Entries of C, and rows alike, are skipped where the CPU would finish before the GPU
 * could start. */
static void find_amount(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int want, const tl_setup *s,
                        tl_amount *a)
{
    const tulle_options *o = &s->options;
    tl_base *b = &ctx->base;
    double rows = o->op_a ? (double)A->cols : (double)A->rows;
    double cols = o->op_b ? (double)B->rows : (double)B->cols;
    if (ends_meet(A) && ends_meet(B)) find_products(A, B, o, a);
    a->threads = tl_cpu_threads(b, o->threads, (int64_t)(a->products < 1e15 ? a->products : 1e15));
    a->entries = a->products;
    if (a->products > 0 && tl_forecast_cpu(ctx->choice, a) > ctx->choice->seconds[TL_GPU_START]) {
        a->entries = o->op_a || o->op_b ? spread(a->products, rows, cols)
                                        : count_entries(b, A, B, a->products);
        a->alike = share_alike(A);
        if (a->alike > 0 && !tl_same_arrays(A, B)) a->alike = fmin(a->alike, share_alike(B));
    }
    bool plan = want & TL_PERMS, values = plan || s->values || A->values || B->values;
    double entry = values ? (double)tl_type_size(A->val_type) : 0;
    a->up = values_of(A) + values_of(B);
    a->down = a->entries * entry;
    if (plan) return;
    a->up = (double)tl_csr_bytes(A) + (tl_same_arrays(A, B) ? 0 : (double)tl_csr_bytes(B));
    a->down += a->entries * (double)tl_index_size(B->idx_type) + rows * sizeof(int64_t);
}

/* ---- the choice */

static void take(tulle_ctx *ctx, int use, const tl_engine **engine, const char **device)
{
    *engine = use == TL_USE_CPU ? &tl_engine_cpu : ctx->engine;
    *device = use == TL_USE_CPU ? "cpu" : ctx->device;
}

/* The reason why the choice is forced; NULL: it is not. */
static const char *forced(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int want, const tl_setup *s,
                          int *use)
{
    const int forced = s->recipe.forced;
    *use = TL_USE_DEVICE;
    if (A->place == TULLE_DEVICE || B->place == TULLE_DEVICE) return "operands lie there";
    if (s->options.c_place == TULLE_DEVICE) return "C is wanted there";
    if (forced >= 0 && !tl_accumulator_on(forced, TL_ON_CPU)) return "the CPU lacks the accumulator";
    *use = TL_USE_CPU;
    if (forced >= 0 && !tl_accumulator_on(forced, TL_ON_GPU)) return "the GPU lacks the accumulator";
    *use = want & (TL_USE_CPU | TL_USE_DEVICE) ? want & (TL_USE_CPU | TL_USE_DEVICE) : ctx->choice->force;
    return *use ? "" : NULL;            /* the caller of this function traces the reason */
}

void tl_choose_product(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B, int want, tl_setup *s)
{
    tl_base *b = &ctx->base;
    tl_amount a = {0};
    int use = TL_USE_DEVICE;
    if (!ctx->choice || tl_view_check(ctx, A, "A") != TULLE_OK || tl_view_check(ctx, B, "B") != TULLE_OK)
        return;                         /* invalid arguments are reported by the usual checks */
    const char *why = forced(ctx, A, B, want, s, &use);
    if (!why) {
        tl_constants_find(ctx);
        find_amount(ctx, A, B, want, s, &a);
        s->chosen = (tl_chosen){.cpu = tl_forecast_cpu(ctx->choice, &a),
                                .device = tl_forecast_device(ctx->choice, &a)};
        use = s->chosen.cpu <= s->chosen.device ? TL_USE_CPU : TL_USE_DEVICE;
        s->chosen.other = use == TL_USE_CPU ? TL_USE_DEVICE : TL_USE_CPU;
    }
    take(ctx, use, &s->engine, &s->device);
    if (why && *why) tl_trace(b, "on %s: %s", s->device, why);
    if (!why)
        tl_trace(b, "forecast by %s constants, host to host: cpu %.3f ms, %s %.3f ms; on %s",
                 ctx->choice->measured ? "measured" : "default", 1e3 * s->chosen.cpu, ctx->device,
                 1e3 * s->chosen.device, s->device);
}

void tl_choose_spmm(tulle_ctx *ctx, const tulle_csr *A, const tulle_dense *X, const tulle_dense *Y,
                    bool gpu_only, int use, tulle_spmm_plan *p)
{
    tl_choice *c = ctx->choice;
    if (!c) return;
    const char *why = gpu_only ? "the policy is for GPUs" : A->place == TULLE_DEVICE ? "A lies there"
                      : X->place == TULLE_DEVICE || Y->place == TULLE_DEVICE ? "X or Y lies there" : NULL;
    if (why) {
        tl_trace(&ctx->base, "on %s: %s", ctx->device, why);
        return;
    }
    if (!use) use = c->force;
    if (use) {
        take(ctx, use, &p->engine, &p->stats.device);
        return;
    }
    tl_constants_find(ctx);
    const double *t = c->seconds, work = (double)A->nnz * (double)Y->cols;
    const double x = (double)tl_dense_bytes(X), y = (double)tl_dense_bytes(Y);
    const int threads = tl_spmm_threads(&ctx->base, p->options.threads, A, Y->cols);
    /* loading an entry of A costs as much as four products; this matters where X has one column */
    p->chosen.cpu = t[TL_CPU_START] + (work + 4 * (double)A->nnz) * t[TL_CPU_COLUMN] / threads;
    p->chosen.device = t[TL_GPU_START] + ((double)tl_csr_bytes(A) + x + y) * t[TL_GPU_UP]
                       + work * t[TL_GPU_COLUMN] + y * t[TL_GPU_DOWN];
    use = p->chosen.cpu <= p->chosen.device ? TL_USE_CPU : TL_USE_DEVICE;
    p->chosen.other = use == TL_USE_CPU ? TL_USE_DEVICE : TL_USE_CPU;
    take(ctx, use, &p->engine, &p->stats.device);
    tl_trace(&ctx->base, "forecast by %s constants, host to host: cpu %.3f ms, %s %.3f ms; on %s",
             c->measured ? "measured" : "default", 1e3 * p->chosen.cpu, ctx->device, 1e3 * p->chosen.device,
             p->stats.device);
}

int tl_choose_other(tulle_ctx *ctx, const tl_chosen *chosen, tulle_status status)
{
    if (!chosen->other || (status != TULLE_ELIMIT && status != TULLE_ENOMEM)) return 0;
    tl_trace(&ctx->base, "%s: on %s, then", ctx->base.error,
             chosen->other == TL_USE_CPU ? "cpu" : ctx->device);
    return chosen->other;
}
