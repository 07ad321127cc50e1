/* Visiting all dispatchers at once: those that answer are heard, those that do not are named. */
#include "base/alloc.h"
#include "control/detail.h"
#include "os/clock.h"
#include "os/thread.h"

#define PAUSE_NS UINT64_C(100000)

typedef struct stop {
    jzi_dispatcher_call *call;
    uint32_t dispatcher;
    bool done;
} stop;

static bool set_out(jzx_control *control, const jzi_call_all *calls, uint32_t dispatcher, stop *at)
{
    *at = (stop){.dispatcher = dispatcher};
    at->call = jzi_dispatcher_call_make(&control->view, calls->payload_bytes, calls->run);
    return at->call != NULL;
}

/* Whether a dispatcher still has to answer. Payloads of those that answered are taken. */
static bool look_around(const jzi_call_all *calls, stop *stops, size_t count)
{
    bool waiting = false;
    for (size_t i = 0; i < count; i++) {
        if (!stops[i].done && jzi_dispatcher_call_is_answered(stops[i].call)) {
            stops[i].done = true;
            calls->take(calls->ctx, stops[i].dispatcher,
                        jzi_dispatcher_call_payload(stops[i].call));
        }
        waiting = waiting || !stops[i].done;
    }
    return waiting;
}

static void wait_for_all(const jzx_control *control, const jzi_call_all *calls, stop *stops,
                         size_t count, jzi_silence *silence)
{
    uint64_t end = jzi_clock_now_ns(NULL) + calls->timeout_ns;
    while (look_around(calls, stops, count) && jzi_clock_now_ns(NULL) < end &&
           !jzi_control_is_over(control)) {
        jzi_thread_pause(PAUSE_NS);
    }
    for (size_t i = 0; i < count; i++) {
        if (!stops[i].done) {
            silence->is_silent[stops[i].dispatcher] = true;
        }
        jzi_dispatcher_call_drop(stops[i].call);
    }
}

bool jzi_call_all_run(jzx_control *control, const jzi_call_all *calls, jzi_silence *silence)
{
    jzi_dispatcher_snapshot snapshots[JZX_DISPATCHERS_MAX];
    stop stops[JZX_DISPATCHERS_MAX];
    size_t found = jzi_peek_dispatchers(&control->view, snapshots, JZX_DISPATCHERS_MAX);
    size_t count = 0;
    bool whole = true;
    for (size_t i = 0; i < found && i < JZX_DISPATCHERS_MAX; i++) {
        uint32_t index = snapshots[i].index;
        if (silence->is_silent[index]) {
            continue;
        }
        if (!set_out(control, calls, index, &stops[count])) {
            whole = false;
            continue;
        }
        jzi_dispatcher_call *call = stops[count].call;
        if ((calls->prepare == NULL ||
             calls->prepare(calls->ctx, index, jzi_dispatcher_call_payload(call))) &&
            jzi_dispatcher_call_send(&control->view, call, index)) {
            count++;
        } else {
            jzi_dispatcher_call_drop(call);
        }
    }
    wait_for_all(control, calls, stops, count, silence);
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
