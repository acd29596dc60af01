/* SPDX-License-Identifier: MIT
 *
 * number_print.c - the shortest decimals that read back as the same number.
 *
 * R. Giulietti's Schubfach (2020): the numbers that round to v = c * 2^q form an interval; scaled by a
 * power of ten chosen so that the interval is between one and ten wide, it contains a whole number with
 * the fewest digits, and three 128-bit products find it.  Among equally short ones the nearest to v is
 * taken.  Integers below 2^53 are printed as such.  Memory: none. */
#include "matrix/files.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct { uint64_t digits; int exponent; } decimal;      /* digits * 10^exponent */

int tl_print_index(char *out, int64_t value)
{
    char back[24];
    int n = 0, length = 0;
    uint64_t v = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0) out[length++] = '-';
    do {
        back[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (n > 0) out[length++] = back[--n];
    return length;
}

#if defined(__SIZEOF_INT128__)

/* g * c / 2^128 with the last bit set where anything was cut off */
static uint64_t scaled(tl_pow10 g, uint64_t c)
{
    uint64_t x = (uint64_t)(((unsigned __int128)g.lo * c) >> 64);
    unsigned __int128 y = (unsigned __int128)g.hi * c + x;
    return (uint64_t)(y >> 64) | ((uint64_t)y > 1);
}

/* 10^k rounded up */
static tl_pow10 power_up(int k)
{
    tl_pow10 g = tl_pow10_table[k - TL_POW10_MIN];
    if (k < -27 || k > 55) {
        g.lo++;
        if (g.lo == 0) g.hi++;
    }
    return g;
}

/* c * 2^q; closer: the number below is half as far away as the one above */
static decimal shortest(uint64_t c, int q, bool closer)
{
    uint64_t open = c & 1;                      /* ties go to the even number: its interval is closed */
    int k = (q * 1262611 - (closer ? 524031 : 0)) >> 22;        /* floor(log10(2^q or 3/4 2^q)) */
    int h = q + ((-k * 1741647) >> 19) + 1;
    tl_pow10 g = power_up(-k);
    uint64_t below = scaled(g, (4 * c - 2 + closer) << h) + open;
    uint64_t here = scaled(g, (4 * c) << h);
    uint64_t above = scaled(g, (4 * c + 2) << h) - open;
    uint64_t s = here / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool down = below <= 40 * tens, up = 40 * tens + 40 <= above;
        if (down != up) return (decimal){tens + up, k + 1};
    }
    bool down = below <= 4 * s, up = 4 * s + 4 <= above;
    if (down != up) return (decimal){s + up, k};
    uint64_t middle = 4 * s + 2;
    return (decimal){s + (here > middle || (here == middle && (s & 1))), k};
}

static int print_decimal(char *out, decimal d)
{
    char text[24];
    while (d.digits % 10000 == 0) {
        d.digits /= 10000;
        d.exponent += 4;
    }
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    int n = tl_print_index(text, (int64_t)d.digits);
    int point = n + d.exponent;                 /* digits before the point */
    char *p = out;
    if (point > 0 && point <= 17) {
        int whole = n < point ? n : point;
        memcpy(p, text, (size_t)whole);
        p += whole;
        for (int i = n; i < point; i++) *p++ = '0';
        if (n > point) {
            *p++ = '.';
            memcpy(p, text + point, (size_t)(n - point));
            p += n - point;
        }
    } else if (point <= 0 && point > -4) {
        *p++ = '0';
        *p++ = '.';
        for (int i = point; i < 0; i++) *p++ = '0';
        memcpy(p, text, (size_t)n);
        p += n;
    } else {
        *p++ = text[0];
        if (n > 1) {
            *p++ = '.';
            memcpy(p, text + 1, (size_t)(n - 1));
            p += n - 1;
        }
        *p++ = 'e';
        p += tl_print_index(p, point - 1);
    }
    return (int)(p - out);
}

/* Zero, integers, infinities and NaN, which are printed alike for both widths; 0: none of these. */
static int print_plain(char *out, double value)
{
    if (value >= -9007199254740992.0 && value <= 9007199254740992.0) {
        int64_t whole = (int64_t)value;
        if ((double)whole != value) return 0;
        if (whole == 0 && signbit(value)) {
            memcpy(out, "-0", 2);
            return 2;
        }
        return tl_print_index(out, whole);
    }
    const char *word = value != value ? "nan" : value == HUGE_VAL ? "inf"
                     : value == -HUGE_VAL ? "-inf" : "";
    memcpy(out, word, strlen(word));
    return (int)strlen(word);
}

int tl_print_double(char *out, double value)
{
    int n = print_plain(out, value);
    if (n > 0) return n;
    uint64_t bits;
    memcpy(&bits, &value, 8);
    uint64_t fraction = bits & 0xFFFFFFFFFFFFFu;
    int exponent = (int)(bits >> 52) & 0x7FF;
    if (bits >> 63) out[n++] = '-';
    if (exponent == 0) return n + print_decimal(out + n, shortest(fraction, -1074, false));
    return n + print_decimal(out + n, shortest(fraction | (uint64_t)1 << 52, exponent - 1075,
                                               fraction == 0 && exponent > 1));
}

int tl_print_float(char *out, float value)
{
    int n = print_plain(out, (double)value);
    if (n > 0) return n;
    uint32_t bits;
    memcpy(&bits, &value, 4);
    uint32_t fraction = bits & 0x7FFFFFu;
    int exponent = (int)(bits >> 23) & 0xFF;
    if (bits >> 31) out[n++] = '-';
    if (exponent == 0) n += print_decimal(out + n, shortest(fraction, -149, false));
    else n += print_decimal(out + n, shortest(fraction | 1u << 23, exponent - 150,
                                              fraction == 0 && exponent > 1));
    /* Rounding to double and then to float can miss (7.038531e-26): then the digits of the double. */
    double read;
    out[n] = '\n';
    char text[TL_NUMBER_MAX + TL_TEXT_PAD];
    memcpy(text, out, (size_t)n + 1);
    memset(text + n + 1, 0, sizeof text - (size_t)n - 1);
    tl_parse_double(text, &read);
    return (float)read == value ? n : tl_print_double(out, (double)value);
}

#else

/* Without 128-bit products: tries 1 to 17 digits until one reads back.  printf's decimal point may be a
 * comma. */
static int print_trying(char *out, double value, bool narrow)
{
    char text[64 + TL_TEXT_PAD];
    for (int precision = 1; precision <= 17; precision++) {
        memset(text, 0, sizeof text);
        int n = snprintf(text, 64, "%.*g", precision, value);
        for (int i = 0; i < n; i++)
            if (text[i] == ',') text[i] = '.';
        text[n] = '\n';
        double read = 0;
        if (value == value) tl_parse_double(text, &read);
        if (value != value || (narrow ? (float)read == (float)value : read == value) || precision == 17) {
            memcpy(out, text, (size_t)n);
            return n;
        }
    }
    return 0;
}

int tl_print_double(char *out, double value) { return print_trying(out, value, false); }
int tl_print_float(char *out, float value) { return print_trying(out, (double)value, true); }

#endif
