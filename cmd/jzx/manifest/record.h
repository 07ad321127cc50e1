/* Records as JSON or as lines for people, and bytes that may be anything. */
#ifndef JZX_CMD_MANIFEST_RECORD_H
#define JZX_CMD_MANIFEST_RECORD_H

#include "ui.h"

#include <jzx/manifest_record.h>

ui_colour ui_state_colour(uint32_t job_state);

/* Bytes made harmless for a terminal, cut to about `columns`. */
ui_text ui_span(jzx_mf_span span, size_t columns);

/* A record, field by field: an object of JSON, or aligned lines for people, without the fields that
 * are empty. Names are those of JSON; people see blanks for underscores. */
typedef struct ui_record {
    FILE *out;
    bool json;
    bool comma; /* a member came before */
} ui_record;
ui_record ui_begin(FILE *out, bool json);
void ui_end(ui_record *record); /* of one object: ends its line */
void ui_u64(ui_record *record, const char *name, uint64_t value);
void ui_some(ui_record *record, const char *name, uint64_t value); /* 0 is none, for people */
void ui_i64(ui_record *record, const char *name, int64_t value);
void ui_bool(ui_record *record, const char *name, bool value);
void ui_string(ui_record *record, const char *name, const char *value);
void ui_blob(ui_record *record, const char *name, jzx_mf_span value);
void ui_when(ui_record *record, const char *name, uint64_t ms); /* a point in time; name: ..._ms */
void ui_span_ms(ui_record *record, const char *name, uint64_t ms); /* a length of time */
void ui_size(ui_record *record, const char *name, uint64_t bytes);

/* Of JSON only. */
void ui_open(ui_record *record, const char *name, char bracket); /* '{' or '[' */
void ui_close(ui_record *record, char bracket);
void ui_double(ui_record *record, const char *name, double value); /* null: not finite */
void ui_hex(ui_record *record, const char *name, jzx_mf_span value);

#endif
