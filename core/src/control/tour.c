/* Visiting all dispatchers at once: who answers is heard, who does not is named. */
#include "base/alloc.h"
#include "control/detail.h"
#include "os/clock.h"
#include "os/thread.h"

#define PAUSE_NS UINT64_C(100000)

typedef struct stop {
    jzi_visit *visit;
    uint32_t dispatcher;
    bool done;
} stop;

static bool set_out(jzx_control *control, const jzi_tour *tour, uint32_t dispatcher, stop *at)
{
    *at = (stop){.dispatcher = dispatcher};
    at->visit = jzi_visit_make(&control->view, tour->payload_bytes, tour->run);
    return at->visit != NULL;
}

/* Whether somebody is still out there. Payloads of those who answered are taken. */
static bool look_around(const jzi_tour *tour, stop *stops, size_t count)
{
    bool waiting = false;
    for (size_t i = 0; i < count; i++) {
        if (!stops[i].done && jzi_visit_is_answered(stops[i].visit)) {
            stops[i].done = true;
            tour->take(tour->ctx, stops[i].dispatcher, jzi_visit_payload(stops[i].visit));
        }
        waiting = waiting || !stops[i].done;
    }
    return waiting;
}

static void wait_for_all(const jzx_control *control, const jzi_tour *tour, stop *stops,
                         size_t count, jzi_silence *silence)
{
    uint64_t end = jzi_clock_now_ns(NULL) + tour->timeout_ns;
    while (look_around(tour, stops, count) && jzi_clock_now_ns(NULL) < end &&
           !jzi_control_is_over(control)) {
        jzi_thread_pause(PAUSE_NS);
    }
    for (size_t i = 0; i < count; i++) {
        if (!stops[i].done) {
            silence->is_silent[stops[i].dispatcher] = true;
        }
        jzi_visit_drop(stops[i].visit);
    }
}

bool jzi_tour_go(jzx_control *control, const jzi_tour *tour, jzi_silence *silence)
{
    jzi_dispatcher_sight sights[JZX_DISPATCHERS_MAX];
    stop stops[JZX_DISPATCHERS_MAX];
    size_t found = jzi_peek_dispatchers(&control->view, sights, JZX_DISPATCHERS_MAX);
    size_t count = 0;
    bool whole = true;
    for (size_t i = 0; i < found && i < JZX_DISPATCHERS_MAX; i++) {
        uint32_t index = sights[i].index;
        if (silence->is_silent[index]) {
            continue;
        }
        if (!set_out(control, tour, index, &stops[count])) {
            whole = false;
            continue;
        }
        jzi_visit *visit = stops[count].visit;
        if ((tour->prepare == NULL || tour->prepare(tour->ctx, index, jzi_visit_payload(visit))) &&
            jzi_visit_send(&control->view, visit, index)) {
            count++;
        } else {
            jzi_visit_drop(visit);
        }
    }
    wait_for_all(control, tour, stops, count, silence);
    return whole;
}

void jzi_write_silence(jzi_client *client, const jzi_silence *silence)
{
    jzi_json_open(&client->out, "silent", '[');
    for (uint32_t i = 0; i < JZX_DISPATCHERS_MAX; i++) {
        char name[JZX_DISPATCHER_NAME_MAX + 1];
        if (silence->is_silent[i]) {
            jzi_dispatcher_name(client->control, i, name);
            jzi_json_text(&client->out, NULL, name);
        }
    }
    jzi_json_close(&client->out, ']');
}
