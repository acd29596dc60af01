/* SPDX-License-Identifier: MIT
 * session.c - a context with the settings of the options, with progress bar, trace lines and Ctrl-C. */
#include "program.h"
#include <string.h>

static void print_trace(void *user, const char *line)
{
    session *s = user;
    progress_erase(&s->bar);
    fprintf(stderr, "trace: %s\n", line);
}

int session_open_on(session *s, const options *o, const char *device)
{
    char why[1024];
    *s = (session){.o = o};
    progress_begin(&s->bar, o->quiet);
    tulle_status status = tulle_ctx_create_why(device, NULL, &s->ctx, why, sizeof why);
    if (status == TULLE_EDEVICE)
        return complain(END_USAGE, "%s; \"tulle devices\" lists those there are", why);
    if (status != TULLE_OK) return complain(end_of(status), "%s", why);
    tulle_ctx_set_progress(s->ctx, progress_call, &s->bar);
    tulle_ctx_set_partial(s->ctx, signal_guard, NULL);
    if (o->trace) tulle_ctx_set_trace(s->ctx, print_trace, s);
    return o->threads ? told(s, tulle_ctx_set_threads(s->ctx, o->threads)) : END_OK;
}

int session_open(session *s, const options *o)
{
    bool multiplies = o->command & (FOR_MULTIPLY | FOR_SPMM | FOR_EXPLAIN | FOR_BENCH | FOR_TUNE);
    return session_open_on(s, o, o->device || multiplies ? o->device : "cpu");
}

bool session_on_gpu(const session *s)
{
    const char *device = tulle_ctx_device(s->ctx);     /* several devices use host arrays */
    return strcmp(device, "cpu") != 0 && !strchr(device, ',');
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
