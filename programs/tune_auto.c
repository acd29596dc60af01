/* SPDX-License-Identifier: MIT
 *
 * tune_auto.c - `tulle tune --policy auto [-o FILE] A|FOLDER...`: which thresholds of policy auto are the
 * fastest on this GPU?
 *
 * Each matrix is multiplied by itself with one value of a threshold after the other (tulle_auto_tune()); two
 * of three matrices, by their names, choose, and each third one judges.  All matrices stay on the device
 * meanwhile.  One that cannot be read, that the device has no room for, or whose product is empty says so and
 * is left out: the others took their time. */
#include "program.h"
#include <stdlib.h>
#include <string.h>

typedef struct tuning {
    session           s;
    matrices          m;
    work             *work;
    tulle_tune_pair  *pair;
    tulle_tune_report report;
} tuning;

/* ---- operands */

/* A product that works and is not empty. */
static int try_one(session *s, const char *name, const work *w)
{
    tulle_matrix *C = NULL;
    int code = told(s, tulle_multiply(s->ctx, &w->a, &w->b, &w->options, &C));
    if (code == END_OK && tulle_matrix_view(C).nnz == 0)
        code = complain(END_INPUT, "%s: the product has no entries, so there is nothing to time", name);
    tulle_matrix_free(C);
    return code;
}

static int load_one(tuning *t, int i)
{
    int code = END_OK;
    pair p = {0};
    work *w = &t->work[i];
    *w = (work){.own_a = NULL};
    GO(pair_load(&t->s, t->m.name[i], NULL, &p));
    GO(work_make(&t->s, &p, w));
    w->options.policy = "auto";
    GO(try_one(&t->s, t->m.name[i], w));
    t->pair[i] = (tulle_tune_pair){.A = w->a, .B = w->b};
done:
    if (code != END_OK) work_free(w);
    pair_free(&p);
    return code;
}

static int load_all(tuning *t)
{
    int code = END_OK;
    t->work = calloc((size_t)t->m.names, sizeof *t->work);
    t->pair = calloc((size_t)t->m.names, sizeof *t->pair);
    if (!t->work || !t->pair) return no_memory("what is measured");
    for (int i = 0; i < t->m.names;) {
        const int end = load_one(t, i);
        if (end == END_INPUT || end == END_MEMORY) {
            matrices_leave_out(&t->m, i, end);
            continue;
        }
        GO(end);
        i++;
    }
    code = matrices_enough(&t->m, END_INPUT, "could be measured");
done:
    return code;
}

/* Without -o the cache folder must be usable; told before matrices are read. */
static int check_place(tuning *t)
{
    tulle_cache c;
    int code;
    if (t->s.o->output) return output_place(&t->s, t->s.o->output);
    code = told(&t->s, tulle_cache_info(t->s.ctx, &c));
    if (code == END_OK && c.why_not[0])
        code = complain(END_FAILED, "there is no folder for the thresholds: %s; -o names a file", c.why_not);
    return code;
}

/* ---- reports */

static void print_matrices(const tuning *t)
{
    figure a[3];
    printf("on %s, of family %s; ms with the defaults, with what was found, and the best of all values\n\n",
           tulle_ctx_device(t->s.ctx), t->report.family);
    printf("%-28s %-8s %10s %10s %10s\n", "matrix", "", "defaults", "found", "best");
    for (int i = 0; i < t->m.names; i++) {
        const tulle_tune_pair *x = &t->pair[i];
        printf("%-28.28s %-8s %10s %10s %10s\n", matrices_name(&t->m, i), i % 3 == 2 ? "validate" : "train",
               ms_text(a[0], x->sec_usual), ms_text(a[1], x->sec_tuned), ms_text(a[2], x->sec_best));
    }
}

static void print_report(const tuning *t)
{
    const tulle_tune_report *r = &t->report;
    const tulle_tune_score *const score[2] = {&r->train, &r->validate};
    static const char *const names[2] = {"train", "validate"};
    print_matrices(t);
    printf("\n%-28s %8s %10s %10s\n", "threshold", "range", "default", "found");
    for (int i = 0; i < r->thresholds; i++) {
        const tulle_threshold *h = &r->threshold[i];
        figure range;
        snprintf(range, sizeof range, "%d-%d", (int)h->least, (int)h->most);
        printf("%-28s %8s %10d %10d%s\n", h->name, range, (int)h->usual, (int)h->tuned,
               h->tuned != h->usual ? " *" : "");
    }
    printf("\n%-28s %8s %10s %10s\n", "slowdown", "matrices", "defaults", "found");
    for (int k = 0; k < 2; k++)
        printf("%-28s %8d %10.3f %10.3f\n", names[k], score[k]->pairs, score[k]->usual, score[k]->tuned);
    printf("\ntimes against the best of each matrix (geometric mean; 1 is the best)\n");
    if (t->s.o->output)
        printf("written to %s; to use it: TULLE_GPU_TUNE=%s tulle multiply A\n", r->path, r->path);
    else
        printf("written to %s, where products on this device find it\n", r->path);
}

static void json_score(json *j, const char *key, const tulle_tune_score *s)
{
    json_open(j, key, '{');
    json_int(j, "matrices", s->pairs);
    json_num(j, "usual", s->usual);
    json_num(j, "tuned", s->tuned);
    json_close(j, '}');
}

static void print_json(const tuning *t)
{
    const tulle_tune_report *r = &t->report;
    json j;
    json_begin(&j, "tune");
    json_text(&j, "device", tulle_ctx_device(t->s.ctx));
    json_text(&j, "policy", "auto");
    json_text(&j, "family", r->family);
    json_open(&j, "matrices", '[');
    for (int i = 0; i < t->m.names; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", t->m.name[i]);
        json_bool(&j, "validates", i % 3 == 2);
        json_num(&j, "ms_usual", 1e3 * t->pair[i].sec_usual);
        json_num(&j, "ms_tuned", 1e3 * t->pair[i].sec_tuned);
        json_num(&j, "ms_best", 1e3 * t->pair[i].sec_best);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_int(&j, "left_out", t->m.left_out);
    json_open(&j, "thresholds", '[');
    for (int i = 0; i < r->thresholds; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", r->threshold[i].name);
        json_int(&j, "least", r->threshold[i].least);
        json_int(&j, "most", r->threshold[i].most);
        json_int(&j, "usual", r->threshold[i].usual);
        json_int(&j, "tuned", r->threshold[i].tuned);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_score(&j, "train", &r->train);
    json_score(&j, "validate", &r->validate);
    json_text(&j, "output", r->path);
    json_end(&j);
}

int tune_auto(const options *o)
{
    int code = END_OK;
    static tuning t;
    t.m.needs = "thresholds need";
    GO(session_open(&t.s, o));
    if (!session_on_gpu(&t.s)) {
        code = complain(END_USAGE,
                        "tune needs a GPU; --device names one, \"tulle devices\" lists those there are");
        goto done;
    }
    GO(matrices_find(&t.m, o));
    GO(check_place(&t));
    GO(load_all(&t));
    GO(told(&t.s, tulle_auto_tune(t.s.ctx, t.pair, t.m.names, o->repeat, o->output, &t.report)));
    progress_erase(&t.s.bar);
    if (o->json) print_json(&t);
    else if (!o->quiet) print_report(&t);
done:
    for (int i = 0; t.work && i < t.m.names; i++) work_free(&t.work[i]);
    free(t.work);
    free(t.pair);
    matrices_free(&t.m);
    session_close(&t.s);
    return code;
}
