/* SPDX-License-Identifier: MIT
 *
 * tulle.h - products of sparse matrices.
 *
 * The simple way is three calls:
 *
 *     tulle_ctx_create(NULL, NULL, &ctx);          the CPU and the best GPU there is
 *     tulle_multiply(ctx, &A, &B, NULL, &C);       A, B: views over your arrays
 *     tulle_csr c = tulle_matrix_view(C);          C: owned by the library, rows sorted
 *
 * To multiply the same patterns again with new values, make a plan once and run it many times.  A sparse
 * matrix times a dense one (SpMM) is tulle_spmm(): Y = alpha*op(A)*X + beta*Y.
 *
 * Every function that can fail returns a tulle_status.  A caller's error (-1 .. -99) leaves everything
 * unchanged, except Y of tulle_spmm() and y of tulle_csr_apply(), which may be partly written when A's
 * pattern is found to be invalid.  A run-time error (-100 ..) may have changed outputs, but nothing else.
 * Inputs are never written.  tulle_ctx_error() returns the error message: which row, which file and line,
 * how many bytes were missing.
 *
 * A context serves one thread at a time; different contexts may be used from different threads at once.
 * There is no global state.
 *
 * A structure that is all zero asks for the defaults.  Use designated initializers: each structure has
 * reserved words, so that later versions can add members without changing its size.  In a structure that the
 * library reads the reserved words must be zero, otherwise the result is TULLE_EINVAL; in a structure that
 * the library fills in, it sets them to zero.
 *
 * A child of fork() may use and free the contexts, plans and matrices that it inherits, unless another thread
 * was using them during the fork; the child starts its own threads when they are needed.  Objects on a GPU
 * can only be freed in the child: GPU drivers do not survive a fork, and any other use of them returns
 * TULLE_EDRIVER.
 *
 * On the CPU the result of a product is the same bit for bit for any number of threads, any memory limit and
 * any policy: every entry is (((0 + p1) + p2) + ...), its products taken in the order of the row of A.  A GPU
 * gives the same bits for every row that a single group of threads computes; long rows are shared by several
 * groups, whose products are added in no fixed order, so they may differ in the last bits from run to run.
 * The structure of a product depends on the patterns alone, never on values, unless drop_zeros is set.
 *
 * Arrays of a view may lie in the memory of the context's device: see tulle_csr_move(), and for device memory
 * that the caller allocated tulle_cuda.h and tulle_opencl.h.
 *
 * Lifetimes:
 *
 *     what                                 what must outlive it                 who frees it
 *     tulle_ctx                            -                                    tulle_ctx_free(), after its
 *                                                                               plans and writers
 *     tulle_plan, tulle_spmm_plan          its context; the patterns of A, B    tulle_plan_free() ...
 *     tulle_writer                         its context                          tulle_writer_free()
 *     tulle_matrix, tulle_dense_matrix     nothing: may outlive its context     tulle_matrix_free() ...
 *     a view of one of these               the matrix                           nobody: a view owns nothing
 *     a view of a plan's pattern           the plan                             nobody
 *     a view over arrays of the caller     the arrays, during a call            the caller
 *     a block of tulle_multiply_blocks()   - (valid during the callback)        the library
 *     texts: names, tulle_ctx_error()      the context; the message is valid    nobody
 *                                          until the next call with it
 *     options, and what they point at      - (read during the call)             the caller */
#ifndef TULLE_H
#define TULLE_H
#include <stddef.h>
#include <stdint.h>

#define TULLE_VERSION_MAJOR 0
#define TULLE_VERSION_MINOR 1
#define TULLE_VERSION_PATCH 0
#define TULLE_VERSION "0.1.0"

#if defined(TULLE_BUILD) && defined(__GNUC__)
#define TULLE_API __attribute__((visibility("default")))
#else
#define TULLE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- status */

#define TULLE_STATUS_LIST(X)                                                \
    X(OK,           0, "no error")                                          \
    X(EINVAL,      -1, "an argument is not allowed")                        \
    X(ESHAPE,      -2, "the shapes of the matrices do not agree")           \
    X(EPATTERN,    -3, "an index is out of range or out of order")          \
    X(ETYPE,       -4, "this combination of types is not supported")        \
    X(EDEVICE,     -5, "no such device")                                    \
    X(ENOMEM,    -100, "out of memory")                                     \
    X(ELIMIT,    -101, "the memory limit is too small")                     \
    X(EOVERFLOW, -102, "a count does not fit the index type")               \
    X(EIO,       -103, "a file could not be read or written")               \
    X(EFORMAT,   -104, "a file is damaged or not in a known format")        \
    X(ECANCEL,   -105, "cancelled by the progress callback")                \
    X(ECHECK,    -106, "a check of the result failed")                      \
    X(EDRIVER,   -107, "a device or its driver failed")                     \
    X(ECOMPILE,  -108, "a kernel could not be compiled")                    \
    X(ECOMM,     -109, "messages between processes failed")

typedef enum tulle_status {
#define TULLE_STATUS_ENUM(name, code, text) TULLE_##name = code,
    TULLE_STATUS_LIST(TULLE_STATUS_ENUM)
#undef TULLE_STATUS_ENUM
    TULLE_STATUS_MIN = -999
} tulle_status;

/* The version of the library, such as "0.1.0". */
TULLE_API const char *tulle_version(void);
/* The name of a status, such as "TULLE_EPATTERN". */
TULLE_API const char *tulle_status_name(tulle_status status);
/* What a status means, in a few words: the texts of the list above. */
TULLE_API const char *tulle_status_text(tulle_status status);

/* ----------------------------------------------------------------- types */

typedef enum tulle_type {         /* values */
    TULLE_F32 = 1,                /* float */
    TULLE_F64 = 2,                /* double */
    TULLE_CF32 = 3,                /* complex float:  two floats, real part first  */
    TULLE_CF64 = 4                 /* complex double: two doubles, real part first */
} tulle_type;

typedef enum tulle_index { TULLE_I32 = 1, TULLE_I64 = 2 } tulle_index;          /* int32_t, int64_t */
typedef enum tulle_place { TULLE_HOST = 0, TULLE_DEVICE = 1 } tulle_place;      /* where arrays live */
typedef enum tulle_op { TULLE_KEEP = 0, TULLE_TRANSPOSE = 1, TULLE_ADJOINT = 2 } tulle_op;
typedef enum tulle_order { TULLE_BY_ROWS = 0, TULLE_BY_COLS = 1 } tulle_order; /* row-major, column-major */

typedef struct tulle_ctx    tulle_ctx;      /* a device, its memory and threads     */
typedef struct tulle_plan   tulle_plan;     /* a product's symbolic phase, for reuse */
typedef struct tulle_matrix tulle_matrix;   /* a CSR matrix that the library owns   */
typedef struct tulle_dense_matrix tulle_dense_matrix;   /* a dense matrix that the library owns */
typedef struct tulle_spmm_plan tulle_spmm_plan;         /* a plan for tulle_spmm()   */
typedef struct tulle_writer tulle_writer;   /* a file that grows by blocks of rows  */

/* A view over three arrays of the caller: a sparse matrix in compressed sparse row format (CSR), 0-based.  A
 * view owns nothing, and the library never writes to its arrays.  Row i has the entries row_ptr[i] to
 * row_ptr[i+1] - 1 of col_idx and values; its columns increase strictly.  values may be NULL where only the
 * pattern is needed.
 *
 * On the host a view may be a slice of rows of a larger matrix: row_ptr points at the row pointer of the
 * slice's first row, col_idx and values point at the beginning of the larger matrix's arrays, and row_ptr[0]
 * need not be 0.  nnz is always row_ptr[rows] - row_ptr[0].  An array of values that is passed to a plan
 * later is indexed like that of the view: the first value read is number row_ptr[0].  In device memory
 * row_ptr[0] must be 0. */
typedef struct tulle_csr {
    int64_t     rows, cols, nnz;
    const void *row_ptr;          /* rows + 1 entries of ptr_type      */
    const void *col_idx;          /* row_ptr[rows] entries of idx_type */
    const void *values;           /* row_ptr[rows] entries of val_type */
    tulle_index ptr_type, idx_type;
    tulle_type  val_type;
    tulle_place place;
    uint64_t    reserved[2];      /* must be zero                      */
} tulle_csr;

/* A view over a dense matrix of the caller, row-major or column-major.  Entry (i,j) is values[i*ld + j] in
 * TULLE_BY_ROWS, values[i + j*ld] in TULLE_BY_COLS. */
typedef struct tulle_dense {
    int64_t     rows, cols;
    int64_t     ld;               /* leading dimension; 0: no gaps between rows (columns)     */
    tulle_type  val_type;
    tulle_order order;
    void       *values;           /* written only where the view is an output                 */
    tulle_place place;
    uint64_t    reserved[2];      /* must be zero                                             */
} tulle_dense;

/* The caller's own allocator: both functions, or neither.  All zero: the library's allocator, which uses huge
 * pages where the system has them. */
typedef struct tulle_mem {
    void *(*alloc)(void *user, size_t bytes);
    void  (*free)(void *user, void *p);
    void  *user;
    uint64_t reserved[2];         /* must be zero */
} tulle_mem;

/* Called from time to time, in the thread that called the library, with fraction in 0..1; return non-zero to
 * cancel. */
typedef int (*tulle_progress_fn)(void *user, const char *stage, double fraction);

/* Called with one line of text for each choice the library makes, such as the policy or the number of
 * threads. */
typedef void (*tulle_trace_fn)(void *user, const char *line);

/* Called with the path of a temporary file just before it is created (there is 1), and after it was removed
 * or renamed (there is 0).  A program that is ended by a signal can remove the files that still exist. */
typedef void (*tulle_partial_fn)(void *user, const char *path, int there);

/* Options of a sparse product, C = op(A)*op(B). */
typedef struct tulle_options {
    const char *policy;           /* NULL: "auto"; tulle_policy_name() lists them             */
    const char *accumulator;      /* NULL: the policy chooses one for each row; else this one, except that
                                     rows of A with one entry are copied, and rows too long for it fall back
                                     to another; the stats count the rows of each             */
    uint64_t    memory_limit;     /* bytes for C, workspace and copies of operands: all that the call holds
                                     besides A and B.  On a GPU only device memory counts, uploaded operands
                                     included, and host memory does not.  0: all free memory of the device.
                                     The message of TULLE_ELIMIT gives a sufficient number.  A GPU may find
                                     out half way and then gives what was needed so far, so up to three
                                     calls may fail before one succeeds.  On a CPU a call that fails may
                                     have used up to 64 MiB to compute the number             */
    int         threads;          /* 0: the context's; a small memory limit may reduce it     */
    int         op_a, op_b;       /* tulle_op: an operand, its transpose or its adjoint       */
    int         c_ptr_type;       /* tulle_index; 0: I32 where the counts fit, else I64       */
    int         c_idx_type;       /* tulle_index; 0: as B's                                   */
    int         drop_zeros;       /* 1: entries of C whose computed value is zero are left out */
    int         sort_inputs;      /* 1: unsorted rows and duplicates are accepted; the library sorts copies */
    int         trust_inputs;     /* 1: the views are not checked; an invalid one is undefined behaviour */
    int         c_place;          /* tulle_place: where C is stored                           */
    int         time_stages;      /* 1: measure the time of each stage (costs a little)       */
    uint64_t    reserved[7];      /* must be zero                                             */
} tulle_options;

/* Options of a sparse matrix times a dense one, Y = alpha*op(A)*X + beta*Y. */
typedef struct tulle_spmm_options {
    const char *policy;           /* NULL: "auto"; tulle_spmm_policy_name() lists them        */
    uint64_t    memory_limit;     /* bytes of workspace, on a GPU also the copies of A, X and Y; 0: all free
                                     memory                                                   */
    int         op_a;             /* tulle_op: A, its transpose or its adjoint                */
    int         threads;          /* 0: the context's                                         */
    int         trust_inputs;     /* 1: A is not checked; an invalid one is undefined behaviour */
    int         allow_tf32;       /* 1: a GPU may round float to 10 bits of mantissa (TF32) and multiply that;
                                     the error of a sum is then up to 2^-10 of the sum of |a||x|, besides the
                                     rounding of the sum.  Where TF32 was used, the policy in the stats is
                                     "auto, tf32"                                             */
    int         time_stages;      /* 1: measure the time of each stage                        */
    const struct tulle_spmm_lab *lab;   /* NULL; for experiments, see tulle_lab.h             */
    uint64_t    reserved[8];      /* must be zero                                             */
} tulle_spmm_options;

/* The rows that one accumulator computed, and their products. */
typedef struct tulle_share {
    const char *name;
    int64_t     rows, products;
    uint64_t    reserved[1];      /* zero */
} tulle_share;

#define TULLE_MAX_SHARES 16

/* One stage of a product, in the order they ran; only with time_stages. */
typedef struct tulle_stage {
    const char *name;
    double      seconds;
    uint64_t    reserved[2];      /* zero */
} tulle_stage;

#define TULLE_MAX_STAGES 16

/* Times, counts and memory of a product. */
typedef struct tulle_stats {
    double      sec_compile;      /* compiling or loading kernels the first time a GPU needs them; 0 on a CPU.
                                     (PoCL finishes compiling when a kernel first runs: not included) */
    double      sec_check, sec_analyze, sec_symbolic, sec_numeric, sec_finish;     /* without sec_compile */
    double      sec_total;        /* the whole call; of a plan: creating it and its last run */
    int64_t     a_nnz, b_nnz, c_nnz, products;     /* of tulle_spmm(): b is X, c is Y */
    uint64_t    workspace_bytes;  /* peak_bytes without C                              */
    uint64_t    peak_bytes;       /* peak memory including C and copies of A and B on a GPU, but not A and B
                                     themselves                                        */
    int         threads;
    int         shares;
    tulle_share share[TULLE_MAX_SHARES];
    int         stages;
    tulle_stage stage[TULLE_MAX_STAGES];
    int         waits;            /* how often the host synchronized with a device */
    const char *policy, *device, *isa;
    double      sec_upload;       /* products on a GPU: A and B from the host to the device, */
    double      sec_download;     /* and C back, after the last kernel; 0 where it is less than 1 MiB:
                                     then that is in sec_numeric             */
    uint64_t    reserved[6];      /* zero                                    */
} tulle_stats;

/* Counts, memory and accumulators of a product, before it is computed. */
typedef struct tulle_forecast {
    int64_t     products;                          /* exact                       */
    int64_t     nnz_lower, nnz_estimate, nnz_upper;/* of C; the bounds always hold, the
                                                      lower one is 0 with drop_zeros */
    uint64_t    bytes_estimate, bytes_upper;       /* peak memory on the CPU, C included; valid for a
                                                      plan, too                   */
    int         shares;                            /* the accumulators that the CPU would choose, whatever
                                                      the context's device        */
    tulle_share share[TULLE_MAX_SHARES];
    const char *policy;
    const char *device;                            /* where tulle_multiply() would compute it */
    double      sec_cpu, sec_device;               /* predicted times with operands and C on the host, in a
                                                      context that chooses between both; else 0 */
    uint64_t    reserved[5];                       /* zero                        */
} tulle_forecast;

/* One device, as tulle_device_info() describes it. */
typedef struct tulle_device {
    char        name[64];         /* what tulle_ctx_create() takes: "cpu", "cuda:0" */
    char        text[384];        /* its description                                */
    char        arch[64];         /* "avx2", "sm_90", "OpenCL 3.0"                  */
    char        driver[160];      /* empty: it needs none                           */
    uint64_t    memory_bytes, memory_free;
    int         processors, threads;    /* cores, and hardware threads              */
    int         usable;
    char        why_not[192];     /* when not usable                                */
    uint64_t    reserved[8];      /* zero                                           */
} tulle_device;

/* Kernels compiled for a GPU, kept on disk for the next process. */
typedef struct tulle_cache {
    char        path[1024];       /* the folder; empty: there is none               */
    int64_t     entries;
    uint64_t    bytes;
    int64_t     embedded;         /* images that came with the library              */
    char        why_not[256];     /* why the folder is not used; empty: it is       */
    uint64_t    reserved[4];      /* zero                                           */
} tulle_cache;

/* What tulle_cache_warm() did. */
typedef struct tulle_kernels {
    int64_t     programs;         /* all for these types; those not counted below were already loaded */
    int64_t     compiled, cached, embedded;
    double      seconds;
    uint64_t    reserved[4];      /* zero */
} tulle_kernels;

/* ----------------------------------------------------- context and devices */

/* Makes a context on a device.  device is a name of the list that tulle_device_info() gives; "cuda" and
 * "opencl" are the first device of each.  NULL: $TULLE_DEVICE where that is set, else the CPU and the best
 * usable GPU; the trace says of each GPU that cannot be used why not.  In a context of the CPU the place
 * TULLE_DEVICE means the host, so that programs need no special case for it.
 *
 * With "cpu/cuda:0", and with NULL where there is a GPU, a context has both: it is a context of that GPU,
 * but a product whose operands and C lie on the host is computed on the CPU or on the GPU, whichever is
 * predicted to finish first, copies included.  tulle_stats names the device, the trace says why it was
 * chosen, and tulle_estimate() gives both predicted times.  The prediction uses default speeds until
 * tulle_cache_warm() has measured this machine.  Where the chosen device has too little memory the other one
 * is used; a memory_limit has the meaning it has on the device that computes.  For a plan of a sparse product
 * the device is chosen when the plan is made; a plan of tulle_spmm() always uses the GPU, because X may lie
 * there.
 *
 * Up to 16 names separated by commas, such as "cuda:0,cuda:1" or "cpu,cuda:0", make one context whose devices
 * divide the rows of each product among them; a device may be named more than once.  Each row is computed by
 * one device, with the bits that this device gives alone.  All arrays are on the host: views over device
 * memory are refused.  The context's threads are divided among the devices named "cpu".  A memory limit is
 * the total for the host and all devices, and is divided among them; where a part would be too small, a
 * single device computes the whole product.  An error message begins with the name of the device.  Memory
 * hooks are called from several threads at once; progress and trace functions only from the calling thread.
 * In a child of fork() such a context can be used if it has no GPU.  (After an error of one device, Y may
 * hold rows that the others have written.) */
TULLE_API tulle_status tulle_ctx_create(const char *device, const tulle_mem *mem, tulle_ctx **ctx);
/* Makes a context, or says why there is none.  As tulle_ctx_create(); after a failure there is no context to
 * ask, so the error message is copied to why, cut to so many bytes. */
TULLE_API tulle_status tulle_ctx_create_why(const char *device, const tulle_mem *mem, tulle_ctx **ctx,
                                            char *why, size_t bytes);
/* Frees a context; NULL is allowed.  Matrices that it made may outlive it, plans and writers may not. */
TULLE_API void         tulle_ctx_free(tulle_ctx *ctx);
/* The message of the last error, empty when the last call succeeded. */
TULLE_API const char  *tulle_ctx_error(const tulle_ctx *ctx);
/* The name of a context's device, such as "cpu" or "cuda:0"; where it chooses between both, the GPU's. */
TULLE_API const char  *tulle_ctx_device(const tulle_ctx *ctx);
/* Sets how many threads of the CPU a context uses; 0: one for each core. */
TULLE_API tulle_status tulle_ctx_set_threads(tulle_ctx *ctx, int threads);
/* Sets a callback that receives the progress of a call, and may cancel it; NULL: none. */
TULLE_API void         tulle_ctx_set_progress(tulle_ctx *ctx, tulle_progress_fn fn, void *user);
/* Sets a callback that receives a line of text for each choice the library makes; NULL: none. */
TULLE_API void         tulle_ctx_set_trace(tulle_ctx *ctx, tulle_trace_fn fn, void *user);
/* Sets a callback for temporary files, called before one is created and after it is removed or renamed; NULL:
 * none. */
TULLE_API void         tulle_ctx_set_partial(tulle_ctx *ctx, tulle_partial_fn fn, void *user);
/* Times, counts and memory of the last product; zeros before the first. */
TULLE_API void         tulle_ctx_stats(const tulle_ctx *ctx, tulle_stats *stats);
/* Frees the memory that a context keeps for its next product.  That is at most an eighth of the machine's
 * memory, and on a GPU at most a quarter of the device's; the latter is otherwise freed only where this
 * context needs other memory on the device. */
TULLE_API void         tulle_ctx_trim(tulle_ctx *ctx);

/* The number of devices, usable or not.  The CPU is the first, followed by the devices of each driver; for a
 * driver that is not installed there is one entry, which is not usable and says why.  Devices are searched
 * for again at each call. */
TULLE_API int          tulle_device_count(void);
/* The i-th device: its name, a description, its memory, and why it cannot be used.  TULLE_EINVAL: there is no
 * i-th device now. */
TULLE_API tulle_status tulle_device_info(int i, tulle_device *info);
/* Where compiled kernels are kept, and how many there are. */
TULLE_API tulle_status tulle_cache_info(tulle_ctx *ctx, tulle_cache *info);
/* Removes the compiled kernels from the cache, and says how many there were. */
TULLE_API tulle_status tulle_cache_clear(tulle_ctx *ctx, tulle_cache *removed);
/* Compiles or loads the kernels of a GPU ahead of the first product.  They are those for values and indices
 * of these types; the progress callback gets the stage "compiling kernels", and may cancel.  A CPU has none:
 * the result is TULLE_OK and zeros.  A context that chooses between the CPU and a GPU also measures the speed
 * of both, in about a second, and stores the result beside the kernels.  (Rows of C that span more than 2^27
 * columns, and matrices with indices of different widths, need further kernels.) */
TULLE_API tulle_status tulle_cache_warm(tulle_ctx *ctx, tulle_type val_type, tulle_index idx_type,
                                        tulle_kernels *got);
/* The i-th policy of sparse products; NULL past the last. */
TULLE_API const char  *tulle_policy_name(int i);
/* What the i-th policy does, in one line. */
TULLE_API const char  *tulle_policy_text(int i);
/* The i-th accumulator; NULL past the last. */
TULLE_API const char  *tulle_accumulator_name(int i);
/* How the i-th accumulator works, in one line. */
TULLE_API const char  *tulle_accumulator_text(int i);

/* ---------------------------------------------------------------- matrices */

/* A view over arrays on the host: double values, 32-bit indices. */
TULLE_API tulle_csr tulle_csr_f64_i32(int64_t rows, int64_t cols, const int32_t *row_ptr,
                                      const int32_t *col_idx, const double *values);
/* A view over arrays on the host: float values, 32-bit indices. */
TULLE_API tulle_csr tulle_csr_f32_i32(int64_t rows, int64_t cols, const int32_t *row_ptr,
                                      const int32_t *col_idx, const float *values);
/* A view over arrays on the host, of any types; nnz is read from row_ptr. */
TULLE_API tulle_csr tulle_csr_make(int64_t rows, int64_t cols, const void *row_ptr, tulle_index ptr_type,
                                   const void *col_idx, tulle_index idx_type,
                                   const void *values, tulle_type val_type);
/* A view over arrays on the device of a context; nnz is an argument, as the host cannot read row_ptr there.
 * tulle_cuda.h and tulle_opencl.h say what the pointers are. */
TULLE_API tulle_csr tulle_csr_make_device(int64_t rows, int64_t cols, int64_t nnz, const void *row_ptr,
                                          tulle_index ptr_type, const void *col_idx, tulle_index idx_type,
                                          const void *values, tulle_type val_type);

/* Checks a view: bounds, order and duplicates.  The error message says which row is invalid.
 *
 * This function and those below work on one matrix, on the host, and their results are there; views over
 * device memory are copied first. */
TULLE_API tulle_status tulle_csr_check(tulle_ctx *ctx, const tulle_csr *A);
/* A copy with sorted rows; entries in the same place are added up, in their order. */
TULLE_API tulle_status tulle_csr_sort(tulle_ctx *ctx, const tulle_csr *A, tulle_matrix **out);
/* The transpose or the conjugate transpose, as a matrix of its own. */
TULLE_API tulle_status tulle_csr_transpose(tulle_ctx *ctx, const tulle_csr *A, tulle_op op,
                                           tulle_matrix **out);
/* A copy with other types.  0 keeps a type as it is; from complex to real the real part is kept. */
TULLE_API tulle_status tulle_csr_convert(tulle_ctx *ctx, const tulle_csr *A, tulle_type val_type,
                                         tulle_index ptr_type, tulle_index idx_type,
                                         tulle_matrix **out);
/* A matrix from coordinates in any order; entries in the same place are added up, in their order. */
TULLE_API tulle_status tulle_csr_from_coo(tulle_ctx *ctx, int64_t rows, int64_t cols, int64_t count,
                                          const void *row_idx, const void *col_idx,
                                          tulle_index idx_type, const void *values,
                                          tulle_type val_type, tulle_matrix **out);
/* y = A*x for one dense vector.  x and y have A's value type and must not overlap.  Sums are accumulated in
 * double for every type, in the order of the row, and rounded once: the bits are the same for any number of
 * threads, and in a context of a GPU.  An error leaves y unchanged, with two exceptions: when the progress
 * callback cancels, and when A's pattern is invalid, as its rows are checked while they are summed, the
 * contents of y are undefined. */
TULLE_API tulle_status tulle_csr_apply(tulle_ctx *ctx, const tulle_csr *A, const void *x, void *y);

/* A copy on the host or on the context's device, in the same types.  A matrix on a device can be used only
 * with the context that made it (on CUDA with any context of that device); an array in the memory of another
 * device is refused with TULLE_EINVAL, wherever one is given.  Like every matrix, it may be freed after its
 * context. */
TULLE_API tulle_status tulle_csr_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place,
                                      tulle_matrix **out);

/* A view of a matrix that the library owns; its place says where the arrays lie. */
TULLE_API tulle_csr tulle_matrix_view(const tulle_matrix *A);
/* The values of a matrix that the library owns, to write new ones into. */
TULLE_API void     *tulle_matrix_values(tulle_matrix *A);
/* Frees a matrix; NULL is allowed. */
TULLE_API void      tulle_matrix_free(tulle_matrix *A);

/* Called when the library no longer needs arrays of the caller. */
typedef void (*tulle_done_fn)(void *user);

/* A matrix over arrays of the caller, without a copy.  The arrays must not change until done(user) is called,
 * which happens when the matrix is freed, in the thread that frees it.  done may be NULL.  On the host
 * row_ptr must agree with nnz; nothing else of the arrays is checked.  After an error the arrays still belong
 * to the caller, and done is not called. */
TULLE_API tulle_status tulle_matrix_adopt(tulle_ctx *ctx, const tulle_csr *A, tulle_done_fn done, void *user,
                                          tulle_matrix **out);
/* The arrays of a matrix for the caller, without a copy.  A itself is freed.  Free each array with
 * tulle_array_free(), never with free(), in any order and thread, also after its context.  TULLE_EINVAL, and
 * A is unchanged: its arrays are on a device, adopted, or a mapped file. */
TULLE_API tulle_status tulle_matrix_release(tulle_matrix *A, tulle_csr *arrays);
/* Frees an array that tulle_matrix_release() gave; NULL is allowed. */
TULLE_API void         tulle_array_free(const void *array);

/* ---------------------------------------------------------- dense matrices */

/* A view over a dense matrix on the host. */
TULLE_API tulle_dense tulle_dense_make(int64_t rows, int64_t cols, int64_t ld, tulle_order order,
                                       void *values, tulle_type val_type);
/* A view over a dense matrix on the device of a context. */
TULLE_API tulle_dense tulle_dense_make_device(int64_t rows, int64_t cols, int64_t ld, tulle_order order,
                                              void *values, tulle_type val_type);
/* A dense matrix of zeros that the library owns, without gaps between its rows or columns. */
TULLE_API tulle_status tulle_dense_create(tulle_ctx *ctx, int64_t rows, int64_t cols, tulle_order order,
                                          tulle_type val_type, tulle_dense_matrix **out);
/* A copy of a dense matrix in another order or type.  It is on the host and without gaps; from complex to
 * real the real part is kept.  val_type 0: as it is. */
TULLE_API tulle_status tulle_dense_convert(tulle_ctx *ctx, const tulle_dense *A, tulle_order order,
                                           tulle_type val_type, tulle_dense_matrix **out);
/* A copy of a dense matrix on the host or on the context's device, without gaps. */
TULLE_API tulle_status tulle_dense_move(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                                        tulle_dense_matrix **out);
/* Reads a dense matrix from a file.  It may be NumPy's .npy (float and complex, both orders; an array of one
 * dimension is a column) or Matrix Market's (plain or gzipped, or "A.tar.gz:NAME"; values become double or
 * complex double), told apart by content.  A sparse file (coordinate) gets zeros between its entries. */
TULLE_API tulle_status tulle_dense_read(tulle_ctx *ctx, const char *path, tulle_dense_matrix **out);
/* Writes a dense matrix to a file.  The format follows the name: .npy or .mtx. */
TULLE_API tulle_status tulle_dense_write(tulle_ctx *ctx, const char *path, const tulle_dense *A);
/* A view of a dense matrix that the library owns. */
TULLE_API tulle_dense  tulle_dense_view(const tulle_dense_matrix *A);
/* Frees a dense matrix; NULL is allowed. */
TULLE_API void         tulle_dense_free(tulle_dense_matrix *A);

/* ------------------------------------------------------- files and gallery */

/* Reads a sparse matrix from a file.  The formats .mtx, .mtx.gz, SuiteSparse's .tar.gz and .tulle are told
 * apart by content, also when read from a pipe.  A matrix from a .tulle file has the types stored there; from
 * the other formats, values become double or complex double, and indices have 32 bits where they fit
 * (tulle_csr_convert() makes other types).  From an archive the member NAME/NAME.mtx is read, or if there is
 * none the largest .mtx; "A.tar.gz:NAME" is the member of that name or path, with or without .mtx.  The
 * matrix is a copy, so the file may change later. */
TULLE_API tulle_status tulle_read(tulle_ctx *ctx, const char *path, tulle_matrix **A);
/* Reads a sparse matrix, or maps its file where that is possible.  As tulle_read(), but a .tulle file that is
 * a regular file and not packed is mapped and verified instead of copied: that takes less memory, and pages
 * are shared with other processes.  The file must not be written to or truncated while the matrix exists:
 * otherwise the matrix changes, or SIGBUS is raised.  Replacing the file by renaming is safe. */
TULLE_API tulle_status tulle_read_mapped(tulle_ctx *ctx, const char *path, tulle_matrix **A);

/* Writes a sparse matrix to a file.  The format follows the name: .mtx, .mtx.gz or .tulle.
 *
 * Every file is first written to a temporary file in the same folder (tulle-HEX.part) with the permissions of
 * the file that it replaces, flushed to disk (fsync), and renamed when it is complete.  After a failure the
 * old file is untouched.  Of a symbolic link the target is replaced; pipes, devices and folders are
 * refused. */
TULLE_API tulle_status tulle_write(tulle_ctx *ctx, const char *path, const tulle_csr *A);
/* Writes half of a symmetric matrix to a file.  The matrix must equal its transpose, or its conjugate
 * transpose: the lower triangle is written to a Matrix Market file (.mtx, .mtx.gz), as "symmetric" or
 * "hermitian".  For any other matrix the result is TULLE_EINVAL, and the error message names an entry that
 * differs from its mirror image across the diagonal. */
TULLE_API tulle_status tulle_write_symmetric(tulle_ctx *ctx, const char *path, const tulle_csr *A);
/* Checks that a file could be written there, before a long computation.  It creates the temporary file, and
 * removes it. */
TULLE_API tulle_status tulle_write_check(tulle_ctx *ctx, const char *path);
/* Writes bytes of any kind to a file, such as a picture, as tulle_write() does. */
TULLE_API tulle_status tulle_write_bytes(tulle_ctx *ctx, const char *path, const void *data, size_t bytes);

/* Begins a file that grows by blocks of rows.  It is for a matrix larger than memory, whose blocks are
 * appended in order, such as those of tulle_multiply_blocks().  (Called from that callback, the writer needs
 * a second context, because the first one is busy.)  The name ends with .mtx or .tulle; a .tulle file gets
 * 64-bit row pointers, and until it is finished its values lie in a second temporary file beside it.
 * val_type 0: a pattern without values. */
TULLE_API tulle_status tulle_writer_create(tulle_ctx *ctx, const char *path, int64_t rows, int64_t cols,
                                           tulle_type val_type, tulle_writer **writer);
/* Appends the next rows to the file of a writer. */
TULLE_API tulle_status tulle_writer_put(tulle_writer *writer, const tulle_csr *block);
/* Completes the file of a writer after all rows were appended, and gives it its name. */
TULLE_API tulle_status tulle_writer_finish(tulle_writer *writer);
/* Frees a writer, before its context; NULL is allowed.  A file that was not finished is removed. */
TULLE_API void         tulle_writer_free(tulle_writer *writer);
/* Makes a matrix of the gallery from its recipe, such as "poisson2d:1000" or "rmat:scale=16,edges=16,seed=1".
 * tulle_gallery_name() lists the recipes, tulle_gallery_text() their parameters. */
TULLE_API tulle_status tulle_gallery(tulle_ctx *ctx, const char *recipe, tulle_matrix **A);
/* The name of the i-th recipe of the gallery; NULL past the last. */
TULLE_API const char  *tulle_gallery_name(int i);
/* What the i-th recipe makes, and its parameters, in one line. */
TULLE_API const char  *tulle_gallery_text(int i);

/* ----------------------------------------------------------- the simple way */

/* The product of two sparse matrices, C = op(A)*op(B).  Where neither A nor B has values (NULL), C is a
 * pattern and has none either; one operand without values is an error.
 *
 * Where the product does not fit on a GPU, because of memory_limit or because an allocation failed, and C is
 * wanted on the host, it is computed in blocks of rows, which are joined on the host.  Where B does not fit
 * either, each block uploads only the rows of B that it needs, and a single row that is too large is computed
 * in panels of columns.  The order of additions is the same.  Only two cases are refused: a limit too small
 * for one row of A with one column of B, and a C that does not fit in host memory. */
TULLE_API tulle_status tulle_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                      const tulle_options *options, tulle_matrix **C);

/* Called with a block of rows of C, a view that is valid during the call; return non-zero to stop. */
typedef int (*tulle_block_fn)(void *user, int64_t first_row, const tulle_csr *block);

/* A product larger than memory, C in blocks of rows.  They come in order, and memory_limit bounds each.  A
 * and B stay on a GPU where they fit beside a block; otherwise each block uploads the rows of A and of B that
 * it needs.  A single row of C has to fit where c_place puts it. */
TULLE_API tulle_status tulle_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                             const tulle_options *options,
                                             tulle_block_fn fn, void *user);

/* Counts and memory of a product before anything large is allocated.  They are computed on the host, whatever
 * the device. */
TULLE_API tulle_status tulle_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                      const tulle_options *options, tulle_forecast *forecast);

/* Verifies a product: is C = op(A)*op(B)?  C*x is compared with A*(B*x) for random x.  Rows for which that
 * test says nothing - they have infinities, leave the range of the type, or mix magnitudes too different for
 * one sum - are computed again, entry by entry.  An entry of C that overflowed or underflowed is accepted
 * where the sum of its products does so.  *error is relative to the sum of the absolute values of the terms.
 * TULLE_ECHECK: C is not the product.  The progress callback may cancel. */
TULLE_API tulle_status tulle_product_check(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                           const tulle_csr *C, const tulle_options *options,
                                           double *error);

/* ---------------------------------------------- patterns once, values often */

/* Prepares products of two patterns, for values that change.  The values of A and B are not read.  The arrays
 * of the patterns must not change or go away while the plan exists; of a transposed operand the plan keeps a
 * copy.  drop_zeros and sort_inputs are refused: call tulle_csr_sort() first. */
TULLE_API tulle_status tulle_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                         const tulle_options *options, tulle_plan **plan);
/* The pattern of a plan's product, without values.  Its arrays lie where c_place says, and live as long as
 * the plan. */
TULLE_API tulle_csr    tulle_plan_pattern(const tulle_plan *plan);
/* Computes the values of a plan's product from values of A and B.  a_values and b_values lie where A and B
 * did, c_values where c_place says; c_values must not overlap the other two.  No memory is allocated, except
 * for transposed operands on a device. */
TULLE_API tulle_status tulle_plan_run(tulle_plan *plan, const void *a_values, const void *b_values,
                                      void *c_values);
/* Computes a plan's product as a new matrix.  It has a copy of the plan's pattern and the values that
 * tulle_plan_run() would give, lies where c_place says, and may outlive the plan and its context.  Its memory
 * does not count toward the plan's memory limit. */
TULLE_API tulle_status tulle_plan_multiply(tulle_plan *plan, const void *a_values, const void *b_values,
                                           tulle_matrix **C);
/* Times, counts and memory of a plan's last run, or of its creation before the first run. */
TULLE_API void         tulle_plan_stats(const tulle_plan *plan, tulle_stats *stats);
/* Frees a plan of sparse products, before its context; NULL is allowed. */
TULLE_API void         tulle_plan_free(tulle_plan *plan);

/* ------------------------------------------ SpMM: a sparse matrix times a dense one */

/* The product of a sparse matrix and a dense one, Y = alpha*op(A)*X + beta*Y.  A, X and Y have the same value
 * type; X and Y may be row-major or column-major, each its own way.  alpha and beta point to one value of
 * that type each, on the host (NULL: 1 and 0).  With beta 0, Y is not read, so its old contents do not
 * matter; with alpha 0, neither X nor the arrays of A are read.  Otherwise infinities and NaN propagate as
 * IEEE 754 says; a factor without imaginary part multiplies both parts of a complex number.  X and Y must not
 * overlap.  An error leaves Y unchanged, except when the progress callback cancels, when a device fails half
 * way, and when beta is 0 and A's pattern is invalid (the CPU checks a row of A just before it multiplies
 * it): then the contents of Y are undefined.  Even so nothing is ever read outside of X.
 *
 * A sum is (((0 + p1) + p2) + ...), its products in the order of the row of op(A); a row of more than 32768
 * entries is summed in parts of that length, and the partial sums are added in order.  So a column of Y has
 * the same bits whatever the other columns are, for any layout of X and Y and any number of threads.  A GPU
 * uses fused multiply-add, and divides rows among threads by their lengths and the number of columns: its
 * bits are the same from run to run, but not always those of the CPU.  With a GPU A, X and Y may be on the
 * host, and need not fit on the device: X and Y are copied in chunks of columns, and an A that does not fit
 * in memory_limit or on the device in bands of rows (whose sums may be divided differently from those of a
 * whole A). */
TULLE_API tulle_status tulle_spmm(tulle_ctx *ctx, const void *alpha, const tulle_csr *A, const tulle_dense *X,
                                  const void *beta, tulle_dense *Y, const tulle_spmm_options *options);

/* Prepares products of one sparse matrix with dense ones.  It checks A, transposes it where op_a says so, and
 * divides the work, once for many products.  The plan refers to A's pattern, which must not change or go away
 * while the plan exists.  The values of A are copied, on every device and for every op_a and policy, and are
 * used until tulle_spmm_plan_set_values() sets others.  So a later change of the caller's array changes no
 * result, and the values are sent to a GPU only once. */
TULLE_API tulle_status tulle_spmm_plan_create(tulle_ctx *ctx, const tulle_csr *A,
                                              const tulle_spmm_options *options, tulle_spmm_plan **plan);
/* One product of a plan, Y = alpha*op(A)*X + beta*Y, with alpha and beta as in tulle_spmm(). */
TULLE_API tulle_status tulle_spmm_plan_run(tulle_spmm_plan *plan, const void *alpha, const tulle_dense *X,
                                           const void *beta, tulle_dense *Y);
/* Sets the values of the sparse matrix of a plan, for all later runs.  They lie where A's did, in the order
 * of its entries, and are copied before the function returns (on a caller's own stream or queue: in its
 * order).  An error leaves the plan's values unchanged, unless a device failed half way.  For a transposed A
 * the call takes as long as a transposition, and meanwhile twice the memory of A. */
TULLE_API tulle_status tulle_spmm_plan_set_values(tulle_spmm_plan *plan, const void *a_values);
/* Times, counts and memory of an SpMM plan's last run, or of its creation before the first run. */
TULLE_API void         tulle_spmm_plan_stats(const tulle_spmm_plan *plan, tulle_stats *stats);
/* Frees a plan of SpMM, before its context; NULL is allowed. */
TULLE_API void         tulle_spmm_plan_free(tulle_spmm_plan *plan);
/* The i-th policy of tulle_spmm(); NULL past the last. */
TULLE_API const char  *tulle_spmm_policy_name(int i);
/* What the i-th policy of tulle_spmm() does, in one line. */
TULLE_API const char  *tulle_spmm_policy_text(int i);

#ifdef __cplusplus
}
#endif
#endif
