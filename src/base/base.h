/* SPDX-License-Identifier: MIT
 *
 * base.h - what every other folder stands on: errors as sentences, memory, threads, progress, trace,
 * environment, clock, libraries opened at run time.  Nothing here knows what a matrix is.
 *
 * Internal functions that cross files start with tl_; only tulle_* leaves the library. */
#ifndef TL_BASE_H
#define TL_BASE_H
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tulle_lab.h"

#define TL_ERROR_MAX 1024

typedef struct tl_team tl_team;     /* threads.c */
typedef struct tl_pool tl_pool;     /* mem.c     */

typedef struct tl_base {
    tulle_mem         mem;              /* all zero: the library's own memory        */
    tl_pool          *pool;             /* large blocks kept for the next product    */
    tl_team          *team;
    tulle_progress_fn progress;
    void             *progress_user;
    tulle_trace_fn    trace;
    void             *trace_user;
    tulle_partial_fn  partial;          /* hears of temporary files                  */
    void             *partial_user;
    _Atomic uint64_t  held, peak;       /* bytes handed out by tl_alloc and tl_commit */
    int64_t           shared_cache;     /* bytes of the cache that cores share; 0: not known */
    atomic_int        cancelled;
    char              error[TL_ERROR_MAX];
} tl_base;

/* A structure of `bytes` zero bytes that starts with a tl_base; threads <= 0: one a core. */
tulle_status tl_base_create(const tulle_mem *mem, int threads, size_t bytes, tl_base **b);
void         tl_base_free(tl_base *b);

/* ---- status.c: every failure leaves one sentence */

tulle_status tl_fail(tl_base *b, tulle_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;
/* Reserved words of a structure that the caller fills in are for members to come: one that is set is
 * refused. */
tulle_status tl_reserved_check(tl_base *b, const char *name, const uint64_t *reserved, size_t count);
#define TL_RESERVED_CHECK(b, name, structure)                                                     \
    tl_reserved_check(b, name, (structure)->reserved,                                             \
                      sizeof (structure)->reserved / sizeof *(structure)->reserved)

/* A function that can fail has a variable `status` and a label `done`, its only exit. */
#define TRY(call)                                                           \
    do {                                                                    \
        status = (call);                                                    \
        if (status != TULLE_OK) goto done;                                  \
    } while (0)

/* ---- mem.c: 64-byte aligned, counted, freed without knowing who made it */

/* *p = count * size bytes, uninitialised; TULLE_ENOMEM says how many bytes `what` needed.  A zero
 * count gives a valid pointer. */
tulle_status tl_alloc(tl_base *b, void *p, int64_t count, size_t size, const char *what);
tulle_status tl_calloc(tl_base *b, void *p, int64_t count, size_t size, const char *what);
/* Whether a new block is zero already, fresh from the system: clearing it would only fault in its pages. */
bool         tl_is_zero(void *p);
/* b is NULL where the base is gone; otherwise its count of bytes goes down.  p may be NULL. */
void         tl_free(tl_base *b, void *p);
/* A block that was counted by one base is counted by another from now on.  p may be NULL. */
void         tl_hand_over(tl_base *from, tl_base *to, void *p);
/* So many bytes were held at once, as far as somebody else counted them. */
void         tl_peak_raise(tl_base *b, uint64_t bytes);
/* Address space for at most count * size bytes, paid for only where it is touched; TULLE_ENOMEM
 * without a sentence where that cannot be had (memory hooks, no such system): use tl_alloc then. */
tulle_status tl_reserve(tl_base *b, void *p, int64_t count, size_t size);
/* The system takes long to find new pages of a reserved block: from this byte on they will be small ones,
 * until the block is committed. */
void         tl_small_pages(void *p, uint64_t from);
/* Keeps the first `used` bytes of a reserved block, which were touched, and gives the rest back. */
void         tl_commit(tl_base *b, void *p, uint64_t used);
/* Only the first `used` bytes are still needed: gives the rest back to the system where that is possible. */
void         tl_shrink(tl_base *b, void *p, uint64_t used);
void         tl_pool_trim(tl_pool *pool);
/* What b frees is kept for `from` as well from now on; b goes first. */
void         tl_pool_share(tl_base *b, tl_base *from);
/* Bytes the machine (or the container) can still give. */
uint64_t     tl_memory_free(void);
uint64_t     tl_memory_total(void);
bool         tl_mul_fits(uint64_t a, uint64_t b, uint64_t *product);
/* Sums and products of byte counts; what is beyond 64 bits is beyond every limit. */
static inline uint64_t tl_bytes_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t tl_bytes_of(uint64_t count, uint64_t size)
{
    uint64_t bytes = UINT64_MAX;
    return tl_mul_fits(count, size, &bytes) ? bytes : UINT64_MAX;
}

/* ---- threads.c: a team of threads */

/* The work of one thread; number 0 is the caller's.  It must not wait for another number, which may not have
 * begun: the caller runs the shares of threads that are still asleep after its own. */

typedef void (*tl_work_fn)(void *arg, int thread, int threads);

tulle_status tl_team_create(tl_base *b, int threads, tl_team **team);
void         tl_team_free(tl_team *team);
int          tl_team_size(const tl_team *team);
/* Runs on min(threads, size) threads; threads <= 0 means all. */
void         tl_team_run(tl_team *team, int threads, tl_work_fn fn, void *arg);
int          tl_cores(void);
int64_t      tl_process(void);          /* its number: another one in a child of fork() */
void         tl_pause(void);            /* inside a spin loop */
void         tl_yield(void);

/* The t-th of n nearly equal parts of 0..count. */
static inline int64_t tl_part(int64_t count, int t, int n)
{
    return (count / n) * t + (t < count % n ? t : count % n);
}

/* ---- dl.c: libraries that may be missing, opened at run time */

/* The first of the names (NULL ends the list) that can be opened; NULL: none, and why has the
 * sentence.  Names with a slash are paths.  The library stays in the process after tl_dl_close. */
void *tl_dl_open(const char *const *names, char *why, size_t why_bytes);
void  tl_dl_close(void *library);       /* NULL is fine */
/* *function (any pointer to a function) = the symbol; false, and NULL there, when it is missing. */
bool  tl_dl_symbol(void *library, const char *name, void *function);

typedef struct tl_dl_entry {            /* one line of a table of functions */
    const char *name;
    size_t      offset;                 /* of the pointer in the table      */
    bool        optional;               /* may stay NULL                    */
} tl_dl_entry;

/* All functions of a table; false: why says which one is missing. */
bool  tl_dl_symbols(void *library, const tl_dl_entry *entries, int count, void *table, char *why,
                    size_t why_bytes);

/* ---- trace.c, clock.c, env.c */

void   tl_trace(tl_base *b, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* From thread 0 only; true once the caller wants to stop. */
bool   tl_progress(tl_base *b, const char *stage, double fraction);
double tl_now(void);                                    /* seconds, monotonic */
void   tl_rest(double seconds);                         /* about so long; a signal ends it */
const char *tl_env(const char *name);                   /* NULL when not set  */
/* Whether a variable has a value that is not allowed; why gets the sentence. */
bool   tl_env_wrong(char *why, size_t bytes);

#endif
