/* SPDX-License-Identifier: MIT
 *
 * bench.c - `tulle bench`: repeats the same product, for each operand and each policy.  The first runs are
 * warm-up and are not counted; the table shows the median and the fastest of the others.  On a GPU the
 * operands are moved to its memory before, and C stays there; with CUDA, cuSPARSE is timed as well, if it is
 * found. */
#include "cusparse.h"
#include "program.h"
#include <stdlib.h>
#include <string.h>

enum { POLICIES_MAX = 64, RUNS = 5 };

typedef struct timing {
    const char *matrix, *policy;
    char        product[24];
    double      median, best, error;
    tulle_csr   a, c;                   /* shapes and types only            */
    tulle_stats stats;                  /* of the last run                  */
    tulle_stats staged;                 /* of one more run with --stages    */
    const cusparse_result *peer;        /* NULL: not on CUDA                */
} timing;

typedef struct timings {
    timing          *line;
    cusparse_result *peer;              /* one per operand                  */
    int              count;
} timings;

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The names in --policies that are also policies of the library, in the library's order. */
static int chosen_policies(const char *words, const char *policy[POLICIES_MAX])
{
    int count = 0;
    for (int i = 0; tulle_policy_name(i) && count < POLICIES_MAX; i++) {
        const char *name = tulle_policy_name(i);
        size_t n = strlen(name);
        bool wanted = words ? strcmp(words, "all") == 0 : i == 0;
        for (const char *at = words; at && !wanted; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
            wanted = strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == 0);
        if (wanted) policy[count++] = name;
    }
    return count;
}

/* ---- operands on a device: prepared and moved once, before the timing */

static int ready(session *s, tulle_csr *view, const char *name, int op, bool sort, tulle_matrix **own)
{
    int code = END_OK;
    tulle_matrix *next = NULL;
    tulle_csr v = *view;
    *own = NULL;
    if (sort) {
        GO(told(s, tulle_csr_sort(s->ctx, &v, &next)));
        *own = next;
        v = tulle_matrix_view(next);
    }
    if (op != TULLE_KEEP) {
        GO(told(s, tulle_csr_transpose(s->ctx, &v, (tulle_op)op, &next)));
        tulle_matrix_free(*own);
        *own = next;
        v = tulle_matrix_view(next);
    }
    GO(told(s, tulle_csr_check(s->ctx, &v)));
    GO(told(s, tulle_csr_move(s->ctx, &v, TULLE_DEVICE, &next)));
    tulle_matrix_free(*own);
    *own = next;
    *view = tulle_matrix_view(next);
done:
    if (code != END_OK) complain(code, "%s did not get to the device", name);
    return code;
}

int work_make(session *s, const pair *p, work *w)
{
    int code = END_OK;
    tulle_options *o = &w->options;
    *w = (work){.a = p->a.view, .b = p->b.view, .options = p->options};
    o->time_stages = 0;
    if (!session_on_gpu(s)) return END_OK;
    bool twice = !p->b.matrix && o->op_a == o->op_b;
    GO(ready(s, &w->a, p->a.name, o->op_a, o->sort_inputs, &w->own_a));
    if (twice) w->b = w->a;
    else GO(ready(s, &w->b, p->b.name, o->op_b, o->sort_inputs, &w->own_b));
    o->op_a = o->op_b = TULLE_KEEP;
    o->sort_inputs = 0;
    o->trust_inputs = 1;                /* they were already checked     */
    o->c_place = TULLE_DEVICE;
done:
    return code;
}

void work_free(work *w)
{
    tulle_matrix_free(w->own_a);
    tulle_matrix_free(w->own_b);
    *w = (work){.own_a = NULL};
}

/* ---- times */

static int time_one(session *s, const pair *p, const work *w, const char *policy, timing *t)
{
    int code = END_OK, runs = s->o->repeat ? s->o->repeat : RUNS;
    tulle_matrix *c = NULL;
    tulle_options o = w->options;
    double *sec = malloc((size_t)runs * sizeof *sec);
    *t = (timing){.matrix = p->a.name, .policy = policy, .a = w->a};
    memcpy(t->product, p->text, sizeof t->product);
    if (!sec) return no_memory("the times of all runs");
    o.policy = policy;
    for (int i = session_on_gpu(s) ? -2 : -1; i < runs; i++) { /* warm-up: kernels are loaded, then memory */
        tulle_matrix_free(c);
        c = NULL;
        GO(told(s, tulle_multiply(s->ctx, &w->a, &w->b, &o, &c)));
        tulle_ctx_stats(s->ctx, &t->stats);
        if (i >= 0) sec[i] = t->stats.sec_total;
    }
    qsort(sec, (size_t)runs, sizeof *sec, by_size);
    t->best = sec[0];
    t->median = runs % 2 ? sec[runs / 2] : 0.5 * (sec[runs / 2] + sec[runs / 2 - 1]);
    t->c = tulle_matrix_view(c);
    if (s->o->check)
        GO(told(s, tulle_product_check(s->ctx, &w->a, &w->b, &t->c, &o, &t->error)));
    if (s->o->product.time_stages) {
        tulle_matrix_free(c);
        c = NULL;
        o.time_stages = 1;
        GO(told(s, tulle_multiply(s->ctx, &w->a, &w->b, &o, &c)));
        tulle_ctx_stats(s->ctx, &t->staged);
    }
done:
    tulle_matrix_free(c);
    free(sec);
    return code;
}

/* Times cuSPARSE with the same operands; NULL if the device is not a CUDA device. */
static const cusparse_result *time_peer(const session *s, const work *w, cusparse_result *peer)
{
    const char *device = tulle_ctx_device(s->ctx);
    if (strncmp(device, "cuda:", 5) != 0) return NULL;
    tulle_ctx_trim(s->ctx);             /* so that cuSPARSE can use the memory that tulle keeps */
    cusparse_time(&w->a, &w->b, atoi(device + 5), 2, s->o->repeat ? s->o->repeat : RUNS, peer);
    return peer;
}

/* ---- reports */

static void print_head(const session *s)
{
    if (session_on_gpu(s)) printf("on %s, operands and C in its memory\n", tulle_ctx_device(s->ctx));
    printf("%-24s %-6s %-10s %16s %7s %12s %12s %8s %12s %12s\n", "matrix", "", "policy", "products",
           "compr.", "median ms", "fastest ms", "GFLOPS", "peak memory", "workspace");
}

static void print_line(const timing *t)
{
    figure products, median, best, peak, workspace;
    printf("%-24s %-6s %-10s %16s %7.2f %12s %12s %8.3f %12s %12s\n", t->matrix, t->product, t->policy,
           count_text(products, t->stats.products), ratio((double)t->stats.products, (double)t->c.nnz),
           ms_text(median, t->median), ms_text(best, t->best),
           ratio(2e-9 * (double)t->stats.products, t->median), bytes_text(peak, t->stats.peak_bytes),
           bytes_text(workspace, t->stats.workspace_bytes));
    if (t->staged.stages > 0) {
        printf("\n");
        print_stages(&t->staged);
        printf("\n");
    }
    fflush(stdout);
}

static void print_peer(const timing *t)
{
    figure products, median, best, workspace;
    if (!t->peer) return;
    const cusparse_line *l = t->peer->best >= 0 ? &t->peer->line[t->peer->best] : NULL;
    if (!l) {
        printf("%-24s %-6s %-10s %s\n", t->matrix, t->product, "cuSPARSE", t->peer->why[0] ? t->peer->why
               : t->peer->line[0].why);
        return;
    }
    printf("%-24s %-6s %-10s %16s %7.2f %12s %12s %8.3f %12s %12s   %s\n", t->matrix, t->product, "cuSPARSE",
           count_text(products, t->stats.products), ratio((double)t->stats.products, (double)l->c_nnz),
           ms_text(median, 1e-3 * l->ms), ms_text(best, 1e-3 * l->best_ms),
           ratio(2e-6 * (double)t->stats.products, l->ms), "", bytes_text(workspace, l->buffer_bytes),
           l->name);
    fflush(stdout);
}

static void json_peer(json *j, const cusparse_result *peer)
{
    if (!peer) return;
    json_open(j, "cusparse", '{');
    if (peer->version[0]) json_text(j, "version", peer->version);
    if (peer->best >= 0) {
        json_num(j, "ms", peer->line[peer->best].ms);
        json_text(j, "algorithm", peer->line[peer->best].name);
        json_int(j, "c_nnz", peer->line[peer->best].c_nnz);
    }
    if (peer->why[0]) json_text(j, "why_not", peer->why);
    json_open(j, "algorithms", '[');
    for (int i = 0; i < CUSPARSE_ALGORITHMS; i++) {
        const cusparse_line *l = &peer->line[i];
        if (!l->name || (l->ms <= 0 && !l->why[0])) continue;
        json_open(j, NULL, '{');
        json_text(j, "algorithm", l->name);
        if (l->ms > 0) {
            json_num(j, "ms", l->ms);
            json_num(j, "ms_min", l->best_ms);
            json_int(j, "buffer_bytes", (int64_t)l->buffer_bytes);
        } else {
            json_text(j, "why_not", l->why);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void json_line(json *j, const options *o, const timing *t)
{
    json_open(j, NULL, '{');
    json_text(j, "matrix", t->matrix);
    json_text(j, "operation", t->product);
    json_text(j, "policy", t->policy);
    json_text(j, "type", type_name((int)t->a.val_type));
    json_text(j, "index", index_name((int)t->a.idx_type));
    json_text(j, "device", t->stats.device);
    json_text(j, "isa", t->stats.isa);
    json_int(j, "threads", t->stats.threads);
    json_int(j, "waits", t->stats.waits);
    json_int(j, "products", t->stats.products);
    json_int(j, "c_nnz", t->c.nnz);
    json_num(j, "ms", 1e3 * t->median);
    json_num(j, "ms_min", 1e3 * t->best);
    json_num(j, "gflops", ratio(2e-9 * (double)t->stats.products, t->median));
    if (t->staged.stages > 0) json_stages(j, &t->staged);
    json_int(j, "peak_bytes", (int64_t)t->stats.peak_bytes);
    json_int(j, "workspace_bytes", (int64_t)t->stats.workspace_bytes);
    json_int(j, "a_bytes", (int64_t)csr_bytes(&t->a));
    json_int(j, "c_bytes", (int64_t)csr_bytes(&t->c));
    if (o->check) json_num(j, "error", t->error);
    json_shares(j, t->stats.share, t->stats.shares);
    json_peer(j, t->peer);
    json_close(j, '}');
}

static void print_json(const options *o, const timings *all)
{
    json j;
    json_begin(&j, "bench");
    json_int(&j, "repeat", o->repeat ? o->repeat : RUNS);
    json_open(&j, "timings", '[');
    for (int i = 0; i < all->count; i++) json_line(&j, o, &all->line[i]);
    json_close(&j, ']');
    json_end(&j);
}

static int bench_products(const options *o)
{
    int code = END_OK;
    session s = {0};
    pair p = {0};
    work w = {.own_a = NULL};
    timings all = {0};
    const char *policy[POLICIES_MAX];
    GO(check_names(o));
    int policies = chosen_policies(o->policies, policy);
    all.line = calloc((size_t)(policies * o->operands), sizeof *all.line);
    all.peer = calloc((size_t)o->operands, sizeof *all.peer);
    if (!all.line || !all.peer) {
        code = no_memory("the table of times");
        goto done;
    }
    GO(session_open(&s, o));
    if (!o->json && !o->quiet) print_head(&s);
    for (int i = 0; i < o->operands; i++) {
        GO(pair_load(&s, o->operand[i], NULL, &p));
        GO(work_make(&s, &p, &w));
        const cusparse_result *peer = time_peer(&s, &w, &all.peer[i]);
        for (int k = 0; k < policies; k++) {
            timing *t = &all.line[all.count];
            GO(time_one(&s, &p, &w, policy[k], t));
            t->peer = peer;
            all.count++;
            if (o->json || o->quiet) continue;
            print_line(t);
            if (k == policies - 1) print_peer(t);
        }
        work_free(&w);
        pair_free(&p);
    }
    if (o->json) print_json(o, &all);
done:
    free(all.line);
    free(all.peer);
    work_free(&w);
    pair_free(&p);
    session_close(&s);
    return code;
}

/* ---- the first word may name another benchmark; a file of that name is ./merges */

static const struct {
    const char *word;
    int       (*run)(const options *o);         /* its operands are those after the word */
    int         least, most;
    const char *operands;
    unsigned    bit;
} kinds[] = {
    {"merges", bench_merges, 0, 0, "", FOR_MERGES},
    {"memory", bench_memory, 1, OPERANDS_MAX, " A...", FOR_MEMORY},
    {"accumulators", bench_accumulators, 0, 0, "", FOR_ACCUMULATORS},
    {"scaling", bench_scaling, 1, OPERANDS_MAX, " A...", FOR_SCALING},
};

int run_bench(const options *o)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(o->operand[0], kinds[i].word) != 0) continue;
        options rest = *o;
        rest.operands--;
        memmove(rest.operand, rest.operand + 1, (size_t)rest.operands * sizeof *rest.operand);
        if (rest.operands > kinds[i].most)
            return complain(END_USAGE, "bench %s: \"%s\" is one operand too many; usage: tulle bench %s%s",
                            kinds[i].word, rest.operand[kinds[i].most], kinds[i].word, kinds[i].operands);
        if (rest.operands < kinds[i].least)
            return complain(END_USAGE, "bench %s needs an operand; usage: tulle bench %s%s", kinds[i].word,
                            kinds[i].word, kinds[i].operands);
        char name[32];
        snprintf(name, sizeof name, "bench %s", kinds[i].word);
        int code = check_given(o, kinds[i].bit, name);
        return code == END_OK ? kinds[i].run(&rest) : code;
    }
    int code = check_given(o, FOR_TIMES, "bench of products");
    return code == END_OK ? bench_products(o) : code;
}
