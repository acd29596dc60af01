/* SPDX-License-Identifier: MIT
 * version.c - `tulle version`. */
#include "program.h"
#include <string.h>

int run_version(const options *o)
{
    if (o->json) {
        json j;
        json_begin(&j, "version");
        json_end(&j);
        return END_OK;
    }
    printf("tulle %s\n", tulle_version());
    if (strcmp(tulle_version(), TULLE_VERSION) != 0)
        printf("the command was built with the header of %s\n", TULLE_VERSION);
    return END_OK;
}
