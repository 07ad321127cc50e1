/* What goes back to a browser: a status and the bytes of a body. One block, so that it travels in
 * one message and is released by one free(). */
#ifndef JZC_ANSWER_H
#define JZC_ANSWER_H

#include <stddef.h>
#include <stdint.h>

typedef struct jzc_answer {
    size_t len;
    size_t *held;    /* a counter of the bytes on their way, or NULL */
    unsigned status; /* of HTTP */
    char bytes[];    /* with a 0 behind them that len does not count */
} jzc_answer;

/* All of these are owned by the caller, and NULL when there is no memory. */
jzc_answer *jzc_answer_new(unsigned status, const char *bytes, size_t len);
/* {"ok":false,"error":...,"text":...} */
jzc_answer *jzc_answer_error(unsigned status, const char *error, const char *text);
/* Of a program that is not there: the same with "since_ms", for how long it has been so, and "end",
 * how it went; NULL: not known. */
jzc_answer *jzc_answer_gone(const char *text, const char *end, uint64_t since_ms);
/* A line of the program, that comes with an id: the same object without it. The status is 200, or
 * what the error in it means. *out_id is its id, 0 if it is none of its answers. */
jzc_answer *jzc_answer_of_line(const char *line, size_t len, uint64_t *out_id);
/* The `text` of an answer, for /metrics. One that has none is given back as it is. Transfers. */
jzc_answer *jzc_answer_text_of(jzc_answer *answer);

/* For `drop` of messages. */
void jzc_answer_drop(void *answer);

#endif
