/* Which requests are allowed: the checks that every request passes before anything is done for it.
 * They see the values of a few headers and nothing else. */
#ifndef JZC_GUARD_H
#define JZC_GUARD_H

#include "place.h"

/* NULL: the request has no such header. */
typedef struct jzc_guard_request {
    const char *host;
    unsigned host_count; /* how many Host headers there are */
    const char *origin;
    const char *site;          /* Sec-Fetch-Site */
    const char *token_header;  /* X-Jzx-Token */
    const char *authorization; /* Authorization */
    const char *token_query;   /* ?token= */
    bool acts;                 /* the request changes something */
    bool open;                 /* the answer tells nothing: the page's own files, /healthz */
} jzc_guard_request;

/* A refusal: 0 is none. `error` and `text` go into the answer. */
typedef struct jzc_refusal {
    unsigned status;
    const char *error;
    const char *text;
} jzc_refusal;

jzc_refusal jzc_guard_check(const jzc_place *place, const char *token,
                            const jzc_guard_request *request);

/* Takes the same time for every wrong token of a length. */
bool jzc_token_equal(const char *ours, const char *theirs);
/* Whether it can be put in a URL as it is, and is not empty. */
bool jzc_token_is_sane(const char *token);

#endif
