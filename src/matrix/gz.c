/* SPDX-License-Identifier: MIT
 *
 * gz.c - gzip: unpacks a stream, packs pieces of text; uses zlib, where the build found it.
 *
 * Each piece of text becomes a gzip member of its own, so threads can pack at the same time.  The file is the
 * concatenation of the members, which every gzip program reads as one text.  Memory: 64 KiB of input. */
#include "matrix/files.h"
#include <string.h>
#if defined(TULLE_HAVE_ZLIB)
#include <zlib.h>
#endif

bool tl_gz_begins(const char *head, int64_t bytes)
{
    return bytes >= 2 && (unsigned char)head[0] == 0x1f && (unsigned char)head[1] == 0x8b;
}

#if defined(TULLE_HAVE_ZLIB)

enum { INPUT = 1 << 16, LEVEL = 6 };

struct tl_gz {
    z_stream stream;
    bool     open, between;     /* between: at the end of a member */
    unsigned char input[INPUT];
};

bool tl_gz_here(void)
{
    return true;
}

static voidpf zlib_alloc(voidpf user, uInt count, uInt size)
{
    void *p = NULL;
    tl_alloc(user, &p, (int64_t)count, size, "the state of zlib");
    return p;
}

static void zlib_free(voidpf user, voidpf p)
{
    tl_free(user, p);
}

tulle_status tl_gz_open(tl_source *s)
{
    tulle_status status = TULLE_OK;
    TRY(tl_calloc(s->b, &s->gz, 1, sizeof *s->gz, "a buffer for unpacking"));
    z_stream *z = &s->gz->stream;
    z->zalloc = zlib_alloc;
    z->zfree = zlib_free;
    z->opaque = s->b;
    if (inflateInit2(z, 15 + 16) != Z_OK) {
        status = tl_fail(s->b, TULLE_ENOMEM, "%s: no memory to unpack it", s->path);
        goto done;
    }
    s->gz->open = true;
    memcpy(s->gz->input, s->head, (size_t)s->head_bytes);
    z->next_in = s->gz->input;
    z->avail_in = (uInt)s->head_bytes;
done:
    return status;
}

void tl_gz_close(tl_source *s)
{
    if (!s->gz) return;
    if (s->gz->open) inflateEnd(&s->gz->stream);
    tl_free(s->b, s->gz);
    s->gz = NULL;
}

/* After a member there may be another one, zeros (tape padding), or the end. */
static tulle_status next_member(tl_source *s, bool *end)
{
    z_stream *z = &s->gz->stream;
    while (z->avail_in > 0 && *z->next_in == 0) {
        z->next_in++;
        z->avail_in--;
    }
    *end = z->avail_in == 0;
    if (*end) return TULLE_OK;
    if (*z->next_in != 0x1f)
        return tl_source_fail(s, TULLE_EFORMAT, "%s: something that is not gzip follows the packed data",
                              s->path);
    inflateReset(z);
    s->gz->between = false;
    return TULLE_OK;
}

tulle_status tl_gz_read(tl_source *s, char *to, int64_t room, int64_t *got)
{
    tulle_status status = TULLE_OK;
    z_stream *z = &s->gz->stream;
    *got = 0;
    while (*got < room) {
        if (z->avail_in == 0) {
            int64_t n = 0;
            TRY(tl_source_raw(s, s->gz->input, INPUT, &n));
            if (n == 0) {
                if (!s->gz->between)
                    status = tl_source_fail(s, TULLE_EFORMAT, "%s: the packed data ends too early; the file"
                                            " is not whole", s->path);
                break;
            }
            z->next_in = s->gz->input;
            z->avail_in = (uInt)n;
        }
        if (s->gz->between) {
            bool end = false;
            TRY(next_member(s, &end));
            if (end) continue;
        }
        int64_t ask = room - *got < 1 << 30 ? room - *got : 1 << 30;
        z->next_out = (Bytef *)to + *got;
        z->avail_out = (uInt)ask;
        int rc = inflate(z, Z_NO_FLUSH);
        *got += ask - z->avail_out;
        if (rc == Z_STREAM_END) {
            s->gz->between = true;
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            status = tl_source_fail(s, rc == Z_MEM_ERROR ? TULLE_ENOMEM : TULLE_EFORMAT,
                                    "%s: the packed data is damaged: %s", s->path,
                                    z->msg ? z->msg : "no reason");
            goto done;
        }
    }
done:
    return status;
}

int64_t tl_gz_bound(int64_t bytes)
{
    return bytes + bytes / 1000 + 1024;
}

struct tl_packer {
    z_stream stream;
};

tulle_status tl_packer_create(tl_base *b, tl_packer **out)
{
    tulle_status status = TULLE_OK;
    tl_packer *packer = NULL;
    *out = NULL;
    TRY(tl_calloc(b, &packer, 1, sizeof *packer, "a buffer for packing"));
    packer->stream = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = b};
    if (deflateInit2(&packer->stream, LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        status = tl_fail(b, TULLE_ENOMEM, "no memory for packing with zlib");
        goto done;
    }
    *out = packer;
    packer = NULL;
done:
    tl_free(b, packer);
    return status;
}

void tl_packer_free(tl_base *b, tl_packer *packer)
{
    if (!packer) return;
    deflateEnd(&packer->stream);
    tl_free(b, packer);
}

int64_t tl_gz_pack(tl_packer *packer, const char *text, int64_t bytes, char *to, int64_t room)
{
    z_stream *z = &packer->stream;
    deflateReset(z);
    z->next_in = (Bytef *)(uintptr_t)text;
    z->avail_in = (uInt)bytes;
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)room;
    deflate(z, Z_FINISH);               /* always completes: room is at least tl_gz_bound(bytes) */
    return room - z->avail_out;
}

#else

bool tl_gz_here(void)
{
    return false;
}

tulle_status tl_gz_open(tl_source *s)
{
    return tl_fail(s->b, TULLE_EFORMAT,
                   "%s: is packed with gzip, and this tulle was built without zlib; unpack it with gunzip,"
                   " or install zlib (Debian: zlib1g-dev) and build again", s->path);
}

void    tl_gz_close(tl_source *s) { (void)s; }
int64_t tl_gz_bound(int64_t bytes) { return bytes; }

tulle_status tl_gz_read(tl_source *s, char *to, int64_t room, int64_t *got)
{
    (void)to, (void)room;
    *got = 0;
    return tl_gz_open(s);
}

tulle_status tl_packer_create(tl_base *b, tl_packer **packer)
{
    *packer = NULL;
    return tl_fail(b, TULLE_EFORMAT,
                   "this tulle was built without zlib; write .mtx and pack it with gzip, or install zlib"
                   " (Debian: zlib1g-dev) and build again");
}

void tl_packer_free(tl_base *b, tl_packer *packer)
{
    (void)b, (void)packer;
}

int64_t tl_gz_pack(tl_packer *packer, const char *text, int64_t bytes, char *to, int64_t room)
{
    (void)packer, (void)text, (void)bytes, (void)to, (void)room;
    return 0;
}

#endif
