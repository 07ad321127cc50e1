/* The terminal of `jzx top`, by ncurses: canvases go out, keys come in. The terminal is given back
 * as it was however the view ends: also by a signal, by Ctrl-Z and when jzx itself crashes. */
#ifndef JZX_CMD_TOP_SCREEN_H
#define JZX_CMD_TOP_SCREEN_H

#include "top_canvas.h"

/* Takes the terminal over. NULL: done; else a sentence about why it cannot. */
const char *top_screen_open(void);
void top_screen_close(void);

void top_screen_size(int *out_rows, int *out_columns);
/* `afresh`: as if nothing of what the terminal shows were known. */
void top_screen_draw(const top_canvas *canvas, bool afresh);
/* The next key, as top_state.h has them; -1: none is there. */
int top_screen_key(void);

/* What ended a wait. */
enum {
    TOP_EVENT_KEY = 0x1,
    TOP_EVENT_ANSWER = 0x2, /* `fd` can be read */
    TOP_EVENT_REDRAW = 0x4, /* another size, or back from Ctrl-Z: draw afresh */
    TOP_EVENT_END = 0x8     /* SIGINT, SIGTERM, SIGHUP, or the terminal is gone */
};
/* Waits until something happens, at most so long (-1: for ever). `fd` -1: none. */
unsigned top_screen_wait(int fd, int timeout_ms);

#endif
