/* Supervisors and other parents: their specs, and how often they restart. */
#include "doctor_priv.h"
#include "field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_MANY = 10, ATTEMPTS_MANY = 3, RESTARTS_MANY = 10, LATELY_MS = 60000 };

static void begin_sentence(char *text)
{
    if (*text >= 'a' && *text <= 'z') {
        *text = (char)(*text - 'a' + 'A');
    }
}

/* A sentence of jzx_supervisor_lint(): the text and, behind its last colon or semicolon, the
 * advice. Both become sentences. */
static void find_spec(jzd_exam *exam, const json_t *fact)
{
    const char *child = field_text(fact, "child");
    char *text = strdup(field_text(fact, "text"));
    const char *advice = "";
    if (text == NULL) {
        exam->cut = true;
        return;
    }
    char *split = NULL;
    for (char *at = text; *at != '\0'; at++) {
        split = (*at == ':' || *at == ';') && at[1] == ' ' ? at : split;
    }
    json_t *full = NULL;
    if (split != NULL) {
        *split = '\0';
        begin_sentence(split + 2);
        full = json_sprintf("%s.", split + 2);
        advice = json_string_value(full);
    }
    if (*child == '\0') {
        begin_sentence(text);
    }
    jzd_find(exam, JZD_WARNING, field_text(fact, "rule"), fact, advice == NULL ? "" : advice,
             "%s%s%s%s.", *child == '\0' ? "" : "Child ", child, *child == '\0' ? "" : ": ", text);
    json_decref(full);
    free(text);
}

/* Whether a supervisor is about to give up, or goes round for ever. */
static void find_restarts(jzd_exam *exam, const json_t *fact)
{
    uint64_t within = field_u64(fact, "restarts");
    uint64_t intensity = field_u64(fact, "intensity");
    uint64_t period_ms = field_u64(fact, "period_ms");
    bool close = within >= 2 && within >= intensity - intensity / 2;
    bool often = within >= WINDOW_MANY && within >= (period_ms + 999) / 1000;
    const char *last = field_text(fact, "last");
    if (!close && !often) {
        return;
    }
    jzd_find(exam, JZD_WARNING, "restarts-often", fact,
             field_bool(fact, "backoff")
                 ? "See `jzx actor` of that child for why. It has a backoff: what is broken has to "
                   "be mended."
                 : "See `jzx actor` of that child for why; set backoff_min_ms so that what is "
                   "broken has time to recover.",
             "Its children failed and were restarted %llu times within %llu ms, and it gives up "
             "after %llu%s%s%s.",
             (unsigned long long)within, (unsigned long long)period_ms,
             (unsigned long long)intensity, *last == '\0' ? "" : "; the last was ", last,
             *last != '\0' && field_bool(fact, "together") ? ", and others went along" : "");
}

/* A backoff is advised to a child that has none. */
static void find_child(jzd_exam *exam, const json_t *fact)
{
    uint64_t attempt = field_u64(fact, "attempt");
    uint64_t restarts = field_u64(fact, "restarts");
    const char *child = field_text(fact, "child");
    bool is_up = *field_text(fact, "child_actor") != '\0';
    if (attempt >= ATTEMPTS_MANY) {
        jzd_find(exam, JZD_WARNING, "fails-again-and-again", fact,
                 "See its failures in `jzx actor`.", "Child %s has failed %llu times in a row.",
                 child, (unsigned long long)attempt);
    }
    if (restarts > RESTARTS_MANY && field_u64(fact, "ago_ms") < LATELY_MS) {
        jzd_find_actor(
            exam, JZD_WARNING, "crash-loop", json_object_get(fact, is_up ? "child_actor" : "actor"),
            json_object_get(fact, is_up ? "child_name" : "name"),
            field_bool(fact, "backoff")
                ? "See its failures in `jzx actor`. It has a backoff, which only makes "
                  "it fail less often."
                : "See its failures in `jzx actor`; give it or its supervisor a "
                  "backoff_min_ms.",
            "%s failed or ended, and was restarted %llu times, the last time less than "
            "a minute ago%s.",
            *child == '\0' ? "It" : child, (unsigned long long)restarts,
            field_bool(fact, "together") ? "; siblings were restarted along with it" : "");
    }
}

static void find_stop(jzd_exam *exam, const json_t *fact)
{
    const char *name = field_text(fact, "child_name");
    const char *id = field_text(fact, "child_actor");
    if (field_u64(fact, "stop_ms") < field_u64(fact, "child_stop_ms")) {
        jzd_find(exam, JZD_WARNING, "shutdown-too-short", fact,
                 "Give the parent a longer stop_timeout_ms, or the child a shorter one.",
                 "Its stop_timeout_ms is shorter than that of its child %s%s%s%s: what is left "
                 "then is killed.",
                 name, *name == '\0' ? "" : " (", id, *name == '\0' ? "" : ")");
    }
}

void jzd_examine_families(jzd_exam *exam)
{
    size_t i;
    json_t *fact;
    json_array_foreach(field_list(exam->facts, "families"), i, fact)
    {
        const char *what = field_text(fact, "what");
        if (strcmp(what, "spec") == 0) {
            find_spec(exam, fact);
        } else if (strcmp(what, "empty") == 0) {
            jzd_find(exam, JZD_NOTE, "no-children", fact, "Give it children, or leave it out.",
                     "This supervisor has no children.");
        } else if (strcmp(what, "restarts") == 0) {
            find_restarts(exam, fact);
        } else if (strcmp(what, "child") == 0) {
            find_child(exam, fact);
        } else if (strcmp(what, "stop") == 0) {
            find_stop(exam, fact);
        }
    }
}
