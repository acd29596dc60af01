/* SPDX-License-Identifier: MIT
 *
 * base.h - what every other folder builds on: error messages, memory, threads, progress, trace, environment,
 * clock, libraries opened at run time.  Nothing here knows what a matrix is.
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
typedef struct tl_pins tl_pins;     /* pins.c    */

typedef struct tl_base {
    tulle_mem         mem;              /* all zero: the library's own memory        */
    tl_pool          *pool;             /* freed large blocks, kept for reuse        */
    tl_team          *team;
    tulle_progress_fn progress;
    void             *progress_user;
    tulle_trace_fn    trace;
    void             *trace_user;
    tulle_partial_fn  partial;          /* called for each temporary file            */
    void             *partial_user;
    _Atomic uint64_t  held, peak;       /* bytes handed out by tl_alloc and tl_commit */
    int64_t           shared_cache;     /* bytes of the last-level cache; 0: not known */
    atomic_int        cancelled;
    char              error[TL_ERROR_MAX];
} tl_base;

/* Allocates a structure of `bytes` zero bytes whose first member is a tl_base; threads <= 0: one per core. */
tulle_status tl_base_create(const tulle_mem *mem, int threads, size_t bytes, tl_base **b);
void         tl_base_free(tl_base *b);

/* ---- status.c: every failure leaves one error message, a full sentence */

tulle_status tl_fail(tl_base *b, tulle_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;
/* The reserved words of a structure that the caller fills in are for future members, so they must be zero. */
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

/* ---- mem.c: blocks aligned to 64 bytes and counted; a header says how to free each one */

/* *p = count * size bytes, uninitialised.  `what` names the block in the message of TULLE_ENOMEM.  A count of
 * zero gives a valid pointer. */
tulle_status tl_alloc(tl_base *b, void *p, int64_t count, size_t size, const char *what);
/* The same for arrays of matrices that are read many times: it asks for huge pages even while they are slow
 * (mem.c says when), because small ones make every product with the matrix some percent slower. */
tulle_status tl_alloc_lasting(tl_base *b, void *p, int64_t count, size_t size, const char *what);
tulle_status tl_calloc(tl_base *b, void *p, int64_t count, size_t size, const char *what);
/* Whether a new block comes directly from the system and so is zero already: clearing it would only cause
 * page faults. */
bool         tl_is_zero(void *p);
/* The first `bytes` of a block get their pages now, by all threads at once, if it has none yet. */
void         tl_touch(tl_base *b, void *p, uint64_t bytes);
/* b may be NULL where the base no longer exists; otherwise its count of bytes goes down.  p may be NULL. */
void         tl_free(tl_base *b, void *p);
/* Moves the accounting of a block from one base to another.  p may be NULL. */
void         tl_hand_over(tl_base *from, tl_base *to, void *p);
/* Raises the peak to at least `bytes`, a number that the caller counted itself. */
void         tl_peak_raise(tl_base *b, uint64_t bytes);
/* Reserves address space for at most count * size bytes; only pages that are touched take memory.
 * TULLE_ENOMEM without a message where the system cannot do that, or with memory hooks: use tl_alloc then. */
tulle_status tl_reserve(tl_base *b, void *p, int64_t count, size_t size);
/* For a reserved block whose page faults have become slow: from this byte on it gets 4 KiB pages instead of
 * huge ones, until it is committed, and so do new blocks of its pool for a second.  Not if it took the place
 * of a block with small pages that was used often: then its pages stay huge. */
void         tl_small_pages(void *p, uint64_t from);
/* Ends the filling of a reserved block: the first `used` bytes are kept and counted, the rest is released. */
void         tl_commit(tl_base *b, void *p, uint64_t used);
/* Only the first `used` bytes are still needed: returns the rest to the system where that is possible. */
void         tl_shrink(tl_base *b, void *p, uint64_t used);
/* Locks the pages of a large block that was in the pool before: a repeated product gets it again.  Copies
 * between it and a device then need no detour.  Does nothing where that is not possible. */
void         tl_pin(tl_pins *pins, void *p);
void         tl_pool_trim(tl_pool *pool);
/* From now on b uses the pool of `from`; b must be freed before it. */
void         tl_pool_share(tl_base *b, tl_base *from);
/* Free memory of the machine, or of the container's limit, in bytes. */
uint64_t     tl_memory_free(void);
uint64_t     tl_memory_total(void);
bool         tl_mul_fits(uint64_t a, uint64_t b, uint64_t *product);
static inline int64_t tl_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t tl_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline uint32_t tl_least(uint64_t a, uint64_t b)
{
    return (uint32_t)(a < b ? a : b);
}

static inline uint64_t tl_bytes_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Saturating sums and products of byte counts: a result beyond 64 bits exceeds every limit anyway. */
static inline uint64_t tl_bytes_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t tl_bytes_of(uint64_t count, uint64_t size)
{
    uint64_t bytes = UINT64_MAX;
    return tl_mul_fits(count, size, &bytes) ? bytes : UINT64_MAX;
}

/* ---- pins.c: blocks that a device's driver has locked */

typedef struct tl_pins_driver {
    void *device;
    bool (*lock)(void *device, void *p, uint64_t bytes);        /* false: it cannot */
    void (*unlock)(void *device, void *p);
} tl_pins_driver;

tulle_status tl_pins_create(tl_base *b, tl_pins_driver driver, tl_pins **pins);
void         tl_pins_close(tl_pins *pins);      /* before the device goes; blocks may live longer; NULL is
                                                 * fine */
/* For mem.c: memory is locked; is locked now; goes. */
bool         tl_pins_add(tl_pins *pins, void *p, uint64_t bytes);
bool         tl_pins_has(tl_pins *pins, const void *p);
void         tl_pins_drop(tl_pins *pins, void *p);

/* ---- threads.c: a thread pool */

/* The work of one thread; thread 0 is the caller.  It must not wait for another thread's share: that may not
 * have begun, because the caller runs the shares of threads that are still asleep, after its own. */

typedef void (*tl_work_fn)(void *arg, int thread, int threads);

tulle_status tl_team_create(tl_base *b, int threads, tl_team **team);
void         tl_team_free(tl_team *team);
int          tl_team_size(const tl_team *team);
/* Runs on min(threads, size) threads; threads <= 0 means all. */
void         tl_team_run(tl_team *team, int threads, tl_work_fn fn, void *arg);
int          tl_cores(void);
int64_t      tl_process(void);          /* the process ID, which differs in a child of fork() */
void         tl_pause(void);            /* inside a spin loop */
void         tl_yield(void);

/* The t-th of n nearly equal parts of 0..count. */
static inline int64_t tl_part(int64_t count, int t, int n)
{
    return (count / n) * t + (t < count % n ? t : count % n);
}

/* ---- dl.c: libraries that may be missing, opened at run time */

/* Opens the first of the names (the list ends with NULL) that can be opened; NULL: none, and why says so.
 * Names with a slash are paths.  The library stays in the process after tl_dl_close. */
void *tl_dl_open(const char *const *names, char *why, size_t why_bytes);
void  tl_dl_close(void *library);       /* NULL is fine */
/* *function (a pointer to any function pointer) = the symbol, or NULL and false when it is missing. */
bool  tl_dl_symbol(void *library, const char *name, void *function);

typedef struct tl_dl_entry {            /* one line of a table of functions */
    const char *name;
    size_t      offset;                 /* of the pointer in the table      */
    bool        optional;               /* may stay NULL                    */
} tl_dl_entry;

/* Looks up all functions of a table; false: why says which one is missing. */
bool  tl_dl_symbols(void *library, const tl_dl_entry *entries, int count, void *table, char *why,
                    size_t why_bytes);

/* ---- trace.c, clock.c, env.c */

void   tl_trace(tl_base *b, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Calls the progress callback; from thread 0 only.  true: the caller wants to cancel. */
bool   tl_progress(tl_base *b, const char *stage, double fraction);
double tl_now(void);                                    /* seconds, monotonic */
double tl_cpu_now(void);                                /* CPU time of this thread in seconds */
void   tl_rest(double seconds);                         /* sleeps; a signal may end it early */
const char *tl_env(const char *name);                   /* NULL when not set  */
/* Whether a variable has a value that is not allowed; why gets the message. */
bool   tl_env_wrong(char *why, size_t bytes);

#endif
