/* SPDX-License-Identifier: MIT
 *
 * images.c - images that were compiled when the library was built.
 *
 * Machine code runs on devices with the same major version and the same or a higher minor one (sm_80 on
 * sm_86; not on sm_90), but not on NVIDIA's embedded chips, which are families of their own; PTX runs on all
 * newer devices.  Machine code is preferred, then the version nearest to that of the device. */
#include "jit/parts.h"
#include <stdlib.h>
#include <string.h>

static bool alone(int arch)
{
    static const int chips[] = {53, 62, 72, 87, 101, 110};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (chips[i] == arch) return true;
    return false;
}

/* The number after the prefix; 0 if the name has another prefix, or more than a number ("sm_90a"). */
static int number(const char *arch, const char *prefix)
{
    size_t n = strlen(prefix);
    char *end;
    if (strncmp(arch, prefix, n) != 0) return 0;
    long value = strtol(arch + n, &end, 10);
    return end > arch + n && *end == 0 && value > 0 && value < 10000 ? (int)value : 0;
}

/* The rank of an image for a device; 0: it does not run there. */
static int fit(const char *image, const char *device)
{
    int of = number(device, "sm_"), code = number(image, "sm_"), ptx = number(image, "compute_");
    if (strcmp(image, device) == 0) return 30000;
    if (of && code && code <= of && code / 10 == of / 10 && !alone(of) && !alone(code)) return 10000 + code;
    if (of && ptx && ptx <= of) return ptx;
    return 0;
}

tl_hash tl_embedded_key(const char *dialect, const char *text)
{
    tl_sha256 s;
    tl_sha256_begin(&s);
    tl_sha256_field(&s, dialect);
    tl_sha256_field(&s, text);
    return tl_sha256_end(&s);
}

const tl_embedded *tl_embedded_find(const tl_embedded *table, const tl_hash *key, const char *arch)
{
    const tl_embedded *best = NULL;
    int best_fit = 0;
    for (const tl_embedded *e = table; e->arch; e++) {
        if (memcmp(e->key.byte, key->byte, sizeof key->byte) != 0) continue;
        int f = fit(e->arch, arch);
        if (f > best_fit) {
            best = e;
            best_fit = f;
        }
    }
    return best;
}

int tl_embedded_count(void)
{
    int n = 0;
    while (tl_embedded_table[n].arch) n++;
    return n;
}
