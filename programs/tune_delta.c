/* SPDX-License-Identifier: MIT
 *
 * tune_delta.c - `tulle tune --policy delta -o FILE A|FOLDER...`: is it worth sorting the rows of a product
 * into bins?
 *
 * Each matrix is multiplied by itself on the GPU, with bins and without, and both steps are timed apart; two
 * of three matrices, by their names, grow a decision tree for each step, and each third one judges it
 * (DeltaSPARSE, section III.B). The file has the trees and their scores.  A matrix that cannot be read, that
 * the device has no room for, or whose product is empty says so and is left out: the others took their time.
 */
#include "program.h"
#include <stdlib.h>
#include <string.h>

static const char *const steps[] = {"symbolic", "numeric"};

typedef struct tuning {
    session             s;
    matrices            m;
    tulle_delta_sample *sample;
    tulle_delta_report  report;
} tuning;

/* ---- times */

static int time_one(tuning *t, int i)
{
    int code = END_OK;
    session *s = &t->s;
    pair p = {0};
    work w = {.own_a = NULL};
    GO(pair_load(s, t->m.name[i], NULL, &p));
    GO(work_make(s, &p, &w));
    const tulle_status status = tulle_delta_trial(s->ctx, &w.a, &w.b, s->o->repeat, &t->sample[i]);
    code = told(s, status);
    if (status == TULLE_EINVAL) code = END_INPUT;       /* an empty product: the matrix is to blame */
done:
    work_free(&w);
    pair_free(&p);
    return code;
}

static void print_line(const tuning *t, int i)
{
    const tulle_delta_sample *x = &t->sample[i];
    figure a[4];
    progress_erase((progress *)&t->s.bar);
    printf("%-28.28s %-8s %11.3g %11.1f %9.0f", matrices_name(&t->m, i),
           i % 3 == 2 ? "validate" : "train", x->features[1][0], x->features[1][1], x->features[1][2]);
    for (int k = 0; k < 4; k++)
        printf(" %9s%s", ms_text(a[k], x->seconds[k / 2][k % 2]),
               k % 2 && x->seconds[k / 2][1] < x->seconds[k / 2][0] ? "*" : " ");
    printf("\n");
    fflush(stdout);
}

static int time_all(tuning *t)
{
    int code = END_OK;
    const bool table = !t->s.o->quiet && !t->s.o->json;
    t->sample = calloc((size_t)t->m.names, sizeof *t->sample);
    if (!t->sample) return no_memory("what is measured");
    if (table) {
        printf("on %s, ms without and with bins; * with bins is faster\n\n", tulle_ctx_device(t->s.ctx));
        printf("%-28s %-8s %11s %11s %9s %9s  %9s  %9s  %9s\n", "matrix", "", "density", "average", "longest",
               "symbolic", "bins", "numeric", "bins");
    }
    for (int i = 0; i < t->m.names;) {
        const int end = time_one(t, i);
        if (end == END_INPUT || end == END_MEMORY) {
            matrices_leave_out(&t->m, i, end);
            continue;
        }
        GO(end);
        if (table) print_line(t, i);
        i++;
    }
    code = matrices_enough(&t->m, END_INPUT, "could be measured");
done:
    return code;
}

/* ---- reports */

static void print_report(const tuning *t)
{
    const tulle_delta_report *r = &t->report;
    printf("\n%-10s %6s %20s %20s\n", "tree", "nodes", "trained", "validated");
    for (int k = 0; k < 2; k++)
        printf("%-10s %6d %8d of %3d, %.3f %8d of %3d, %.3f\n", steps[k], r->nodes[k], r->train[k].right,
               r->train[k].samples, r->train[k].loss, r->validate[k].right, r->validate[k].samples,
               r->validate[k].loss);
    printf("\nright answers, and what was chosen against the faster way (geometric mean; 1 is the best)\n");
    printf("written to %s; to use it: TULLE_DELTA_TREE=%s tulle multiply A --policy delta\n", t->s.o->output,
           t->s.o->output);
}

static void json_score(json *j, const char *key, const tulle_delta_score *s)
{
    json_open(j, key, '{');
    json_int(j, "samples", s->samples);
    json_int(j, "right", s->right);
    json_num(j, "loss", s->loss);
    json_close(j, '}');
}

static void print_json(const tuning *t)
{
    static const char *const features[] = {"density", "average", "longest"};
    json j;
    json_begin(&j, "tune");
    json_text(&j, "device", tulle_ctx_device(t->s.ctx));
    json_text(&j, "policy", "delta");
    json_open(&j, "matrices", '[');
    for (int i = 0; i < t->m.names; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", t->m.name[i]);
        json_bool(&j, "validates", i % 3 == 2);
        for (int k = 0; k < 2; k++) {
            json_open(&j, steps[k], '{');
            for (int f = 0; f < 3; f++) json_num(&j, features[f], t->sample[i].features[k][f]);
            json_num(&j, "ms", 1e3 * t->sample[i].seconds[k][0]);
            json_num(&j, "ms_bins", 1e3 * t->sample[i].seconds[k][1]);
            json_close(&j, '}');
        }
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_int(&j, "left_out", t->m.left_out);
    json_open(&j, "trees", '{');
    for (int k = 0; k < 2; k++) {
        json_open(&j, steps[k], '{');
        json_int(&j, "nodes", t->report.nodes[k]);
        json_score(&j, "train", &t->report.train[k]);
        json_score(&j, "validate", &t->report.validate[k]);
        json_close(&j, '}');
    }
    json_close(&j, '}');
    json_text(&j, "output", t->s.o->output);
    json_end(&j);
}

int tune_delta(const options *o)
{
    int code = END_OK;
    static tuning t;
    if (!o->output)
        return complain(END_USAGE, "tune --policy delta needs -o FILE, where the tree is written");
    GO(session_open(&t.s, o));
    if (!session_on_gpu(&t.s)) {
        code = complain(END_USAGE,
                        "tune needs a GPU; --device names one, \"tulle devices\" lists those there are");
        goto done;
    }
    t.m.needs = "a tree needs";
    GO(matrices_find(&t.m, o));
    GO(output_place(&t.s, o->output));
    GO(time_all(&t));
    GO(told(&t.s, tulle_delta_train(t.s.ctx, t.sample, t.m.names, o->output, &t.report)));
    progress_erase(&t.s.bar);
    if (o->json) print_json(&t);
    else if (!o->quiet) print_report(&t);
done:
    matrices_free(&t.m);
    free(t.sample);
    session_close(&t.s);
    return code;
}
