/* SPDX-License-Identifier: MIT
 *
 * mem.c - the memory allocator: the only place that asks the system for memory.
 *
 * A block is 64-byte aligned and has a 64-byte header that says how to free it, so that a matrix can
 * outlive the context it came from.  There are three kinds:
 *   hook   through the caller's tulle_mem
 *   heap   malloc, for small blocks
 *   map    anonymous mappings, large ones aligned to 2 MiB with huge pages requested.  Page faults of fresh
 *          memory in 4 KiB pages cost more than computing what is written there (measured in a virtual
 *          machine: 1.7 s per GiB, against 0.1 s with huge pages).  But where the virtual machine returned
 *          its free memory to the host, a huge page takes 2 to 5 ms, and as much in small pages, which the
 *          guest still has in the gaps between huge ones, 0.6 to 1.1 ms.  So once a huge page has taken
 *          longer than 1 ms, workspace and results get small pages for a second.  Products that use small
 *          pages are some percent slower, so a block that is used again and again gets huge ones after all.
 * A reserved block is a map (or, when small, from the heap) of which only the touched part is counted.  Freed
 * maps stay in the context's pool, up to an eighth of the machine's memory, and are reused by the next
 * product. */
#define _GNU_SOURCE
#include "base/base.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include <unistd.h>

enum { HEADER = 64, KEPT_MAX = 64 };
static const uint64_t map_from = 128u << 10;    /* smaller blocks come from the heap */
static const uint64_t page = 4u << 10, huge = 2u << 20;
static const uint64_t huge_from = 1u << 20;     /* from here on one huge page is faster than 4 KiB pages */
static const uint64_t pin_from = 4u << 20;      /* smaller blocks are not worth locking */
static const uint64_t plain_tail = 256u << 10;  /* a tail up to this size after the huge pages: 4 KiB pages */
static const uint64_t ask_from = 1u << 30;      /* larger blocks are compared with the free memory first */
static const double slow_page = 1e-3;           /* seconds for a huge page; 0.1 ms is usual */
static const double slow_for = 1;               /* seconds until huge pages are tried again */
enum { small_uses = 64 };                       /* of a block with small pages, before it gets huge ones */

typedef enum { HOOK, HEAP, MAP } block_kind;
typedef enum { WORK, RESERVED, LASTING } block_use;     /* LASTING: huge pages, whatever they take */

typedef struct block {
    block_kind  kind;
    bool        zero;                   /* MAP: not written to yet             */
    atomic_bool small;                  /* MAP: from some place on its pages are not huge */
    bool        lasting;                /* MAP: they all are, whatever that takes */
    void       *raw;                    /* HOOK, HEAP: what to free            */
    int         uses;                   /* MAP: from the pool, with small pages */
    uint64_t    counted;                /* bytes counted in base->held         */
    uint64_t    mapped;                 /* MAP: bytes of address space         */
    uint64_t    touched;                /* MAP: bytes that may have pages      */
    union {
        struct { void (*free)(void *, void *); void *user; } hook;
        struct { tl_pool *pool; tl_pins *pins; };       /* MAP; pins: its pages are locked, or were */
    };
} block;

struct tl_pool {
    pthread_mutex_t lock;
    _Atomic double  small_until;        /* tl_now(): until then new blocks get small pages */
    int             users;              /* the context and every live map block */
    bool            open;               /* the context is alive                 */
    uint64_t        kept_bytes, kept_limit;
    int             kept;
    block          *free[KEPT_MAX];
};

_Static_assert(sizeof(block) <= HEADER, "the block header must fit its place");

static block *header_of(void *p)
{
    return (block *)(void *)((char *)p - HEADER);
}

bool tl_mul_fits(uint64_t a, uint64_t b, uint64_t *product)
{
    if (b != 0 && a > UINT64_MAX / b) return false;
    *product = a * b;
    return true;
}

void tl_peak_raise(tl_base *b, uint64_t bytes)
{
    uint64_t peak = atomic_load(&b->peak);
    while (bytes > peak && !atomic_compare_exchange_weak(&b->peak, &peak, bytes)) {}
}

static void count_in(tl_base *b, block *h, uint64_t bytes)
{
    h->counted = bytes;
    tl_peak_raise(b, atomic_fetch_add(&b->held, bytes) + bytes);
}

/* ---- mappings and the pool */

#if defined(__linux__)
/* Rounded up to whole pages: huge ones, or 4 KiB ones where the map is small or has a short tail. */
static uint64_t map_size(uint64_t bytes)
{
    uint64_t tail = bytes & (huge - 1);
    bool plain = bytes < huge_from || (bytes >= huge && tail > 0 && tail <= plain_tail);
    uint64_t unit = plain ? page : huge;
    return (bytes + unit - 1) & ~(unit - 1);
}

static block *map_new(uint64_t mapped, bool small)
{
    uint64_t align = mapped < huge ? page : huge, ask = mapped + align;
    char *raw = mmap(NULL, ask, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) return NULL;
    char *at = (char *)(((uintptr_t)raw + align - 1) & ~(uintptr_t)(align - 1));
    if (at > raw) munmap(raw, (size_t)(at - raw));
    uint64_t tail = (uint64_t)(raw + ask - (at + mapped));
    if (tail > 0) munmap(at + mapped, tail);
    if (mapped >= huge) madvise(at, mapped, small ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    block *h = (block *)(void *)at;
    *h = (block){.kind = MAP, .zero = true, .small = small, .raw = at, .mapped = mapped};
    return h;
}

static void map_delete(block *h)
{
    if (h->pins) tl_pins_drop(h->pins, h->raw);
    munmap(h->raw, h->mapped);
}

/* Unmaps what lies beyond the first `keep` bytes, but no part of a huge page: the system would split it, and
 * the next user of the block would have a page fault for each of its small pages.  Locked pages stay: the
 * device would go on writing to those that were unmapped. */
static void map_cut(block *h, uint64_t keep)
{
    if (h->pins) return;
    keep = (keep + huge - 1) & ~(huge - 1);
    if (keep < h->touched && h->mapped >= huge) {
        madvise((char *)h->raw + keep, h->mapped - keep, MADV_DONTNEED);
        h->touched = keep;
    }
}
/* Sets the page size for the untouched pages from this byte of a map on. */
static void map_advise(const block *h, uint64_t from, bool small)
{
    from = (from + huge - 1) & ~(huge - 1);
    if (from < h->mapped)
        madvise((char *)h->raw + from, h->mapped - from, small ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
}
#else
static uint64_t map_size(uint64_t bytes) { return bytes; }
static block *map_new(uint64_t mapped, bool small) { (void)mapped; (void)small; return NULL; }
static void   map_delete(block *h) { (void)h; }
static void   map_cut(block *h, uint64_t keep) { (void)h; (void)keep; }
static void   map_advise(const block *h, uint64_t from, bool small) { (void)h; (void)from; (void)small; }
#endif

static void pool_leave(tl_pool *pool)           /* called with the lock held; releases it */
{
    int users = --pool->users;
    pthread_mutex_unlock(&pool->lock);
    if (users > 0) return;
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

static tl_pool *pool_new(void)
{
    tl_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pool->users = 1;
    pool->open = true;
    pool->kept_limit = tl_memory_total() / 8;
    return pool;
}

static void pool_drop(tl_pool *pool, int i)
{
    block *h = pool->free[i];
    pool->kept_bytes -= h->touched;
    pool->free[i] = pool->free[--pool->kept];
    map_delete(h);
}

/* The smallest kept block that is large enough, so that a repeated product gets the same blocks again.  A
 * block that is not reserved should not hold much more memory than was asked for.  *renew: the block had
 * small pages, was used often and has been freed; a new one with huge pages is to take its place. */
static block *pool_take(tl_pool *pool, uint64_t bytes, block_use use, bool *renew)
{
    pthread_mutex_lock(&pool->lock);
    int best = -1;
    for (int i = 0; i < pool->kept; i++) {
        block *h = pool->free[i];
        if (h->mapped < bytes || (use != RESERVED && h->touched > 2 * bytes + huge)) continue;
        if (use == LASTING && atomic_load(&h->small)) continue;
        if (best < 0 || h->mapped < pool->free[best]->mapped) best = i;
    }
    block *h = NULL;
    if (best >= 0 && atomic_load(&pool->free[best]->small) && ++pool->free[best]->uses == small_uses) {
        pool_drop(pool, best);
        *renew = true;
    } else if (best >= 0) {
        h = pool->free[best];
        pool->kept_bytes -= h->touched;
        pool->free[best] = pool->free[--pool->kept];
        h->zero = false;
        pool->users++;
    }
    pthread_mutex_unlock(&pool->lock);
    return h;
}

static void pool_give(tl_pool *pool, block *h)
{
    pthread_mutex_lock(&pool->lock);
    bool keep = pool->open && h->touched <= pool->kept_limit;
    while (keep && pool->kept > 0
           && (pool->kept == KEPT_MAX || pool->kept_bytes + h->touched > pool->kept_limit))
        pool_drop(pool, 0);
    if (keep) {
        pool->free[pool->kept++] = h;
        pool->kept_bytes += h->touched;
    } else {
        map_delete(h);
    }
    pool_leave(pool);
}

void tl_pool_trim(tl_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    while (pool->kept > 0) pool_drop(pool, pool->kept - 1);
    pthread_mutex_unlock(&pool->lock);
}

void tl_pool_share(tl_base *b, tl_base *from)
{
    if (!b->pool || !from->pool) return;
    tl_pool_trim(b->pool);
    pthread_mutex_lock(&b->pool->lock);
    b->pool->open = false;
    pool_leave(b->pool);
    b->pool = from->pool;
    pthread_mutex_lock(&b->pool->lock);
    b->pool->users++;
    pthread_mutex_unlock(&b->pool->lock);
}

/* Huge pages are slow now: the map gets small ones from this byte on, and so do new blocks for a while. */
static void small_from(block *h, uint64_t from)
{
    atomic_store(&h->pool->small_until, tl_now() + slow_for);
    if (!atomic_exchange(&h->small, true)) map_advise(h, from, true);
}

static block *map_take(tl_base *b, uint64_t bytes, block_use use)
{
    if (!b->pool) return NULL;
    uint64_t mapped = map_size(bytes);
    bool renew = false;
    block *h = pool_take(b->pool, mapped, use, &renew);
    if (h) return h;
    if (renew) use = LASTING;
    const bool small = mapped >= huge && use != LASTING && tl_now() < atomic_load(&b->pool->small_until);
    double start = tl_cpu_now();
    h = map_new(mapped, small);         /* writes to its first page */
    const bool slow = mapped >= huge && !small && tl_cpu_now() - start > slow_page;
    if (!h) {
        tl_pool_trim(b->pool);
        h = map_new(mapped, small);
    }
    if (!h) return NULL;
    h->pool = b->pool;
    h->lasting = use == LASTING;
    if (slow) atomic_store(&b->pool->small_until, tl_now() + slow_for);
    if (slow && use != LASTING) small_from(h, huge);
    pthread_mutex_lock(&b->pool->lock);
    b->pool->users++;
    pthread_mutex_unlock(&b->pool->lock);
    return h;
}

/* ---- blocks */

static block *heap_new(uint64_t bytes)
{
    char *raw = malloc((size_t)bytes + HEADER);
    if (!raw) return NULL;
    char *at = (char *)(((uintptr_t)raw + HEADER - 1) & ~(uintptr_t)(HEADER - 1));
    block *h = (block *)(void *)at;
    *h = (block){.kind = HEAP, .raw = raw};
    return h;
}

static block *hook_new(const tulle_mem *mem, uint64_t bytes)
{
    char *raw = mem->alloc(mem->user, (size_t)bytes + HEADER);
    if (!raw) return NULL;
    char *at = (char *)(((uintptr_t)raw + HEADER - 1) & ~(uintptr_t)(HEADER - 1));
    block *h = (block *)(void *)at;
    *h = (block){.kind = HOOK, .raw = raw};
    h->hook.free = mem->free;
    h->hook.user = mem->user;
    return h;
}

/* Linux overcommits memory: a mapping may succeed, and the process be killed when it touches too much of
 * it. */
static bool there_is_room(tl_base *b, uint64_t bytes, uint64_t *have)
{
    *have = UINT64_MAX;
    if (bytes < ask_from || b->mem.alloc) return true;
    *have = tl_memory_free();
    if (bytes > *have) {
        tl_pool_trim(b->pool);
        *have = tl_memory_free();
    }
    return bytes <= *have;
}

static tulle_status alloc(tl_base *b, void *p, int64_t count, size_t size, const char *what, block_use use)
{
    void **out = p;
    uint64_t bytes = 0, have = 0;
    *out = NULL;
    if (count < 0 || !tl_mul_fits((uint64_t)count, size, &bytes) || bytes > SIZE_MAX / 2)
        return tl_fail(b, TULLE_ENOMEM, "%s: %" PRId64 " entries of %zu bytes cannot be addressed",
                       what, count, size);
    if (!there_is_room(b, bytes, &have))
        return tl_fail(b, TULLE_ENOMEM, "%s: %" PRIu64 " bytes could not be had, the machine has %" PRIu64
                       " left", what, bytes, have);
    uint64_t total = bytes + HEADER;            /* header and alignment */
    block *h = NULL;
    if (b->mem.alloc) {
        h = hook_new(&b->mem, total);
    } else {
        if (bytes >= map_from) h = map_take(b, total, use);
        if (h) map_cut(h, total);
        else h = heap_new(total);
    }
    if (!h)
        return tl_fail(b, TULLE_ENOMEM, "%s: %" PRIu64 " bytes could not be had", what, bytes);
    if (h->kind == MAP) h->touched = h->mapped;
    count_in(b, h, bytes);
    *out = (char *)h + HEADER;
    return TULLE_OK;
}

tulle_status tl_alloc(tl_base *b, void *p, int64_t count, size_t size, const char *what)
{
    return alloc(b, p, count, size, what, WORK);
}

tulle_status tl_alloc_lasting(tl_base *b, void *p, int64_t count, size_t size, const char *what)
{
    return alloc(b, p, count, size, what, LASTING);
}

tulle_status tl_calloc(tl_base *b, void *p, int64_t count, size_t size, const char *what)
{
    tulle_status status = tl_alloc(b, p, count, size, what);
    if (status == TULLE_OK && !tl_is_zero(*(void **)p)) memset(*(void **)p, 0, (size_t)count * size);
    return status;
}

bool tl_is_zero(void *p)
{
    return header_of(p)->zero;
}

typedef struct touch { char *p; uint64_t bytes; } touch;

/* Parts are whole huge pages: of two threads in one, the second would wait for the first. */
static void touch_work(void *arg, int thread, int threads)
{
    const touch *t = arg;
    const int64_t pages = (int64_t)((t->bytes + huge - 1) / huge);
    uint64_t from = (uint64_t)tl_part(pages, thread, threads) * huge,
             to = (uint64_t)tl_part(pages, thread + 1, threads) * huge;
    if (to > t->bytes) to = t->bytes;
    for (; from < to; from += page) ((volatile char *)t->p)[from] = 0;
}

void tl_touch(tl_base *b, void *p, uint64_t bytes)
{
    if (bytes < 2 * huge || !tl_is_zero(p)) return;
    touch t = {p, bytes};
    tl_team_run(b->team, (int)(bytes / huge < INT32_MAX ? bytes / huge : INT32_MAX), touch_work, &t);
}

void tl_pin(tl_pins *pins, void *p)
{
    block *h = header_of(p);
    if (h->kind != MAP || h->zero || h->mapped < pin_from) return;
    if (h->mapped > 2 * h->counted + huge) return;      /* mostly reserved address space */
    if (h->pins && tl_pins_has(h->pins, h->raw)) return;
    if (h->pins) tl_pins_drop(h->pins, h->raw);         /* of a device that is closed */
    h->pins = tl_pins_add(pins, h->raw, h->mapped) ? pins : NULL;
}

tulle_status tl_reserve(tl_base *b, void *p, int64_t count, size_t size)
{
    void **out = p;
    uint64_t bytes = 0;
    *out = NULL;
    if (b->mem.alloc || count < 0 || !tl_mul_fits((uint64_t)count, size, &bytes)
        || bytes > (uint64_t)1 << 46)
        return TULLE_ENOMEM;
    block *h = bytes < map_from ? heap_new(bytes + HEADER) : map_take(b, bytes + HEADER, RESERVED);
    if (!h) return TULLE_ENOMEM;
    h->counted = 0;
    *out = (char *)h + HEADER;
    return TULLE_OK;
}

void tl_small_pages(void *p, uint64_t from)
{
    block *h = header_of(p);
    if (h->kind == MAP && h->mapped >= huge && !h->lasting) small_from(h, from + HEADER);
}

void tl_commit(tl_base *b, void *p, uint64_t used)
{
    block *h = header_of(p);
    if (h->kind == HOOK || h->counted) return;          /* not reserved: counted when it was made */
    if (h->kind == MAP) {
        if (h->touched < used + HEADER) h->touched = map_size(used + HEADER);
        map_cut(h, used + HEADER);
        if (atomic_load(&h->small)) map_advise(h, 0, false);   /* the system may merge them now */
    }
    count_in(b, h, used);
}

void tl_shrink(tl_base *b, void *p, uint64_t used)
{
    block *h = p ? header_of(p) : NULL;
    if (!h || h->kind != MAP || h->mapped < huge || used >= h->counted) return;
    map_cut(h, used + HEADER);
    atomic_fetch_sub(&b->held, h->counted - used);
    h->counted = used;
}

void tl_free(tl_base *b, void *p)
{
    if (!p) return;
    block *h = header_of(p);
    if (b) atomic_fetch_sub(&b->held, h->counted);
    if (h->kind == MAP && h->counted == 0) h->touched = h->mapped;      /* reserved, never committed */
    switch (h->kind) {
    case HOOK: h->hook.free(h->hook.user, h->raw); break;
    case HEAP: free(h->raw); break;
    case MAP: pool_give(h->pool, h); break;
    }
}

void tl_hand_over(tl_base *from, tl_base *to, void *p)
{
    block *h = p ? header_of(p) : NULL;
    if (!h) return;
    atomic_fetch_sub(&from->held, h->counted);
    count_in(to, h, h->counted);
}

/* ---- the machine */

uint64_t tl_memory_total(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : (uint64_t)1 << 30;
}

static uint64_t read_number(const char *path, const char *key)
{
    FILE *f = fopen(path, "r");
    char line[256];
    uint64_t value = UINT64_MAX;
    if (!f) return value;
    while (fgets(line, sizeof line, f)) {
        size_t n = strlen(key);
        if (strncmp(line, key, n) != 0) continue;
        uint64_t v;
        if (sscanf(line + n, "%" SCNu64, &v) == 1) value = v;
        break;
    }
    fclose(f);
    return value;
}

uint64_t tl_memory_free(void)
{
    uint64_t available = read_number("/proc/meminfo", "MemAvailable:");
    available = available == UINT64_MAX ? tl_memory_total() : available * 1024;
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", "");
    if (limit != UINT64_MAX && used != UINT64_MAX) {
        uint64_t room = limit > used ? limit - used : 0;
        if (room < available) available = room;
    }
    return available;
}

static int64_t shared_cache(void)
{
    uint64_t kilobytes = read_number("/sys/devices/system/cpu/cpu0/cache/index3/size", "");
    return kilobytes > INT64_MAX / 1024 ? 0 : (int64_t)kilobytes * 1024;
}

/* ---- the base itself */

tulle_status tl_base_create(const tulle_mem *mem, int threads, size_t bytes, tl_base **out)
{
    *out = NULL;
    tl_base *b = mem && mem->alloc ? mem->alloc(mem->user, bytes) : malloc(bytes);
    if (!b) return TULLE_ENOMEM;
    memset(b, 0, bytes);
    if (mem) b->mem = *mem;
    b->shared_cache = shared_cache();
    if (!b->mem.alloc) b->pool = pool_new();
    tulle_status status = !b->mem.alloc && !b->pool ? TULLE_ENOMEM : tl_team_create(b, threads, &b->team);
    if (status == TULLE_OK) *out = b;
    else tl_base_free(b);
    return status;
}

void tl_base_free(tl_base *b)
{
    if (!b) return;
    tl_team_free(b->team);
    if (b->pool) {
        tl_pool_trim(b->pool);
        pthread_mutex_lock(&b->pool->lock);
        b->pool->open = false;
        pool_leave(b->pool);
    }
    if (b->mem.free) b->mem.free(b->mem.user, b);
    else free(b);
}
