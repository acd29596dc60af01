/* SPDX-License-Identifier: MIT
 *
 * ranks.c - `mpirun -n 4 tulle multiply A.tulle`: one product by several processes.
 *
 * Whether mpirun launched us is seen in the environment, before MPI is needed; then libtulle_mpi is opened,
 * the one that was built with the MPI of that mpirun.  The plain command needs no MPI.  Rank 0 speaks for
 * all: the others have the same result, the same sentence and the same exit code, and are silent.
 *
 * A .tulle file is read by all ranks, each its rows; any other operand is read or made by each rank, which
 * keeps its own rows. */
#define _GNU_SOURCE
#include "program.h"
#include "tulle_mpi.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What launchers tell: how many, which, how many on this machine; and the library for their MPI. */
static const struct { const char *size, *rank, *here, *library; } launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "libtulle_mpi_openmpi.so"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "libtulle_mpi_mpich.so"},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

static int launcher(void)
{
    for (int k = 0; k < LAUNCHERS; k++)
        if (number_of(launchers[k].size) > 1) return k;
    return -1;
}

bool ranks_launched(void)
{
    return launcher() >= 0;
}

/* ---- the library */

typedef int (*begin_fn)(tulle_transport *);

/* Beside the command, in the folder of libraries beside that, or where the loader looks. */
static begin_fn open_library(const char *name, char *why, size_t bytes)
{
    static const char *const places[] = {"", "/../lib/x86_64-linux-gnu", "/../lib", NULL};
    char self[1024] = "", path[1400];
    const char *only = getenv("TULLE_LIBMPI");
    void *library = only && *only ? dlopen(only, RTLD_NOW | RTLD_GLOBAL) : NULL, *symbol = NULL;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;
    if (slash) *slash = 0;
    for (int k = 0; places[k] && !library && !(only && *only) && slash; k++) {
        snprintf(path, sizeof path, "%s%s/%s", self, places[k], name);
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    if (!library && !(only && *only)) library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (library) symbol = dlsym(library, "tulle_mpi_begin");
    if (!symbol) snprintf(why, bytes, "%s", dlerror());
    begin_fn begin = NULL;
    memcpy(&begin, &symbol, sizeof begin);
    return begin;
}

/* One report: the first rank's. */
static int be_silent(int which)
{
    if (number_of(launchers[which].rank) == 0) return END_OK;
    return freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr) ? END_OK : END_FAILED;
}

/* ---- one command on all ranks */

/* Ranks may be started with different command lines.  Other paths, devices and limits are their right; but
 * where one did not go the way of the others, they would wait for each other for ever. */
static int same_way(const tulle_transport *t, const options *o)
{
    const struct { const char *what; int64_t number; } way[] = {
        {"the number of operands", o->operands}, {"--output", o->output != NULL},
        {"what is read as a .tulle file", ends_with(o->operand[0], ".tulle")
         + 2 * (o->operands > 1 && ends_with(o->operand[1], ".tulle"))},
        {"a .tulle file as output", o->output && ends_with(o->output, ".tulle")},
        {"the operands' transposes", 4 * (int64_t)o->product.op_a + o->product.op_b},
        {"--type", o->type}, {"--index", o->index}, {"--check", o->check}, {"--repeat", o->repeat},
        {"--symmetric", o->symmetric},
    };
    enum { WAYS = sizeof way / sizeof *way };
    int64_t least[2 * WAYS];
    for (int k = 0; k < WAYS; k++) {
        least[2 * k] = way[k].number;
        least[2 * k + 1] = -way[k].number;
    }
    if (t->allreduce(t->user, least, 2 * WAYS, TULLE_MIN) != 0)
        return complain(END_FAILED, "the ranks cannot talk to each other: %s", t->why(t->user));
    for (int k = 0; k < WAYS; k++)
        if (least[2 * k] != -least[2 * k + 1])
            return complain(END_USAGE, "the ranks were started with different commands: %s is not the same",
                            way[k].what);
    return END_OK;
}

/* A step has ended well on all ranks, or all leave.  code: how it did here, which was told here.  What one
 * rank alone knows, a signal or the failure of a step that is no collective, comes to rank 0, which says
 * it. */
static int all_well(const tulle_transport *t, int code)
{
    enum { WHO, CODE, FIRST };
    int64_t most[] = {code == END_OK ? -1 : t->rank, code, t->rank == 0 ? code : 0};
    char why[1024] = "";
    if (t->allreduce(t->user, most, sizeof most / sizeof *most, TULLE_MAX) != 0)
        return code != END_OK ? code
                              : complain(END_FAILED, "ranks have lost each other: %s", t->why(t->user));
    if (most[WHO] < 0 || most[FIRST] != END_OK) return code != END_OK ? code : (int)most[CODE];
    int who = (int)most[WHO];
    snprintf(why, sizeof why, "%s", complained());
    bool sent = t->rank != who || t->isend(t->user, why, sizeof why, 0, 0) == 0;
    if (t->rank == 0 && t->irecv(t->user, why, sizeof why, who, 0) != 0) sent = false;
    if (t->waitall(t->user) != 0 || !sent) snprintf(why, sizeof why, "it has failed");
    why[sizeof why - 1] = 0;
    return code != END_OK ? code : complain((int)most[CODE], "rank %d: %s", who, why);
}

static int all_told(session *s, const tulle_transport *t, tulle_status status)
{
    return all_well(t, told(s, status));
}

/* ---- operands */

typedef struct part {                   /* this rank's rows of an operand */
    tulle_dist_matrix *own;
    tulle_matrix      *converted;
    tulle_dist_csr     view;
} part;

static void part_free(part *p)
{
    tulle_dist_matrix_free(p->own);
    tulle_matrix_free(p->converted);
}

static int part_convert(session *s, const tulle_transport *t, part *p, int type, int index)
{
    tulle_matrix *now = NULL;
    int code = all_told(s, t, tulle_csr_convert(s->ctx, &p->view.local, (tulle_type)type, 0,
                                                (tulle_index)index, &now));
    if (code != END_OK) {
        tulle_matrix_free(now);
        return code;
    }
    tulle_matrix_free(p->converted);
    p->converted = now;
    p->view.local = tulle_matrix_view(now);
    return END_OK;
}

static int part_load(session *s, tulle_dist *d, const tulle_transport *t, const char *name, part *p)
{
    int code = END_OK;
    if (ends_with(name, ".tulle")) {
        GO(all_told(s, t, tulle_dist_read(d, name, NULL, &p->own)));
    } else {
        operand whole = {0};
        int64_t *starts = calloc((size_t)t->size + 1, sizeof *starts);
        code = starts ? operand_load(s, name, &whole) : complain(END_MEMORY, "no memory for row blocks");
        code = all_well(t, code);
        if (code == END_OK) {
            tulle_dist_split(whole.view.rows, t->size, starts);
            code = all_told(s, t, tulle_dist_scatter(d, &whole.view, starts, &p->own));
        }
        operand_free(&whole);
        free(starts);
        if (code != END_OK) goto done;
    }
    p->view = tulle_dist_matrix_view(p->own);
    if (s->o->type || s->o->index) GO(part_convert(s, t, p, s->o->type, s->o->index));
done:
    return code;
}

static int part_turn(session *s, tulle_dist *d, const tulle_transport *t, int op, part *p)
{
    tulle_dist_matrix *turned = NULL;
    if (op == TULLE_KEEP) return END_OK;
    int code = all_told(s, t, tulle_dist_transpose(d, &p->view, (tulle_op)op, NULL, &turned));
    if (code != END_OK) return code;
    part_free(p);
    *p = (part){.own = turned, .view = tulle_dist_matrix_view(turned)};
    return END_OK;
}

/* ---- the product */

typedef struct outcome {
    part               a, b, c;
    tulle_dist_csr     left, right;
    tulle_options      options;
    tulle_dist_stats   stats;
    const char        *text;
    double             sec, sec_write, error;
    bool               checked, right_result;
} outcome;

static int load_both(session *s, tulle_dist *d, const tulle_transport *t, outcome *r)
{
    int code = END_OK;
    const options *o = s->o;
    r->options = o->product;
    GO(part_load(s, d, t, o->operand[0], &r->a));
    if (o->operands > 1) {
        GO(part_load(s, d, t, o->operand[1], &r->b));
        int type = common_type((int)r->a.view.local.val_type, (int)r->b.view.local.val_type);
        if ((int)r->a.view.local.val_type != type) GO(part_convert(s, t, &r->a, type, 0));
        if ((int)r->b.view.local.val_type != type) GO(part_convert(s, t, &r->b, type, 0));
    }
    bool square = r->a.view.row_starts[t->size] == r->a.view.local.cols;
    int op_a = r->options.op_a, op_b = r->options.op_b;
    if (o->operands == 1 && !square && !op_a && !op_b) op_b = TULLE_TRANSPOSE;
    r->text = o->operands > 1 ? "A*B" : op_a ? "A^T*A" : op_b ? "A*A^T" : "A*A";
    if (o->operands == 1 && (op_a || op_b)) {           /* B is the same matrix, turned otherwise */
        tulle_dist_matrix *turned = NULL;
        GO(all_told(s, t, tulle_dist_transpose(d, &r->a.view, (tulle_op)(op_a ? op_a : op_b), NULL,
                                               &turned)));
        r->b = (part){.own = turned, .view = tulle_dist_matrix_view(turned)};
        r->left = op_a ? r->b.view : r->a.view;
        r->right = op_b ? r->b.view : r->a.view;
    } else {
        GO(part_turn(s, d, t, op_a, &r->a));
        if (o->operands > 1) GO(part_turn(s, d, t, op_b, &r->b));
        r->left = r->a.view;
        r->right = o->operands > 1 ? r->b.view : r->a.view;
    }
    r->options.op_a = r->options.op_b = TULLE_KEEP;
done:
    return code;
}

static int compute(session *s, tulle_dist *d, const tulle_transport *t, outcome *r)
{
    int code = END_OK, runs = s->o->repeat ? s->o->repeat : 1;
    for (int i = 0; i < runs; i++) {
        double begin = seconds();
        tulle_dist_matrix_free(r->c.own);
        r->c.own = NULL;
        GO(all_told(s, t, tulle_dist_multiply(d, &r->left, &r->right, &r->options, &r->c.own)));
        double took = seconds() - begin;
        tulle_dist_stats_get(d, &r->stats);
        if (i == 0 || took < r->sec) r->sec = took;
    }
    r->c.view = tulle_dist_matrix_view(r->c.own);
    if (s->o->check) {
        tulle_status status = tulle_dist_product_check(d, &r->left, &r->right, &r->c.view, &r->error);
        r->checked = true;
        r->right_result = status == TULLE_OK;
        GO(all_told(s, t, status));
    }
done:
    return code;
}

/* Together where the format allows it, else by rank 0 alone. */
static int put(session *s, tulle_dist *d, const tulle_transport *t, outcome *r)
{
    int code = END_OK;
    tulle_matrix *all = NULL;
    double begin = seconds();
    if (ends_with(s->o->output, ".tulle")) {
        GO(all_told(s, t, tulle_dist_write(d, s->o->output, &r->c.view)));
    } else {
        GO(all_told(s, t, tulle_dist_gather(d, &r->c.view, 0, &all)));
        tulle_csr view = tulle_matrix_view(all);
        GO(all_well(t, t->rank == 0 ? output_write(s, s->o->output, &view, NULL) : told(s, TULLE_OK)));
    }
    r->sec_write = seconds() - begin;
done:
    tulle_matrix_free(all);
    return code;
}

static void print_report(const options *o, const outcome *r)
{
    const tulle_dist_stats *t = &r->stats;
    figure x, y;
    tulle_csr c = r->c.view.local;
    c.rows = r->c.view.row_starts[t->ranks];
    c.nnz = t->c_nnz;
    print_operand("C", &(operand){.name = r->text, .view = c});
    printf("\n%-14s %14d   rows in contiguous blocks, rank %d was the slowest\n", "ranks", t->ranks,
           t->slowest);
    printf("%-14s %14s   fastest of %d; waiting at most %s ms\n", "ms", ms_text(x, r->sec), o->repeat
           ? o->repeat : 1,
           ms_text(y, t->sec_wait_most));
    printf("%-14s %14s   %s of them on one rank\n", "products", count_text(x, t->products),
           percent_text(y, (double)t->products_most, (double)t->products));
    printf("%-14s %14.3f   2 * products / time\n", "GFLOPS", ratio(2e-9 * (double)t->products, r->sec));
    printf("%-14s %14s   %.2f of what must move; all of B to all ranks: %s\n",
           t->grid_cols > 1 ? "A, B, C moved" : "B moved", bytes_text(x, t->bytes),
           t->bytes_exact ? (double)t->bytes / (double)t->bytes_exact : 1.0, bytes_text(y, t->bytes_gather));
    if (t->grid_cols > 1)
        printf("%-14s %7dx%-6d   ranks as a grid; in one dimension %s would move\n", "grid",
               t->ranks / t->grid_cols, t->grid_cols, bytes_text(y, t->bytes_1d));
    else if (t->bytes_2d > 0)
        printf("%-14s %14s   at most would move on a grid of ranks\n", "2-D", bytes_text(x, t->bytes_2d));
    if (t->blocks > 1) printf("%-14s %14d   of rows of A, for the memory limit\n", "blocks", t->blocks);
    if (r->checked || o->output) printf("\n");
    if (r->checked)
        printf("check: %s; C*x and A*(B*x) differ by %.1e\n", r->right_result ? "passed" : "FAILED",
               r->error);
    if (o->output && r->right_result) printf("written: %s\n", o->output);
}

static void print_json(const options *o, const outcome *r)
{
    const tulle_dist_stats *t = &r->stats;
    json j;
    tulle_csr c = r->c.view.local;
    c.rows = r->c.view.row_starts[t->ranks];
    c.nnz = t->c_nnz;
    json_begin(&j, "multiply");
    json_text(&j, "product", r->text);
    json_int(&j, "ranks", t->ranks);
    json_open(&j, "c", '{');
    json_csr(&j, &c);
    json_close(&j, '}');
    json_num(&j, "sec_min", r->sec);
    json_num(&j, "sec_wait_most", t->sec_wait_most);
    json_num(&j, "sec_slowest", t->sec_slowest);
    json_int(&j, "slowest", t->slowest);
    json_int(&j, "products", t->products);
    json_int(&j, "products_most", t->products_most);
    json_num(&j, "gflops", ratio(2e-9 * (double)t->products, r->sec));
    json_int(&j, "bytes", (int64_t)t->bytes);
    json_int(&j, "bytes_exact", (int64_t)t->bytes_exact);
    json_int(&j, "bytes_lists", (int64_t)t->bytes_lists);
    json_int(&j, "bytes_gather", (int64_t)t->bytes_gather);
    json_int(&j, "bytes_1d", (int64_t)t->bytes_1d);
    json_int(&j, "bytes_2d", (int64_t)t->bytes_2d);
    json_int(&j, "grid_cols", t->grid_cols);
    json_int(&j, "messages", t->messages);
    json_int(&j, "blocks", t->blocks);
    if (r->checked) json_check(&j, r->right_result, r->error);
    if (o->output && r->right_result) json_output(&j, o->output, r->sec_write);
    json_end(&j);
}

/* One thread a core and rank, unless told otherwise. */
static int share_cores(session *s, int which)
{
    tulle_device cpu;
    int here = number_of(launchers[which].here);
    if (s->o->threads || here < 1 || tulle_device_info(0, &cpu) != TULLE_OK) return END_OK;
    int threads = cpu.threads / here;
    return told(s, tulle_ctx_set_threads(s->ctx, threads > 0 ? threads : 1));
}

/* Standard error of a rank is a pipe to its launcher, which says everything again: whether that is on a
 * terminal is seen where it runs on this machine, above us. */
static bool launcher_on_terminal(void)
{
    char path[64], name[32], line[128];
    long parent = getppid();
    for (int k = 0; k < 5 && parent > 1; k++) {
        snprintf(path, sizeof path, "/proc/%ld/stat", parent);
        FILE *f = fopen(path, "r");
        bool known = f && fgets(line, sizeof line, f);
        if (f) fclose(f);
        if (!known || sscanf(line, "%*d (%31[^)]) %*c %ld", name, &parent) != 2) return false;
        if (strncmp(name, "mpirun", 6) != 0 && strncmp(name, "mpiexec", 7) != 0
            && strncmp(name, "orterun", 7) != 0)
            continue;
        strcpy(strrchr(path, '/'), "/fd/2");
        int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        bool terminal = fd >= 0 && isatty(fd);
        if (fd >= 0) close(fd);
        return terminal;
    }
    return false;
}

/* What one process does before it needs the others. */
static int get_ready(session *s, const options *o, int which)
{
    int code = END_OK;
    bool speaks = number_of(launchers[which].rank) == 0;
    GO(check_names(o));
    GO(output_name(o->output, MATRIX_FILE));
    GO(output_symmetric(o, o->output));
    if (o->product.time_stages) GO(complain(END_USAGE, "--stages is for one process, not for ranks"));
    GO(session_open(s, o));
    if (speaks) GO(output_place(s, o->output));         /* the file is rank 0's, wherever the others are */
    GO(share_cores(s, which));
    s->bar.wanted = speaks && !o->quiet && (s->bar.wanted || launcher_on_terminal());
done:
    return code;
}

/* MPI begins first: a rank that finds no such device, say, would else end in silence. */
int multiply_ranks(const options *o)
{
    int code = END_OK, which = launcher();
    char why[512] = "";
    session s = {0};
    outcome r = {.right_result = true};
    tulle_transport transport = {0};
    tulle_dist *d = NULL;
    GO(be_silent(which));
    begin_fn begin = open_library(launchers[which].library, why, sizeof why);
    if (!begin)
        GO(complain(END_FAILED, "launched as %d ranks, but %s cannot be opened: %s",
                    number_of(launchers[which].size),
                    launchers[which].library, why));
    if (begin(&transport) != 0) GO(complain(END_FAILED, "MPI could not be started"));
    GO(all_well(&transport, get_ready(&s, o, which)));
    GO(same_way(&transport, o));
    GO(all_told(&s, &transport, tulle_dist_create(s.ctx, &transport, NULL, &d)));
    GO(load_both(&s, d, &transport, &r));
    code = compute(&s, d, &transport, &r);
    if (code == END_OK && o->output) code = put(&s, d, &transport, &r);
    if (code != END_OK && code != END_CHECK) goto done;
    if (o->json) print_json(o, &r);
    else if (!o->quiet) print_report(o, &r);
done:
    part_free(&r.a);
    part_free(&r.b);
    part_free(&r.c);
    fflush(stdout);
    if (!d && transport.end) transport.end(transport.user);
    tulle_dist_free(d);
    session_close(&s);
    return code;
}
