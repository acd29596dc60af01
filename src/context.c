/* SPDX-License-Identifier: MIT
 *
 * context.c - creates contexts by the name of their device, and lists the devices.
 *
 * The CPU is first in the list and always there.  Devices may come and go, so the list is built again at each
 * call; an index that was valid before may be past its end. */
#include "several.h"
#include <stdio.h>
#include <string.h>

/* ---- contexts */

/* An invalid environment variable is an error instead of being ignored: tests and measurements rely on these
 * settings. */
static tulle_status check_environment(tl_base *b)
{
    char why[256];
    if (!tl_env_wrong(why, sizeof why) && !tl_isa_wrong(why, sizeof why)
        && !tl_spmm_shape_wrong(why, sizeof why))
        return TULLE_OK;
    return tl_fail(b, TULLE_EINVAL, "%s", why);
}

static tulle_status open_gpu(tulle_ctx *ctx, const char *device)
{
    tulle_status status = tl_gpu_open(&ctx->base, device, &ctx->gpu);
    if (status != TULLE_OK) return status;
    ctx->engine = &tl_engine_gpu;
    snprintf(ctx->device, sizeof ctx->device, "%s", tl_gpu_name(ctx->gpu));
    return TULLE_OK;
}

/* A GPU together with the CPU, which may compute products instead (choose.c). */
static tulle_status open_either(tulle_ctx *ctx, const char *device)
{
    tulle_status status = TULLE_OK;
    char text[256];
    TRY(open_gpu(ctx, device));
    const tl_caps *caps = tl_gpu_caps(ctx->gpu);
    snprintf(text, sizeof text, "%.80s, %.40s, %.100s", caps->name, caps->arch, caps->driver);
    TRY(tl_choice_open(ctx, text));
done:
    return status;
}

/* The default device: the user's choice, or the best one that can be opened, or the CPU. */
static tulle_status open_default(tulle_ctx *ctx)
{
    char name[64];
    ctx->no_gpu = true;
    if (!tl_gpu_best(&ctx->base, name, sizeof name)) return TULLE_OK;
    ctx->no_gpu = open_either(ctx, name) != TULLE_OK && !ctx->gpu;
    if (ctx->no_gpu) {
        snprintf(ctx->why_no_gpu, sizeof ctx->why_no_gpu, "%s", ctx->base.error);
    }
    ctx->base.error[0] = 0;
    return TULLE_OK;
}

static const char either[] = "cpu/";    /* followed by the name of a GPU */

static tulle_status open_device(tulle_ctx *ctx, const char *device)
{
    if (!device) device = tl_env("TULLE_DEVICE");
    if (!device) return open_default(ctx);
    if (strchr(device, ',')) return tl_several_open(ctx, device);
    if (strcmp(device, "cpu") == 0) return TULLE_OK;
    if (strncmp(device, either, strlen(either)) == 0) return open_either(ctx, device + strlen(either));
    return open_gpu(ctx, device);
}

tulle_status tl_ctx_create(const char *device, const tulle_mem *mem, tulle_ctx **out, char *why, size_t bytes)
{
    tulle_status status = TULLE_OK;
    tl_base *base = NULL;
    tulle_ctx *ctx = NULL;
    if (why && bytes > 0) why[0] = 0;
    status = tl_base_create(mem, 0, sizeof(tulle_ctx), &base);
    if (status != TULLE_OK) {
        if (why) snprintf(why, bytes, "a context cannot be made: %s", tulle_status_text(status));
        goto done;
    }
    ctx = (tulle_ctx *)(void *)base;
    ctx->engine = &tl_engine_cpu;
    snprintf(ctx->device, sizeof ctx->device, "cpu");
    status = check_environment(base);
    if (status == TULLE_OK) status = open_device(ctx, device);
    if (status != TULLE_OK) {
        if (why) snprintf(why, bytes, "%s", base->error[0] ? base->error : tulle_status_text(status));
        goto done;
    }
    *out = ctx;
    ctx = NULL;
done:
    tl_ctx_free(ctx);
    return status;
}

void tl_ctx_free(tulle_ctx *ctx)
{
    if (!ctx) return;
    tl_choice_close(ctx);
    ctx->engine->close(ctx);
    tl_base_free(&ctx->base);
}

double tl_ctx_compiling(const tulle_ctx *ctx)
{
    return ctx->engine->compiling(ctx);
}

/* ---- the list */

static void cpu_info(tulle_device *info)
{
    snprintf(info->name, sizeof info->name, "cpu");
    snprintf(info->arch, sizeof info->arch, "%s", tl_cpu_isa());
    tl_cpu_text(info->text, sizeof info->text);
    info->memory_bytes = tl_memory_total();
    info->memory_free = tl_memory_free();
    info->processors = info->threads = tl_cores();
    info->usable = !tl_isa_wrong(info->why_not, sizeof info->why_not);
}

static void gpu_info(const tl_gpu_line *line, tulle_device *info)
{
    const tl_caps *c = &line->caps;
    snprintf(info->name, sizeof info->name, "%s", line->name);
    snprintf(info->arch, sizeof info->arch, "%s", c->arch);
    snprintf(info->driver, sizeof info->driver, "%s", c->driver);
    snprintf(info->why_not, sizeof info->why_not, "%s", c->why_not);
    snprintf(info->text, sizeof info->text, "%s%s%s%s%s", c->name[0] ? c->name : "no device of this kind",
             c->arch[0] ? ", " : "", c->arch, c->driver[0] ? ", " : "", c->driver);
    info->memory_bytes = c->memory_bytes;
    info->memory_free = c->memory_free;
    info->processors = (int)c->processors;
    info->threads = (int)(c->processors * c->threads_processor);
    info->usable = c->why_not[0] == 0;
}

/* Lists all devices; the caller frees *lines and *b.  0 and NULL when out of memory. */
static int list(tl_base **b, tl_gpu_line **lines)
{
    int room = 16, count = 0;
    *b = NULL;
    *lines = NULL;
    if (tl_base_create(NULL, 1, sizeof **b, b) != TULLE_OK) return 0;
    while (tl_calloc(*b, lines, room, sizeof **lines, "the list of devices") == TULLE_OK) {
        count = tl_gpu_list(*b, *lines, room);
        if (count <= room) return count;
        tl_free(*b, *lines);            /* there are more than the array holds */
        *lines = NULL;
        room = count;
    }
    return 0;
}

static void list_done(tl_base *b, tl_gpu_line *lines)
{
    if (!b) return;
    tl_free(b, lines);
    tl_base_free(b);
}

void tl_ctx_tell_device(tulle_ctx *ctx)
{
    tl_base *b;
    tl_gpu_line *lines;
    if (!ctx->no_gpu) return;
    if (ctx->why_no_gpu[0]) {
        tl_trace(&ctx->base, "products run on the CPU: %s", ctx->why_no_gpu);
        return;
    }
    for (int i = 0, count = list(&b, &lines); i < count; i++) {
        const char *why = lines[i].caps.why_not;
        tl_trace(&ctx->base, "products run on the CPU: %s: %s", lines[i].name,
                 why[0] ? why : "it is a CPU, too");
    }
    list_done(b, lines);
}

int tl_device_count(void)
{
    tl_base *b;
    tl_gpu_line *lines;
    int count = list(&b, &lines);
    list_done(b, lines);
    return 1 + count;
}

tulle_status tl_device_info(int i, tulle_device *info)
{
    tl_base *b;
    tl_gpu_line *lines;
    memset(info, 0, sizeof *info);
    if (i < 0) return TULLE_EINVAL;
    if (i == 0) {
        cpu_info(info);
        return TULLE_OK;
    }
    bool there = i - 1 < list(&b, &lines);
    if (there) gpu_info(&lines[i - 1], info);
    list_done(b, lines);
    return there ? TULLE_OK : TULLE_EINVAL;
}
