/* Shared by the sources of the operation `doctor`: what was found, and who looks for it. */
#ifndef JZI_CONTROL_DOCTOR_STEPS_H
#define JZI_CONTROL_DOCTOR_STEPS_H

#include "control_detail_steps.h"

typedef enum jzi_severity { JZI_ERROR, JZI_WARNING, JZI_NOTE } jzi_severity;

enum { JZI_FINDINGS_MAX = 256, JZI_FINDINGS_PER_RULE = 16 };

typedef struct jzi_finding {
    uint32_t severity;
    const char *rule;   /* static, as the advice */
    jzx_actor_id actor; /* JZX_NOBODY: the program as a whole */
    char text[320];
    char advice[200];
} jzi_finding;

/* An examination. */
typedef struct jzi_doctor {
    jzi_client *client;
    jzx_control *control;
    uint64_t now_ns; /* of all ages that it tells */
    jzi_silence silence;
    bool any_watchdog;
    bool any_overrun;
    uint32_t count;
    jzi_finding findings[JZI_FINDINGS_MAX];
} jzi_doctor;

/* Adds a finding; there are at most JZI_FINDINGS_PER_RULE of a rule. */
void jzi_find(jzi_doctor *doctor, jzi_severity severity, const char *rule, jzx_actor_id actor,
              const char *advice, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Supervisors and other parents, as their dispatchers see them: control_doctor_family.c. */
void jzi_doctor_families(jzi_doctor *doctor);
/* What the counters of all say: control_doctor_program.c. */
void jzi_doctor_counters(jzi_doctor *doctor);
void jzi_doctor_names(jzi_doctor *doctor);
void jzi_doctor_dispatchers(jzi_doctor *doctor);
/* One actor after the other, as everybody can see them: control_doctor_actor.c. */
void jzi_doctor_actors(jzi_doctor *doctor);
void jzi_doctor_overruns(jzi_doctor *doctor);
void jzi_doctor_stuck(jzi_doctor *doctor);
void jzi_doctor_asks(jzi_doctor *doctor);

#endif
