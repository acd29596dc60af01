/* SPDX-License-Identifier: MIT
 *
 * bench_read.c - how fast tulle reads a large Matrix Market file, compared with SciPy's fast_matrix_market.
 *
 *     bench_read [THREADS [FILE.mtx]]          default: 2 threads, three files of 200 MB of its own
 *
 * The files contain one random matrix: sorted by row, sorted by column (like most published files), and
 * shuffled.  Every reader runs in its own process, three times; the best time counts.  tulle's time includes
 * the conversion to sorted CSR.  SciPy is timed twice: mmread() alone, which returns COO in the order of the
 * file, and with tocsr().  Memory is the increase of the peak resident size of tulle's process, relative to
 * the bytes of the matrix.
 *
 * SciPy is run by python3, or by $PYTHON; if it is not installed, only tulle is measured.  The last line is
 * `read_vs_scipy=X to_csr=Y memory=Z files=N`: the lowest ratios of speed and the highest ratio of memory. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "tulle.h"

enum { REPEAT = 3, ROWS = 500000, PER_ROW = 12 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void stop(const char *what)
{
    fprintf(stderr, "bench_read: %s\n", what);
    exit(1);
}

/* ---- the files */

static double random_value(void)
{
    return (double)(int64_t)(next_random() >> 10) * 0x1p-53 - 0.5;
}

static void make_by_row(tulle_ctx *ctx, const char *path)
{
    int32_t *ptr = malloc((ROWS + 1) * sizeof *ptr), *col = malloc((size_t)ROWS * PER_ROW * sizeof *col);
    double *val = malloc((size_t)ROWS * PER_ROW * sizeof *val);
    if (!ptr || !col || !val) stop("no memory for the matrix");
    ptr[0] = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < PER_ROW; k++) {     /* one in each twelfth of the columns */
            col[i * PER_ROW + k] = (int32_t)(ROWS / PER_ROW * k
                                             + (int)(next_random() % (ROWS / PER_ROW)));
            val[i * PER_ROW + k] = random_value();
        }
        ptr[i + 1] = ptr[i] + PER_ROW;
    }
    tulle_csr A = tulle_csr_f64_i32(ROWS, ROWS, ptr, col, val);
    if (tulle_write(ctx, path, &A) != TULLE_OK) stop(tulle_ctx_error(ctx));
    free(ptr);
    free(col);
    free(val);
}

/* The transpose, sorted by row, with both indices of each line exchanged: sorted by column. */
static void make_by_column(tulle_ctx *ctx, const char *from, const char *path)
{
    tulle_matrix *A = NULL, *T = NULL;
    if (tulle_read(ctx, from, &A) != TULLE_OK) stop(tulle_ctx_error(ctx));
    tulle_csr view = tulle_matrix_view(A);
    if (tulle_csr_transpose(ctx, &view, TULLE_TRANSPOSE, &T) != TULLE_OK) stop(tulle_ctx_error(ctx));
    view = tulle_matrix_view(T);
    if (tulle_write(ctx, path, &view) != TULLE_OK) stop(tulle_ctx_error(ctx));
    tulle_matrix_free(A);
    tulle_matrix_free(T);
    char name[4096], line[256], i[32], j[32], v[64];
    snprintf(name, sizeof name, "%s.swapped", path);
    FILE *in = fopen(path, "r"), *out = fopen(name, "w");
    if (!in || !out) stop("a file could not be made");
    for (int n = 0; fgets(line, sizeof line, in); n++) {
        if (n < 3 || sscanf(line, "%31s %31s %63s", i, j, v) != 3) fputs(line, out);
        else fprintf(out, "%s %s %s\n", j, i, v);
    }
    fclose(in);
    if (fclose(out) != 0 || rename(name, path) != 0) stop("a file could not be made");
}

/* Lines in random order. */
static void make_shuffled(const char *from, const char *path)
{
    struct stat st;
    if (stat(from, &st) != 0) stop("a file could not be read");
    char *text = malloc((size_t)st.st_size + 1);
    char **line = malloc((size_t)ROWS * PER_ROW * sizeof *line);
    FILE *in = fopen(from, "r"), *out = fopen(path, "w");
    if (!text || !line || !in || !out) stop("a file could not be shuffled");
    if (fread(text, 1, (size_t)st.st_size, in) != (size_t)st.st_size) stop("a file could not be read");
    char *p = text;
    for (int n = 0; n < 3; n++) p = strchr(p, '\n') + 1;
    fwrite(text, 1, (size_t)(p - text), out);
    int64_t count = 0;
    for (; p < text + st.st_size; p = strchr(p, '\n') + 1) line[count++] = p;
    for (int64_t k = count - 1; k > 0; k--) {
        int64_t other = (int64_t)(next_random() % (uint64_t)(k + 1));
        char *swap = line[k];
        line[k] = line[other];
        line[other] = swap;
    }
    for (int64_t k = 0; k < count; k++)
        fwrite(line[k], 1, (size_t)(strchr(line[k], '\n') + 1 - line[k]), out);
    fclose(in);
    if (fclose(out) != 0) stop("a file could not be shuffled");
    free(text);
    free(line);
}

/* ---- tulle in a process of its own: bench_read --read FILE THREADS */

static int64_t resident_peak(void)
{
    char line[256];
    long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return 0;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lld kB", &kib) == 1) break;
    fclose(f);
    return (int64_t)kib * 1024;
}

static int read_here(const char *path, int threads)
{
    tulle_ctx *ctx = NULL;
    double best = INFINITY, bytes = 0;
    int64_t nnz = 0, peak = 0;
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK) stop("no context");
    if (tulle_ctx_set_threads(ctx, threads) != TULLE_OK) stop(tulle_ctx_error(ctx));
    int64_t before = resident_peak();
    for (int k = 0; k < REPEAT; k++) {
        tulle_matrix *A = NULL;
        double start = now();
        if (tulle_read(ctx, path, &A) != TULLE_OK) stop(tulle_ctx_error(ctx));
        double seconds = now() - start;
        if (seconds < best) best = seconds;
        if (k == 0) peak = resident_peak() - before;
        tulle_csr view = tulle_matrix_view(A);
        nnz = view.nnz;
        bytes = (double)(view.rows + 1) * (view.ptr_type == TULLE_I32 ? 4 : 8)
              + (double)nnz * ((view.idx_type == TULLE_I32 ? 4 : 8) + (view.val_type == TULLE_CF64 ? 16 : 8));
        tulle_matrix_free(A);
    }
    printf("%.6f %" PRId64 " %.4f\n", best, nnz, (double)peak / bytes);
    tulle_ctx_free(ctx);
    return 0;
}

/* ---- the comparison */

static bool ask(const char *command, char *answer, size_t room)
{
    fflush(stdout);
    FILE *pipe = popen(command, "r");
    if (!pipe) return false;
    bool got = fgets(answer, (int)room, pipe) != NULL;
    answer[got ? strcspn(answer, "\n") : 0] = 0;
    return pclose(pipe) == 0 && got;
}

typedef struct result { double ratio, ratio_csr, memory; bool compared; } result;

static result compare(const char *self, const char *what, const char *path, int threads)
{
    result r = {0, 0, 0, false};
    char command[8192], answer[512];
    double seconds = 0, peer = 0, peer_csr = 0;
    long long nnz = 0, peer_nnz = 0;
    char version[64] = "";
    struct stat st;
    if (stat(path, &st) != 0) stop("the file is not there");
    double mb = (double)st.st_size * 1e-6;
    snprintf(command, sizeof command, "'%s' --read '%s' %d", self, path, threads);
    if (!ask(command, answer, sizeof answer)
        || sscanf(answer, "%lf %lld %lf", &seconds, &nnz, &r.memory) != 3) stop("tulle could not read it");
    printf("%-10s %6.1f MB  tulle %7.3f s %6.0f MB/s, memory %.2fx", what, mb, seconds, mb / seconds,
           r.memory);
    const char *python = getenv("PYTHON"), *slash = strrchr(__FILE__, '/');
    snprintf(command, sizeof command, "'%s' '%.*s/read_scipy.py' '%s' %d %d 2>/dev/null",
             python ? python : "python3", slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".", path,
             threads, (int)REPEAT);
    if (ask(command, answer, sizeof answer)
        && sscanf(answer, "%lf %lf %lld %63s", &peer, &peer_csr, &peer_nnz, version) == 4) {
        if (peer_nnz != nnz) stop("SciPy found another number of entries");
        r.ratio = peer / seconds;
        r.ratio_csr = peer_csr / seconds;
        r.compared = true;
        printf("; SciPy %s %.3f s %.0f MB/s, to CSR %.3f s; ratio %.2f, to CSR %.2f\n", version, peer,
               mb / peer, peer_csr, r.ratio, r.ratio_csr);
    } else {
        printf("; SciPy is not here to compare with (python3 -m pip install scipy)\n");
    }
    return r;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--read") == 0) return read_here(argv[2], atoi(argv[3]));
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    if (threads < 1) stop("usage: bench_read [THREADS [FILE.mtx]]");
    printf("reading Matrix Market, %d threads\n", threads);
    if (argc > 2) {
        compare(argv[0], "file", argv[2], threads);
        return 0;
    }
    char folder[] = "/tmp/bench_read-XXXXXX", path[3][64];
    static const char *const kinds[3] = {"by_row", "by_column", "shuffled"};
    if (!mkdtemp(folder)) stop("no folder for the files");
    for (int k = 0; k < 3; k++) snprintf(path[k], sizeof path[k], "%s/%s.mtx", folder, kinds[k]);
    tulle_ctx *ctx = NULL;
    if (tulle_ctx_create("cpu", NULL, &ctx) != TULLE_OK) stop("no context");
    make_by_row(ctx, path[0]);
    make_by_column(ctx, path[0], path[1]);
    make_shuffled(path[0], path[2]);
    tulle_ctx_free(ctx);
    result worst = {INFINITY, INFINITY, 0, true};
    for (int k = 0; k < 3; k++) {
        result r = compare(argv[0], kinds[k], path[k], threads);
        if (r.ratio < worst.ratio) worst.ratio = r.ratio;
        if (r.ratio_csr < worst.ratio_csr) worst.ratio_csr = r.ratio_csr;
        if (r.memory > worst.memory) worst.memory = r.memory;
        worst.compared = worst.compared && r.compared;
        remove(path[k]);
    }
    remove(folder);
    if (worst.compared)
        printf("read_vs_scipy=%.2f to_csr=%.2f memory=%.2f files=3\n", worst.ratio, worst.ratio_csr,
               worst.memory);
    else
        printf("read_vs_scipy=unknown to_csr=unknown memory=%.2f files=3\n", worst.memory);
    return 0;
}
