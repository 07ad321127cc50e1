/* What the facts of a program mean, for the page. */
#include "decide.h"

#include <doctor.h>

#include <stdlib.h>
#include <string.h>

/* What comes of an answer; NULL: no memory. */
static json_t *decide(jzc_route_kind kind, json_t *object)
{
    if (kind == JZC_ROUTE_DOCTOR) {
        return jzd_findings(object);
    }
    jzd_add_circles(object);
    return json_incref(object);
}

jzc_answer *jzc_decide(jzc_route_kind kind, jzc_answer *answer)
{
    if ((kind != JZC_ROUTE_DOCTOR && kind != JZC_ROUTE_STUCK) || answer->status != 200) {
        return answer;
    }
    json_t *object = json_loadb(answer->bytes, answer->len, JSON_ALLOW_NUL, NULL);
    json_t *decided = json_is_object(object) ? decide(kind, object) : NULL;
    char *text = decided == NULL ? NULL : json_dumps(decided, JSON_COMPACT);
    jzc_answer *told = object == NULL
                           ? jzc_answer_error(502, "NOT_A_PROGRAM",
                                              "The program's answer is not in the protocol of jzx.")
                       : text == NULL ? NULL
                                      : jzc_answer_new(200, text, strlen(text));
    free(text);
    json_decref(decided);
    json_decref(object);
    jzc_answer_drop(answer);
    return told;
}
