/* SPDX-License-Identifier: MIT
 * hard_double.h - doubles that are hard to print and to read: first a list, then random bits. */
#ifndef TULLE_HARD_DOUBLE_H
#define TULLE_HARD_DOUBLE_H
#include <math.h>
#include <stdint.h>
#include <string.h>

static double hard_double(int i, uint64_t bits)
{
    static const double list[] = {
        0.0, -0.0, 0.1, 1.0 / 3, 5e-324, 2.2250738585072009e-308, 2.2250738585072014e-308, 1.7976931348623157e308,
        1e308, 1e22, 1e23, 9007199254740991.0, 9007199254740993.0, 123456789012345680.0, -1e-5, 0.001, 1e17, 1e16,
        INFINITY, -INFINITY, 1e-7, 4294967296.0};
    if (i < (int)(sizeof list / sizeof *list)) return list[i];
    if (i % 5 == 0) bits &= 0x800FFFFFFFFFFFFFu;        /* subnormal */
    if (i % 7 == 0) bits &= 0xFFF0000000000000u;        /* a power of two */
    if (i % 3 == 0) bits = (bits & 0x000FFFFFFFFFFFFFu) | (uint64_t)(1023 - 30 + bits % 60) << 52;
    double v;
    memcpy(&v, &bits, 8);
    return isnan(v) ? 1.5 : v;
}

#endif
