/* SPDX-License-Identifier: MIT
 * devices.c - `tulle devices`: where products can be computed, and why not elsewhere. */
#include "program.h"

static void print_device(const tulle_device *d)
{
    figure t;
    printf("%-10s %s, %s of memory\n", d->name, d->text, bytes_text(t, d->memory_bytes));
    if (!d->usable) printf("%-10s not usable: %s\n", "", d->why_not);
}

static void json_device(json *j, const tulle_device *d)
{
    json_open(j, NULL, '{');
    json_text(j, "name", d->name);
    json_text(j, "text", d->text);
    json_int(j, "memory_bytes", (int64_t)d->memory_bytes);
    json_int(j, "threads", d->threads);
    json_bool(j, "usable", d->usable);
    if (!d->usable) json_text(j, "why_not", d->why_not);
    json_close(j, '}');
}

int run_devices(const options *o)
{
    json j;
    if (o->json) {
        json_begin(&j, "devices");
        json_open(&j, "devices", '[');
    }
    for (int i = 0; i < tulle_device_count(); i++) {
        tulle_device d;
        if (tulle_device_info(i, &d) != TULLE_OK) continue;
        if (o->json) json_device(&j, &d);
        else print_device(&d);
    }
    if (o->json) {
        json_close(&j, ']');
        json_end(&j);
    }
    return END_OK;
}
