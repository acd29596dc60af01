/* SPDX-License-Identifier: MIT
 *
 * choose.h - contexts that choose between the CPU and a GPU for each product: what choose.c and
 * choose_measure.c share.
 *
 * Such a context has both engines: the GPU's is the context's own engine, so that device memory, streams and
 * handles work as with any GPU, and a product whose arrays lie on the host may use the CPU's. */
#ifndef TL_CHOOSE_H
#define TL_CHOOSE_H
#include "ctx.h"

/* The constants of the prediction, in seconds.  Those of the CPU, except cpu_start, are for one thread.  The
 * defaults were measured with an H200 on PCIe 5 and its host of 16 cores; those of copies lie between a first
 * call, whose C is not in locked memory yet, and later ones (0.025e-9 and 0.016e-9).  "Alike" is a product
 * of a row whose neighbours have the same columns, or the same ones moved along: a stencil, a mesh with
 * several unknowns a node. */
#define TL_CONSTANT_LIST(X)                                                                       \
    X(CPU_START,   "cpu_start",      10e-6)     /* a product                              */      \
    X(CPU_PRODUCT, "cpu_product",    5e-9)      /* one of its products, of scattered rows */      \
    X(CPU_ALIKE,   "cpu_alike",      0.5e-9)    /* one of its products, of rows alike     */      \
    X(CPU_ENTRY,   "cpu_entry",      5e-9)      /* an entry of C                          */      \
    X(CPU_COLUMN,  "cpu_column",     0.25e-9)   /* an entry of A times one of X           */      \
    X(GPU_START,   "device_start",   0.2e-3)    /* kernels started, waits                 */      \
    X(GPU_UP,      "device_up",      0.04e-9)   /* a byte from the host                   */      \
    X(GPU_DOWN,    "device_down",    0.03e-9)   /* a byte to the host                     */      \
    X(GPU_PRODUCT, "device_product", 0.012e-9)                                                    \
    X(GPU_ALIKE,   "device_alike",   0.002e-9)                                                    \
    X(GPU_ENTRY,   "device_entry",   0.03e-9)                                                     \
    X(GPU_COLUMN,  "device_column",  0.002e-9)

#define TL_CONSTANT(id, name, seconds) TL_##id,
enum { TL_CONSTANT_LIST(TL_CONSTANT) TL_CONSTANTS };
#undef TL_CONSTANT

typedef struct tl_choice {
    double seconds[TL_CONSTANTS];
    bool   looked, measured;            /* the cache was searched; the constants are measured ones */
    int    force;                       /* TL_USE_CPU, TL_USE_DEVICE: no choice; 0: choose */
    int    grid;                        /* points per side of the measured stencil  */
    char   machine[512];                /* identifies the machine of the constants  */
} tl_choice;

/* The estimated work of a product. */
typedef struct tl_amount {
    double products, alike;             /* the share of them in rows alike          */
    double entries, up, down;           /* up, down: bytes                          */
    int    threads;                     /* of the CPU                               */
} tl_amount;

/* ---- choose.c */
double tl_forecast_cpu(const tl_choice *c, const tl_amount *amount);
double tl_forecast_device(const tl_choice *c, const tl_amount *amount);

/* ---- choose_measure.c: the constants in the cache folder for this machine, or defaults */
void   tl_constants_find(tulle_ctx *ctx);

#endif
