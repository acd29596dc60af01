/* SPDX-License-Identifier: MIT
 * env.c - the only place that reads the environment. */
#include "base/base.h"
#include <stdlib.h>

const char *tl_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}
