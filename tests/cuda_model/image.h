/* SPDX-License-Identifier: MIT
 *
 * image.h - the interface between an image of the CUDA model and the model itself; C11 and C++17.
 *
 * An image is a shared object made by nvrtc.c.  It exports one symbol, cuda_model_image: a list of its kernels, and the
 * addresses of the variables for the services below and for the current thread. */
#ifndef CUDA_MODEL_IMAGE_H
#define CUDA_MODEL_IMAGE_H

enum { CUDA_MODEL_VERSION = 1, CUDA_MODEL_ARGS = 64 };

/* An operation of a warp: executed once, by the last thread that arrives, for all of the mask.  operand[j] is lane j's. */
typedef void cuda_model_together(unsigned mask, void *const *operand);

typedef struct cuda_model_services {
    /* Returns when all threads of the mask have arrived at the same operation with the same mask. */
    void  (*meet)(const char *name, cuda_model_together *together, unsigned mask, void *operand);
    void  (*barrier)(void);             /* ... when all threads of the block that have not ended have arrived    */
    void  (*give_way)(void);            /* may switch to another thread; called at every atomic operation        */
    void  (*copy_later)(void *to, const void *from, unsigned bytes);
    void  (*copy_wait)(void);           /* executes the asynchronous copies of this thread                       */
    void *(*shared)(unsigned low);      /* the address in shared memory with these lower 32 bits                 */
    void *(*dynamic)(void);             /* dynamic shared memory of the block                                    */
} cuda_model_services;

typedef struct cuda_model_place {
    struct { unsigned x, y, z; } thread, block, threads, blocks;
} cuda_model_place;

typedef struct cuda_model_kernel {
    const char *name;
    void      (*call)(void **arguments);
    int         arguments;
    struct { unsigned bytes, pointer; } argument[CUDA_MODEL_ARGS];
    unsigned    threads_most;           /* __launch_bounds__; 0: none                                            */
    char       *shared, *shared_end;    /* static shared memory                                                  */
} cuda_model_kernel;

typedef struct cuda_model_image_t {
    int                         version, kernels, capability;   /* capability: 75 for sm_75 */
    const cuda_model_kernel    *kernel;
    const cuda_model_services **services;
    cuda_model_place           *place;
} cuda_model_image_t;

#endif
