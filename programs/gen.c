/* SPDX-License-Identifier: MIT
 * gen.c - `tulle gen`: generates a matrix of the gallery and writes it to a file. */
#include "program.h"
#include <string.h>

static void list_json(void)
{
    json j;
    json_begin(&j, "gen");
    json_open(&j, "recipes", '[');
    for (int i = 0; tulle_gallery_name(i); i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", tulle_gallery_name(i));
        json_text(&j, "text", tulle_gallery_text(i));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

static int list(const options *o)
{
    int code = check_list(o, "gen --list");
    if (code != END_OK) return code;
    if (o->json) list_json();
    else
        for (int i = 0; tulle_gallery_name(i); i++)
            printf("%-14s %s\n", tulle_gallery_name(i), tulle_gallery_text(i));
    return END_OK;
}

int run_gen(const options *o)
{
    int code = END_OK;
    session s = {0};
    operand a = {0};
    char recipe[512];
    if (o->list) return list(o);
    if (!o->output) return complain(END_USAGE, "gen needs a file to write: -o FILE");
    GO(output_name(o->output, MATRIX_FILE));
    GO(output_symmetric(o, o->output));
    /* With "gen:", so that a file with the name of the recipe is not read instead. */
    int length = snprintf(recipe, sizeof recipe, "%s%s", strncmp(o->operand[0], "gen:", 4) == 0 ? "" : "gen:",
                          o->operand[0]);
    if (length >= (int)sizeof recipe)           /* a part of it could be another recipe */
        return complain(END_USAGE, "a recipe of %zu characters is too long", strlen(o->operand[0]));
    GO(session_open(&s, o));
    GO(output_place(&s, o->output));
    GO(operand_load(&s, recipe, &a));
    GO(output_write(&s, o->output, &a.view, NULL));
    a.name = o->operand[0];
    if (o->json) {
        json j;
        json_begin(&j, "gen");
        json_text(&j, "recipe", a.name);
        json_csr(&j, &a.view);
        json_text(&j, "output", o->output);
        json_end(&j);
    } else if (!o->quiet) {
        print_operand(o->output, &a);
    }
done:
    operand_free(&a);
    session_close(&s);
    return code;
}
