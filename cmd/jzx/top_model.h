/* The table of `jzx top`: which rows the program gave, in which order and from where on they are
 * shown, which one the keys act on. Pure: no terminal, no connection.
 *
 * The program sorts, filters and gives a window of its list; a place is a position in that whole
 * list. While paused the window that is held is all there is, and is sorted and filtered here. */
#ifndef JZX_CMD_TOP_MODEL_H
#define JZX_CMD_TOP_MODEL_H

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum top_column {
    TOP_ID,
    TOP_NAME,
    TOP_STATE,
    TOP_MAILBOX,
    TOP_RATE,
    TOP_CPU,
    TOP_RESTARTS,
    TOP_MEMORY,
    TOP_UPTIME,
    TOP_DEAD,
    TOP_DISPATCHER,
    TOP_COLUMNS
} top_column;

/* What the protocol calls the order of a column; NULL: it has none. */
const char *top_sort_name(top_column column);
/* The column of a word: the protocol's, or a title. TOP_COLUMNS: no such, or it cannot sort. */
top_column top_sort_column(const char *word);
/* The next column that sorts, to the right (1) or to the left (-1); at the edge the same. */
top_column top_sort_next(top_column column, int direction);

enum { TOP_TEXT = 64, TOP_ID_TEXT = 24, TOP_STATE_TEXT = 16, TOP_LIMIT_MAX = 20000 };

/* Negative rate, cpu: not known yet. Texts are as they came; they are made harmless where they are
 * shown. */
typedef struct top_row {
    char id[TOP_ID_TEXT];
    char name[TOP_TEXT]; /* "": none */
    char state[TOP_STATE_TEXT];
    char dispatcher[TOP_TEXT];
    uint64_t mailbox;
    uint64_t cap;
    uint64_t restarts;
    uint64_t memory;
    uint64_t dead;
    uint64_t uptime_ms;
    double rate;
    double cpu;
    uint32_t depth;
    bool uptime_known;
    bool stopping;
    bool running;
    bool supervisor;
} top_row;

/* Fills a row from one element of the answer. What is missing is empty. */
void top_row_read(top_row *row, const json_t *actor);
/* Before 0: a comes before b. Numbers are largest first, names and ids from the start of the
 * alphabet, rows without a name last. Equal numbers are sorted by rate (equal rates by mailbox);
 * ids settle the other ties. */
int top_row_compare(const top_row *a, const top_row *b, top_column column);
bool top_row_matches(const top_row *row, const char *filter);

typedef struct top_model {
    top_column sort;
    bool reverse;
    bool tree; /* the order of the tree, instead of `sort` */
    bool paused;
    char filter[TOP_TEXT];
    uint64_t limit; /* shows no more rows than that; 0: all */

    top_row *rows; /* owned; what the program gave last, in the order to show */
    size_t row_count;
    size_t *kept; /* owned, row_count of them: the rows that are shown while paused */
    size_t kept_count;
    bool arranged;  /* paused, and `kept` says which rows and in which order */
    uint64_t first; /* the place of the first row that is held */
    uint64_t matched;
    uint64_t total;

    uint64_t top;    /* the place of the first row on the screen */
    uint64_t chosen; /* the place of the row that the keys act on */
    uint64_t page;   /* rows on the screen */
} top_model;

void top_model_deinit(top_model *model);

/* How many places there are to go to. */
uint64_t top_model_places(const top_model *model);
/* The row at a place; NULL: it is not held. */
const top_row *top_model_row(const top_model *model, uint64_t place);
const top_row *top_model_chosen(const top_model *model);

/* A part of the list. What is near its end is asked for from there: the program has to sort less
 * for that. */
typedef struct top_window {
    uint64_t offset;
    uint64_t limit;
    bool turned; /* the offset is from the end, and the rows come the other way round */
} top_window;

/* What to ask for so that the screen is filled, with some rows before and after it. */
top_window top_model_window(const top_model *model);
/* A request for that, owned by the caller. NULL: no memory. */
json_t *top_model_request(const top_model *model, const top_window *window);
/* Takes the answer to it. False: the list became shorter or longer in such a way that rows of the
 * screen are missing: ask again. */
bool top_model_take(top_model *model, const json_t *answer, const top_window *window);

/* What keys do. The page is how many rows there is room for. */
void top_model_set_page(top_model *model, uint64_t rows);
void top_model_go(top_model *model, int64_t by);
void top_model_go_first(top_model *model);
void top_model_go_last(top_model *model);
void top_model_sort_by(top_model *model, top_column column); /* the same again: reverses */
void top_model_set_filter(top_model *model, const char *filter);
void top_model_pause(top_model *model, bool paused);

#endif
