/* SPDX-License-Identifier: MIT
 *
 * number.c - decimals to double, correctly rounded, fast, in any locale.
 *
 * Digits are taken eight at a time (one load, three multiplications).  Then, with the digits as a whole
 * number w and the value w * 10^q:
 *   1. w < 2^53 and |q| <= 22: both are exact doubles, so one operation rounds once (Clinger 1990);
 *   2. w of at most 19 digits: the product with a 128-bit power of ten decides, except in rare ties and
 *      among the subnormal numbers (Eisel, Lemire: Number parsing at a gigabyte per second, 2021);
 *   3. more than 19 digits: step 2 for the first 19 digits, and for these plus one; if equal, that is it;
 *   4. else strtod(), with the digits but no decimal point, so that the locale does not matter.
 * Memory: none. */
#include "matrix/files.h"
#include <stdlib.h>
#include <string.h>

static const double small_pow10[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
static const uint64_t whole_pow10[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* The number of leading digits among the eight bytes at p, and their value. */
static inline int eight_digits(const char *p, uint64_t *value)
{
    uint64_t x;
    memcpy(&x, p, 8);
    x ^= 0x3030303030303030u;
    uint64_t other = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
    if (other == 0) {
        x = x * 10 + (x >> 8);
    } else {
        int n = __builtin_ctzll(other) >> 3;
        if (n == 0) return 0;
        x <<= 64 - 8 * n;                       /* the missing digits become leading zeros */
        x = x * 10 + (x >> 8);
        x = (((x & 0x000000FF000000FFu) * 0x000F424000000064u)
             + (((x >> 16) & 0x000000FF000000FFu) * 0x0000271000000001u)) >> 32;
        *value = (uint32_t)x;
        return n;
    }
    x = (((x & 0x000000FF000000FFu) * 0x000F424000000064u)
         + (((x >> 16) & 0x000000FF000000FFu) * 0x0000271000000001u)) >> 32;
    *value = (uint32_t)x;
    return 8;
}
#else
static inline int eight_digits(const char *p, uint64_t *value)
{
    uint64_t v = 0;
    int n = 0;
    while (n < 8 && is_digit(p[n])) v = v * 10 + (uint64_t)(p[n++] - '0');
    if (n > 0) *value = v;
    return n;
}
#endif

/* All digits at p, appended to *whole modulo 2^64. */
static inline const char *digits(const char *p, uint64_t *whole)
{
    uint64_t v;
    int n;
    do {
        n = eight_digits(p, &v);
        if (n == 0) break;
        *whole = *whole * whole_pow10[n] + v;
        p += n;
    } while (n == 8);
    return p;
}

const char *tl_parse_index(const char *p, int64_t *value)
{
    uint64_t v = 0;
    int n = eight_digits(p, &v);
    if (n == 0) return NULL;
    if (n < 8) {
        *value = (int64_t)v;
        return p + n;
    }
    const char *start = p;
    while (*start == '0') start++;
    v = 0;
    p = digits(start, &v);
    /* nineteen digits are less than 2^64 */
    if (p - start > 19 || v > INT64_MAX) return NULL;
    *value = (int64_t)v;
    return p;
}

static double double_of(uint64_t mantissa, int exponent)
{
    uint64_t bits = (mantissa & 0xFFFFFFFFFFFFFu) | (uint64_t)exponent << 52;
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* w * 10^q for w != 0, by a 128-bit product; false where its precision does not suffice to round. */
static bool by_product(uint64_t w, int64_t q, double *value)
{
#if defined(__SIZEOF_INT128__)
    if (q < TL_POW10_MIN || q > 308) return false;
    const tl_pow10 ten = tl_pow10_table[q - TL_POW10_MIN];
    int zeros = __builtin_clzll(w);
    w <<= zeros;
    unsigned __int128 product = (unsigned __int128)w * ten.hi;
    uint64_t hi = (uint64_t)(product >> 64), lo = (uint64_t)product;
    if ((hi & 0x1FF) == 0x1FF) {                /* a carry from the lower half of the power may matter */
        uint64_t more = (uint64_t)(((unsigned __int128)w * ten.lo) >> 64);
        lo += more;
        if (lo < more) hi++;
        if (lo == UINT64_MAX && (q < -27 || q > 55)) return false;
    }
    int top = (int)(hi >> 63);
    uint64_t mantissa = hi >> (top + 9);        /* 54 bits: 53 and one to round by */
    int exponent = (int)((217706 * q) >> 16) + 63 + top - zeros + 1023;
    if (exponent <= 0 || exponent >= 2046) return false;
    if (lo <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1 && mantissa << (top + 9) == hi)
        mantissa &= ~(uint64_t)1;               /* exactly half way: to even */
    mantissa += mantissa & 1;
    mantissa >>= 1;
    if (mantissa >> 53) {
        mantissa >>= 1;
        exponent++;
    }
    *value = double_of(mantissa, exponent);
    return true;
#else
    (void)w, (void)q, (void)value, (void)double_of;
    return false;
#endif
}

/* Any decimal: text is the first digit or point, end the end of the digits, q the written exponent.  At most
 * 780 digits matter; a digit 1 after them stands for all further ones. */
static double by_hand(const char *text, const char *end, int64_t q)
{
    enum { KEEP = 780 };
    char kept[KEEP + 32];
    int n = 0;
    bool more = false, point = false;
    uint64_t w = 0;
    for (const char *p = text; p < end; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (point) q--;
        if (n == 0 && *p == '0') continue;
        if (n < KEEP) {
            if (n < 19) w = w * 10 + (uint64_t)(*p - '0');
            kept[n++] = *p;
        } else {
            more = more || *p != '0';
            q++;
        }
    }
    if (n == 0) return 0.0;
    if (q > 100000) q = 100000;                 /* far out of range either way */
    if (q < -100000) q = -100000;
    double low, high;
    if (n <= 19) {
        if (!more && by_product(w, q, &low)) return low;
    } else if (by_product(w, q + n - 19, &low) && by_product(w + 1, q + n - 19, &high) && low == high) {
        return low;
    }
    if (more) {
        kept[n++] = '1';
        q--;
    }
    kept[n++] = 'e';
    if (q < 0) kept[n++] = '-';
    n += tl_print_index(kept + n, q < 0 ? -q : q);
    kept[n] = 0;
    return strtod(kept, NULL);
}

/* nan, inf, infinity in any case */
static const char *parse_word(const char *p, double *value)
{
    static const struct { const char *word; int length; double value; } words[] = {
        {"infinity", 8, __builtin_inf()},
        {"inf", 3, __builtin_inf()},
        {"nan", 3, __builtin_nan("")},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        int n = 0;
        while (n < words[i].length && (p[n] | 0x20) == words[i].word[n]) n++;
        if (n < words[i].length) continue;
        *value = words[i].value;
        return p + n;
    }
    return NULL;
}

const char *tl_parse_double(const char *p, double *value)
{
    bool negative = *p == '-';
    double v;
    if (*p == '-' || *p == '+') p++;
    const char *text = p;
    uint64_t w = 0;
    int64_t q = 0;
    p = digits(p, &w);
    int64_t count = p - text;
    if (*p == '.') {
        const char *fraction = ++p;
        p = digits(p, &w);
        q = fraction - p;
        count -= q;
    }
    if (count == 0) {
        p = parse_word(text, &v);
        if (!p) return NULL;
        *value = negative ? -v : v;
        return p;
    }
    const char *end = p;
    int64_t written = 0;
    char e = (char)(*p | 0x20);
    if (e == 'e' || e == 'd') {
        const char *sign = p + 1;
        const char *at = sign + (*sign == '-' || *sign == '+');
        if (!is_digit(*at)) return NULL;
        for (; is_digit(*at); at++)
            if (written < 1000000) written = written * 10 + (*at - '0');
        if (*sign == '-') written = -written;
        q += written;
        p = at;
    }
    if (count <= 19) {                          /* then w is all of it */
        if (w >> 53 == 0 && q >= -22 && q <= 22) {
            v = q < 0 ? (double)w / small_pow10[-q] : (double)w * small_pow10[q];
            *value = negative ? -v : v;
            return p;
        }
        if (w == 0) v = 0.0;
        else if (!by_product(w, q, &v)) v = by_hand(text, end, written);
    } else {
        v = by_hand(text, end, written);
    }
    *value = negative ? -v : v;
    return p;
}
