/* Backtraces: function, file and line of the frames that a program tells. */
#ifndef JZX_CMD_FRAMES_H
#define JZX_CMD_FRAMES_H

#include "attach.h"

#include <stdio.h>

/* Reads the symbols of a running program when they are first needed. */
typedef struct frames {
    const attach *link; /* borrowed */
    void *symbols;      /* owned; NULL: none yet, or none to be had */
    bool tried;
} frames;

void frames_init(frames *f, const attach *link);
void frames_deinit(frames *f);

/* Adds `function`, `file` and `line` to the frames of a list where they are known. They are not
 * where the process belongs to another user or jzx was built without libdw. */
void frames_resolve(frames *f, json_t *list);
/* Writes a line per frame, resolving them first; without symbols it is the text of the program. */
void frames_put(frames *f, FILE *out, json_t *list, const char *indent);

#endif
