/* SPDX-License-Identifier: MIT
 *
 * spy.c - `tulle spy`: a picture of where the entries are.
 *
 * The matrix is laid over a grid of cells and each cell counts its entries; the darker a cell, the
 * fuller.  The scale is logarithmic, because a few full cells among many with one entry are the
 * interesting case.  Small matrices get several pixels a cell. */
#include "program.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 1024, CHARACTERS = 64, MARGIN = 8, SHADES = 250, PAPER = SHADES, FRAME };

typedef struct grid {
    int      width, height;         /* cells */
    int64_t *count;
    int64_t  most;
} grid;

static int cells(int64_t length, int64_t longest, int size)
{
    if (longest <= size) return (int)length;
    int n = (int)llround((double)length * size / (double)longest);
    return n > 0 ? n : length > 0;
}

/* Of so many; an index beyond 2^53 is rounded, and may be that of the end. */
static int cell_of(int64_t index, double scale, int count)
{
    int cell = (int)(((double)index + 0.5) * scale);
    return cell < count ? cell : count - 1;
}

static int grid_fill(const tulle_csr *A, int width, int height, grid *g)
{
    *g = (grid){.width = width, .height = height};
    g->count = calloc((size_t)width * (size_t)height + 1, sizeof *g->count);
    if (!g->count) return no_memory("the grid of the picture");
    double across = A->cols > 0 ? (double)width / (double)A->cols : 0;
    double down = A->rows > 0 ? (double)height / (double)A->rows : 0;
    for (int64_t i = 0; i < A->rows; i++) {
        int y = cell_of(i, down, height);
        int64_t *line = g->count + (size_t)y * (size_t)width;
        for (int64_t k = csr_row(A, i); k < csr_row(A, i + 1); k++)
            line[cell_of(csr_col(A, k), across, width)]++;
    }
    for (size_t k = 0; k < (size_t)width * (size_t)height; k++)
        if (g->count[k] > g->most) g->most = g->count[k];
    return END_OK;
}

/* 0 for a cell with few entries, 1 for the fullest.  A matrix with one entry a cell is drawn dark. */
static double fullness(const grid *g, int64_t count)
{
    return g->most > 1 ? log((double)count) / log((double)g->most) : 1;
}

/* ---- in pixels */

static void make_palette(uint8_t palette[256][3])
{
    static const double stop[][3] = {   /* from light green over blue to night */
        {127, 205, 187}, {65, 182, 196}, {29, 145, 192}, {34, 94, 168}, {37, 52, 148}, {8, 29, 88}};
    enum { STOPS = sizeof stop / sizeof *stop };
    for (int i = 0; i < SHADES; i++) {
        double at = (double)i / (SHADES - 1) * (STOPS - 1);
        int k = (int)at < STOPS - 1 ? (int)at : STOPS - 2;
        for (int c = 0; c < 3; c++)
            palette[i][c] = (uint8_t)(0.5 + stop[k][c] + (at - k) * (stop[k + 1][c] - stop[k][c]));
    }
    memset(palette[PAPER], 255, 3);
    memset(palette[FRAME], 150, 3);
}

static int draw(session *s, const grid *g, int scale, const char *path)
{
    uint8_t palette[256][3];
    int inner_w = g->width * scale, inner_h = g->height * scale;
    int width = inner_w + 2 * (MARGIN + 1), height = inner_h + 2 * (MARGIN + 1);
    uint8_t *pixels = malloc((size_t)width * (size_t)height);
    if (!pixels) return no_memory("the picture");
    make_palette(palette);
    memset(pixels, PAPER, (size_t)width * (size_t)height);
    for (int y = -1; y <= inner_h; y++) {
        uint8_t *line = pixels + (size_t)(y + MARGIN + 1) * (size_t)width + MARGIN + 1;
        if (y < 0 || y == inner_h) {
            memset(line - 1, FRAME, (size_t)inner_w + 2);
            continue;
        }
        line[-1] = line[inner_w] = FRAME;
        for (int x = 0; x < inner_w; x++) {
            int64_t count = g->count[(size_t)(y / scale) * (size_t)g->width + (size_t)(x / scale)];
            if (count > 0) line[x] = (uint8_t)(fullness(g, count) * (SHADES - 1) + 0.5);
        }
    }
    int code = png_write(s, path, width, height, pixels, (const uint8_t (*)[3])palette, FRAME + 1);
    free(pixels);
    return code;
}

static int spy_png(session *s, const operand *a)
{
    const options *o = s->o;
    const tulle_csr *A = &a->view;
    int size = o->size ? o->size : PIXELS, code = END_OK;
    int64_t longest = A->rows > A->cols ? A->rows : A->cols;
    int scale = longest > 0 && longest < size ? (int)(size / longest) : 1;
    grid g = {0};
    GO(grid_fill(A, cells(A->cols, longest, size), cells(A->rows, longest, size), &g));
    GO(draw(s, &g, scale, o->output));
    if (!o->quiet) {
        print_operand("A", a);
        printf("written: %s\n", o->output);
    }
done:
    free(g.count);
    return code;
}

/* ---- in characters, which are twice as high as wide */

static void print_edge(int width)
{
    putchar('+');
    for (int x = 0; x < width; x++) putchar('-');
    printf("+\n");
}

static int spy_text(const options *o, const operand *a)
{
    static const char shade[] = ".:+*#@";
    const tulle_csr *A = &a->view;
    int size = o->size ? o->size : CHARACTERS, code = END_OK;
    int64_t longest = A->rows > A->cols ? A->rows : A->cols;
    grid g = {0};
    if (size > 400) return complain(END_USAGE, "--size is at most 400 characters without -o");
    int width = cells(A->cols, longest, size), height = (cells(A->rows, longest, size) + 1) / 2;
    GO(grid_fill(A, width, height, &g));
    print_operand("A", a);
    print_edge(width);
    for (int y = 0; y < height; y++) {
        putchar('|');
        for (int x = 0; x < width; x++) {
            int64_t count = g.count[(size_t)y * (size_t)width + (size_t)x];
            putchar(count > 0 ? shade[(int)(fullness(&g, count) * (sizeof shade - 2) + 0.5)] : ' ');
        }
        printf("|\n");
    }
    print_edge(width);
done:
    free(g.count);
    return code;
}

int run_spy(const options *o)
{
    int code = END_OK;
    session s = {0};
    operand a = {0};
    GO(output_name(o->output, PICTURE_FILE));
    GO(session_open(&s, o));
    GO(output_place(&s, o->output));
    GO(operand_load(&s, o->operand[0], &a));
    progress_erase(&s.bar);
    code = o->output ? spy_png(&s, &a) : spy_text(o, &a);
done:
    operand_free(&a);
    session_close(&s);
    return code;
}
