/* jzx metrics: what Prometheus would read. */
#include "field.h"
#include "jzx.h"
#include "text.h"
#include "view.h"

int metrics_main(int argc, char **argv)
{
    static const view_spec spec = {
        .name = "metrics",
        .operands = "",
        .what = "Counters, gauges and histograms in the text format of Prometheus",
        .more = "Times are measured from the first request until a minute after the last, so the\n"
                "first answer has none. `jzx console` serves the same at /metrics.\n"};
    view v;
    int status;
    attach *a = view_open(&v, &spec, argc, argv, &status);
    if (a == NULL) {
        return status;
    }
    json_t *answer = view_ask(a, json_pack("{s:s}", "op", "metrics"), &status);
    if (answer != NULL) {
        status = EXIT_FINE;
        if (v.json) {
            (void)view_json(answer);
        } else {
            /* The same on a terminal and in a pipe, which may end on one. */
            text_put_metrics(stdout, field_text(answer, "text"));
            (void)ui_flush(); /* while errno is of the writing */
        }
        json_decref(answer);
    }
    attach_close(a);
    return status;
}
