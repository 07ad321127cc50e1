/* Shared by the sources of the doctor. */
#ifndef JZD_DOCTOR_PRIV_H
#define JZD_DOCTOR_PRIV_H

#include "doctor.h"

#include <stdbool.h>

typedef enum jzd_severity { JZD_ERROR, JZD_WARNING, JZD_NOTE, JZD_SEVERITIES } jzd_severity;

/* An examination. */
typedef struct jzd_exam {
    const json_t *facts;
    json_t *found[JZD_SEVERITIES];
    bool any_overrun; /* an actor keeps its dispatcher for too long */
    bool cut;         /* more of a rule than are told */
} jzd_exam;

/* Adds a finding about fact.actor, or (NULL) about the program. At most 16 of a rule are told. */
void jzd_find(jzd_exam *exam, jzd_severity severity, const char *rule, const json_t *fact,
              const char *advice, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The same about an actor that the fact has under other names. NULL: not known. */
void jzd_find_actor(jzd_exam *exam, jzd_severity severity, const char *rule, const json_t *actor,
                    const json_t *name, const char *advice, const char *format, ...)
    __attribute__((format(printf, 7, 8)));

/* doctor_children.c: supervisors and other parents. */
void jzd_examine_families(jzd_exam *exam);
/* doctor_actor.c: one actor after the other. */
void jzd_examine_running(jzd_exam *exam);
void jzd_examine_asks(jzd_exam *exam);
void jzd_examine_actors(jzd_exam *exam);
void jzd_examine_slow(jzd_exam *exam);
/* doctor_program.c: the program as a whole. */
void jzd_examine_guard(jzd_exam *exam);
void jzd_examine_counters(jzd_exam *exam);
void jzd_examine_names(jzd_exam *exam);
void jzd_examine_dispatchers(jzd_exam *exam);

#endif
