/* What all views of a running program share: options, the program, and how things look. */
#ifndef JZX_CMD_VIEW_H
#define JZX_CMD_VIEW_H

#include "attach.h"
#include "ui.h"

#include <stdbool.h>
#include <stdint.h>

/* One further option; where its value goes says what it takes. */
typedef struct view_option {
    const char *name;  /* "under"; NULL: the end of the table */
    const char *value; /* what --help calls the value: "ACTOR"; NULL: it has none */
    const char *help;  /* one line */
    bool *flag;        /* set to true; also beside a value, to tell that there is one */
    const char **text; /* the text itself, in UTF-8 */
    const char **file; /* the same of a path, which may be any bytes */
    uint64_t *number;  /* a number, from `least` to `most` */
    uint64_t least;
    uint64_t most;   /* 0: as large as the protocol takes */
    double *seconds; /* a length of time in seconds, over 0 */
    json_t **list;   /* an array that the text is added to; made by the first */
} view_option;

typedef struct view_spec {
    const char *name;           /* "tree" */
    const char *operands;       /* "ACTOR"; "": none, then a PROGRAM may be there as operand */
    const char *what;           /* a sentence without its full stop */
    const char *more;           /* further lines of --help, or NULL */
    const view_option *options; /* or NULL */
    int min, max;               /* operands; of "": 0, 0 */
    bool live;                  /* the view goes on until it is interrupted: takes --once */
    bool all;                   /* the view shows all programs, and takes none */
} view_spec;

typedef struct view {
    const view_spec *spec;
    const char *program; /* NULL: the only one */
    bool json, once;
    char **operands;
    int operand_count;
    char help[40]; /* what to say after "Try:" */
} view;

/* Reads the options; argv[0] is the command's name. True: go on. False: view_begin() has written
 * help or said what is wrong, and *out_status says it too. Every view takes -p/--program, --json,
 * --once, --ascii and --help. */
bool view_begin(view *v, const view_spec *spec, int argc, char **argv, int *out_status);
/* Connects to the program. NULL: view_attach() has said why not, and *out_status says it too. */
attach *view_attach(const view *v, int *out_status);
/* Both. NULL: *out_status is what the command ends with. */
attach *view_open(view *v, const view_spec *spec, int argc, char **argv, int *out_status);

/* Asks; says what is wrong. The answer is owned by the caller; NULL: look at *out_status. */
json_t *view_ask(attach *a, json_t *request, int *out_status);
/* Says why the last call on the connection failed, and returns the status for it. */
int view_failed(const attach *a);

/* An object as one line of JSON. False: stdout has no reader any more. */
bool view_json(const json_t *object);
/* The same to any stream, which is not flushed. False: no memory. */
bool view_put_json(FILE *out, const json_t *object);

/* Until SIGINT or SIGTERM; for live views, which then end with what they have. */
void view_catch_interrupts(void);
bool view_interrupted(void);
/* There was an interrupt, or stdout has no reader any more. */
bool view_is_over(void);
/* Until the time is over (-1: for ever), something comes from the program, the reader of stdout
 * goes away, or there is an interrupt. */
void view_pause(const attach *a, int ms);

ui_colour view_state_colour(const char *state); /* of an actor */
ui_text view_count(uint64_t number);            /* "12,345" */

ui_text view_clock_ago(uint64_t ago_ms); /* "14:02:11.123", local time */
ui_text view_clock(uint64_t unix_ms);    /* the same of a point in time */
/* A name if there is one, else the id; harmless, cut to `columns`. */
ui_text view_actor(const char *name, const char *id, size_t columns);
/* "worker-1 (100000003)", or the id alone; harmless. */
void view_put_actor(FILE *out, const char *name, const char *id);
/* "handles a message for 5.2s, tag 7 (user)": of what runs, in `stuck` and `actor`. A hook has no
 * message, and of a thread that did not answer it is not known. */
void view_put_doing(FILE *out, const json_t *doing);
/* The dispatchers that an answer says are silent, if there are any. */
void view_put_silent(FILE *out, const json_t *answer);

#endif
