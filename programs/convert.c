/* SPDX-License-Identifier: MIT
 * convert.c - `tulle convert`: one file to another, with other types, sorted or transposed. */
#include "program.h"

/* Puts next in the place of the operand's matrix. */
static void replace(operand *a, tulle_matrix *next)
{
    tulle_matrix_free(a->matrix);
    a->matrix = next;
    a->view = tulle_matrix_view(next);
}

int run_convert(const options *o)
{
    int code = END_OK;
    session s = {0};
    operand a = {0};
    tulle_matrix *next = NULL;
    const char *target = o->operands > 1 ? o->operand[1] : o->output;
    if (!target) return complain(END_USAGE, "convert needs a file to write: tulle convert FROM TO");
    if (o->operands > 1 && o->output)
        return complain(END_USAGE, "convert has two targets, \"%s\" and \"%s\"", o->operand[1],
                        o->output);
    GO(output_name(target, MATRIX_FILE));
    GO(output_symmetric(o, target));
    GO(session_open(&s, o));
    GO(output_place(&s, target));
    GO(operand_load(&s, o->operand[0], &a));
    if (o->product.sort_inputs) {
        GO(told(&s, tulle_csr_sort(s.ctx, &a.view, &next)));
        replace(&a, next);
    }
    if (o->product.op_a) {
        GO(told(&s, tulle_csr_transpose(s.ctx, &a.view, (tulle_op)o->product.op_a, &next)));
        replace(&a, next);
    }
    GO(output_write(&s, target, &a.view, NULL));
    if (o->json) {
        json j;
        json_begin(&j, "convert");
        json_text(&j, "from", a.name);
        json_csr(&j, &a.view);
        json_text(&j, "output", target);
        json_end(&j);
    } else if (!o->quiet) {
        print_operand(target, &a);
    }
done:
    operand_free(&a);
    session_close(&s);
    return code;
}
