/* SPDX-License-Identifier: MIT
 * message.c - error messages, exit codes, and suggestions for misspelt words. */
#include "program.h"
#include <stdarg.h>
#include <string.h>

static char last[1024];                 /* the last message: with several ranks only rank 0 prints it */

int complain(int code, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    fputs("tulle: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    vsnprintf(last, sizeof last, format, again);
    va_end(again);
    va_end(args);
    return code;
}

const char *complained(void)
{
    return last;
}

int no_memory(const char *what)
{
    return complain(END_MEMORY, "%s: out of memory", what);
}

int end_of(tulle_status status)
{
    switch (status) {
    case TULLE_OK:        return END_OK;
    case TULLE_EINVAL:    return END_USAGE;
    case TULLE_ETYPE:     return END_USAGE;
    case TULLE_EDEVICE:   return END_USAGE;
    case TULLE_ESHAPE:    return END_INPUT;
    case TULLE_EPATTERN:  return END_INPUT;
    case TULLE_EFORMAT:   return END_INPUT;
    case TULLE_ENOMEM:    return END_MEMORY;
    case TULLE_ELIMIT:    return END_MEMORY;
    case TULLE_EOVERFLOW: return END_MEMORY;
    case TULLE_ECHECK:    return END_CHECK;
    case TULLE_ECANCEL:   return signal_end();
    default:              return END_FAILED;
    }
}

void print_ends(FILE *out)
{
#define END_LINE(name, code, text) fprintf(out, "  %-4d%s\n", code, text);
    END_LIST(END_LINE)
#undef END_LINE
}

/* ---- edit distance: insertions, deletions, replacements and swaps of neighbours */

enum { WORD_MAX = 32 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int distance(const char *a, const char *b)
{
    int d[WORD_MAX + 1][WORD_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > WORD_MAX || m > WORD_MAX) return WORD_MAX;
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(replace, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

const char *nearest(const char *word, words_fn words)
{
    const char *best = NULL;
    int length = (int)strlen(word), limit = 1 + length / 3, best_distance = limit + 1;
    for (int i = 0; words(i); i++) {
        int d = distance(word, words(i));
        if (length >= 3 && strncmp(word, words(i), (size_t)length) == 0) d = least(d, 1);
        if (d < best_distance) {
            best_distance = d;
            best = words(i);
        }
    }
    return best;
}

bool listed(const char *word, words_fn words)
{
    for (int i = 0; words(i); i++)
        if (strcmp(word, words(i)) == 0) return true;
    return false;
}
