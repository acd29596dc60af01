/* SPDX-License-Identifier: MIT
 *
 * env.c - the only place that reads the environment, with a table of all variables.
 *
 * tulle_ctx_create() fails if any variable has a value that the table does not allow, also one that is used
 * only later: ignoring a setting silently would give wrong answers.  An empty variable counts as not set.
 * tests/check_env.sh compares the table with the source and the documents. */
#include "base/base.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOR_USERS, FOR_TESTS };          /* which part of docs/tulle.1 describes it */

typedef struct variable {
    const char *name, *words;           /* one of these words ...                              */
    int64_t     least, most;            /* ... or a whole number; neither: any text            */
    int         readers;
    const char *text;
} variable;

static const variable table[] = {
    {"TULLE_DEVICE", NULL, 0, 0, FOR_USERS, "the device where none is named"},
    {"TULLE_ISA", NULL, 0, 0, FOR_USERS, "an older instruction set than the processor's (cpu/dispatch.c)"},
    {"TULLE_CACHE", NULL, 0, 0, FOR_USERS, "the folder for compiled kernels"},
    {"TULLE_IMAGES", "on off", 0, 0, FOR_USERS, "kernels that came with the library"},
    {"TULLE_LIBCUDA", NULL, 0, 0, FOR_USERS, "the library of CUDA's driver"},
    {"TULLE_LIBOPENCL", NULL, 0, 0, FOR_USERS, "the library of OpenCL"},
    {"TULLE_LIBNVRTC", NULL, 0, 0, FOR_USERS, "the library of NVIDIA's compiler"},
    {"TULLE_SPMM_OVERLAP", "on off", 1, 3, FOR_USERS, "dense matrices from the host, on so many lanes"},
    {"TULLE_SPMM_TF32", "on off", 0, 0, FOR_USERS, "TF32, where the caller allows it"},
    {"TULLE_DELTA_TREE", NULL, 0, 0, FOR_USERS, "the decision tree of policy delta"},
    {"TULLE_DELTA_SORT", NULL, 0, 4096, FOR_TESTS, "entries that policy delta sorts by counting, at most"},
    {"TULLE_SPMM_TF32_WARPS", NULL, 1, 8, FOR_TESTS, "that share 8 rows"},
    {"TULLE_SPMM_SHAPE", NULL, 0, 0, FOR_TESTS, "how rows are shared (gpu/spmm.c knows the numbers)"},
    {"TULLE_SPMM_TWINS", "on off", 0, 0, FOR_TESTS, "rows with the same columns bundled"},
    {"TULLE_SPMM_CHUNK", NULL, 1, INT32_MAX, FOR_TESTS, "columns of a chunk"},
    {"TULLE_SPMM_BAND", NULL, 1, INT32_MAX, FOR_TESTS, "rows of a band"},
    {"TULLE_PART_ROWS", NULL, 1, INT64_MAX, FOR_TESTS, "rows that one of several devices takes at a time"},
    {"TULLE_GPU_SHARED", NULL, 1024, INT32_MAX, FOR_TESTS, "bytes of shared memory a block may have"},
    {"TULLE_GPU_FAIL", NULL, 0, INT64_MAX, FOR_TESTS, "this request for device memory fails; 0: none"},
    {"TULLE_GPU_BALANCE", "on off", 0, 0, FOR_TESTS, "rows sorted by class"},
    {"TULLE_GPU_MOTIFS", "on off collide-classes collide-motifs", 1, 16384, FOR_TESTS, "rows that repeat"},
    {"TULLE_GPU_TWINS", "on off auto", 0, 0, FOR_TESTS, "products of rows with the same columns, in bundles"},
    /* variables of other programs */
    {"XDG_CACHE_HOME", NULL, 0, 0, FOR_USERS, "tulle/ there is the folder for compiled kernels"},
    {"HOME", NULL, 0, 0, FOR_USERS, ".cache/tulle there is that folder"},
    {"CUDA_HOME", NULL, 0, 0, FOR_USERS, "where NVIDIA's compiler may be"},
    {"CUDA_PATH", NULL, 0, 0, FOR_USERS, "the same"},
};

enum { VARIABLES = sizeof table / sizeof *table };

const char *tl_env(const char *name)
{
    for (int i = 0; i < VARIABLES; i++) {
        if (strcmp(table[i].name, name) != 0) continue;
        const char *value = getenv(name);
        return value && *value ? value : NULL;
    }
    return NULL;                        /* a variable that is not in the table is not read */
}

/* Whether value is one of the words of a list separated by spaces. */
static bool is_word(const char *value, const char *words)
{
    size_t n = strlen(value);
    for (const char *at = words; at && *at; at += *at == ' ') {
        size_t length = strcspn(at, " ");
        if (length == n && strncmp(at, value, n) == 0) return true;
        at += length;
    }
    return false;
}

static bool is_number(const char *value, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    if (value[0] < '0' || value[0] > '9') return false;
    long long n = strtoll(value, &end, 10);
    return !*end && !errno && n >= least && n <= most;
}

bool tl_env_wrong(char *why, size_t bytes)
{
    for (int i = 0; i < VARIABLES; i++) {
        const variable *v = &table[i];
        const char *value = v->words || v->most ? tl_env(v->name) : NULL;
        if (!value || is_word(value, v->words) || (v->most && is_number(value, v->least, v->most))) continue;
        int n = snprintf(why, bytes, "the variable %s (%s) is \"%.60s\"; it may be ", v->name, v->text,
                         value);
        for (const char *at = v->words; at && *at && n >= 0 && (size_t)n < bytes; at += *at == ' ') {
            int length = (int)strcspn(at, " ");
            n += snprintf(why + n, bytes - (size_t)n, "%s\"%.*s\"", at == v->words ? "" : " or ", length, at);
            at += length;
        }
        if (v->most && n >= 0 && (size_t)n < bytes)
            snprintf(why + n, bytes - (size_t)n, "%sa whole number from %lld to %lld",
                     v->words ? ", or " : "", (long long)v->least, (long long)v->most);
        return true;
    }
    return false;
}
