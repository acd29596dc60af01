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
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MATRICES_MOST = 4096, LEAST = 3 };
static const char *const steps[] = {"symbolic", "numeric"};

typedef struct tuning {
    session             s;
    char               *name[MATRICES_MOST];
    int                 names, left_out;
    tulle_delta_sample *sample;
    tulle_delta_report  report;
} tuning;

/* ---- which matrices */

static int by_name(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static int add_name(tuning *t, const char *folder, const char *name)
{
    const size_t bytes = strlen(folder) + strlen(name) + 2;
    if (t->names == MATRICES_MOST) return complain(END_USAGE, "more than %d matrices", MATRICES_MOST);
    char *path = malloc(bytes);
    if (!path) return no_memory("names of matrices");
    snprintf(path, bytes, "%s%s%s", folder, *folder ? "/" : "", name);
    t->name[t->names++] = path;
    return END_OK;
}

static bool is_matrix(const char *name)
{
    static const char *const ends[] = {".mtx", ".mtx.gz", ".tar.gz", ".tulle"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (name[0] != '.' && ends_with(name, ends[i])) return true;
    return false;
}

static int add_folder(tuning *t, const char *path)
{
    int code = END_OK, before = t->names;
    DIR *folder = opendir(path);
    if (!folder) return complain(END_INPUT, "%s: cannot be opened", path);
    for (struct dirent *e; (e = readdir(folder));)
        if (is_matrix(e->d_name)) GO(add_name(t, path, e->d_name));
    if (t->names == before)
        code = complain(END_INPUT, "%s: no .mtx, .mtx.gz, .tar.gz or .tulle is there", path);
done:
    closedir(folder);
    return code;
}

static int enough(const tuning *t, int end, const char *what)
{
    if (t->names >= LEAST) return END_OK;
    return complain(end, "a tree needs %d matrices at least, as each third one judges it; %d %s", LEAST,
                    t->names, what);
}

static int find_matrices(tuning *t)
{
    int code = END_OK;
    const options *o = t->s.o;
    for (int i = 0; i < o->operands; i++)
        GO(is_directory(o->operand[i]) ? add_folder(t, o->operand[i]) : add_name(t, "", o->operand[i]));
    qsort(t->name, (size_t)t->names, sizeof *t->name, by_name);
    code = enough(t, END_USAGE, "are given");
done:
    return code;
}

/* ---- times */

static int time_one(tuning *t, int i)
{
    int code = END_OK;
    session *s = &t->s;
    pair p = {0};
    work w = {.own_a = NULL};
    GO(pair_load(s, t->name[i], NULL, &p));
    GO(work_make(s, &p, &w));
    const tulle_status status = tulle_delta_trial(s->ctx, &w.a, &w.b, s->o->repeat, &t->sample[i]);
    code = told(s, status);
    if (status == TULLE_EINVAL) code = END_INPUT;       /* an empty product: the matrix is to blame */
done:
    work_free(&w);
    pair_free(&p);
    return code;
}

/* Others take its place. */
static void leave_out(tuning *t, int i, int end)
{
    complain(end, "%s is left out", t->name[i]);
    free(t->name[i]);
    t->names--;
    t->left_out++;
    memmove(t->name + i, t->name + i + 1, (size_t)(t->names - i) * sizeof *t->name);
}

static void print_line(const tuning *t, int i)
{
    const tulle_delta_sample *x = &t->sample[i];
    const char *name = strrchr(t->name[i], '/');
    figure a[4];
    progress_erase((progress *)&t->s.bar);
    printf("%-28.28s %-8s %11.3g %11.1f %9.0f", name ? name + 1 : t->name[i],
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
    t->sample = calloc((size_t)t->names, sizeof *t->sample);
    if (!t->sample) return no_memory("what is measured");
    if (table) {
        printf("on %s, ms without and with bins; * with bins is faster\n\n", tulle_ctx_device(t->s.ctx));
        printf("%-28s %-8s %11s %11s %9s %9s  %9s  %9s  %9s\n", "matrix", "", "density", "average", "longest",
               "symbolic", "bins", "numeric", "bins");
    }
    for (int i = 0; i < t->names;) {
        const int end = time_one(t, i);
        if (end == END_INPUT || end == END_MEMORY) {
            leave_out(t, i, end);
            continue;
        }
        GO(end);
        if (table) print_line(t, i);
        i++;
    }
    code = enough(t, END_INPUT, "could be measured");
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
    for (int i = 0; i < t->names; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", t->name[i]);
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
    json_int(&j, "left_out", t->left_out);
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
    GO(find_matrices(&t));
    GO(output_place(&t.s, o->output));
    GO(time_all(&t));
    GO(told(&t.s, tulle_delta_train(t.s.ctx, t.sample, t.names, o->output, &t.report)));
    progress_erase(&t.s.bar);
    if (o->json) print_json(&t);
    else if (!o->quiet) print_report(&t);
done:
    for (int i = 0; i < t.names; i++) free(t.name[i]);
    free(t.sample);
    session_close(&t.s);
    return code;
}
