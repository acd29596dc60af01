/* SPDX-License-Identifier: MIT
 *
 * thresholds.h - the numbers by which policy auto decides on a GPU which kernel takes a row, and whether rows
 * that repeat each other are looked for.
 *
 * They are in the tables of policy_auto.c.  Here is a list of those worth measuring on another device, with
 * names, ranges and steps: `tulle tune --policy auto` multiplies matrices with one value after the other
 * (search.c), and writes the best to a file (threshold_file.c), which products read (gpu/tuned.c).  Every
 * value within its range gives the same results, only faster or slower. */
#ifndef TL_THRESHOLDS_H
#define TL_THRESHOLDS_H
#include "plan/plan.h"

/* Kinds of devices with defaults of their own. */
typedef enum tl_family {
    TL_UNKNOWN, TL_HOPPER, TL_AMPERE, TL_CUDA, TL_AMD, TL_INTEL, TL_OPENCL_CPU, TL_OPENCL, TL_FAMILIES
} tl_family;

/* driver: "cuda", "opencl"; name and arch as the driver reports them; cpu: the host's processor. */
tl_family    tl_family_of(const char *driver, const char *arch, const char *name, bool cpu);
const char  *tl_family_name(tl_family family);
bool         tl_family_find(const char *name, tl_family *family);

/* ---- thresholds.c */

enum { TL_THRESHOLDS = 12, TL_THRESHOLD_GRID = 16 };

/* Values in the order of tl_threshold_name(). */
typedef struct tl_thresholds {
    uint32_t of[TL_THRESHOLDS];
} tl_thresholds;

const char   *tl_threshold_name(int i);         /* NULL after the last */
void          tl_threshold_range(int i, uint32_t *least, uint32_t *most);
/* The values that a search tries, in ascending order: from the default in steps, which multiply or add, to
 * both ends of the range.  Returns their number. */
int           tl_threshold_grid(tl_family family, int i, uint32_t grid[TL_THRESHOLD_GRID]);
tl_thresholds tl_thresholds_usual(tl_family family);    /* the defaults */

/* Policy auto with other thresholds.  It must not be copied: `policy` points at `steps`. */
typedef struct tl_tuned_policy {
    tl_policy    policy;
    tl_gpu_steps steps;
} tl_tuned_policy;

void          tl_thresholds_set(const tl_thresholds *t, tl_tuned_policy *to);

/* ---- search.c: a line search: one threshold after the other over its grid, each other one as it is */

/* The seconds of a product with these thresholds; INFINITY where they leave no memory for it. */
typedef tulle_status (*tl_product_time)(void *user, const tl_thresholds *t, int matrix, double *seconds);

typedef struct tl_search {
    tl_family       family;             /* whose defaults it begins with            */
    int             matrices;           /* at least 3; each third one only judges   */
    tl_product_time time;
    void           *user;
    double          done;               /* the fraction of the search, for progress */
} tl_search;

/* Slowdown: the geometric mean of time / best time of that matrix with any values (1: always the best). */
typedef struct tl_search_score {
    int    matrices;
    double usual, tuned;                /* with the defaults, with what was found   */
} tl_search_score;

typedef struct tl_search_times { double usual, tuned, best; } tl_search_times;

/* times: one for each matrix.  score: of two of three matrices, by which values are chosen, and of the
 * others.  A value is taken where it is faster by more than chance. */
tulle_status  tl_thresholds_search(tl_base *b, tl_search *s, tl_thresholds *found, tl_search_score score[2],
                                   tl_search_times *times);

/* ---- threshold_file.c */

typedef struct tl_tuned {
    tl_family       family;
    char            device[128];        /* on which was measured                    */
    tl_search_score score[2];
    tl_thresholds   thresholds;
} tl_tuned;

tulle_status  tl_tuned_write(tl_base *b, const char *path, const tl_tuned *tuned);
/* Fails for a damaged or foreign file and for values out of range, with the line in the message. */
tulle_status  tl_tuned_read(tl_base *b, const char *path, tl_tuned *tuned);

#endif
