/* SPDX-License-Identifier: MIT
 *
 * petsctulle.c - products of PETSc's matrices by tulle: a plug-in, libpetsctulle.so.
 *
 *     prog -dll_append libpetsctulle.so -mat_seqaij_type seqaijtulle
 *
 * makes every sequential AIJ matrix a seqaijtulle: the same arrays, and the same functions except for
 * products.  MatProduct's AB, AtB, ABt, PtAP and RARt are computed by plans of tulle: the symbolic phase
 * creates the plan and the pattern of C, the numeric phase runs it, as often as values change
 * (MAT_REUSE_MATRIX).  MPIAIJ uses it for its local products with -mat_product_algorithm backend.
 *
 *     C = op(A)*op(B)          one plan
 *     P^T*(A*P), R*(A*R^T)     two plans, and memory for the values of the inner product
 *
 * A product keeps its own copy of the patterns, because PETSc may later pass other matrices of the same
 * pattern; their patterns are compared with the copy, and a difference is an error.
 *
 * -mat_seqaijtulle_device: the device, by default cpu; -mat_seqaijtulle_threads: by default 1, which suits
 * one rank per core.  Only public functions of PETSc and its matimpl.h (the table of functions and the
 * product) are used.  Written for PETSc 3.18. */
#include <petsc/private/matimpl.h>
#include <tulle.h>

#define SEQAIJTULLE "seqaijtulle"

#if defined(PETSC_USE_COMPLEX)
#define SCALAR (sizeof(PetscScalar) == 16 ? TULLE_CF64 : TULLE_CF32)
#else
#define SCALAR (sizeof(PetscScalar) == 8 ? TULLE_F64 : TULLE_F32)
#endif
#define INTEGER (sizeof(PetscInt) == 8 ? TULLE_I64 : TULLE_I32)

/* One for the process, created with the first product; PETSc uses a single thread. */
static tulle_ctx *context;
/* SeqAIJ's own function, for products that are not computed here. */
static PetscErrorCode (*of_seqaij)(Mat);

#define CALL_TULLE(call)                                                                                 \
    do {                                                                                                 \
        tulle_status status_ = (call);                                                                   \
        PetscCheck(status_ == TULLE_OK, PETSC_COMM_SELF,                                                 \
                   status_ == TULLE_ENOMEM ? PETSC_ERR_MEM : PETSC_ERR_LIB, "tulle: %s",                 \
                   tulle_ctx_error(context));                                                            \
    } while (0)

static PetscErrorCode finalize(void)
{
    PetscFunctionBegin;
    tulle_ctx_free(context);
    context = NULL;
    of_seqaij = NULL;
    PetscFunctionReturn(0);
}

static PetscErrorCode get_context(void)
{
    char device[64] = "cpu", why[1024] = "";
    PetscInt threads = 1;

    PetscFunctionBegin;
    if (context) PetscFunctionReturn(0);
    PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaijtulle_device", device, sizeof device, NULL));
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-mat_seqaijtulle_threads", &threads, NULL));
    tulle_status status = tulle_ctx_create_why(device, NULL, &context, why, sizeof why);
    PetscCheck(status == TULLE_OK, PETSC_COMM_SELF, PETSC_ERR_LIB, "tulle: %s", why);
    CALL_TULLE(tulle_ctx_set_threads(context, (int)threads));
    PetscCall(PetscRegisterFinalize(finalize));
    PetscFunctionReturn(0);
}

/* ---- patterns */

typedef struct pattern {                /* a copy of an operand's pattern */
    PetscInt  rows, cols, nnz;
    PetscInt *i, *j;
} pattern;

static PetscErrorCode pattern_copy(Mat A, pattern *p)
{
    const PetscInt *i, *j;
    PetscInt rows;
    PetscBool done;

    PetscFunctionBegin;
    PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
    PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "A matrix without rows to look at");
    PetscCall(MatGetSize(A, &p->rows, &p->cols));
    p->nnz = i[p->rows];
    PetscCall(PetscMalloc2(p->rows + 1, &p->i, p->nnz, &p->j));
    PetscCall(PetscArraycpy(p->i, i, p->rows + 1));
    PetscCall(PetscArraycpy(p->j, j, p->nnz));
    PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
    PetscFunctionReturn(0);
}

static PetscErrorCode pattern_same(Mat A, const pattern *p, const char *name)
{
    const PetscInt *i, *j;
    PetscInt rows;
    PetscBool done, same;

    PetscFunctionBegin;
    PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
    same = (PetscBool)(done && rows == p->rows && i[rows] == p->nnz);
    if (same) PetscCall(PetscArraycmp(i, p->i, rows + 1, &same));
    if (same) PetscCall(PetscArraycmp(j, p->j, p->nnz, &same));
    PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &rows, &i, &j, &done));
    PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_ARG_INCOMP,
               "%s has another nonzero pattern than in the symbolic product", name);
    PetscFunctionReturn(0);
}

static tulle_csr pattern_view(const pattern *p)
{
    return tulle_csr_make(p->rows, p->cols, p->i, INTEGER, p->j, INTEGER, NULL, SCALAR);
}

/* ---- a product */

typedef struct product {
    pattern      a, b;
    tulle_plan  *plan, *second;         /* second: only for three factors */
    PetscScalar *between;               /* values of the inner product    */
    PetscInt     nnz;                   /* of C                           */
} product;

static PetscErrorCode product_destroy(void *data)
{
    product *p = (product *)data;

    PetscFunctionBegin;
    tulle_plan_free(p->second);
    tulle_plan_free(p->plan);
    PetscCall(PetscFree2(p->a.i, p->a.j));
    PetscCall(PetscFree2(p->b.i, p->b.j));
    PetscCall(PetscFree(p->between));
    PetscCall(PetscFree(p));
    PetscFunctionReturn(0);
}

/* op_a and op_b of the first plan; triple: there are three factors, and op_left is the op of the left operand
 * (P or R) of the second plan. */
static const struct { MatProductType type; int op_a, op_b, triple, op_left; } kinds[] = {
    {MATPRODUCT_AB, TULLE_KEEP, TULLE_KEEP, 0, TULLE_KEEP},
    {MATPRODUCT_AtB, TULLE_TRANSPOSE, TULLE_KEEP, 0, TULLE_KEEP},
    {MATPRODUCT_ABt, TULLE_KEEP, TULLE_TRANSPOSE, 0, TULLE_KEEP},
    {MATPRODUCT_PtAP, TULLE_KEEP, TULLE_KEEP, 1, TULLE_TRANSPOSE},
    {MATPRODUCT_RARt, TULLE_KEEP, TULLE_TRANSPOSE, 1, TULLE_KEEP},
};

static int kind_of(MatProductType type)
{
    for (int k = 0; k < (int)(sizeof kinds / sizeof *kinds); k++)
        if (kinds[k].type == type) return k;
    return -1;
}

static PetscErrorCode make_plans(Mat C, int k, product *p, tulle_csr *c)
{
    tulle_options o = {.op_a = kinds[k].op_a, .op_b = kinds[k].op_b, .c_ptr_type = INTEGER,
                       .c_idx_type = INTEGER};

    PetscFunctionBegin;
    PetscCall(get_context());
    PetscCall(pattern_copy(C->product->A, &p->a));
    PetscCall(pattern_copy(C->product->B, &p->b));
    tulle_csr a = pattern_view(&p->a), b = pattern_view(&p->b);
    CALL_TULLE(tulle_plan_create(context, &a, &b, &o, &p->plan));
    *c = tulle_plan_pattern(p->plan);
    if (kinds[k].triple) {
        tulle_csr between = *c;
        between.val_type = SCALAR;
        PetscCall(PetscMalloc1((size_t)between.nnz, &p->between));
        o.op_a = kinds[k].op_left;
        o.op_b = TULLE_KEEP;
        CALL_TULLE(tulle_plan_create(context, &b, &between, &o, &p->second));
        *c = tulle_plan_pattern(p->second);
    }
    p->nnz = (PetscInt)c->nnz;
    PetscFunctionReturn(0);
}

static PetscErrorCode product_numeric(Mat C)
{
    product *p = (product *)C->product->data;
    Mat A = C->product->A, B = C->product->B;
    const PetscScalar *a, *b;
    PetscScalar *c;

    PetscFunctionBegin;
    PetscCheck(p, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Product data is gone");
    PetscCall(pattern_same(A, &p->a, "A"));
    PetscCall(pattern_same(B, &p->b, "B"));
    PetscCall(MatSeqAIJGetArrayRead(A, &a));
    PetscCall(MatSeqAIJGetArrayRead(B, &b));
    PetscCall(MatSeqAIJGetArray(C, &c));
    /* An empty matrix may have no arrays; tulle does not read them then, but refuses NULL. */
    const void *none = p;
    if (p->second) {
        CALL_TULLE(tulle_plan_run(p->plan, a ? (const void *)a : none, b ? (const void *)b : none, p->between
                                  ? (void *)p->between : p));
        if (p->nnz > 0) CALL_TULLE(tulle_plan_run(p->second, b, p->between, c));
    } else if (p->nnz > 0) {
        CALL_TULLE(tulle_plan_run(p->plan, a, b, c));
    }
    PetscCall(MatSeqAIJRestoreArray(C, &c));
    PetscCall(MatSeqAIJRestoreArrayRead(A, &a));
    PetscCall(MatSeqAIJRestoreArrayRead(B, &b));
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* C gets the row block size of the left factor and the column block size of the right one, after op. */
static PetscErrorCode set_block_sizes(Mat C, int k)
{
    PetscInt a_rows, a_cols, b_rows, b_cols, left, right;

    PetscFunctionBegin;
    PetscCall(MatGetBlockSizes(C->product->A, &a_rows, &a_cols));
    PetscCall(MatGetBlockSizes(C->product->B, &b_rows, &b_cols));
    right = kinds[k].op_b == TULLE_TRANSPOSE ? b_rows : b_cols;
    left = kinds[k].triple ? right : kinds[k].op_a == TULLE_TRANSPOSE ? a_cols : a_rows;
    PetscCall(MatSetBlockSizes(C, left, right));
    PetscFunctionReturn(0);
}

static PetscErrorCode product_symbolic(Mat C)
{
    Mat_Product *of = C->product;
    int k = kind_of(of->type);
    product *p;
    tulle_csr c;
    PetscInt *lengths;
    const PetscInt *row_ptr;

    PetscFunctionBegin;
    PetscCheck(k >= 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Not a product of ours");
    PetscCall(PetscNew(&p));
    of->data = p;                       /* PETSc destroys it, whatever happens below */
    of->destroy = product_destroy;
    PetscCall(make_plans(C, k, p, &c));
    row_ptr = (const PetscInt *)c.row_ptr;
    PetscCall(MatSetSizes(C, (PetscInt)c.rows, (PetscInt)c.cols, (PetscInt)c.rows, (PetscInt)c.cols));
    PetscCall(MatSetType(C, SEQAIJTULLE));
    PetscCall(set_block_sizes(C, k));
    PetscCall(PetscMalloc1((size_t)c.rows, &lengths));
    for (int64_t i = 0; i < c.rows; i++) lengths[i] = row_ptr[i + 1] - row_ptr[i];
    PetscCall(MatSeqAIJSetPreallocation(C, 0, lengths));
    PetscCall(PetscFree(lengths));
    if (c.nnz > 0) PetscCall(MatSeqAIJSetColumnIndices(C, (PetscInt *)(uintptr_t)c.col_idx));
    PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
    PetscCall(MatSetOption(C, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
    C->ops->productnumeric = product_numeric;
    PetscCall(PetscInfo(C, "%s by tulle: %" PetscInt_FMT " entries\n", MatProductTypes[of->type], p->nnz));
    PetscFunctionReturn(0);
}

static PetscErrorCode product_options(Mat C)
{
    PetscBool plain_a, plain_b;

    PetscFunctionBegin;
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)C->product->A, MATSEQAIJ, &plain_a));
    PetscCall(PetscObjectBaseTypeCompare((PetscObject)C->product->B, MATSEQAIJ, &plain_b));
    /* MAT_FORCE_DIAGONAL_ENTRIES asks for entries that are not in the product's pattern */
    if (plain_a && plain_b && kind_of(C->product->type) >= 0 && !C->force_diagonals)
        C->ops->productsymbolic = product_symbolic;
    else if (of_seqaij) PetscCall((*of_seqaij)(C));
    PetscFunctionReturn(0);
}

/* A product of our type with another, for which PETSc has nothing: uses what it has for SeqAIJ and the
 * other. */
static PetscErrorCode product_any(Mat C)
{
    Mat_Product *of = C->product;
    Mat factor[] = {of->A, of->B, of->type == MATPRODUCT_ABC ? of->C : NULL};
    char name[256] = "MatProductSetFromOptions_";
    PetscErrorCode (*f)(Mat) = NULL;
    PetscBool ours;

    PetscFunctionBegin;
    for (int k = 0; k < 3 && factor[k]; k++) {
        PetscCall(PetscObjectTypeCompare((PetscObject)factor[k], SEQAIJTULLE, &ours));
        PetscCall(PetscStrlcat(name, ours ? MATSEQAIJ : ((PetscObject)factor[k])->type_name, sizeof name));
        PetscCall(PetscStrlcat(name, "_", sizeof name));
    }
    PetscCall(PetscStrlcat(name, "C", sizeof name));
    for (int k = 0; k < 3 && factor[k] && !f; k++)
        PetscCall(PetscObjectQueryFunction((PetscObject)factor[k], name, &f));
    if (f) PetscCall((*f)(C));
    PetscFunctionReturn(0);
}

/* ---- the type */

/* Registers SeqAIJ's conversions for our type, too; without them PETSc converts entry by entry, or fails. */
static PetscErrorCode conversions(Mat B, PetscBool ours)
{
    static const char *const others[] = {"seqdense", "seqbaij", "seqsbaij", "seqsell", "is", "hypre",
                                         "elemental", "scalapack", "seqaijperm", "seqaijsell", "seqaijcrl",
                                         "seqaijmkl", "seqaijviennacl", "seqaijkokkos", "seqaijcusparse"};
    char from[128], to[128];
    void (*f)(void);

    PetscFunctionBegin;
    for (int k = 0; k < (int)(sizeof others / sizeof *others); k++) {
        PetscCall(PetscSNPrintf(from, sizeof from, "MatConvert_seqaij_%s_C", others[k]));
        PetscCall(PetscSNPrintf(to, sizeof to, "MatConvert_" SEQAIJTULLE "_%s_C", others[k]));
        PetscCall(PetscObjectQueryFunction((PetscObject)B, from, &f));
        if (f) PetscCall(PetscObjectComposeFunction((PetscObject)B, to, ours ? f : NULL));
    }
    PetscFunctionReturn(0);
}

static PetscErrorCode to_seqaij(Mat A, MatType type, MatReuse reuse, Mat *out)
{
    Mat B = *out;

    PetscFunctionBegin;
    (void)type;
    if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    B->ops->productsetfromoptions = of_seqaij;
    PetscCall(PetscObjectComposeFunction((PetscObject)B, "MatConvert_" SEQAIJTULLE "_seqaij_C", NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)B, "MatProductSetFromOptions_" SEQAIJTULLE "_seqaij_C",
                                         NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)B, "MatProductSetFromOptions_seqaij_" SEQAIJTULLE "_C",
                                         NULL));
    PetscCall(PetscObjectComposeFunction((PetscObject)B, "MatProductSetFromOptions_anytype_C", NULL));
    PetscCall(conversions(B, PETSC_FALSE));
    PetscCall(PetscObjectChangeTypeName((PetscObject)B, MATSEQAIJ));
    *out = B;
    PetscFunctionReturn(0);
}

static PetscErrorCode from_seqaij(Mat A, MatType type, MatReuse reuse, Mat *out)
{
    Mat B = *out;
    PetscBool is;

    PetscFunctionBegin;
    (void)type;
    if (reuse == MAT_INITIAL_MATRIX) PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
    PetscCall(PetscObjectTypeCompare((PetscObject)B, SEQAIJTULLE, &is));
    if (!is) {
        if (B->ops->productsetfromoptions != product_options) of_seqaij = B->ops->productsetfromoptions;
        B->ops->productsetfromoptions = product_options;
        PetscCall(PetscObjectComposeFunction((PetscObject)B, "MatProductSetFromOptions_anytype_C",
                                             product_any));
        PetscCall(conversions(B, PETSC_TRUE));
        PetscCall(PetscObjectComposeFunction((PetscObject)B, "MatConvert_" SEQAIJTULLE "_seqaij_C",
                                             to_seqaij));
        PetscCall(PetscObjectComposeFunction((PetscObject)B, "MatProductSetFromOptions_" SEQAIJTULLE
                                             "_seqaij_C", product_options));
        PetscCall(PetscObjectComposeFunction((PetscObject)B, "MatProductSetFromOptions_seqaij_" SEQAIJTULLE
                                             "_C", product_options));
        PetscCall(PetscObjectChangeTypeName((PetscObject)B, SEQAIJTULLE));
    }
    *out = B;
    PetscFunctionReturn(0);
}

static PetscErrorCode create(Mat A)
{
    PetscBool is;

    PetscFunctionBegin;
    PetscCall(MatSetType(A, MATSEQAIJ));
    /* it may already be ours, due to -mat_seqaij_type */
    PetscCall(PetscObjectTypeCompare((PetscObject)A, SEQAIJTULLE, &is));
    if (!is) PetscCall(from_seqaij(A, SEQAIJTULLE, MAT_INPLACE_MATRIX, &A));
    PetscFunctionReturn(0);
}

/* PETSc calls this when it has opened the library. */
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_petsctulle(void);
PETSC_EXTERN PetscErrorCode PetscDLLibraryRegister_petsctulle(void)
{
    PetscFunctionBegin;
    PetscCall(MatRegister(SEQAIJTULLE, create));
    /* On several ranks it is an MPIAIJ, whose two local matrices on each rank are of our type. */
    PetscCall(MatRegisterRootName("aijtulle", SEQAIJTULLE, MATMPIAIJ));
    PetscCall(MatSeqAIJRegister(SEQAIJTULLE, from_seqaij));
    PetscFunctionReturn(0);
}
