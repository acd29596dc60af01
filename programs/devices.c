/* SPDX-License-Identifier: MIT
 * devices.c - `tulle devices`: where products can be computed, and why not elsewhere. */
#include "program.h"

enum { DEVICES_MAX = 1000 };            /* far more than any list has */

static void print_device(const tulle_device *d)
{
    figure t;
    if (d->usable) printf("%-10s %s, %s of memory\n", d->name, d->text, bytes_text(t, d->memory_bytes));
    else if (d->memory_bytes > 0) printf("  %-8s %s: %s\n", d->name, d->text, d->why_not);
    else printf("  %-8s %s\n", d->name, d->why_not);
}

static void json_device(json *j, const tulle_device *d)
{
    json_open(j, NULL, '{');
    json_text(j, "name", d->name);
    json_text(j, "text", d->text);
    json_text(j, "arch", d->arch);
    json_text(j, "driver", d->driver);
    json_int(j, "memory_bytes", (int64_t)d->memory_bytes);
    json_int(j, "memory_free", (int64_t)d->memory_free);
    json_int(j, "processors", d->processors);
    json_int(j, "threads", d->threads);
    json_bool(j, "usable", d->usable);
    if (!d->usable) json_text(j, "why_not", d->why_not);
    json_close(j, '}');
}

/* Usable ones first, then, under a heading, the others with their reasons. */
static void print_list(void)
{
    for (int usable = 1; usable >= 0; usable--) {
        bool headed = usable;
        tulle_device d;
        for (int i = 0; i < DEVICES_MAX && tulle_device_info(i, &d) == TULLE_OK; i++) {
            if (d.usable != usable) continue;
            if (!headed) printf("\nnot usable\n");
            headed = true;
            print_device(&d);
        }
    }
}

int run_devices(const options *o)
{
    json j;
    tulle_device d;
    if (!o->json) {
        print_list();
        return END_OK;
    }
    json_begin(&j, "devices");
    json_open(&j, "devices", '[');
    for (int i = 0; i < DEVICES_MAX && tulle_device_info(i, &d) == TULLE_OK; i++) json_device(&j, &d);
    json_close(&j, ']');
    json_end(&j);
    return END_OK;
}
