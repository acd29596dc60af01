/* SPDX-License-Identifier: MIT
 *
 * tulle.h - products of sparse matrices.
 *
 * The simple way is three calls:
 *
 *     tulle_ctx_create(NULL, NULL, &ctx);          the best device there is
 *     tulle_multiply(ctx, &A, &B, NULL, &C);       A, B: views over your arrays
 *     tulle_csr c = tulle_matrix_view(C);          C: owned by the library, rows sorted
 *
 * When the same patterns come again with new values, make a plan once and run it many times.
 * A sparse matrix times a dense one (SpMM) is tulle_spmm(): Y = alpha*op(A)*X + beta*Y.
 *
 * Every function that can fail returns a tulle_status.  After a caller's error (-1 .. -99) nothing was
 * changed; after a run-time error (-100 ..) only outputs may have been.  Inputs are never written.
 * tulle_ctx_error() holds the sentence: which row, which file and line, how many bytes were missing.
 *
 * A context serves one thread at a time; different contexts may be used from different threads at once.
 * There is no global state.  Structures are set to all zero for the defaults, and initialized by the names of
 * their members: every structure has reserved words, so that it can get new members without growing.  Those of
 * a structure that the library reads must be zero, and anything else is TULLE_EINVAL; those of a structure that
 * it fills in come back as zeros.
 *
 * A child of fork() may use and free the contexts, plans and matrices it was given, unless another thread was
 * using them at that moment; threads of its own are started when they are needed.  What is on a GPU can only
 * be freed there: the drivers do not survive a fork, and everything else gives TULLE_EDRIVER.
 *
 * On the CPU the result of a product is the same bit for bit for any number of threads, any memory limit and
 * any policy: every entry is (((0 + p1) + p2) + ...), its products taken in the order of the row of A.  A GPU
 * gives the same bits for every row that one team of threads serves; the long rows that several teams share
 * are added up in any order, and may differ in the last bits from run to run.
 * The structure of a product depends on the patterns alone, never on values, unless drop_zeros is asked for.
 *
 * Arrays of a view may lie in the memory of the context's device: see tulle_csr_move(), and tulle_cuda.h and
 * tulle_opencl.h for memory of your own there.
 *
 * How long things live:
 *
 *     what                                    is needed by it until it is gone     is freed by
 * tulle_ctx                               -                                    tulle_ctx_free(), after plans,
 * writers
 *     tulle_plan, tulle_spmm_plan             its context; the patterns of A, B    tulle_plan_free() ...
 *     tulle_writer                            its context                          tulle_writer_free()
 *     tulle_matrix, tulle_dense_matrix        nothing: may outlive its context     tulle_matrix_free() ...
 * a view of one of these                  the matrix                           nobody: a view owns nothing
 *     a view of a plan's pattern              the plan                             nobody
 *     a view over arrays of the caller        the arrays, during a call            the caller
 *     a block of tulle_multiply_blocks()      -; it lives during the callback      the library
 *     texts: names, tulle_ctx_error()         the context, and for that sentence   nobody
 *                                             no other call with the context
 *     options, and what they point at         -; read during the call              the caller */
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
/* The name of a status. */
TULLE_API const char *tulle_status_name(tulle_status status);   /* "TULLE_EPATTERN"   */
/* What a status means, in a few words. */
TULLE_API const char *tulle_status_text(tulle_status status);   /* the text above      */

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

/* A view over three arrays of the caller (compressed sparse rows, 0-based).  It never owns and is
 * never written.  row_ptr[0] is 0, row_ptr[rows] is nnz; columns increase strictly within a row.
 * values may be NULL where only the pattern is needed. */
typedef struct tulle_csr {
    int64_t     rows, cols, nnz;
    const void *row_ptr;          /* rows + 1 entries of ptr_type */
    const void *col_idx;          /* nnz entries of idx_type      */
    const void *values;           /* nnz entries of val_type      */
    tulle_index ptr_type, idx_type;
    tulle_type  val_type;
    tulle_place place;
    uint64_t    reserved[2];      /* must be zero                 */
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

/* Memory hooks; all zero: the library's own (huge pages where there are any). */
typedef struct tulle_mem {
    void *(*alloc)(void *user, size_t bytes);
    void  (*free)(void *user, void *p);
    void  *user;
    uint64_t reserved[2];         /* must be zero */
} tulle_mem;

/* Called now and then from the calling thread, fraction in 0..1; return non-zero to cancel. */
typedef int (*tulle_progress_fn)(void *user, const char *stage, double fraction);

/* Called with one line of text for each choice that was made ("policy auto: 97% of rows dense ..."). */
typedef void (*tulle_trace_fn)(void *user, const char *line);

/* Called with the name of a temporary file just before it is made (there is 1), and when it is gone or has
 * got its name (there is 0).  A program that may have to leave at once removes those that are there. */
typedef void (*tulle_partial_fn)(void *user, const char *path, int there);

typedef struct tulle_options {
    const char *policy;           /* NULL: "auto"; tulle_policy_name() lists them             */
    const char *accumulator;      /* NULL: the policy chooses; else this one where it can be: rows of A with
                                     one entry are copied, and rows that it has no room for fall back to
                                     another; stats tell which took how many                  */
    uint64_t    memory_limit;     /* bytes for C, workspace and copies of operands, all that the call holds
                                     beside A and B; on a GPU bytes there, uploaded operands included; 0:
                                     what the device has free.  TULLE_ELIMIT names a number that is enough;
                                     on a GPU, which may find out half way, it may be what is needed so far,
                                     and the next call names more, three at most; on a CPU a call so refused
                                     may have taken up to 64 MiB to find it                   */
    int         threads;          /* 0: the context's; a small limit may take fewer           */
    int         op_a, op_b;       /* tulle_op: transpose or adjoint of an operand             */
    int         c_ptr_type;       /* tulle_index; 0: I32 where the counts fit, else I64       */
    int         c_idx_type;       /* tulle_index; 0: as B's                                   */
    int         drop_zeros;       /* 1: entries of C that came out as zero are left out       */
    int         sort_inputs;      /* 1: unsorted rows and duplicates are accepted (in copies) */
    int         trust_inputs;     /* 1: skip the check of the views; they must be right       */
    int         c_place;          /* tulle_place: where C is wanted                           */
    int         time_stages;      /* 1: stats tell the time of each stage (costs a little)    */
    uint64_t    reserved[7];      /* must be zero                                             */
} tulle_options;

/* Of Y = alpha*op(A)*X + beta*Y. */
typedef struct tulle_spmm_options {
    const char *policy;           /* NULL: "auto"; tulle_spmm_policy_name() lists them        */
    const void *alpha, *beta;     /* one value of A's type each, on the host; NULL: 1 and 0   */
    uint64_t    memory_limit;     /* bytes of workspace, on a GPU with copies of A, X, Y; 0: what is free */
    int         op_a;             /* tulle_op                                                 */
    int         threads;          /* 0: the context's                                         */
    int         trust_inputs;     /* 1: skip the check of A; it must be right                 */
    int         allow_tf32;       /* 1: a GPU may round float to 10 bits before it multiplies;
                                     what it sums is then up to 2^-10 of sum |a||x| off,
                                     beside the rounding of sums; stats tell "auto, tf32"     */
    int         time_stages;      /* 1: stats tell the time of each stage                     */
    int         ellr_threads;     /* policy ellr: threads a row, 1 to 32; 0: chosen           */
    int         ellr_columns;     /*   columns at a time, 1 to 32; 0: chosen                  */
    int         ellr_block;       /*   threads of a block, 32 to 256; 0: chosen               */
    uint64_t    reserved[6];      /* must be zero                                             */
} tulle_spmm_options;

/* What one accumulator took of a product. */
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

typedef struct tulle_stats {
    double      sec_compile;      /* kernels compiled or loaded, the first time a GPU needs them; 0 on a CPU.
                                     (PoCL goes on compiling when a kernel first runs: that is not seen) */
    double      sec_check, sec_analyze, sec_symbolic, sec_numeric, sec_finish;     /* without sec_compile */
    double      sec_total;        /* all of it; of a plan: making it and its last run */
    int64_t     a_nnz, b_nnz, c_nnz, products;     /* tulle_spmm(): b, c are X, Y */
    uint64_t    workspace_bytes;  /* the most that was held beyond A, B and C */
    uint64_t    peak_bytes;       /* the most that was held in all, C included, A and B not
                                     (but their copies on a GPU)                       */
    int         threads;
    int         shares;
    tulle_share share[TULLE_MAX_SHARES];
    int         stages;
    tulle_stage stage[TULLE_MAX_STAGES];
    int         waits;            /* how often the host waited for a device  */
    const char *policy, *device, *isa;
    uint64_t    reserved[8];      /* zero                                    */
} tulle_stats;

typedef struct tulle_forecast {
    int64_t     products;                          /* exact                       */
    int64_t     nnz_lower, nnz_estimate, nnz_upper;/* of C; the bounds are strict, the
                                                      lower one 0 with drop_zeros */
    uint64_t    bytes_estimate, bytes_upper;       /* peak on the CPU, C included; of a plan, too */
    int         shares;                            /* what the CPU would choose, on every device */
    tulle_share share[TULLE_MAX_SHARES];
    const char *policy;
    uint64_t    reserved[8];                       /* zero                        */
} tulle_forecast;

typedef struct tulle_device {
    char        name[64];         /* what tulle_ctx_create() takes: "cpu", "cuda:0" */
    char        text[384];        /* the device in words                            */
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

/* ----------------------------------------------------- context and devices */

/* Makes a context on a device. */
/* device: a name of the list below; "cuda" and "opencl" are their first device.  NULL: $TULLE_DEVICE
 * where that is set, else the best there is; where that is the CPU, the trace says for each GPU why it was not taken.
 * TULLE_DEVICE as a place that is asked for means the host there, so that programs need no switch. */
TULLE_API tulle_status tulle_ctx_create(const char *device, const tulle_mem *mem, tulle_ctx **ctx);
/* Makes a context, or says why there is none. */
/* The same; on failure why gets the sentence, cut to so many bytes: there is no context to ask for it. */
TULLE_API tulle_status tulle_ctx_create_why(const char *device, const tulle_mem *mem, tulle_ctx **ctx,
                                            char *why, size_t bytes);
/* Frees a context. */
TULLE_API void         tulle_ctx_free(tulle_ctx *ctx);             /* owned matrices outlive it */
TULLE_API const char  *tulle_ctx_error(const tulle_ctx *ctx);      /* sentence of the last error */
/* The device of a context. */
TULLE_API const char  *tulle_ctx_device(const tulle_ctx *ctx);     /* "cpu", "cuda:0"            */
/* How many threads of the CPU a context uses. */
TULLE_API tulle_status tulle_ctx_set_threads(tulle_ctx *ctx, int threads);     /* 0: all cores */
/* A function that is told how far the work is, and may cancel it; NULL: none. */
TULLE_API void         tulle_ctx_set_progress(tulle_ctx *ctx, tulle_progress_fn fn, void *user);
/* A function that gets a line for each choice that is made; NULL: none. */
TULLE_API void         tulle_ctx_set_trace(tulle_ctx *ctx, tulle_trace_fn fn, void *user);
/* A function that is told of temporary files, before they are made and when they are gone; NULL: none. */
TULLE_API void         tulle_ctx_set_partial(tulle_ctx *ctx, tulle_partial_fn fn, void *user);
/* Times, counts and memory of the last product. */
TULLE_API void         tulle_ctx_stats(const tulle_ctx *ctx, tulle_stats *stats); /* last product */
/* Gives memory back that is kept from one product to the next: at most an eighth of the machine's, and on a
 * GPU a quarter of the device's, which goes back by itself only where this context needs other memory there.
 * */
TULLE_API void         tulle_ctx_trim(tulle_ctx *ctx);

/* How many devices there are, usable or not. */
/* The CPU, then every device of every driver, usable or not; a driver that is not there is a line that says
 * so.  The list is made at each call: an index past its present end is TULLE_EINVAL. */
TULLE_API int          tulle_device_count(void);
/* One device of the list: its name, in words, its memory, and why it cannot be used. */
TULLE_API tulle_status tulle_device_info(int i, tulle_device *info);
/* Where compiled kernels are kept, and how many there are. */
TULLE_API tulle_status tulle_cache_info(tulle_ctx *ctx, tulle_cache *info);
/* Removes the compiled kernels that are kept; what was there is told. */
TULLE_API tulle_status tulle_cache_clear(tulle_ctx *ctx, tulle_cache *removed);
/* Compiles or loads the kernels of the context's GPU for values and indices of these types now, not when a
 * product first needs them.  "compiling kernels" is told to the progress callback, which may cancel.  A CPU
 * has none: TULLE_OK and zeros. (Rows of C that span more than 2^27 columns, or indices of two widths, take
 * some that are not among them.) */
typedef struct tulle_kernels {
    int64_t     programs;         /* there are for these types; those not counted below were loaded before */
    int64_t     compiled, cached, embedded;
    double      seconds;
    uint64_t    reserved[4];      /* zero */
} tulle_kernels;
/* Compiles or loads the kernels of a GPU ahead of the first product. */
TULLE_API tulle_status tulle_cache_warm(tulle_ctx *ctx, tulle_type val_type, tulle_index idx_type,
                                        tulle_kernels *got);
/* The i-th policy of sparse products. */
TULLE_API const char  *tulle_policy_name(int i);                   /* NULL past the last */
/* What that policy is. */
TULLE_API const char  *tulle_policy_text(int i);                   /* one line about it  */
/* The i-th accumulator; NULL past the last. */
TULLE_API const char  *tulle_accumulator_name(int i);
/* What that accumulator is, in one line. */
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
/* A view over arrays on the device of a context; nnz is given, as the host cannot read row_ptr there.
 * What the pointers are, tulle_cuda.h and tulle_opencl.h say. */
TULLE_API tulle_csr tulle_csr_make_device(int64_t rows, int64_t cols, int64_t nnz, const void *row_ptr,
                                          tulle_index ptr_type, const void *col_idx, tulle_index idx_type,
                                          const void *values, tulle_type val_type);

/* Is this view a matrix in order? */
/* What is done with one matrix is done on the host, and results are there; views over device memory are
 * copied first.
 *
 * Bounds, order, duplicates; the sentence says which row. */
TULLE_API tulle_status tulle_csr_check(tulle_ctx *ctx, const tulle_csr *A);
/* A copy with sorted rows; entries in the same place are added in their order. */
TULLE_API tulle_status tulle_csr_sort(tulle_ctx *ctx, const tulle_csr *A, tulle_matrix **out);
/* The transpose or the conjugate transpose, as a matrix of its own. */
TULLE_API tulle_status tulle_csr_transpose(tulle_ctx *ctx, const tulle_csr *A, tulle_op op,
                                           tulle_matrix **out);
/* A copy with other types; complex to real keeps the real part.  0 keeps a type as it is. */
TULLE_API tulle_status tulle_csr_convert(tulle_ctx *ctx, const tulle_csr *A, tulle_type val_type,
                                         tulle_index ptr_type, tulle_index idx_type,
                                         tulle_matrix **out);
/* From coordinates in any order; entries in the same place are added in their order. */
TULLE_API tulle_status tulle_csr_from_coo(tulle_ctx *ctx, int64_t rows, int64_t cols, int64_t count,
                                          const void *row_idx, const void *col_idx,
                                          tulle_index idx_type, const void *values,
                                          tulle_type val_type, tulle_matrix **out);
/* y = A*x for one dense vector, x and y of A's value type; they must not overlap.  A sum is made in double for every type, its
 * products in the order of the row, and rounded once: the same bits for any number of threads, in a context of a device, too.
 * After an error y is as it was, unless the progress callback cancelled. */
TULLE_API tulle_status tulle_csr_apply(tulle_ctx *ctx, const tulle_csr *A, const void *x, void *y);

/* A copy on the host or on the device. */
/* A copy, as it is, on the host or on the device of the context.  A matrix on a device is for the context
 * that made it; like every other it may be freed after it. */
TULLE_API tulle_status tulle_csr_move(tulle_ctx *ctx, const tulle_csr *A, tulle_place place,
                                      tulle_matrix **out);

/* A view of a matrix that the library owns. */
TULLE_API tulle_csr tulle_matrix_view(const tulle_matrix *A);      /* its place says where   */
/* The values of a matrix that the library owns, for new ones. */
TULLE_API void     *tulle_matrix_values(tulle_matrix *A);          /* to write new values into */
/* Frees a matrix; NULL is allowed. */
TULLE_API void      tulle_matrix_free(tulle_matrix *A);

typedef void (*tulle_done_fn)(void *user);
/* A matrix over arrays of the caller, without a copy. */
/* They must stay as they are until done(user) is called: when the matrix is freed, by whichever thread frees it.  done may be
 * NULL.  After an error they are the caller's. */
TULLE_API tulle_status tulle_matrix_adopt(tulle_ctx *ctx, const tulle_csr *A, tulle_done_fn done, void *user,
                                          tulle_matrix **out);
/* The arrays of a matrix for the caller, without a copy. */
/* A is gone afterwards.  Each array is freed by tulle_array_free() (never by free()), in any order and
 * thread, also after its context.  TULLE_EINVAL, and A is as it was: its arrays are on a device, adopted, or a mapped file. */
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
/* A dense matrix of zeros that the library owns. */
/* Zeros, without gaps. */
TULLE_API tulle_status tulle_dense_create(tulle_ctx *ctx, int64_t rows, int64_t cols, tulle_order order,
                                          tulle_type val_type, tulle_dense_matrix **out);
/* A dense matrix in another order or type. */
/* A copy on the host without gaps, in another order or type; complex to real keeps the real part.  val_type
 * 0: as it is. */
TULLE_API tulle_status tulle_dense_convert(tulle_ctx *ctx, const tulle_dense *A, tulle_order order,
                                           tulle_type val_type, tulle_dense_matrix **out);
/* A copy on the host or on the device of the context, without gaps. */
TULLE_API tulle_status tulle_dense_move(tulle_ctx *ctx, const tulle_dense *A, tulle_place place,
                                        tulle_dense_matrix **out);
/* Reads a dense matrix from a file. */
/* NumPy's .npy (float and complex, both orders; an array of one dimension is a column) and Matrix Market's
 * files (plain or gzipped, or "A.tar.gz:NAME"; values become double or complex double), told apart by
 * content. A sparse file (coordinate) gets zeros between its entries. */
TULLE_API tulle_status tulle_dense_read(tulle_ctx *ctx, const char *path, tulle_dense_matrix **out);
/* Writes a dense matrix to a file. */
/* The format follows the name: .npy or .mtx. */
TULLE_API tulle_status tulle_dense_write(tulle_ctx *ctx, const char *path, const tulle_dense *A);
/* A view of a dense matrix that the library owns. */
TULLE_API tulle_dense  tulle_dense_view(const tulle_dense_matrix *A);
/* Frees a dense matrix; NULL is allowed. */
TULLE_API void         tulle_dense_free(tulle_dense_matrix *A);

/* ------------------------------------------------------- files and gallery */

/* Reads a sparse matrix from a file. */
/* .mtx, .mtx.gz, SuiteSparse's .tar.gz and .tulle, told apart by content; pipes too.  Values become double or
 * complex double; indices are 32 bit where they fit.  tulle_csr_convert() changes that.  Of an archive it is
 * the member NAME/NAME.mtx, else the largest .mtx; "A.tar.gz:NAME" is the member of that name or path, with
 * or without .mtx.  The matrix is a copy: what happens to the file later does not matter. */
TULLE_API tulle_status tulle_read(tulle_ctx *ctx, const char *path, tulle_matrix **A);
/* Reads a sparse matrix, or maps it where it can be mapped. */
/* The same, but a .tulle file is mapped where it can be (a plain file, not packed), verified and not copied:
 * less memory, and pages that are shared with other processes.  Nobody may write to the file or shorten it
 * while the matrix is there, or the matrix changes under way, or SIGBUS is raised; to replace it by renaming
 * is safe. */
TULLE_API tulle_status tulle_read_mapped(tulle_ctx *ctx, const char *path, tulle_matrix **A);

/* Writes a sparse matrix to a file. */
/* Every file is written in one way: beside its place under another name (tulle-HEX.part), with the rights of
 * the file that it replaces, forced to the disk, and renamed when it is whole.  After a failure what stood
 * there before is untouched.  A link stays one, and the file it leads to is replaced; pipes, devices and
 * folders are refused.
 *
 * The format follows the name: .mtx, .mtx.gz or .tulle. */
TULLE_API tulle_status tulle_write(tulle_ctx *ctx, const char *path, const tulle_csr *A);
/* Writes half of a symmetric matrix to a file. */
/* The same for a matrix that equals its transpose, or its conjugate transpose: a Matrix Market file (.mtx,
 * .mtx.gz) of its lower triangle, "symmetric" or "hermitian".  Another one is TULLE_EINVAL, and the sentence
 * names an entry without its equal. */
TULLE_API tulle_status tulle_write_symmetric(tulle_ctx *ctx, const char *path, const tulle_csr *A);
/* Could a file be written there?  Before work that takes long; makes the temporary file, and removes it. */
TULLE_API tulle_status tulle_write_check(tulle_ctx *ctx, const char *path);
/* Bytes of any kind, such as a picture. */
TULLE_API tulle_status tulle_write_bytes(tulle_ctx *ctx, const char *path, const void *data, size_t bytes);

/* Begins a file that grows by blocks of rows. */
/* A matrix larger than memory, from blocks of rows in their order, such as those of tulle_multiply_blocks()
 * (there with a context of its own: the other one is at work).  The name ends with .mtx or .tulle (whose row
 * pointers then have 64 bits; until it is finished its values lie in a second temporary file beside it).  val_type 0: a
 * pattern. */
TULLE_API tulle_status tulle_writer_create(tulle_ctx *ctx, const char *path, int64_t rows, int64_t cols,
                                           tulle_type val_type, tulle_writer **writer);
/* Appends a block of rows to such a file. */
TULLE_API tulle_status tulle_writer_put(tulle_writer *writer, const tulle_csr *block);     /* the next rows */
/* All rows were put: the file gets its name. */
TULLE_API tulle_status tulle_writer_finish(tulle_writer *writer);
/* Before its context; of a file that was not finished nothing is left. */
TULLE_API void         tulle_writer_free(tulle_writer *writer);
/* A matrix of the gallery, by its recipe. */
/* "poisson2d:1000", "cage:12", "rmat:scale=16,edges=16,seed=1": see tulle_gallery_text(). */
TULLE_API tulle_status tulle_gallery(tulle_ctx *ctx, const char *recipe, tulle_matrix **A);
/* The i-th recipe of the gallery. */
TULLE_API const char  *tulle_gallery_name(int i);                  /* NULL past the last */
/* What that recipe makes. */
TULLE_API const char  *tulle_gallery_text(int i);                  /* parameters, in one line */

/* ----------------------------------------------------------- the simple way */

/* The product of two sparse matrices. */
/* C = op(A)*op(B).  Where neither A nor B has values (NULL), C is a pattern and has none either; one operand without values is
 * an error. */
TULLE_API tulle_status tulle_multiply(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                      const tulle_options *options, tulle_matrix **C);

/* C in blocks of rows that keep the memory limit, in order, for products larger than memory.  The
 * block is a view that lives during the call; return non-zero to stop.  A GPU holds A and B whole. */
typedef int (*tulle_block_fn)(void *user, int64_t first_row, const tulle_csr *block);
TULLE_API tulle_status tulle_multiply_blocks(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                             const tulle_options *options,
                                             tulle_block_fn fn, void *user);

/* Counts and memory before anything large is allocated; by the host, on every device. */
TULLE_API tulle_status tulle_estimate(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                      const tulle_options *options, tulle_forecast *forecast);

/* Verifies a product. */
/* Is C = op(A)*op(B)?  Compares C*x with A*(B*x) for random x; rows that have infinities, leave the range of
 * the type or mix sizes too different for one sum are computed anew, entry by entry.  What overflows or
 * underflows in C's type is weighed as such: right where the sum of the products does so.  *error is relative
 * to what is added up. */
TULLE_API tulle_status tulle_product_check(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                           const tulle_csr *C, const tulle_options *options,
                                           double *error);

/* ---------------------------------------------- patterns once, values often */

/* Prepares products of the same two patterns with other values. */
/* Values are not looked at.  Of a transposed operand the plan keeps a copy.  Plans take no drop_zeros
 * and no sort_inputs: use tulle_csr_sort() first. */
TULLE_API tulle_status tulle_plan_create(tulle_ctx *ctx, const tulle_csr *A, const tulle_csr *B,
                                         const tulle_options *options, tulle_plan **plan);
/* The pattern of a plan's product. */
/* Its values are NULL; its arrays lie where c_place says, and live as long as the plan. */
TULLE_API tulle_csr    tulle_plan_pattern(const tulle_plan *plan);
/* The values of a plan's product for new values of A and B. */
/* c_values = values of C; nothing is allocated (but for transposed operands on a device).  The patterns of A
 * and B given to tulle_plan_create() must still be there, unchanged.  a_values and b_values lie where A and B
 * did, c_values where c_place says. */
TULLE_API tulle_status tulle_plan_run(tulle_plan *plan, const void *a_values, const void *b_values,
                                      void *c_values);
/* Times, counts and memory of the last run, or of making the plan. */
TULLE_API void         tulle_plan_stats(const tulle_plan *plan, tulle_stats *stats);
/* Frees a plan; NULL is allowed. */
TULLE_API void         tulle_plan_free(tulle_plan *plan);          /* before its context */

/* ------------------------------------------ SpMM: a sparse matrix times a dense one */

/* The product of a sparse matrix and a dense one. */
/* Y = alpha*op(A)*X + beta*Y; all of one value type, X and Y each in its own order.  With beta 0, Y is
 * written only and may hold anything before; with alpha 0, neither X nor the arrays of A are read.  Otherwise
 * infinities and NaN spread as IEEE says; a factor without imaginary part multiplies both parts of a complex
 * number.  X and Y must not overlap.  After an error Y is as it was, unless the progress callback cancelled
 * or a device failed half way.
 *
 * A sum is (((0 + p1) + p2) + ...), its products in the order of the row of op(A); a row of more than 32768
 * entries is summed in parts of so many, and these sums in their order.  So every column of Y has the same
 * bits whatever stands beside it, in any order of X and Y, for any number of threads.  A GPU adds a product
 * without rounding it first, and shares rows among threads as suits their lengths and the number of columns:
 * the same bits from run to run, but not always those of the CPU.  A, X and Y may be on the host there, and
 * need not fit the device: X and Y travel in chunks of columns, an A that memory_limit or the device has no
 * room for in bands of rows (whose sums may be made in other ways than those of a whole A). */
TULLE_API tulle_status tulle_spmm(tulle_ctx *ctx, const tulle_csr *A, const tulle_dense *X, tulle_dense *Y,
                                  const tulle_spmm_options *options);

/* Prepares products of one sparse matrix with dense ones. */
/* For many products with one A: checks it, transposes it where op_a says so, and divides the work, once.  The
 * plan refers to A's pattern, which must stay as it is as long as there is the plan.  Its values are a copy:
 * those that A has now, until tulle_spmm_plan_set_values() gives others, on every device and for every op_a
 * and policy.  So what is done to the caller's array afterwards changes no result, and nothing is sent to a
 * GPU twice.  alpha and beta are given to each run; here they must be NULL. */
TULLE_API tulle_status tulle_spmm_plan_create(tulle_ctx *ctx, const tulle_csr *A,
                                              const tulle_spmm_options *options, tulle_spmm_plan **plan);
/* One product of a plan: Y = alpha*op(A)*X + beta*Y, alpha and beta as in tulle_spmm_options. */
TULLE_API tulle_status tulle_spmm_plan_run(tulle_spmm_plan *plan, const void *alpha, const tulle_dense *X,
                                           const void *beta, tulle_dense *Y);
/* New values for the sparse matrix of a plan. */
/* New values for all later runs, copied before it returns (on a caller's own queue: in its order): as many as
 * A has entries, in their order, where A lies.  After an error the plan has the values it had, unless a
 * device failed half way.  Of a transposed A it takes as long as to transpose it, and for that time its
 * memory twice. */
TULLE_API tulle_status tulle_spmm_plan_set_values(tulle_spmm_plan *plan, const void *a_values);
/* Times, counts and memory of the last run of a plan, or of making it. */
TULLE_API void         tulle_spmm_plan_stats(const tulle_spmm_plan *plan, tulle_stats *stats);
/* Frees a plan; NULL is allowed. */
TULLE_API void         tulle_spmm_plan_free(tulle_spmm_plan *plan);    /* before its context */
/* The i-th policy of tulle_spmm(). */
TULLE_API const char  *tulle_spmm_policy_name(int i);                  /* NULL past the last */
/* What that policy is, in one line. */
TULLE_API const char  *tulle_spmm_policy_text(int i);

/* ------------------------------------------------------------------ trials */

/* How fast the context's GPU merges: each block of threads takes two sorted sequences of 32-bit keys into
 * shared memory and makes one of them.  The result is checked. */
typedef struct tulle_merge_options {
    const char *algorithm;        /* a name of tulle_merge_name()                             */
    int         value_bytes;      /* beside each key: 0: nothing, 4: a float, 8: a double     */
    int         length;           /* of a sequence: a power of two, 32 to 4096                */
    int         runs;             /* the time is their median; 0: 5                           */
    int         threads;          /* of a block: a power of two, 32 to 1024; 0: the fastest   */
    int64_t     entries;          /* in all, whole pairs of sequences; 0: 2^25, fewer on OpenCL's CPUs */
    uint64_t    reserved[4];      /* must be zero                                             */
} tulle_merge_options;

typedef struct tulle_merge_result {
    double      seconds, rate;    /* rate: entries a second                                   */
    int64_t     entries;
    int         threads;          /* of a block                                               */
    uint64_t    shared_bytes;     /* of a block                                               */
    uint64_t    reserved[4];      /* zero                                                     */
} tulle_merge_result;

/* The i-th merge algorithm. */
TULLE_API const char  *tulle_merge_name(int i);                    /* NULL past the last */
/* Times one merge algorithm on a GPU. */
/* TULLE_ELIMIT: the device's shared memory or blocks are too small for the length. */
TULLE_API tulle_status tulle_merge_trial(tulle_ctx *ctx, const tulle_merge_options *options,
                                         tulle_merge_result *result);

#ifdef __cplusplus
}
#endif
#endif
