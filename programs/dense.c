/* SPDX-License-Identifier: MIT
 *
 * dense.c - dense matrices of the command line: files, values of any type, and what `tulle info` shows of a
 * .npy file: shape, type, order, how many values are zero or not finite, and the range of the others. */
#include "program.h"
#include <math.h>
#include <string.h>

int dense_load(session *s, const char *name, tulle_dense_matrix **out)
{
    const char *path = path_of(name);
    if (is_directory(path)) return complain(END_INPUT, "\"%s\" is a directory", path);
    tulle_status status = tulle_dense_read(s->ctx, path, out);
    int code = told(s, status);
    return status == TULLE_EIO && code == END_FAILED ? END_INPUT : code;
}

number value_at(const void *array, int type, int64_t i)
{
    const float *f = array;
    const double *d = array;
    switch (type) {
    case TULLE_F32: return (number){(double)f[i], 0};
    case TULLE_F64: return (number){d[i], 0};
    case TULLE_CF32: return (number){(double)f[2 * i], (double)f[2 * i + 1]};
    default: return (number){d[2 * i], d[2 * i + 1]};
    }
}

int64_t dense_place(const tulle_dense *M, int64_t i, int64_t j)
{
    return M->order == TULLE_BY_COLS ? i + j * M->ld : i * M->ld + j;
}

void print_dense(const char *letter, const char *name, const tulle_dense *M)
{
    figure rows, cols;
    printf("%s = %s: %s x %s, %s, %s\n", letter, name, count_text(rows, M->rows), count_text(cols, M->cols),
           type_name((int)M->val_type), M->order == TULLE_BY_COLS ? "by columns" : "by rows");
}

/* ---- tulle info */

/* By name, or by its first bytes where it is a plain file; a pipe can be read only once. */
bool is_npy(const char *name)
{
    static const char magic[] = "\x93NUMPY";
    char head[sizeof magic - 1];
    if (ends_with(name, ".npy")) return true;
    FILE *f = is_plain(name) ? fopen(name, "rb") : NULL;
    bool found = f && fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, magic, sizeof head) == 0;
    if (f) fclose(f);
    return found;
}

typedef struct facts {
    int64_t zeros, wild;                /* wild: infinities and NaN */
    double  least, most;                /* absolute values of the others, zeros left out */
    double  norm;                       /* Frobenius, of all that are finite */
} facts;

static void look(const tulle_dense *M, facts *f)
{
    double size = 0;                    /* sums of squares of value / most: no overflow */
    *f = (facts){.least = INFINITY};
    for (int64_t i = 0; i < M->rows; i++)
        for (int64_t j = 0; j < M->cols; j++) {
            number v = value_at(M->values, (int)M->val_type, dense_place(M, i, j));
            double a = hypot(v.re, v.im);
            if (!isfinite(v.re) || !isfinite(v.im)) f->wild++;
            else if (a == 0) f->zeros++;
            else {
                if (a < f->least) f->least = a;
                if (a > f->most) {
                    size *= (f->most / a) * (f->most / a);
                    f->most = a;
                }
                size += (a / f->most) * (a / f->most);
            }
        }
    f->norm = f->most * sqrt(size);
    if (!isfinite(f->least)) f->least = 0;
}

int info_dense(session *s, const char *name)
{
    int code = END_OK;
    tulle_dense_matrix *own = NULL;
    facts f;
    figure x, y;
    GO(dense_load(s, name, &own));
    tulle_dense M = tulle_dense_view(own);
    uint64_t bytes = (uint64_t)M.rows * (uint64_t)M.cols * type_size((int)M.val_type);
    look(&M, &f);
    progress_erase(&s->bar);
    if (s->o->json) {
        json j;
        json_begin(&j, "info");
        json_text(&j, "name", name);
        json_dense(&j, &M);
        json_int(&j, "bytes", (int64_t)bytes);
        json_int(&j, "zeros", f.zeros);
        json_int(&j, "not_finite", f.wild);
        json_num(&j, "abs_min", f.least);
        json_num(&j, "abs_max", f.most);
        json_num(&j, "norm", f.norm);
        json_end(&j);
    } else if (!s->o->quiet) {
        print_dense("X", name, &M);
        printf("\n%-16s %s zero, %s infinite or NaN\n", "values", count_text(x, f.zeros),
               count_text(y, f.wild));
        printf("%-16s %.6g to %.6g, zeros left out\n", "absolute values", f.least, f.most);
        printf("%-16s %.6g\n", "Frobenius norm", f.norm);
        printf("%-16s %s\n", "memory", bytes_text(x, bytes));
    }
done:
    tulle_dense_free(own);
    return code;
}
