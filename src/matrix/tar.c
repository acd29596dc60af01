/* SPDX-License-Identifier: MIT
 *
 * tar.c - finds the matrix in an archive of the SuiteSparse collection.
 *
 * NAME.tar.gz holds NAME/NAME.mtx and often also NAME/NAME_b.mtx, NAME_coord.mtx and so on.  The first member
 * whose folder has the same name is the matrix, and is read directly.  When there is none, the archive is
 * read a second time for the largest .mtx that begins with the banner.  ARCHIVE:NAME is the member of that
 * name.  Names too long for a header are supported in the GNU and the POSIX (pax) encodings. */
#include "matrix/files.h"
#include <stdio.h>
#include <string.h>

enum { BLOCK = 512, NAME = 100, SIZE_AT = 124, SUM_AT = 148, TYPE_AT = 156, PREFIX_AT = 345, PREFIX = 155 };
enum { NAME_MOST = 4096, REMARKS_MOST = 1 << 20 };

typedef struct member {
    char    name[NAME_MOST];
    int64_t bytes;
    bool    is_file;
} member;

typedef struct remarks {                /* from extension headers before a member's header */
    bool    name, size;
    int64_t bytes;
} remarks;

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

static int64_t padding(int64_t bytes)
{
    return (BLOCK - bytes % BLOCK) % BLOCK;
}

/* ---- headers */

static tulle_status damaged(tl_source *s, const char *what)
{
    return tl_fail(s->b, TULLE_EFORMAT, "%s: %s in the archive is damaged", s->path, what);
}

/* Of a name that is too long the end is kept, which shows whether it is a matrix. */
static void set_name(member *m, const char *name, int64_t length)
{
    int64_t most = (int64_t)sizeof m->name - 1;
    if (length > most) {
        name += length - most;
        length = most;
    }
    memcpy(m->name, name, (size_t)length);
    m->name[length] = 0;
}

/* POSIX (pax) records about the next member: any number of "LENGTH KEY=VALUE\n", where LENGTH is decimal
 * and counts the whole record. */
static tulle_status take_remarks(tl_source *s, const char *text, int64_t bytes, member *m, remarks *r)
{
    for (const char *p = text, *end = text + bytes; p < end && *p;) {
        int64_t length = 0;
        const char *key = tl_parse_index(p, &length);
        if (!key || *key != ' ' || length > end - p || length < key - p + 2 || p[length - 1] != '\n')
            return damaged(s, "a header");
        const char *next = p + length, *value = memchr(key, '=', (size_t)(next - key));
        if (!value) return damaged(s, "a header");
        key++;
        value++;
        int64_t n = next - 1 - value;
        if (value - key == 5 && memcmp(key, "path=", 5) == 0 && n > 0) {
            set_name(m, value, n);
            r->name = true;
        } else if (value - key == 5 && memcmp(key, "size=", 5) == 0) {
            if (tl_parse_index(value, &r->bytes) != next - 1) return damaged(s, "the size of a member");
            r->size = true;
        }
        p = next;
    }
    return TULLE_OK;
}

/* Extension headers, for what does not fit in the header of the next member: GNU's long name ('L') or pax
 * records ('x'). */
static tulle_status read_remarks(tl_source *s, char type, int64_t bytes, member *m, remarks *r)
{
    tulle_status status = TULLE_OK;
    char *text = NULL;
    int64_t got = 0;
    if (bytes > REMARKS_MOST) TRY(damaged(s, "a header"));
    TRY(tl_calloc(s->b, &text, bytes + 1 + TL_TEXT_PAD, 1, "a header of an archive"));
    TRY(tl_source_read(s, text, bytes, &got));
    if (got < bytes) TRY(damaged(s, "a header"));
    if (type == 'L') {
        set_name(m, text, (int64_t)strlen(text));
        r->name = true;
    } else {
        TRY(take_remarks(s, text, bytes, m, r));
    }
    TRY(tl_source_skip(s, padding(bytes)));
done:
    tl_free(s->b, text);
    return status;
}

/* The next member's header; bytes < 0 at the end of the archive. */
static tulle_status next_member(tl_source *s, member *m)
{
    tulle_status status = TULLE_OK;
    char block[BLOCK], name[NAME + 1 + PREFIX + 1];
    int64_t got = 0;
    remarks r = {0};
    m->bytes = -1;
    for (;;) {
        TRY(tl_source_read(s, block, BLOCK, &got));
        if (got == 0 || (got == BLOCK && all_zero(block))) goto done;
        if (!tl_tar_begins(block, got)) TRY(damaged(s, "a header"));
        int64_t bytes = field_value(block + SIZE_AT, 12);
        if (bytes < 0) TRY(damaged(s, "the size of a member"));
        char type = block[TYPE_AT];
        if (type == 'L' || type == 'x') {
            TRY(read_remarks(s, type, bytes, m, &r));
            continue;
        }
        if (type == 'g' || type == 'K') {       /* pax records about all members; GNU's long link */
            TRY(tl_source_skip(s, bytes + padding(bytes)));
            continue;
        }
        bool prefix = memcmp(block + 257, "ustar\0", 6) == 0 && block[PREFIX_AT];
        if (!r.name) {
            snprintf(name, sizeof name, "%.155s%s%.100s", prefix ? block + PREFIX_AT : "", prefix ? "/" : "",
                     block);
            set_name(m, name, (int64_t)strlen(name));
        }
        m->is_file = type == '0' || type == 0 || type == '7';
        m->bytes = !m->is_file ? 0 : r.size ? r.bytes : bytes;
        if (m->bytes > INT64_MAX - BLOCK) TRY(damaged(s, "the size of a member"));
        goto done;
    }
done:
    return status;
}

/* ---- names */

static bool ends_mtx(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".mtx") == 0;
}

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* .../NAME/NAME.mtx */
static bool is_main(const char *name)
{
    const char *base = base_of(name);
    if (!ends_mtx(name) || base == name) return false;
    size_t n = strlen(base) - 4, folder = (size_t)(base - 1 - name);    /* of NAME */
    if (folder < n || memcmp(base - 1 - n, base, n) != 0) return false;
    return folder == n || base[-(ptrdiff_t)n - 2] == '/';
}

/* Whether a member is the requested one.  With a slash the request is a path, without one the last component
 * of it; .mtx may be omitted. */
static bool is_wanted(const char *name, const char *wanted)
{
    if (!strchr(wanted, '/')) name = base_of(name);
    if (strncmp(name, "./", 2) == 0) name += 2;
    if (strncmp(wanted, "./", 2) == 0) wanted += 2;
    size_t n = strlen(wanted);
    return strncmp(name, wanted, n) == 0 && (name[n] == 0 || strcmp(name + n, ".mtx") == 0);
}

/* A name for a message: control characters, which would affect the terminal, become question marks. */
static void print_name(char *to, size_t room, const char *name)
{
    size_t n = 0;
    for (; name[n] && n + 1 < room; n++)
        to[n] = (unsigned char)name[n] < ' ' || name[n] == 127 ? '?' : name[n];
    if (room > 0) to[n] = 0;
}

/* Adds a matrix of the archive to the list for messages. */
static void list_matrix(tl_source *s, const char *name)
{
    int room = (int)sizeof s->matrices - s->matrices_bytes, n = (int)strlen(name) + 2;
    s->matrices_count++;
    if (s->matrices_count > s->matrices_named + 1 || n >= room) return;
    if (s->matrices_named > 0) {
        memcpy(s->matrices + s->matrices_bytes, ", ", 2);
        s->matrices_bytes += 2;
        room -= 2;
    }
    print_name(s->matrices + s->matrices_bytes, (size_t)room, name);
    s->matrices_bytes += n - 2;
    s->matrices_named++;
}

/* ", and 3 more" */
static const char *and_more(const tl_source *s, char *to, size_t room)
{
    to[0] = 0;
    if (s->matrices_count > s->matrices_named)
        snprintf(to, room, "%s%d more", s->matrices_named > 0 ? " and " : "",
                 s->matrices_count - s->matrices_named);
    return to;
}

/* ---- the search */

static void enter(tl_source *s, const member *m)
{
    char name[250];
    print_name(name, sizeof name, m->name);
    s->left = m->bytes;
    s->behind = padding(m->bytes);
    snprintf(s->name, sizeof s->name, "%.250s(%s)", s->path, name);
}

typedef struct search {
    int  number;                        /* >= 0: this member              */
    bool again;                         /* names were noted before        */
    bool found;
    int  largest;                       /* .mtx with a banner; -1: none   */
} search;

/* Searches for the requested member, up to the end. */
static tulle_status look(tl_source *s, search *u)
{
    tulle_status status = TULLE_OK;
    member m;
    int64_t best = -1, got = 0;
    char begin[32];
    for (int number = 0;; number++) {
        TRY(next_member(s, &m));
        if (m.bytes < 0) goto done;
        bool matrix = m.is_file && ends_mtx(m.name);
        if (matrix && !u->again) list_matrix(s, m.name);
        if (m.is_file && (u->number >= 0 ? number == u->number : s->member ? is_wanted(m.name, s->member)
                                         : is_main(m.name))) {
            enter(s, &m);
            u->found = true;
            goto done;
        }
        int64_t rest = m.bytes + padding(m.bytes);
        if (matrix && m.bytes > best) {
            TRY(tl_source_read(s, begin, m.bytes < 32 ? m.bytes : 32, &got));
            rest -= got;
            if (tl_mtx_begins(begin, got)) {
                best = m.bytes;
                u->largest = number;
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
    search u = {.number = -1, .largest = -1};
    char more[32];
    TRY(look(s, &u));
    if (u.found) goto done;
    s->searched = true;
    if (s->member && s->matrices_count > 0)
        TRY(tl_fail(s->b, TULLE_EFORMAT, "%s: holds no \"%.200s\"; there is %s%s", s->path, s->member,
                    s->matrices, and_more(s, more, sizeof more)));
    if (u.largest < 0) TRY(tl_fail(s->b, TULLE_EFORMAT, "%s: the archive holds no .mtx file", s->path));
    TRY(tl_source_rewind(s));
    u = (search){.number = u.largest, .again = true, .largest = -1};
    TRY(look(s, &u));
    if (!u.found) status = tl_fail(s->b, TULLE_EIO, "%s: changed while it was read", s->path);
done:
    return status;
}

/* Reads the rest of the archive: a second member of the requested name is an error, other matrices are listed
 * for the trace. */
static tulle_status look_behind(tl_source *s, const char *taken)
{
    tulle_status status = TULLE_OK;
    search u = {.number = -1, .largest = -1, .found = true};
    while (u.found) {
        u.found = false;
        TRY(tl_source_skip(s, s->left));
        s->left = -1;
        TRY(tl_source_skip(s, s->behind));
        TRY(look(s, &u));
        if (s->member && u.found)
            TRY(tl_fail(s->b, TULLE_EFORMAT,
                        "%s: \"%.200s\" is the name of several: %s and %s; say the path of one",
                        s->path, s->member, taken, s->name));
    }
done:
    return status;
}

tulle_status tl_tar_leave(tl_source *s)
{
    tulle_status status = TULLE_OK;
    char more[32], taken[TL_SOURCE_NAME];
    snprintf(taken, sizeof taken, "%s", s->name);
    if (!s->searched && (s->member || s->b->trace)) status = look_behind(s, taken);
    if (status == TULLE_EFORMAT && !s->member) {        /* the list is only for the trace: not an error */
        status = TULLE_OK;
        s->b->error[0] = 0;
    }
    if (status == TULLE_OK && !s->member && s->matrices_count > 1)
        tl_trace(s->b, "read %s: taken of %d matrices, %s%s; %s:NAME takes another", taken, s->matrices_count,
                 s->matrices, and_more(s, more, sizeof more), s->path);
    return status;
}
