#include "top_canvas.h"

#include "text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_PER_COLUMN = 4, COLUMNS_MAX = 1024 };

void top_canvas_begin(top_canvas *canvas, int rows, int columns)
{
    canvas->rows = rows;
    canvas->columns = columns < COLUMNS_MAX ? columns : COLUMNS_MAX;
    canvas->row = -1;
    canvas->column = 0;
    canvas->chosen = false;
    canvas->failed = false;
    canvas->piece_count = 0;
    canvas->text_len = 0;
}

void top_canvas_deinit(top_canvas *canvas)
{
    free(canvas->pieces);
    free(canvas->texts);
    *canvas = (top_canvas){0};
}

void top_canvas_line(top_canvas *canvas)
{
    top_canvas_move(canvas, canvas->row + 1, 0);
}

void top_canvas_move(top_canvas *canvas, int row, int column)
{
    canvas->row = row;
    canvas->column = column;
    canvas->chosen = false;
}

/* Makes room for one more piece with so many bytes of text. */
static bool top_canvas_make_room(top_canvas *canvas, size_t len)
{
    if (canvas->piece_count == canvas->piece_cap) {
        size_t cap = canvas->piece_cap == 0 ? 256 : 2 * canvas->piece_cap;
        top_piece *pieces = realloc(canvas->pieces, cap * sizeof *pieces);
        if (pieces == NULL) {
            return false;
        }
        canvas->pieces = pieces;
        canvas->piece_cap = cap;
    }
    if (canvas->text_cap - canvas->text_len < len) {
        size_t cap = 2 * canvas->text_cap + len + 4096;
        char *texts = realloc(canvas->texts, cap);
        if (texts == NULL) {
            return false;
        }
        canvas->texts = texts;
        canvas->text_cap = cap;
    }
    return true;
}

/* Text that is known to take `columns`. */
static void add_piece(top_canvas *canvas, top_style style, int columns, const char *text)
{
    size_t len = strlen(text) + 1;
    if (canvas->row < 0 || canvas->row >= canvas->rows || columns == 0) {
        return;
    }
    if (!top_canvas_make_room(canvas, len)) {
        canvas->failed = true;
        return;
    }
    memcpy(canvas->texts + canvas->text_len, text, len);
    canvas->pieces[canvas->piece_count++] = (top_piece){.row = canvas->row,
                                                        .column = canvas->column,
                                                        .columns = columns,
                                                        .style = style,
                                                        .chosen = canvas->chosen,
                                                        .text = canvas->text_len};
    canvas->text_len += len;
}

static int room_left(const top_canvas *canvas)
{
    return canvas->column < canvas->columns ? canvas->columns - canvas->column : 0;
}

void top_put(top_canvas *canvas, top_style style, const char *format, ...)
{
    char whole[2048];
    char fitted[COLUMNS_MAX * BYTES_PER_COLUMN + 8];
    va_list args;
    va_start(args, format);
    vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    int taken = (int)text_fit(fitted, sizeof fitted, whole, (size_t)room_left(canvas));
    add_piece(canvas, style, taken, fitted);
    canvas->column += taken;
}

/* Blanks as part of the row, so that what is under them is overwritten. */
static void put_blanks(top_canvas *canvas, top_style style, int columns)
{
    char blanks[COLUMNS_MAX + 1];
    memset(blanks, ' ', (size_t)columns);
    blanks[columns] = '\0';
    add_piece(canvas, style, columns, blanks);
    canvas->column += columns;
}

static void put_cell(top_canvas *canvas, top_style style, int columns, const char *text, bool right)
{
    char fitted[COLUMNS_MAX * BYTES_PER_COLUMN + 8];
    int room = room_left(canvas);
    columns = columns < room ? columns : room;
    int taken = (int)text_fit(fitted, sizeof fitted, text, (size_t)columns);
    if (right) {
        put_blanks(canvas, style, columns - taken);
    }
    add_piece(canvas, style, taken, fitted);
    canvas->column += taken;
    if (!right) {
        put_blanks(canvas, style, columns - taken);
    }
}

void top_put_left(top_canvas *canvas, top_style style, int columns, const char *text)
{
    put_cell(canvas, style, columns, text, false);
}

void top_put_right(top_canvas *canvas, top_style style, int columns, const char *text)
{
    put_cell(canvas, style, columns, text, true);
}

void top_put_rest(top_canvas *canvas, top_style style)
{
    put_blanks(canvas, style, room_left(canvas));
}

void top_canvas_show(top_canvas *canvas, const top_canvas *page, int from, int rows)
{
    int first = canvas->row + 1;
    for (size_t i = 0; i < page->piece_count; i++) {
        const top_piece *piece = &page->pieces[i];
        if (piece->row < from || piece->row - from >= rows ||
            piece->column + piece->columns > canvas->columns) {
            continue;
        }
        top_canvas_move(canvas, first + piece->row - from, piece->column);
        canvas->chosen = piece->chosen;
        add_piece(canvas, piece->style, piece->columns, top_canvas_text(page, piece));
    }
    top_canvas_move(canvas, first + rows - 1, canvas->columns);
}

const char *top_canvas_text(const top_canvas *canvas, const top_piece *piece)
{
    return canvas->texts + piece->text;
}

/* Blanks until a column, but not before something follows: so no line ends with any. */
void top_canvas_print(const top_canvas *canvas, FILE *out)
{
    int row = 0;
    int column = 0;
    for (size_t i = 0; i < canvas->piece_count; i++) {
        const top_piece *piece = &canvas->pieces[i];
        const char *text = top_canvas_text(canvas, piece);
        size_t len = strlen(text);
        while (len > 0 && text[len - 1] == ' ') {
            len--;
        }
        if (len == 0) {
            continue;
        }
        for (; row < piece->row; row++) {
            fputc('\n', out);
            column = 0;
        }
        fprintf(out, "%*s%.*s", piece->column - column, "", (int)len, text);
        column = piece->column + piece->columns - (int)(strlen(text) - len);
    }
    fputc('\n', out);
}
