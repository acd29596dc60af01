/* SPDX-License-Identifier: MIT
 *
 * files.h - what the readers and writers of files share.
 *
 *     read.c   by its content ---> mtx_read.c (mtx_head.c, mtx_lines.c, mtx_build.c, mtx_array.c)
 *                 |    \---------> binary.c  (hash.c)
 *     source.c bytes, through gz.c and tar.c
 *     write.c  by the name ------> mtx_write.c, binary.c
 *     writer.c blocks of rows ---> mtx_write.c, binary_rows.c
 *     dense.c  dense matrices ---> npy.c, mtx_dense.c
 *     file.c   a temporary name, then a rename
 *     number.c, number_print.c, number_table.c   decimals to and from double, exactly */
#ifndef TL_FILES_H
#define TL_FILES_H
#include "matrix/parts.h"

/* ---- number.c: decimals to double, correctly rounded, in any locale.  The text must end with a byte that
 * cannot be part of a number (a newline), and TL_TEXT_PAD bytes after it must be readable. */

enum { TL_TEXT_PAD = 32 };

/* Returns the end of the number, or NULL where none begins at p.  Accepts 1, 1.5, .5, 1e5, 1D5, +1, nan,
 * inf. */
const char *tl_parse_double(const char *p, double *value);
/* Digits only; NULL where none begins at p or the number does not fit 63 bits. */
const char *tl_parse_index(const char *p, int64_t *value);

/* ---- number_print.c: the shortest decimals that read back as the same number; returns the length.
 * out has TL_NUMBER_MAX bytes; no terminating zero is added. */

enum { TL_NUMBER_MAX = 32 };

int tl_print_double(char *out, double value);
int tl_print_float(char *out, float value);     /* read as a double and rounded, it is the same float */
int tl_print_index(char *out, int64_t value);

/* ---- number_table.c: 10^q in 128 bits with the highest bit set, q in -342 .. 324; exact for
 * 0 <= q <= 55, rounded up for -27 <= q < 0, rounded down elsewhere. */

typedef struct { uint64_t hi, lo; } tl_pow10;
enum { TL_POW10_MIN = -342, TL_POW10_MAX = 324 };
extern const tl_pow10 tl_pow10_table[TL_POW10_MAX - TL_POW10_MIN + 1];

/* ---- source.c: the bytes of a file, unpacked, from front to back */

enum { TL_SOURCE_HEAD = 512, TL_SOURCE_NAME = 512 };

typedef struct tl_gz tl_gz;

typedef struct tl_source {
    tl_base    *b;
    const char *path;
    char       *own_path;               /* where path was "ARCHIVE:MEMBER"                          */
    const char *member;                 /* the requested member; NULL: none                         */
    char        name[TL_SOURCE_NAME];   /* for messages: path, or path(member of the archive)       */
    int         fd;
    bool        by_worker;              /* read by a thread that may not call progress              */
    int64_t     file_bytes;             /* < 0: not a regular file                                  */
    _Atomic int64_t file_read;
    bool        defer;                  /* messages go to error: other threads may fail meanwhile   */
    char        error[TL_ERROR_MAX];
    bool        keeping;                /* bytes from a pipe are kept, for tl_source_rewind()       */
    char       *kept;
    int64_t     kept_bytes, kept_room, kept_at;         /* kept_at < kept_bytes: read again         */
    tl_gz      *gz;                     /* NULL: not compressed                                     */
    int64_t     left;                   /* unread bytes of the archive's member; < 0: no archive    */
    int64_t     behind;                 /* padding after the member                                 */
    bool        searched;               /* the whole archive was read                               */
    char        matrices[400];          /* the first names of its .mtx members, for messages        */
    int         matrices_bytes, matrices_named, matrices_count;
    int         head_bytes, head_used;  /* the beginning, read to detect the format; bytes returned */
    char        head[TL_SOURCE_HEAD];
} tl_source;

/* path may be "ARCHIVE:MEMBER". */
tulle_status tl_source_open(tl_base *b, const char *path, tl_source *s);
void         tl_source_close(tl_source *s);
/* Starts again from the beginning; with a pipe only where its bytes were kept. */
tulle_status tl_source_rewind(tl_source *s);
/* Promises that the source will not be rewound. */
void         tl_source_go_on(tl_source *s);
/* Reads `room` bytes, fewer only at the end. */
tulle_status tl_source_read(tl_source *s, char *to, int64_t room, int64_t *got);
tulle_status tl_source_skip(tl_source *s, int64_t bytes);
/* An upper bound of the bytes still to come, for plausibility checks; INT64_MAX where it is unknown. */
int64_t      tl_source_bound(const tl_source *s);
double       tl_source_fraction(const tl_source *s);
tulle_status tl_source_fail(tl_source *s, tulle_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;
/* Bytes of the file itself, not unpacked: for gz.c. */
tulle_status tl_source_raw(tl_source *s, void *to, int64_t room, int64_t *got);

/* ---- gz.c, tar.c */

bool         tl_gz_begins(const char *head, int64_t bytes);
tulle_status tl_gz_open(tl_source *s);          /* s->head holds the first bytes of the file */
tulle_status tl_gz_read(tl_source *s, char *to, int64_t room, int64_t *got);
void         tl_gz_close(tl_source *s);
bool         tl_gz_here(void);                  /* built with zlib? */
/* Packs text as one gzip member; members can be concatenated.  A packer is for one thread and allocates only
 * when it is created.  room >= tl_gz_bound(bytes); returns the number of packed bytes. */
typedef struct tl_packer tl_packer;
tulle_status tl_packer_create(tl_base *b, tl_packer **packer);
void         tl_packer_free(tl_base *b, tl_packer *packer);
int64_t      tl_gz_bound(int64_t bytes);
int64_t      tl_gz_pack(tl_packer *packer, const char *text, int64_t bytes, char *to, int64_t room);

bool         tl_tar_begins(const char *head, int64_t bytes);
/* Moves to the matrix in the archive: the member that was named, else NAME/NAME.mtx, else the largest .mtx
 * with a banner.  Where none was named and there are others, the trace says which one is read. */
tulle_status tl_tar_enter(tl_source *s);
/* After the matrix: checks that no other member has the requested name, and lists other matrices. */
tulle_status tl_tar_leave(tl_source *s);

/* ---- mtx_head.c: the banner and the line of sizes */

typedef enum { TL_COORDINATE, TL_ARRAY } tl_mtx_layout;
typedef enum { TL_REAL, TL_INTEGER, TL_COMPLEX, TL_PATTERN } tl_mtx_field;
typedef enum { TL_GENERAL, TL_SYMMETRIC, TL_SKEW, TL_HERMITIAN } tl_mtx_symmetry;

typedef struct tl_mtx_head {
    tl_mtx_layout   layout;
    tl_mtx_field    field;
    tl_mtx_symmetry symmetry;
    bool            have_banner, have_sizes;
    int64_t         rows, cols;
    int64_t         entries;            /* how many the file must hold */
    int64_t         lines;              /* lines of the file read so far */
} tl_mtx_head;

bool         tl_mtx_begins(const char *head, int64_t bytes);
/* Reads whole lines up to the sizes; *used says how many bytes that took. */
tulle_status tl_mtx_head_lines(tl_source *s, const char *text, int64_t bytes, tl_mtx_head *h,
                               int64_t *used);

/* ---- mtx_lines.c: whole lines to entries */

typedef enum { TL_NO_FAULT, TL_EXPECTED, TL_OUTSIDE, TL_GOES_ON, TL_TOO_MANY, TL_WRONG } tl_mtx_kind;

typedef struct tl_mtx_fault {           /* where a line is wrong, and how */
    tl_mtx_kind kind;
    const char *at, *line;              /* the position, and the beginning of its line */
    const char *what;                   /* what was expected there, or a whole message */
    int64_t     number, high;
} tl_mtx_fault;

typedef struct tl_mtx_part {            /* entries of a few lines, in their order */
    void       *row, *col;              /* 0-based, of idx_type; coordinate layout only    */
    void       *val;                    /* double or complex double; not with TL_PATTERN   */
    int64_t     count, lines, diagonal;
    bool        by_row, by_col;         /* strictly increasing in (row, col), in (col, row) */
    int64_t     first_row, first_col, last_row, last_col;
    tl_mtx_fault fault;
} tl_mtx_part;

/* The largest number of entries that `bytes` bytes of text can hold. */
int64_t tl_mtx_most(const tl_mtx_head *h, int64_t bytes);
/* Stops at the first fault; one more entry than `limit` is a fault. */
void    tl_mtx_lines(const tl_mtx_head *h, tulle_index idx_type, const char *text, int64_t bytes,
                     int64_t limit, tl_mtx_part *part);
tulle_status tl_mtx_fail(tl_source *s, const tl_mtx_fault *f, int64_t lines_before);

/* ---- mtx_read.c, mtx_build.c, mtx_array.c */

/* All entries of a file in their order.  mtx_build.c takes the arrays over and frees what it does not use. */
typedef struct tl_mtx_all {
    const char *name;                   /* of the file */
    tl_mtx_head head;
    tulle_index idx_type;
    void       *row, *col, *val;
    int64_t     diagonal;
    bool        by_row, by_col;
    double      seconds;                /* time of reading */
    int         threads;
} tl_mtx_all;

/* The caller frees row, col and val, also after a failure. */
tulle_status tl_mtx_read_all(tl_source *s, tl_mtx_all *all);
tulle_status tl_mtx_read(tl_source *s, tulle_matrix **out);
tulle_status tl_mtx_build(tl_base *b, tl_mtx_all *all, tulle_matrix **out);
tulle_status tl_mtx_build_array(tl_base *b, tl_mtx_all *all, tulle_matrix **out);

/* ---- file.c: written beside the target under a temporary name, then renamed */

typedef struct tl_out {
    tl_base    *b;
    const char *path;                   /* as the caller gave it             */
    char       *target;                 /* the same, links followed          */
    char       *temp;
    bool        made;                   /* the temporary file is there       */
    int         fd;
} tl_out;

tulle_status tl_out_open(tl_base *b, const char *path, tl_out *o);
/* Writes at any offset, from any thread; returns 0 or errno and sets no error message. */
int          tl_out_put(tl_out *o, const void *data, int64_t bytes, int64_t at);
/* Reads back what was written; 0 or errno. */
int          tl_out_get(tl_out *o, void *data, int64_t bytes, int64_t at);
tulle_status tl_out_fail(tl_out *o, int error);
tulle_status tl_out_rename(tl_out *o);
void         tl_out_close(tl_out *o);   /* removes the temporary file unless it was renamed */
/* The description of an errno, in `text`. */
const char  *tl_errno_text(int error, char *text, size_t room);

/* ---- mtx_write.c, writer.c */

/* symmetry: the last word of the banner; A has exactly the entries of the file. */
tulle_status tl_mtx_write(tl_base *b, const char *path, const tulle_csr *A, const char *symmetry, bool gz);
/* Banner and sizes up to the number of entries, which the caller appends; returns the length.  256 bytes are
 * enough. */
int          tl_mtx_print_head(char *to, size_t room, int val_type, const char *symmetry, int64_t rows,
                               int64_t cols);
/* Prints the rows of A as rows first .. of a file, behind head, at *at, which moves on. */
tulle_status tl_mtx_put_rows(tl_out *out, const tulle_csr *A, int64_t first, const char *head, bool gz,
                             int64_t *at);

/* ---- npy.c, mtx_dense.c: dense matrices, ld never 0 */

bool         tl_npy_begins(const char *head, int64_t bytes);
tulle_status tl_npy_read(tl_source *s, tulle_dense_matrix **out);
tulle_status tl_npy_write(tl_base *b, const char *path, const tulle_dense *A);
tulle_status tl_mtx_read_dense(tl_source *s, tulle_dense_matrix **out);
tulle_status tl_mtx_write_dense(tl_base *b, const char *path, const tulle_dense *A);

/* ---- write.c: whether a name ends with a suffix, ignoring case */
bool         tl_name_ends(const char *path, const char *with);

/* ---- binary.c, hash.c */

bool         tl_binary_begins(const char *head, int64_t bytes);
tulle_status tl_binary_read(tl_source *s, bool map, tulle_matrix **out);
tulle_status tl_binary_write(tl_base *b, const char *path, const tulle_csr *A);

/* ---- binary_rows.c: a .tulle file from blocks of rows; its row pointers always have 64 bits.  finish does
 * everything but the rename. */

typedef struct tl_binary_rows tl_binary_rows;
tulle_status tl_binary_rows_begin(tl_out *out, int64_t rows, int64_t cols, int val_type,
                                  tl_binary_rows **made);
tulle_status tl_binary_rows_put(tl_binary_rows *r, const tulle_csr *block);
tulle_status tl_binary_rows_finish(tl_binary_rows *r);
void         tl_binary_rows_free(tl_binary_rows *r);

/* A 64-bit checksum of a multiple of 64 bytes; a change of any one byte changes it. */
uint64_t     tl_hash(const void *data, int64_t bytes, uint64_t seed);

#endif
