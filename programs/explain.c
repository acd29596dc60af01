/* SPDX-License-Identifier: MIT
 * explain.c - `tulle explain`: which algorithms a product would use, and why, without computing it. */
#include "program.h"
#include <stdlib.h>
#include <string.h>

enum { REASONS_MAX = 256 };

typedef struct reasons {
    char *line[REASONS_MAX];
    int   count;
} reasons;

static void keep_reason(void *user, const char *line)
{
    reasons *why = user;
    size_t bytes = strlen(line) + 1;
    if (why->count == REASONS_MAX) return;
    char *copy = malloc(bytes);
    if (copy) why->line[why->count++] = memcpy(copy, line, bytes);
}

static void forget(reasons *why)
{
    for (int i = 0; i < why->count; i++) free(why->line[i]);
    why->count = 0;
}

static const char *text_of(const char *name, words_fn names, words_fn texts)
{
    for (int i = 0; name && names(i); i++)
        if (strcmp(name, names(i)) == 0) return texts(i);
    return "";
}

static void print_words(const char *head, words_fn names, words_fn texts)
{
    printf("%s\n", head);
    for (int i = 0; names(i); i++) printf("  %-14s %s\n", names(i), texts(i));
}

static void json_words(json *j, const char *key, words_fn names, words_fn texts)
{
    json_open(j, key, '[');
    for (int i = 0; names(i); i++) {
        json_open(j, NULL, '{');
        json_text(j, "name", names(i));
        json_text(j, "text", texts(i));
        json_close(j, '}');
    }
    json_close(j, ']');
}

static int list(const options *o)
{
    int code = check_list(o, "explain --list");
    if (code != END_OK) return code;
    if (o->json) {
        json j;
        json_begin(&j, "explain");
        json_words(&j, "policies", tulle_policy_name, tulle_policy_text);
        json_words(&j, "accumulators", tulle_accumulator_name, tulle_accumulator_text);
        json_end(&j);
    } else {
        print_words("policies (--policy)", tulle_policy_name, tulle_policy_text);
        printf("\n");
        print_words("accumulators (--accumulator)", tulle_accumulator_name, tulle_accumulator_text);
    }
    return END_OK;
}

/* For a context that chooses between the CPU and a GPU. */
static void print_choice(const session *s, const tulle_forecast *f)
{
    figure cpu, device;
    if (f->sec_cpu > 0)
        printf("%-14s %s; forecast from host to host: %s ms on the CPU, %s ms on %s\n", "device", f->device,
               ms_text(cpu, f->sec_cpu), ms_text(device, f->sec_device), tulle_ctx_device(s->ctx));
}

static void print_report(const session *s, const pair *p, const tulle_forecast *f, const reasons *why)
{
    figure x, y, z;
    print_operand("A", &p->a);
    if (p->b.matrix) print_operand("B", &p->b);
    printf("C = %s: %s x %s\n\n", p->text, count_text(x, p->rows), count_text(y, p->cols));
    printf("%-14s %s\n", "products", count_text(x, f->products));
    printf("%-14s about %s, at least %s, at most %s\n", "entries of C", count_text(x, f->nnz_estimate),
           count_text(y, f->nnz_lower), count_text(z, f->nnz_upper));
    printf("%-14s about %.2f products for one entry of C\n", "compression",
           ratio((double)f->products, (double)f->nnz_estimate));
    printf("%-14s about %s, at most %s\n", "peak memory", bytes_text(x, f->bytes_estimate),
           bytes_text(y, f->bytes_upper));
    print_choice(s, f);
    printf("%-14s %s: %s\n\n", "policy", f->policy,
           text_of(f->policy, tulle_policy_name, tulle_policy_text));
    print_shares(f->share, f->shares);
    printf("\n");
    for (int i = 0; i < f->shares; i++)
        if (f->share[i].rows > 0)
            printf("%-14s %s\n", f->share[i].name,
                   text_of(f->share[i].name, tulle_accumulator_name, tulle_accumulator_text));
    if (why->count > 0) printf("\nwhy\n");
    for (int i = 0; i < why->count; i++) printf("  %s\n", why->line[i]);
}

static void print_json(const pair *p, const tulle_forecast *f, const reasons *why)
{
    json j;
    json_begin(&j, "explain");
    json_text(&j, "policy", f->policy);
    json_text(&j, "product", p->text);
    json_operand(&j, "a", &p->a);
    json_operand(&j, "b", &p->b);
    json_int(&j, "rows", p->rows);
    json_int(&j, "cols", p->cols);
    json_int(&j, "products", f->products);
    json_int(&j, "nnz_lower", f->nnz_lower);
    json_int(&j, "nnz_estimate", f->nnz_estimate);
    json_int(&j, "nnz_upper", f->nnz_upper);
    json_int(&j, "bytes_estimate", (int64_t)f->bytes_estimate);
    json_int(&j, "bytes_upper", (int64_t)f->bytes_upper);
    if (f->sec_cpu > 0) {
        json_text(&j, "device", f->device);
        json_num(&j, "cpu_ms", 1e3 * f->sec_cpu);
        json_num(&j, "device_ms", 1e3 * f->sec_device);
    }
    json_shares(&j, f->share, f->shares);
    json_open(&j, "why", '[');
    for (int i = 0; i < why->count; i++) json_text(&j, NULL, why->line[i]);
    json_close(&j, ']');
    json_end(&j);
}

int run_explain(const options *o)
{
    int code = END_OK;
    session s = {0};
    pair p = {0};
    reasons why = {.count = 0};
    tulle_forecast f;
    if (o->list) return list(o);
    GO(check_names(o));
    GO(session_open(&s, o));
    GO(pair_load(&s, o->operand[0], o->operands > 1 ? o->operand[1] : NULL, &p));
    if (!o->trace) tulle_ctx_set_trace(s.ctx, keep_reason, &why);
    forget(&why);                       /* why there is no GPU has nothing to do with this product */
    GO(told(&s, tulle_estimate(s.ctx, &p.a.view, &p.b.view, &p.options, &f)));
    if (o->json) print_json(&p, &f, &why);
    else if (!o->quiet) print_report(&s, &p, &f, &why);
done:
    forget(&why);
    pair_free(&p);
    session_close(&s);
    return code;
}
