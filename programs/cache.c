/* SPDX-License-Identifier: MIT
 * cache.c - `tulle cache`: the compiled kernels that are kept on disk, shown or removed. */
#include "program.h"

static void print_cache(const tulle_cache *c, bool cleared)
{
    figure count, size;
    if (!c->path[0]) {
        printf("cache      none: set TULLE_CACHE, XDG_CACHE_HOME or HOME\n");
    } else if (cleared) {
        printf("removed    %s entries, %s, from %s\n", count_text(count, c->entries), bytes_text(size, c->bytes),
               c->path);
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

int run_cache(const options *o)
{
    int code = END_OK;
    session s;
    tulle_cache c;
    GO(session_open_on(&s, o, "cpu"));
    GO(told(&s, o->clear ? tulle_cache_clear(s.ctx, &c) : tulle_cache_info(s.ctx, &c)));
    if (o->json) json_cache(&c, o->clear);
    else print_cache(&c, o->clear);
done:
    session_close(&s);
    return code;
}
