/* SPDX-License-Identifier: MIT
 *
 * test_numbers.c - decimals to double and back, compared with strtod() and printf(), which are correct in
 * the C locale. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include "matrix/files.h"
#include "hard_double.h"
#include "test.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x9E3779B97F4A7C15u;
}

static double parse(const char *text)
{
    char padded[2048];
    double v = 0;
    size_t n = strlen(text);
    memset(padded, 0, sizeof padded);
    memcpy(padded, text, n);
    padded[n] = '\n';
    const char *end = tl_parse_double(padded, &v);
    CHECK(end == padded + n, "%s was not read to its end", text);
    return v;
}

static void decimals_are_rounded_correctly(void)
{
    static const char *const hard[] = {
        "0", "-0", "0.1", ".5", "5.", "+3", "1e308", "1.7976931348623157e308", "1.7976931348623159e308",
        "2.2250738585072014e-308", "2.2250738585072011e-308", "4.9e-324", "2.4703282292062327e-324",
        "2.4703282292062328e-324", "1e-400", "1e400", "9007199254740993", "9007199254740992.999999999999999999",
        "9007199254740993.00000000000000000000000000000000001",
        "0.500000000000000166533453693773481063544750213623046875",
        "3.518437208883201171875e13", "62.5364939768271845828", "8.10109172351e-10",
        "1.50000000000000011102230246251565",
        "7.8459735791271921e65", "123456789012345678901234567890",
        "0.000000000000000000000000000000000000001234567890123456789",
        "179769313486231580793728971405301199e273", "6.631236846766476e-316",
        "1e23", "8.5e22", "1e22", "1e-22", "1E+05",
        "00000000000000000000001.5", "1e0000000000000000005", "0e999999999999", "1e-999999999999",
    };
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        double want = strtod(hard[i], NULL), got = parse(hard[i]);
        CHECK(memcmp(&want, &got, 8) == 0, "%s: %a, not %a", hard[i], got, want);
    }
    CHECK(parse("1D5") == 1e5 && parse("1d-2") == 0.01, "Fortran's exponents");
    CHECK(isnan(parse("nan")) && isnan(parse("NaN")), "nan");
    CHECK(parse("-Inf") == -INFINITY && parse("+infinity") == INFINITY, "inf");
    for (int i = 0; i < 100000; i++) {
        char text[128];
        int n = 0, count = 1 + (int)(next_random() % 26), point = (int)(next_random() % 27);
        for (int k = 0; k < count; k++) {
            if (k == point) text[n++] = '.';
            text[n++] = (char)('0' + next_random() % 10);
        }
        text[n] = 0;
        if (next_random() % 2) sprintf(text + n, "e%d", (int)(next_random() % 700) - 350);
        double want = strtod(text, NULL), got = parse(text);
        CHECK(memcmp(&want, &got, 8) == 0, "%s: %a, not %a", text, got, want);
    }
}

/* Numbers exactly between two neighbours: 2m+1 times a power of two, with all digits. */
static void ties_go_to_the_even_neighbour(void)
{
    for (int i = 0; i < 2000; i++) {
        uint64_t mantissa = (uint64_t)1 << 52 | next_random() >> 12;
        int exponent = (int)(next_random() % 60) - 50;
        char text[512];
        long double half = ldexpl((long double)(2 * mantissa + 1), exponent);
        snprintf(text, sizeof text, "%.60Lf", half);
        double even = ldexp((double)(mantissa + (mantissa & 1)), exponent + 1), got = parse(text);
        CHECK(LDBL_MANT_DIG < 64 || got == even, "%s: %a, not %a", text, got, even);
        text[strlen(text) - 1] = '1';           /* a little more than half */
        got = parse(text);
        CHECK(LDBL_MANT_DIG < 64 || got == ldexp((double)(mantissa + 1), exponent + 1), "%s: %a", text, got);
    }
}

static void printed_decimals_are_the_shortest(void)
{
    for (int i = 0; i < 20000; i++) {
        double v = hard_double(i, next_random());
        char text[64] = "", other[64];
        text[tl_print_double(text, v)] = 0;
        double back = strtod(text, NULL);
        CHECK(memcmp(&v, &back, 8) == 0, "%a was printed as %s", v, text);
        if (isinf(v) || v == 0) continue;
        int digits = 0, zeros = 0, least = 1;
        for (const char *p = text; *p && *p != 'e'; p++) {
            if (*p < '0' || *p > '9' || (digits == 0 && *p == '0')) continue;
            digits++;
            zeros = *p == '0' ? zeros + 1 : 0;
        }
        for (; least < 17; least++) {
            snprintf(other, sizeof other, "%.*e", least - 1, v);
            if (strtod(other, NULL) == v) break;
        }
        CHECK(digits - zeros <= least, "%s has more digits than %s", text, other);
    }
}

static void a_decimal_comma_in_the_locale_disturbs_nothing(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR", "pl_PL.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < 5 && !found; i++) found = setlocale(LC_ALL, names[i]) != NULL;
    CHECK(parse("1.5") == 1.5, "1.5");
    CHECK(parse("2.4703282292062328e-324") == 5e-324, "a number that strtod() must decide");
    CHECK(parse("0.500000000000000166533453693773481063544750213623046875") == 0.50000000000000022, "a tie");
    char text[64] = "";
    text[tl_print_double(text, 0.25)] = 0;
    CHECK(strcmp(text, "0.25") == 0, "%s", text);
    setlocale(LC_ALL, "C");
}

/* 10^q for small q is an exact integer, and consecutive powers differ by a factor of ten. */
static void the_table_of_powers_is_right_where_it_can_be_checked(void)
{
    uint64_t power = 1;
    for (int q = 0; q <= 19; q++) {
        uint64_t top = power;
        while (!(top >> 63)) top <<= 1;
        tl_pow10 entry = tl_pow10_table[q - TL_POW10_MIN];
        CHECK(entry.hi == top && entry.lo == 0, "10^%d", q);
        power *= 10;
    }
    for (int q = TL_POW10_MIN; q < TL_POW10_MAX; q++) {
        long double a = (long double)tl_pow10_table[q - TL_POW10_MIN].hi;
        long double b = (long double)tl_pow10_table[q + 1 - TL_POW10_MIN].hi;
        long double ratio = b / a;                      /* 10/8 or 10/16 */
        CHECK(fabsl(ratio - 1.25L) < 1e-18L || fabsl(ratio - 0.625L) < 1e-18L, "10^%d: %Lg", q, ratio);
    }
}

static void indices_are_digits_that_fit(void)
{
    static const struct { const char *text; int64_t value; int length; } good[] = {
        {"0\n                 ", 0, 1},         {"7 \n                ", 7, 1},
        {"12345678\n          ", 12345678, 8},  {"123456789\n         ", 123456789, 9},
        {"000000000000000000000000000012 \n                ", 12, 30},
        {"9223372036854775807\n            ", INT64_MAX, 19},
    };
    static const char *const bad[] = {"\n                ", "-1\n               ", "+1\n               ",
                                      "9223372036854775808\n           ",
                                      "99999999999999999999\n           ", "x\n           "};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t v = -1;
        char text[96] = "";
        strcpy(text, good[i].text);
        CHECK(tl_parse_index(text, &v) == text + good[i].length && v == good[i].value, "%s", text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t v = -1;
        char text[96] = "";
        strcpy(text, bad[i]);
        CHECK(tl_parse_index(text, &v) == NULL, "%s", text);
    }
    for (int64_t v = 1; v < INT64_MAX / 11; v *= 10)
        for (int64_t d = -1; d <= 1; d++) {
            char text[96] = "";
            int64_t back = -1;
            text[tl_print_index(text, v + d)] = '\n';
            CHECK(tl_parse_index(text, &back) && back == v + d, "%s", text);
        }
}

TEST_MAIN(TEST(decimals_are_rounded_correctly), TEST(ties_go_to_the_even_neighbour),
          TEST(printed_decimals_are_the_shortest), TEST(a_decimal_comma_in_the_locale_disturbs_nothing),
          TEST(the_table_of_powers_is_right_where_it_can_be_checked), TEST(indices_are_digits_that_fit))
