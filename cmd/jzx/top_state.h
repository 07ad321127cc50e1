/* What `jzx top` shows and what keys make of it. Pure: keys come in as numbers, what they ask of
 * the connection goes out as flags. */
#ifndef JZX_CMD_TOP_STATE_H
#define JZX_CMD_TOP_STATE_H

#include "top_canvas.h"
#include "top_model.h"
#include "top_program.h"

typedef enum top_mode {
    TOP_LIST,
    TOP_FILTER,  /* typing the filter, below the list */
    TOP_CONFIRM, /* asked whether to stop or kill */
    TOP_ACTOR,
    TOP_DEAD_LETTERS,
    TOP_STUCK,
    TOP_HELP
} top_mode;

/* Keys that are no characters; characters are their numbers in Unicode. */
enum {
    TOP_KEY_UP = 0x200000,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACKSPACE,
    TOP_KEY_REDRAW
};

/* What is to be done after a key. */
enum {
    TOP_DO_QUIT = 0x1,
    TOP_DO_LIST = 0x2,  /* ask for the list now */
    TOP_DO_PAGE = 0x4,  /* ask for the page of this mode now */
    TOP_DO_ORDER = 0x8, /* `target` is to be stopped, or killed */
    TOP_DO_REDRAW = 0x10
};

typedef struct top_state {
    top_mode mode;
    top_model model;
    top_program program;
    uint32_t interval_ms;
    int scroll;     /* of a page: the first row shown */
    json_t *answer; /* owned: what the page shows; NULL: nothing came yet */
    char target[TOP_ID_TEXT];
    char target_name[TOP_TEXT];
    bool kill;         /* of TOP_CONFIRM; else: stop */
    char message[256]; /* below the list, until the next key */
    bool alarm;        /* the message is bad news */
    bool ended;        /* the program */
    bool waiting;      /* until the program is back */
    uint64_t late_ms;  /* how long an answer is due by now */
} top_state;

void top_state_init(top_state *state);
void top_state_deinit(top_state *state);

/* Returns TOP_DO_* flags. */
unsigned top_state_key(top_state *state, int key);
bool top_state_has_page(const top_state *state);
/* What the page of this mode is made of; owned by the caller. NULL: nothing, or no memory. */
json_t *top_state_page_request(const top_state *state);
/* Takes the answer over. */
void top_state_take_page(top_state *state, json_t *answer);
void top_state_say(top_state *state, bool alarm, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Draws all of it. `page` is room to work in. */
void top_state_draw(top_state *state, top_canvas *canvas, top_canvas *page);

#endif
