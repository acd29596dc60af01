/* SPDX-License-Identifier: MIT
 *
 * info.c - `tulle info`: properties of a matrix, by one pass over its entries, one transpose to test
 * symmetry, and an estimate of its product.  If there is too little memory for one of the last two, it says
 * so instead.  .npy files are handled by dense.c. */
#include "program.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 64 };             /* row lengths: 0, 1, 2-3, 4-7, ... */

typedef struct facts {
    int64_t  shortest, longest, empty, lower, upper, diagonal;
    int64_t  bin[BINS];
    bool     square, symmetric_pattern, symmetric;
    uint64_t bytes;
    tulle_forecast forecast;
    char     product[24];
    char     no_symmetry[512], no_product[512];         /* why these are not known; empty: they are */
} facts;

static int bin_of(int64_t length)
{
    int bin = 0;
    while (length > 0) {
        length >>= 1;
        bin++;
    }
    return bin;
}

static void look_at_rows(const tulle_csr *A, facts *f)
{
    f->shortest = A->rows ? INT64_MAX : 0;
    for (int64_t i = 0; i < A->rows; i++) {
        int64_t begin = csr_row(A, i), end = csr_row(A, i + 1), length = end - begin;
        if (length < f->shortest) f->shortest = length;
        if (length > f->longest) f->longest = length;
        f->empty += length == 0;
        f->bin[bin_of(length)]++;
        for (int64_t k = begin; k < end; k++) {
            int64_t d = csr_col(A, k) - i;
            if (d > f->upper) f->upper = d;
            if (-d > f->lower) f->lower = -d;
            f->diagonal += d == 0;
        }
    }
}

/* If one part fails for lack of memory, `info` still shows the others. */
static int unless_too_large(session *s, tulle_status status, char *why, size_t bytes)
{
    if (status != TULLE_ENOMEM && status != TULLE_ELIMIT) return told(s, status);
    snprintf(why, bytes, "%s", tulle_ctx_error(s->ctx));
    return END_OK;
}

static int look_at_symmetry(session *s, const tulle_csr *A, facts *f)
{
    tulle_matrix *transposed = NULL;
    int code = END_OK;
    if (!f->square) return END_OK;
    GO(unless_too_large(s, tulle_csr_transpose(s->ctx, A, TULLE_TRANSPOSE, &transposed), f->no_symmetry,
                        sizeof f->no_symmetry));
    if (!transposed) goto done;
    tulle_csr T = tulle_matrix_view(transposed);
    bool same = true;
    for (int64_t i = 0; same && i <= A->rows; i++) same = csr_row(A, i) == csr_row(&T, i);
    for (int64_t k = 0; same && k < A->nnz; k++) same = csr_col(A, k) == csr_col(&T, k);
    f->symmetric_pattern = same;
    size_t bytes = (size_t)A->nnz * type_size((int)A->val_type);
    f->symmetric = same && (bytes == 0 || memcmp(A->values, T.values, bytes) == 0);
done:
    tulle_matrix_free(transposed);
    return code;
}

static int look_at_product(session *s, const tulle_csr *A, facts *f)
{
    tulle_options o = {.op_b = f->square ? TULLE_KEEP : TULLE_TRANSPOSE};
    strcpy(f->product, f->square ? "A*A" : "A*A^T");
    return unless_too_large(s, tulle_estimate(s->ctx, A, A, &o, &f->forecast), f->no_product,
                            sizeof f->no_product);
}

static void bin_name(figure t, int bin)
{
    int64_t low = bin == 0 ? 0 : (int64_t)1 << (bin - 1), high = 2 * low - 1;
    figure a, b;
    if (bin < 2) snprintf(t, sizeof(figure), "%" PRId64, low);
    else snprintf(t, sizeof(figure), "%.20s-%.20s", count_text(a, low), count_text(b, high));
}

static void print_report(const operand *a, const facts *f)
{
    const tulle_csr *A = &a->view;
    int64_t most = 0;
    figure x, y, z;
    print_operand("A", a);
    printf("\n");
    printf("%-16s %s in a row on average, %s to %s\n", "entries",
           (snprintf(x, sizeof x, "%.2f", ratio((double)A->nnz, (double)A->rows)), x),
           count_text(y, f->shortest), count_text(z, f->longest));
    printf("%-16s %.3g%%\n", "density", 100 * ratio((double)A->nnz, (double)A->rows * (double)A->cols));
    printf("%-16s %s\n", "empty rows", count_text(x, f->empty));
    printf("%-16s %s below and %s above the diagonal, %s on it\n", "bandwidth", count_text(x, f->lower),
           count_text(y, f->upper), count_text(z, f->diagonal));
    if (f->no_symmetry[0]) printf("%-16s not known: %s\n", "symmetric", f->no_symmetry);
    else printf("%-16s %s\n", "symmetric", !f->square ? "no, not square" : f->symmetric ? "yes"
                : f->symmetric_pattern ? "the pattern is, the values are not" : "no");
    printf("%-16s %s\n", "memory", bytes_text(x, f->bytes));
    if (f->no_product[0]) printf("%-16s not known: %s\n", f->product, f->no_product);
    else printf("%-16s %s products, about %s entries\n", f->product, count_text(x, f->forecast.products),
                count_text(y, f->forecast.nnz_estimate));
    printf("\n%-16s %14s\n", "entries in a row", "rows");
    for (int b = 0; b < BINS; b++) most = f->bin[b] > most ? f->bin[b] : most;
    for (int b = 0; b < BINS; b++) {
        static const char bar[] = "########################################";
        if (!f->bin[b]) continue;
        bin_name(x, b);
        int length = (int)(0.5 + 40 * ratio((double)f->bin[b], (double)most));
        printf("%-16s %14s %7s  %.*s\n", x, count_text(y, f->bin[b]),
               percent_text(z, (double)f->bin[b], (double)A->rows), length > 0 ? length : 1, bar);
    }
}

static void print_json(const operand *a, const facts *f)
{
    const tulle_csr *A = &a->view;
    json j;
    json_begin(&j, "info");
    json_text(&j, "name", a->name);
    json_csr(&j, A);
    json_int(&j, "row_min", f->shortest);
    json_num(&j, "row_mean", ratio((double)A->nnz, (double)A->rows));
    json_int(&j, "row_max", f->longest);
    json_int(&j, "empty_rows", f->empty);
    json_int(&j, "bandwidth_lower", f->lower);
    json_int(&j, "bandwidth_upper", f->upper);
    json_int(&j, "diagonal", f->diagonal);
    if (f->no_symmetry[0]) json_text(&j, "symmetric_unknown", f->no_symmetry);
    else {
        json_bool(&j, "symmetric_pattern", f->symmetric_pattern);
        json_bool(&j, "symmetric", f->symmetric);
    }
    json_int(&j, "bytes", (int64_t)f->bytes);
    json_text(&j, "product", f->product);
    if (f->no_product[0]) json_text(&j, "product_unknown", f->no_product);
    else {
        json_int(&j, "products", f->forecast.products);
        json_int(&j, "nnz_estimate", f->forecast.nnz_estimate);
    }
    json_open(&j, "row_lengths", '[');
    for (int b = 0; b < BINS; b++) {
        if (!f->bin[b]) continue;
        json_open(&j, NULL, '{');
        json_int(&j, "from", b == 0 ? 0 : (int64_t)1 << (b - 1));
        json_int(&j, "to", b == 0 ? 0 : ((int64_t)1 << (b - 1)) * 2 - 1);
        json_int(&j, "rows", f->bin[b]);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

int run_info(const options *o)
{
    int code = END_OK;
    session s = {0};
    operand a = {0};
    facts f = {0};
    GO(session_open(&s, o));
    if (is_npy(path_of(o->operand[0]))) {
        if (o->type || o->index || o->map)
            code = complain(END_USAGE, "--type, --index and --map are for sparse matrices, and \"%s\" is "
                            "dense", o->operand[0]);
        else code = info_dense(&s, o->operand[0]);
        goto done;
    }
    GO(operand_load(&s, o->operand[0], &a));
    const tulle_csr *A = &a.view;
    f.square = A->rows == A->cols;
    f.bytes = csr_bytes(A);
    look_at_rows(A, &f);
    GO(look_at_symmetry(&s, A, &f));
    GO(look_at_product(&s, A, &f));
    progress_erase(&s.bar);
    if (o->json) print_json(&a, &f);
    else if (!o->quiet) print_report(&a, &f);
done:
    operand_free(&a);
    session_close(&s);
    return code;
}
