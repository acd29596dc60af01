/* SPDX-License-Identifier: MIT
 *
 * read.c - reads a matrix from a file of any supported format.
 *
 * Formats are told apart by the contents of the file, never by its name: gzip is unpacked, an archive is
 * searched for its matrix, then the banner of Matrix Market or the magic number of .tulle decides. */
#include "matrix/files.h"
#include <stdio.h>

static tulle_status unknown(tl_source *s)
{
    char seen[64] = "";
    int n = 0;
    if (s->head_bytes == 0) return tl_fail(s->b, TULLE_EFORMAT, "%s: is empty", s->name);
    for (int i = 0; i < s->head_bytes && i < 16; i++) {
        unsigned char c = (unsigned char)s->head[i];
        if (c == '\n' || c == '\r') break;
        n += snprintf(seen + n, sizeof seen - (size_t)n, c >= ' ' && c < 127 ? "%c" : "\\x%02x", c);
        if (n > 48) break;
    }
    return tl_fail(s->b, TULLE_EFORMAT, "%s: is no Matrix Market file, archive of one, or .tulle file; it"
                   " begins with \"%s\"", s->name, seen);
}

tulle_status tl_read(tl_base *b, const char *path, bool map, tulle_matrix **out)
{
    tulle_status status = TULLE_OK;
    tl_source s;
    *out = NULL;
    status = tl_source_open(b, path, &s);
    if (status != TULLE_OK) return status;
    bool archive = tl_tar_begins(s.head, s.head_bytes);
    if (archive) TRY(tl_tar_enter(&s));
    tl_source_go_on(&s);
    if (!archive && tl_binary_begins(s.head, s.head_bytes)) {
        TRY(tl_binary_read(&s, map, out));
        goto done;
    }
    if (!archive && !tl_mtx_begins(s.head, s.head_bytes)) TRY(unknown(&s));
    TRY(tl_mtx_read(&s, out));
    if (archive) TRY(tl_tar_leave(&s));
done:
    if (status != TULLE_OK) {
        tl_matrix_free(b, *out);
        *out = NULL;
    }
    tl_source_close(&s);
    return status;
}
