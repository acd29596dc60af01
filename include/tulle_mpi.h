/* SPDX-License-Identifier: MIT
 *
 * tulle_mpi.h - products of matrices whose rows lie in several processes.
 *
 *     #include <mpi.h>
 *     #include <tulle_mpi.h>                                    link with -ltulle_mpi -ltulle
 *
 *     tulle_transport_mpi(MPI_COMM_WORLD, &transport);          duplicates the communicator
 *     tulle_ctx_create("cpu", NULL, &ctx);                      one context per rank, on any device
 *     tulle_dist_create(ctx, &transport, NULL, &dist);
 *     tulle_dist_multiply(dist, &A, &B, NULL, &C);              A, B: views over each rank's rows
 *     tulle_dist_csr c = tulle_dist_matrix_view(C);             this rank's rows of C
 *
 * Each rank holds a contiguous block of rows, in the order of the ranks, as with PETSc and hypre; column
 * indices are global.  Each rank fetches from the others the rows of B that its part of A refers to, each
 * once, and then computes one local product, by the engine of its context, with its own and the fetched rows
 * in their global order.  So for any number of ranks the result has the same bits as with one process,
 * wherever the engine's results are reproducible (tulle.h says where).
 *
 * Every function that takes a tulle_dist is collective unless its comment says otherwise: all ranks call it,
 * in the same order.  All ranks get the same status, and their contexts the same error message: an error or
 * cancellation on one rank makes the call fail on all of them, after which all may go on.  Where
 * communication itself fails, the status is TULLE_ECOMM on all ranks, for this call and all later ones with
 * this tulle_dist.
 *
 * Only tulle_transport_mpi() and tulle_mpi_begin() depend on MPI; they are declared where mpi.h was included
 * before. */
#ifndef TULLE_MPI_H
#define TULLE_MPI_H
#include "tulle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- transport */

typedef enum tulle_reduce { TULLE_SUM = 0, TULLE_MIN = 1, TULLE_MAX = 2 } tulle_reduce;

/* The longest message that a transport must handle, in bytes. */
#define TULLE_MESSAGE_MAX ((int64_t)1 << 30)

/* How ranks communicate.  Functions return 0, or another value on failure; why() then returns a message.
 * Messages from one sender to one receiver with the same tag arrive in the order they were sent.  Buffers
 * belong to the transport until waitall().  No function may end the process. */
typedef struct tulle_transport {
    int   rank, size;
    void *user;
    /* values[i] = their sum, least or largest over the ranks; count at most 1024 */
    int (*allreduce)(void *user, int64_t *values, int count, tulle_reduce op);
    /* in[r] = what rank r had in out[this rank] */
    int (*alltoall)(void *user, const int64_t *out, int64_t *in);
    int (*isend)(void *user, const void *data, int64_t bytes, int to, int tag);
    int (*irecv)(void *user, void *data, int64_t bytes, int from, int tag);
    int (*waitall)(void *user);         /* completes every isend and irecv since the last waitall */
    /* This rank gives up: on the other ranks every call that is waiting now, and every later one, fails with
     * this message. */
    void (*fail)(void *user, const char *sentence);
    const char *(*why)(void *user);
    void (*end)(void *user);            /* frees the transport; may be NULL */
    uint64_t reserved[4];               /* must be zero */
} tulle_transport;

/* ---------------------------------------------------- matrices in row blocks */

/* A view over the arrays of the caller on each rank.  Rank r has the rows row_starts[r] ..
 * row_starts[r+1]-1; row_starts has size + 1 entries, begins with 0, and is the same on all ranks.
 * local.rows is the number of rows on this rank, local.cols the global number of columns, and local.col_idx
 * has global column indices.  It may be a slice of rows of a larger matrix (see tulle_csr), for example where
 * each rank has all of it. */
typedef struct tulle_dist_csr {
    tulle_csr      local;
    const int64_t *row_starts;
    uint64_t       reserved[2];         /* must be zero */
} tulle_dist_csr;

typedef struct tulle_dist        tulle_dist;            /* a context and a transport            */
typedef struct tulle_dist_matrix tulle_dist_matrix;     /* rows on this rank that the library owns   */
typedef struct tulle_dist_plan   tulle_dist_plan;
typedef struct tulle_dist_spmm_plan tulle_dist_spmm_plan;       /* for products with dense matrices */

typedef struct tulle_dist_options {
    int64_t  slice_bytes;               /* the longest message with rows; 0: chosen, at most 16 MiB; the
                                           smallest value of all ranks is used */
    int32_t  dimensions;                /* of the grid of ranks in tulle_dist_multiply(): 1 or 2; 0: 2 where
                                           that certainly moves fewer bytes, else 1 */
    int32_t  grid_cols;                 /* columns of the grid in 2 dimensions, a divisor of the number of
                                           ranks; 0: chosen */
    uint64_t reserved[6];               /* must be zero */
} tulle_dist_options;

/* Sums over all ranks unless stated otherwise; the same on all ranks, except for rank and for what is said to
 * be of this rank. */
typedef struct tulle_dist_stats {
    int      rank, ranks;
    int64_t  products, c_nnz, products_most;    /* products_most: the largest number on one rank  */
    int64_t  rows_fetched;              /* rows of B that a rank got from another, each counted once per
                                           receiving rank                                         */
    uint64_t bytes;                     /* moved: lengths, columns and values of these rows; in 2 dimensions
                                           also of rows of A and C                                */
    uint64_t bytes_exact;               /* the minimum that must move: for each of these rows 8 bytes
                                           for its length, and an index and a value for each
                                           entry; in runs of a plan: values only */
    uint64_t bytes_lists;               /* moved in addition: the numbers of the requested rows, and the data
                                           for choosing between 1 and 2 dimensions                */
    uint64_t bytes_most;                /* the largest part of `bytes` that one rank received     */
    uint64_t bytes_gather;              /* what it would have taken to send all of B to every rank */
    uint64_t bytes_1d, bytes_2d;        /* of a product: what one dimension takes, and an upper bound for the
                                           best grid in two (rows of C counted with as many entries as
                                           products); 0: not computed, because moving A once is already
                                           more than bytes_1d, or because the options leave no choice */
    int      grid_cols;                 /* columns of the grid of ranks; 1: one dimension         */
    int64_t  messages;                  /* sent, without those by which ranks agree on a status   */
    int      blocks;                    /* number of blocks of rows that A was divided into       */
    int      slowest;                   /* the rank whose own work took longest                   */
    double   sec_total, sec_wait;       /* on this rank; wait: time within the transport          */
    double   sec_slowest;               /* own work of the slowest rank, without waiting          */
    double   sec_wait_most;             /* the longest wait of one rank                           */
    uint64_t reserved[8];               /* zero                                                   */
} tulle_dist_stats;

/* Joins a context and a transport.  The transport is copied, and ends with the tulle_dist; the context must
 * outlive both.  Not collective; after a failure the transport still belongs to the caller. */
TULLE_API tulle_status tulle_dist_create(tulle_ctx *ctx, const tulle_transport *transport,
                                         const tulle_dist_options *options, tulle_dist **dist);
/* Frees a tulle_dist and ends its transport; NULL is allowed.  Its plans must be freed before; its matrices
 * may outlive it. */
TULLE_API void         tulle_dist_free(tulle_dist *dist);
/* Bytes, messages and times of the last product, over all ranks.  Not collective. */
TULLE_API void         tulle_dist_stats_get(const tulle_dist *dist, tulle_dist_stats *stats);

/* A view of this rank's rows of a distributed matrix; it lives as long as the matrix. */
TULLE_API tulle_dist_csr tulle_dist_matrix_view(const tulle_dist_matrix *A);
/* Frees this rank's rows of a distributed matrix; NULL is allowed.  Not collective. */
TULLE_API void           tulle_dist_matrix_free(tulle_dist_matrix *A);
/* Copies this rank's rows of a matrix that every rank holds.  Only these rows are read. */
TULLE_API tulle_status tulle_dist_scatter(tulle_dist *dist, const tulle_csr *A, const int64_t *row_starts,
                                          tulle_dist_matrix **out);
/* Gathers all rows on one rank.  *out is NULL on the others. */
TULLE_API tulle_status tulle_dist_gather(tulle_dist *dist, const tulle_dist_csr *A, int root,
                                         tulle_matrix **out);
/* Divides rows into nearly equal blocks.  row_starts has ranks + 1 entries.  Not collective. */
TULLE_API void         tulle_dist_split(int64_t rows, int ranks, int64_t *row_starts);

/* ---------------------------------------------------- distributed products */

/* The product of two distributed matrices.  C = op(A)*op(B) has the row blocks of op(A); the rows of a
 * transposed operand are divided into nearly equal blocks.  memory_limit is for each rank: where the rows of
 * B that A needs do not all fit, A is processed in blocks of rows, and the rows of B are fetched for one
 * block at a time.  Without a limit the ranks are arranged as a two-dimensional grid where that moves fewer
 * bytes (tulle_dist_options can force either); a rank then holds all rows of A of its row of the grid.  The
 * bits are the same either way.  sort_inputs and a c_place on a device are refused. */
TULLE_API tulle_status tulle_dist_multiply(tulle_dist *dist, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                           const tulle_options *options, tulle_dist_matrix **C);
/* Verifies a product of distributed matrices.  Is C = A*B?  Compares C*x with A*(B*x) for a random x, in
 * double precision; *error is relative to the sum of the absolute values of the terms.  TULLE_ECHECK: it is
 * not.  Infinities and NaN count as wrong. */
TULLE_API tulle_status tulle_dist_product_check(tulle_dist *dist, const tulle_dist_csr *A,
                                                const tulle_dist_csr *B,
                                                const tulle_dist_csr *C, double *error);
/* The coarse-grid matrix of multigrid (Galerkin product).  C = P^T*(A*P), with rows in nearly equal
 * blocks. */
TULLE_API tulle_status tulle_dist_ptap(tulle_dist *dist, const tulle_dist_csr *A, const tulle_dist_csr *P,
                                       const tulle_options *options, tulle_dist_matrix **C);
/* The transpose or adjoint of a distributed matrix.  row_starts: the row blocks of the result, NULL: nearly
 * equal. */
TULLE_API tulle_status tulle_dist_transpose(tulle_dist *dist, const tulle_dist_csr *A, tulle_op op,
                                            const int64_t *row_starts, tulle_dist_matrix **out);
/* The same distributed matrix in other row blocks. */
TULLE_API tulle_status tulle_dist_redistribute(tulle_dist *dist, const tulle_dist_csr *A,
                                               const int64_t *row_starts,
                                               tulle_dist_matrix **out);
/* Finds row blocks of equal work.  row_starts[0 .. size]: blocks of rows of A with nearly equal products of
 * A*B, for tulle_dist_redistribute(). */
TULLE_API tulle_status tulle_dist_balance(tulle_dist *dist, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                          int64_t *row_starts);

/* Prepares products of the same two distributed patterns with other values.  Runs of the plan move only
 * values.  The patterns of A and B must not change or go away while the plan exists.  For a transposed
 * operand the plan keeps a copy of its pattern, and 16 bytes and two values for each entry. */
TULLE_API tulle_status tulle_dist_plan_create(tulle_dist *dist, const tulle_dist_csr *A,
                                              const tulle_dist_csr *B,
                                              const tulle_options *options, tulle_dist_plan **plan);
/* The pattern of this rank's rows of a plan's product.  Its values are NULL; it lives as long as the plan. */
TULLE_API tulle_dist_csr tulle_dist_plan_pattern(const tulle_dist_plan *plan);
/* The values of a distributed plan's product for new values of A and B.  Each array holds the values of this
 * rank's rows, in the order of the matrices that tulle_dist_plan_create() got, and of
 * tulle_dist_plan_pattern(). */
TULLE_API tulle_status tulle_dist_plan_run(tulle_dist_plan *plan, const void *a_values, const void *b_values,
                                           void *c_values);
/* Frees a plan of distributed products, before its tulle_dist; NULL is allowed. */
TULLE_API void         tulle_dist_plan_free(tulle_dist_plan *plan);

/* ---------------------------------------------- distributed dense matrices */

/* The product of a distributed sparse matrix and a dense one.  Y = alpha*op(A)*X + beta*Y, with alpha and
 * beta as in tulle_spmm() and the same on all ranks.  X and Y are this rank's rows.  X has the row blocks
 * x_starts.  Y has the row blocks of A, or where A is transposed any: they follow from the numbers of rows of
 * Y on the ranks. */
TULLE_API tulle_status tulle_dist_spmm(tulle_dist *dist, const void *alpha, const tulle_dist_csr *A,
                                       const tulle_dense *X, const int64_t *x_starts, const void *beta,
                                       tulle_dense *Y, const tulle_spmm_options *options);
/* Prepares products of one distributed sparse matrix with dense ones.  The plan keeps the lists of rows to
 * exchange and a local plan, so that runs move only rows of X.  y_starts: the row blocks of Y; NULL: those of
 * A, or nearly equal ones where A is transposed.  A's pattern must not change or go away while the plan
 * exists; its values are copied. */
TULLE_API tulle_status tulle_dist_spmm_plan_create(tulle_dist *dist, const tulle_dist_csr *A,
                                                   const int64_t *x_starts, const int64_t *y_starts,
                                                   const tulle_spmm_options *options,
                                                   tulle_dist_spmm_plan **plan);
/* One product of a distributed plan with a dense matrix.  Y = alpha*op(A)*X + beta*Y; alpha and beta as in
 * tulle_spmm(). */
TULLE_API tulle_status tulle_dist_spmm_plan_run(tulle_dist_spmm_plan *plan, const void *alpha,
                                                const tulle_dense *X, const void *beta, tulle_dense *Y);
/* New values for the distributed sparse matrix of a plan.  As many as A has entries on this rank, in their
 * order. */
TULLE_API tulle_status tulle_dist_spmm_plan_set_values(tulle_dist_spmm_plan *plan, const void *a_values);
/* Frees a plan of distributed products with dense matrices, before its tulle_dist; NULL is allowed. */
TULLE_API void         tulle_dist_spmm_plan_free(tulle_dist_spmm_plan *plan);

/* ------------------------------------------------------- distributed files */

/* Reads this rank's rows of a .tulle file.  row_starts NULL: nearly equal blocks.  Sizes, order and
 * columns are checked; the checksums of the arrays, which cover the whole file, are computed from what all
 * ranks read together. */
TULLE_API tulle_status tulle_dist_read(tulle_dist *dist, const char *path, const int64_t *row_starts,
                                       tulle_dist_matrix **A);
/* Writes this rank's rows into a .tulle file that all ranks write.  It must be on a file system that all
 * ranks share, and appears under its name when it is complete. */
TULLE_API tulle_status tulle_dist_write(tulle_dist *dist, const char *path, const tulle_dist_csr *A);

/* --------------------------------------------------------------------- MPI */

#if defined(MPI_VERSION) || defined(TULLE_MPI_BUILD)
#if defined(TULLE_MPI_BUILD) && defined(__GNUC__)
#define TULLE_MPI_API __attribute__((visibility("default")))
#else
#define TULLE_MPI_API
#endif
/* A transport over MPI.  It works on a duplicate of the communicator, with the error handler
 * MPI_ERRORS_RETURN; collective over the communicator.  The result is 0, or an error code of MPI. */
TULLE_MPI_API int tulle_transport_mpi(MPI_Comm comm, tulle_transport *transport);
/* A transport over all processes of MPI.  Initializes MPI where that was not done; MPI is then finalized with
 * the transport.  The result is 0, or an error code of MPI. */
TULLE_MPI_API int tulle_mpi_begin(tulle_transport *transport);
#endif

#ifdef __cplusplus
}
#endif
#endif
