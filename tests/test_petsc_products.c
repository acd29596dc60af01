/* SPDX-License-Identifier: MIT
 *
 * test_petsc_products.c - PETSc's products computed by tulle equal those of PETSc.  An ordinary PETSc
 * program; the plug-in is loaded by
 *     -dll_append libpetsctulle.so -mat_seqaij_type seqaijtulle
 * (sequential matrices are made with that type by the program itself, so that there are others to compare
 * with: with the option PETSc 3.18 itself fails to transpose a seqaij that was converted back). Values are
 * small integers, so that sums are exact and matrices equal or not.  As 1 rank the products of sequential
 * matrices are compared, as more those of MPIAIJ with the algorithm "backend", whose local products are
 * tulle's. */
#include <petscmat.h>

static PetscInt passed, failed;

static PetscErrorCode note(PetscBool ok, const char *what, const char *of)
{
    PetscFunctionBegin;
    if (ok) passed++;
    else failed++;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s %s %s\n", ok ? "ok  " : "FAIL", what, of));
    PetscFunctionReturn(0);
}

static unsigned next(unsigned *s)
{
    *s = *s * 1664525u + 1013904223u;
    return *s >> 16;
}

/* The same matrix for any number of ranks; about 5 entries per row, every 7th row empty. */
static PetscErrorCode make(MPI_Comm comm, const char *type, PetscInt rows, PetscInt cols, unsigned seed,
                           Mat *A)
{
    PetscInt first, end;

    PetscFunctionBegin;
    PetscCall(MatCreate(comm, A));
    PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, rows, cols));
    PetscCall(MatSetType(*A, type));
    PetscCall(MatSeqAIJSetPreallocation(*A, 6, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 6, NULL, 6, NULL));
    PetscCall(MatSetUp(*A));
    PetscCall(MatGetOwnershipRange(*A, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        unsigned s = seed + 977u * (unsigned)i;
        for (PetscInt k = 0; k < 5 && i % 7 != 3; k++) {
            PetscInt j = (PetscInt)(next(&s) % (unsigned)cols);
            PetscCall(MatSetValue(*A, i, j, (PetscScalar)((PetscReal)(next(&s) % 17) - 8), INSERT_VALUES));
        }
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

static PetscErrorCode start(Mat A, Mat B, MatProductType type, const char *algorithm, Mat *C)
{
    PetscFunctionBegin;
    PetscCall(MatProductCreate(A, B, NULL, C));
    PetscCall(MatProductSetType(*C, type));
    PetscCall(MatProductSetAlgorithm(*C, algorithm));
    PetscCall(MatProductSetFill(*C, PETSC_DEFAULT));
    PetscCall(MatProductSetFromOptions(*C));
    PetscCall(MatProductSymbolic(*C));
    PetscCall(MatProductNumeric(*C));
    PetscFunctionReturn(0);
}

/* op(A)*op(B) once, and again after the values have changed. */
static PetscErrorCode compare(Mat A, Mat B, Mat plain_a, Mat plain_b, MatProductType type,
                              const char *algorithm,
                              const char *plain)
{
    Mat C, D;
    PetscBool same;

    PetscFunctionBegin;
    PetscCall(start(A, B, type, algorithm, &C));
    PetscCall(start(plain_a, plain_b, type, plain, &D));
    PetscCall(MatEqual(C, D, &same));
    PetscCall(note(same, MatProductTypes[type], "once"));
    for (int again = 0; again < 2; again++) {
        PetscCall(MatScale(A, 2));
        PetscCall(MatScale(B, 3));
        PetscCall(MatScale(plain_a, 2));
        PetscCall(MatScale(plain_b, 3));
        PetscCall(MatProductNumeric(C));
        PetscCall(MatProductNumeric(D));
        PetscCall(MatEqual(C, D, &same));
        PetscCall(note(same, MatProductTypes[type], "again"));
        PetscCall(MatScale(A, 0.5));
        PetscCall(MatScale(plain_a, 0.5));
        PetscCall(MatScale(B, 1.0 / 3));
        PetscCall(MatScale(plain_b, 1.0 / 3));
    }
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&D));
    PetscFunctionReturn(0);
}

/* Compares two results, and destroys them. */
static PetscErrorCode note_same(Mat *C, Mat *D, const char *what, const char *of)
{
    PetscBool same;

    PetscFunctionBegin;
    PetscCall(MatEqual(*C, *D, &same));
    PetscCall(note(same, what, of));
    PetscCall(MatDestroy(C));
    PetscCall(MatDestroy(D));
    PetscFunctionReturn(0);
}

/* With matrices of other types, whose functions support SeqAIJ but not its sub-types. */
static PetscErrorCode with_others(void)
{
    Mat A, P, plain, plain_p, maij, tall, square, C, D;

    PetscFunctionBegin;
    PetscCall(make(PETSC_COMM_SELF, "seqaijtulle", 60, 60, 6, &A));
    PetscCall(make(PETSC_COMM_SELF, "seqaijtulle", 30, 10, 7, &P));
    PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain));
    PetscCall(MatConvert(P, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain_p));
    PetscCall(MatCreateMAIJ(plain_p, 2, &maij));
    PetscCall(MatPtAP(A, maij, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatPtAP(plain, maij, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(note_same(&C, &D, "PtAP", "with a seqmaij"));

    PetscCall(make(PETSC_COMM_SELF, MATSEQDENSE, 20, 60, 8, &tall));
    PetscCall(make(PETSC_COMM_SELF, MATSEQDENSE, 30, 30, 9, &square));
    PetscCall(MatMatTransposeMult(A, tall, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatMatTransposeMult(plain, tall, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(note_same(&C, &D, "ABt", "with a dense B"));
    PetscCall(MatPtAP(square, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatPtAP(square, plain_p, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(note_same(&C, &D, "PtAP", "with a dense A"));
    PetscCall(MatMatMult(tall, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatMatMult(tall, plain, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(note_same(&C, &D, "AB", "with a dense A"));

    PetscCall(MatConvert(A, MATIS, MAT_INITIAL_MATRIX, &C));
    PetscCall(MatConvert(C, MATSEQAIJ, MAT_INPLACE_MATRIX, &C));
    PetscCall(MatDuplicate(plain, MAT_COPY_VALUES, &D));
    PetscCall(note_same(&C, &D, "MatConvert", "to MATIS and back"));
    Mat all[] = {A, P, plain, plain_p, maij, tall, square};
    for (int k = 0; k < 7; k++) PetscCall(MatDestroy(&all[k]));
    PetscFunctionReturn(0);
}

/* MAT_FORCE_DIAGONAL_ENTRIES: C has a diagonal that may be set; row 3 of A is empty. */
static PetscErrorCode with_a_diagonal(void)
{
    Mat A, C;
    PetscInt count;
    const PetscInt *columns;
    PetscBool there = PETSC_FALSE;

    PetscFunctionBegin;
    PetscCall(make(PETSC_COMM_SELF, "seqaijtulle", 60, 60, 6, &A));
    PetscCall(MatProductCreate(A, A, NULL, &C));
    PetscCall(MatProductSetType(C, MATPRODUCT_AB));
    PetscCall(MatSetOption(C, MAT_FORCE_DIAGONAL_ENTRIES, PETSC_TRUE));
    PetscCall(MatProductSetFromOptions(C));
    PetscCall(MatProductSymbolic(C));
    PetscCall(MatProductNumeric(C));
    PetscCall(MatGetRow(C, 3, &count, &columns, NULL));
    for (PetscInt k = 0; k < count; k++) there = (PetscBool)(there || columns[k] == 3);
    PetscCall(note(there, "MAT_FORCE_DIAGONAL_ENTRIES", ""));
    PetscCall(MatRestoreRow(C, 3, &count, &columns, NULL));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&C));
    PetscFunctionReturn(0);
}

static PetscErrorCode sequential(void)
{
    Mat A, B, S, P, R, plain_a, plain_b, plain_s, plain_p, plain_r, C, D, X, Y, Z;
    PetscBool same, is;

    PetscFunctionBegin;
    PetscCall(make(PETSC_COMM_SELF, "seqaijtulle", 60, 40, 1, &A));
    PetscCall(make(PETSC_COMM_SELF, "seqaijtulle", 40, 50, 2, &B));
    PetscCall(make(PETSC_COMM_SELF, "seqaijtulle", 60, 60, 3, &S));
    PetscCall(make(PETSC_COMM_SELF, "seqaijtulle", 60, 20, 4, &P));
    PetscCall(make(PETSC_COMM_SELF, "seqaijtulle", 20, 60, 5, &R));
    PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain_a));
    PetscCall(MatConvert(B, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain_b));
    PetscCall(MatConvert(S, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain_s));
    PetscCall(MatConvert(P, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain_p));
    PetscCall(MatConvert(R, MATSEQAIJ, MAT_INITIAL_MATRIX, &plain_r));
    PetscCall(PetscObjectTypeCompare((PetscObject)plain_a, MATSEQAIJ, &is));
    PetscCall(note(is, "a copy of type", "seqaij"));
    PetscCall(compare(A, B, plain_a, plain_b, MATPRODUCT_AB, "default", "default"));
    PetscCall(compare(A, S, plain_a, plain_s, MATPRODUCT_AtB, "default", "default"));
    PetscCall(compare(S, A, plain_s, plain_a, MATPRODUCT_AtB, "default", "default"));
    PetscCall(compare(S, R, plain_s, plain_r, MATPRODUCT_ABt, "default", "default"));
    PetscCall(compare(S, P, plain_s, plain_p, MATPRODUCT_PtAP, "default", "default"));
    PetscCall(compare(S, R, plain_s, plain_r, MATPRODUCT_RARt, "default", "default"));

    PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &X));        /* a transpose has our type, and is complete */
    PetscCall(MatTranspose(X, MAT_INITIAL_MATRIX, &Y));
    PetscCall(MatEqual(A, Y, &same));
    PetscCall(note(same, "MatTranspose", "twice"));
    PetscCall(MatDestroy(&X));
    PetscCall(MatDestroy(&Y));

    /* typical uses: reuse, other matrices with the same pattern, mixed types, dense factors */
    PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(PetscObjectTypeCompare((PetscObject)C, "seqaijtulle", &is));
    PetscCall(note(is, "C is", "seqaijtulle"));
    PetscCall(MatScale(A, -4));
    PetscCall(MatScale(plain_a, -4));
    PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatMatMult(plain_a, plain_b, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(MatEqual(C, D, &same));
    PetscCall(note(same, "MAT_REUSE_MATRIX", ""));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &X));
    PetscCall(MatDestroy(&A));
    PetscCall(MatProductReplaceMats(X, NULL, NULL, C));
    PetscCall(MatProductNumeric(C));
    PetscCall(MatEqual(C, D, &same));
    PetscCall(note(same, "MatProductReplaceMats", ""));
    PetscCall(MatDestroy(&C));
    PetscCall(MatMatMult(X, plain_b, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatEqual(C, D, &same));
    PetscCall(note(same, "seqaijtulle * seqaij", ""));
    PetscCall(MatDestroy(&C));
    PetscCall(MatMatMult(plain_a, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
    PetscCall(MatEqual(C, D, &same));
    PetscCall(note(same, "seqaij * seqaijtulle", ""));
    PetscCall(MatConvert(B, MATSEQDENSE, MAT_INITIAL_MATRIX, &Y));
    PetscCall(MatMatMult(X, Y, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &Z));
    PetscCall(MatDestroy(&Y));
    PetscCall(MatConvert(D, MATSEQDENSE, MAT_INITIAL_MATRIX, &Y));
    PetscCall(MatEqual(Y, Z, &same));
    PetscCall(note(same, "seqaijtulle * dense", ""));
    Mat all[] = {B, S, P, R, plain_a, plain_b, plain_s, plain_p, plain_r, C, D, X, Y, Z};
    for (int k = 0; k < 14; k++) PetscCall(MatDestroy(&all[k]));
    PetscFunctionReturn(0);
}

static PetscErrorCode parallel(void)
{
    Mat A, B, S, P, local;
    PetscBool is;

    PetscFunctionBegin;
    PetscCall(make(PETSC_COMM_WORLD, MATMPIAIJ, 60, 40, 1, &A));
    PetscCall(make(PETSC_COMM_WORLD, MATMPIAIJ, 40, 50, 2, &B));
    PetscCall(make(PETSC_COMM_WORLD, MATMPIAIJ, 60, 60, 3, &S));
    PetscCall(make(PETSC_COMM_WORLD, MATMPIAIJ, 60, 20, 4, &P));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &local, NULL, NULL));
    PetscCall(PetscObjectTypeCompare((PetscObject)local, "seqaijtulle", &is));
    PetscCall(note(is, "rows of a rank are", "seqaijtulle"));
    PetscCall(compare(A, B, A, B, MATPRODUCT_AB, "backend", "nonscalable"));
    PetscCall(compare(A, S, A, S, MATPRODUCT_AtB, "backend", "nonscalable"));
    PetscCall(compare(S, P, S, P, MATPRODUCT_PtAP, "backend", "nonscalable"));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&S));
    PetscCall(MatDestroy(&P));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    PetscMPIInt size;
    PetscFunctionBeginUser;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
    if (size > 1) PetscCall(parallel());
    else {
        PetscCall(sequential());
        PetscCall(with_others());
        PetscCall(with_a_diagonal());
    }
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT " passed, %" PetscInt_FMT " failed\n", passed,
                          failed));
    PetscCall(PetscFinalize());
    return failed > 0;
}
