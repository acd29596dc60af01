/* SPDX-License-Identifier: MIT
 *
 * tar.c - finds the matrix in an archive as SuiteSparse ships it.
 *
 * NAME.tar.gz holds NAME/NAME.mtx and often NAME/NAME_b.mtx, NAME_coord.mtx and so on beside it.  The
 * first member whose folder has its own name is the matrix, and reading goes on from there.  When there
 * is none, the archive is read once more for the largest .mtx that begins with the banner. */
#include "matrix/files.h"
#include <stdio.h>
#include <string.h>

enum { BLOCK = 512, NAME = 100, SIZE_AT = 124, SUM_AT = 148, TYPE_AT = 156, PREFIX_AT = 345 };

typedef struct member {
    char    name[TL_SOURCE_NAME];
    int64_t bytes;
    char    type;
} member;

/* Octal digits, or base 256 when the highest bit of the first byte is set; -1: neither. */
static int64_t field_value(const char *field, int length)
{
    int64_t value = 0;
    if ((unsigned char)field[0] & 0x80) {
        for (int i = 1; i < length; i++) {
            if (value >> 54) return -1;
            value = value << 8 | (unsigned char)field[i];
        }
        return value;
    }
    int i = 0;
    while (i < length && field[i] == ' ') i++;
    for (; i < length && field[i] != 0 && field[i] != ' '; i++) {
        if (field[i] < '0' || field[i] > '7' || value >> 59) return -1;
        value = value << 3 | (field[i] - '0');
    }
    return value;
}

bool tl_tar_begins(const char *head, int64_t bytes)
{
    if (bytes < BLOCK || head[0] == 0) return false;
    int64_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + 8 ? ' ' : (unsigned char)head[i];
    return sum == field_value(head + SUM_AT, 8);
}

static bool all_zero(const char *block)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i]) return false;
    return true;
}

/* The next member's header; bytes < 0 at the end of the archive.  GNU's long names are followed. */
static tulle_status next_member(tl_source *s, member *m)
{
    tulle_status status = TULLE_OK;
    char block[BLOCK], longer[BLOCK];
    int64_t got = 0;
    bool have_longer = false;
    m->bytes = -1;
    for (;;) {
        TRY(tl_source_read(s, block, BLOCK, &got));
        if (got == 0 || (got == BLOCK && all_zero(block))) goto done;
        if (!tl_tar_begins(block, got)) {
            status = tl_fail(s->b, TULLE_EFORMAT, "%s: a header in the archive is damaged", s->path);
            goto done;
        }
        int64_t bytes = field_value(block + SIZE_AT, 12);
        if (bytes < 0) {
            status = tl_fail(s->b, TULLE_EFORMAT, "%s: the size of a member of the archive is damaged",
                             s->path);
            goto done;
        }
        char type = block[TYPE_AT];
        if (type == 'L') {                      /* the name of the next member, too long for its field */
            int64_t keep = bytes < BLOCK - 1 ? bytes : BLOCK - 1;
            TRY(tl_source_read(s, longer, keep, &got));
            longer[got] = 0;
            have_longer = true;
            TRY(tl_source_skip(s, (bytes + BLOCK - 1) / BLOCK * BLOCK - keep));
            continue;
        }
        if (type == 'x' || type == 'g' || type == 'K') {        /* remarks on the next member */
            TRY(tl_source_skip(s, (bytes + BLOCK - 1) / BLOCK * BLOCK));
            continue;
        }
        bool prefix = memcmp(block + 257, "ustar\0", 6) == 0 && block[PREFIX_AT];
        if (have_longer) snprintf(m->name, sizeof m->name, "%s", longer);
        else snprintf(m->name, sizeof m->name, "%.155s%s%.100s", prefix ? block + PREFIX_AT : "",
                      prefix ? "/" : "", block);
        m->type = type;
        m->bytes = type == '0' || type == 0 || type == '7' ? bytes : 0;
        goto done;
    }
done:
    return status;
}

static bool is_file(const member *m)
{
    return m->type == '0' || m->type == 0 || m->type == '7';
}

static bool ends_mtx(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".mtx") == 0;
}

/* .../NAME/NAME.mtx */
static bool is_main(const char *name)
{
    if (!ends_mtx(name)) return false;
    const char *base = strrchr(name, '/');
    if (!base) return false;
    size_t n = strlen(base + 1) - 4;            /* of NAME */
    size_t folder = (size_t)(base - name);
    if (folder < n || memcmp(base - n, base + 1, n) != 0) return false;
    return folder == n || base[-(ptrdiff_t)n - 1] == '/';
}

static void enter(tl_source *s, const member *m)
{
    s->left = m->bytes;
    snprintf(s->name, sizeof s->name, "%.250s(%.250s)", s->path, m->name);
}

static int64_t padding(int64_t bytes)
{
    return (BLOCK - bytes % BLOCK) % BLOCK;
}

/* The first main matrix, or (want >= 0) the member of that number; else notes the largest with a banner. */
static tulle_status look(tl_source *s, int want, bool *found, int *largest)
{
    tulle_status status = TULLE_OK;
    member m;
    int64_t best = -1, got = 0;
    char begin[64];
    *found = false;
    for (int number = 0;; number++) {
        TRY(next_member(s, &m));
        if (m.bytes < 0) goto done;
        if (is_file(&m) && (want < 0 ? is_main(m.name) : number == want)) {
            enter(s, &m);
            *found = true;
            goto done;
        }
        int64_t rest = m.bytes + padding(m.bytes);
        if (is_file(&m) && ends_mtx(m.name) && m.bytes > best && m.bytes >= 64) {
            TRY(tl_source_read(s, begin, 64, &got));
            rest -= got;
            if (tl_mtx_begins(begin, got)) {
                best = m.bytes;
                *largest = number;
            }
        }
        TRY(tl_source_skip(s, rest));
    }
done:
    return status;
}

tulle_status tl_tar_enter(tl_source *s)
{
    tulle_status status = TULLE_OK;
    bool found = false;
    int largest = -1;
    TRY(look(s, -1, &found, &largest));
    if (found) goto done;
    if (largest < 0) {
        status = tl_fail(s->b, TULLE_EFORMAT, "%s: the archive holds no .mtx file", s->path);
        goto done;
    }
    tl_base *b = s->b;
    const char *path = s->path;
    tl_source_close(s);
    TRY(tl_source_open(b, path, s));
    int unused = -1;
    TRY(look(s, largest, &found, &unused));
    if (!found) status = tl_fail(b, TULLE_EIO, "%s: changed while it was read", path);
done:
    return status;
}
