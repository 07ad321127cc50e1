/* What all subcommands print with: people's text or JSON, colours, times, progress, errors. */
#ifndef JZX_CMD_UI_H
#define JZX_CMD_UI_H

#include <jzx/types.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses; man 1 jzx has them. */
enum {
    EXIT_FINE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_OWNED = 3,
    EXIT_FOUND = 4, /* stuck: something is; doctor: warnings */
    EXIT_WRONG = 5  /* doctor: errors */
};

/* Reads NO_COLOR and TERM, and looks for terminals; once, first. */
void ui_init(void);
/* A terminal, and not one that would show escape sequences as text. */
bool ui_obeys(int fd);

typedef enum ui_colour {
    UI_PLAIN,
    UI_BOLD,
    UI_RED,
    UI_GREEN,
    UI_YELLOW,
    UI_CYAN,
    UI_DIM
} ui_colour;
/* The sequence that begins a colour, UI_PLAIN: that ends it; "" where there are no colours. */
const char *ui_colour_on(ui_colour colour);

/* "jzx: ..." on stderr. Returns EXIT_FAILED. */
int ui_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a wrong call, with where to find help. Returns EXIT_USAGE. */
int ui_usage(const char *help, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What an error of the library means, after what was tried. Returns EXIT_FAILED. */
int ui_error(jzx_err err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* At the end: flushes, and turns a stdout that failed into a status. */
int ui_finish(int status);

/* A line on stderr that tells how far a long scan is; nothing where that is no terminal, and
 * nothing in the first moments. */
void ui_progress(const char *what, uint64_t done, uint64_t total);
void ui_progress_end(void);

/* Texts for people; each returns its buffer. */
typedef struct ui_text {
    char text[192];
} ui_text;
ui_text ui_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
ui_text ui_time(uint64_t ms);     /* "2026-11-16 13:52:40Z (3m ago)", "-" for none */
ui_text ui_age(uint64_t ms);      /* "3m ago", "in 2h", "-" */
ui_text ui_duration(uint64_t ms); /* "1.5s", "3m", "2h", "4d" */
ui_text ui_bytes(uint64_t bytes); /* "1.5 MiB" */

/* Rows go to memory first, and out of the snapshot to where a reader may be slow. */
typedef struct ui_page {
    FILE *out;
    char *bytes;
    size_t len;
} ui_page;
bool ui_page_begin(ui_page *page);
/* Writes the page to stdout; false: stdout has no reader any more. */
bool ui_page_end(ui_page *page);
/* Flushes what was written to stdout without a page; false: stdout has no reader any more. */
bool ui_flush(void);
/* It was found out without writing that stdout has no reader: why, as an errno. */
void ui_lose_output(int error);

#endif
