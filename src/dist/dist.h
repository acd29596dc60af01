/* SPDX-License-Identifier: MIT
 *
 * dist.h - products over several ranks: what the files of this folder share.
 *
 *     comm.c      the transport, with counters; agreement on a status
 *     view.c      checks of distributed matrices
 *     lists.c     which rows of B are needed, and which ranks own them
 *     exchange.c  all-to-all exchange in slices, overlapped with packing
 *     fetch.c     fetches patterns and values of the rows that are needed
 *     product.c   C = A*B, as a whole or in blocks of A's rows
 *     stats.c     combines the stats of all ranks
 *     plan.c      plans: patterns once, values many times
 *     turn.c      new values of a transposed operand
 *     spmm.c      SpMM: the same lists for rows of a dense matrix
 *     shift.c     adds a number to indices; copies
 *     ship.c      sends whole rows to other ranks
 *     freight.c   assembles the received rows into one matrix
 *     grid.c      counts what a product would move on each grid of ranks, and chooses
 *     summa.c     C = A*B on a two-dimensional grid of ranks
 *     move.c      transpose, redistribution, gather, load balance
 *     verify.c    compares C*x with A*(B*x)
 *     galerkin.c  transposed operands, P^T*A*P
 *     file.c      parallel reading and writing of a .tulle file
 *
 * Every function here that takes a tulle_dist is collective unless its comment says otherwise.  A step that
 * can fail on a single rank ends with tl_agree(), before any rank waits for a message of that rank. */
#ifndef TL_DIST_H
#define TL_DIST_H
#include "matrix/matrix.h"
#include "tulle_mpi.h"

typedef enum tl_mail { TL_MAIL_LISTS, TL_MAIL_LENGTHS, TL_MAIL_COLUMNS, TL_MAIL_VALUES,
                      TL_MAIL_KINDS } tl_mail;

struct tulle_dist {
    tulle_ctx       *ctx;               /* local products use the public interface        */
    tl_base         *b;                 /* of that context: memory, errors, progress      */
    tulle_transport  t;
    int64_t          slice;             /* bytes of a message with rows                   */
    bool             sliced;            /* all ranks have agreed on it                    */
    int              dimensions;        /* 1, 2: forced by the caller; 0: chosen          */
    int              grid_cols;         /* of the grid in 2 dimensions; 0: chosen         */
    bool             broken;            /* communication failed: every call fails         */
    uint64_t         sent[TL_MAIL_KINDS], received[TL_MAIL_KINDS];
    int64_t          messages;
    double           start, wait;
    tulle_dist_stats stats;
};

struct tulle_dist_matrix {
    tulle_matrix *local;
    int64_t      *starts;
};

/* ---- comm.c */

tulle_status tl_dist_create(tl_base *b, tulle_ctx *ctx, const tulle_transport *t, const tulle_dist_options *o,
                            tulle_dist **out);
void         tl_dist_free(tulle_dist *d);
/* Returns the status of the lowest rank that failed, on all ranks, with its error message. */
tulle_status tl_agree(tulle_dist *d, tulle_status status);
#define AGREE(call) TRY(tl_agree(d, call))
/* The same combined with an allreduce (minimum) of some numbers, in one step: with many ranks, or several
 * ranks per core, each collective step is expensive. */
enum { TL_LEAST_MAX = 24 };
tulle_status tl_agree_least(tulle_dist *d, tulle_status status, int64_t *least, int count);
tulle_status tl_allreduce(tulle_dist *d, int64_t *values, int count, tulle_reduce op);
tulle_status tl_alltoall(tulle_dist *d, const int64_t *out, int64_t *in);
/* Send and receive any length, in messages of at most TULLE_MESSAGE_MAX; nothing is sent for 0 bytes. */
tulle_status tl_send(tulle_dist *d, const void *data, int64_t bytes, int to, tl_mail kind);
tulle_status tl_recv(tulle_dist *d, void *data, int64_t bytes, int from, tl_mail kind);
tulle_status tl_wait(tulle_dist *d);
void         tl_count_begin(tulle_dist *d);     /* resets the counters for a product    */

/* ---- view.c */

/* Checks fields, types and (unless trusted) arrays, and that all ranks have the same shape.  Ends in
 * agreement. */
tulle_status tl_dist_check(tulle_dist *d, const tulle_dist_csr *A, const char *name, bool trust);
/* A view of the caller.  If it is a slice of a larger matrix (row_ptr[0] is not 0), it gets row pointers of
 * its own that begin at 0; tl_lent_end() frees them.  Not collective. */
typedef struct tl_lent {
    tulle_dist_csr view;
    tulle_matrix  *own;
    int64_t        first;               /* the caller's row_ptr[0], where its new values begin, too */
} tl_lent;
tulle_status tl_lend(tulle_dist *d, const tulle_dist_csr *A, const char *name, tl_lent *l);
static inline const void *tl_lent_values(const tl_lent *l, const void *values)
{
    size_t size = tl_type_size(l->view.local.val_type);
    return values ? (const char *)values + (size_t)l->first * size : NULL;
}
void         tl_lent_end(tl_base *b, tl_lent *l);
/* Checks a matrix or a slice of one on the host: its fields and, unless trusted, its arrays.  Not
 * collective. */
tulle_status tl_part_check(tulle_dist *d, const tulle_csr *A, const char *name, bool trust);
/* Checks the row pointers of some rows, before these rows are sent or copied.  Not collective. */
tulle_status tl_rows_check(tulle_dist *d, const tulle_csr *A, int64_t first, int64_t end, const char *name);
/* Checks that op is a tulle_op.  Not collective. */
tulle_status tl_op_check(tulle_dist *d, int op);
/* Checks that row_starts is a valid division of this many rows.  Not collective. */
tulle_status tl_starts_check(tulle_dist *d, const int64_t *starts, int64_t rows, const char *name);
/* Checks that all ranks have the same numbers, at most 12.  Ends in agreement; the error message names the
 * first one that differs. */
typedef struct tl_same {
    const char *of, *what;              /* "A", "its row blocks" */
    int64_t     number;                 /* not INT64_MIN         */
} tl_same;
tulle_status tl_same_everywhere(tulle_dist *d, tulle_status status, const tl_same *same, int count);
/* A hash of row blocks. */
int64_t      tl_starts_number(const int64_t *starts, int size);
tulle_status tl_starts_copy(tl_base *b, const int64_t *starts, int size, int64_t **out);
tulle_status tl_dist_own(tulle_dist *d, const int64_t *starts, tulle_matrix *local, tulle_dist_matrix **out);
/* The end of a collective operation: if it succeeded on all ranks (status), *local becomes *out. */
tulle_status tl_dist_give(tulle_dist *d, tulle_status status, const int64_t *starts, tulle_matrix **local,
                          tulle_dist_matrix **out);
void         tl_dist_matrix_free(tl_base *b, tulle_dist_matrix *A);
static inline int64_t tl_dist_rows(const tulle_dist *d, const tulle_dist_csr *A)
{
    return A->row_starts[d->t.size];
}

/* ---- shift.c: to[k] = from[k] + by; the same, and plain copies, with the threads of the context. */

void         tl_shift(const void *from, tulle_index from_type, void *to, tulle_index to_type, int64_t count,
                      int64_t by);
void         tl_team_shift(tl_base *b, const void *from, tulle_index from_type, void *to,
                           tulle_index to_type, int64_t count, int64_t by);
void         tl_team_copy(tl_base *b, const void *from, void *to, int64_t count, size_t item);

/* ---- lists.c: each rank numbers the rows of B that it uses: first the needed rows of lower ranks, then all
 * its own, then the needed rows of higher ranks, which is the global order. */

typedef struct tl_lists {
    int64_t  own_first, own_rows;       /* the rows of B that are here                         */
    int64_t  need, below;               /* distinct rows of other ranks; those of lower ranks  */
    int64_t *row;                       /* their global numbers, increasing                    */
    int64_t *from;                      /* rank r sends row[from[r]] .. row[from[r+1]-1]       */
    int64_t *to;                        /* rank r gets the rows give[to[r]] .. of ours         */
    int64_t *give, given;               /* their numbers, relative to own_first; their count   */
    uint64_t *edges;                    /* a bit for each row of A that needs such rows        */
    uint64_t *bits;                     /* a bit for each column from bits_first on: is needed */
    int64_t *before;                    /* number of set bits before each word                 */
    int64_t  bits_first, words;
} tl_lists;

tulle_status tl_lists_make(tulle_dist *d, const tulle_csr *A, const int64_t *b_starts, tl_lists *l);
/* Finds the rows that A needs, without communication: sets need, row[] and what tl_lists_renumber() uses. */
tulle_status tl_lists_mark(tl_base *b, const tulle_csr *A, tl_lists *l);
/* The position of a column of A in row[]; -1: it is a row of this rank.  Not after tl_lists_renumber(). */
int64_t      tl_lists_find(const tl_lists *l, int64_t column);
/* A's column indices in the new numbering. */
tulle_status tl_lists_renumber(tl_base *b, tl_lists *l, const tulle_csr *A, void **col_idx,
                               tulle_index *type);
void         tl_lists_done(tl_base *b, tl_lists *l);
static inline int64_t tl_lists_rows(const tl_lists *l)
{
    return l->need + l->own_rows;
}
/* The memory of the lists and of the row lengths, as long as the fetched rows are kept: 16 bytes per row that
 * is needed (its number and its length), and 8 per row that others need. */
static inline uint64_t tl_lists_bytes(const tl_lists *l)
{
    return 16 * (uint64_t)l->need + 8 * (uint64_t)l->given;
}

/* ---- exchange.c */

typedef struct tl_stream {              /* items of one size from every rank to every rank */
    tl_mail        kind;
    size_t         item;                /* bytes                                        */
    const int64_t *out, *in;            /* how many items to and from each rank         */
    char         **place;               /* destination of the items from each rank      */
    /* Packs the next count items for a rank, in order. */
    void         (*pack)(void *arg, int to, int64_t count, char *buffer);
    void         (*meanwhile)(void *arg);       /* called once during the first round; may be NULL */
    void          *arg;
} tl_stream;

/* Begins with agreement on status, so that nothing is sent if a rank is out of memory.  Items of this rank
 * for itself are packed directly into their place. */
tulle_status tl_exchange(tulle_dist *d, tulle_status status, const tl_stream *s);

/* ---- fetch.c: the rows of B that a rank uses, its own and fetched ones */

typedef struct tl_fetch {
    tl_lists    lists;
    int64_t    *length;                 /* entries of each fetched row                  */
    int64_t    *out, *in;               /* entries to and from each rank                */
    int64_t     entries;                /* fetched                                      */
    int64_t     own_entries, below_entries;
    void       *row_ptr;                /* of the local B                               */
    void       *col_idx, *values;
    void       *a_col;                  /* A's columns in the numbering of the local B  */
    tulle_csr   A, B;                   /* views over them, ready for a local product   */
    const tulle_csr *part;              /* rank r gets rows of part[r % parts]; NULL: of B */
    int         parts;
    tulle_status late;                  /* an error during an exchange, for the next agreement */
} tl_fetch;

/* Exchanges lists and row lengths: then the memory needed is known, before anything large was moved. */
tulle_status tl_fetch_lengths(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B, tl_fetch *f);
uint64_t     tl_fetch_bytes(const tl_fetch *f, const tulle_csr *A, const tulle_csr *B, bool values);
/* An error of this rank alone is stored in f->late. */
tulle_status tl_fetch_patterns(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B, bool values,
                               tl_fetch *f);
tulle_status tl_fetch_values(tulle_dist *d, const tulle_csr *B, const void *b_values, tl_fetch *f);
void         tl_fetch_done(tl_base *b, tl_fetch *f);

/* ---- ship.c */

typedef struct tl_freight {             /* received rows, in the order of the ranks     */
    int64_t *row, *entry;               /* rank r: rows row[r] .. , entries entry[r] ..  */
    int64_t *length;                    /* of each row                                  */
    void    *col, *val;
    bool     has_values;
    const tulle_csr *own;               /* with lend: this rank's rows for itself were not copied */
    int64_t  own_first, own_end;        /* into the above: they are these rows of *own,           */
    int64_t  own_shift;                 /* with this number to be added to their columns          */
} tl_freight;

/* Sends the rows first[r] .. end[r]-1 of A to rank r, and receives rows_in[r] rows from it.  shift is added
 * to columns, which are sent as idx_type.  lend: this rank's rows for itself stay in A, for
 * tl_freight_merge(). */
tulle_status tl_ship(tulle_dist *d, const tulle_csr *A, const int64_t *first, const int64_t *end,
                     const int64_t *rows_in, int64_t shift, tulle_index idx_type, bool lend, tl_freight *f);
/* The received rows as a matrix, stacked vertically in the order of the ranks; takes over the arrays. */
tulle_status tl_freight_stack(tulle_dist *d, const tulle_csr *like, int64_t rows, int64_t cols,
                              tulle_index idx_type, tl_freight *f, tulle_matrix **out);
/* Or side by side: row i is row i of rank 0, then row i of rank 1, ...; each rank sent `rows` rows, or none.
 * ptr_type 0: the narrowest. */
tulle_status tl_freight_merge(tulle_dist *d, const tulle_csr *like, int64_t rows, int64_t cols,
                              tulle_index idx_type, int ptr_type, const tl_freight *f, tulle_matrix **out);
void         tl_freight_done(tl_base *b, tl_freight *f);

/* ---- turn.c: new values of a transposed matrix with a known pattern */

typedef struct tl_turn {
    int       op;
    int64_t  *perm;                     /* of the local transpose: the source of each entry      */
    int64_t  *block, *out, *in, *sent;  /* entries to and from each rank; sent                   */
    char    **place;
    int64_t  *order;                    /* destination of each received value                    */
    void     *came, *values;            /* received values; in the order of the transpose        */
    int64_t   entries, elsewhere;       /* of the transpose on this rank; of these, received     */
    int64_t   given;                    /* entries of A on this rank                             */
    tulle_type val_type;
} tl_turn;

/* turned: the local transpose, whose rows starts[r] .. go to rank r; f: the received rows. */
tulle_status tl_turn_keep(tulle_dist *d, const tulle_csr *turned, int op, const int64_t *starts,
                          const tl_freight *f, tl_turn *t);
/* Computes t->values from those of A; status: this rank's part of the agreement before. */
tulle_status tl_turn_values(tulle_dist *d, tulle_status status, const void *a_values, tl_turn *t);
void         tl_turn_done(tl_base *b, tl_turn *t);

/* ---- product.c, plan.c, spmm.c, move.c, galerkin.c, file.c */

/* Checks the options of a product, and that all ranks have the same ops.  status: of earlier checks.  Ends in
 * agreement. */
tulle_status tl_dist_options_check(tulle_dist *d, tulle_status status, const tulle_options *o,
                                   tulle_options *out);
/* Checks two operands: their views, inner dimensions and types.  Ends in agreement. */
tulle_status tl_dist_operands(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B, bool trust,
                              bool values);
tulle_status tl_dist_multiply(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                              const tulle_options *o,
                              tulle_dist_matrix **C);
/* The counters of one rank; tl_stats_join() forms sums and maxima of all, and ends in agreement. */
typedef struct tl_account {
    uint64_t exact;                     /* minimum bytes that this rank must receive */
    uint64_t gather;                    /* bytes of this rank's part of B       */
    int64_t  fetched, products, c_nnz;
    int      blocks;
    uint64_t one, two;                  /* predicted bytes of all ranks, see grid.c */
    int      grid_cols;                 /* 0: in one dimension                  */
} tl_account;
tulle_status tl_stats_join(tulle_dist *d, tulle_status status, const tl_account *here);
/* The local product of this rank, with own and fetched rows; held: bytes that already count toward the
 * limit. */
tulle_status tl_local_product(tulle_dist *d, const tl_fetch *f, const tulle_options *o, uint64_t held,
                              tulle_matrix **C, tl_account *account);
/* ---- grid.c: f has lists and lengths of the product in one dimension.  Fills account->one, two and
 * grid_cols. */
tulle_status tl_grid_choose(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                            const tulle_options *o, const tl_fetch *f, tl_account *account);
int64_t      tl_row_products(const tulle_csr *A, const tulle_csr *B, const tl_fetch *f, int64_t own_first,
                             int64_t row);
uint64_t     tl_matrix_bytes(const tulle_matrix *A);
/* ---- summa.c: on a grid with account->grid_cols columns; this rank's rows of C. */
tulle_status tl_summa(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B, const tulle_options *o,
                      tulle_matrix **C, tl_account *account);
tulle_status tl_dist_product(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                             const tulle_options *o,
                             tulle_dist_matrix **C);
tulle_status tl_dist_ptap(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *P,
                          const tulle_options *o,
                          tulle_dist_matrix **C);
tulle_status tl_dist_product_check(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                   const tulle_dist_csr *C,
                                   double *error);
tulle_status tl_dist_scatter(tulle_dist *d, const tulle_csr *A, const int64_t *starts,
                             tulle_dist_matrix **out);
tulle_status tl_dist_gather(tulle_dist *d, const tulle_dist_csr *A, int root, tulle_matrix **out);
tulle_status tl_dist_transpose(tulle_dist *d, const tulle_dist_csr *A, tulle_op op, const int64_t *starts,
                               tulle_dist_matrix **out);
/* The same; if keep is not NULL it receives what is needed to transpose other values of this pattern. */
tulle_status tl_dist_turn(tulle_dist *d, const tulle_dist_csr *A, tulle_op op, const int64_t *starts,
                          tl_turn *keep, tulle_dist_matrix **out);
tulle_status tl_dist_redistribute(tulle_dist *d, const tulle_dist_csr *A, const int64_t *starts,
                                  tulle_dist_matrix **out);
tulle_status tl_dist_balance(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                             int64_t *starts);
tulle_status tl_dist_plan_create(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                                 const tulle_options *o, tulle_dist_plan **out);
tulle_status tl_dist_plan_run(tulle_dist_plan *p, const void *a_values, const void *b_values, void *c_values);
tulle_dist_csr tl_dist_plan_pattern(const tulle_dist_plan *p);
tulle_dist  *tl_dist_plan_dist(const tulle_dist_plan *p);
void         tl_dist_plan_free(tulle_dist_plan *p);
tulle_status tl_dist_spmm(tulle_dist *d, const void *alpha, const tulle_dist_csr *A, const tulle_dense *X,
                          const int64_t *x_starts, const void *beta, tulle_dense *Y,
                          const tulle_spmm_options *o);
tulle_status tl_dist_spmm_plan_create(tulle_dist *d, const tulle_dist_csr *A, const int64_t *x_starts,
                                      const int64_t *y_starts, const tulle_spmm_options *o,
                                      tulle_dist_spmm_plan **out);
tulle_status tl_dist_spmm_plan_run(tulle_dist_spmm_plan *p, const void *alpha, const tulle_dense *X,
                                   const void *beta, tulle_dense *Y);
tulle_status tl_dist_spmm_plan_set_values(tulle_dist_spmm_plan *p, const void *a_values);
tulle_dist  *tl_dist_spmm_plan_dist(const tulle_dist_spmm_plan *p);
void         tl_dist_spmm_plan_free(tulle_dist_spmm_plan *p);
tulle_status tl_dist_read(tulle_dist *d, const char *path, const int64_t *starts, tulle_dist_matrix **out);
tulle_status tl_dist_write(tulle_dist *d, const char *path, const tulle_dist_csr *A);

#endif
