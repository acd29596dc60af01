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
 * When the same patterns come again with new values, make a plan once and run it many times.  A sparse matrix
 * times a dense one (SpMM) is tulle_spmm(): Y = alpha*op(A)*X + beta*Y.
 *
 * Every function that can fail returns a tulle_status.  After a caller's error (-1 .. -99) nothing was
 * changed, but for Y of tulle_spmm() and y of tulle_csr_apply(), which may be written before A's pattern is
 * refused; after a run-time error (-100 ..) only outputs may have been.  Inputs are never written.
 * tulle_ctx_error() holds the sentence: which row, which file and line, how many bytes were missing.
 *
 * A context serves one thread at a time; different contexts may be used from different threads at once.
 * There is no global state.
 *
 * Structures are set to all zero for the defaults, and are initialized by the names of their members: each
 * has reserved words, so that members can be added without a change of its size.  In a structure that the
 * library reads they must be zero, anything else is TULLE_EINVAL; in one that it fills in it sets them to
 * zero.
 *
 * A child of fork() may use and free the contexts, plans and matrices it was given, unless another thread was
 * using them at that moment; it starts threads of its own when they are needed.  What is on a GPU can only be
 * freed there: the drivers do not survive a fork, and everything else gives TULLE_EDRIVER.
 *
 * On the CPU the result of a product is the same bit for bit for any number of threads, any memory limit and
 * any policy: every entry is (((0 + p1) + p2) + ...), its products taken in the order of the row of A.  A GPU
 * gives the same bits for every row that one team of threads computes; long rows that several teams share are
 * added up in any order, and may differ in the last bits from run to run.  The structure of a product depends
 * on the patterns alone, never on values, unless drop_zeros is asked for.
 *
 * Arrays of a view may lie in the memory of the context's device: see tulle_csr_move(), and tulle_cuda.h and
 * tulle_opencl.h for memory of your own there.
 *
 * How long things live:
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
 *     a block of tulle_multiply_blocks()   - (it lives during the callback)     the library
 *     texts: names, tulle_ctx_error()      the context; the sentence is there   nobody
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
typedef struct tulle_plan   tulle_plan;     /* all that patterns decide, for reuse  */
typedef struct tulle_matrix tulle_matrix;   /* a CSR matrix that the library owns   */
typedef struct tulle_dense_matrix tulle_dense_matrix;   /* a dense one               */
typedef struct tulle_spmm_plan tulle_spmm_plan;         /* for products with dense ones */
typedef struct tulle_writer tulle_writer;   /* a file that grows by blocks of rows  */

/* A view over three arrays of the caller: a sparse matrix in compressed sparse rows, 0-based.  A view owns
 * nothing, and what it points at is never written.  Row i has the entries row_ptr[i] to row_ptr[i+1] - 1 of
 * col_idx and values; its columns increase strictly.  values may be NULL where only the pattern is needed.
 *
 * On the host a view may be a slice of rows of a larger matrix: row_ptr points at the pointer of its first
 * row, col_idx and values at the beginning of the larger matrix's arrays, and row_ptr[0] is then not 0.  nnz
 * is row_ptr[rows] - row_ptr[0] in any case.  Values that are given later, to a plan, are found as in the
 * view: entry row_ptr[0] is the first of them that is read.  In memory of a device row_ptr[0] must be 0. */
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

/* A view over a dense matrix of the caller, row by row or column by column.  Entry (i,j) is values[i*ld + j]
 * in TULLE_BY_ROWS, values[i + j*ld] in TULLE_BY_COLS. */
typedef struct tulle_dense {
    int64_t     rows, cols;
    int64_t     ld;               /* values from one row (column) to the next; 0: no gaps     */
    tulle_type  val_type;
    tulle_order order;
    void       *values;           /* written only where the view is an output                 */
    tulle_place place;
    uint64_t    reserved[2];      /* must be zero                                             */
} tulle_dense;

/* Memory hooks, both or neither; all zero: the library's own memory, with huge pages where there are any. */
typedef struct tulle_mem {
    void *(*alloc)(void *user, size_t bytes);
    void  (*free)(void *user, void *p);
    void  *user;
    uint64_t reserved[2];         /* must be zero */
} tulle_mem;

/* Called now and then from the calling thread, fraction in 0..1; return non-zero to cancel. */
typedef int (*tulle_progress_fn)(void *user, const char *stage, double fraction);

/* Called with one line of text for each choice that is made, such as the policy, or how many threads work. */
typedef void (*tulle_trace_fn)(void *user, const char *line);

/* Called with the path of a temporary file just before it is made (there is 1), and when it was removed or
 * renamed (there is 0).  A program that must end at once, after a signal, removes those that are there. */
typedef void (*tulle_partial_fn)(void *user, const char *path, int there);

/* Options of a sparse product, C = op(A)*op(B). */
typedef struct tulle_options {
    const char *policy;           /* NULL: "auto"; tulle_policy_name() lists them             */
    const char *accumulator;      /* NULL: the policy chooses one for each row; else this one, but rows of A
                                     with one entry are copied, and rows that it has no room for fall back
                                     to another; the stats say how many rows each took        */
    uint64_t    memory_limit;     /* bytes for C, workspace and copies of operands: all that the call holds
                                     beside A and B.  On a GPU these are bytes of the device, uploaded
                                     operands included, and what lies on the host is not counted.  0: what
                                     the device has free.  TULLE_ELIMIT names a
                                     number that is enough; a GPU may find out half way and name what was
                                     needed so far, so that up to three calls are refused; a refused call on
                                     a CPU may have taken up to 64 MiB to find the number     */
    int         threads;          /* 0: the context's; with a small memory limit fewer may work */
    int         op_a, op_b;       /* tulle_op: an operand, its transpose or its adjoint       */
    int         c_ptr_type;       /* tulle_index; 0: I32 where the counts fit, else I64       */
    int         c_idx_type;       /* tulle_index; 0: as B's                                   */
    int         drop_zeros;       /* 1: entries of C that came out as zero are left out       */
    int         sort_inputs;      /* 1: unsorted rows and duplicates are accepted (in copies) */
    int         trust_inputs;     /* 1: skip the check of the views; they must be right       */
    int         c_place;          /* tulle_place: where C is wanted                           */
    int         time_stages;      /* 1: the stats have the time of each stage (costs a little) */
    uint64_t    reserved[7];      /* must be zero                                             */
} tulle_options;

/* Options of a sparse matrix times a dense one, Y = alpha*op(A)*X + beta*Y. */
typedef struct tulle_spmm_options {
    const char *policy;           /* NULL: "auto"; tulle_spmm_policy_name() lists them        */
    uint64_t    memory_limit;     /* bytes of workspace, on a GPU with copies of A, X, Y; 0: what is free */
    int         op_a;             /* tulle_op: A, its transpose or its adjoint                */
    int         threads;          /* 0: the context's                                         */
    int         trust_inputs;     /* 1: skip the check of A; it must be right                 */
    int         allow_tf32;       /* 1: a GPU may round float to 10 bits before it multiplies; the error of a
                                     sum is then up to 2^-10 of the sum of |a||x|, beside the rounding of
                                     sums.  Where it did, the stats say "auto, tf32"          */
    int         time_stages;      /* 1: the stats have the time of each stage                 */
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
    double      sec_compile;      /* kernels compiled or loaded, the first time a GPU needs them; 0 on a CPU.
                                     (PoCL goes on compiling when a kernel first runs: that is not seen) */
    double      sec_check, sec_analyze, sec_symbolic, sec_numeric, sec_finish;     /* without sec_compile */
    double      sec_total;        /* all of it; of a plan: making it and its last run */
    int64_t     a_nnz, b_nnz, c_nnz, products;     /* of tulle_spmm(): b is X, c is Y */
    uint64_t    workspace_bytes;  /* the most that was held beyond A, B and C */
    uint64_t    peak_bytes;       /* the most that was held in all: C included, A and B not, but their
                                     copies on a GPU                                   */
    int         threads;
    int         shares;
    tulle_share share[TULLE_MAX_SHARES];
    int         stages;
    tulle_stage stage[TULLE_MAX_STAGES];
    int         waits;            /* how often the host waited for a device  */
    const char *policy, *device, *isa;
    uint64_t    reserved[8];      /* zero                                    */
} tulle_stats;

/* What a product would take. */
typedef struct tulle_forecast {
    int64_t     products;                          /* exact                       */
    int64_t     nnz_lower, nnz_estimate, nnz_upper;/* of C; the bounds always hold, the
                                                      lower one is 0 with drop_zeros */
    uint64_t    bytes_estimate, bytes_upper;       /* peak on the CPU, C included; that of a plan, too */
    int         shares;                            /* what the CPU would choose, on every device */
    tulle_share share[TULLE_MAX_SHARES];
    const char *policy;
    const char *device;                            /* where tulle_multiply() would compute it */
    double      sec_cpu, sec_device;               /* from host to host, where the context chooses
                                                      between both; else 0        */
    uint64_t    reserved[5];                       /* zero                        */
} tulle_forecast;

/* One device of the list. */
typedef struct tulle_device {
    char        name[64];         /* what tulle_ctx_create() takes: "cpu", "cuda:0" */
    char        text[384];        /* its description                                */
    char        arch[64];         /* "avx2", "sm_90", "OpenCL 3.0"                  */
    char        driver[160];      /* empty: it needs none                           */
    uint64_t    memory_bytes, memory_free;
    int         processors, threads;    /* cores, and threads that run at once      */
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
    int64_t     programs;         /* all for these types; those not counted below were loaded before */
    int64_t     compiled, cached, embedded;
    double      seconds;
    uint64_t    reserved[4];      /* zero */
} tulle_kernels;

/* ----------------------------------------------------- context and devices */

/* Makes a context on a device.  device is a name of the list that tulle_device_info() gives; "cuda" and
 * "opencl" are the first device of each.  NULL: $TULLE_DEVICE where that is set, else the CPU and the best
 * GPU there is; where there is none, the trace says of each why it was not taken.  On a context of the CPU
 * the place TULLE_DEVICE means the host, so that programs need no switch.
 *
 * With "cpu/cuda:0", and with NULL where there is a GPU, a context has both: it is a context of that GPU,
 * but each product whose operands and C lie on the host goes where a forecast of both times, copies
 * included, says that it is done first; tulle_stats has the device, the trace why, tulle_estimate() both
 * times.  The forecast has defaults until tulle_cache_warm() has measured this machine.  Where the one that
 * was chosen has too little memory the other takes it; a memory_limit counts as on the device that
 * computes.  A plan of a product is chosen when it is made; a plan of sparse times dense is the GPU's, as X
 * may lie there.
 *
 * Up to 16 names with commas between, "cuda:0,cuda:1" or "cpu,cuda:0", are one context whose devices share
 * each product by rows; one may be named more than once.  Each row is computed by one of them, with the bits
 * it gives alone.  Arrays are on the host, as for the CPU: views over device memory are refused.  Threads
 * are divided among the names "cpu".  A memory limit is for all devices and the host together, and divided
 * among them; where that is too little, one does all of it.  The sentence of an error begins with the
 * device.  Memory hooks are called from several threads at once; progress and trace functions from the
 * calling one alone.  In a child of fork() such a context can be used if it has no GPU.  (An error of one
 * device may leave rows of Y that the others have written.) */
TULLE_API tulle_status tulle_ctx_create(const char *device, const tulle_mem *mem, tulle_ctx **ctx);
/* Makes a context, or says why there is none.  As tulle_ctx_create(); after a failure, when there is no
 * context to ask, why holds the sentence, cut to so many bytes. */
TULLE_API tulle_status tulle_ctx_create_why(const char *device, const tulle_mem *mem, tulle_ctx **ctx,
                                            char *why, size_t bytes);
/* Frees a context; NULL is allowed.  Matrices that it made may outlive it, plans and writers may not. */
TULLE_API void         tulle_ctx_free(tulle_ctx *ctx);
/* The sentence of the last error, empty when the last call succeeded. */
TULLE_API const char  *tulle_ctx_error(const tulle_ctx *ctx);
/* The name of a context's device, such as "cpu" or "cuda:0"; where it chooses between both, the GPU's. */
TULLE_API const char  *tulle_ctx_device(const tulle_ctx *ctx);
/* Sets how many threads of the CPU a context uses; 0: one for each core. */
TULLE_API tulle_status tulle_ctx_set_threads(tulle_ctx *ctx, int threads);
/* Sets a function that is told how far the work is, and may cancel it; NULL: none. */
TULLE_API void         tulle_ctx_set_progress(tulle_ctx *ctx, tulle_progress_fn fn, void *user);
/* Sets a function that gets a line of text for each choice that is made; NULL: none. */
TULLE_API void         tulle_ctx_set_trace(tulle_ctx *ctx, tulle_trace_fn fn, void *user);
/* Sets a function that is told of temporary files, before they are made and when they are gone; NULL:
 * none. */
TULLE_API void         tulle_ctx_set_partial(tulle_ctx *ctx, tulle_partial_fn fn, void *user);
/* Times, counts and memory of the last product; zeros before the first. */
TULLE_API void         tulle_ctx_stats(const tulle_ctx *ctx, tulle_stats *stats);
/* Gives back the memory that is kept for the next product.  That is at most an eighth of the machine's, and
 * on a GPU a quarter of the device's, which goes back by itself only where this context needs other memory
 * there. */
TULLE_API void         tulle_ctx_trim(tulle_ctx *ctx);

/* How many devices there are, usable or not.  The CPU is the first, then come the devices of each driver; a
 * driver that is not there is a line that says so.  The list is made anew at each call. */
TULLE_API int          tulle_device_count(void);
/* One device of the list: its name, a description, its memory, and why it cannot be used.  TULLE_EINVAL: the
 * list, as it is now, is not so long. */
TULLE_API tulle_status tulle_device_info(int i, tulle_device *info);
/* Where compiled kernels are kept, and how many there are. */
TULLE_API tulle_status tulle_cache_info(tulle_ctx *ctx, tulle_cache *info);
/* Removes the compiled kernels that are kept, and says how many there were. */
TULLE_API tulle_status tulle_cache_clear(tulle_ctx *ctx, tulle_cache *removed);
/* Compiles or loads the kernels of a GPU ahead of the first product.  They are those for values and indices
 * of these types; the progress callback is told "compiling kernels", and may cancel.  A CPU has none:
 * TULLE_OK and zeros.  A context that chooses between the CPU and a GPU also measures both, in about a
 * second, and keeps what it found beside the kernels.  (Rows of C that span more than 2^27 columns, or
 * indices of two widths, need some that are not among them.) */
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
/* A view over arrays on the device of a context; nnz is given, as the host cannot read row_ptr there.  What
 * the pointers are, tulle_cuda.h and tulle_opencl.h say. */
TULLE_API tulle_csr tulle_csr_make_device(int64_t rows, int64_t cols, int64_t nnz, const void *row_ptr,
                                          tulle_index ptr_type, const void *col_idx, tulle_index idx_type,
                                          const void *values, tulle_type val_type);

/* Checks a view: bounds, order and duplicates.  The sentence says which row is wrong.
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
/* y = A*x for one dense vector.  x and y have A's value type and must not overlap.  A sum is made in double
 * for every type, its products in the order of the row, and rounded once: the bits are the same for any
 * number of threads, and in a context of a GPU.  After an error y is as it was, unless the progress callback
 * cancelled or A's pattern is refused, whose rows are checked as they are summed: then y holds anything. */
TULLE_API tulle_status tulle_csr_apply(tulle_ctx *ctx, const tulle_csr *A, const void *x, void *y);

/* A copy on the host or on the context's device, in the same types.  A matrix on a device is for the context
 * that made it; like every other it may be freed after that. */
TULLE_API tulle_status tulle_csr_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place,
                                      tulle_matrix **out);

/* A view of a matrix that the library owns; its place says where the arrays lie. */
TULLE_API tulle_csr tulle_matrix_view(const tulle_matrix *A);
/* The values of a matrix that the library owns, to write new ones into. */
TULLE_API void     *tulle_matrix_values(tulle_matrix *A);
/* Frees a matrix; NULL is allowed. */
TULLE_API void      tulle_matrix_free(tulle_matrix *A);

/* Called when arrays of the caller are not needed any more. */
typedef void (*tulle_done_fn)(void *user);

/* A matrix over arrays of the caller, without a copy.  They must stay as they are until done(user) is called:
 * when the matrix is freed, by whichever thread frees it.  done may be NULL.  On the host row_ptr must agree
 * with nnz; nothing else of the arrays is read.  After an error they are the caller's. */
TULLE_API tulle_status tulle_matrix_adopt(tulle_ctx *ctx, const tulle_csr *A, tulle_done_fn done, void *user,
                                          tulle_matrix **out);
/* The arrays of a matrix for the caller, without a copy.  A is gone afterwards.  Each array is freed by
 * tulle_array_free(), never by free(), in any order and thread, also after its context.  TULLE_EINVAL, and A
 * is as it was: its arrays are on a device, adopted, or a mapped file. */
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

/* Reads a sparse matrix from a file.  It may be .mtx, .mtx.gz, SuiteSparse's .tar.gz or .tulle, told apart by
 * content, also from a pipe.  A .tulle file keeps its types; of the others values become double or complex
 * double, and indices have 32 bits where they fit.  tulle_csr_convert() changes that.  Of an archive it is
 * the member NAME/NAME.mtx, else the largest .mtx; "A.tar.gz:NAME" is the member of that name or path, with
 * or without .mtx.  The matrix is a copy: what happens to the file later does not matter. */
TULLE_API tulle_status tulle_read(tulle_ctx *ctx, const char *path, tulle_matrix **A);
/* Reads a sparse matrix, or maps its file where that is possible.  As tulle_read(), but a .tulle file that is
 * a plain file and not packed is mapped and verified, not copied: that takes less memory, and pages are
 * shared with other processes.  Nobody may write to the file or shorten it while the matrix is there, or the
 * matrix changes, or SIGBUS is raised; to replace it by renaming is safe. */
TULLE_API tulle_status tulle_read_mapped(tulle_ctx *ctx, const char *path, tulle_matrix **A);

/* Writes a sparse matrix to a file.  The format follows the name: .mtx, .mtx.gz or .tulle.
 *
 * Every file is written in one way: beside its place under another name (tulle-HEX.part), with the rights of
 * the file that it replaces, forced to the disk, and renamed when it is complete.  After a failure what stood
 * there before is untouched.  A symbolic link stays one, and the file it leads to is replaced; pipes, devices
 * and folders are refused. */
TULLE_API tulle_status tulle_write(tulle_ctx *ctx, const char *path, const tulle_csr *A);
/* Writes half of a symmetric matrix to a file.  The matrix must equal its transpose, or its conjugate
 * transpose: the lower triangle is written to a Matrix Market file (.mtx, .mtx.gz), as "symmetric" or
 * "hermitian".  Another matrix is TULLE_EINVAL, and the sentence names an entry that differs from the one
 * across the diagonal. */
TULLE_API tulle_status tulle_write_symmetric(tulle_ctx *ctx, const char *path, const tulle_csr *A);
/* Checks that a file could be written there, before work that takes long.  It makes the temporary file, and
 * removes it. */
TULLE_API tulle_status tulle_write_check(tulle_ctx *ctx, const char *path);
/* Writes bytes of any kind to a file, such as a picture, as tulle_write() does. */
TULLE_API tulle_status tulle_write_bytes(tulle_ctx *ctx, const char *path, const void *data, size_t bytes);

/* Begins a file that grows by blocks of rows.  It is for a matrix larger than memory, whose blocks come in
 * their order, such as those of tulle_multiply_blocks() (there the writer needs a context of its own: the
 * other one is at work).  The name ends with .mtx or .tulle; a .tulle file gets row pointers of 64 bits, and
 * until it is finished its values lie in a second temporary file beside it.  val_type 0: a pattern. */
TULLE_API tulle_status tulle_writer_create(tulle_ctx *ctx, const char *path, int64_t rows, int64_t cols,
                                           tulle_type val_type, tulle_writer **writer);
/* Appends the next rows to the file of a writer. */
TULLE_API tulle_status tulle_writer_put(tulle_writer *writer, const tulle_csr *block);
/* Completes the file of a writer when all rows were appended: it gets its name. */
TULLE_API tulle_status tulle_writer_finish(tulle_writer *writer);
/* Frees a writer, before its context; NULL is allowed.  Of a file that was not finished nothing is left. */
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
 * Where a GPU has no room for all of it, by memory_limit or because a request for memory failed, and C is
 * wanted on the host, the product goes on in blocks of rows, and C is joined there; a block brings the rows
 * of B that it names where all of B does not fit, and a row that is too large alone comes in panels of
 * columns.  Sums keep their order.  What is left to refuse is a limit too small for a row of A with one
 * column of B, and a C that the host has no memory for. */
TULLE_API tulle_status tulle_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                      const tulle_options *options, tulle_matrix **C);

/* Called with a block of rows of C, a view that lives during the call; return non-zero to stop. */
typedef int (*tulle_block_fn)(void *user, int64_t first_row, const tulle_csr *block);

/* A product larger than memory, C in blocks of rows.  They come in order and keep the memory limit.  A GPU
 * holds A and B while they and a block fit; else each block brings its own rows of A and of B.  A row of C
 * has to fit: on the host, or where c_place wants it. */
TULLE_API tulle_status tulle_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                             const tulle_options *options,
                                             tulle_block_fn fn, void *user);

/* Counts and memory of a product before anything large is allocated.  The host finds them, on every
 * device. */
TULLE_API tulle_status tulle_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                      const tulle_options *options, tulle_forecast *forecast);

/* Verifies a product: is C = op(A)*op(B)?  C*x is compared with A*(B*x) for random x; rows that have
 * infinities, leave the range of the type or mix sizes too different for one sum are computed anew, entry by
 * entry.  An entry of C that overflowed or underflowed is right where the sum of its products does so.
 * *error is relative to the sum of what is added up.  TULLE_ECHECK: it is not the product.  The progress
 * callback may cancel. */
TULLE_API tulle_status tulle_product_check(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                           const tulle_csr *C, const tulle_options *options,
                                           double *error);

/* ---------------------------------------------- patterns once, values often */

/* Prepares products of two patterns, for values that change.  Those of A and B are not looked at.  The
 * patterns must stay as they are as long as there is the plan; of a transposed operand it keeps a copy.
 * Plans take no drop_zeros and no sort_inputs: use tulle_csr_sort() first. */
TULLE_API tulle_status tulle_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                         const tulle_options *options, tulle_plan **plan);
/* The pattern of a plan's product, without values.  Its arrays lie where c_place says, and live as long as
 * the plan. */
TULLE_API tulle_csr    tulle_plan_pattern(const tulle_plan *plan);
/* Computes the values of a plan's product from values of A and B.  a_values and b_values lie where A and B
 * did, c_values where c_place says, apart from them; nothing is allocated (but for transposed operands on a
 * device). */
TULLE_API tulle_status tulle_plan_run(tulle_plan *plan, const void *a_values, const void *b_values,
                                      void *c_values);
/* Computes a plan's product as a matrix of its own.  It has a copy of the plan's pattern and the values that
 * tulle_plan_run() would give, lies where c_place says, and may outlive the plan and its context.  Its memory
 * comes on top of the plan's, and is not part of the memory limit. */
TULLE_API tulle_status tulle_plan_multiply(tulle_plan *plan, const void *a_values, const void *b_values,
                                           tulle_matrix **C);
/* Times, counts and memory of a plan's last run, or of making it. */
TULLE_API void         tulle_plan_stats(const tulle_plan *plan, tulle_stats *stats);
/* Frees a plan of sparse products, before its context; NULL is allowed. */
TULLE_API void         tulle_plan_free(tulle_plan *plan);

/* ------------------------------------------ SpMM: a sparse matrix times a dense one */

/* The product of a sparse matrix and a dense one, Y = alpha*op(A)*X + beta*Y.  All have one value type, X
 * and Y each its own order; alpha and beta point to one value of it each, on the host (NULL: 1 and 0).  With
 * beta 0, Y is written only and may hold anything before; with alpha 0, neither X nor the arrays of A are
 * read.  Otherwise infinities and NaN spread as IEEE says; a factor without imaginary part multiplies both
 * parts of a complex number.  X and Y must not overlap.  After an error Y is as it was, unless the progress
 * callback cancelled or a device failed half way, or beta is 0 and it is A's pattern that is refused: on the
 * CPU a row of A is checked when its turn comes, and what Y holds then is undefined.  Nothing is ever read
 * outside of X.
 *
 * A sum is (((0 + p1) + p2) + ...), its products in the order of the row of op(A); a row of more than 32768
 * entries is summed in parts of so many, and these sums in their order.  So every column of Y has the same
 * bits whatever stands beside it, in any order of X and Y, for any number of threads.  A GPU adds a product
 * without rounding it first, and divides rows among threads by their lengths and the number of columns: its
 * bits are the same from run to run, but not always those of the CPU.  There A, X and Y may be on the host,
 * and need not fit the device: X and Y travel in chunks of columns, and an A that memory_limit or the device
 * has no room for in bands of rows (whose sums may be divided in other ways than those of a whole A). */
TULLE_API tulle_status tulle_spmm(tulle_ctx *ctx, const void *alpha, const tulle_csr *A, const tulle_dense *X,
                                  const void *beta, tulle_dense *Y, const tulle_spmm_options *options);

/* Prepares products of one sparse matrix with dense ones.  It checks A, transposes it where op_a says so, and
 * divides the work, once for many products.  The plan refers to A's pattern, which must stay as it is as long
 * as there is the plan.  Its values are a copy: those that A has now, until tulle_spmm_plan_set_values()
 * gives others, on every device and for every op_a and policy.  So a later change of the caller's array
 * changes no result, and nothing is sent to a GPU twice. */
TULLE_API tulle_status tulle_spmm_plan_create(tulle_ctx *ctx, const tulle_csr *A,
                                              const tulle_spmm_options *options, tulle_spmm_plan **plan);
/* One product of a plan, Y = alpha*op(A)*X + beta*Y, with alpha and beta as in tulle_spmm(). */
TULLE_API tulle_status tulle_spmm_plan_run(tulle_spmm_plan *plan, const void *alpha, const tulle_dense *X,
                                           const void *beta, tulle_dense *Y);
/* Sets the values of the sparse matrix of a plan, for all later runs.  They lie where A's did, in the order
 * of its entries, and are copied before the function returns (on a caller's own queue: in its order).  After
 * an error the plan has the values it had, unless a device failed half way.  For a transposed A it takes as
 * long as to transpose it, and for that time its memory twice. */
TULLE_API tulle_status tulle_spmm_plan_set_values(tulle_spmm_plan *plan, const void *a_values);
/* Times, counts and memory of an SpMM plan's last run, or of making it. */
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
