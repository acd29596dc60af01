/* SPDX-License-Identifier: MIT
 *
 * operand.c - turns the operands of a command line into matrices.
 *
 * "gen:NAME..." is a recipe of the gallery, "-" is standard input.  Any other word is a file if it exists,
 * else a recipe.  A single square A means A*A, any other single A means A*A^T. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include <string.h>
#include <unistd.h>

size_t type_size(int type)
{
    static const size_t size[] = {0, 4, 8, 8, 16};
    return type >= TULLE_F32 && type <= TULLE_CF64 ? size[type] : 0;
}

size_t index_size(int index)
{
    return index == TULLE_I64 ? 8 : 4;
}

uint64_t csr_bytes(const tulle_csr *A)
{
    return (uint64_t)(A->rows + 1) * index_size((int)A->ptr_type)
           + (uint64_t)A->nnz * (index_size((int)A->idx_type) + type_size((int)A->val_type));
}

int64_t csr_row(const tulle_csr *A, int64_t i)
{
    return A->ptr_type == TULLE_I32 ? ((const int32_t *)A->row_ptr)[i]
                                    : ((const int64_t *)A->row_ptr)[i];
}

int64_t csr_col(const tulle_csr *A, int64_t k)
{
    return A->idx_type == TULLE_I32 ? ((const int32_t *)A->col_idx)[k]
                                    : ((const int64_t *)A->col_idx)[k];
}

/* ---- one operand */

/* Whether a word can only be the name of a file, so that the error message says that the file is missing. */
static bool names_file(const char *name)
{
    static const char *const end[] = {".mtx", ".gz", ".tulle", ".tar", ".tgz", ".mm", ".txt", ".csv", ".npy"};
    bool found = strchr(name, '/') != NULL;
    for (size_t i = 0; i < sizeof end / sizeof *end; i++) found = found || ends_with(name, end[i]);
    return found;
}

static int no_recipe(session *s, const char *recipe, bool forced)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(recipe, ":"), recipe);
    const char *near = nearest(word, tulle_gallery_name);
    bool known = listed(word, tulle_gallery_name);
    for (size_t n = strlen(word); !known && n > 1 && strchr("_0123456789", word[n - 1]); n--) {
        word[n - 1] = 0;                /* cage16 is the recipe cage with a number */
        known = listed(word, tulle_gallery_name);
    }
    if (known) return complain(END_USAGE, "%s", tulle_ctx_error(s->ctx));
    snprintf(word, sizeof word, "%.*s", (int)strcspn(recipe, ":"), recipe);
    if (near)
        return complain(END_INPUT, "there is no %s \"%s\"; did you mean %s?",
                        forced ? "recipe" : "file or recipe", word, near);
    if (forced) return complain(END_INPUT, "%s", tulle_ctx_error(s->ctx));
    return complain(END_INPUT, "there is no file \"%s\", and %s", recipe, tulle_ctx_error(s->ctx));
}

const char *path_of(const char *word)
{
    return strcmp(word, "-") == 0 ? "/dev/stdin" : word;
}

/* Whether a word is a file, or a member of an archive: A.tar.gz:NAME.  "gen:..." never is. */
static bool is_file(const char *name)
{
    char part[4096];
    if (access(name, F_OK) == 0) return true;
    for (const char *colon = strchr(name, ':'); colon; colon = strchr(colon + 1, ':')) {
        int n = snprintf(part, sizeof part, "%.*s", (int)(colon - name), name);
        if (n >= (int)sizeof part || listed(part, tulle_gallery_name)) return false;
        if (access(part, F_OK) == 0 && !is_directory(part)) return true;
    }
    return false;
}

static int load(session *s, operand *a)
{
    bool forced = strncmp(a->name, "gen:", 4) == 0;
    const char *recipe = forced ? a->name + 4 : a->name;
    const char *path = path_of(a->name);
    if (!forced && is_file(path)) {
        if (is_directory(path)) return complain(END_INPUT, "\"%s\" is a directory", path);
        tulle_status status = (s->o->map ? tulle_read_mapped : tulle_read)(s->ctx, path, &a->matrix);
        int code = told(s, status);
        return status == TULLE_EIO && code == END_FAILED ? END_INPUT : code;
    }
    if (!forced && names_file(a->name)) return complain(END_INPUT, "there is no file \"%s\"", a->name);
    tulle_status status = tulle_gallery(s->ctx, recipe, &a->matrix);
    return status == TULLE_EINVAL ? no_recipe(s, recipe, forced) : told(s, status);
}

static int convert(session *s, operand *a, int type, int index)
{
    const tulle_csr *v = &a->view;
    tulle_matrix *other = NULL;
    if ((!type || type == (int)v->val_type)
        && (!index || (index == (int)v->ptr_type && index == (int)v->idx_type)))
        return END_OK;
    int code = told(s, tulle_csr_convert(s->ctx, v, (tulle_type)type, (tulle_index)index,
                                         (tulle_index)index, &other));
    if (code != END_OK) return code;
    tulle_matrix_free(a->matrix);
    a->matrix = other;
    a->view = tulle_matrix_view(other);
    return END_OK;
}

int operand_load(session *s, const char *name, operand *a)
{
    double begun = seconds();
    *a = (operand){.name = name};
    int code = load(s, a);
    if (code != END_OK) return code;
    a->view = tulle_matrix_view(a->matrix);
    code = convert(s, a, s->o->type, s->o->index);
    a->sec_read = seconds() - begun;
    return code;
}

int operand_convert(session *s, operand *a, int type)
{
    return convert(s, a, type, 0);
}

void operand_free(operand *a)
{
    tulle_matrix_free(a->matrix);
    a->matrix = NULL;
}

/* ---- a pair */

int common_type(int a, int b)
{
    bool is_complex = a >= TULLE_CF32 || b >= TULLE_CF32;
    bool is_double = a == TULLE_F64 || a == TULLE_CF64 || b == TULLE_F64 || b == TULLE_CF64;
    return is_complex ? (is_double ? TULLE_CF64 : TULLE_CF32) : (is_double ? TULLE_F64 : TULLE_F32);
}

static void name_product(pair *p, const char *b)
{
    static const char *const mark[] = {"", "^T", "^H"};         /* tulle_op */
    snprintf(p->text, sizeof p->text, "A%s*%s%s", mark[p->options.op_a], b, mark[p->options.op_b]);
}

int pair_load(session *s, const char *a, const char *b, pair *p)
{
    int code = END_OK;
    *p = (pair){.options = s->o->product};
    tulle_options *o = &p->options;
    GO(operand_load(s, a, &p->a));
    if (b) {
        GO(operand_load(s, b, &p->b));
        int type = common_type((int)p->a.view.val_type, (int)p->b.view.val_type);
        GO(convert(s, &p->a, type, 0));
        GO(convert(s, &p->b, type, 0));
    } else {
        p->b = p->a;
        p->b.matrix = NULL;
        if (p->a.view.rows != p->a.view.cols && !o->op_b && !o->op_a) o->op_b = TULLE_TRANSPOSE;
    }
    p->rows = o->op_a ? p->a.view.cols : p->a.view.rows;
    p->cols = o->op_b ? p->b.view.rows : p->b.view.cols;
    name_product(p, b ? "B" : "A");
done:
    if (code != END_OK) pair_free(p);
    return code;
}

void pair_free(pair *p)
{
    operand_free(&p->a);
    operand_free(&p->b);
}
