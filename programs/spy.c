/* SPDX-License-Identifier: MIT
 *
 * spy.c - `tulle spy`: a picture of the sparsity pattern.
 *
 * The matrix is divided into a grid of cells, and the entries of each cell are counted: the more, the darker.
 * The scale is logarithmic, because a few full cells among many with one entry are the interesting case.  In
 * small matrices a cell has several pixels.  The short side of a long thin matrix is drawn longer than to
 * scale, as nothing would be visible otherwise: the caption of the picture says so.
 *
 * A picture has a title with size and entries above, and a legend of colours and cells below. */
#include "program.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIXELS = 1024, CHARACTERS = 64, MARGIN = 8, SHADES = 250, PAPER = SHADES, FRAME, INK, COLOURS,
    THINNEST = 8,                       /* the long side is drawn at most so many times the short one */
    LINE = TEXT_HIGH + 4
};

typedef struct grid {
    int      width, height;         /* cells */
    int      scale_x, scale_y;      /* pixels of a cell */
    bool     stretched;             /* the sides are not to one scale */
    int64_t *count;
    int64_t  most;
} grid;

/* Cells along one side, and pixels for each, of a picture whose longest side has `size` pixels. */
static int cells(int64_t length, int64_t longest, int size, int *scale, bool *stretched)
{
    *scale = 1;
    if (length == 0) return 0;
    int natural = longest <= size ? (int)(length * (size / longest))
                                  : (int)llround((double)length * size / (double)longest);
    int least = size / THINNEST, wanted = natural;
    if (longest / THINNEST > length && natural < least) {
        wanted = least;
        *stretched = true;
    }
    if (wanted < 1) wanted = 1;
    int n = length < wanted ? (int)length : wanted;
    *scale = wanted / n;
    return n;
}

/* The cell of an index, out of so many; an index beyond 2^53 is rounded, and may be one too large. */
static int cell_of(int64_t index, double scale, int count)
{
    int cell = (int)(((double)index + 0.5) * scale);
    return cell < count ? cell : count - 1;
}

static int grid_fill(const tulle_csr *A, grid *g)
{
    int width = g->width, height = g->height;
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
    memset(palette[INK], 40, 3);
}

typedef struct canvas {
    int      width, height;
    uint8_t *pixels;
} canvas;

static uint8_t *canvas_at(const canvas *c, int x, int y)
{
    return c->pixels + (size_t)y * (size_t)c->width + (size_t)x;
}

/* Draws a text; of one that is too long the end, which in a path is the file name. */
static void say(const canvas *c, int y, const char *text)
{
    int room = (c->width - 2 * MARGIN) / TEXT_STEP, length = (int)strlen(text);
    text_draw(c->pixels, c->width, c->height, MARGIN, y, length > room ? text + length - room : text, INK);
}

static void frame(const canvas *c, int x, int y, int width, int height)
{
    memset(canvas_at(c, x - 1, y - 1), FRAME, (size_t)width + 2);
    memset(canvas_at(c, x - 1, y + height), FRAME, (size_t)width + 2);
    for (int i = 0; i < height; i++) *canvas_at(c, x - 1, y + i) = *canvas_at(c, x + width, y + i) = FRAME;
}

static void draw_cells(const canvas *c, const grid *g, int x0, int y0)
{
    for (int y = 0; y < g->height * g->scale_y; y++)
        for (int x = 0; x < g->width * g->scale_x; x++) {
            int64_t count = g->count[(size_t)(y / g->scale_y) * (size_t)g->width + (size_t)(x / g->scale_x)];
            if (count > 0) *canvas_at(c, x0 + x, y0 + y) = (uint8_t)(fullness(g, count) * (SHADES - 1) + 0.5);
        }
}

/* What the colours mean: a bar of them between the counts of its ends. */
static void draw_scale(const canvas *c, const grid *g, int y)
{
    figure most;
    char text[80];
    count_text(most, g->most);
    if (g->most < 2) {
        say(c, y, g->most ? "no cell has more than 1 entry" : "no entries");
        return;
    }
    say(c, y, "entries in a cell: 1");
    int x = MARGIN + text_width("entries in a cell: 1 ");
    int bar = c->width - MARGIN - x - text_width(most) - TEXT_STEP;
    if (bar < 32) {                     /* no room: in words */
        snprintf(text, sizeof text, "entries in a cell: 1 to %s", most);
        memset(canvas_at(c, 0, y), PAPER, (size_t)c->width * TEXT_HIGH);
        say(c, y, text);
        return;
    }
    if (bar > SHADES) bar = SHADES;
    for (int j = 0; j < TEXT_HIGH; j++)
        for (int i = 0; i < bar; i++)
            *canvas_at(c, x + i, y + j) = (uint8_t)((double)i / (bar - 1) * (SHADES - 1) + 0.5);
    text_draw(c->pixels, c->width, c->height, x + bar + TEXT_STEP, y, most, INK);
}

static void cell_text(char *text, size_t bytes, const tulle_csr *A, const grid *g)
{
    double high = ratio((double)A->rows, g->height), wide = ratio((double)A->cols, g->width);
    if (A->rows == 0 || A->cols == 0) text[0] = 0;
    else if (g->height == A->rows && g->width == A->cols) snprintf(text, bytes, "a cell is one place");
    else snprintf(text, bytes, "a cell is %.4g x %.4g places", high, wide);
    if (g->stretched) strncat(text, "; sides not to one scale", bytes - strlen(text) - 1);
}

static int draw(session *s, const operand *a, const grid *g, const char *path)
{
    uint8_t palette[256][3];
    char size[160], cell[96];
    figure rows, cols, nnz;
    int inner_w = g->width * g->scale_x, inner_h = g->height * g->scale_y, top = MARGIN + 2 * LINE + 1;
    canvas c = {inner_w + 2 * (MARGIN + 1), top + inner_h + 1 + MARGIN + 2 * LINE, NULL};
    snprintf(size, sizeof size, "%s x %s, %s entries", count_text(rows, a->view.rows),
             count_text(cols, a->view.cols), count_text(nnz, a->view.nnz));
    cell_text(cell, sizeof cell, &a->view, g);
    int text = text_width(size) > text_width(cell) ? text_width(size) : text_width(cell);
    if (c.width < text + 2 * MARGIN) c.width = text + 2 * MARGIN;
    c.pixels = malloc((size_t)c.width * (size_t)c.height);
    if (!c.pixels) return no_memory("the picture");
    make_palette(palette);
    memset(c.pixels, PAPER, (size_t)c.width * (size_t)c.height);
    say(&c, MARGIN, a->name);
    say(&c, MARGIN + LINE, size);
    frame(&c, MARGIN + 1, top, inner_w, inner_h);
    draw_cells(&c, g, MARGIN + 1, top);
    draw_scale(&c, g, top + inner_h + MARGIN);
    say(&c, top + inner_h + MARGIN + LINE, cell);
    int code = png_write(s, path, c.width, c.height, c.pixels, (const uint8_t (*)[3])palette, COLOURS);
    free(c.pixels);
    return code;
}

static void grid_size(const tulle_csr *A, int size, grid *g)
{
    int64_t longest = A->rows > A->cols ? A->rows : A->cols;
    *g = (grid){0};
    g->width = cells(A->cols, longest, size, &g->scale_x, &g->stretched);
    g->height = cells(A->rows, longest, size, &g->scale_y, &g->stretched);
}

static int spy_png(session *s, const operand *a)
{
    const options *o = s->o;
    int code = END_OK;
    grid g;
    grid_size(&a->view, o->size ? o->size : PIXELS, &g);
    GO(grid_fill(&a->view, &g));
    GO(draw(s, a, &g, o->output));
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
    grid g = {0};
    if (size > 400) return complain(END_USAGE, "--size is at most 400 characters without -o");
    grid_size(A, size, &g);
    g.height = (g.height + 1) / 2;
    GO(grid_fill(A, &g));
    int width = g.width, height = g.height;
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
