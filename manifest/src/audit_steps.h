/* What the sources of the check share. */
#ifndef MFI_AUDIT_STEPS_H
#define MFI_AUDIT_STEPS_H

#include "audit.h"

typedef struct mfi_check {
    const mfi_view *view;
    jzx_mf_check_fn fn;
    void *arg;
    jzx_mf_check_report *report;
    uint64_t problems; /* of this check; report may have others already */
    uint64_t done;     /* rows */
    uint64_t total;
    uint64_t next_notice; /* when `done` gets there, fn hears of it */
    bool ended;           /* fn wants no more */
    mfi_meta meta;
    uint64_t event_seq; /* of the last event row, and which index comes next */
    uint32_t event_next;
} mfi_check;

/* Tells of a problem: a sentence without its dot. */
void mfi_check_problem(mfi_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A row by name, "job 17" or "the ready row (kind 3, priority 0, time 5000, job 17)". Keys whose
 * form is wrong are told in hex. */
typedef struct mfi_key_text {
    char text[512];
} mfi_key_text;
mfi_key_text mfi_check_key_text(uint32_t table, jzx_mf_span key);
/* Whether a key has the length and the parts that keys of its table have. */
bool mfi_check_key_form(uint32_t table, jzx_mf_span key);

bool mfi_check_key_is(const jzx_mf_key *key, jzx_mf_span bytes);

/* One row whose key has its form and whose value decodes. */
typedef void (*mfi_check_row_fn)(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_db(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_db_name(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_wal(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_chunk(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_cron(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_metric(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_material(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_material_status(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_event(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_job(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_unique(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_index(mfi_check *check, uint32_t table, jzx_mf_span key);
void mfi_check_dependency(mfi_check *check, jzx_mf_span key, jzx_mf_span value);
void mfi_check_gate(mfi_check *check, jzx_mf_span key, jzx_mf_span value);

/* Q5: after_left of every job against the rows of dependency. NO_MEMORY. */
jzx_err mfi_check_after_left(mfi_check *check);

#endif
