/* SPDX-License-Identifier: MIT
 *
 * program.h - what the files of the command `tulle` share.  The command uses only the public headers, so any
 * program can do what it does.
 *
 *     main.c      the table of subcommands          message.c   error messages and exit codes
 *     options.c   the table of options              session.c   a context with progress bar, trace, Ctrl-C
 *     operand.c   a file or a recipe -> matrix      output.c    checks and writes output files
 *     table.c     reports as text                   json.c      reports as JSON
 *     stream.c    C to a file, block by block       png.c, text.c   pictures, and text in them
 *     ranks.c     several processes, under mpirun
 *
 * and one file per subcommand.  A function that can fail returns an exit code, has printed the reason on
 * standard error if that is not END_OK, and has one exit, `done`. */
#ifndef TULLE_PROGRAM_H
#define TULLE_PROGRAM_H
#include <stdbool.h>
#include <stdio.h>
#include "tulle_lab.h"

/* ---- message.c: how a run can end.  The man page repeats this table. */

#define END_LIST(X)                                                         \
    X(OK,          0, "success")                                            \
    X(FAILED,      1, "the computation failed, or a file could not be written") \
    X(USAGE,       2, "the command line is invalid")                        \
    X(INPUT,       3, "an input is missing, damaged or of the wrong shape") \
    X(MEMORY,      4, "too little memory, or a limit or index type too small") \
    X(CHECK,       5, "the product was verified and is wrong")              \
    X(HANGUP,    129, "the terminal was closed (SIGHUP); no half-written file is left") \
    X(INTERRUPT, 130, "interrupted (Ctrl-C); no half-written file is left") \
    X(TERMINATE, 143, "terminated (SIGTERM); no half-written file is left")

enum {
#define END_ENUM(name, code, text) END_##name = code,
    END_LIST(END_ENUM)
#undef END_ENUM
};

#if defined(__GNUC__)
#define LIKE_PRINTF(text, args) __attribute__((format(printf, text, args)))
#else
#define LIKE_PRINTF(text, args)
#endif

#define GO(call)                                                            \
    do {                                                                    \
        code = (call);                                                      \
        if (code != END_OK) goto done;                                      \
    } while (0)

/* Prints "tulle: message" on standard error; returns code. */
int  complain(int code, const char *format, ...) LIKE_PRINTF(2, 3);
const char *complained(void);                   /* the last message; "": none yet */
int  no_memory(const char *what);
/* The exit code of a status of the library. */
int  end_of(tulle_status status);
void print_ends(FILE *out);

/* The i-th name of a list of words, NULL past the last. */
typedef const char *(*words_fn)(int i);
/* The word most similar to the one given, or NULL if none is similar. */
const char *nearest(const char *word, words_fn words);
bool        listed(const char *word, words_fn words);

/* ---- options.c */

enum {                          /* which subcommand an option belongs to */
    FOR_MULTIPLY = 1 << 0, FOR_INFO    = 1 << 1, FOR_EXPLAIN = 1 << 2, FOR_GEN     = 1 << 3,
    FOR_CONVERT  = 1 << 4, FOR_SPY     = 1 << 5, FOR_BENCH   = 1 << 6, FOR_DEVICES = 1 << 7,
    FOR_VERSION  = 1 << 8, FOR_HELP    = 1 << 9, FOR_CACHE   = 1 << 10, FOR_SPMM   = 1 << 11,
    FOR_TUNE     = 1 << 12,
    /* and for bench: the plain one, or a named one */
    FOR_TIMES    = 1 << 13, FOR_MERGES = 1 << 14, FOR_MEMORY = 1 << 15, FOR_ACCUMULATORS = 1 << 16,
    FOR_SCALING  = 1 << 17,
    FOR_KEPT     = 1 << 18,     /* cache without --warm */
    FOR_LISTS    = 1 << 19      /* --list of a command */
};

enum { OPERANDS_MAX = 64 };

typedef struct options {
    unsigned      command;              /* FOR_... */
    uint64_t      given;                /* the options that were given, one bit each */
    const char   *operand[OPERANDS_MAX];
    int           operands;
    const char   *output, *device, *policies;
    const char   *alpha, *beta, *y, *shape;     /* of spmm */
    int           type, index;          /* tulle_type, tulle_index; 0: unchanged */
    int           threads, repeat, size, columns, seed;
    int           check, json, quiet, quick, trace, list, clear, warm, help, column_major, allow_tf32, map;
    int           symmetric;
    tulle_options product;
} options;

typedef struct command {
    const char *name;
    unsigned    bit;
    int       (*run)(const options *o);
    int         least, most;            /* operands */
    const char *operands, *text, *more;
} command;

int  parse_options(const command *command, int argc, char **argv, options *o);
void print_options(unsigned bit, FILE *out);
/* Checks that the command line has only options that this benchmark accepts. */
int  check_given(const options *o, unsigned bit, const char *name);
/* The same for --list, which takes no operand. */
int  check_list(const options *o, const char *name);
/* Checks that the library knows the names given with --policy, --accumulator and --policies. */
int  check_names(const options *o);
int  check_spmm_policy(const options *o);

/* ---- signal.c, progress.c, session.c */

void signal_watch(void);
int  signal_caught(void);                       /* 0, or the number of the signal          */
/* A tulle_partial_fn: records temporary files, to be removed when a signal ends the program at once. */
void signal_guard(void *user, const char *path, int there);
int  signal_end(void);                          /* the exit code of the caught signal      */

typedef struct progress {
    bool   wanted, drawn;
    double begun, last;
} progress;

void   progress_begin(progress *p, bool quiet);
int    progress_call(void *p, const char *stage, double fraction);  /* a tulle_progress_fn */
void   progress_erase(progress *p);
double seconds(void);

typedef struct session {
    const options *o;
    tulle_ctx     *ctx;
    progress       bar;
} session;

/* If no device is named, commands that multiply use the best one, all others the CPU. */
int  session_open(session *s, const options *o);
int  session_open_on(session *s, const options *o, const char *device);
bool session_on_gpu(const session *s);
void session_close(session *s);
/* Prints the library's error message and returns the exit code; END_OK for TULLE_OK. */
int  told(session *s, tulle_status status);

/* ---- operand.c */

typedef struct operand {
    const char   *name;
    double        sec_read;
    tulle_matrix *matrix;
    tulle_csr     view;
} operand;

const char *path_of(const char *word);    /* the file that an operand names: "-" is standard input */
int  operand_load(session *s, const char *name, operand *a);
void operand_free(operand *a);
int  operand_convert(session *s, operand *a, int type);
int  common_type(int a, int b);         /* the narrowest type that holds values of both */
/* A, B and the operations of the product that the operands ask for; B->matrix is NULL where B is A. */
typedef struct pair {
    operand       a, b;
    tulle_options options;
    int64_t       rows, cols;
    char          text[24];             /* "A*A^T" */
} pair;

int  pair_load(session *s, const char *a, const char *b, pair *p);
void pair_free(pair *p);
const char *type_name(int type);
const char *index_name(int index);
size_t      type_size(int type);
size_t      index_size(int index);
uint64_t    csr_bytes(const tulle_csr *A);              /* of its three arrays     */
int64_t     csr_row(const tulle_csr *A, int64_t i);     /* where row i begins      */
int64_t     csr_col(const tulle_csr *A, int64_t k);     /* the column of entry k   */

/* ---- dense.c: dense matrices of the command line */

typedef struct number { double re, im; } number;

int     dense_load(session *s, const char *name, tulle_dense_matrix **out);
number  value_at(const void *array, int type, int64_t i);
int64_t dense_place(const tulle_dense *M, int64_t i, int64_t j);        /* of entry (i,j) in its values */
void    print_dense(const char *letter, const char *name, const tulle_dense *M);
bool    is_npy(const char *name);
int     info_dense(session *s, const char *name);       /* `tulle info X.npy` */

/* ---- output.c */

bool ends_with(const char *name, const char *end);
bool is_directory(const char *path);
bool is_plain(const char *path);        /* a file that can be read again, not a pipe */
/* Reports an invalid name or place before a long computation; path NULL: there is no output.  The name can be
 * checked before there is a context. */
typedef enum { MATRIX_FILE, DENSE_FILE, PICTURE_FILE } file_kind;
int  output_name(const char *path, file_kind kind);
int  output_symmetric(const options *o, const char *path);      /* does the format support --symmetric? */
int  output_place(session *s, const char *path);
/* Writes a matrix; with --symmetric only its lower triangle. */
int  output_write(session *s, const char *path, const tulle_csr *A, double *sec);

/* ---- table.c; the texts live in the buffer given */

typedef char figure[48];
const char *count_text(figure t, int64_t n);              /* 1,234,567 */
const char *bytes_text(figure t, uint64_t n);             /* 1.5 GiB   */
const char *ms_text(figure t, double sec);
const char *percent_text(figure t, double part, double whole);
void        print_operand(const char *letter, const operand *a);
void        print_shares(const tulle_share *share, int shares);
void        print_stages(const tulle_stats *stats);     /* with --stages, each with its share of the time */
double      ratio(double a, double b);                  /* 0 where b is 0 */

/* ---- runs.c: seconds of the median run; stats are sorted, *middle is its, *best those of the fastest */
double runs_median(tulle_stats *stats, int runs, tulle_stats *middle, double *best);

/* ---- json.c */

typedef struct json {
    FILE *out;
    int   depth;
    bool  filled;
} json;

void json_open(json *j, const char *key, char bracket); /* key NULL: in a list or at the top */
void json_close(json *j, char bracket);
void json_int(json *j, const char *key, int64_t value);
void json_num(json *j, const char *key, double value);
void json_bool(json *j, const char *key, bool value);
void json_text(json *j, const char *key, const char *value);
void json_begin(json *j, const char *command);          /* the top, with command and version */
void json_end(json *j);
void json_csr(json *j, const tulle_csr *A);             /* its members */
void json_dense(json *j, const tulle_dense *M);         /* its members */
void json_operand(json *j, const char *key, const operand *a);
void json_shares(json *j, const tulle_share *share, int shares);
void json_stages(json *j, const tulle_stats *stats);
void json_check(json *j, bool passed, double error);
void json_output(json *j, const char *path, double sec_write);

/* ---- stream.c */

typedef struct streamed {
    int64_t     nnz, blocks;
    double      error;                  /* of the check; the largest of all blocks */
    double      sec_write;
    tulle_csr   shape;                  /* of C, without arrays */
    tulle_stats stats;
} streamed;

int stream_product(session *s, const pair *p, const char *path, bool check, streamed *result);

/* ---- png.c: 8-bit pictures with a palette of at most 256 colours, {r, g, b} each */

int png_write(session *s, const char *path, int width, int height, const uint8_t *pixels,
              const uint8_t (*palette)[3], int colours);

/* ---- text.c: text in such a picture; clipped at its edges */

enum { TEXT_STEP = 6, TEXT_HIGH = 8 };  /* pixels */
int  text_width(const char *text);
void text_draw(uint8_t *pixels, int width, int height, int x, int y, const char *text, uint8_t colour);

/* ---- bench.c and the other benchmarks */

typedef struct work {
    tulle_csr     a, b;                 /* where the context computes       */
    tulle_matrix *own_a, *own_b;
    tulle_options options;
} work;

/* Prepares the operands of a pair: for a GPU they are checked, transposed and moved to it. */
int  work_make(session *s, const pair *p, work *w);
void work_free(work *w);
int  tune_delta(const options *o);      /* of tune_delta.c */
int  bench_merges(const options *o);
int  bench_memory(const options *o);
int  bench_accumulators(const options *o);
int  bench_scaling(const options *o);

/* ---- ranks.c: products by several processes, if this one was started by mpirun */

bool ranks_launched(void);
int  multiply_ranks(const options *o);

/* ---- the subcommands */

extern const command commands[];
const char *command_name(int i);
int run_multiply(const options *o);
int run_spmm(const options *o);
int run_tune(const options *o);
int run_info(const options *o);
int run_explain(const options *o);
int run_gen(const options *o);
int run_convert(const options *o);
int run_spy(const options *o);
int run_bench(const options *o);
int run_devices(const options *o);
int run_cache(const options *o);
int run_version(const options *o);
int run_help(const options *o);
#endif
