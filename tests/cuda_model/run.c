/* SPDX-License-Identifier: MIT
 *
 * run.c - one launch of the CUDA model: the threads of a block are fibers of the host thread that launches.
 *
 * A fiber has its own stack with a guard page, and switches to another fiber only where it waits: at barriers and at
 * operations of a warp, and randomly at atomic operations.  Then the next fiber that can continue runs; if there is none,
 * either the block is finished, or there is a deadlock, and the message names the first fiber that waits.  Blocks run one
 * after another.
 *
 * An operation of a warp is executed by the last thread of its mask that arrives.  The operands are on the stacks of the
 * waiting threads, so nothing is copied.
 *
 * A memory fault or a division by zero in a fiber raises a signal, and its handler ends the launch: the fiber is never
 * continued, which leaks nothing, because kernels own no resources.
 *
 * Memory: 64 KiB of address space per fiber, touched as needed, for each host thread that launches; dynamic shared memory
 * ends at a guard page. */
#define _GNU_SOURCE
#include "model.h"
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 65536, STACK = 65536, SIGNAL_STACK = 65536, SHARED_MOST = 256 << 10, WARP = 32, COPIES = 64 };

typedef enum { READY, AT_BARRIER, AT_MEETING, ENDED } thread_state;

typedef struct fiber {
    void        *sp;                    /* where it will continue               */
    char        *stack;                 /* lowest address, above its guard      */
    thread_state state;
    /* AT_MEETING */
    const char          *name;
    cuda_model_together *together;
    unsigned             mask;
    void                *operand;
    /* asynchronous copies, executed when they are waited for */
    int          copies;
    struct { void *to; const void *from; unsigned bytes; } copy[COPIES];
} fiber;

typedef struct machine {
    const launch *l;
    unsigned      block, now;           /* now: the current thread              */
    bool          running;              /* a fiber, not the launch itself       */
    unsigned      alive, waiting;       /* threads not ended; at the barrier    */
    unsigned      first, count;         /* the ring of those that can continue  */
    unsigned      ready[THREADS_MOST];
    void         *home;                 /* where the launch will continue       */
    int           result;
    uint64_t      chance, seed;         /* of the random order; 0: not random   */
    bool          backward;
    char         *area, *shared;        /* dynamic shared memory                */
    size_t        shared_bytes;         /* up to the guard                      */
    char         *stacks;
    fiber         thread[THREADS_MOST];
} machine;

static _Thread_local machine *mine;

void say(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "cuda model: %s\n", text);
}

/* ---- fibers: callee-saved registers are pushed, the stack changed, and the others' popped */

void cuda_model_switch(void **from, void *to) __attribute__((visibility("hidden")));
void cuda_model_begin(void) __attribute__((visibility("hidden")));
static void body(void) __attribute__((used));

#if defined(__x86_64__)
__asm__(".text\n.globl cuda_model_switch\n.hidden cuda_model_switch\n.type cuda_model_switch, @function\n"
        "cuda_model_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n    ret\n"
        ".globl cuda_model_begin\n.hidden cuda_model_begin\n"
        "cuda_model_begin:\n    xorl %ebp, %ebp\n    callq body\n    hlt\n");
enum { SAVED = 6 };                     /* words below the address to go to     */
#elif defined(__aarch64__)
__asm__(".text\n.globl cuda_model_switch\n.hidden cuda_model_switch\n.type cuda_model_switch, %function\n"
        "cuda_model_switch:\n"
        "    stp x29, x30, [sp, #-160]!\n    stp x19, x20, [sp, #16]\n    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n    stp x25, x26, [sp, #64]\n    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
        "    ldp x19, x20, [sp, #16]\n    ldp x21, x22, [sp, #32]\n    ldp x23, x24, [sp, #48]\n"
        "    ldp x25, x26, [sp, #64]\n    ldp x27, x28, [sp, #80]\n    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    ldp x29, x30, [sp], #160\n    ret\n"
        ".globl cuda_model_begin\n.hidden cuda_model_begin\n"
        "cuda_model_begin:\n    mov x29, xzr\n    bl body\n    brk #1\n");
#else
#error "fibers are written for x86-64 and 64-bit ARM"
#endif

static void fiber_reset(fiber *f)
{
    void **top = (void **)(void *)(f->stack + STACK);
#if defined(__x86_64__)
    void **sp = top - 3 - SAVED;        /* after its ret the stack is aligned to 16 bytes */
    memset(sp, 0, SAVED * sizeof *sp);
    sp[SAVED] = (void *)(uintptr_t)&cuda_model_begin;
#else
    void **sp = top - 20;
    memset(sp, 0, 20 * sizeof *sp);
    sp[1] = (void *)(uintptr_t)&cuda_model_begin;
#endif
    f->sp = sp;
    f->state = READY;
    f->copies = 0;
}

/* ---- which thread is next */

static unsigned chance(machine *m, unsigned below)      /* xorshift64* */
{
    m->chance ^= m->chance >> 12;
    m->chance ^= m->chance << 25;
    m->chance ^= m->chance >> 27;
    return (unsigned)((m->chance * 0x2545f4914f6cdd1dull >> 33) % below);
}

static void push(machine *m, unsigned t)
{
    m->thread[t].state = READY;
    m->ready[(m->first + m->count++) % THREADS_MOST] = t;
}

static unsigned pop(machine *m)
{
    if (m->chance) {
        unsigned *head = &m->ready[m->first], *other = &m->ready[(m->first + chance(m, m->count)) % THREADS_MOST], t = *other;
        *other = *head;
        *head = t;
    }
    unsigned t = m->ready[m->first];
    m->first = (m->first + 1) % THREADS_MOST;
    m->count--;
    return t;
}

/* Lets the threads of [first, end) that are in `state`, and in the mask if there is one, continue. */
static void release(machine *m, unsigned first, unsigned end, unsigned mask, thread_state state)
{
    for (unsigned i = 0; i < end - first; i++) {
        unsigned t = m->backward ? end - 1 - i : first + i;
        if (m->thread[t].state == state && (mask >> (t % WARP) & 1u)) push(m, t);
    }
}

/* The current fiber stops here until another one switches to it. */
static void next(machine *m)
{
    fiber *from = &m->thread[m->now];
    if (m->count == 0) {
        m->running = false;
        cuda_model_switch(&from->sp, m->home);
    } else {
        unsigned t = pop(m), old = m->now;
        if (t == old) return;
        m->now = t;
        m->l->image->place->thread.x = t;
        cuda_model_switch(&from->sp, m->thread[t].sp);
    }
}

/* Ends the launch; the fiber is never continued. */
static void give_up(machine *m, int result)
{
    void *nowhere;
    m->result = result;
    m->running = false;
    cuda_model_switch(&nowhere, m->home);
    abort();
}

/* ---- services: what kernels call */

static void meet(const char *name, cuda_model_together *together, unsigned mask, void *operand)
{
    machine *m = mine;
    const unsigned base = m->now - m->now % WARP, lane = m->now % WARP;
    fiber *me = &m->thread[m->now];
    void *operands[WARP];
    bool all = true;
    if (!(mask >> lane & 1u)) {
        say("kernel %s, block %u, thread %u: %s with the mask %08x, which does not name the thread itself",
            m->l->kernel->name, m->block, m->now, name, mask);
        give_up(m, LAUNCH_FAILED);
    }
    me->state = AT_MEETING;
    me->name = name;
    me->together = together;
    me->mask = mask;
    me->operand = operand;
    for (unsigned i = 1; i <= WARP && all; i++) {       /* beginning with the thread that is likely to arrive last */
        const unsigned j = (m->backward ? lane + WARP - i : lane + i) % WARP;
        const fiber *f = &m->thread[base + j];
        operands[j] = mask >> j & 1u ? f->operand : NULL;
        all = !(mask >> j & 1u) || (base + j < m->l->threads && f->state == AT_MEETING && f->mask == mask
                                    && f->together == together && (f->name == name || strcmp(f->name, name) == 0));
    }
    if (!all) {
        next(m);
        return;
    }
    together(mask, operands);
    me->state = READY;
    release(m, base, base + WARP < m->l->threads ? base + WARP : m->l->threads, mask, AT_MEETING);
    if (m->chance && chance(m, 2)) {
        push(m, m->now);
        next(m);
    }
}

static void open_barrier(machine *m)
{
    if (m->waiting == 0 || m->waiting < m->alive) return;
    m->waiting = 0;
    release(m, 0, m->l->threads, ~0u, AT_BARRIER);
}

static void barrier(void)
{
    machine *m = mine;
    m->thread[m->now].state = AT_BARRIER;
    m->waiting++;
    open_barrier(m);
    next(m);
}

static void give_way(void)
{
    machine *m = mine;
    if (!m->chance || chance(m, 8)) return;
    push(m, m->now);
    next(m);
}

static void copy_wait(void)
{
    fiber *me = &mine->thread[mine->now];
    for (int i = 0; i < me->copies; i++) memcpy(me->copy[i].to, me->copy[i].from, me->copy[i].bytes);
    me->copies = 0;
}

/* Until the copy is waited for, its destination has garbage, so that reading it too early is noticed. */
static void copy_later(void *to, const void *from, unsigned bytes)
{
    machine *m = mine;
    fiber *me = &m->thread[m->now];
    if ((bytes != 4 && bytes != 8 && bytes != 16) || (uintptr_t)to % bytes || (uintptr_t)from % bytes || !to) {
        say("kernel %s, block %u, thread %u: cp.async of %u bytes from %p to %p", m->l->kernel->name, m->block, m->now, bytes,
            from, to);
        give_up(m, LAUNCH_FAILED);
    }
    if (me->copies == COPIES) copy_wait();
    memset(to, GARBAGE, bytes);
    me->copy[me->copies].to = to;
    me->copy[me->copies].from = from;
    me->copy[me->copies++].bytes = bytes;
}

static void *dynamic(void)
{
    return mine->shared;
}

static void *shared(unsigned low)
{
    const cuda_model_kernel *k = mine->l->kernel;
    uintptr_t of_dynamic = (uintptr_t)mine->shared, of_static = (uintptr_t)k->shared;
    uint32_t in_dynamic = low - (uint32_t)of_dynamic, in_static = low - (uint32_t)of_static;
    if (in_dynamic < mine->shared_bytes) return (void *)(of_dynamic + in_dynamic);
    if (in_static < (uintptr_t)k->shared_end - of_static) return (void *)(of_static + in_static);
    return NULL;
}

static const cuda_model_services services = {
    .meet = meet, .barrier = barrier, .give_way = give_way, .copy_later = copy_later, .copy_wait = copy_wait, .shared = shared,
    .dynamic = dynamic
};

/* The main function of a fiber: runs the kernel once; the fiber is reset for the next block. */
static void body(void)
{
    machine *m = mine;
    m->l->kernel->call(m->l->arguments);
    copy_wait();
    m->thread[m->now].state = ENDED;
    m->alive--;
    open_barrier(m);
    next(m);
    abort();
}

/* ---- error messages */

/* A deadlock: names the first thread that waits, the thread that it waits for, and the state of that one. */
static void tell_deadlock(const machine *m)
{
    unsigned t = 0, other = 0;
    char what[160];
    while (t < m->l->threads && m->thread[t].state == ENDED) t++;
    const fiber *f = &m->thread[t], *x = NULL;
    if (f->state == AT_BARRIER) {
        for (other = 0; other < m->l->threads && m->thread[other].state != AT_MEETING; other++) continue;
    } else {
        for (unsigned j = WARP; j-- > 0;) {
            const fiber *y = &m->thread[t - t % WARP + j];
            if (!(f->mask >> j & 1u)) continue;
            if (t - t % WARP + j >= m->l->threads || y->state != AT_MEETING || y->mask != f->mask || y->together != f->together)
                other = t - t % WARP + j;
        }
    }
    x = other < m->l->threads ? &m->thread[other] : NULL;
    if (!x) snprintf(what, sizeof what, "which does not exist");
    else if (x->state == ENDED) snprintf(what, sizeof what, "which has ended");
    else if (x->state == AT_BARRIER) snprintf(what, sizeof what, "which waits in __syncthreads");
    else snprintf(what, sizeof what, "which waits in %s with the mask %08x", x->name, x->mask);
    if (f->state == AT_BARRIER)
        say("kernel %s, block %u: deadlock: thread %u waits in __syncthreads for thread %u, %s", m->l->kernel->name, m->block, t,
            other, what);
    else
        say("kernel %s, block %u: deadlock: thread %u waits in %s with the mask %08x for thread %u, %s", m->l->kernel->name,
            m->block, t, f->name, f->mask, other, what);
}

static struct sigaction before[NSIG];
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

static void on_fault(int number, siginfo_t *info, void *context)
{
    machine *m = mine;
    char where[128];
    if (!m || !m->running) {            /* not in a fiber: restores the old handler and repeats the instruction */
        sigaction(number, &before[number], NULL);
        (void)context;
        return;
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    const char *p = info->si_addr, *stack = m->thread[m->now].stack;
    if (number == SIGFPE) snprintf(where, sizeof where, "a division by zero");
    else if (p >= stack - PAGE && p < stack) snprintf(where, sizeof where, "its stack of %d bytes is too small", STACK);
    else if (p >= m->area && p < m->area + SHARED_MOST + 2 * PAGE)
        snprintf(where, sizeof where, "touches dynamic shared memory, %u bytes, at %td", m->l->shared, p - m->shared);
    else memory_describe(p, where, sizeof where);
    say("kernel %s, block %u, thread %u: %s", m->l->kernel->name, m->block, m->now, where);
    give_up(m, number == SIGFPE ? LAUNCH_FAILED : ILLEGAL_ADDRESS);
}

/* ---- machines */

static pthread_key_t  machines;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static size_t stacks_bytes(void) { return (size_t)THREADS_MOST * (STACK + PAGE); }
static size_t area_bytes(void) { return SHARED_MOST + 2 * PAGE; }

static void machine_free(void *p)
{
    machine *m = p;
    munmap(m->stacks, stacks_bytes());
    munmap(m->area, area_bytes());
    munmap(m, sizeof *m);
}

static void prepare(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    pthread_key_create(&machines, machine_free);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigaction(faults[i], &action, &before[faults[i]]);
}

static void *map(size_t bytes, int protection)
{
    void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        say("no memory for %zu bytes of stacks", bytes);
        abort();
    }
    return p;
}

/* Signals are handled on an alternate stack, because a fault may be an overflow of the fiber's stack. */
static void signal_stack(void)
{
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE)) return;
    stack_t ours = {.ss_sp = map(SIGNAL_STACK, PROT_READ | PROT_WRITE), .ss_size = SIGNAL_STACK};
    sigaltstack(&ours, NULL);
}

static machine *machine_get(void)
{
    pthread_once(&once, prepare);
    signal_stack();
    if (mine) return mine;
    machine *m = map(sizeof *m, PROT_READ | PROT_WRITE);
    m->stacks = map(stacks_bytes(), PROT_NONE);
    m->area = map(area_bytes(), PROT_NONE);
    mprotect(m->area + PAGE, SHARED_MOST, PROT_READ | PROT_WRITE);
    for (int t = 0; t < THREADS_MOST; t++) {
        m->thread[t].stack = m->stacks + (size_t)t * (STACK + PAGE) + PAGE;
        mprotect(m->thread[t].stack, STACK, PROT_READ | PROT_WRITE);
    }
    pthread_setspecific(machines, m);
    mine = m;
    return m;
}

/* ---- blocks */

/* The dynamic shared memory before the guard is rounded up to 16 bytes; the bytes beyond the requested size must not change. */
static bool shared_kept(const machine *m)
{
    for (size_t i = m->l->shared; i < m->shared_bytes; i++)
        if ((unsigned char)m->shared[i] != GARBAGE) return false;
    for (int i = 1; i <= 64; i++)
        if ((unsigned char)m->shared[-i] != GARBAGE) return false;
    return true;
}

static void run_block(machine *m, unsigned block)
{
    const launch *l = m->l;
    const cuda_model_kernel *k = l->kernel;
    m->block = block;
    m->alive = l->threads;
    m->waiting = m->first = m->count = 0;
    memset(m->shared - 64, GARBAGE, m->shared_bytes + 64);
    if (k->shared) memset(k->shared, GARBAGE, (size_t)(k->shared_end - k->shared));
    l->image->place->block.x = block;
    for (unsigned i = 0; i < l->threads; i++) {
        unsigned t = m->backward ? l->threads - 1 - i : i;
        fiber_reset(&m->thread[t]);
        push(m, t);
    }
    m->now = pop(m);
    l->image->place->thread.x = m->now;
    m->running = true;
    cuda_model_switch(&m->home, m->thread[m->now].sp);
    if (m->result != CUDA_OK) return;
    if (m->alive > 0) {
        tell_deadlock(m);
        m->result = LAUNCH_FAILED;
    } else if (!shared_kept(m)) {
        say("kernel %s, block %u: wrote beside its %u bytes of dynamic shared memory", k->name, block, l->shared);
        m->result = ILLEGAL_ADDRESS;
    }
}

/* A number is a seed; the random sequence continues from launch to launch, until another seed is given. */
static void set_order(machine *m)
{
    const char *order = setting("CUDA_MODEL_ORDER", "forward");
    uint64_t seed = *order >= '0' && *order <= '9' ? strtoull(order, NULL, 10) + 1 : 0;
    m->backward = strcmp(order, "backward") == 0;
    if (seed != m->seed) m->chance = 0x9e3779b97f4a7c15ull * seed;
    m->seed = seed;
}

int run_launch(const launch *l)
{
    machine *m = machine_get();
    set_order(m);
    *l->image->services = &services;
    *l->image->place = (cuda_model_place){.threads = {l->threads, 1, 1}, .blocks = {l->blocks, 1, 1}};
    m->l = l;
    m->result = CUDA_OK;
    m->shared_bytes = ((size_t)l->shared + 15) / 16 * 16;
    m->shared = m->area + PAGE + SHARED_MOST - m->shared_bytes;
    const unsigned turn = m->chance ? chance(m, l->blocks) : 0;
    for (unsigned i = 0; i < l->blocks && m->result == CUDA_OK; i++)
        run_block(m, m->backward ? l->blocks - 1 - i : (unsigned)(((uint64_t)i + turn) % l->blocks));
    if (setting("CUDA_MODEL_TRACE", NULL))
        say("%s, %u blocks of %u threads, %u bytes of shared memory: %d", l->kernel->name, l->blocks, l->threads, l->shared,
            m->result);
    m->l = NULL;
    return m->result;
}
