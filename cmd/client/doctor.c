/* Findings: how they are collected and told. A program that does well gets none. */
#include "doctor.h"

#include "doctor_priv.h"
#include "field.h"

#include <stdarg.h>
#include <string.h>

enum { PER_RULE = 16 };

static size_t count_rule(const jzd_exam *exam, const char *rule)
{
    size_t count = 0;
    for (int severity = 0; severity < JZD_SEVERITIES; severity++) {
        size_t i;
        json_t *one;
        json_array_foreach(exam->found[severity], i, one)
        {
            count += strcmp(field_text(one, "rule"), rule) == 0;
        }
    }
    return count;
}

/* A text, or null. */
static json_t *text_or_null(const json_t *value)
{
    return json_is_string(value) ? json_copy((json_t *)value) : json_null();
}

/* Takes `text` over; a finding that cannot be made for want of memory is left out. */
static void add(jzd_exam *exam, jzd_severity severity, const char *rule, const json_t *actor,
                const json_t *name, const char *advice, json_t *text)
{
    static const char *const severities[] = {"error", "warning", "note"};
    if (count_rule(exam, rule) >= PER_RULE) {
        exam->cut = true;
        json_decref(text);
        return;
    }
    json_t *finding = json_pack("{s:s,s:s,s:o,s:o,s:o,s:s}", "severity", severities[severity],
                                "rule", rule, "actor", text_or_null(actor), "name",
                                text_or_null(name), "text", text, "advice", advice);
    exam->cut = json_array_append_new(exam->found[severity], finding) != 0 || exam->cut;
}

void jzd_find(jzd_exam *exam, jzd_severity severity, const char *rule, const json_t *fact,
              const char *advice, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(exam, severity, rule, json_object_get(fact, "actor"), json_object_get(fact, "name"), advice,
        json_vsprintf(format, args));
    va_end(args);
}

void jzd_find_actor(jzd_exam *exam, jzd_severity severity, const char *rule, const json_t *actor,
                    const json_t *name, const char *advice, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(exam, severity, rule, actor, name, advice, json_vsprintf(format, args));
    va_end(args);
}

/* The worst first; otherwise in the order in which they were found. Takes the lists over. */
static json_t *tell(jzd_exam *exam)
{
    json_t *silent = field_list(exam->facts, "silent");
    json_t *all = exam->found[JZD_ERROR];
    bool whole = json_array_extend(all, exam->found[JZD_WARNING]) == 0 &&
                 json_array_extend(all, exam->found[JZD_NOTE]) == 0;
    json_decref(exam->found[JZD_WARNING]);
    json_decref(exam->found[JZD_NOTE]);
    return json_pack("{s:b,s:o,s:b,s:o}", "ok", 1, "findings", all, "cut",
                     exam->cut || !whole || field_bool(exam->facts, "cut"), "silent",
                     silent == NULL ? json_array() : json_deep_copy(silent));
}

json_t *jzd_findings(const json_t *facts)
{
    jzd_exam exam = {.facts = facts};
    for (int severity = 0; severity < JZD_SEVERITIES; severity++) {
        exam.found[severity] = json_array();
    }
    jzd_examine_running(&exam);
    jzd_examine_families(&exam);
    jzd_examine_guard(&exam);
    jzd_examine_asks(&exam);
    jzd_examine_actors(&exam);
    jzd_examine_slow(&exam);
    jzd_examine_counters(&exam);
    jzd_examine_names(&exam);
    jzd_examine_dispatchers(&exam);
    return tell(&exam);
}
