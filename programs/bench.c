/* SPDX-License-Identifier: MIT
 *
 * bench.c - `tulle bench`: the same product again and again, for each operand and each policy.  One run
 * warms up and is not counted; the table shows the median and the fastest of the others. */
#include "program.h"
#include <stdlib.h>
#include <string.h>

enum { POLICIES_MAX = 64, RUNS = 5 };

typedef struct timing {
    const char *matrix, *policy;
    char        product[24];
    double      median, best, error;
    int64_t     c_nnz;
    tulle_stats stats;
} timing;

typedef struct timings {
    timing *line;
    int     count;
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

static int time_one(session *s, const pair *p, const char *policy, timing *t)
{
    int code = END_OK, runs = s->o->repeat ? s->o->repeat : RUNS;
    tulle_matrix *c = NULL;
    tulle_options o = p->options;
    double *sec = malloc((size_t)runs * sizeof *sec);
    *t = (timing){.matrix = p->a.name, .policy = policy};
    memcpy(t->product, p->text, sizeof t->product);
    if (!sec) return no_memory("the times of all runs");
    o.policy = policy;
    for (int i = -1; i < runs; i++) {
        tulle_matrix_free(c);
        c = NULL;
        GO(told(s, tulle_multiply(s->ctx, &p->a.view, &p->b.view, &o, &c)));
        tulle_ctx_stats(s->ctx, &t->stats);
        if (i >= 0) sec[i] = t->stats.sec_total;
    }
    qsort(sec, (size_t)runs, sizeof *sec, by_size);
    t->best = sec[0];
    t->median = runs % 2 ? sec[runs / 2] : 0.5 * (sec[runs / 2] + sec[runs / 2 - 1]);
    tulle_csr view = tulle_matrix_view(c);
    t->c_nnz = view.nnz;
    if (s->o->check)
        GO(told(s, tulle_product_check(s->ctx, &p->a.view, &p->b.view, &view, &o, &t->error)));
done:
    tulle_matrix_free(c);
    free(sec);
    return code;
}

static void print_line(const timing *t)
{
    figure products, median, best;
    printf("%-24s %-6s %-10s %16s %7.2f %12s %12s %8.3f\n", t->matrix, t->product, t->policy,
           count_text(products, t->stats.products), ratio((double)t->stats.products, (double)t->c_nnz),
           ms_text(median, t->median), ms_text(best, t->best),
           ratio(2e-9 * (double)t->stats.products, t->median));
    fflush(stdout);
}

static void print_json(const options *o, const timings *all)
{
    json j;
    json_begin(&j, "bench");
    json_int(&j, "repeat", o->repeat ? o->repeat : RUNS);
    json_open(&j, "timings", '[');
    for (int i = 0; i < all->count; i++) {
        const timing *t = &all->line[i];
        json_open(&j, NULL, '{');
        json_text(&j, "matrix", t->matrix);
        json_text(&j, "product", t->product);
        json_text(&j, "policy", t->policy);
        json_text(&j, "device", t->stats.device);
        json_text(&j, "isa", t->stats.isa);
        json_int(&j, "threads", t->stats.threads);
        json_int(&j, "products", t->stats.products);
        json_int(&j, "c_nnz", t->c_nnz);
        json_num(&j, "sec_median", t->median);
        json_num(&j, "sec_min", t->best);
        json_num(&j, "gflops", ratio(2e-9 * (double)t->stats.products, t->median));
        json_int(&j, "peak_bytes", (int64_t)t->stats.peak_bytes);
        if (o->check) json_num(&j, "error", t->error);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

int run_bench(const options *o)
{
    int code = END_OK;
    session s = {0};
    pair p = {0};
    timings all = {0};
    const char *policy[POLICIES_MAX];
    GO(check_names(o));
    int policies = chosen_policies(o->policies, policy);
    all.line = calloc((size_t)(policies * o->operands), sizeof *all.line);
    if (!all.line) return no_memory("the table of times");
    GO(session_open(&s, o));
    if (!o->json && !o->quiet)
        printf("%-24s %-6s %-10s %16s %7s %12s %12s %8s\n", "matrix", "", "policy", "products", "compr.",
               "median ms", "fastest ms", "GFLOPS");
    for (int i = 0; i < o->operands; i++) {
        GO(pair_load(&s, o->operand[i], NULL, &p));
        for (int k = 0; k < policies; k++) {
            timing *t = &all.line[all.count];
            GO(time_one(&s, &p, policy[k], t));
            all.count++;
            if (!o->json && !o->quiet) print_line(t);
        }
        pair_free(&p);
    }
    if (o->json) print_json(o, &all);
done:
    free(all.line);
    pair_free(&p);
    session_close(&s);
    return code;
}
