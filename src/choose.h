/* SPDX-License-Identifier: MIT
 *
 * choose.h - the CPU or a GPU, product by product: what choose.c and choose_measure.c share.
 *
 * Such a context has both engines: the GPU's is the context's own, so that memory there, streams and handles
 * work as on any GPU, and a product whose arrays lie on the host may get the CPU's. */
#ifndef TL_CHOOSE_H
#define TL_CHOOSE_H
#include "ctx.h"

/* Seconds of a forecast.  Those of the CPU but its start are a thread's; defaults are those of an H200 behind
 * PCIe 5 with pageable memory and of one core of its host, as they were measured there. */
#define TL_CONSTANT_LIST(X)                                                                       \
    X(CPU_START,   "cpu_start",      10e-6)     /* a product                              */      \
    X(CPU_PRODUCT, "cpu_product",    0.8e-9)    /* one of its products                    */      \
    X(CPU_ENTRY,   "cpu_entry",      6e-9)      /* an entry of C                          */      \
    X(CPU_COLUMN,  "cpu_column",     0.25e-9)   /* an entry of A times one of X           */      \
    X(GPU_START,   "device_start",   0.5e-3)    /* kernels started, waits                 */      \
    X(GPU_UP,      "device_up",      0.15e-9)   /* a byte from the host                   */      \
    X(GPU_DOWN,    "device_down",    0.07e-9)   /* a byte to the host                     */      \
    X(GPU_PRODUCT, "device_product", 0.012e-9)                                                    \
    X(GPU_ENTRY,   "device_entry",   0.04e-9)                                                     \
    X(GPU_COLUMN,  "device_column",  0.002e-9)

#define TL_CONSTANT(id, name, seconds) TL_##id,
enum { TL_CONSTANT_LIST(TL_CONSTANT) TL_CONSTANTS };
#undef TL_CONSTANT

typedef struct tl_choice {
    double seconds[TL_CONSTANTS];
    bool   looked, measured;            /* for the constants on disk; found or made */
    int    force;                       /* TL_USE_CPU, TL_USE_DEVICE: no choice; 0  */
    int    grid;                        /* points a side of the stencil that is measured */
    char   machine[512];                /* what the constants are for               */
} tl_choice;

/* What a product has to go through, as far as it is known before. */
typedef struct tl_amount {
    double products, entries, up, down; /* up, down: bytes                          */
    int    threads;                     /* of the CPU                               */
} tl_amount;

/* ---- choose.c */
double tl_forecast_cpu(const tl_choice *c, const tl_amount *amount);
double tl_forecast_device(const tl_choice *c, const tl_amount *amount);

/* ---- choose_measure.c: defaults, or what is kept in the cache folder for this machine */
void   tl_constants_find(tulle_ctx *ctx);

#endif
