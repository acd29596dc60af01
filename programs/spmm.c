/* SPDX-License-Identifier: MIT
 *
 * spmm.c - `tulle spmm`: a sparse matrix times a dense one, its stages, its check, its file.
 *
 * X is a file or random; Y has the same layout.  Every repetition begins with the same Y, so that beta has
 * the same effect in each.  The check is independent: it compares Y*w with alpha*(A*(X*w)) + beta*Y*w for
 * random w, in double.  Rows in which an intermediate result may have overflowed are skipped: whatever IEEE
 * arithmetic gives there is correct. */
#include "program.h"
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct outcome {
    operand             a;
    tulle_dense_matrix *x_own, *y_own, *old_own;    /* old: the Y that beta multiplies; NULL: beta is 0 */
    tulle_dense         x, y, old;
    const char         *x_name;
    double              sec_read;
    char                alpha[16], beta[16];        /* values of A's type */
    number              alpha_value, beta_value;
    tulle_stats         stats;                      /* of the median run  */
    double              median, best, sec_write, error;
    bool                checked, right;
} outcome;

/* ---- values of any type */

static void put_value(void *array, int type, int64_t i, number v)
{
    switch (type) {
    case TULLE_F32: ((float *)array)[i] = (float)v.re; break;
    case TULLE_F64: ((double *)array)[i] = v.re; break;
    case TULLE_CF32: ((float *)array)[2 * i] = (float)v.re, ((float *)array)[2 * i + 1] = (float)v.im; break;
    default: ((double *)array)[2 * i] = v.re, ((double *)array)[2 * i + 1] = v.im; break;
    }
}

static number add(number x, number y) { return (number){x.re + y.re, x.im + y.im}; }

static number times(number x, number y)
{
    return (number){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

/* Between -1 and 1, the same on every machine. */
static double random_at(uint64_t seed, uint64_t i)
{
    uint64_t z = (i + 1 + seed * 0x632BE59BD9B4E019u) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)(z >> 11) / 4503599627370496.0 - 1;
}

/* ---- operands */

static int random_dense(session *s, int64_t rows, int64_t cols, int type, uint64_t seed,
                        tulle_dense_matrix **out)
{
    int code = told(s, tulle_dense_create(s->ctx, rows, cols,
                                          s->o->column_major ? TULLE_BY_COLS : TULLE_BY_ROWS,
                                          (tulle_type)type, out));
    if (code != END_OK) return code;
    tulle_dense M = tulle_dense_view(*out);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) {
            uint64_t k = 2 * ((uint64_t)i * (uint64_t)cols + (uint64_t)j);
            put_value(M.values, type, dense_place(&M, i, j),
                      (number){random_at(seed, k), random_at(seed, k + 1)});
        }
    return END_OK;
}

/* Converts a matrix to the requested type and order, if it has others. */
static int convert_dense(session *s, tulle_dense_matrix **M, int type, tulle_order order)
{
    tulle_dense view = tulle_dense_view(*M);
    tulle_dense_matrix *other = NULL;
    if ((int)view.val_type == type && view.order == order) return END_OK;
    int code = told(s, tulle_dense_convert(s->ctx, &view, order, (tulle_type)type, &other));
    if (code != END_OK) return code;
    tulle_dense_free(*M);
    *M = other;
    return END_OK;
}

static int load_x(session *s, outcome *r)
{
    const options *o = s->o;
    int code = END_OK;
    const tulle_csr *A = &r->a.view;
    int64_t rows = o->product.op_a ? A->rows : A->cols;
    double begun = seconds();
    if (o->operands < 2) {
        r->x_name = "random";
        return random_dense(s, rows, o->columns ? o->columns : 32, (int)A->val_type, (uint64_t)o->seed,
                            &r->x_own);
    }
    if (o->columns) return complain(END_USAGE, "-n is for a random X; \"%s\" has its columns", o->operand[1]);
    if (o->seed && (!o->beta || o->y))
        return complain(END_USAGE, "--seed is for a random X or Y, and none is random");
    r->x_name = o->operand[1];
    GO(dense_load(s, r->x_name, &r->x_own));
    tulle_dense X = tulle_dense_view(r->x_own);
    int type = o->type ? o->type : common_type((int)A->val_type, (int)X.val_type);
    GO(operand_convert(s, &r->a, type));
    GO(convert_dense(s, &r->x_own, type, o->column_major ? TULLE_BY_COLS : X.order));
    r->sec_read = seconds() - begun;
done:
    return code;
}

/* Whether a nonzero factor was rounded to zero. */
static bool lost(number given, number rounded)
{
    return (given.re != 0 && rounded.re == 0) || (given.im != 0 && rounded.im == 0);
}

static double real_of(const char *text, char **end, bool *beyond)
{
    errno = 0;
    double value = strtod(text, end);
    if (errno == ERANGE && (value == 0 || isinf(value))) *beyond = true;
    return value;
}

/* "1.5", or "1.5,-2" for a complex number. */
static int scalar(const char *name, const char *text, int type, double otherwise, void *to, number *value)
{
    char *end = NULL;
    *value = (number){otherwise, 0};
    bool beyond = false;                        /* out of double's range: strtod() gives 0 or infinity */
    if (text) {
        value->re = real_of(text, &end, &beyond);
        bool ok = end != text;
        if (ok && *end == ',') {
            const char *im = end + 1;
            value->im = real_of(im, &end, &beyond);
            ok = end != im;
        }
        if (!ok || *end)
            return complain(END_USAGE, "--%s takes a number such as 1.5, or 1.5,-2 for 1.5-2i, not \"%s\"",
                            name, text);
        if (value->im != 0 && type < TULLE_CF32)
            return complain(END_USAGE, "--%s %s is complex, the matrices are not; --type cf64 makes them so",
                            name, text);
    }
    number given = *value;
    put_value(to, type, 0, given);
    *value = value_at(to, type, 0);             /* rounded to the type */
    if (beyond || (isinf(value->re) && !isinf(given.re)) || (isinf(value->im) && !isinf(given.im))
        || (text && lost(given, *value)))
        return complain(END_USAGE, "--%s %s is out of the range of %s", name, text, type_name(type));
    return END_OK;
}

static int load_y(session *s, outcome *r)
{
    static const char *const names[] = {"A", "A^T", "A^H"};
    const options *o = s->o;
    int code = END_OK, type = (int)r->a.view.val_type;
    int64_t rows = o->product.op_a ? r->a.view.cols : r->a.view.rows;
    r->x = tulle_dense_view(r->x_own);
    int64_t inner = o->product.op_a ? r->a.view.rows : r->a.view.cols;
    if (r->x.rows != inner)             /* checked before Y is allocated, whose size would be wrong, too */
        GO(complain(END_INPUT, "%s is %" PRId64 " x %" PRId64 ", X is %" PRId64 " x %" PRId64
                    ", Y is %" PRId64 " x %" PRId64 ": X should have %" PRId64 " rows",
                    names[o->product.op_a], rows, inner, r->x.rows, r->x.cols, rows, r->x.cols, inner));
    GO(scalar("alpha", o->alpha, type, 1, r->alpha, &r->alpha_value));
    GO(scalar("beta", o->beta, type, 0, r->beta, &r->beta_value));
    bool uses_y = r->beta_value.re != 0 || r->beta_value.im != 0;
    if (o->y && !uses_y) {
        code = complain(END_USAGE, "--y names what --beta multiplies, and beta is 0");
        goto done;
    }
    if (o->seed && o->operands > 1 && (o->y || !uses_y)) {
        code = complain(END_USAGE, "--seed is for random matrices, and there are none");
        goto done;
    }
    GO(told(s, tulle_dense_create(s->ctx, rows, r->x.cols, r->x.order, (tulle_type)type, &r->y_own)));
    r->y = tulle_dense_view(r->y_own);
    if (!uses_y) goto done;
    if (o->y) GO(dense_load(s, o->y, &r->old_own));
    else GO(random_dense(s, rows, r->x.cols, type, (uint64_t)o->seed + 1, &r->old_own));
    GO(convert_dense(s, &r->old_own, type, r->x.order));
    r->old = tulle_dense_view(r->old_own);
    if (r->old.rows != rows || r->old.cols != r->x.cols)
        code = complain(END_INPUT, "%s is %" PRId64 " x %" PRId64 ", and Y, which it stands for, should be %"
                        PRId64 " x %" PRId64 ": %s is %" PRId64 " x %" PRId64 ", X is %" PRId64 " x %" PRId64,
                        o->y, r->old.rows, r->old.cols, rows, r->x.cols, names[o->product.op_a], rows,
                        o->product.op_a ? r->a.view.rows : r->a.view.cols, r->x.rows, r->x.cols);
done:
    return code;
}

/* ---- the product */

/* Parses "8,16,128"; numbers that are 0 or missing are chosen by the library. */
static int shape_of(const options *o, tulle_spmm_lab *lab)
{
    int *const to[] = {&lab->ellr_threads, &lab->ellr_columns, &lab->ellr_block};
    const char *at = o->shape;
    char *end = NULL;
    if (!at) return END_OK;
    if (!o->product.policy || strcmp(o->product.policy, "ellr") != 0)
        return complain(END_USAGE, "--shape belongs to --policy ellr");
    for (int i = 0; i < 3; i++) {
        long n = strtol(at, &end, 10);
        if (end == at || n < 0 || n > 1024 || (*end && (*end != ',' || i == 2)))
            return complain(END_USAGE, "--shape takes up to three numbers such as 8,16,128, not \"%s\"",
                            o->shape);
        *to[i] = (int)n;
        if (!*end) break;
        at = end + 1;
    }
    return END_OK;
}

static int multiply(session *s, outcome *r)
{
    const options *o = s->o;
    int code = END_OK, runs = o->repeat ? o->repeat : 1;
    tulle_spmm_lab lab = {.ellr_threads = 0};
    tulle_spmm_options how = {.policy = o->product.policy, .op_a = o->product.op_a,
                              .memory_limit = o->product.memory_limit,
                              .allow_tf32 = o->allow_tf32, .time_stages = 1, .lab = &lab};
    tulle_stats *stats = malloc((size_t)runs * sizeof *stats);
    if (!stats) return no_memory("the times of all runs");
    GO(shape_of(o, &lab));
    for (int i = 0; i < runs; i++) {
        if (r->old_own)
            memcpy(r->y.values, r->old.values,
                   (size_t)(r->y.rows * r->y.cols) * type_size((int)r->y.val_type));
        GO(told(s, tulle_spmm(s->ctx, r->alpha, &r->a.view, &r->x, r->beta, &r->y, &how)));
        tulle_ctx_stats(s->ctx, &stats[i]);
    }
    r->median = runs_median(stats, runs, &r->stats, &r->best);
done:
    free(stats);
    return code;
}

/* ---- the check */

/* A vector, and for each value the sum of the absolute values that were added up for it. */
typedef struct vector { number *v; double *size; int64_t n; } vector;

static bool vector_make(vector *x, int64_t n)
{
    *x = (vector){calloc((size_t)n + 1, sizeof *x->v), calloc((size_t)n + 1, sizeof *x->size), n};
    return x->v && x->size;
}

static void vector_free(vector *x)
{
    free(x->v);
    free(x->size);
}

/* y += factor * M*w */
static void add_dense(const tulle_dense *M, number factor, vector *y)
{
    for (int64_t i = 0; i < M->rows; i++)
        for (int64_t j = 0; j < M->cols; j++) {
            number w = {1 + 0.5 * random_at(99, (uint64_t)j), 0};
            number v = times(factor, times(value_at(M->values, (int)M->val_type, dense_place(M, i, j)), w));
            y->v[i] = add(y->v[i], v);
            y->size[i] += hypot(v.re, v.im);
        }
}

/* y += op(A)*x */
static void add_sparse(const tulle_csr *A, int op, const vector *x, vector *y)
{
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = csr_row(A, i); k < csr_row(A, i + 1); k++) {
            int64_t c = csr_col(A, k), from = op ? i : c, to = op ? c : i;
            number a = value_at(A->values, (int)A->val_type, k);
            if (op == TULLE_ADJOINT) a.im = -a.im;
            y->v[to] = add(y->v[to], times(a, x->v[from]));
            y->size[to] += hypot(a.re, a.im) * x->size[from];
        }
}

/* y = factor * y */
static void multiply_by(number factor, vector *y)
{
    for (int64_t i = 0; i < y->n; i++) {
        y->v[i] = times(factor, y->v[i]);
        y->size[i] *= hypot(factor.re, factor.im);
    }
}

/* The range of a type: with a sum of absolute values up to `most` no intermediate result overflows, and
 * rounding of subnormal numbers adds an error of less than `least` in total, for any number of products. */
typedef struct range { double most, least; } range;

static range range_of(const outcome *r)
{
    bool narrow = r->y.val_type == TULLE_F32 || r->y.val_type == TULLE_CF32;
    double factor = fmax(1, hypot(r->alpha_value.re, r->alpha_value.im));
    return (range){(narrow ? (double)FLT_MAX : DBL_MAX) / 8,
                   (narrow ? (double)FLT_MIN : DBL_MIN) * factor * (double)r->y.cols};
}

/* The error of row i of Y, relative to the sum of absolute values; infinite for a NaN or infinity where
 * nothing can have overflowed. */
static double error_of(const vector *got, const vector *want, int64_t i, range type)
{
    double d = hypot(got->v[i].re - want->v[i].re, got->v[i].im - want->v[i].im) - type.least;
    double size = fmax(want->size[i], got->size[i]);
    if (d <= 0) return 0;
    return isfinite(d) && isfinite(size) ? d / fmax(size, type.least) : INFINITY;
}

static int check(session *s, outcome *r)
{
    int code = END_OK;
    static const number one = {1, 0};
    vector x = {0}, want = {0}, got = {0};
    bool narrow = r->y.val_type == TULLE_F32 || r->y.val_type == TULLE_CF32;
    bool tf32 = strstr(r->stats.policy, "tf32") != NULL;
    double worst = 0, allowed = tf32 ? 2e-3 : narrow ? 1e-4 : 1e-11;    /* TF32: 2^-10 of the magnitudes */
    const range type = range_of(r);
    if (!vector_make(&x, r->x.rows) || !vector_make(&want, r->y.rows) || !vector_make(&got, r->y.rows)) {
        code = no_memory("the check");
        goto done;
    }
    add_dense(&r->x, one, &x);
    if (r->alpha_value.re != 0 || r->alpha_value.im != 0)       /* else neither A nor X is read */
        add_sparse(&r->a.view, s->o->product.op_a, &x, &want);
    for (int64_t i = 0; i < want.n; i++)
        if (!(want.size[i] <= type.most)) want.size[i] = INFINITY;      /* it may be anything: NaN, too */
    multiply_by(r->alpha_value, &want);
    if (r->old_own) add_dense(&r->old, r->beta_value, &want);
    add_dense(&r->y, one, &got);
    for (int64_t i = 0; i < got.n; i++)
        if (want.size[i] <= type.most) worst = fmax(worst, error_of(&got, &want, i, type));
    r->error = worst;
    r->checked = true;
    r->right = worst <= allowed;
    if (!r->right)
        code = complain(END_CHECK, "Y*w differs from alpha*A*(X*w) + beta*Y*w by %.3g, %.0e is allowed",
                        worst, allowed);
done:
    vector_free(&x);
    vector_free(&want);
    vector_free(&got);
    return code;
}

/* ---- reports */

static void print_report(const options *o, const outcome *r, const char *text)
{
    const tulle_stats *t = &r->stats;
    figure x, y;
    double value = (double)type_size((int)r->y.val_type), index = (double)index_size((int)r->a.view.idx_type);
    double bytes = (double)t->a_nnz * (value + index)
                   + (double)(t->b_nnz + (r->old_own ? 2 : 1) * t->c_nnz) * value;
    print_operand("A", &r->a);
    print_dense("X", r->x_name, &r->x);
    print_dense("Y", text, &r->y);
    printf("\n");
    print_stages(t);
    if (o->repeat > 1)
        printf("repeated %d times in one process: median %s ms, fastest %s ms\n", o->repeat,
               ms_text(x, r->median), ms_text(y, r->best));
    printf("\n%-14s %14s\n", "products", count_text(x, t->products));
    printf("%-14s %14.3f   2 * products / time\n", "GFLOPS", ratio(2e-9 * (double)t->products, r->median));
    printf("%-14s %14.3f   A, X and Y once / time\n", "GB/s", ratio(1e-9 * bytes, r->median));
    printf("%-14s %14s\n", "workspace", bytes_text(x, t->workspace_bytes));
    printf("%-14s %14s   %s, ", "device", t->device, t->isa);
    if (t->threads > 0) printf("%d thread%s, ", t->threads, t->threads == 1 ? "" : "s");
    printf("policy %s\n", t->policy);
    if (r->checked || o->output) printf("\n");
    if (r->checked)
        printf("check: %s; Y*w and alpha*A*(X*w) + beta*Y*w differ by %.1e\n", r->right ? "passed" : "FAILED",
               r->error);
    if (o->output && r->right) printf("written: %s\n", o->output);
}

static void json_member(json *j, const char *key, const char *name, const tulle_dense *M)
{
    json_open(j, key, '{');
    json_text(j, "name", name);
    json_dense(j, M);
    json_close(j, '}');
}

static void json_number(json *j, const char *key, number v)
{
    json_open(j, key, '[');
    json_num(j, NULL, v.re);
    json_num(j, NULL, v.im);
    json_close(j, ']');
}

static void print_json(const options *o, const outcome *r, const char *text)
{
    const tulle_stats *t = &r->stats;
    json j;
    json_begin(&j, "spmm");
    json_text(&j, "device", t->device);
    json_text(&j, "isa", t->isa);
    json_int(&j, "threads", t->threads);
    json_text(&j, "policy", t->policy);
    json_text(&j, "product", text);
    json_number(&j, "alpha", r->alpha_value);
    json_number(&j, "beta", r->beta_value);
    json_operand(&j, "a", &r->a);
    json_member(&j, "x", r->x_name, &r->x);
    json_member(&j, "y", text, &r->y);
    json_open(&j, "seconds", '{');
    json_num(&j, "compile", t->sec_compile);
    json_num(&j, "check", t->sec_check);
    json_num(&j, "analyze", t->sec_analyze);
    json_num(&j, "numeric", t->sec_numeric);
    json_num(&j, "total", t->sec_total);
    json_close(&j, '}');
    json_int(&j, "repeat", o->repeat ? o->repeat : 1);
    json_num(&j, "sec_median", r->median);
    json_num(&j, "sec_min", r->best);
    json_int(&j, "products", t->products);
    json_num(&j, "gflops", ratio(2e-9 * (double)t->products, r->median));
    json_int(&j, "workspace_bytes", (int64_t)t->workspace_bytes);
    if (r->checked) json_check(&j, r->right, r->error);
    if (o->output && r->right) json_output(&j, o->output, r->sec_write);
    json_end(&j);
}

int run_spmm(const options *o)
{
    static const char *const texts[] = {"A*X", "A^T*X", "A^H*X"};      /* tulle_op */
    int code = END_OK;
    session s = {0};
    outcome r = {.right = true};
    tulle_spmm_lab shape;
    GO(check_spmm_policy(o));
    GO(shape_of(o, &shape));
    GO(output_name(o->output, DENSE_FILE));
    GO(session_open(&s, o));
    GO(output_place(&s, o->output));
    GO(operand_load(&s, o->operand[0], &r.a));
    GO(load_x(&s, &r));
    GO(load_y(&s, &r));
    GO(multiply(&s, &r));
    if (o->check) code = check(&s, &r);
    if (code == END_OK && o->output) {
        double begun = seconds();
        code = told(&s, tulle_dense_write(s.ctx, o->output, &r.y));
        r.sec_write = seconds() - begun;
    }
    if (code != END_OK && code != END_CHECK) goto done;
    progress_erase(&s.bar);
    if (o->json) print_json(o, &r, texts[o->product.op_a]);
    else if (!o->quiet) print_report(o, &r, texts[o->product.op_a]);
done:
    tulle_dense_free(r.x_own);
    tulle_dense_free(r.y_own);
    tulle_dense_free(r.old_own);
    operand_free(&r.a);
    session_close(&s);
    return code;
}
