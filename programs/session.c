/* SPDX-License-Identifier: MIT
 * session.c - a context as the options ask for it, with a progress bar, trace lines and Ctrl-C. */
#include "program.h"
#include <string.h>

static void print_trace(void *user, const char *line)
{
    session *s = user;
    progress_erase(&s->bar);
    fprintf(stderr, "trace: %s\n", line);
}

static int no_context(tulle_status status, const char *device)
{
    if (status != TULLE_EDEVICE && status != TULLE_EINVAL)
        return complain(end_of(status), "no context could be made: %s", tulle_status_text(status));
    for (int i = 0; device && i < tulle_device_count(); i++) {
        tulle_device info;
        if (tulle_device_info(i, &info) != TULLE_OK || strcmp(device, info.name) != 0) continue;
        if (!info.usable)
            return complain(END_USAGE, "device \"%s\" cannot be used: %s", device, info.why_not);
    }
    return complain(END_USAGE, "there is no device \"%s\"; \"tulle devices\" lists those there are",
                    device ? device : "");
}

int session_open(session *s, const options *o)
{
    *s = (session){.o = o};
    progress_begin(&s->bar, o->quiet);
    tulle_status status = tulle_ctx_create(o->device, NULL, &s->ctx);
    if (status != TULLE_OK) return no_context(status, o->device);
    tulle_ctx_set_progress(s->ctx, progress_call, &s->bar);
    if (o->trace) tulle_ctx_set_trace(s->ctx, print_trace, s);
    return o->threads ? told(s, tulle_ctx_set_threads(s->ctx, o->threads)) : END_OK;
}

void session_close(session *s)
{
    progress_erase(&s->bar);
    tulle_ctx_free(s->ctx);
    s->ctx = NULL;
}

int told(session *s, tulle_status status)
{
    progress_erase(&s->bar);
    if (signal_caught()) return complain(signal_end(), "interrupted");
    if (status == TULLE_OK) return END_OK;
    const char *sentence = tulle_ctx_error(s->ctx);
    return complain(end_of(status), "%s", sentence && *sentence ? sentence : tulle_status_text(status));
}
