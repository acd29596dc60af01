/* SPDX-License-Identifier: MIT
 *
 * test_files_pipes.c - every format through a named pipe, which can be opened and read only once; and reading
 * that waits for a pipe can be cancelled. */
#define _XOPEN_SOURCE 700
#include "files_help.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* Starts a process that writes the bytes to the pipe, and sleeps so many seconds before it closes it. */
static pid_t feed(const char *pipe, const char *data, size_t bytes, unsigned sleep_then)
{
    fflush(stdout);
    pid_t child = fork();
    if (child != 0) return child;
    int fd = open(pipe, O_WRONLY);
    while (fd >= 0 && bytes > 0) {
        size_t some = bytes < 3000 ? bytes : 3000;      /* comes in pieces */
        ssize_t n = write(fd, data, some);
        if (n < 0) _exit(1);
        data += n;
        bytes -= (size_t)n;
    }
    sleep(sleep_then);
    _exit(0);
}

static void end_feed(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static tulle_status read_pipe(const char *data, size_t bytes, tulle_matrix **A)
{
    signal(SIGPIPE, SIG_IGN);
    pid_t child = feed("pipe", data, bytes, 0);
    tulle_status status = tulle_read(ctx, "pipe", A);
    end_feed(child);
    return status;
}

static void every_format_comes_through_a_pipe(void)
{
    made m = make_random(30000, 1000, 10);
    static const char *const names[] = {"p.mtx", "p.tulle", "p.mtx.gz"};
    REQUIRE(mkfifo("pipe", 0666) == 0, "no pipe");
    for (int threads = 1; threads <= THREADS; threads += THREADS - 1)
        for (int f = 0; f < (tl_gz_here() ? 3 : 2); f++) {
            tulle_matrix *A = NULL;
            size_t n;
            tulle_ctx_set_threads(ctx, threads);
            REQUIRE(tulle_write(ctx, names[f], &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            char *data = get_bytes(names[f], &n);
            CHECK(read_pipe(data, n, &A) == TULLE_OK, "%s: %s", names[f], tulle_ctx_error(ctx));
            tulle_csr v = tulle_matrix_view(A);
            CHECK(A && same_matrix(&v, &m.view), "%s: another matrix", names[f]);
            tulle_matrix_free(A);
            free(data);
            remove(names[f]);
        }
    tulle_ctx_set_threads(ctx, 0);
    remove("pipe");
    free_made(&m);
}

static void a_binary_file_from_a_pipe_is_verified_too(void)
{
    made m = make_random(50, 50, 3);
    tulle_matrix *A = NULL;
    size_t n;
    REQUIRE(mkfifo("pipe", 0666) == 0, "no pipe");
    REQUIRE(tulle_write(ctx, "b.tulle", &m.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    char *data = get_bytes("b.tulle", &n);
    char *more = malloc(n + 1);
    memcpy(more, data, n);
    more[n] = 'x';
    CHECK(read_pipe(more, n + 1, &A) == TULLE_EFORMAT && !A, "it goes on");
    CHECK(read_pipe(data, n - 1, &A) == TULLE_EFORMAT && !A, "it is cut");
    SAYS("pipe: ends within its arrays");
    CHECK(read_pipe(data, 100, &A) == TULLE_EFORMAT && !A, "its header is cut");
    SAYS("pipe: ends within its header");
    for (size_t at = 0; at < n; at += 37) {
        more[at] ^= 4;
        CHECK(read_pipe(more, n, &A) == TULLE_EFORMAT && !A, "byte %zu", at);
        more[at] ^= 4;
    }
    CHECK(read_pipe("", 0, &A) == TULLE_EFORMAT && !A, "nothing");
    SAYS("pipe: is empty");
    free(data);
    free(more);
    free_made(&m);
    remove("b.tulle");
    remove("pipe");
}

static void a_mapping_is_not_asked_of_a_pipe(void)
{
    made m = make_random(500, 500, 3);
    tulle_matrix *A = NULL;
    size_t n;
    REQUIRE(mkfifo("pipe", 0666) == 0 && tulle_write(ctx, "b.tulle", &m.view) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
    char *data = get_bytes("b.tulle", &n);
    pid_t child = feed("pipe", data, n, 0);
    CHECK(tulle_read_mapped(ctx, "pipe", &A) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    end_feed(child);
    tulle_csr v = tulle_matrix_view(A);
    CHECK(A && same_matrix(&v, &m.view), "another matrix");
    tulle_matrix_free(A);
    free(data);
    free_made(&m);
    remove("b.tulle");
    remove("pipe");
}

/* ---- Ctrl-C while waiting for data */

typedef struct { int left; double begun; } patience;

static int lose_patience(void *user, const char *stage, double fraction)
{
    patience *p = user;
    (void)fraction;
    CHECK(strcmp(stage, "read") == 0, "stage %s", stage);
    return p->left-- <= 0 || tl_now() - p->begun > 1;
}

/* Nobody opens the other end; or somebody does, but sends nothing, or only the beginning, which several
 * threads read. */
static void waiting_for_a_pipe_can_be_cancelled(void)
{
    made m = make_random(30000, 1000, 10);
    size_t n;
    REQUIRE(mkfifo("pipe", 0666) == 0 && tulle_write(ctx, "p.mtx", &m.view) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
    char *data = get_bytes("p.mtx", &n);
    REQUIRE(n > 1000000, "%zu bytes", n);
    static const struct { bool fed; size_t bytes; int calls; } cases[] = {
        {false, 0, 3}, {true, 0, 3}, {true, 100, 5}, {true, 900000, 1 << 30}, {true, 900000, 1 << 30}};
    for (int i = 0; i < 5; i++) {
        tulle_matrix *A = NULL;
        pid_t child = cases[i].fed ? feed("pipe", data, cases[i].bytes, 30) : 0;
        patience p = {cases[i].calls, tl_now()};
        tulle_ctx_set_threads(ctx, i == 4 ? 1 : THREADS);
        tulle_ctx_set_progress(ctx, lose_patience, &p);
        CHECK(tulle_read(ctx, "pipe", &A) == TULLE_ECANCEL && !A, "case %d: %s", i, tulle_ctx_error(ctx));
        CHECK(tl_now() - p.begun < 15, "case %d took %.1f s", i, tl_now() - p.begun);
        SAYS("pipe: reading was cancelled");
        tulle_ctx_set_progress(ctx, NULL, NULL);
        if (child) end_feed(child);
    }
    tulle_ctx_set_threads(ctx, 0);
    free(data);
    free_made(&m);
    remove("p.mtx");
    remove("pipe");
}

/* Truncated compressed data, detected by whichever thread reads. */
static void damage_in_a_pipe_has_its_sentence(void)
{
    made m = make_random(30000, 1000, 10);
    size_t n;
    tulle_matrix *A = NULL;
    if (!tl_gz_here()) return;
    REQUIRE(mkfifo("pipe", 0666) == 0 && tulle_write(ctx, "p.mtx.gz", &m.view) == TULLE_OK, "%s",
            tulle_ctx_error(ctx));
    char *data = get_bytes("p.mtx.gz", &n);
    for (int i = 0; i < 5; i++) {
        CHECK(read_pipe(data, n - 1000, &A) == TULLE_EFORMAT && !A, "cut");
        SAYS("pipe: the packed data ends too early; the file is not whole");
    }
    free(data);
    free_made(&m);
    remove("p.mtx.gz");
    remove("pipe");
}

FILES_MAIN(TEST(every_format_comes_through_a_pipe),
           TEST(a_binary_file_from_a_pipe_is_verified_too),
           TEST(a_mapping_is_not_asked_of_a_pipe),
           TEST(waiting_for_a_pipe_can_be_cancelled),
           TEST(damage_in_a_pipe_has_its_sentence))
