/* SPDX-License-Identifier: MIT
 *
 * dist.h - products over several ranks: what the files of this folder share.
 *
 *     comm.c      the transport, counted; agreement on a status
 *     view.c      is this a distributed matrix? the same on all ranks?
 *     lists.c     which rows of B are needed, and who has them
 *     exchange.c  rows travel in slices, packed and placed while others are under way
 *     fetch.c     patterns and values of the rows that are needed
 *     product.c   C = A*B, whole or in blocks of A's rows
 *     stats.c     what the ranks counted, joined
 *     plan.c      patterns once, values often
 *     turn.c      values of a transposed operand, again and again
 *     spmm.c      the same lists for rows of a dense matrix
 *     shift.c     indices with a number added, copies
 *     ship.c      whole rows to other ranks
 *     freight.c   what came, as one matrix
 *     grid.c      what a product would move on grids of ranks; which is taken
 *     summa.c     C = A*B on a grid of ranks
 *     move.c      transpose, other row blocks, gather, row blocks of equal work
 *     verify.c    C*x against A*(B*x)
 *     galerkin.c  transposed operands, P^T*A*P
 *     file.c      every rank its part of a .tulle file
 *
 * Every function here that takes a tulle_dist is collective.  A step that can fail on one rank alone ends
 * with tl_agree(), before anybody waits for a message of that rank. */
#ifndef TL_DIST_H
#define TL_DIST_H
#include "matrix/matrix.h"
#include "tulle_mpi.h"

typedef enum tl_mail { TL_MAIL_LISTS, TL_MAIL_LENGTHS, TL_MAIL_COLUMNS, TL_MAIL_VALUES,
                      TL_MAIL_KINDS } tl_mail;

struct tulle_dist {
    tulle_ctx       *ctx;               /* local products go through the public interface */
    tl_base         *b;                 /* of that context: memory, sentences, progress   */
    tulle_transport  t;
    int64_t          slice;             /* bytes of a message with rows                   */
    bool             sliced;            /* ... that all ranks have agreed on              */
    int              dimensions;        /* 1, 2: as the caller wants; 0: chosen           */
    int              grid_cols;         /* of the grid in 2 dimensions; 0: chosen         */
    bool             broken;            /* messages failed: nothing works any more        */
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
/* The status of the lowest rank that failed, on all ranks, with its sentence. */
tulle_status tl_agree(tulle_dist *d, tulle_status status);
#define AGREE(call) TRY(tl_agree(d, call))
/* The same, and each of some numbers becomes the least that a rank has: one step, because ranks that are many
 * or share cores pay for each. */
enum { TL_LEAST_MAX = 24 };
tulle_status tl_agree_least(tulle_dist *d, tulle_status status, int64_t *least, int count);
tulle_status tl_allreduce(tulle_dist *d, int64_t *values, int count, tulle_reduce op);
tulle_status tl_alltoall(tulle_dist *d, const int64_t *out, int64_t *in);
/* Of any length, in slices that a transport takes; 0 bytes are no message. */
tulle_status tl_send(tulle_dist *d, const void *data, int64_t bytes, int to, tl_mail kind);
tulle_status tl_recv(tulle_dist *d, void *data, int64_t bytes, int from, tl_mail kind);
tulle_status tl_wait(tulle_dist *d);
void         tl_count_begin(tulle_dist *d);     /* a product begins                     */

/* ---- view.c */

/* Fields, arrays (unless trusted) and types; the same shape on all ranks.  Ends in agreement. */
tulle_status tl_dist_check(tulle_dist *d, const tulle_dist_csr *A, const char *name, bool trust);
/* The caller's view; where it is a slice of a larger matrix, one with row pointers of its own, which
 * tl_lent_end() frees.  Not collective. */
typedef struct tl_lent {
    tulle_dist_csr view;
    tulle_matrix  *own;
    int64_t        first;               /* the caller's row_ptr[0]: values that come later begin there, too */
} tl_lent;
tulle_status tl_lend(tulle_dist *d, const tulle_dist_csr *A, const char *name, tl_lent *l);
static inline const void *tl_lent_values(const tl_lent *l, const void *values)
{
    size_t size = tl_type_size(l->view.local.val_type);
    return values ? (const char *)values + (size_t)l->first * size : NULL;
}
void         tl_lent_end(tl_base *b, tl_lent *l);
/* A matrix or rows of one on the host: its fields and, unless trusted, its arrays.  Not collective. */
tulle_status tl_part_check(tulle_dist *d, const tulle_csr *A, const char *name, bool trust);
/* Of some rows, are the pointers in order?  What is moved or copied must be there.  Not collective. */
tulle_status tl_rows_check(tulle_dist *d, const tulle_csr *A, int64_t first, int64_t end, const char *name);
/* Is it a tulle_op?  Not collective. */
tulle_status tl_op_check(tulle_dist *d, int op);
/* Row blocks of so many rows, the same on all ranks; not collective. */
tulle_status tl_starts_check(tulle_dist *d, const int64_t *starts, int64_t rows, const char *name);
/* Do all ranks have the same numbers, at most 12?  Ends in agreement; the sentence is about the first that
 * differs. */
typedef struct tl_same {
    const char *of, *what;              /* "A", "its row blocks" */
    int64_t     number;                 /* not INT64_MIN         */
} tl_same;
tulle_status tl_same_everywhere(tulle_dist *d, tulle_status status, const tl_same *same, int count);
/* A number that differs where row blocks do, but for 2^-63. */
int64_t      tl_starts_number(const int64_t *starts, int size);
tulle_status tl_starts_copy(tl_base *b, const int64_t *starts, int size, int64_t **out);
tulle_status tl_dist_own(tulle_dist *d, const int64_t *starts, tulle_matrix *local, tulle_dist_matrix **out);
/* The end of a collective: *local, where this rank has made it (status), becomes *out, if all ranks have
 * made theirs. */
tulle_status tl_dist_give(tulle_dist *d, tulle_status status, const int64_t *starts, tulle_matrix **local,
                          tulle_dist_matrix **out);
void         tl_dist_matrix_free(tl_base *b, tulle_dist_matrix *A);
static inline int64_t tl_dist_rows(const tulle_dist *d, const tulle_dist_csr *A)
{
    return A->row_starts[d->t.size];
}

/* ---- shift.c: to[k] = from[k] + by; the same, and copies, by the threads of the context. */

void         tl_shift(const void *from, tulle_index from_type, void *to, tulle_index to_type, int64_t count,
                      int64_t by);
void         tl_team_shift(tl_base *b, const void *from, tulle_index from_type, void *to,
                           tulle_index to_type, int64_t count, int64_t by);
void         tl_team_copy(tl_base *b, const void *from, void *to, int64_t count, size_t item);

/* ---- lists.c: rows of B are numbered anew on each rank: needed ones below its own, all of its own,
 * needed ones above.  The order is the global one. */

typedef struct tl_lists {
    int64_t  own_first, own_rows;       /* the rows of B that are here                         */
    int64_t  need, below;               /* distinct rows from elsewhere; those before ours     */
    int64_t *row;                       /* their global numbers, increasing                    */
    int64_t *from;                      /* rank r sends row[from[r]] .. row[from[r+1]-1]       */
    int64_t *to;                        /* rank r gets the rows give[to[r]] .. of ours         */
    int64_t *give, given;               /* numbers counted from own_first; how many            */
    uint64_t *edges;                    /* a bit for each row of A that needs any              */
    uint64_t *bits;                     /* a bit for each column of A from bits_first on that is needed */
    int64_t *before;                    /* and how many are set before each word               */
    int64_t  bits_first, words;
} tl_lists;

tulle_status tl_lists_make(tulle_dist *d, const tulle_csr *A, const int64_t *b_starts, tl_lists *l);
/* Which rows A names, without a word to others: need, row[] and what tl_lists_renumber() wants. */
tulle_status tl_lists_mark(tl_base *b, const tulle_csr *A, tl_lists *l);
/* The place of a column of A in row[], or -1: it is one of ours.  Not after tl_lists_renumber(). */
int64_t      tl_lists_find(const tl_lists *l, int64_t column);
/* A's columns in the new numbers. */
tulle_status tl_lists_renumber(tl_base *b, tl_lists *l, const tulle_csr *A, void **col_idx,
                               tulle_index *type);
void         tl_lists_done(tl_base *b, tl_lists *l);
static inline int64_t tl_lists_rows(const tl_lists *l)
{
    return l->need + l->own_rows;
}
/* What stays of them as long as the fetched rows do, with the lengths of these: 16 bytes for each row that is
 * needed, 8 for each that is given. */
static inline uint64_t tl_lists_bytes(const tl_lists *l)
{
    return 16 * (uint64_t)l->need + 8 * (uint64_t)l->given;
}

/* ---- exchange.c */

typedef struct tl_stream {              /* items of one size from every rank to every rank */
    tl_mail        kind;
    size_t         item;                /* bytes                                        */
    const int64_t *out, *in;            /* how many items to and from each rank         */
    char         **place;               /* where those of each rank go                  */
    /* The next count items for a rank, in order. */
    void         (*pack)(void *arg, int to, int64_t count, char *buffer);
    void         (*meanwhile)(void *arg);       /* once, while the first are under way; may be NULL */
    void          *arg;
} tl_stream;

/* Begins with agreement on status: no rank packs where another had no room.  Items for this rank itself go
 * from pack() to their place. */
tulle_status tl_exchange(tulle_dist *d, tulle_status status, const tl_stream *s);

/* ---- fetch.c: B's rows on a rank, own and fetched */

typedef struct tl_fetch {
    tl_lists    lists;
    int64_t    *length;                 /* entries of each fetched row                  */
    int64_t    *out, *in;               /* entries to and from each rank                */
    int64_t     entries;                /* fetched                                      */
    int64_t     own_entries, below_entries;
    void       *row_ptr;                /* of B as it is here                           */
    void       *col_idx, *values;
    void       *a_col;                  /* A's columns in its numbers                   */
    tulle_csr   A, B;                   /* views over them, ready for a local product   */
    const tulle_csr *part;              /* rank r gets rows of part[r % parts]; NULL: of B */
    int         parts;
    tulle_status late;                  /* failed here beside an exchange: for the next agreement */
} tl_fetch;

/* Lists and lengths: what it will take is known, nothing large has moved. */
tulle_status tl_fetch_lengths(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B, tl_fetch *f);
uint64_t     tl_fetch_bytes(const tl_fetch *f, const tulle_csr *A, const tulle_csr *B, bool values);
/* What fails on this rank alone is in f->late. */
tulle_status tl_fetch_patterns(tulle_dist *d, const tulle_csr *A, const tulle_dist_csr *B, bool values,
                               tl_fetch *f);
tulle_status tl_fetch_values(tulle_dist *d, const tulle_csr *B, const void *b_values, tl_fetch *f);
void         tl_fetch_done(tl_base *b, tl_fetch *f);

/* ---- ship.c */

typedef struct tl_freight {             /* rows that came, rank by rank                 */
    int64_t *row, *entry;               /* rank r: rows row[r] .. , entries entry[r] ..  */
    int64_t *length;                    /* of each row                                  */
    void    *col, *val;
    bool     has_values;
    const tulle_csr *own;               /* lent: this rank's rows for itself are still there,     */
    int64_t  own_first, own_end;        /* these of its rows, and nothing of them in the above;   */
    int64_t  own_shift;                 /* is to be added to their columns                        */
} tl_freight;

/* Rows first[r] .. end[r]-1 of A to rank r; rows_in[r] come from there.  shift is added to columns, which
 * travel in idx_type.  lend: what this rank has for itself stays in A, for tl_freight_merge(). */
tulle_status tl_ship(tulle_dist *d, const tulle_csr *A, const int64_t *first, const int64_t *end,
                     const int64_t *rows_in, int64_t shift, tulle_index idx_type, bool lend, tl_freight *f);
/* What came, as a matrix: rows one below the other in the order of the ranks; the arrays move there. */
tulle_status tl_freight_stack(tulle_dist *d, const tulle_csr *like, int64_t rows, int64_t cols,
                              tulle_index idx_type, tl_freight *f, tulle_matrix **out);
/* Or side by side: row i is row i of rank 0, then row i of rank 1, ...; `rows` from each rank that sent any.
 * ptr_type 0: the narrowest. */
tulle_status tl_freight_merge(tulle_dist *d, const tulle_csr *like, int64_t rows, int64_t cols,
                              tulle_index idx_type, int ptr_type, const tl_freight *f, tulle_matrix **out);
void         tl_freight_done(tl_base *b, tl_freight *f);

/* ---- turn.c: values of a transposed matrix, again and again */

typedef struct tl_turn {
    int       op;
    int64_t  *perm;                     /* of the local transpose: from which entry each one came */
    int64_t  *block, *out, *in, *sent;  /* entries to and from each rank; sent                   */
    char    **place;
    int64_t  *order;                    /* where what came goes, rank by rank                    */
    void     *came, *values;            /* the last: in the order of the transpose               */
    int64_t   entries, elsewhere;       /* of the transpose here; of these from other ranks      */
    int64_t   given;                    /* of A here                                             */
    tulle_type val_type;
} tl_turn;

/* turned: the local transpose, whose rows starts[r] .. go to rank r; f: what came. */
tulle_status tl_turn_keep(tulle_dist *d, const tulle_csr *turned, int op, const int64_t *starts,
                          const tl_freight *f, tl_turn *t);
/* t->values from those of A; status is what this rank brings to the agreement before. */
tulle_status tl_turn_values(tulle_dist *d, tulle_status status, const void *a_values, tl_turn *t);
void         tl_turn_done(tl_base *b, tl_turn *t);

/* ---- product.c, plan.c, spmm.c, move.c, galerkin.c, file.c */

/* Options of products; ops that the ranks agree on.  status: of what was looked at before.  Ends in
 * agreement. */
tulle_status tl_dist_options_check(tulle_dist *d, tulle_status status, const tulle_options *o,
                                   tulle_options *out);
/* Views checked, inner sizes and types that fit.  Ends in agreement. */
tulle_status tl_dist_operands(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B, bool trust,
                              bool values);
tulle_status tl_dist_multiply(tulle_dist *d, const tulle_dist_csr *A, const tulle_dist_csr *B,
                              const tulle_options *o,
                              tulle_dist_matrix **C);
/* Sums and maxima of what the ranks counted; ends in agreement. */
typedef struct tl_account {
    uint64_t exact;                     /* bytes that must come here            */
    uint64_t gather;                    /* bytes of this rank's part of B       */
    int64_t  fetched, products, c_nnz;
    int      blocks;
    uint64_t one, two;                  /* forecasts of all ranks' bytes, see grid.c */
    int      grid_cols;                 /* 0: in one dimension                  */
} tl_account;
tulle_status tl_stats_join(tulle_dist *d, tulle_status status, const tl_account *here);
/* The product of this rank alone, over rows that are here; held: bytes that already count against the
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
/* The same; what it takes to transpose other values of this pattern is kept, where keep is not NULL. */
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
