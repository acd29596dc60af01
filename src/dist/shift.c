/* SPDX-License-Identifier: MIT shift.c - adds a number to indices, from any type to any, with a specialised
 * loop for each pair of types. */
#include "dist/dist.h"

void tl_shift(const void *from, tulle_index from_type, void *to, tulle_index to_type, int64_t count,
              int64_t by)
{
#define SHIFT(FROM, TO)                                                                           \
    do {                                                                                          \
        const FROM *in = from;                                                                    \
        TO *out = to;                                                                             \
        for (int64_t k = 0; k < count; k++) out[k] = (TO)((uint64_t)in[k] + (uint64_t)by);        \
    } while (0)
    if (from_type == TULLE_I32 && to_type == TULLE_I32) SHIFT(int32_t, int32_t);
    else if (from_type == TULLE_I32) SHIFT(int32_t, int64_t);
    else if (to_type == TULLE_I32) SHIFT(int64_t, int32_t);
    else SHIFT(int64_t, int64_t);
#undef SHIFT
}
