/* SPDX-License-Identifier: MIT
 *
 * 05_errors.c - what can go wrong, and what tulle says about it.
 *
 * A status has a name and a text; the context has the error message: which row, which shapes, how many bytes.
 * A caller's error (-1 .. -99) changes nothing; a run-time error (-100 ..) may have changed outputs.  Inputs
 * are never written.  A context can be used again after any error. */
#include <stdio.h>
#include <tulle.h>

static int surprises;

static void expect(const tulle_ctx *ctx, tulle_status want, tulle_status got)
{
    printf("%-16s %s\n", tulle_status_name(got), got == TULLE_OK ? "" : tulle_ctx_error(ctx));
    if (got != want) surprises++;
}

/* A progress callback that cancels at once; a real one would check a button, or a signal. */
static int give_up(void *user, const char *stage, double fraction)
{
    (void)user, (void)stage, (void)fraction;
    return 1;
}

int main(void)
{
    const int32_t ptr[] = {0, 2, 3}, sorted[] = {0, 1, 1}, swapped[] = {1, 0, 1}, beyond[] = {0, 2, 1};
    const double  val[] = {1, 2, 3};
    const tulle_csr good  = tulle_csr_f64_i32(2, 2, ptr, sorted, val);
    const tulle_csr mixed = tulle_csr_f64_i32(2, 2, ptr, swapped, val);   /* row 0 is not in order  */
    const tulle_csr wrong = tulle_csr_f64_i32(2, 2, ptr, beyond, val);    /* a column that is not there */
    const tulle_csr wide  = tulle_csr_f64_i32(2, 3, ptr, sorted, val);

    tulle_ctx    *ctx = NULL;
    tulle_matrix *C = NULL, *M = NULL;
    if (tulle_ctx_create("abacus", NULL, &ctx) != TULLE_EDEVICE) surprises++;
    if (tulle_ctx_create(NULL, NULL, &ctx) != TULLE_OK) return 1;

    expect(ctx, TULLE_EPATTERN, tulle_multiply(ctx, &wrong, &good, NULL, &C));
    expect(ctx, TULLE_EPATTERN, tulle_multiply(ctx, &mixed, &good, NULL, &C));
    expect(ctx, TULLE_ESHAPE,   tulle_multiply(ctx, &wide, &wide, NULL, &C));
    expect(ctx, TULLE_EIO,      tulle_read(ctx, "no/such/file.mtx", &M));
    expect(ctx, TULLE_EINVAL,   tulle_gallery(ctx, "no such recipe", &M));

    /* With this option unsorted rows are accepted; tulle makes a sorted copy. */
    tulle_options options = {0};
    options.sort_inputs = 1;
    expect(ctx, TULLE_OK, tulle_multiply(ctx, &mixed, &good, &options, &C));
    tulle_matrix_free(C);
    C = NULL;

    /* A limit too small even for one row is refused; the message gives the bytes needed. */
    expect(ctx, TULLE_OK, tulle_gallery(ctx, "poisson2d:200", &M));
    const tulle_csr A = tulle_matrix_view(M);
    tulle_options tight = {0};
    tight.memory_limit = 1000;
    expect(ctx, TULLE_ELIMIT, tulle_multiply(ctx, &A, &A, &tight, &C));

    tulle_ctx_set_progress(ctx, give_up, NULL);
    expect(ctx, TULLE_ECANCEL, tulle_multiply(ctx, &A, &A, NULL, &C));
    tulle_ctx_set_progress(ctx, NULL, NULL);
    expect(ctx, TULLE_OK, tulle_multiply(ctx, &A, &A, NULL, &C));

    tulle_matrix_free(C);
    tulle_matrix_free(M);
    tulle_ctx_free(ctx);
    printf("%d surprises\n", surprises);
    return surprises ? 1 : 0;
}
