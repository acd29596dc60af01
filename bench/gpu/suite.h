/* SPDX-License-Identifier: MIT
 *
 * suite.h - what the benchmarks on a GPU share: options, matrices by path, folder or recipe, medians, and
 * ratios to other codes. */
#ifndef TULLE_BENCH_SUITE_H
#define TULLE_BENCH_SUITE_H
#include <stdio.h>
#include "tpat.h"

enum { SUITE_MATRICES = 512, SUITE_RUNS = 200 };

typedef struct suite {
    const char *path[SUITE_MATRICES];
    int         count;
} suite;

typedef struct suite_matrix {
    char          name[64];                 /* without folder and ending     */
    tulle_csr     A;                        /* on the host                   */
    tulle_matrix *own;                      /* where the library made it     */
    tpat          packed;
} suite_matrix;

/* An option of the command line, and the variable that it sets; a value follows, except for on and off. */
typedef struct suite_option {
    const char  *name;
    bool        *on, *off;
    const char **word;
    char       **list;                      /* words separated by commas; the text will be modified */
    int         *runs;                      /* 1 to SUITE_RUNS               */
    FILE       **file;                      /* opened for appending          */
} suite_option;

/* The ratio of another code's time to tulle's, over many cases. */
typedef struct suite_ratio {
    int    count;
    double sum, worst;                      /* logarithms                    */
    char   worst_name[96];
} suite_ratio;

extern const char *suite_program;           /* its name, for error messages  */

void       suite_stop(const char *format, ...);
/* Arguments that are no options are matrices or folders, from which those that `only` names are used. */
void       suite_options(int argc, char **argv, const suite_option *options, int count,
                         const char *const *only, suite *matrices);
double     suite_now(void);
/* Of the arrays of a matrix. */
uint64_t   suite_bytes(const tulle_csr *A);
double     suite_median(double *v, int n);
tulle_type suite_type(const char *name);                        /* "f64"; another word ends the program */
tulle_ctx *suite_open(const char *device);                      /* or the program ends                  */
/* A file or recipe, or the matrices of a folder; of these only those whose name contains one of the parts in
 * `only`, which are separated by commas (NULL: all). */
void       suite_add(suite *s, const char *path, const char *only);
void       suite_name(const char *path, char *name, size_t room);
/* Loads a matrix with integers as values, of this type.  False: the reason was printed; it must be unloaded,
 * too. */
bool       suite_load(tulle_ctx *cpu, const char *path, tulle_type type, suite_matrix *m);
void       suite_unload(suite_matrix *m);
/* n values of f32 or f64 in [0.5, 1.5), from a hash of their index. */
void       suite_random(void *values, tulle_type type, int64_t n);
/* Adds theirs / mine to a geometric mean; theirs = 0 means unknown, and is ignored. */
void       suite_compare(suite_ratio *r, double theirs, double mine, const char *name);
double     suite_geomean(const suite_ratio *r);

#endif
