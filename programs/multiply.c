/* SPDX-License-Identifier: MIT
 *
 * multiply.c - `tulle multiply`: one product, its stages, its check, its file.
 *
 * If a product does not fit in the memory limit, or C in the memory of the machine, it is computed and
 * written block by block, where the output format allows that; the table then says that there are no stages
 * to show. */
#include "program.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct outcome {
    pair          p;
    tulle_csr     c;
    tulle_matrix *matrix;           /* NULL when C went to its file in blocks */
    tulle_stats   stats;            /* of the median run                      */
    int64_t       blocks;
    double        median, best;     /* seconds */
    double        sec_write, error;
    bool          checked, right;
} outcome;

/* Whether a product that failed for lack of memory can be written in blocks to this file. */
static bool to_blocks(tulle_status status, const char *output)
{
    return (status == TULLE_ELIMIT || status == TULLE_ENOMEM) && output
        && (ends_with(output, ".mtx") || ends_with(output, ".tulle"));
}

static int multiply_blocks(session *s, outcome *r)
{
    streamed t;
    int code = stream_product(s, &r->p, s->o->output, s->o->check, &t);
    if (code != END_OK && code != END_CHECK) return code;
    r->c = t.shape;
    r->stats = t.stats;
    r->blocks = t.blocks;
    r->sec_write = t.sec_write;
    r->error = t.error;
    r->checked = s->o->check;
    r->right = code == END_OK;
    r->median = r->best = t.stats.sec_total;
    return code;
}

static int multiply(session *s, outcome *r)
{
    const options *o = s->o;
    int code = END_OK, runs = o->repeat ? o->repeat : 1;
    tulle_stats *stats = malloc((size_t)runs * sizeof *stats);
    if (!stats) return no_memory("the times of all runs");
    for (int i = 0; i < runs; i++) {
        tulle_matrix_free(r->matrix);
        r->matrix = NULL;
        tulle_status status = tulle_multiply(s->ctx, &r->p.a.view, &r->p.b.view, &r->p.options,
                                             &r->matrix);
        /* blocks are written before the whole C is known, so its symmetry cannot be checked */
        if (to_blocks(status, o->output) && !o->symmetric) {
            code = multiply_blocks(s, r);
            goto done;
        }
        GO(told(s, status));
        tulle_ctx_stats(s->ctx, &stats[i]);
    }
    r->median = runs_median(stats, runs, &r->stats, &r->best);
    r->c = tulle_matrix_view(r->matrix);
done:
    free(stats);
    return code;
}

static int check(session *s, outcome *r)
{
    tulle_status status = tulle_product_check(s->ctx, &r->p.a.view, &r->p.b.view, &r->c, &r->p.options,
                                              &r->error);
    r->checked = true;
    r->right = status == TULLE_OK;
    return told(s, status);
}

/* ---- reports */

static void print_report(const options *o, const outcome *r)
{
    const tulle_stats *t = &r->stats;
    figure x, y;
    operand c = {.name = r->p.text, .view = r->c};
    print_operand("A", &r->p.a);
    if (r->p.b.matrix) print_operand("B", &r->p.b);
    print_operand("C", &c);
    printf("\n");
    print_stages(t);
    if (o->repeat > 1 && !r->blocks)
        printf("repeated %d times in one process: median %s ms, fastest %s ms\n", o->repeat,
               ms_text(x, r->median), ms_text(y, r->best));
    printf("\n%-14s %14s\n", "products", count_text(x, t->products));
    printf("%-14s %14.3f   2 * products / time\n", "GFLOPS",
           ratio(2e-9 * (double)t->products, r->median));
    printf("%-14s %14.2f   products for one entry of C\n", "compression",
           ratio((double)t->products, (double)r->c.nnz));
    printf("%-14s %14s   of which %s workspace\n", "peak memory", bytes_text(x, t->peak_bytes),
           bytes_text(y, t->workspace_bytes));
    printf("%-14s %14s   %s, ", "device", t->device, t->isa);
    if (t->threads > 0) printf("%d thread%s, ", t->threads, t->threads == 1 ? "" : "s");
    printf("policy %s\n", t->policy);
    if (r->blocks)
        printf("%-14s %14s   C does not fit the memory limit\n", "blocks", count_text(x, r->blocks));
    printf("\n");
    print_shares(t->share, t->shares);
    if (r->checked || o->output) printf("\n");
    if (r->checked)
        printf("check: %s; C*x and A*(B*x) differ by %.1e\n", r->right ? "passed" : "FAILED", r->error);
    if (o->output && r->right) printf("written: %s\n", o->output);
}

static void print_json(const options *o, const outcome *r)
{
    const tulle_stats *t = &r->stats;
    json j;
    json_begin(&j, "multiply");
    json_text(&j, "device", t->device);
    json_text(&j, "isa", t->isa);
    json_int(&j, "threads", t->threads);
    json_text(&j, "policy", t->policy);
    json_text(&j, "product", r->p.text);
    json_operand(&j, "a", &r->p.a);
    json_operand(&j, "b", &r->p.b);
    json_open(&j, "c", '{');
    json_csr(&j, &r->c);
    json_close(&j, '}');
    json_open(&j, "seconds", '{');
    json_num(&j, "compile", t->sec_compile);
    json_num(&j, "upload", t->sec_upload);
    json_num(&j, "check", t->sec_check);
    json_num(&j, "analyze", t->sec_analyze);
    json_num(&j, "symbolic", t->sec_symbolic);
    json_num(&j, "numeric", t->sec_numeric);
    json_num(&j, "download", t->sec_download);
    json_num(&j, "finish", t->sec_finish);
    json_num(&j, "total", t->sec_total);
    json_close(&j, '}');
    if (t->stages > 0) json_stages(&j, t);
    json_int(&j, "waits", t->waits);
    json_int(&j, "repeat", o->repeat ? o->repeat : 1);
    json_num(&j, "sec_median", r->median);
    json_num(&j, "sec_min", r->best);
    json_int(&j, "products", t->products);
    json_num(&j, "gflops", ratio(2e-9 * (double)t->products, r->median));
    json_num(&j, "compression", ratio((double)t->products, (double)r->c.nnz));
    json_int(&j, "peak_bytes", (int64_t)t->peak_bytes);
    json_int(&j, "workspace_bytes", (int64_t)t->workspace_bytes);
    json_int(&j, "blocks", r->blocks ? r->blocks : 1);
    json_shares(&j, t->share, t->shares);
    if (r->checked) json_check(&j, r->right, r->error);
    if (o->output && r->right) json_output(&j, o->output, r->sec_write);
    json_end(&j);
}

int run_multiply(const options *o)
{
    int code = END_OK;
    session s = {0};
    outcome r = {.right = true};
    if (ranks_launched()) return multiply_ranks(o);
    GO(check_names(o));
    GO(output_name(o->output, MATRIX_FILE));
    GO(output_symmetric(o, o->output));
    GO(session_open(&s, o));
    GO(output_place(&s, o->output));
    GO(pair_load(&s, o->operand[0], o->operands > 1 ? o->operand[1] : NULL, &r.p));
    code = multiply(&s, &r);
    if (code == END_OK && o->check && !r.blocks) code = check(&s, &r);
    if (code == END_OK && o->output && !r.blocks) code = output_write(&s, o->output, &r.c, &r.sec_write);
    if (code != END_OK && code != END_CHECK) goto done;
    if (o->json) print_json(o, &r);
    else if (!o->quiet) print_report(o, &r);
done:
    tulle_matrix_free(r.matrix);
    pair_free(&r.p);
    session_close(&s);
    return code;
}
