/* SPDX-License-Identifier: MIT
 *
 * bench_memory.c - `tulle bench memory`: the memory of a product with three ways to allocate C, as in
 * bhSPARSE's Figure 5 (Liu and Vinter, IPDPS 2014).
 *
 *     precise      A, B and C: the entries of C are counted first
 *     hybrid       A, B and the peak of policy bhsparse on the GPU, C included; measured
 *     upper bound  A, B, one entry for each product, and C
 *
 * A and B count as two matrices even if they are the same.  Without a GPU the hybrid way is left out. */
#include "program.h"
#include <stdlib.h>

typedef struct line {
    const char *matrix;
    char        product[24];
    int64_t     products, c_nnz;
    uint64_t    a, b, c, hybrid, products_bytes;        /* hybrid: the peak, 0 where it was not measured */
} line;

static uint64_t precise(const line *l) { return l->a + l->b + l->c; }
static uint64_t hybrid(const line *l) { return l->a + l->b + l->hybrid; }
static uint64_t upper(const line *l) { return precise(l) + l->products_bytes; }

static const char no_gpu[] = "the hybrid way runs on a GPU, and this is the CPU";

/* Bytes of an operand as the product sees it. */
static uint64_t bytes_as(tulle_csr A, int op)
{
    if (op != TULLE_KEEP) A.rows = A.cols;
    return csr_bytes(&A);
}

static int measure(session *s, const pair *p, line *l)
{
    int code = END_OK;
    work w = {.own_a = NULL};
    tulle_matrix *C = NULL;
    tulle_stats stats;
    GO(work_make(s, p, &w));
    tulle_options o = w.options;
    o.policy = session_on_gpu(s) ? "bhsparse" : NULL;
    o.accumulator = NULL;
    GO(told(s, tulle_multiply(s->ctx, &w.a, &w.b, &o, &C)));
    tulle_ctx_stats(s->ctx, &stats);
    tulle_csr c = tulle_matrix_view(C);
    *l = (line){.matrix = p->a.name, .products = stats.products, .c_nnz = c.nnz, .a = bytes_as(w.a, o.op_a),
                .b = bytes_as(w.b, o.op_b), .c = csr_bytes(&c),
                .hybrid = session_on_gpu(s) ? stats.peak_bytes : 0};
    tulle_csr all = c;                  /* C with one entry per product */
    all.nnz = stats.products;
    l->products_bytes = csr_bytes(&all);
    snprintf(l->product, sizeof l->product, "%s", p->text);
done:
    tulle_matrix_free(C);
    work_free(&w);
    return code;
}

static void print_head(void)
{
    printf("%-24s %-6s %16s %7s %14s %14s %14s %14s\n", "matrix", "", "products", "compr.", "precise",
           "hybrid", "upper bound", "hybrid/precise");
}

static void print_line(const line *l)
{
    figure products, first, second, third;
    printf("%-24s %-6s %16s %7.2f %14s ", l->matrix, l->product, count_text(products, l->products),
           ratio((double)l->products, (double)l->c_nnz), bytes_text(first, precise(l)));
    printf("%14s %14s ", l->hybrid ? bytes_text(second, hybrid(l)) : "-", bytes_text(third, upper(l)));
    if (l->hybrid) printf("%14.2f\n", ratio((double)hybrid(l), (double)precise(l)));
    else printf("%14s\n", "-");
    fflush(stdout);
}

static void print_json(const session *s, const line *lines, int count)
{
    json j;
    json_begin(&j, "bench memory");
    json_text(&j, "device", tulle_ctx_device(s->ctx));
    if (!session_on_gpu(s)) json_text(&j, "hybrid_why_not", no_gpu);
    json_open(&j, "matrices", '[');
    for (int i = 0; i < count; i++) {
        const line *l = &lines[i];
        json_open(&j, NULL, '{');
        json_text(&j, "matrix", l->matrix);
        json_text(&j, "operation", l->product);
        json_int(&j, "products", l->products);
        json_int(&j, "c_nnz", l->c_nnz);
        json_int(&j, "a_bytes", (int64_t)l->a);
        json_int(&j, "b_bytes", (int64_t)l->b);
        json_int(&j, "c_bytes", (int64_t)l->c);
        json_int(&j, "precise_bytes", (int64_t)precise(l));
        if (l->hybrid) json_int(&j, "hybrid_bytes", (int64_t)hybrid(l));
        json_int(&j, "upper_bound_bytes", (int64_t)upper(l));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

int bench_memory(const options *o)
{
    int code = END_OK;
    session s = {0};
    pair p = {0};
    bool table = !o->json && !o->quiet;
    line *lines = calloc((size_t)o->operands, sizeof *lines);
    if (!lines) return no_memory("the table of bytes");
    GO(session_open(&s, o));
    if (table) print_head();
    for (int i = 0; i < o->operands; i++) {
        GO(pair_load(&s, o->operand[i], NULL, &p));
        GO(measure(&s, &p, &lines[i]));
        pair_free(&p);
        if (table) print_line(&lines[i]);
    }
    if (table && !session_on_gpu(&s)) printf("%s\n", no_gpu);
    if (o->json) print_json(&s, lines, o->operands);
done:
    pair_free(&p);
    session_close(&s);
    free(lines);
    return code;
}
