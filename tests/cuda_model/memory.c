/* SPDX-License-Identifier: MIT
 *
 * memory.c - device memory of the CUDA model, which is host memory.
 *
 * Each block has inaccessible guard pages before and after it, and is aligned to 512 bytes (CUDA guarantees 256).  The
 * bytes between its end and the guard page are filled with garbage, which is compared when the block is freed.  A new
 * block is filled with garbage; a freed one is unmapped, so that accessing it is a fault. */
#define _GNU_SOURCE
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 65536, ALIGN = 512 };     /* PAGE: the size of the guards, at least a page */

typedef struct block {
    memory_kind   kind;
    int           device;
    char         *p, *area;
    size_t        bytes, mapped;        /* mapped: including the guards */
    struct block *next;
} block;

static block *blocks;

int memory_new(memory_kind kind, int device, size_t bytes, void **p)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inside = (bytes + ALIGN - 1) / ALIGN * ALIGN, pages = (inside + page - 1) / page * page;
    block *b = malloc(sizeof *b);
    if (!b || bytes > SIZE_MAX / 2) {
        free(b);
        return OUT_OF_MEMORY;
    }
    *b = (block){.kind = kind, .device = device, .bytes = bytes, .mapped = pages + 2 * PAGE, .next = blocks};
    b->area = mmap(NULL, b->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->area == MAP_FAILED || mprotect(b->area + PAGE, pages, PROT_READ | PROT_WRITE) != 0) {
        if (b->area != MAP_FAILED) munmap(b->area, b->mapped);
        free(b);
        return OUT_OF_MEMORY;
    }
    b->p = b->area + PAGE + pages - inside;
    memset(b->p, GARBAGE, inside);
    blocks = b;
    *p = b->p;
    return CUDA_OK;
}

/* Pages come into being, as the driver needs them.  If they are gone when the memory is unlocked, a device would have copied
 * from or to pages that the program no longer saw. */
int memory_lock(void *p, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (const block *b = blocks; b; b = b->next)
        if ((char *)p < b->p + b->bytes && (char *)p + bytes > b->p) return INVALID_VALUE;
    block *b = malloc(sizeof *b);
    if (!b) return OUT_OF_MEMORY;
    *b = (block){.kind = LOCKED_MEMORY, .p = p, .bytes = bytes, .next = blocks};
    for (size_t i = 0; i < bytes; i += page) {
        volatile char *at = (char *)p + i;
        *at = *at;
    }
    blocks = b;
    return CUDA_OK;
}

static bool pages_gone(const block *b)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < b->bytes; i += page) {
        unsigned char there = 0;
        void *at = (void *)((uintptr_t)(b->p + i) / page * page);
        if (mincore(at, 1, &there) == 0 && (there & 1)) continue;
        say("%zu bytes after the start of locked memory of %zu a page is gone", i, b->bytes);
        return true;
    }
    return false;
}

static bool damaged(const block *b)
{
    if (b->kind == LOCKED_MEMORY) return pages_gone(b);
    for (const char *p = b->p + b->bytes; p < b->area + b->mapped - PAGE; p++)
        if ((unsigned char)*p != GARBAGE) {
            say("%td bytes behind a block of %zu somebody wrote", p - (b->p + b->bytes), b->bytes);
            return true;
        }
    return false;
}

bool memory_damaged(int device)
{
    for (const block *b = blocks; b; b = b->next)
        if (b->device == device && damaged(b)) return true;
    return false;
}

static void unlink_block(block **at)
{
    block *b = *at;
    *at = b->next;
    if (b->kind != LOCKED_MEMORY) munmap(b->area, b->mapped);
    free(b);
}

int memory_free(memory_kind kind, int device, const void *p)
{
    for (block **at = &blocks; *at; at = &(*at)->next) {
        block *b = *at;
        if (b->kind != kind || b->p != p || (kind == DEVICE_MEMORY && b->device != device)) continue;
        bool bad = damaged(b);
        unlink_block(at);
        return bad ? ILLEGAL_ADDRESS : CUDA_OK;
    }
    return INVALID_VALUE;
}

void memory_free_all(int device)
{
    for (block **at = &blocks; *at;)
        if ((*at)->device == device) unlink_block(at);
        else at = &(*at)->next;
}

size_t memory_used(int device)
{
    size_t bytes = 0;
    for (const block *b = blocks; b; b = b->next)
        if (b->kind == DEVICE_MEMORY && b->device == device) bytes += b->bytes;
    return bytes;
}

bool memory_holds(memory_kind kind, int device, const void *p, size_t bytes)
{
    const char *from = p;
    for (const block *b = blocks; b; b = b->next)
        if (b->kind == kind && (device < 0 || b->device == device) && from >= b->p && from <= b->p + b->bytes
            && bytes <= (size_t)(b->p + b->bytes - from))
            return true;
    return false;
}

/* Called after a kernel accessed invalid memory; the lock is not held, but the launch has ended. */
void memory_describe(const void *p, char *text, size_t bytes)
{
    const char *at = p;
    snprintf(text, bytes, "touches %p, where no memory is", p);
    for (const block *b = blocks; b; b = b->next) {
        if (at < b->area || at >= b->area + b->mapped) continue;
        if (at < b->p) snprintf(text, bytes, "touches memory %td bytes before a block of %zu", b->p - at, b->bytes);
        else snprintf(text, bytes, "touches memory %td bytes from the start of a block of %zu", at - b->p, b->bytes);
    }
}
