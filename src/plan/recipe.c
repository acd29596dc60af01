/* SPDX-License-Identifier: MIT
 * recipe.c - looks up the policy and the accumulator that the options name. */
#include "plan/plan.h"
#include <stdio.h>
#include <string.h>

static const tl_policy *const policies[] = {
#define ROW(name) &tl_policy_##name,
    TL_POLICY_LIST(ROW)
#undef ROW
};

static const struct { const char *name; int where; const char *text; } accumulators[] = {
#define ROW(id, name, where, text) {name, where, text},
    TL_ACCUMULATOR_LIST(ROW)
#undef ROW
};

const tl_policy *tl_policy_at(int i)
{
    return i >= 0 && i < (int)(sizeof policies / sizeof *policies) ? policies[i] : NULL;
}

const char *tulle_policy_name(int i)
{
    const tl_policy *p = tl_policy_at(i);
    return p ? p->name : NULL;
}

const char *tulle_policy_text(int i)
{
    const tl_policy *p = tl_policy_at(i);
    return p ? p->text : NULL;
}

const char *tulle_accumulator_name(int i)
{
    return i >= 0 && i < TL_ACCUMULATORS ? accumulators[i].name : NULL;
}

const char *tulle_accumulator_text(int i)
{
    return i >= 0 && i < TL_ACCUMULATORS ? accumulators[i].text : NULL;
}

const char *tl_name_list(const char *(*name)(int), char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; name(i) && at < bytes; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? ", " : "", name(i));
    return text;
}

int tl_name_find(const char *(*name)(int), const char *wanted)
{
    for (int i = 0; name(i); i++)
        if (strcmp(name(i), wanted) == 0) return i;
    return -1;
}

tulle_status tl_recipe_make(tl_base *b, const tulle_options *options, tl_recipe *recipe)
{
    char list[256];
    *recipe = (tl_recipe){.policy = &tl_policy_auto, .forced = -1};
    if (options->policy) {
        int i = tl_name_find(tulle_policy_name, options->policy);
        if (i < 0)
            return tl_fail(b, TULLE_EINVAL, "there is no policy \"%s\"; there are: %s", options->policy,
                           tl_name_list(tulle_policy_name, list, sizeof list));
        recipe->policy = tl_policy_at(i);
    }
    recipe->alike = recipe->policy->alike;
    recipe->once = recipe->policy->once;
    recipe->few = recipe->policy->few;
    recipe->delta = options->accumulator ? NULL : recipe->policy->delta;
    memcpy(recipe->few_rows, recipe->policy->few_rows, sizeof recipe->few_rows);
    if (options->accumulator) {
        recipe->forced = tl_name_find(tulle_accumulator_name, options->accumulator);
        if (recipe->forced < 0)
            return tl_fail(b, TULLE_EINVAL, "there is no accumulator \"%s\"; there are: %s",
                           options->accumulator, tl_name_list(tulle_accumulator_name, list, sizeof list));
        recipe->alike = recipe->forced == TL_TWINS || recipe->forced == TL_STENCIL;
        recipe->once = recipe->forced == TL_HEAP || recipe->forced == TL_ESC || recipe->forced == TL_MERGE;
        bool in_registers = recipe->forced == TL_REG_SORT || recipe->forced == TL_REG_MERGE ||
                            recipe->forced == TL_REG_HASH;
        recipe->few = in_registers ? (tl_accumulator)recipe->forced : TL_DIRECT;
        recipe->few_rows[0] = recipe->few_rows[1] = (tl_few){512, 512};
    }
    return TULLE_OK;
}

bool tl_accumulator_on(int accumulator, int where)
{
    return accumulator >= 0 && accumulator < TL_ACCUMULATORS && (accumulators[accumulator].where & where);
}

tulle_status tl_recipe_check(tl_base *b, const tl_recipe *recipe, int where, const char *device)
{
    char list[256];
    size_t at = 0;
    if (recipe->forced < 0 || tl_accumulator_on(recipe->forced, where)) return TULLE_OK;
    for (int i = 0; i < TL_ACCUMULATORS && at < sizeof list; i++)
        if (tl_accumulator_on(i, where))
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", at ? ", " : "", accumulators[i].name);
    return tl_fail(b, TULLE_EINVAL, "accumulator %s: %s has %s", accumulators[recipe->forced].name, device,
                   list);
}
