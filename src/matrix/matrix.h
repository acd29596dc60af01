/* SPDX-License-Identifier: MIT
 *
 * matrix.h - CSR matrices inside the library: owned matrices, types, and operations on a single matrix.  Each
 * section below is one file of this folder. */
#ifndef TL_MATRIX_H
#define TL_MATRIX_H
#include "base/base.h"

/* The largest value of a 32-bit index.  Lowered in a test build, so that small matrices already need 64-bit
 * indices, or are refused. */
#ifndef TULLE_I32_LIMIT
#define TULLE_I32_LIMIT INT32_MAX
#endif

/* An owned matrix: three blocks of base/mem.c, or a mapped file that the view points into. */
struct tulle_matrix {
    tulle_csr view;
    void     *row_ptr, *col_idx, *values;   /* NULL where the array lies in the mapping */
    void     *mapping;
    size_t    mapping_bytes;
    void    (*unmap)(void *mapping, size_t bytes);
    void     *owner;                        /* arrays on a device: who gives them back  */
    void    (*disown)(tulle_matrix *A);
};

/* An owned dense matrix; view.values is its one block, without gaps. */
struct tulle_dense_matrix {
    tulle_dense view;
    void       *owner;                      /* values on a device: who gives them back  */
    void      (*disown)(tulle_dense_matrix *A);
};

typedef struct { float  re, im; } tl_c32;
typedef struct { double re, im; } tl_c64;

/* ---- types.c */
bool        tl_type_known(int type);
bool        tl_index_known(int index);
size_t      tl_type_size(tulle_type type);          /* 4, 8, 8, 16 */
size_t      tl_index_size(tulle_index index);       /* 4, 8        */
const char *tl_type_name(tulle_type type);          /* "f32" ...   */
const char *tl_index_name(tulle_index index);       /* "i32", "i64" */
bool        tl_type_complex(tulle_type type);
bool        tl_fits(tulle_index index, int64_t value);
/* The narrowest index that holds value. */
tulle_index tl_index_for(int64_t value);

static inline int64_t tl_get(const void *array, tulle_index type, int64_t i)
{
    return type == TULLE_I32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

static inline void tl_put(void *array, tulle_index type, int64_t i, int64_t value)
{
    if (type == TULLE_I32) ((int32_t *)array)[i] = (int32_t)value;
    else ((int64_t *)array)[i] = value;
}

static inline int64_t tl_row_begin(const tulle_csr *A, int64_t i)
{
    return tl_get(A->row_ptr, A->ptr_type, i);
}

/* Whether two views have the same pattern arrays, of the same types.  Their values may differ. */
bool tl_same_arrays(const tulle_csr *A, const tulle_csr *B);
/* Whether they have the same values, too. */
bool tl_same_matrix(const tulle_csr *A, const tulle_csr *B);

/* ---- own.c: a matrix with nnz entries, whose view is complete and whose arrays are uninitialised.  val_type
 * 0: no values. */
tulle_status tl_matrix_create(tl_base *b, int64_t rows, int64_t cols, int64_t nnz, tulle_index ptr_type,
                              tulle_index idx_type, int val_type, tulle_matrix **out);
/* The same with A's type of values; without values where A has none, but the view has the type. */
tulle_status tl_matrix_like(tl_base *b, int64_t rows, int64_t cols, int64_t nnz, tulle_index ptr_type,
                            tulle_index idx_type, const tulle_csr *A, tulle_matrix **out);
/* A copy in the same types; row_ptr[0] must be 0. */
tulle_status tl_matrix_copy(tl_base *b, const tulle_csr *A, tulle_matrix **out);
void         tl_matrix_free(tl_base *b, tulle_matrix *A);
void         tl_matrix_hand_over(tl_base *from, tl_base *to, tulle_matrix *A);  /* who counts its bytes */
/* Over the caller's arrays; done(user) when it is freed. */
tulle_status tl_matrix_adopt(tl_base *b, const tulle_csr *A, tulle_done_fn done, void *user,
                             tulle_matrix **out);
/* Frees A but gives its arrays to the caller; TULLE_EINVAL where they are not blocks of their own on the
 * host. */
tulle_status tl_matrix_release(tulle_matrix *A, tulle_csr *arrays);

/* ---- check.c: cheap checks of the fields, then every row in parallel.  name is "A" or "B", for the error
 * message.  tl_csr_check_shape reads no array, tl_csr_check_ends only the first and the last row pointer,
 * which determine how many entries the other arrays must have. */
tulle_status tl_csr_check_shape(tl_base *b, const tulle_csr *A, const char *name);
tulle_status tl_csr_check_ends(tl_base *b, const tulle_csr *A, const char *name);
tulle_status tl_csr_check(tl_base *b, const tulle_csr *A, const char *name, int threads);
/* Checks a matrix again that was found to be invalid during a product, to report what is wrong with it. */
tulle_status tl_csr_refuse(tl_base *b, const tulle_csr *A, const char *name);

/* ---- slice.c: views of rows of a larger matrix, whose row_ptr[0] is not 0.  *view becomes *A itself where
 * row_ptr[0] is 0.  Otherwise it is a view of *own, which has row pointers of its own that were checked, and
 * which the caller frees.  Arrays on a device are not read. */
tulle_status tl_csr_slice(tl_base *b, const tulle_csr *A, const char *name, int threads, tulle_csr *view,
                          tulle_matrix **own);
uint64_t     tl_csr_slice_bytes(const tulle_csr *A);    /* the memory it takes */
/* Do row_ptr[0] and row_ptr[rows] of a view on the host agree with nnz? */
tulle_status tl_csr_slice_ends(tl_base *b, const tulle_csr *A, const char *name);
int64_t      tl_csr_first(const tulle_csr *A);          /* the first entry of a view, as its arrays count */
const void  *tl_array_from(const void *array, size_t size, int64_t first);          /* NULL stays NULL */
/* Some rows of a matrix on the host, as such a view. */
tulle_csr    tl_csr_rows(const tulle_csr *A, int64_t row0, int64_t row1);

/* ---- columns.c: copies the columns first .. end-1 of some rows of A; columns keep their numbers.  row: the
 * row numbers; NULL: the rows 0 .. rows-1. */
tulle_status tl_columns_take(tl_base *b, const tulle_csr *A, const int64_t *row, int64_t rows, int64_t first,
                             int64_t end, tulle_matrix **out);
/* The first entry of a row whose column is not below this one. */
int64_t      tl_row_lower(const tulle_csr *A, int64_t row, int64_t column);

/* ---- join.c: a matrix from its parts, in their order. */
typedef struct tl_join {
    tulle_matrix *C;
    int64_t       rows, nnz;            /* so far                                   */
    int64_t       room;                 /* capacity of its arrays, in entries       */
    int64_t       least, most;          /* bounds of its final number of entries    */
    size_t        index, value;         /* bytes of a column and of a value         */
    uint64_t      unasked;              /* bytes used since free memory was last checked */
} tl_join;

/* C has least .. most entries; columns of parts have idx_type. */
tulle_status tl_join_begin(tl_base *b, int64_t rows, int64_t cols, int64_t least, int64_t most,
                           tulle_index idx_type, tulle_type val_type, bool values, tl_join *join);
/* Appends rows; with `beside`, part is a range of columns of the next row, and more columns of it will
 * follow. */
tulle_status tl_join_put(tl_base *b, tl_join *join, const tulle_csr *part, bool beside);
/* Completes the matrix; ptr_type 0: the narrowest that fits. */
tulle_status tl_join_finish(tl_base *b, tl_join *join, int ptr_type, tulle_matrix **out);
void         tl_join_done(tl_base *b, tl_join *join);       /* a matrix that was not finished is freed */
/* Concatenates the rows of matrices.  Each one is freed, and its pointer set to NULL, when it was copied.
 * owner: the bases that allocated them; NULL: b. */
tulle_status tl_rows_join(tl_base *b, tulle_matrix **part, tl_base *const *owner, int64_t count, int ptr_type,
                          tulle_matrix **out);
/* The peak memory of tl_rows_join: of the parts that are not yet freed, and of the result so far. */
uint64_t     tl_rows_join_bytes(const tl_base *b, tulle_matrix *const *part, int64_t count, int ptr_type);

/* ---- sort.c, transpose.c, convert.c, coo.c.  perm, when not NULL, receives an array (free
 * with tl_free) that says from which entry of A each entry of the transpose came. */
tulle_status tl_csr_sort(tl_base *b, const tulle_csr *A, tulle_matrix **out);
tulle_status tl_csr_transpose(tl_base *b, const tulle_csr *A, tulle_op op, tulle_matrix **out,
                              int64_t **perm);
tulle_status tl_csr_convert(tl_base *b, const tulle_csr *A, int val_type, int ptr_type, int idx_type,
                            tulle_matrix **out);
/* Changes the width of an array's indices in place; the array must be large enough for the wider of the
 * two. */
void         tl_index_resize(tl_base *b, void *array, tulle_index from, tulle_index to, int64_t count);
tulle_status tl_csr_from_coo(tl_base *b, int64_t rows, int64_t cols, int64_t count, const void *row_idx,
                             const void *col_idx, tulle_index idx_type, const void *values,
                             tulle_type val_type, tulle_matrix **out);

/* ---- read.c, write.c (formats), gallery.c (recipes) */
/* map: a .tulle file is mapped where it can be, not copied. */
tulle_status tl_read(tl_base *b, const char *path, bool map, tulle_matrix **out);
tulle_status tl_write(tl_base *b, const char *path, const tulle_csr *A);
/* mtx_symmetric.c; A was checked. */
tulle_status tl_write_symmetric(tl_base *b, const char *path, const tulle_csr *A);
tulle_status tl_write_check(tl_base *b, const char *path);
tulle_status tl_write_bytes(tl_base *b, const char *path, const void *data, size_t bytes);
/* ---- writer.c: a file from blocks of rows */
tulle_status tl_writer_create(tl_base *b, const char *path, int64_t rows, int64_t cols, int val_type,
                              tulle_writer **out);
tulle_status tl_writer_put(tulle_writer *w, const tulle_csr *block);    /* which was checked */
tulle_status tl_writer_finish(tulle_writer *w);
void         tl_writer_free(tulle_writer *w);
tl_base     *tl_writer_base(const tulle_writer *w);
tulle_status tl_gallery(tl_base *b, const char *recipe, tulle_matrix **out);

/* ---- dense.c.  The check reads no values and replaces an ld of 0 by the actual one; `values`: whether
 * values may not be NULL.  All others take views that were checked. */
tulle_status tl_dense_check(tl_base *b, tulle_dense *A, const char *name, bool values);
uint64_t     tl_dense_bytes(const tulle_dense *A);      /* from the first value to the last */
/* Values uninitialised. */
tulle_status tl_dense_create(tl_base *b, int64_t rows, int64_t cols, tulle_order order, tulle_type type,
                             tulle_dense_matrix **out);
void         tl_dense_free(tl_base *b, tulle_dense_matrix *A);
tulle_status tl_dense_convert(tl_base *b, const tulle_dense *A, tulle_order order, int type,
                              tulle_dense_matrix **out);
tulle_status tl_dense_read(tl_base *b, const char *path, tulle_dense_matrix **out);
tulle_status tl_dense_write(tl_base *b, const char *path, const tulle_dense *A);

#endif
