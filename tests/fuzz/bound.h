/* SPDX-License-Identifier: MIT
 *
 * bound.h - how long to test: SECONDS, or SECONDS:TRIES.  With TRIES the same inputs are tested on every machine,
 * however fast it is; the seconds only bound the time on a slow one, which is reported but is no failure. */
#ifndef TULLE_FUZZ_BOUND_H
#define TULLE_FUZZ_BOUND_H
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct fuzz_bound {
    time_t   end;
    uint64_t tries;                     /* 0: limited by time only */
} fuzz_bound;

static inline fuzz_bound fuzz_bound_begin(const char *text)
{
    char *rest;
    const double seconds = strtod(text, &rest);
    return (fuzz_bound){time(NULL) + (time_t)seconds, *rest == ':' ? strtoull(rest + 1, NULL, 10) : 0};
}

static inline bool fuzz_bound_more(const fuzz_bound *b, uint64_t tried)
{
    return (!b->tries || tried < b->tries) && time(NULL) < b->end;
}

static inline void fuzz_bound_tell(const fuzz_bound *b, uint64_t tried)
{
    if (tried < b->tries) printf("stopped for time after %" PRIu64 " of %" PRIu64 "\n", tried, b->tries);
}

#endif
