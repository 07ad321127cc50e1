/* The text format of Prometheus: families of samples, written one after the other. */
#ifndef JZI_METRICS_TEXT_H
#define JZI_METRICS_TEXT_H

#include "control/json.h"

/* Text that grows; lines are added to it as they are. */
typedef struct jzi_metrics {
    jzi_json text;
    const char *name; /* of the family that is being written */
} jzi_metrics;

/* Begins a family. type is "counter", "gauge" or "histogram"; help is one line without a
 * backslash. All are static. */
void jzi_metrics_begin(jzi_metrics *to, const char *name, const char *type, const char *help);

/* A label of a sample. The value is escaped, and what terminals obey is named by its number. */
typedef struct jzi_label {
    const char *name; /* NULL: none */
    const char *value;
} jzi_label;
enum { JZI_LABELS = 3 };

/* Samples of the family. */
void jzi_metrics_u64(jzi_metrics *to, const jzi_label labels[JZI_LABELS], uint64_t value);
/* Nanoseconds, written as seconds without a rounding. */
void jzi_metrics_seconds(jzi_metrics *to, const jzi_label labels[JZI_LABELS], uint64_t ns);

/* A family of one sample. */
void jzi_metrics_one(jzi_metrics *to, const char *name, const char *type, const char *help,
                     uint64_t value);
/* A family that is a histogram: bucket i has the times below 2^(i + first) ns, but for the last,
 * which has the rest. The number of all is their sum, so that it fits them whatever was counted
 * meanwhile. */
void jzi_metrics_histogram(jzi_metrics *to, const char *name, const char *help,
                           const uint64_t *buckets, uint32_t count, uint32_t first,
                           uint64_t sum_ns);

#endif
