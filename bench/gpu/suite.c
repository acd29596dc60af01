/* SPDX-License-Identifier: MIT
 * suite.c - options, matrices to measure, medians and ratios; see suite.h. */
#define _POSIX_C_SOURCE 200809L
#include "suite.h"
#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

const char *suite_program = "bench";

void suite_stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "%s: ", suite_program);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

double suite_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

uint64_t suite_bytes(const tulle_csr *A)
{
    static const uint64_t value[] = {0, 4, 8, 8, 16};
    return (uint64_t)(A->rows + 1) * (A->ptr_type == TULLE_I32 ? 4 : 8)
         + (uint64_t)A->nnz * ((A->idx_type == TULLE_I32 ? 4 : 8) + value[A->val_type]);
}

double suite_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : 0.5 * (v[n / 2] + v[n / 2 - 1]);
}

tulle_type suite_type(const char *name)
{
    static const char *const names[] = {"f32", "f64", "cf32", "cf64"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) return (tulle_type)(TULLE_F32 + i);
    suite_stop("there is no type %s", name);
    return TULLE_F64;
}

tulle_ctx *suite_open(const char *device)
{
    tulle_ctx *ctx = NULL;
    char why[256];
    if (tulle_ctx_create_why(device, NULL, &ctx, why, sizeof why) != TULLE_OK)
        suite_stop("%s: %s", device ? device : "no device named", why);
    return ctx;
}

/* ---- the command line */

static void set(const suite_option *o, char *value)
{
    if (o->word) *o->word = value;
    else if (o->list) *o->list = value;
    else if (o->runs) *o->runs = atoi(value) < 1 ? 1 : atoi(value) > SUITE_RUNS ? SUITE_RUNS : atoi(value);
    else if (!(*o->file = fopen(value, "a"))) suite_stop("%s cannot be written", value);
}

void suite_options(int argc, char **argv, const suite_option *options, int count, const char *const *only,
                   suite *matrices)
{
    const char *paths[SUITE_MATRICES];
    int found = 0;
    for (int i = 1; i < argc; i++) {
        const suite_option *o = options;
        if (strncmp(argv[i], "--", 2) != 0) {
            if (found == SUITE_MATRICES) suite_stop("more than %d matrices", SUITE_MATRICES);
            paths[found++] = argv[i];
            continue;
        }
        while (o < options + count && strcmp(argv[i], o->name) != 0) o++;
        if (o == options + count) suite_stop("there is no option %s", argv[i]);
        if (o->on || o->off) *(o->on ? o->on : o->off) = o->on != NULL;
        else if (i + 1 == argc) suite_stop("%s needs a value", argv[i]);
        else set(o, argv[++i]);
    }
    for (int i = 0; i < found; i++) suite_add(matrices, paths[i], *only);
}

/* ---- which matrices */

static int by_name(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static bool has_part(const char *name, const char *only)
{
    char part[256];
    if (!only) return true;
    for (const char *p = only; *p; p += strcspn(p, ","), p += *p == ',') {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(p, ","), p);
        if (part[0] && strstr(name, part)) return true;
    }
    return false;
}

void suite_add(suite *s, const char *path, const char *only)
{
    struct stat st;
    DIR *dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? opendir(path) : NULL;
    if (!dir) {
        if (s->count < SUITE_MATRICES) s->path[s->count++] = path;
        return;
    }
    int from = s->count;
    for (struct dirent *e; (e = readdir(dir)) && s->count < SUITE_MATRICES;) {
        if (!tpat_name(e->d_name) && !strstr(e->d_name, ".mtx") && !strstr(e->d_name, ".tulle")) continue;
        if (!has_part(e->d_name, only)) continue;
        char *whole = malloc(strlen(path) + strlen(e->d_name) + 2);
        if (!whole) suite_stop("no memory");
        sprintf(whole, "%s/%s", path, e->d_name);
        s->path[s->count++] = whole;
    }
    closedir(dir);
    qsort(s->path + from, (size_t)(s->count - from), sizeof *s->path, by_name);
}

void suite_name(const char *path, char *name, size_t room)
{
    static const char *const ends[] = {".tpat", ".mtx", ".tulle"};
    const char *slash = strrchr(path, '/');
    snprintf(name, room, "%s", slash ? slash + 1 : path);
    for (int i = 0; i < 3; i++) {
        char *end = strstr(name, ends[i]);
        if (end) *end = 0;
    }
}

/* ---- one matrix */

static void fill(tulle_matrix *A)
{
    tulle_csr a = tulle_matrix_view(A);
    double *v = tulle_matrix_values(A);
    for (int64_t k = 0; k < a.nnz; k++) v[k] = tpat_value((uint64_t)k);
}

bool suite_load(tulle_ctx *cpu, const char *path, tulle_type type, suite_matrix *m)
{
    struct stat st;
    memset(m, 0, sizeof *m);
    suite_name(path, m->name, sizeof m->name);
    if (tpat_name(path)) {
        if (!tpat_read(path, &m->packed)) return false;
        m->A = m->packed.view;
    } else {
        bool file = stat(path, &st) == 0;
        tulle_status status = file ? tulle_read(cpu, path, &m->own) : tulle_gallery(cpu, path, &m->own);
        if (status != TULLE_OK) return fprintf(stderr, "%s: %s\n", path, tulle_ctx_error(cpu)), false;
        m->A = tulle_matrix_view(m->own);
        if (m->A.val_type == TULLE_F64) fill(m->own);
    }
    if (m->A.val_type != type) {
        tulle_matrix *M = NULL;
        if (tulle_csr_convert(cpu, &m->A, type, (tulle_index)0, (tulle_index)0, &M) != TULLE_OK)
            return fprintf(stderr, "%s: %s\n", path, tulle_ctx_error(cpu)), false;
        tulle_matrix_free(m->own);
        m->own = M;
        m->A = tulle_matrix_view(M);
    }
    return true;
}

void suite_unload(suite_matrix *m)
{
    tulle_matrix_free(m->own);
    tpat_free(&m->packed);
    memset(m, 0, sizeof *m);
}

void suite_random(void *values, tulle_type type, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        double v = 0.5 + (double)((uint64_t)(k + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 40) / 16777216.0;
        if (type == TULLE_F64) ((double *)values)[k] = v;
        else ((float *)values)[k] = (float)v;
    }
}

/* ---- ratios */

void suite_compare(suite_ratio *r, double theirs, double mine, const char *name)
{
    if (theirs <= 0) return;
    double ratio = log(theirs / mine);
    if (r->count++ == 0 || ratio < r->worst) {
        r->worst = ratio;
        snprintf(r->worst_name, sizeof r->worst_name, "%s", name);
    }
    r->sum += ratio;
}

double suite_geomean(const suite_ratio *r)
{
    return r->count ? exp(r->sum / r->count) : 0;
}
