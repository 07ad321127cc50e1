/* How the whole screen of `jzx top` is put together. */
#include "top_page.h"
#include "top_state.h"
#include "top_text.h"
#include "top_view.h"

#include <string.h>

static void put_confirm(const top_state *state, top_canvas *canvas)
{
    top_put(canvas, TOP_ALARM, "%s ", state->kill ? "Kill" : "Stop");
    top_put(canvas, TOP_ALARM, "%s",
            state->target_name[0] != '\0' ? state->target_name : state->target);
    if (state->target_name[0] != '\0') {
        top_put(canvas, TOP_ALARM, " (%s)", state->target);
    }
    top_put(canvas, TOP_ALARM, "? y: yes, any other key: no");
}

static void put_ended(const top_state *state, top_canvas *canvas)
{
    top_put(canvas, TOP_ALARM, "%s has ended.", state->program.name);
    top_put(canvas, TOP_PLAIN, "%s",
            state->waiting ? " Waiting until it is back. q: quit"
                           : " w: wait until it is back, q: quit");
}

/* What comes before all else in the last line; false: nothing does. */
static bool put_news(const top_state *state, top_canvas *canvas)
{
    if (state->mode == TOP_FILTER) {
        top_put(canvas, TOP_BOLD, "Filter: ");
        top_put(canvas, TOP_PLAIN, "%s", state->model.filter);
        top_put(canvas, TOP_TITLE, " ");
    } else if (state->mode == TOP_CONFIRM) {
        put_confirm(state, canvas);
    } else if (state->message[0] != '\0') {
        top_put(canvas, state->alarm ? TOP_ALARM : TOP_BOLD, "%s", state->message);
    } else if (state->ended) {
        put_ended(state, canvas);
    } else if (state->late_ms > 0) {
        top_put(canvas, TOP_ALARM, "No answer for %s.", top_word_ms(state->late_ms).text);
    } else {
        return false;
    }
    return true;
}

static void put_list_line(const top_state *state, top_canvas *canvas)
{
    top_canvas_move(canvas, canvas->rows - 1, 0);
    if (put_news(state, canvas)) {
        return;
    }
    if (state->model.paused) {
        top_put(canvas, TOP_ALARM, "PAUSED");
        top_put(canvas, TOP_PLAIN, " ");
    }
    top_view_summary(canvas, &state->model, TOP_PLAIN);
    static const char *const hints[] = {"h help",       "q quit", "/ filter", "p pause",
                                        "Enter detail", "t tree", "s stuck",  "d dead"};
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        if (canvas->column + 2 + (int)strlen(hints[i]) > canvas->columns) {
            return;
        }
        top_put(canvas, TOP_DIM, "  %s", hints[i]);
    }
}

static void put_page(const top_state *state, top_canvas *page)
{
    if (state->mode == TOP_HELP) {
        top_page_help(page);
    } else if (state->answer == NULL) {
        top_canvas_line(page);
        top_put(page, TOP_DIM, "...");
    } else if (state->mode == TOP_ACTOR) {
        top_page_actor(page, state->answer);
    } else if (state->mode == TOP_DEAD_LETTERS) {
        top_page_dead(page, state->answer);
    } else {
        top_page_stuck(page, state->answer);
    }
}

static void draw_page(top_state *state, top_canvas *canvas, top_canvas *page)
{
    int room = canvas->rows - 1;
    top_canvas_begin(page, TOP_PAGE_ROWS, canvas->columns);
    put_page(state, page);
    int all = page->row + 1 < TOP_PAGE_ROWS ? page->row + 1 : TOP_PAGE_ROWS;
    int most = all > room ? all - room : 0;
    state->scroll = state->scroll < most ? state->scroll : most;
    top_canvas_show(canvas, page, state->scroll, room);
    top_canvas_move(canvas, canvas->rows - 1, 0);
    if (!put_news(state, canvas)) {
        int last = state->scroll + room < all ? state->scroll + room : all;
        top_put(canvas, TOP_PLAIN, "%d-%d of %d lines", state->scroll + 1, last, all);
        top_put(canvas, TOP_DIM, "  q back  up, down, PgUp, PgDn scroll");
    }
}

void top_state_draw(top_state *state, top_canvas *canvas, top_canvas *page)
{
    if (canvas->rows < TOP_ROWS_MIN || canvas->columns < TOP_COLUMNS_MIN) {
        top_canvas_line(canvas);
        top_put(canvas, TOP_PLAIN, "terminal too small");
        return;
    }
    int rows = top_view_table_rows(&state->program, canvas->rows);
    top_model_set_page(&state->model, (uint64_t)rows);
    if (top_state_has_page(state)) {
        draw_page(state, canvas, page);
        return;
    }
    top_view_head(canvas, &state->program);
    top_view_table(canvas, &state->model, rows, true);
    put_list_line(state, canvas);
}
