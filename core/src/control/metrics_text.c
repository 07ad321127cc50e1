/* Lines of the text format, put together by hand. */
#include "control/metrics_text.h"

#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

static void metrics_text_put(jzi_metrics *to, const char *words)
{
    jzi_json_raw(&to->text, words, strlen(words));
}

/* Characters that terminals obey are written as the text of their number: labels end up on them
 * too. The format has no other way; to it that is a backslash and an x. True: it was one, and
 * *value is at its last byte. */
static bool put_control(jzi_metrics *to, const char **value)
{
    char text[8];
    unsigned byte = (unsigned char)**value;
    unsigned next = byte == 0xc2 ? (unsigned char)(*value)[1] : 0; /* C1, in UTF-8 */
    bool c1 = next >= 0x80 && next < 0xa0;
    if (!c1 && byte != 0x7f && (byte >= 0x20 || byte == '\n')) {
        return false;
    }
    (void)snprintf(text, sizeof text, "\\\\x%02x", c1 ? next : byte);
    metrics_text_put(to, text);
    *value += c1 ? 1 : 0;
    return true;
}

static void put_escaped(jzi_metrics *to, const char *value)
{
    for (; *value != '\0'; value++) {
        if (put_control(to, &value)) {
            continue;
        }
        switch (*value) {
        case '\\':
            metrics_text_put(to, "\\\\");
            break;
        case '"':
            metrics_text_put(to, "\\\"");
            break;
        case '\n':
            metrics_text_put(to, "\\n");
            break;
        default:
            jzi_json_raw(&to->text, value, 1);
            break;
        }
    }
}

void jzi_metrics_begin(jzi_metrics *to, const char *name, const char *type, const char *help)
{
    to->name = name;
    metrics_text_put(to, "# HELP ");
    metrics_text_put(to, name);
    metrics_text_put(to, " ");
    metrics_text_put(to, help);
    metrics_text_put(to, "\n# TYPE ");
    metrics_text_put(to, name);
    metrics_text_put(to, " ");
    metrics_text_put(to, type);
    metrics_text_put(to, "\n");
}

static void put_labels(jzi_metrics *to, const jzi_label *labels)
{
    const char *before = "{";
    for (int i = 0; labels != NULL && i < JZI_LABELS; i++) {
        if (labels[i].name != NULL) {
            metrics_text_put(to, before);
            metrics_text_put(to, labels[i].name);
            metrics_text_put(to, "=\"");
            put_escaped(to, labels[i].value);
            metrics_text_put(to, "\"");
            before = ",";
        }
    }
    metrics_text_put(to, *before == ',' ? "} " : " ");
}

static void put_u64(jzi_metrics *to, uint64_t value)
{
    char digits[32];
    (void)snprintf(digits, sizeof digits, "%llu\n", (unsigned long long)value);
    metrics_text_put(to, digits);
}

/* "0.000000512"; zeros at the end say nothing. */
static void format_seconds(uint64_t ns, char out[40])
{
    int len = snprintf(out, 40, "%llu.%09llu", (unsigned long long)(ns / SECOND_NS),
                       (unsigned long long)(ns % SECOND_NS));
    while (len > 1 && out[len - 1] == '0') {
        out[--len] = '\0';
    }
    if (len > 1 && out[len - 1] == '.') {
        out[--len] = '\0';
    }
}

void jzi_metrics_u64(jzi_metrics *to, const jzi_label labels[JZI_LABELS], uint64_t value)
{
    metrics_text_put(to, to->name);
    put_labels(to, labels);
    put_u64(to, value);
}

void jzi_metrics_seconds(jzi_metrics *to, const jzi_label labels[JZI_LABELS], uint64_t ns)
{
    char digits[40];
    format_seconds(ns, digits);
    metrics_text_put(to, to->name);
    put_labels(to, labels);
    metrics_text_put(to, digits);
    metrics_text_put(to, "\n");
}

void jzi_metrics_one(jzi_metrics *to, const char *name, const char *type, const char *help,
                     uint64_t value)
{
    jzi_metrics_begin(to, name, type, help);
    jzi_metrics_u64(to, NULL, value);
}

void jzi_metrics_histogram(jzi_metrics *to, const char *name, const char *help,
                           const uint64_t *buckets, uint32_t count, uint32_t first, uint64_t sum_ns)
{
    uint64_t so_far = 0;
    char digits[40];
    jzi_metrics_begin(to, name, "histogram", help);
    for (uint32_t i = 0; i < count; i++) {
        so_far += buckets[i];
        format_seconds(UINT64_C(1) << (i + first), digits);
        metrics_text_put(to, name);
        metrics_text_put(to, "_bucket{le=\"");
        metrics_text_put(to, i + 1 == count ? "+Inf" : digits);
        metrics_text_put(to, "\"} ");
        put_u64(to, so_far);
    }
    format_seconds(sum_ns, digits);
    metrics_text_put(to, name);
    metrics_text_put(to, "_sum ");
    metrics_text_put(to, digits);
    metrics_text_put(to, "\n");
    metrics_text_put(to, name);
    metrics_text_put(to, "_count ");
    put_u64(to, so_far);
}
