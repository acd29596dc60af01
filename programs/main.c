/* SPDX-License-Identifier: MIT
 *
 * main.c - the command `tulle`: a table of subcommands, and help made from it. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

const command commands[] = {
    {"multiply", FOR_MULTIPLY, run_multiply, 1, 2, "A [B]", "multiply two sparse matrices",
     "C = A*B.  A alone is multiplied by itself: A*A when it is square, else A*A^T.\n"
     "A product that a memory limit refuses is written in blocks of rows when -o names a .mtx or .tulle "
     "file.\n"},
    {"spmm", FOR_SPMM, run_spmm, 1, 2, "A [X]", "multiply a sparse matrix by a dense one",
     "Y = alpha*A*X + beta*Y.  X is a .npy file or an array in a Matrix Market file; without it X is "
     "random.\n"},
    {"tune", FOR_TUNE, run_tune, 1, OPERANDS_MAX, "A | --policy delta -o FILE A|FOLDER...",
     "find the best shape of a sparse times dense product on a GPU",
     "Times --policy ellr (FastSpMM) with every number of threads a row, columns at a time and threads of a "
     "block, and\n"
     "--policy auto beside it.  A, X and Y are on the device before; the times are those of the device.\n"
     "--policy delta: each matrix, or each one of a folder, is multiplied by itself with and without bins of "
     "rows; two of\n"
     "three grow a decision tree for each step, the third ones judge it, and it is written to FILE.\n"},
    {"info", FOR_INFO, run_info, 1, 1, "A", "what a matrix looks like",
     "Shape, types, row lengths, bandwidth, symmetry, and what its product with itself would take.\n"},
    {"explain", FOR_EXPLAIN, run_explain, 1, 2, "A [B]", "what would be chosen for a product, and why",
     "Nothing is computed.  --list shows all policies and accumulators.\n"},
    {"gen", FOR_GEN, run_gen, 1, 1, "RECIPE -o FILE", "make a matrix of the gallery",
     "--list shows the recipes.\n"},
    {"convert", FOR_CONVERT, run_convert, 1, 2, "FROM TO", "write a matrix in another format or type",
     ""},
    {"spy", FOR_SPY, run_spy, 1, 1, "A [-o FILE.png]", "draw where the entries of a matrix are",
     "Without -o the picture is drawn in characters.\n"},
    {"bench", FOR_BENCH, run_bench, 1, OPERANDS_MAX,
     "A... | merges | memory A... | accumulators | scaling A...",
     "time repeated products",
     "Each operand is multiplied by itself, or by its transpose when it is not square.\n"
     "merges: five ways to merge sorted sequences in a GPU's shared memory.\n"
     "memory: bytes of the product when C is counted first, when it grows, and when all products are "
     "stored.\n"
     "accumulators: products a second of each, by size of rows and compression; -o FILE.png draws it.\n"
     "scaling: what 2 to 8 devices would give, predicted from parts that are timed one by one.\n"},
    {"devices", FOR_DEVICES, run_devices, 0, 0, "", "list where products can be computed", ""},
    {"cache", FOR_CACHE, run_cache, 0, 0, "", "show, make or clear the kernels kept on disk",
     "Kernels compiled for a GPU are kept in $TULLE_CACHE, or $XDG_CACHE_HOME/tulle, or ~/.cache/tulle.\n"
     "Those that were compiled with the library itself are counted as embedded.\n"
     "A folder that belongs to somebody else or that others can write is not used.\n"},
    {"version", FOR_VERSION, run_version, 0, 0, "", "print the version", ""},
    {"help", FOR_HELP, run_help, 0, 1, "[COMMAND]", "explain the command or a subcommand", ""},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL},
};

const char *command_name(int i)
{
    return commands[i].name;
}

static const command *find(const char *name)
{
    for (int i = 0; commands[i].name; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *near = nearest(name, command_name);
    if (near) return complain(END_USAGE, "there is no command \"%s\"; did you mean %s?", name, near);
    return complain(END_USAGE, "there is no command \"%s\"; \"tulle help\" lists them", name);
}

static void print_usage(FILE *out)
{
    fprintf(out, "tulle %s multiplies sparse matrices.\n\n", tulle_version());
    fprintf(out, "usage: tulle COMMAND [OPTION]... OPERAND...\n\n");
    for (int i = 0; commands[i].name; i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].text);
    fputs("\nAn operand is a file (.mtx, .mtx.gz, .tar.gz, .tulle) or a recipe such as poisson2d:1000;\n"
          "A.tar.gz:NAME is a member of an archive, gen:RECIPE always a recipe, - standard input.\n"
          "\"tulle help COMMAND\" says more.\n\nexit codes\n", out);
    print_ends(out);
    fprintf(out, "\ntry: tulle multiply poisson2d:1000 --check\n");
}

static void print_help(const command *c)
{
    printf("tulle %s: %s\n\nusage: tulle %s [OPTION]... %s\n%s%s\n", c->name, c->text, c->name,
           c->operands, *c->more ? "\n" : "", c->more);
    print_options(c->bit, stdout);
}

int run_help(const options *o)
{
    const command *c = o->operands > 0 ? find(o->operand[0]) : NULL;
    if (o->operands > 0 && !c) return unknown(o->operand[0]);
    if (c) print_help(c);
    else print_usage(stdout);
    return END_OK;
}

static const command *command_of(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return find("help");
    if (strcmp(word, "--version") == 0) return find("version");
    return find(word);
}

/* Flushes standard output; an earlier flush may have failed, too. */
static int end_of_output(void)
{
    bool failed = fflush(stdout) != 0;
    const char *why = failed ? strerror(errno) : "some of it was lost";
    if (!failed && !ferror(stdout)) return END_OK;
    if (signal_caught()) return signal_end();
    return complain(END_FAILED, "standard output cannot be written: %s", why);
}

/* If standard input, output or error is closed when the program starts, the next file that is opened gets its
 * descriptor, and messages for standard error would be written to that file.  So such a descriptor is
 * occupied, opened for the wrong direction, so that using the stream still fails. */
static void take_closed_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    options o;
    take_closed_streams();
    if (argc < 2) {
        print_usage(stderr);
        return END_USAGE;
    }
    const command *c = command_of(argv[1]);
    if (!c && argv[1][0] == '-')
        return complain(END_USAGE, "the first word is a command, not %s; \"tulle help\" lists them",
                        argv[1]);
    if (!c) return unknown(argv[1]);
    int code = parse_options(c, argc - 2, argv + 2, &o);
    if (code != END_OK) return code;
    signal_watch();
    if (o.help) print_help(c);
    else code = c->run(&o);
    return code == END_OK ? end_of_output() : code;
}
