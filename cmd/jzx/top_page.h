/* The pages of `jzx top` that are no table: one actor, dead letters, what is stuck, help. Each
 * writes an answer of the program to a canvas as long as it takes; the screen shows a part. Pure.
 */
#ifndef JZX_CMD_TOP_PAGE_H
#define JZX_CMD_TOP_PAGE_H

#include "top_canvas.h"

#include <jansson.h>

enum { TOP_PAGE_ROWS = 4096 };

void top_page_actor(top_canvas *page, const json_t *answer);
void top_page_dead(top_canvas *page, const json_t *answer);
void top_page_stuck(top_canvas *page, const json_t *answer);
void top_page_help(top_canvas *page);

#endif
