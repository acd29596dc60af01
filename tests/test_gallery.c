/* SPDX-License-Identifier: MIT
 *
 * test_gallery.c - the gallery: well-known matrices against published figures and recorded hashes of their
 * patterns; every recipe gives a valid matrix, the same for any number of threads; and invalid parameters. */
#include <inttypes.h>
#include <stdlib.h>
#include "matrix/gallery.h"
#include "test.h"

static tl_base *base_with(int threads)
{
    tl_base *b = NULL;
    if (tl_base_create(NULL, threads, sizeof *b, &b) != TULLE_OK) abort();
    return b;
}

/* NULL after a failure, which is recorded */
static tulle_matrix *make(tl_base *b, const char *recipe)
{
    tulle_matrix *A = NULL;
    tulle_status status = tl_gallery(b, recipe, &A);
    CHECK(status == TULLE_OK && A, "%s: %s", recipe, b->error);
    return status == TULLE_OK ? A : NULL;
}

static int64_t col_at(const tulle_csr *A, int64_t k)
{
    return tl_get(A->col_idx, A->idx_type, k);
}

static double val_at(const tulle_csr *A, int64_t k)
{
    return ((const double *)A->values)[k];
}

static int64_t row_length(const tulle_csr *A, int64_t i)
{
    return tl_row_begin(A, i + 1) - tl_row_begin(A, i);
}

/* The index of entry (i, j), -1 if there is none. */
static int64_t find(const tulle_csr *A, int64_t i, int64_t j)
{
    int64_t low = tl_row_begin(A, i), high = tl_row_begin(A, i + 1);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (col_at(A, middle) < j) low = middle + 1;
        else high = middle;
    }
    return low < tl_row_begin(A, i + 1) && col_at(A, low) == j ? low : -1;
}

/* Checks all properties of a valid view, independently of the library. */
static bool valid(const tulle_csr *A)
{
    if (tl_row_begin(A, 0) != 0 || tl_row_begin(A, A->rows) != A->nnz || A->val_type != TULLE_F64)
        return false;
    for (int64_t i = 0; i < A->rows; i++) {
        int64_t last = -1;
        if (row_length(A, i) < 0) return false;
        for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++) {
            if (col_at(A, k) <= last || col_at(A, k) >= A->cols) return false;
            if (!(val_at(A, k) - val_at(A, k) == 0)) return false;          /* finite */
            last = col_at(A, k);
        }
    }
    return true;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static uint64_t hash_pattern(const tulle_csr *A)
{
    uint64_t h = 0x1234;
    for (int64_t i = 0; i < A->rows; i++) {
        h = mix(h + (uint64_t)tl_row_begin(A, i + 1));
        for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++)
            h = mix(h + (uint64_t)col_at(A, k) + 1);
    }
    return h;
}

static uint64_t hash_values(const tulle_csr *A)
{
    uint64_t h = 0x5678;
    for (int64_t k = 0; k < A->nnz; k++) {
        uint64_t bits;
        double v = val_at(A, k);
        memcpy(&bits, &v, sizeof bits);
        h = mix(h + bits);
    }
    return h;
}

static int64_t count_products(const tulle_csr *A)
{
    int64_t products = 0;
    for (int64_t k = 0; k < A->nnz; k++) products += row_length(A, col_at(A, k));
    return products;
}

static bool same(const tulle_csr *A, const tulle_csr *B)
{
    return A->rows == B->rows && A->cols == B->cols && A->nnz == B->nnz
        && hash_pattern(A) == hash_pattern(B) && hash_values(A) == hash_values(B);
}

static void expect_symmetric(const tulle_csr *A, bool values, const char *name)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t k = tl_row_begin(A, i); k < tl_row_begin(A, i + 1); k++) {
            int64_t mirror = find(A, col_at(A, k), i);
            wrong += mirror < 0 || (values && val_at(A, mirror) != val_at(A, k));
        }
    CHECK(wrong == 0, "%s: %" PRId64 " entries have no mirror image", name, wrong);
}

/* ---- well-known matrices.  The sizes are the published ones; the hashes were recorded after patterns, and
 * values if there is a hash of them, had been compared entry by entry with reference copies. */

static const struct { const char *recipe; int64_t rows, nnz, products; uint64_t pattern, values; } known[] = {
    {"cage3",           5,       19,      75,         0xd9a3c98872473cce, 0x60ce6deb558d91ed},
    {"cage4",           9,       49,      269,        0xd0d51e1cbb1a8069, 0x833a168ce0f6bd42},
    {"cage5",           37,      233,     1597,       0x8b11eab846cb6056, 0xfb9918ab2c032f16},
    {"cage6",           93,      785,     7073,       0xd0652e1acf13c955, 0x657c76f70afcff93},
    {"cage7",           340,     3084,    30896,      0x915d55c8912a8db2, 0x5a28672617bce8fa},
    {"cage8",           1015,    11003,   129443,     0x62149190a213b7c1, 0x1c5f616f38011a0f},
    {"cage9",           3534,    41594,   539294,     0xda291f2191f589cb, 0x3a2972eff7d08567},
    {"cage10",          11397,   150645,  2172087,    0x4fc0db04516c109d, 0xb0ca5721e512f7c4},
    {"cage:11",         39082,   559722,  8798562,    0xb7536c5a1f5e9199, 0x3e34d51a0b654a4e},
    {"cage:L=12",       130228,  2032536, 34610826,   0x88384c4b6650b0e4, 0x0d24d5a8721a6108},
    {"Baumann",         112211,  760631,  5177045,    0xd87dcc9ed6d06689, 0xa62e02f3e58c5ce7},
    {"Trefethen_20000", 20000,   554466,  15399194,   0x5983cb4088539401, 0xe10c802b7e220466},
    {"conf5_4-8x8-05",  49152,   1916928, 74760192,   0xa1cc44d0a85439b5, 0},
    {"majorbasis",      160000,  1750416, 19178064,   0xcb8eed2ad7a5f0a2, 0},
    {"mc2depi",         525825,  2100225, 8391680,    0x7c3919d83a4e4771, 0},
    {"ncvxqp3",         75000,   499964,  4244192,    0xb07f575190ad7178, 0x2d0c7c59e3d65a01},
    {"s3dkq4m2",        90449,   4820891, 258143357,  0xfdb7c742a62a8f54, 0},
    {"s3dkt3m2",        90449,   3753461, 156412181,  0xcdc0874b49c9d8ed, 0},
    {"wathen100",       30401,   471601,  7761221,    0x2602c1fa1f6f483d, 0},
    {"wathen120",       36441,   565761,  9316341,    0x2c1b49149614af9a, 0},
    {"chem_master1",    40401,   201201,  1002797,    0x3359bbfa688a96c9, 0x0fb80ccba7da6e88},
    {"mycielskian12",   3071,    407200,  121990530,  0x30cfeb6f18290922, 0x2065ab8ef81a6d00},
    {"dense2",          2000,    4000000, 8000000000, 0xa48b2060fa5f9cfb, 0},
    {"poisson2d_1000",  1000000, 4996000, 24964008,   0xffc824a37d1cf10f, 0x406e32a9eee437b8},
    {"poisson3d_64",    262144,  1810432, 12527104,   0x2002b1e6f8bc213b, 0x0704f66c7b69102c},
    {"hpcg_64",         262144,  6859000, 181321496,  0xda2217e202e2afee, 0xb2f78bbd85b6c98b},
};

static void well_known_matrices_are_what_they_are_known_for(void)
{
    tl_base *b = base_with(2);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        tulle_matrix *A = make(b, known[k].recipe);
        if (!A) continue;
        const char *name = known[k].recipe;
        int64_t products = count_products(&A->view);
        CHECK(A->view.rows == known[k].rows && A->view.cols == known[k].rows, "%s: %" PRId64 " rows", name,
              A->view.rows);
        CHECK(A->view.nnz == known[k].nnz, "%s: %" PRId64 " entries", name, A->view.nnz);
        CHECK(products == known[k].products, "%s: %" PRId64 " products", name, products);
        CHECK(hash_pattern(&A->view) == known[k].pattern, "%s: another pattern", name);
        CHECK(!known[k].values || hash_values(&A->view) == known[k].values,
              "%s: other values 0x%016" PRIx64, name, hash_values(&A->view));
        CHECK(valid(&A->view), "%s is not valid", name);
        tl_matrix_free(b, A);
    }
    tl_base_free(b);
}

/* Random recipes have no external reference; they must always generate the same matrix. */
static const struct { const char *recipe; int64_t nnz; uint64_t pattern, values; } drawn[] = {
    {"rmat:scale=10,edges=8", 6683, 0x8b9bf8e03daee49e, 0x9d7d7b10fcc3313f},
    {"rmat:scale=10,edges=8,symmetric=1,seed=7", 12056, 0x2b4b0e3704bcff6d, 0xd6bcbed98633ca0c},
    {"er:1000", 8000, 0x049c43126c43fb39, 0x3cc156eb57482997},
    {"er:rows=50,cols=20,per_row=15,values=integer", 750, 0x057e5772a08f7bcb, 0xb6e859649c11966a},
    {"zipf:2000", 31405, 0x6310135ec566abfb, 0x5210d7524c7d83e1},
    {"banded:500,fill=0.3", 2904, 0x8e3fb1c34f06e18d, 0x430e544fe21f1b16},
    {"geometric:3000", 23984, 0x82d694518a8f0239, 0x8efb41be4e320083},
    {"wathen:10", 4861, 0xe2bb22bb5de69551, 0x1eba4a923f5cab47},
    {"elasticity3d:4", 9000, 0xbcdb78a5cd4ab9ec, 0xbae08a28e96459de},
};

static void what_was_drawn_once_is_drawn_on_every_machine(void)
{
    tl_base *b = base_with(2);
    for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++) {
        tulle_matrix *A = make(b, drawn[k].recipe);
        if (!A) continue;
        CHECK(A->view.nnz == drawn[k].nnz && hash_pattern(&A->view) == drawn[k].pattern
              && hash_values(&A->view) == drawn[k].values,
              "%s: %" PRId64 ", 0x%016" PRIx64 ", 0x%016" PRIx64, drawn[k].recipe, A->view.nnz,
              hash_pattern(&A->view), hash_values(&A->view));
        tl_matrix_free(b, A);
    }
    tl_base_free(b);
}

/* ---- every recipe */

static void every_recipe_is_valid_and_its_text_names_its_parameters(void)
{
    tl_base *b = base_with(2);
    uint64_t held = b->held;
    int n = 0;
    for (const char *name; (name = tulle_gallery_name(n)); n++) {
        const tl_recipe *r = tl_gallery_recipe(n);
        REQUIRE(r && !strcmp(r->name, name), "%s", name);
        for (const tl_param *p = r->param; p->name; p++) {
            char word[32];
            snprintf(word, sizeof word, "%s=", p->name);
            CHECK(strstr(tulle_gallery_text(n), word), "%s does not tell of %s", name, word);
        }
        tulle_matrix *A = make(b, name);
        if (!A) continue;
        CHECK(valid(&A->view) && A->view.nnz > 0, "%s is not valid", name);
        CHECK(A->view.ptr_type == TULLE_I32 && A->view.idx_type == TULLE_I32, "%s has wide indices", name);
        tl_matrix_free(b, A);
    }
    CHECK(n >= 27, "%d recipes", n);
    CHECK(!tulle_gallery_name(-1) && !tulle_gallery_text(-1) && !tulle_gallery_text(n), "names past the end");
    CHECK(b->held == held, "memory was kept");
    tl_base_free(b);
}

static void any_number_of_threads_makes_the_same_matrix(void)
{
    tl_base *one = base_with(1), *three = base_with(3);
    for (int i = 0; tulle_gallery_name(i); i++) {
        tulle_matrix *A = make(one, tulle_gallery_name(i)), *B = make(three, tulle_gallery_name(i));
        if (A && B) CHECK(same(&A->view, &B->view), "%s differs", tulle_gallery_name(i));
        tl_matrix_free(one, A);
        tl_matrix_free(three, B);
    }
    tl_base_free(one);
    tl_base_free(three);
}

static void a_seed_changes_what_is_drawn_and_nothing_else(void)
{
    static const char *const structure[] = {"er:200", "tall:200", "wide:20", "zipf:500", "rmat:8",
                                            "banded:200,fill=0.5", "geometric:500"};
    static const char *const values[] = {"poisson2d:9,values=random", "elasticity3d:3", "wathen:5",
                                         "cage:6,values=integer", "dense:20"};
    tl_base *b = base_with(2);
    for (int s = 0; s < 2; s++) {
        const char *const *list = s ? structure : values;
        size_t count = s ? sizeof structure / sizeof *structure : sizeof values / sizeof *values;
        for (size_t k = 0; k < count; k++) {
            char first[64], second[64];
            snprintf(first, sizeof first, "%s%sseed=1", list[k], strchr(list[k], ':') ? "," : ":");
            snprintf(second, sizeof second, "%s%sseed=18446744073709551615", list[k],
                     strchr(list[k], ':') ? "," : ":");
            tulle_matrix *A = make(b, list[k]), *B = make(b, first), *C = make(b, second);
            if (A && B && C) {
                bool pattern = hash_pattern(&A->view) == hash_pattern(&C->view);
                CHECK(same(&A->view, &B->view), "%s: seed 1 is not the standard", list[k]);
                CHECK(pattern == !s, "%s: another seed, pattern %s", list[k], pattern ? "same" : "other");
                CHECK(hash_values(&A->view) != hash_values(&C->view), "%s: same values", list[k]);
            }
            tl_matrix_free(b, A);
            tl_matrix_free(b, B);
            tl_matrix_free(b, C);
        }
    }
    tl_base_free(b);
}

static void values_are_of_the_kind_that_was_asked(void)
{
    static const char *const recipes[] = {"poisson3d:5", "er:300", "cage:7", "mycielskian:6", "rmat:7"};
    tl_base *b = base_with(2);
    for (size_t k = 0; k < sizeof recipes / sizeof *recipes; k++) {
        char text[64];
        tulle_matrix *N = make(b, recipes[k]);
        snprintf(text, sizeof text, "%s,values=ones", recipes[k]);
        tulle_matrix *O = make(b, text);
        snprintf(text, sizeof text, "%s,values=random", recipes[k]);
        tulle_matrix *R = make(b, text);
        snprintf(text, sizeof text, "%s,values=integer", recipes[k]);
        tulle_matrix *I = make(b, text);
        REQUIRE(N && O && R && I, "%s", recipes[k]);
        int64_t wrong = 0, seen[9] = {0}, low = 0;
        for (int64_t e = 0; e < N->view.nnz; e++) {
            double r = val_at(&R->view, e), i = val_at(&I->view, e);
            wrong += val_at(&O->view, e) != 1 || !(r >= 0.5 && r < 1.5) || i < -4 || i > 4 || i == 0
                  || i != (int)i;
            if (i >= -4 && i <= 4) seen[(int)i + 4]++;
            low += r < 1;
        }
        CHECK(wrong == 0, "%s: %" PRId64 " wrong values", recipes[k], wrong);
        for (int i = 0; i < 9; i++)
            CHECK(i == 4 || seen[i] > N->view.nnz / 16, "%s: %d came %" PRId64 " times", recipes[k], i - 4,
                  seen[i]);
        CHECK(low > N->view.nnz / 3 && low < N->view.nnz * 2 / 3, "%s: values lean", recipes[k]);
        uint64_t pattern = hash_pattern(&N->view);
        CHECK(pattern == hash_pattern(&O->view) && pattern == hash_pattern(&I->view),
              "%s: values change the pattern", recipes[k]);
        tl_matrix_free(b, N);
        tl_matrix_free(b, O);
        tl_matrix_free(b, R);
        tl_matrix_free(b, I);
    }
    tulle_matrix *A = make(b, "er:100"), *B = make(b, "er:100,values=natural");
    tulle_matrix *C = make(b, "er:100,values=random");
    if (A && B && C)
        CHECK(same(&A->view, &B->view) && same(&A->view, &C->view), "without natural values they are random");
    tl_matrix_free(b, A);
    tl_matrix_free(b, B);
    tl_matrix_free(b, C);
    tl_base_free(b);
}

/* ---- the documented properties of each recipe */

static void grids_couple_neighbours(void)
{
    static const struct { const char *recipe; int64_t nx, ny, nz; int reach, dof; } grids[] = {
        {"poisson2d:nx=7,ny=4", 7, 4, 1, 1, 1}, {"poisson2d:nx=7,ny=4,points=9", 7, 4, 1, 3, 1},
        {"poisson3d:nx=3,ny=4,nz=5", 3, 4, 5, 1, 1},
        {"poisson3d:nx=3,ny=4,nz=5,points=27", 3, 4, 5, 3, 1},
        {"elasticity3d:nx=4,ny=3,nz=2", 4, 3, 2, 3, 3}, {"elasticity3d:3,dof=1", 3, 3, 3, 3, 1},
        {"Baumann:nx=2,ny=3,nz=4", 2, 3, 4, 1, 1},
    };
    tl_base *b = base_with(2);
    for (size_t k = 0; k < sizeof grids / sizeof *grids; k++) {
        tulle_matrix *A = make(b, grids[k].recipe);
        if (!A) continue;
        int64_t nx = grids[k].nx, ny = grids[k].ny, dof = grids[k].dof, rows = nx * ny * grids[k].nz * dof;
        int64_t wrong = 0;
        REQUIRE(A->view.rows == rows && A->view.cols == rows, "%s: %" PRId64 " rows", grids[k].recipe,
                A->view.rows);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < rows; j++) {
                int64_t p = i / dof, q = j / dof;
                int64_t dx = llabs(p % nx - q % nx), dy = llabs(p / nx % ny - q / nx % ny);
                int64_t dz = llabs(p / nx / ny - q / nx / ny);
                bool near = dx <= 1 && dy <= 1 && dz <= 1 && dx + dy + dz <= grids[k].reach;
                wrong += near != (find(&A->view, i, j) >= 0);
            }
        CHECK(wrong == 0, "%s: %" PRId64 " places", grids[k].recipe, wrong);
        tl_matrix_free(b, A);
    }
    tl_base_free(b);
}

static void simple_patterns_are_what_their_names_say(void)
{
    tl_base *b = base_with(2);
    tulle_matrix *I = make(b, "identity:9"), *T = make(b, "tridiagonal:9");
    tulle_matrix *B = make(b, "banded:9,lower=1,upper=3"), *D = make(b, "dense:rows=4,cols=6");
    tulle_matrix *W = make(b, "arrow:9,width=2"), *K = make(b, "blockdiag:9,block=4");
    tulle_matrix *H = make(b, "banded:n=2000,lower=30,upper=20,fill=0.25");
    REQUIRE(I && T && B && W && K && D && H, "a recipe failed");
    int64_t wrong = 0;
    for (int64_t i = 0; i < 9; i++)
        for (int64_t j = 0; j < 9; j++) {
            int64_t t = find(&T->view, i, j), e = find(&I->view, i, j);
            wrong += (e >= 0) != (i == j) || (e >= 0 && val_at(&I->view, e) != 1);
            wrong += (t >= 0) != (llabs(i - j) <= 1) || (t >= 0 && val_at(&T->view, t) != (i == j ? 2 : -1));
            wrong += (find(&B->view, i, j) >= 0) != (j >= i - 1 && j <= i + 3);
            wrong += (find(&W->view, i, j) >= 0) != (i == j || i < 2 || j < 2);
            wrong += (find(&K->view, i, j) >= 0) != (i / 4 == j / 4);
        }
    CHECK(wrong == 0, "%" PRId64 " places", wrong);
    CHECK(D->view.rows == 4 && D->view.cols == 6 && D->view.nnz == 24, "dense");
    for (int64_t i = 0; i < 2000; i++) {
        wrong += find(&H->view, i, i) < 0;
        for (int64_t k = tl_row_begin(&H->view, i); k < tl_row_begin(&H->view, i + 1); k++)
            wrong += col_at(&H->view, k) < i - 30 || col_at(&H->view, k) > i + 20;
    }
    CHECK(wrong == 0, "a band with holes: %" PRId64 " places", wrong);
    CHECK(H->view.nnz > 2000 * 13 && H->view.nnz < 2000 * 14, "a quarter of 50: %" PRId64, H->view.nnz);
    tulle_matrix *const all[] = {I, T, B, W, K, D, H};
    for (int k = 0; k < 7; k++) tl_matrix_free(b, all[k]);
    tl_base_free(b);
}

static void random_rows_have_the_lengths_that_were_asked(void)
{
    static const struct { const char *recipe; int64_t rows, cols, per_row; } list[] = {
        {"er:500", 500, 500, 8}, {"er:rows=100,cols=10,per_row=9", 100, 10, 9},
        {"er:30,per_row=99", 30, 30, 30}, {"tall:rows=3000,cols=20", 3000, 20, 4},
        {"wide:rows=5,cols=9000", 5, 9000, 400},
        {"er:rows=3,cols=5000000000,per_row=700", 3, 5000000000, 700},
    };
    tl_base *b = base_with(2);
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        tulle_matrix *A = make(b, list[k].recipe);
        if (!A) continue;
        int64_t wrong = 0;
        for (int64_t i = 0; i < A->view.rows; i++) wrong += row_length(&A->view, i) != list[k].per_row;
        CHECK(A->view.rows == list[k].rows && A->view.cols == list[k].cols && wrong == 0,
              "%s: %" PRId64 " rows", list[k].recipe, wrong);
        CHECK(valid(&A->view), "%s is not valid", list[k].recipe);
        CHECK(A->view.ptr_type == TULLE_I32
              && A->view.idx_type == (list[k].cols > INT32_MAX ? TULLE_I64 : TULLE_I32), "%s: index types",
              list[k].recipe);
        tl_matrix_free(b, A);
    }
    tulle_matrix *Z = make(b, "zipf:4000,least=3");
    if (Z) {
        int64_t full = 0, above[2] = {0, 0};
        for (int64_t i = 0; i < 4000; i++) {
            int64_t n = row_length(&Z->view, i);
            CHECK(n >= 3, "row %" PRId64 " has %" PRId64, i, n);
            full += n == 4000;
            above[0] += n >= 6;
            above[1] += n >= 60;
        }
        CHECK(full >= 1 && full < 20, "%" PRId64 " full rows", full);
        CHECK(above[0] > 1800 && above[0] < 2200 && above[1] > 140 && above[1] < 260,
              "half should have 6 (%" PRId64 "), a twentieth 60 (%" PRId64 ")", above[0], above[1]);
    }
    tl_matrix_free(b, Z);
    tl_base_free(b);
}

static void graphs_are_symmetric_where_they_say_so(void)
{
    tl_base *b = base_with(2);
    tulle_matrix *R = make(b, "rmat:scale=10,edges=16,symmetric=1"), *D = make(b, "rmat:scale=10,edges=16");
    tulle_matrix *E = make(b, "rmat:scale=10,edges=16,a=0.25,b=0.25,c=0.25");
    tulle_matrix *G = make(b, "geometric:n=5000,degree=12"), *F = make(b, "geometric:n=60,radius=2");
    tulle_matrix *M = make(b, "mycielskian:7"), *W = make(b, "wathen:nx=7,ny=4");
    tulle_matrix *Q = make(b, "ncvxqp3:n=40,m=20");
    REQUIRE(R && D && E && G && F && M && W && Q, "a recipe failed");
    expect_symmetric(&R->view, false, "rmat");
    expect_symmetric(&G->view, false, "geometric");
    expect_symmetric(&M->view, true, "mycielskian");
    expect_symmetric(&W->view, true, "wathen");
    expect_symmetric(&Q->view, true, "ncvxqp3");
    CHECK(D->view.nnz <= 16384 && E->view.nnz > D->view.nnz, "skew makes duplicates: %" PRId64 ", %" PRId64,
          D->view.nnz, E->view.nnz);
    int64_t longest = 0, longest_even = 0;
    for (int64_t i = 0; i < 1024; i++) {
        if (row_length(&D->view, i) > longest) longest = row_length(&D->view, i);
        if (row_length(&E->view, i) > longest_even) longest_even = row_length(&E->view, i);
    }
    CHECK(longest > 4 * longest_even, "rows of %" PRId64 " and %" PRId64, longest, longest_even);
    CHECK(G->view.nnz > 5000 * 10.5 && G->view.nnz < 5000 * 12.5, "mean degree of %" PRId64,
          G->view.nnz / 5000);
    CHECK(F->view.nnz == 60 * 59, "a radius of 2 joins all");
    int64_t near = 0;
    for (int64_t i = 0; i < 5000; i++)
        for (int64_t k = tl_row_begin(&G->view, i); k < tl_row_begin(&G->view, i + 1); k++)
            near += llabs(col_at(&G->view, k) - i) < 500;
    CHECK(near == G->view.nnz, "%" PRId64 " of %" PRId64 " neighbours have near numbers", near, G->view.nnz);
    int64_t triangles = 0;
    for (int64_t i = 0; i < M->view.rows; i++)
        for (int64_t k = tl_row_begin(&M->view, i); k < tl_row_begin(&M->view, i + 1); k++)
            for (int64_t e = tl_row_begin(&M->view, i); e < k; e++)
                triangles += find(&M->view, col_at(&M->view, k), col_at(&M->view, e)) >= 0;
    CHECK(triangles == 0, "%" PRId64 " triangles", triangles);
    tulle_matrix *const all[] = {R, D, E, G, F, M, W, Q};
    for (int k = 0; k < 8; k++) tl_matrix_free(b, all[k]);
    tl_base_free(b);
}

static void interpolation_and_walks_keep_sums(void)
{
    tl_base *b = base_with(2);
    static const char *const rows[] = {"prolongator:nx=9,ny=6", "prolongator:nx=4,ny=5,nz=3", "prolongator:1"};
    for (int k = 0; k < 3; k++) {
        tulle_matrix *P = make(b, rows[k]);
        if (!P) continue;
        for (int64_t i = 0; i < P->view.rows; i++) {
            double sum = 0;
            int64_t n = row_length(&P->view, i);
            for (int64_t e = tl_row_begin(&P->view, i); e < tl_row_begin(&P->view, i + 1); e++)
                sum += val_at(&P->view, e);
            CHECK(sum == 1 && n >= 1 && n <= (k == 1 ? 8 : 4), "%s: row %" PRId64 " sums to %g",
                  rows[k], i, sum);
        }
        tl_matrix_free(b, P);
    }
    tulle_matrix *C = make(b, "cage:9");        /* a random walk: each column is a probability distribution */
    if (C) {
        double *sum = calloc((size_t)C->view.cols, sizeof *sum);
        if (!sum) abort();
        for (int64_t k = 0; k < C->view.nnz; k++) sum[col_at(&C->view, k)] += val_at(&C->view, k);
        for (int64_t j = 0; j < C->view.cols; j++)
            CHECK(sum[j] > 0.99 && sum[j] < 1.01, "column %" PRId64 " sums to %g", j, sum[j]);
        free(sum);
    }
    tl_matrix_free(b, C);
    tl_base_free(b);
}

/* ---- extreme sizes */

static void the_smallest_sizes_work(void)
{
    static const struct { const char *recipe; int64_t rows, cols, nnz; } list[] = {
        {"poisson2d:0", 0, 0, 0}, {"poisson2d:1", 1, 1, 1}, {"poisson2d:nx=0,ny=9", 0, 0, 0},
        {"poisson3d:0", 0, 0, 0}, {"poisson3d:1,points=27", 1, 1, 1}, {"elasticity3d:0", 0, 0, 0},
        {"elasticity3d:1", 3, 3, 9}, {"prolongator:0", 0, 0, 0}, {"prolongator:1", 1, 1, 1},
        {"identity:0", 0, 0, 0}, {"identity:1", 1, 1, 1}, {"tridiagonal:0", 0, 0, 0},
        {"tridiagonal:1", 1, 1, 1}, {"banded:0", 0, 0, 0}, {"banded:1", 1, 1, 1},
        {"banded:n=3,lower=1000000000000,upper=1000000000000", 3, 3, 9},
        {"banded:n=3,lower=0,upper=0", 3, 3, 3}, {"banded:n=3,fill=0", 3, 3, 3}, {"arrow:0", 0, 0, 0},
        {"arrow:1", 1, 1, 1}, {"arrow:3,width=0", 3, 3, 3}, {"arrow:3,width=9", 3, 3, 9},
        {"blockdiag:0", 0, 0, 0}, {"blockdiag:1", 1, 1, 1},
        {"blockdiag:n=3,block=1000000000000", 3, 3, 9}, {"dense:0", 0, 0, 0}, {"dense:1", 1, 1, 1},
        {"dense:rows=0,cols=1000000000000", 0, 1000000000000, 0}, {"dense:rows=5,cols=0", 5, 0, 0},
        {"er:0", 0, 0, 0}, {"er:1", 1, 1, 1}, {"er:5,per_row=0", 5, 5, 0}, {"zipf:0", 0, 0, 0},
        {"zipf:1", 1, 1, 1}, {"zipf:n=5,least=1000000000000", 5, 5, 25}, {"rmat:0", 1, 1, 1},
        {"rmat:scale=4,edges=0", 16, 16, 0}, {"rmat:scale=3,a=0,b=0,c=0", 8, 8, 1},
        {"rmat:scale=3,a=1,b=0,c=0", 8, 8, 1}, {"geometric:0", 0, 0, 0}, {"geometric:1", 1, 1, 0},
        {"geometric:n=10,degree=0", 10, 10, 0}, {"mycielskian:2", 2, 2, 2}, {"mycielskian:3", 5, 5, 10},
        {"cage:3", 5, 5, 19}, {"conf5_4:0", 0, 0, 0}, {"conf5_4:1", 12, 12, 108},
        {"conf5_4:2", 192, 192, 4032}, {"mc2depi:1,inner=1", 1, 1, 1}, {"mc2depi:2,inner=1", 2, 2, 3},
        {"mc2depi:1,inner=2", 2, 2, 3}, {"majorbasis:0", 0, 0, 0}, {"majorbasis:1", 4, 4, 12},
        {"Baumann:nx=1,ny=1,nz=1", 1, 1, 1}, {"s3dkq4m2:2,ny=1", 2, 2, 4},
        {"s3dkt3m2:2,ny=2", 8, 8, 58}, {"ncvxqp3:1,m=0", 1, 1, 1}, {"ncvxqp3:1,m=1", 2, 2, 3},
        {"wathen:0", 1, 1, 0}, {"wathen:1", 8, 8, 64}, {"Trefethen:0", 0, 0, 0},
        {"Trefethen:1", 1, 1, 1}, {"Trefethen:2", 2, 2, 4}, {"poisson2d:", 10000, 10000, 49600},
    };
    tl_base *b = base_with(3);
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        tulle_matrix *A = make(b, list[k].recipe);
        if (!A) continue;
        CHECK(A->view.rows == list[k].rows && A->view.cols == list[k].cols && A->view.nnz == list[k].nnz,
              "%s: %" PRId64 " x %" PRId64 ", %" PRId64, list[k].recipe, A->view.rows, A->view.cols,
              A->view.nnz);
        CHECK(valid(&A->view), "%s is not valid", list[k].recipe);
        tl_matrix_free(b, A);
    }
    tl_base_free(b);
}

static void names_are_read_as_people_write_them(void)
{
    static const char *const pairs[][2] = {
        {"cage7", "cage:L=7"}, {"CAGE7", "cage:7"}, {"poisson2d_12", "poisson2d:nx=12,ny=12"},
        {"poisson2d12:points=9", "poisson2d:points=9,nx=12"}, {"hpcg_4", "poisson3d:4,points=27"},
        {"hpcg:nx=2,ny=3", "poisson3d:nx=2,ny=3,nz=2,points=27"}, {"mycielskian5", "mycielskian:k=5"},
        {"trefethen_20", "Trefethen:n=20"}, {"wathen5", "wathen:nx=5,ny=5"},
        {"erdos_renyi:40", "er:40"}, {"rgg_100", "geometric:100"}, {"dense30", "dense:30"},
        {"er:20,per_row=3,per_row=2", "er:20,per_row=2"}, {"rmat:a=.5,scale=5", "rmat:5,a=0.50"},
        {"poisson2d:5,SEED=3", "poisson2d:5"},
    };
    tl_base *b = base_with(1);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        tulle_matrix *A = make(b, pairs[k][0]), *B = make(b, pairs[k][1]);
        if (A && B) CHECK(same(&A->view, &B->view), "%s is not %s", pairs[k][0], pairs[k][1]);
        tl_matrix_free(b, A);
        tl_matrix_free(b, B);
    }
    tl_base_free(b);
}

/* ---- invalid recipes */

static void hostile_recipes_get_a_sentence(void)
{
    static const char *const list[][2] = {          /* recipe, part of the message */
        {"", "the gallery has no \"\"; it has poisson2d, "}, {":", "it has"}, {":5", "it has"},
        {"nosuch:5", "no \"nosuch\"; it has poisson2d"}, {"nosuch", "Trefethen"}, {"7", "it has"},
        {"_7", "it has"}, {"poisson2", "it has"}, {"cage 5", "it has"}, {"cage12x", "it has"},
        {"poisson2d:n=5", "no parameter \"n\"; it takes nx, ny, points, seed, values"},
        {"poisson2d:=5", "no parameter \"\""}, {"poisson2d:5,6", "\"6\" needs a name"},
        {"poisson2d:5,", "OK"}, {"poisson2d:,", "nx= is not"}, {"poisson2d:5,,", "needs a name"},
        {"poisson2d:-1", "nx=-1 is not a whole number from 0 to"},
        {"poisson2d:1.5", "not a whole number"}, {"poisson2d:1e3", "not a whole number"},
        {"poisson2d: 5", "not a whole number"}, {"poisson2d:nx=", "nx= is not"},
        {"poisson2d:nx", "nx=nx is not"}, {"poisson2d:0x10", "not a whole number"},
        {"poisson2d:99999999999999999999999", "not a whole number"},
        {"poisson2d:1000000000001", "to 1000000000000"}, {"poisson2d:points=6", "only 5 and 9"},
        {"poisson2d:points=4", "from 5 to 9"}, {"poisson3d:points=9", "7 and 27"},
        {"poisson2d:seed=-1", "seed=-1"}, {"poisson2d:seed=18446744073709551616", "below 2^64"},
        {"poisson2d:seed=", "seed="},
        {"poisson2d:values=some", "none of natural, ones, random, integer"},
        {"poisson2d:1000000000000", "GiB"}, {"poisson3d:1000000000000", "GiB"},
        {"elasticity3d:100000,dof=64", "GiB"}, {"identity:1000000000000", "GiB"},
        {"dense:1000000000", "GiB"}, {"arrow:1000000000000", "GiB"},
        {"blockdiag:n=1000000000,block=1000000000", "GiB"}, {"er:1000000000000", "GiB"},
        {"er:rows=10,cols=1000000000000,per_row=1000000000000", "GiB"}, {"zipf:1000000000000", "GiB"},
        {"rmat:scale=34,edges=1000000", "GiB"}, {"geometric:1000000000000", "GiB"},
        {"mycielskian40", "GiB"}, {"conf5_4:1000", "GiB"}, {"mc2depi:1000000000000", "GiB"},
        {"majorbasis:1000000", "GiB"}, {"s3dkq4m2:1000000000000", "GiB"},
        {"ncvxqp3:1000000000000", "GiB"}, {"wathen:1000000000", "GiB"},
        {"Trefethen:1000000000000", "GiB"}, {"banded:n=1000000000,lower=1000000000", "GiB"},
        {"cage2", "L=2 is not a whole number from 3 to 15"}, {"cage16", "from 3 to 15"},
        {"cage:", "OK"}, {"mycielskian1", "from 2 to 40"},
        {"rmat:a=2", "a=2 is not a number from 0 to 1"}, {"rmat:a=.", "a=. is not"},
        {"rmat:a=0.1.2", "is not a number"}, {"rmat:a=0.9,b=0.9", "more than 1"},
        {"rmat:symmetric=2", "from 0 to 1"}, {"rmat:edges=1000001", "to 1000000"},
        {"blockdiag:block=0", "from 1 to"}, {"ncvxqp3:n=5,m=6", "more than n=5"},
        {"elasticity3d:dof=0", "from 1 to 64"}, {"banded:fill=1.01", "fill=1.01"},
        {"s3dkt3m2:1", "from 2 to"},
    };
    tl_base *b = base_with(2);
    uint64_t held = b->held;
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        tulle_matrix *A = NULL;
        tulle_status status = tl_gallery(b, list[k][0], &A);
        if (!strcmp(list[k][1], "OK")) {
            CHECK(status == TULLE_OK, "\"%s\": %s", list[k][0], b->error);
            tl_matrix_free(b, A);
            continue;
        }
        /* valid, but too large */
        tulle_status want = strcmp(list[k][1], "GiB") == 0 ? TULLE_ENOMEM : TULLE_EINVAL;
        CHECK(status == want && !A, "\"%s\" gave %s", list[k][0], tulle_status_name(status));
        CHECK(strstr(b->error, list[k][1]), "\"%s\": \"%s\" does not say \"%s\"", list[k][0],
              b->error, list[k][1]);
    }
    char longest[5000];                             /* not copied; the message has only a part */
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    tulle_matrix *A = NULL;
    CHECK(tl_gallery(b, longest, &A) == TULLE_EINVAL && !A, "a name of 4999 letters");
    CHECK(strstr(b->error, "Trefethen"), "the list is cut: %s", b->error);
    memcpy(longest, "er:", 3);
    CHECK(tl_gallery(b, longest, &A) == TULLE_EINVAL && !A, "a parameter of 4996 letters");
    CHECK(b->held == held, "memory was kept");
    tl_base_free(b);
}

/* ---- failing allocations, cancellation */

static const char *const thirsty[] = {"poisson2d:9", "rmat:5", "cage:6", "geometric:50", "Trefethen:40",
                                      "mc2depi:4,inner=3", "zipf:50", "wathen:3"};

typedef struct { int left, live; } failing;

static void *failing_alloc(void *user, size_t bytes)
{
    failing *f = user;
    if (f->left-- == 0) return NULL;
    f->live++;
    return malloc(bytes);
}

static void failing_free(void *user, void *p)
{
    ((failing *)user)->live--;
    free(p);
}

static void every_allocation_may_fail(void)
{
    for (size_t k = 0; k < sizeof thirsty / sizeof *thirsty; k++) {
        int n = 0;
        for (tulle_status status = TULLE_ENOMEM; status != TULLE_OK; n++) {
            failing f = {.left = -1};
            tulle_mem mem = {failing_alloc, failing_free, &f};
            tl_base *b = NULL;
            REQUIRE(tl_base_create(&mem, 2, sizeof *b, &b) == TULLE_OK && n < 100, "no end");
            int live = f.live;
            tulle_matrix *A = NULL;
            f.left = n;
            status = tl_gallery(b, thirsty[k], &A);
            f.left = -1;
            CHECK((status == TULLE_OK) == (A != NULL), "%s", thirsty[k]);
            CHECK(status == TULLE_OK || (status == TULLE_ENOMEM && strstr(b->error, "bytes")), "%s: %s, %s",
                  thirsty[k], tulle_status_name(status), b->error);
            tl_matrix_free(b, A);
            CHECK(f.live == live, "%s: %d blocks were kept after failure %d", thirsty[k], f.live - live, n);
            tl_base_free(b);
            CHECK(f.live == 0, "%s: %d blocks", thirsty[k], f.live);
        }
        CHECK(n > 6, "%s: only %d allocations were seen", thirsty[k], n);
    }
}

static int stop_at(void *user, const char *stage, double fraction)
{
    (void)stage;
    (void)fraction;
    return (*(int *)user)-- <= 0;
}

static void a_caller_may_stop_it(void)
{
    tl_base *b = base_with(2);
    uint64_t held = b->held;
    for (size_t k = 0; k < sizeof thirsty / sizeof *thirsty; k++)
        for (int calls = 0; calls < 3; calls += 2) {
            int left = calls;
            tulle_matrix *A = NULL;
            b->progress = stop_at;
            b->progress_user = &left;
            tulle_status status = tl_gallery(b, thirsty[k], &A);
            CHECK(status == TULLE_ECANCEL && !A, "%s after %d calls: %s", thirsty[k], calls,
                  tulle_status_name(status));
            tl_matrix_free(b, A);
            CHECK(b->held == held, "%s: memory was kept", thirsty[k]);
            b->progress = NULL;
            A = make(b, thirsty[k]);                /* and the base can still be used */
            tl_matrix_free(b, A);
        }
    tl_base_free(b);
}

TEST_MAIN(TEST(well_known_matrices_are_what_they_are_known_for),
          TEST(what_was_drawn_once_is_drawn_on_every_machine),
          TEST(every_recipe_is_valid_and_its_text_names_its_parameters),
          TEST(any_number_of_threads_makes_the_same_matrix),
          TEST(a_seed_changes_what_is_drawn_and_nothing_else),
          TEST(values_are_of_the_kind_that_was_asked),
          TEST(grids_couple_neighbours),
          TEST(simple_patterns_are_what_their_names_say),
          TEST(random_rows_have_the_lengths_that_were_asked),
          TEST(graphs_are_symmetric_where_they_say_so),
          TEST(interpolation_and_walks_keep_sums),
          TEST(the_smallest_sizes_work),
          TEST(names_are_read_as_people_write_them),
          TEST(hostile_recipes_get_a_sentence),
          TEST(every_allocation_may_fail),
          TEST(a_caller_may_stop_it))
