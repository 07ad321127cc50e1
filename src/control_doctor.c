/* The operation `doctor`: likely mistakes, each with what is wrong and what can be done. A program
 * that does well gets none. docs/DOCTOR.md lists the rules. */
#include "control_doctor_steps.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static uint32_t count_rule(const jzi_doctor *doctor, const char *rule)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < doctor->count; i++) {
        count += doctor->findings[i].rule == rule || strcmp(doctor->findings[i].rule, rule) == 0;
    }
    return count;
}

void jzi_find(jzi_doctor *doctor, jzi_severity severity, const char *rule, jzx_actor_id actor,
              const char *advice, const char *format, ...)
{
    if (doctor->count == JZI_FINDINGS_MAX || count_rule(doctor, rule) >= JZI_FINDINGS_PER_RULE) {
        return;
    }
    jzi_finding *finding = &doctor->findings[doctor->count++];
    *finding = (jzi_finding){.severity = (uint32_t)severity, .rule = rule, .actor = actor};
    (void)snprintf(finding->advice, sizeof finding->advice, "%s", advice);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
}

static void write_finding(jzi_client *client, const jzi_finding *finding)
{
    static const char *const severities[] = {"error", "warning", "note"};
    jzi_json *out = &client->out;
    jzi_json_open(out, NULL, '{');
    jzi_json_text(out, "severity", severities[finding->severity]);
    jzi_json_text(out, "rule", finding->rule);
    jzi_json_actor(out, "actor", finding->actor);
    if (finding->actor == JZX_NOBODY) {
        jzi_json_null(out, "name");
    } else {
        jzi_write_actor_name(client, "name", finding->actor);
    }
    jzi_json_text(out, "text", finding->text);
    jzi_json_text(out, "advice", finding->advice);
    jzi_json_close(out, '}');
}

/* The worst first; otherwise in the order in which they were found. */
static void write_findings(jzi_client *client, const jzi_doctor *doctor)
{
    jzi_json_open(&client->out, "findings", '[');
    for (uint32_t severity = JZI_ERROR; severity <= JZI_NOTE; severity++) {
        for (uint32_t i = 0; i < doctor->count; i++) {
            if (doctor->findings[i].severity == severity) {
                write_finding(client, &doctor->findings[i]);
            }
        }
    }
    jzi_json_close(&client->out, ']');
}

bool jzi_op_doctor(jzi_client *client, jzi_request *request)
{
    (void)request;
    jzx_control *control = client->control;
    jzi_doctor *doctor = jzi_alloc_zeroed(&control->view.alloc, sizeof *doctor);
    if (doctor == NULL) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    doctor->client = client;
    doctor->control = control;
    doctor->now_ns = jzi_control_now_ns(control);
    jzi_doctor_stuck(doctor);
    jzi_doctor_families(doctor);
    jzi_doctor_asks(doctor);
    jzi_doctor_actors(doctor);
    jzi_doctor_overruns(doctor);
    jzi_doctor_counters(doctor);
    jzi_doctor_names(doctor);
    jzi_doctor_dispatchers(doctor);
    write_findings(client, doctor);
    jzi_write_silence(client, &doctor->silence);
    jzi_free(&control->view.alloc, doctor, sizeof *doctor);
    return true;
}
