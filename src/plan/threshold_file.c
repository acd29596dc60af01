/* SPDX-License-Identifier: MIT
 *
 * threshold_file.c - thresholds of policy auto as a text file (lines.h):
 *
 *     tulle thresholds 1
 *     family hopper
 *     device NVIDIA H200
 *     train 32 1.093 1.012              matrices, slowdown with the defaults and with these
 *     validate 16 1.101 1.02
 *     symbolic.few_most 128             all thresholds in the order of their table
 *     ...
 *     sum 1f6a0c... */
#include "plan/lines.h"
#include "plan/thresholds.h"
#include <stdio.h>
#include <string.h>

static const char first_line[] = "tulle thresholds 1", by[] = "tulle tune --policy auto";
static const char *const parts[2] = {"train", "validate"};
enum { MATRICES_MOST = 1 << 20 };

tulle_status tl_tuned_write(tl_base *b, const char *path, const tl_tuned *t)
{
    tulle_status status = TULLE_OK;
    tl_page *p = NULL;
    TRY(tl_calloc(b, &p, 1, sizeof *p, "the text of thresholds"));
    tl_page_text(p, first_line);
    tl_page_text(p, "\nfamily ");
    tl_page_text(p, tl_family_name(t->family));
    tl_page_text(p, "\n");
    tl_page_device(p, t->device);
    for (int k = 0; k < 2; k++) {
        tl_page_text(p, parts[k]);
        tl_page_int(p, t->score[k].matrices);
        tl_page_double(p, t->score[k].usual);
        tl_page_double(p, t->score[k].tuned);
        tl_page_text(p, "\n");
    }
    for (int i = 0; i < TL_THRESHOLDS; i++) {
        tl_page_text(p, tl_threshold_name(i));
        tl_page_int(p, t->thresholds.of[i]);
        tl_page_text(p, "\n");
    }
    TRY(tl_page_write(b, path, p));
done:
    tl_free(b, p);
    return status;
}

static tulle_status read_score(tl_lines *r, int part, tl_search_score *score)
{
    tulle_status status = TULLE_OK;
    TRY(tl_lines_next(r, parts[part], 4));
    if (!tl_lines_int(r, 1, 1, MATRICES_MOST, &score->matrices) || !tl_lines_double(r, 2, &score->usual)
        || !tl_lines_double(r, 3, &score->tuned) || score->usual < 1 || score->tuned < 1)
        status = tl_lines_wrong(r, "a score is matrices and two slowdowns of 1 at least");
done:
    return status;
}

static tulle_status read_threshold(tl_lines *r, int i, uint32_t *to)
{
    tulle_status status = TULLE_OK;
    char what[160];
    uint32_t least, most;
    int value;
    TRY(tl_lines_next(r, tl_threshold_name(i), 2));
    tl_threshold_range(i, &least, &most);
    if (!tl_lines_int(r, 1, least, most, &value)) {
        snprintf(what, sizeof what, "%s is \"%.40s\"; it may be a whole number from %u to %u",
                 tl_threshold_name(i), r->word[1], least, most);
        TRY(tl_lines_wrong(r, what));
    }
    *to = (uint32_t)value;
done:
    return status;
}

tulle_status tl_tuned_read(tl_base *b, const char *path, tl_tuned *t)
{
    tulle_status status = TULLE_OK;
    tl_lines r;
    memset(t, 0, sizeof *t);
    TRY(tl_lines_open(b, path, first_line, "file of thresholds", by, &r));
    TRY(tl_lines_next(&r, "family", 2));
    if (!tl_family_find(r.word[1], &t->family)) TRY(tl_lines_wrong(&r, "there is no such family of devices"));
    TRY(tl_lines_next(&r, "device", 2));
    snprintf(t->device, sizeof t->device, "%s", r.word[1]);
    for (int k = 0; k < 2; k++) TRY(read_score(&r, k, &t->score[k]));
    for (int i = 0; i < TL_THRESHOLDS; i++) TRY(read_threshold(&r, i, &t->thresholds.of[i]));
    TRY(tl_lines_end(&r));
done:
    tl_lines_close(&r);
    if (status != TULLE_OK) memset(t, 0, sizeof *t);
    return status;
}
