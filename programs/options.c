/* SPDX-License-Identifier: MIT
 *
 * options.c - one table of options for all subcommands: name, letter, kind of value, where it is stored,
 * which subcommands accept it, and its line of help.  Parsing, usage and "did you mean" all use this
 * table. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { FLAG, WORD, NUMBER, BYTES, TYPE, INDEX } kind;

typedef struct option {
    const char *name;
    char        letter;
    kind        kind;
    const char *value;                  /* as help shows it */
    size_t      where;
    int         number, most;           /* FLAG: what to set; NUMBER: 1..most */
    unsigned    commands;
    const char *text;
} option;

#define AT(member) offsetof(options, member)

enum {                                  /* the named benchmarks accept some of the options of bench */
    TIMES   = FOR_BENCH | FOR_TIMES,
    BENCHES = FOR_BENCH | FOR_TIMES | FOR_MERGES | FOR_MEMORY | FOR_ACCUMULATORS | FOR_SCALING,
    PAIRS   = FOR_MULTIPLY | FOR_EXPLAIN | TIMES | FOR_MEMORY,
    LOADS   = PAIRS | FOR_INFO | FOR_CONVERT | FOR_SPY | FOR_SPMM | FOR_TUNE | FOR_SCALING,
    TYPED   = LOADS | FOR_GEN,
    REPEATS = FOR_MULTIPLY | FOR_SPMM | TIMES | FOR_MERGES | FOR_ACCUMULATORS | FOR_SCALING,
    FORCED  = FOR_MULTIPLY | FOR_EXPLAIN | TIMES | FOR_ACCUMULATORS,
    WORKS   = TYPED | BENCHES,
    CACHES  = FOR_CACHE | FOR_KEPT,
    REPORTS = PAIRS | BENCHES | FOR_SPMM | FOR_TUNE | FOR_INFO | FOR_GEN | FOR_CONVERT | FOR_DEVICES | CACHES
              | FOR_VERSION | FOR_LISTS
};

static const option table[] = {
    {"output", 'o', WORD, "FILE", AT(output), 0, 0, FOR_MULTIPLY | FOR_GEN | FOR_CONVERT,
     "write the result there: .mtx, .mtx.gz or .tulle"},
    {"output", 'o', WORD, "FILE", AT(output), 0, 0, FOR_SPY,
     "write a picture there: .png"},
    {"output", 'o', WORD, "FILE", AT(output), 0, 0, FOR_BENCH | FOR_ACCUMULATORS,
     "accumulators: draw the tables there: .png"},
    {"output", 'o', WORD, "FILE", AT(output), 0, 0, FOR_SPMM,
     "write Y there: .npy or .mtx"},
    {"output", 'o', WORD, "FILE", AT(output), 0, 0, FOR_TUNE,
     "of --policy delta: write the decision tree there; TULLE_DELTA_TREE names it to products"},
    {"symmetric", 0, FLAG, NULL, AT(symmetric), 1, 0, FOR_MULTIPLY | FOR_GEN | FOR_CONVERT,
     "write the lower triangle alone, as symmetric or hermitian; refused where the result is not"},
    {"columns", 'n', NUMBER, "N", AT(columns), 0, 1 << 24, FOR_SPMM | FOR_TUNE,
     "columns of a random X; 32 when not given"},
    {"seed", 0, NUMBER, "N", AT(seed), 0, 1 << 30, FOR_SPMM,
     "another random X for each"},
    {"alpha", 0, WORD, "A", AT(alpha), 0, 0, FOR_SPMM,
     "a factor of the product: 1.5, or 1.5,-2 for 1.5-2i"},
    {"beta", 0, WORD, "B", AT(beta), 0, 0, FOR_SPMM,
     "a factor of what Y holds before; 0 when not given"},
    {"y", 0, WORD, "FILE", AT(y), 0, 0, FOR_SPMM,
     "what Y holds before; random when not given"},
    {"column-major", 0, FLAG, NULL, AT(column_major), 1, 0, FOR_SPMM,
     "X and Y column by column, whatever the file has"},
    {"allow-tf32", 0, FLAG, NULL, AT(allow_tf32), 1, 0, FOR_SPMM,
     "a GPU may round floats to 10 bits before it multiplies"},
    {"shape", 0, WORD, "SHAPE", AT(shape), 0, 0, FOR_SPMM,
     "of --policy ellr: T,LC,BLOCK, threads a row, columns at a time, threads of a block"},
    {"map", 0, FLAG, NULL, AT(map), 1, 0, LOADS,
     "map .tulle files in place of copying them; nobody may change them meanwhile"},
    {"threads", 't', NUMBER, "N", AT(threads), 0, 4096, TYPED | FOR_ACCUMULATORS,
     "threads to use; all cores when not given"},
    {"type", 0, TYPE, "TYPE", AT(type), 0, 0, TYPED | FOR_ACCUMULATORS | FOR_CACHE,
     "values as f32, f64, cf32 or cf64; NumPy's names (complex64 ...) are taken, too"},
    {"index", 0, INDEX, "TYPE", AT(index), 0, 0, TYPED | FOR_CACHE,
     "indices as i32 or i64, of operands and result"},
    {"transpose-a", 0, FLAG, NULL, AT(product.op_a), TULLE_TRANSPOSE, 0, PAIRS | FOR_CONVERT | FOR_SPMM,
     "take the transpose of A"},
    {"transpose-b", 0, FLAG, NULL, AT(product.op_b), TULLE_TRANSPOSE, 0, PAIRS,
     "take the transpose of B"},
    {"adjoint-a", 0, FLAG, NULL, AT(product.op_a), TULLE_ADJOINT, 0, PAIRS | FOR_CONVERT | FOR_SPMM,
     "take the conjugate transpose of A"},
    {"adjoint-b", 0, FLAG, NULL, AT(product.op_b), TULLE_ADJOINT, 0, PAIRS,
     "take the conjugate transpose of B"},
    {"memory-limit", 'm', BYTES, "SIZE", AT(product.memory_limit), 0, 0, FOR_MULTIPLY | TIMES | FOR_MEMORY,
     "at most so much for C and workspace: 500M, 2G"},
    {"memory-limit", 'm', BYTES, "SIZE", AT(product.memory_limit), 0, 0, FOR_SPMM,
     "at most so much for workspace: 500M, 2G"},
    {"policy", 'p', WORD, "NAME", AT(product.policy), 0, 0, FOR_MULTIPLY | FOR_EXPLAIN,
     "how accumulators are chosen; explain --list shows the names"},
    {"policy", 'p', WORD, "NAME", AT(product.policy), 0, 0, FOR_SPMM,
     "how it is computed: auto, or ellr on a GPU"},
    {"policy", 'p', WORD, "NAME", AT(product.policy), 0, 0, FOR_TUNE,
     "what to tune: ellr, or delta for products of sparse matrices; ellr when not given"},
    {"policy", 'p', WORD, "LIST", AT(policies), 0, 0, TIMES,
     "policies to time: names with commas, or all"},
    {"policies", 0, WORD, "LIST", AT(policies), 0, 0, TIMES,
     "the same"},
    {"accumulator", 0, WORD, "NAME", AT(product.accumulator), 0, 0, FORCED,
     "this accumulator for every row"},
    {"drop-zeros", 0, FLAG, NULL, AT(product.drop_zeros), 1, 0, FOR_MULTIPLY | TIMES | FOR_MEMORY,
     "leave entries of C out that came out as zero"},
    {"sort", 0, FLAG, NULL, AT(product.sort_inputs), 1, 0, PAIRS | FOR_CONVERT,
     "accept unsorted rows and duplicates in the operands"},
    {"check", 'c', FLAG, NULL, AT(check), 1, 0, FOR_MULTIPLY | TIMES,
     "verify the product: C*x against A*(B*x) for random x"},
    {"check", 'c', FLAG, NULL, AT(check), 1, 0, FOR_SPMM,
     "verify the product: Y*w against A*(X*w) for random w"},
    {"repeat", 'r', NUMBER, "N", AT(repeat), 0, 1000000, REPEATS,
     "multiply N times and report the median"},
    {"repeat", 'r', NUMBER, "N", AT(repeat), 0, 1000000, FOR_TUNE,
     "multiply N times in each way, 5 when not given, and take the median"},
    {"device", 'd', WORD, "NAME", AT(device), 0, 0, WORKS | FOR_CACHE,
     "where to compute: cpu, cuda:0 ...; \"tulle devices\" lists them; several with commas"},
    {"stages", 0, FLAG, NULL, AT(product.time_stages), 1, 0, FOR_MULTIPLY | TIMES,
     "the time of each stage of the product"},
    {"quick", 0, FLAG, NULL, AT(quick), 1, 0, FOR_BENCH | FOR_MERGES | FOR_ACCUMULATORS,
     "merges, accumulators: fewer entries, for a first look"},
    {"quick", 0, FLAG, NULL, AT(quick), 1, 0, FOR_TUNE,
     "only blocks of 128 threads, for a first look"},
    {"size", 's', NUMBER, "N", AT(size), 0, 16384, FOR_SPY,
     "the longer side: pixels, or characters in the terminal"},
    {"list", 'l', FLAG, NULL, AT(list), 1, 0, FOR_GEN | FOR_EXPLAIN | FOR_LISTS,
     "what there is to choose from"},
    {"clear", 0, FLAG, NULL, AT(clear), 1, 0, CACHES,
     "remove all of them"},
    {"warm", 0, FLAG, NULL, AT(warm), 1, 0, CACHES,
     "compile or load what the device needs for --type and --index, f64 and i32 when not given"},
    {"json", 'j', FLAG, NULL, AT(json), 1, 0, REPORTS,
     "one JSON object instead of a table"},
    {"trace", 0, FLAG, NULL, AT(trace), 1, 0, WORKS | CACHES,
     "each choice in a line on standard error"},
    {"quiet", 'q', FLAG, NULL, AT(quiet), 1, 0, WORKS | CACHES,
     "no report and no progress bar"},
    {"help", 'h', FLAG, NULL, AT(help), 1, 0, ~0u,
     "this text"},
};

enum { COUNT = sizeof table / sizeof *table };
_Static_assert(COUNT <= 64, "each option has its bit in options.given");

static const char *option_word(int i)
{
    return i < COUNT ? table[i].name : NULL;
}

void print_options(unsigned bit, FILE *out)
{
    for (int i = 0; i < COUNT; i++) {
        const option *e = &table[i];
        char left[64];
        if (!(e->commands & bit)) continue;
        int n = e->letter ? snprintf(left, sizeof left, "  -%c, ", e->letter)
                          : snprintf(left, sizeof left, "      ");
        snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", e->name, e->value ? " " : "",
                 e->value ? e->value : "");
        fprintf(out, "%-26s %s\n", left, e->text);
    }
}

/* ---- values */

/* Transpose and adjoint of the same operand exclude each other. */
static int set_flag(const option *e, int *to)
{
    for (int i = 0; i < COUNT; i++)
        if (*to && *to != e->number && table[i].where == e->where && table[i].number == *to)
            return complain(END_USAGE, "--%s and --%s exclude each other", table[i].name, e->name);
    *to = e->number;
    return END_OK;
}

static int set_number(const option *e, const char *value, int *to)
{
    char *end;
    errno = 0;
    long n = strtol(value, &end, 10);
    if (end == value || *end || errno || n < 1 || n > e->most)
        return complain(END_USAGE, "--%s takes a whole number from 1 to %d, not \"%s\"", e->name,
                        e->most, value);
    *to = (int)n;
    return END_OK;
}

static int set_bytes(const option *e, const char *value, uint64_t *to)
{
    static const char suffix[] = "KMGTPE";
    char *end;
    double n = strtod(value, &end), scale = 1;
    const char *unit = *end ? strchr(suffix, toupper((unsigned char)*end)) : NULL;
    bool digits = isdigit((unsigned char)value[0]) || value[0] == '.';
    if (unit) {
        scale = ldexp(1, 10 * (int)(unit - suffix + 1));
        end++;
        if (end[0] == 'i' && end[1] == 'B') end += 2;
    }
    if (!digits || end == value || *end || !(n * scale >= 1) || n * scale >= 0x1p63)
        return complain(END_USAGE, "--%s takes a size such as 500M or 2G, not \"%s\"", e->name, value);
    *to = (uint64_t)(n * scale);
    return END_OK;
}

/* The index of value in a list of words, counted from 1. */
static int set_choice(const option *e, const char *value, const char *const *words, const char *all,
                      int *to)
{
    for (int i = 1; words[i]; i++)
        if (strcmp(value, words[i]) == 0) {
            *to = i;
            return END_OK;
        }
    return complain(END_USAGE, "--%s takes %s, not \"%s\"", e->name, all, value);
}

static const char *const type_words[]  = {"", "f32", "f64", "cf32", "cf64", NULL};       /* tulle_type  */
static const char *const numpy_words[] = {"", "float32", "float64", "complex64", "complex128", NULL};
static const char *const index_words[] = {"", "i32", "i64", NULL};                       /* tulle_index */

/* A value type, by tulle's name or NumPy's.  "c64" is refused as ambiguous: it could mean 64 bits in total,
 * or 64 bits for each part. */
static int set_type(const option *e, const char *value, int *to)
{
    for (int i = 1; numpy_words[i]; i++)
        if (strcmp(value, numpy_words[i]) == 0) value = type_words[i];
    if (strcmp(value, "c32") == 0 || strcmp(value, "c64") == 0)
        return complain(END_USAGE, "--%s %s could be one of two types: cf32 (complex64) is complex float, "
                        "cf64 (complex128) is complex double", e->name, value);
    return set_choice(e, value, type_words, "f32, f64, cf32, cf64, or NumPy's float32, float64, complex64, "
                      "complex128", to);
}

const char *type_name(int type)
{
    return type >= TULLE_F32 && type <= TULLE_CF64 ? type_words[type] : "none";
}

const char *index_name(int index)
{
    return index >= TULLE_I32 && index <= TULLE_I64 ? index_words[index] : "none";
}

static int set(const option *e, const char *value, options *o)
{
    void *to = (char *)o + e->where;
    switch (e->kind) {
    case FLAG:   return set_flag(e, to);
    case WORD:   *(const char **)to = value; return END_OK;
    case NUMBER: return set_number(e, value, to);
    case BYTES:  return set_bytes(e, value, to);
    case TYPE:   return set_type(e, value, to);
    case INDEX:  return set_choice(e, value, index_words, "i32 or i64", to);
    }
    return END_USAGE;
}

/* ---- the command line */

static int unknown(const command *c, const char *given, const char *name)
{
    const char *near = *name ? nearest(name, option_word) : NULL;
    if (near)
        return complain(END_USAGE, "%s has no option %s; did you mean --%s?", c->name, given, near);
    return complain(END_USAGE, "%s has no option %s; \"tulle help %s\" lists those it has", c->name,
                    given, c->name);
}

/* The option of that name; if several have it, the one that this command accepts. */
static const option *find(unsigned bit, const char *name, size_t length, char letter)
{
    const option *found = NULL;
    for (int i = 0; i < COUNT; i++) {
        if (!(letter ? table[i].letter == letter
                     : strlen(table[i].name) == length && strncmp(table[i].name, name, length) == 0))
            continue;
        if (!found || (table[i].commands & bit)) found = &table[i];
    }
    return found;
}

/* Parses one argument that begins with '-'; advances *at if the next argument is its value. */
static int parse_one(const command *c, int argc, char **argv, int *at, options *o)
{
    const char *arg = argv[*at], *value = NULL;
    const option *e;
    char name[64];
    if (arg[1] == '-') {
        size_t length = strcspn(arg + 2, "=");
        e = find(c->bit, arg + 2, length, 0);
        if (arg[2 + length] == '=') value = arg + 3 + length;
        snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), arg + 2);
    } else {
        e = find(c->bit, NULL, 0, arg[1]);
        if (arg[2]) value = arg + 2;
        snprintf(name, sizeof name, "%s", arg[2] ? arg + 1 : "");      /* -json: one dash too few */
        if (e && e->kind == FLAG && value) e = NULL;
    }
    if (!e) return unknown(c, arg, name);
    if (!(e->commands & c->bit))
        return complain(END_USAGE, "%s does not take --%s", c->name, e->name);
    if (e->kind == FLAG) {
        if (value) return complain(END_USAGE, "--%s takes no value", e->name);
    } else if (!value) {
        if (*at + 1 >= argc)
            return complain(END_USAGE, "--%s needs a value: --%s %s", e->name, e->name, e->value);
        value = argv[++*at];
    }
    o->given |= (uint64_t)1 << (e - table);
    return set(e, value, o);
}

int check_given(const options *o, unsigned bit, const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if ((o->given >> i & 1) && !(table[i].commands & bit))
            return complain(END_USAGE, "%s does not take --%s", name, table[i].name);
    return END_OK;
}

int check_list(const options *o, const char *name)
{
    if (o->operands > 0)
        return complain(END_USAGE, "%s takes no operand, and \"%s\" is one", name, o->operand[0]);
    return check_given(o, FOR_LISTS, name);
}

int parse_options(const command *c, int argc, char **argv, options *o)
{
    bool options_end = false;
    *o = (options){.command = c->bit};
    for (int at = 0; at < argc; at++) {
        const char *arg = argv[at];
        if (!options_end && strcmp(arg, "--") == 0) {
            options_end = true;
        } else if (!options_end && arg[0] == '-' && arg[1]) {
            int code = parse_one(c, argc, argv, &at, o);
            if (code != END_OK) return code;
        } else if (o->operands == OPERANDS_MAX) {
            return complain(END_USAGE, "more than %d operands", OPERANDS_MAX);
        } else {
            o->operand[o->operands++] = arg;
        }
    }
    if (o->help) return END_OK;
    if (o->operands > c->most)
        return complain(END_USAGE, "%s: \"%s\" is one operand too many; usage: tulle %s %s", c->name,
                        o->operand[c->most], c->name, c->operands);
    if (o->operands < c->least && !o->list)
        return complain(END_USAGE, "%s needs %s; usage: tulle %s %s", c->name,
                        c->least == 1 ? "an operand" : "two operands", c->name, c->operands);
    o->product.c_ptr_type = o->product.c_idx_type = o->index;
    return END_OK;
}

/* ---- names that the library knows */

static int check_name(const char *what, const char *name, words_fn words)
{
    if (!name || listed(name, words)) return END_OK;
    const char *near = nearest(name, words);
    if (near)
        return complain(END_USAGE, "there is no %s \"%s\"; did you mean %s?", what, name, near);
    return complain(END_USAGE, "there is no %s \"%s\"; \"tulle explain --list\" shows them", what, name);
}

int check_names(const options *o)
{
    int code = check_name("policy", o->product.policy, tulle_policy_name);
    if (code == END_OK) code = check_name("accumulator", o->product.accumulator, tulle_accumulator_name);
    if (code != END_OK || !o->policies || strcmp(o->policies, "all") == 0) return code;
    for (const char *at = o->policies; code == END_OK;) {
        char name[64];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < 60 ? length : 60), at);
        code = check_name("policy", name, tulle_policy_name);
        if (!at[length]) break;
        at += length + 1;
    }
    return code;
}

int check_spmm_policy(const options *o)
{
    const char *name = o->product.policy;
    if (!name || listed(name, tulle_spmm_policy_name)) return END_OK;
    const char *near = nearest(name, tulle_spmm_policy_name);
    if (near) return complain(END_USAGE, "spmm has no policy \"%s\"; did you mean %s?", name, near);
    return complain(END_USAGE, "spmm has no policy \"%s\"; \"tulle help spmm\" shows them", name);
}
