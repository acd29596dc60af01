/* SPDX-License-Identifier: MIT
 *
 * test_dist_file.c - .tulle files read and written by several ranks: the same bytes as from one process, no
 * partial files, and damage anywhere is reported by all ranks. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include "dist_help.h"

static team ranks;

typedef struct job {
    spread             A;
    const char        *path;
    tulle_dist_matrix *C[FAKE_RANKS];
    bool               pattern;
} job;

static void write_part(member *m)
{
    job *j = m->job;
    tulle_dist_csr A = spread_view(&j->A, m->rank);
    if (j->pattern) A.local.values = NULL;
    m->status = tulle_dist_write(m->dist, j->path, &A);
}

static void read_part(member *m)
{
    job *j = m->job;
    m->status = tulle_dist_read(m->dist, j->path, j->A.size ? j->A.starts : NULL, &j->C[m->rank]);
}

static void job_clear(job *j)
{
    for (int r = 0; r < FAKE_RANKS; r++) tulle_dist_matrix_free(j->C[r]);
    memset(j->C, 0, sizeof j->C);
    spread_free(&j->A);
}

static char *bytes_of(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    *bytes = 0;
    if (!f || fstat(fileno(f), &st) != 0) return NULL;
    char *data = malloc((size_t)st.st_size + 1);
    *bytes = fread(data, 1, (size_t)st.st_size, f);
    fclose(f);
    return data;
}

static bool same_bytes(const char *one, const char *other)
{
    size_t n = 0, k = 0;
    char *a = bytes_of(one, &n), *b = bytes_of(other, &k);
    bool same = a && b && n == k && memcmp(a, b, n) == 0;
    free(a);
    free(b);
    return same;
}

static int files_here(void)
{
    int n = 0;
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));) n += e->d_name[0] != '.';
    if (d) closedir(d);
    return n;
}

static void files_are_those_of_one_process(void)
{
    tulle_ctx *ctx = ctx_with(1);
    for (int i = 0; i < SMALL_PAIRS + 1; i++)
        for (int size = 1; size <= FAKE_RANKS; size += 2) {
            ref_types t = {ref_types_at((3 * i) % REF_TYPES).val, i % 3 ? TULLE_I32 : TULLE_I64,
                           ref_types_at(i).idx};
            pair p = pair_at(i, REF_REALS, t, t);
            tulle_csr whole = p.A.view;
            job j = {.path = "ranks.tulle", .pattern = i == 9};
            if (j.pattern) whole.values = NULL;
            REQUIRE(tulle_write(ctx, "one.tulle", &whole) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            spread_random(&j.A, &p.A.view, size, (uint64_t)(i + size));
            team_run(&ranks, size, write_part, &j, &(team_options){.unkind = true, .seed = (uint64_t)i});
            team_agrees(&ranks, p.name);
            CHECK(ranks.member[0].status == TULLE_OK, "%s: %s", p.name, ranks.member[0].why);
            CHECK(same_bytes("one.tulle", "ranks.tulle"), "%s by %d ranks", p.name, size);
            if (i % 2) j.A.size = 0;            /* equal row blocks */
            team_run(&ranks, size, read_part, &j, NULL);
            if (i % 2) j.A.size = size;
            team_agrees(&ranks, p.name);
            REQUIRE(ranks.member[0].status == TULLE_OK, "%s: %s", p.name, ranks.member[0].why);
            ref C = put_together(j.C, size);
            tulle_matrix *one = NULL;
            CHECK(tulle_read(ctx, "one.tulle", &one) == TULLE_OK, "%s", tulle_ctx_error(ctx));
            tulle_csr want = tulle_matrix_view(one);
            CHECK(ref_same(&C.view, &want, p.name), "read by %d ranks", size);
            tulle_matrix_free(one);
            ref_free(&C);
            job_clear(&j);
            pair_free(&p);
        }
    CHECK(files_here() == 2, "%d files are left", files_here());
    remove("one.tulle");
    remove("ranks.tulle");
    tulle_ctx_free(ctx);
}

static void damage_is_found_by_all(void)
{
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    tulle_ctx *ctx = ctx_with(1);
    ref A = ref_random(1, 30, 30, 3, REF_REALS, t);
    size_t bytes = 0;
    REQUIRE(tulle_write(ctx, "whole.tulle", &A.view) == TULLE_OK, "%s", tulle_ctx_error(ctx));
    char *data = bytes_of("whole.tulle", &bytes);
    for (size_t at = 0; at < bytes; at += 7) {
        FILE *f = fopen("hurt.tulle", "wb");
        data[at] ^= 1;
        fwrite(data, 1, bytes, f);
        fclose(f);
        data[at] ^= 1;
        job j = {.path = "hurt.tulle"};
        team_run(&ranks, 3, read_part, &j, NULL);
        team_agrees(&ranks, "damage");
        CHECK(ranks.member[0].status == TULLE_EFORMAT, "byte %zu: %s", at,
              tulle_status_name(ranks.member[0].status));
        job_clear(&j);
    }
    for (size_t n = 0; n < bytes; n += 97) {
        FILE *f = fopen("hurt.tulle", "wb");
        fwrite(data, 1, n, f);
        fclose(f);
        job j = {.path = "hurt.tulle"};
        team_run(&ranks, 2, read_part, &j, NULL);
        team_agrees(&ranks, "cut");
        CHECK(ranks.member[0].status == TULLE_EFORMAT, "%zu bytes: %s", n,
              tulle_status_name(ranks.member[0].status));
        job_clear(&j);
    }
    remove("hurt.tulle");
    job j = {.path = "hurt.tulle"};
    team_run(&ranks, 3, read_part, &j, NULL);
    team_agrees(&ranks, "no file");
    CHECK(ranks.member[0].status == TULLE_EIO, "%s", ranks.member[0].why);
    j.path = ".";
    team_run(&ranks, 3, read_part, &j, NULL);
    team_agrees(&ranks, "a folder");
    CHECK(ranks.member[0].status == TULLE_EIO, "%s", ranks.member[0].why);
    remove("whole.tulle");
    free(data);
    ref_free(&A);
    tulle_ctx_free(ctx);
}

static void after_a_failure_what_stood_there_is_untouched(void)
{
    ref_types t = {TULLE_F64, TULLE_I32, TULLE_I32};
    ref A = ref_random(1, 30, 30, 3, REF_REALS, t);
    int64_t calls = 1;
    for (int bad = 0; bad < 3; bad++)
        for (int64_t n = -1; n < calls; n++) {
            FILE *f = fopen("old.tulle", "wb");
            fputs("old", f);
            fclose(f);
            job j = {.path = "old.tulle"};
            spread_random(&j.A, &A.view, 3, 0);
            team_options o = {.fail_rank = bad + 1, .fail_call = n < 0 ? INT64_MAX : n};
            team_run(&ranks, 3, write_part, &j, &o);
            team_agrees(&ranks, "write");
            size_t bytes = 0;
            char *now = bytes_of("old.tulle", &bytes);
            /* the last collective fails after rank 0 has renamed the file */
            if (n >= 0 && n < calls - 1)
                CHECK(bytes == 3 && memcmp(now, "old", 3) == 0, "call %lld of rank %d", (long long)n, bad);
            CHECK(n < 0 ? ranks.member[0].status == TULLE_OK : ranks.member[0].status == TULLE_ECOMM,
                  "call %lld: %s", (long long)n,
                  ranks.member[0].why);
            CHECK(files_here() == 1, "%d files", files_here());
            if (n < 0) calls = ranks.calls;
            free(now);
            job_clear(&j);
        }
    remove("old.tulle");
    job j = {.path = "no/such/folder/a.tulle"};
    spread_random(&j.A, &A.view, 3, 0);
    team_run(&ranks, 3, write_part, &j, NULL);
    team_agrees(&ranks, "no folder");
    CHECK(ranks.member[0].status == TULLE_EIO, "%s", ranks.member[0].why);
    j.path = "a.mtx";
    team_run(&ranks, 3, write_part, &j, NULL);
    CHECK(ranks.member[0].status == TULLE_EFORMAT, "%s", ranks.member[0].why);
    CHECK(files_here() == 0, "%d files", files_here());
    job_clear(&j);
    ref_free(&A);
    team_free(&ranks);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {TEST(files_are_those_of_one_process), TEST(damage_is_found_by_all),
                                      TEST(after_a_failure_what_stood_there_is_untouched)};
    char folder[] = "/tmp/tulle-test-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    int code = test_main(argc, argv, cases, 3);
    return rmdir(folder) == 0 ? code : 1;
}
