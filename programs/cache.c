/* SPDX-License-Identifier: MIT
 * cache.c - `tulle cache`: shows, fills or clears the cache of compiled kernels on disk. */
#include "program.h"

static void print_cache(const tulle_cache *c, bool cleared)
{
    figure count, size;
    if (!c->path[0]) {
        printf("cache      none: %s\n", c->why_not);
    } else if (cleared) {
        printf("removed    %s entries, %s, from %s\n", count_text(count, c->entries),
               bytes_text(size, c->bytes), c->path);
    } else {
        printf("cache      %s\n", c->path);
        printf("entries    %s\n", count_text(count, c->entries));
        printf("size       %s\n", bytes_text(size, c->bytes));
        if (c->why_not[0]) printf("not used   %s\n", c->why_not);
    }
    if (!cleared) printf("embedded   %s images\n", count_text(count, c->embedded));
}

static void json_cache(const tulle_cache *c, bool cleared)
{
    json j;
    json_begin(&j, "cache");
    json_text(&j, "path", c->path);
    json_int(&j, cleared ? "removed_entries" : "entries", c->entries);
    json_int(&j, cleared ? "removed_bytes" : "bytes", (int64_t)c->bytes);
    json_int(&j, "embedded", c->embedded);
    if (!cleared) json_text(&j, "why_not", c->why_not);
    json_end(&j);
}

static void print_warm(const session *s, const tulle_kernels *k)
{
    figure n, ms;
    printf("device     %s\n", tulle_ctx_device(s->ctx));
    printf("programs   %s\n", count_text(n, k->programs));
    printf("compiled   %s\n", count_text(n, k->compiled));
    printf("cached     %s\n", count_text(n, k->cached));
    printf("embedded   %s\n", count_text(n, k->embedded));
    printf("time       %s ms\n", ms_text(ms, k->seconds));
}

static void json_warm(const session *s, const tulle_kernels *k)
{
    json j;
    json_begin(&j, "cache");
    json_text(&j, "device", tulle_ctx_device(s->ctx));
    json_int(&j, "programs", k->programs);
    json_int(&j, "compiled", k->compiled);
    json_int(&j, "cached", k->cached);
    json_int(&j, "embedded", k->embedded);
    json_num(&j, "seconds", k->seconds);
    json_end(&j);
}

/* All kernels for a device; the best one where none is named. */
static int warm(const options *o)
{
    int code = END_OK;
    session s;
    tulle_kernels k;
    GO(session_open_on(&s, o, o->device));
    if (!session_on_gpu(&s)) {
        code = complain(END_USAGE,
                        "cache --warm: the CPU has no kernels to compile; name a GPU with --device");
        goto done;
    }
    GO(told(&s, tulle_cache_warm(s.ctx, o->type ? (tulle_type)o->type : TULLE_F64,
                                 o->index ? (tulle_index)o->index : TULLE_I32, &k)));
    if (o->json) json_warm(&s, &k);
    else if (!o->quiet) print_warm(&s, &k);
done:
    session_close(&s);
    return code;
}

int run_cache(const options *o)
{
    int code = END_OK;
    session s;
    tulle_cache c;
    if (o->warm && o->clear) return complain(END_USAGE, "--warm and --clear exclude each other");
    if (o->warm) return warm(o);
    code = check_given(o, FOR_KEPT, "cache without --warm");
    if (code != END_OK) return code;
    GO(session_open_on(&s, o, "cpu"));
    GO(told(&s, o->clear ? tulle_cache_clear(s.ctx, &c) : tulle_cache_info(s.ctx, &c)));
    if (o->json) json_cache(&c, o->clear);
    else if (!o->quiet) print_cache(&c, o->clear);
done:
    session_close(&s);
    return code;
}
