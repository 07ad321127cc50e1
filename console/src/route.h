/* What can be asked at which path, and how a request becomes a question to the program.
 *
 * A question is the inside of a request of docs/reference/CONTROL.md without its id:
 * "op":"actors","limit":5. Only members that are listed here get into one, in the order of the
 * list, so that the same question is always the same text. */
#ifndef JZC_ROUTE_H
#define JZC_ROUTE_H

#include "guard.h"
#include "text.h"

/* With its id it has to fit into the 4,096 bytes that a program takes. */
#define JZC_QUESTION_MAX 4000
#define JZC_BODY_MAX 4096
#define JZC_PARAMS_MAX 10
#define JZC_TRACE_MS_MAX 10000

typedef enum jzc_route_kind {
    JZC_ROUTE_ASK,     /* the answer is passed on */
    JZC_ROUTE_METRICS, /* the answer's text is */
    JZC_ROUTE_STUCK,   /* the answer is, with circles */
    JZC_ROUTE_DOCTOR,  /* what the answer's facts mean is */
    JZC_ROUTE_TRACE,
    JZC_ROUTE_HISTORY,  /* the keeper is asked, not the program */
    JZC_ROUTE_FAREWELL, /* answered when the console is stopped, or after a while */
    JZC_ROUTE_ACT,      /* POST */
    JZC_ROUTE_HEALTH
} jzc_route_kind;

typedef enum jzc_param_kind {
    JZC_PARAM_NONE = 0, /* ends the list */
    JZC_PARAM_TEXT,
    JZC_PARAM_NUMBER,
    JZC_PARAM_SWITCH, /* true, false, 1, 0 */
    JZC_PARAM_LIST,   /* a,b,c or given several times: an array of texts */
    JZC_PARAM_OURS    /* a number that the program does not see */
} jzc_param_kind;

typedef struct jzc_param {
    const char *name;
    jzc_param_kind kind;
} jzc_param;

typedef struct jzc_route {
    const char *path;
    const char *op;
    jzc_route_kind kind;
    bool waits; /* the program may take a moment for it: not on the line of the quick ones */
    jzc_param params[JZC_PARAMS_MAX];
} jzc_route;

/* NULL: there is none. */
const jzc_route *jzc_route_find(const char *path);

/* Collects what a request gives, parameter by parameter, and says what is wrong with it. */
typedef struct jzc_asked {
    const jzc_route *route;
    jzc_text values[JZC_PARAMS_MAX]; /* as JSON; of a list without its brackets */
    uint64_t ours[JZC_PARAMS_MAX];
} jzc_asked;

jzc_refusal jzc_asked_query(jzc_asked *asked, const char *name, size_t name_len, const char *value,
                            size_t value_len);
jzc_refusal jzc_asked_body(jzc_asked *asked, const char *body, size_t len);
/* The number of a parameter of ours, or the fallback. */
uint64_t jzc_asked_ours(const jzc_asked *asked, const char *name, uint64_t fallback);
/* The question itself. */
jzc_refusal jzc_asked_question(const jzc_asked *asked, jzc_text *out);
void jzc_asked_free(jzc_asked *asked);

#endif
