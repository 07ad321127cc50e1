/* How the head, the table and the pages of `jzx top` look, for a canvas of any size. Pure. */
#ifndef JZX_CMD_TOP_VIEW_H
#define JZX_CMD_TOP_VIEW_H

#include "top_canvas.h"
#include "top_model.h"
#include "top_program.h"

/* The smallest terminal with a view; below it there is a sentence. */
enum { TOP_ROWS_MIN = 5, TOP_COLUMNS_MIN = 20 };

/* Columns of the table in a width; 0: it is not shown. Their sum with a blank between each two is
 * never over `columns`. What matters less goes first. `names` is the longest name that needs room.
 */
typedef struct top_layout {
    int width[TOP_COLUMNS];
    int bar;   /* of the mailbox, beside its number; 0: none */
    bool wide; /* titles in full */
} top_layout;
void top_layout_make(top_layout *layout, int columns, int ids, int names);

/* Rows that the head takes in a terminal with so many. */
int top_view_head_rows(const top_program *program, int rows);
/* Rows that are left for actors. */
int top_view_table_rows(const top_program *program, int rows);

void top_view_head(top_canvas *canvas, const top_program *program);
/* The titles and the rows; `chosen` marks the row that the keys act on. */
void top_view_table(top_canvas *canvas, const top_model *model, int rows, bool chosen);
/* "1-18 of 120, by mailbox, filter 'x'": what the table shows. */
void top_view_summary(top_canvas *canvas, const top_model *model, top_style style);
void top_view_too_small(top_canvas *canvas);

top_style top_state_style(const char *state);

#endif
