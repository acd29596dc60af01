/* SPDX-License-Identifier: MIT
 *
 * mtx_read.c - reads the entries of a Matrix Market file, in their order, with all threads.
 *
 * The text is processed in pieces of whole lines.  A thread takes the next piece (one thread at a time reads
 * and unpacks, while the others parse), parses it into its own arrays, waits until all earlier pieces were
 * counted, gets the position of its entries, and copies them there while the next piece is counted.  Errors
 * are reported in the same order, so it is always the first error of the file that is reported, with its line
 * number, whatever the number of threads.
 *
 * Memory: row, column and value of every entry once; a piece of text and its entries per thread. */
#define _POSIX_C_SOURCE 200809L
#include "matrix/files.h"
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { PIECE = 1 << 17 };

typedef struct scratch {
    char       *text;
    tl_mtx_part part;
} scratch;

typedef struct job {
    tl_source      *s;
    tl_mtx_all     *all;
    pthread_mutex_t lock;
    pthread_cond_t  moved;
    char           *rest;               /* text that was read, after the last whole line       */
    int64_t         rest_bytes;
    bool            end;
    bool            reading, broken;    /* a thread is reading the next piece; reading failed     */
    int64_t         handed, turn;       /* pieces handed out; the piece to be counted next */
    int64_t         entries, lines;     /* of the pieces counted so far      */
    int64_t         room;               /* capacity of the arrays in entries */
    int64_t         last_row, last_col;
    tulle_status    status;
    bool            stop;
    scratch        *scratch;
} job;

/* The next whole lines; no bytes at the end of the text.  *too_long: a line that is no comment does not fit
 * in a piece.  Of a comment that does not fit only the first byte is kept. */
static tulle_status next_text(job *j, char *text, int64_t *bytes, bool *too_long)
{
    tulle_status status = TULLE_OK;
    int64_t n = j->rest_bytes, got = 0;
    *too_long = false;
    memcpy(text, j->rest, (size_t)n);
    j->rest_bytes = 0;
    while (!j->end) {
        TRY(tl_source_read(j->s, text + n, PIECE - n, &got));
        j->end = got < PIECE - n;
        n += got;
        if (j->end) {
            if (n > 0 && text[n - 1] != '\n') text[n++] = '\n';
            break;
        }
        int64_t whole = n;
        while (whole > 0 && text[whole - 1] != '\n') whole--;
        if (whole > 0) {
            j->rest_bytes = n - whole;
            memcpy(j->rest, text + whole, (size_t)j->rest_bytes);
            n = whole;
            break;
        }
        if (text[0] != '%') {
            *too_long = true;
            break;
        }
        n = 1;
    }
    memset(text + n, 0, TL_TEXT_PAD);
done:
    *bytes = n;
    return status;
}

/* Copies the entries of a thread to their place in the arrays. */
static void put_part(tl_mtx_all *all, const tl_mtx_part *part, int64_t at)
{
    size_t idx = tl_index_size(all->idx_type);
    size_t val = all->head.field == TL_COMPLEX ? sizeof(tl_c64) : sizeof(double);
    if (all->head.layout == TL_COORDINATE) {
        memcpy((char *)all->row + (size_t)at * idx, part->row, (size_t)part->count * idx);
        memcpy((char *)all->col + (size_t)at * idx, part->col, (size_t)part->count * idx);
    }
    if (all->head.field != TL_PATTERN)
        memcpy((char *)all->val + (size_t)at * val, part->val, (size_t)part->count * val);
}

/* With the lock held, when it is this piece's turn: counts it, or reports its error. */
static tulle_status count_in(job *j, tl_mtx_part *part)
{
    tl_mtx_all *all = j->all;
    if (part->fault.kind == TL_TOO_MANY && j->room < all->head.entries)
        return tl_fail(j->s->b, TULLE_EFORMAT, "%s: grew while it was read", j->s->name);
    if (part->fault.kind != TL_NO_FAULT) return tl_mtx_fail(j->s, &part->fault, j->lines + part->lines);
    if (part->count > 0) {
        bool same_row = part->first_row == j->last_row, same_col = part->first_col == j->last_col;
        all->by_row &= part->by_row && (part->first_row > j->last_row
                                        || (same_row && part->first_col > j->last_col));
        all->by_col &= part->by_col && (part->first_col > j->last_col
                                        || (same_col && part->first_row > j->last_row));
        j->last_row = part->last_row;
        j->last_col = part->last_col;
    }
    all->diagonal += part->diagonal;
    j->entries += part->count;
    j->lines += part->lines;
    return TULLE_OK;
}

/* Called with the lock held.  Thread 0 wakes up from time to time to call progress, since the thread that
 * reads may be waiting for a pipe. */
static void wait_for_others(job *j, int thread)
{
    struct timespec until;
    if (thread != 0 || !j->s->b->progress) {
        pthread_cond_wait(&j->moved, &j->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&j->moved, &j->lock, &until) != 0)
        tl_progress(j->s->b, "read", tl_source_fraction(j->s));
}

/* Reads the next piece; returns its number, or -1: there is none, or reading was stopped. */
static int64_t take_piece(job *j, int thread, int64_t *bytes, bool *too_long, tulle_status *status)
{
    int64_t number = -1;
    *status = TULLE_OK;
    pthread_mutex_lock(&j->lock);
    while (j->reading && !j->stop) wait_for_others(j, thread);
    if (!j->stop && !j->broken) {
        j->reading = true;
        j->s->by_worker = thread != 0;
        pthread_mutex_unlock(&j->lock);
        *status = next_text(j, j->scratch[thread].text, bytes, too_long);
        pthread_mutex_lock(&j->lock);
        j->reading = false;
        j->broken = *status != TULLE_OK;
        if (*status != TULLE_OK || *bytes > 0) number = j->handed++;
        pthread_cond_broadcast(&j->moved);
    }
    pthread_mutex_unlock(&j->lock);
    return number;
}

static void work(void *arg, int thread, int threads)
{
    job *j = arg;
    tl_base *b = j->s->b;
    tl_mtx_all *all = j->all;
    scratch *mine = &j->scratch[thread];
    tl_mtx_part *part = &mine->part;
    (void)threads;
    for (;;) {
        int64_t bytes = 0;
        bool too_long = false;
        tulle_status status;
        int64_t number = take_piece(j, thread, &bytes, &too_long, &status);
        if (number < 0) return;
        if (thread == 0) tl_progress(b, "read", tl_source_fraction(j->s));

        if (status == TULLE_OK && !too_long)
            tl_mtx_lines(&all->head, all->idx_type, mine->text, bytes, j->room, part);

        pthread_mutex_lock(&j->lock);
        while (!j->stop && j->turn != number) wait_for_others(j, thread);
        bool stop = j->stop;
        int64_t at = j->entries;
        if (!stop) {
            if (status != TULLE_OK) tl_fail(b, status, "%s", j->s->error);
            if (atomic_load_explicit(&b->cancelled, memory_order_relaxed))
                status = tl_fail(b, TULLE_ECANCEL, "%s: reading was cancelled", j->s->name);
            else if (too_long)
                status = tl_fail(b, TULLE_EFORMAT, "%s:%" PRId64 ":1: the line is longer than %d bytes",
                                 j->s->name, j->lines + 1, (int)PIECE);
            if (status == TULLE_OK && part->count > j->room - at)     /* which line is one too many? */
                tl_mtx_lines(&all->head, all->idx_type, mine->text, bytes, j->room - at, part);
            if (status == TULLE_OK) status = count_in(j, part);
            j->turn++;
            if (status != TULLE_OK) {
                j->status = status;
                j->stop = stop = true;
            }
            pthread_cond_broadcast(&j->moved);
        }
        pthread_mutex_unlock(&j->lock);
        if (stop) return;
        put_part(all, part, at);
    }
}

/* ---- before and after */

static tulle_status read_head(job *j, char *text)
{
    tulle_status status = TULLE_OK;
    tl_mtx_head *h = &j->all->head;
    tl_source *s = j->s;
    while (!h->have_sizes) {
        int64_t bytes = 0, used = 0;
        bool too_long = false;
        TRY(next_text(j, text, &bytes, &too_long));
        if (too_long) {
            status = tl_fail(s->b, TULLE_EFORMAT, "%s:%" PRId64 ":1: the line is longer than %d bytes",
                             s->name, h->lines + 1, (int)PIECE);
            goto done;
        }
        if (bytes == 0) {
            status = tl_fail(s->b, TULLE_EFORMAT, "%s:%" PRId64 ":1: the file ends before its sizes",
                             s->name, h->lines + 1);
            goto done;
        }
        TRY(tl_mtx_head_lines(s, text, bytes, h, &used));
        memmove(j->rest + (bytes - used), j->rest, (size_t)j->rest_bytes);      /* after the unused bytes */
        memcpy(j->rest, text + used, (size_t)(bytes - used));
        j->rest_bytes += bytes - used;
    }
    j->lines = h->lines;
done:
    return status;
}

/* The number of entries to allocate: as many as the header announces, but no more than the bytes of the file
 * can hold.  Where it announces more, the file is read anyway to find and report the error: an incomplete
 * line, or an early end.  Fails if the machine has too little memory. */
static tulle_status find_room(job *j)
{
    const tl_mtx_head *h = &j->all->head;
    tl_source *s = j->s;
    int64_t bound = tl_source_bound(s);
    if (!j->end && bound < INT64_MAX - j->rest_bytes) bound += j->rest_bytes;
    else if (j->end) bound = j->rest_bytes;
    int64_t most = tl_mtx_most(h, bound);
    j->room = h->entries > most ? most + 1 : h->entries;        /* one more for the invalid line */
    double copies = h->symmetry == TL_GENERAL ? 1 : 2;
    double need = 4.0 * (double)h->rows + 12.0 * copies * (double)j->room;
    if (need > 67108864.0 && need > (double)tl_memory_free())
        return tl_fail(s->b, TULLE_ENOMEM, "%s: a matrix of %" PRId64 " rows and %" PRId64
                       " entries needs %.0f bytes, and %" PRIu64 " are free", s->name, h->rows, j->room,
                       need, tl_memory_free());
    return TULLE_OK;
}

static tulle_status make_room(job *j, int threads)
{
    tulle_status status = TULLE_OK;
    tl_base *b = j->s->b;
    tl_mtx_all *all = j->all;
    const tl_mtx_head *h = &all->head;
    size_t idx = tl_index_size(all->idx_type);
    size_t val = h->field == TL_COMPLEX ? sizeof(tl_c64) : sizeof(double);
    int64_t most = tl_mtx_most(h, PIECE + 1);
    if (most > j->room + 1) most = j->room + 1;
    bool placed = h->layout == TL_COORDINATE, valued = h->field != TL_PATTERN;
    if (placed) {
        TRY(tl_alloc(b, &all->row, j->room, idx, "row indices of a file"));
        TRY(tl_alloc(b, &all->col, j->room, idx, "column indices of a file"));
    }
    if (valued) TRY(tl_alloc(b, &all->val, j->room, val, "values of a file"));
    for (int t = 0; t < threads; t++) {
        scratch *mine = &j->scratch[t];
        if (!mine->text) TRY(tl_alloc(b, &mine->text, PIECE + 1 + TL_TEXT_PAD, 1, "a piece of text"));
        if (placed) {
            TRY(tl_alloc(b, &mine->part.row, most, idx, "row indices of a piece"));
            TRY(tl_alloc(b, &mine->part.col, most, idx, "column indices of a piece"));
        }
        if (valued) TRY(tl_alloc(b, &mine->part.val, most, val, "values of a piece"));
    }
done:
    return status;
}

static void free_scratch(tl_base *b, job *j, int threads)
{
    for (int t = 0; j->scratch && t < threads; t++) {
        tl_free(b, j->scratch[t].text);
        tl_free(b, j->scratch[t].part.row);
        tl_free(b, j->scratch[t].part.col);
        tl_free(b, j->scratch[t].part.val);
    }
    tl_free(b, j->scratch);
    tl_free(b, j->rest);
    j->scratch = NULL;
    j->rest = NULL;
}

tulle_status tl_mtx_read_all(tl_source *s, tl_mtx_all *all)
{
    tulle_status status = TULLE_OK;
    tl_base *b = s->b;
    *all = (tl_mtx_all){.name = s->name, .by_row = true, .by_col = true};
    job j = {.s = s, .all = all, .last_row = -1, .last_col = -1};
    int threads = tl_team_size(b->team);
    pthread_mutex_init(&j.lock, NULL);
    pthread_cond_init(&j.moved, NULL);
    TRY(tl_alloc(b, &j.rest, PIECE + 1, 1, "a piece of text"));
    TRY(tl_calloc(b, &j.scratch, threads, sizeof *j.scratch, "pieces of text"));
    TRY(tl_alloc(b, &j.scratch[0].text, PIECE + 1 + TL_TEXT_PAD, 1, "a piece of text"));
    TRY(read_head(&j, j.scratch[0].text));
    TRY(find_room(&j));
    all->idx_type = tl_fits(TULLE_I32, all->head.cols) && tl_fits(TULLE_I32, all->head.rows - 1)
                  ? TULLE_I32 : TULLE_I64;
    int64_t pieces = tl_source_bound(s) / PIECE + 1;
    if (j.end || pieces < 1) pieces = 1;
    if (threads > pieces) threads = (int)pieces;
    TRY(make_room(&j, threads));
    double start = tl_now();
    s->defer = true;
    tl_team_run(b->team, threads, work, &j);
    s->defer = s->by_worker = false;
    TRY(j.status);
    if (j.entries < all->head.entries) {
        status = tl_fail(b, TULLE_EFORMAT, "%s:%" PRId64 ": the file ends here with %" PRId64
                         " entries; it promises %" PRId64, s->name, j.lines, j.entries, all->head.entries);
        goto done;
    }
    all->seconds = tl_now() - start;
    all->threads = threads;
done:
    free_scratch(b, &j, tl_team_size(b->team));
    pthread_cond_destroy(&j.moved);
    pthread_mutex_destroy(&j.lock);
    return status;
}

tulle_status tl_mtx_read(tl_source *s, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_base *b = s->b;
    tl_mtx_all all = {0};
    *out = NULL;
    TRY(tl_mtx_read_all(s, &all));
    double parsed = tl_now();
    TRY(all.head.layout == TL_ARRAY ? tl_mtx_build_array(b, &all, out) : tl_mtx_build(b, &all, out));
    tl_trace(b, "read %s: %" PRId64 " entries sorted %s, text %.3f s, rows %.3f s, %d threads", s->name,
             all.head.entries, all.by_row ? "by row" : all.by_col ? "by column" : "otherwise",
             all.seconds, tl_now() - parsed, all.threads);
done:
    tl_free(b, all.row);
    tl_free(b, all.col);
    tl_free(b, all.val);
    return status;
}
