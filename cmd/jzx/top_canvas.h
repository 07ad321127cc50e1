/* What `jzx top` wants to show, before it is on a screen or on paper: pieces of text, each with a
 * place and a style. Whatever is put on it stays within its rows and columns. */
#ifndef JZX_CMD_TOP_CANVAS_H
#define JZX_CMD_TOP_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum top_style {
    TOP_PLAIN,
    TOP_BOLD,
    TOP_DIM,
    TOP_RED,
    TOP_GREEN,
    TOP_YELLOW,
    TOP_CYAN,
    TOP_TITLE,  /* of the table: reversed */
    TOP_SORTED, /* the title of the column that sorts */
    TOP_ALARM,  /* what must not be overlooked */
    TOP_STYLES
} top_style;

typedef struct top_piece {
    int row;
    int column;
    int columns;
    top_style style;
    bool chosen; /* part of the row that the keys act on */
    size_t text; /* where in the canvas's texts */
} top_piece;

/* Zeroed: nothing allocated yet. Memory that ran out shows as `failed`, and as missing pieces. */
typedef struct top_canvas {
    int rows;
    int columns;
    int row; /* where the next piece goes; -1 before the first line */
    int column;
    bool chosen;
    bool failed;
    top_piece *pieces; /* owned */
    size_t piece_count;
    size_t piece_cap;
    char *texts; /* owned */
    size_t text_len;
    size_t text_cap;
} top_canvas;

/* Empties the canvas. */
void top_canvas_begin(top_canvas *canvas, int rows, int columns);
void top_canvas_deinit(top_canvas *canvas);

/* Begins the next row. What is put beyond the last one is lost. */
void top_canvas_line(top_canvas *canvas);
/* Goes to a row and a column. */
void top_canvas_move(top_canvas *canvas, int row, int column);

/* Puts text where the last one ended, cut at the right edge. */
void top_put(top_canvas *canvas, top_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts text into exactly so many columns, or as many as there are left. */
void top_put_left(top_canvas *canvas, top_style style, int columns, const char *text);
void top_put_right(top_canvas *canvas, top_style style, int columns, const char *text);
/* Fills the rest of the row, so that a background goes to the edge. */
void top_put_rest(top_canvas *canvas, top_style style);

/* Copies rows [from, from + rows) of another canvas to here, below the current row. */
void top_canvas_show(top_canvas *canvas, const top_canvas *page, int from, int rows);

const char *top_canvas_text(const top_canvas *canvas, const top_piece *piece);
/* As plain lines, without blanks at their ends. */
void top_canvas_print(const top_canvas *canvas, FILE *out);

#endif
