/* The flight recorder as it is read: the rings of all workers as one list. */
#include "base/alloc.h"
#include "control/flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_DEFAULT = 1000, LIMIT_MAX = 10000, CHUNK = 64 };

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_events(const void *left, const void *right)
{
    const jzi_flight_event *a = left;
    const jzi_flight_event *b = right;
    int order = compare_u64(a->order_ns, b->order_ns);
    order = order != 0 ? order : compare_u64(a->dispatcher, b->dispatcher);
    order = order != 0 ? order : compare_u64(a->worker, b->worker);
    return order != 0 ? order : compare_u64(a->at.seq, b->at.seq);
}

jzi_flight_event jzi_flight_event_of(const jzi_event *at, uint32_t dispatcher, uint32_t worker,
                                     uint64_t *order_ns)
{
    uint64_t over_ns = at->time_ns + (at->what == JZI_RING_HANDLED ? at->value : 0);
    *order_ns = over_ns > *order_ns ? over_ns : *order_ns;
    return (jzi_flight_event){
        .at = *at, .order_ns = *order_ns, .dispatcher = dispatcher, .worker = worker};
}

void jzi_flight_sort(jzi_flight_event *events, size_t count)
{
    if (count > 1) {
        qsort(events, count, sizeof *events, compare_events);
    }
}

/* The newest events of one worker; what is written meanwhile may come along. */
static void read_worker(const jzi_view *view, const jzi_worker_snapshot *worker, size_t limit,
                        jzi_flight *flight)
{
    uint64_t newest = 0;
    uint64_t skipped;
    uint64_t lost = 0;
    uint64_t order_ns = 0;
    size_t got;
    size_t end = flight->count + limit < flight->cap ? flight->count + limit : flight->cap;
    jzi_peek_event_ring(view, worker->dispatcher, worker->number, &newest, &skipped);
    uint64_t cursor = newest > limit ? newest - limit : 0;
    flight->workers += newest > 0;
    do {
        jzi_event chunk[CHUNK];
        size_t room = end - flight->count < CHUNK ? end - flight->count : CHUNK;
        got = room == 0 ? 0
                        : jzi_peek_events(view, worker->dispatcher, worker->number, &cursor, chunk,
                                          room, &lost);
        for (size_t i = 0; i < got; i++) {
            flight->events[flight->count++] =
                jzi_flight_event_of(&chunk[i], worker->dispatcher, worker->number, &order_ns);
        }
    } while (got > 0);
}

static jzx_err read_workers(const jzi_view *view, const jzi_worker_snapshot *workers, size_t count,
                            size_t limit, jzi_flight *out)
{
    size_t ring = atomic_load_explicit(&view->board->ring_events, memory_order_relaxed);
    size_t each = ring < limit ? ring : limit;
    out->cap = count * each;
    if (out->cap == 0) {
        return JZX_OK;
    }
    out->events = jzi_alloc(&view->alloc, out->cap * sizeof *out->events);
    if (out->events == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        read_worker(view, &workers[i], each, out);
    }
    jzi_flight_sort(out->events, out->count);
    if (out->count > limit) {
        memmove(out->events, out->events + (out->count - limit), limit * sizeof *out->events);
        out->count = limit;
    }
    return JZX_OK;
}

jzx_err jzi_flight_read(const jzi_view *view, size_t limit, jzi_flight *out)
{
    *out = (jzi_flight){0};
    size_t cap = jzi_peek_workers(view, NULL, 0);
    if (cap == 0) {
        return JZX_OK;
    }
    jzi_worker_snapshot *workers = jzi_alloc(&view->alloc, cap * sizeof *workers);
    if (workers == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    size_t there = jzi_peek_workers(view, workers, cap);
    jzx_err err = read_workers(view, workers, there < cap ? there : cap, limit, out);
    jzi_free(&view->alloc, workers, cap * sizeof *workers);
    return err;
}

void jzi_flight_free(const jzi_view *view, jzi_flight *flight)
{
    jzi_free(&view->alloc, flight->events, flight->cap * sizeof *flight->events);
    *flight = (jzi_flight){0};
}

/* Dispatchers of the same name have their index beside it. */
static void name_dispatcher(const jzi_names *names, uint32_t index,
                            char out[JZX_DISPATCHER_NAME_MAX + 16])
{
    const jzi_dispatcher_snapshot *it = jzi_names_dispatcher(names, index);
    size_t same = 0;
    for (size_t i = 0; it != NULL && i < names->dispatcher_count; i++) {
        same += strcmp(names->dispatchers[i].name, it->name) == 0;
    }
    (void)snprintf(out, JZX_DISPATCHER_NAME_MAX + 16, same > 1 ? "%s#%u" : "%s",
                   it == NULL ? "(gone)" : it->name, (unsigned)index);
}

size_t jzi_flight_format(jzi_names *names, const jzi_flight_event *event, uint64_t now_ns,
                         char buf[JZI_RECORD_LINE_MAX])
{
    char peer_name[48];
    char where[JZX_DISPATCHER_NAME_MAX + 16];
    const jzi_dispatcher_snapshot *dispatcher = jzi_names_dispatcher(names, event->dispatcher);
    name_dispatcher(names, event->dispatcher, where);
    const char *found = jzi_names_actor(names, event->at.peer);
    memcpy(peer_name, found, strlen(found) + 1);
    jzi_record_line line = {
        .event = &event->at,
        .now_ns = now_ns,
        .dispatcher = where,
        .worker = event->worker,
        .has_workers = dispatcher != NULL && dispatcher->workers > 1,
        .name = jzi_names_actor(names, event->at.actor),
        .peer_name = peer_name,
    };
    return jzi_record_format(&line, buf, JZI_RECORD_LINE_MAX);
}

/* A code may be negative; a sleep may have no end. */
void jzi_flight_write_details(jzi_json *out, const jzi_event *at)
{
    jzi_json_u64(out, "tag", at->tag);
    jzi_json_u64(out, "detail", at->detail);
    if (at->what == JZI_RING_END || at->what == JZI_RING_FAIL) {
        jzi_json_i64(out, "value", (int32_t)at->value);
    } else if (at->value == UINT64_MAX) {
        jzi_json_null(out, "value");
    } else {
        jzi_json_u64(out, "value", at->value);
    }
    jzi_json_u64(out, "more", at->more);
}

static void write_event(jzi_json *out, jzi_names *names, const jzi_flight_event *event,
                        uint64_t now_ns, bool with_text)
{
    const jzi_event *at = &event->at;
    const jzi_dispatcher_snapshot *dispatcher = jzi_names_dispatcher(names, event->dispatcher);
    const char *name = jzi_names_actor(names, at->actor);
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "seq", at->seq);
    jzi_json_u64(out, "t_ns", at->time_ns);
    jzi_json_u64(out, "ago_ms", at->time_ns < now_ns ? (now_ns - at->time_ns) / 1000000 : 0);
    jzi_json_text(out, "dispatcher", dispatcher == NULL ? NULL : dispatcher->name);
    jzi_json_u64(out, "worker", event->worker);
    jzi_json_text(out, "what", jzi_event_what_name(at->what));
    jzi_json_actor(out, "actor", at->actor);
    jzi_json_text(out, "name", name[0] == '\0' ? NULL : name);
    jzi_json_actor(out, "peer", at->peer);
    jzi_flight_write_details(out, at);
    if (with_text) {
        char line[JZI_RECORD_LINE_MAX];
        (void)jzi_flight_format(names, event, now_ns, line);
        jzi_json_text(out, "text", line);
    }
    jzi_json_close(out, '}');
}

bool jzi_op_record(jzi_client *client, jzi_request *request)
{
    const jzi_view *view = &client->control->view;
    size_t limit = (size_t)jzi_request_u64(request, "limit", LIMIT_DEFAULT, LIMIT_MAX);
    bool with_text = jzi_request_bool(request, "text", false);
    jzi_flight flight;
    if (request->wrong != NULL) {
        return jzi_refuse(client, "BAD_REQUEST",
                          "Member '%s' is wrong: limit is a number up to %d, text is a bool.",
                          request->wrong, LIMIT_MAX);
    }
    jzx_err err = jzi_flight_read(view, limit, &flight);
    jzi_names *names = err == JZX_OK ? jzi_names_open(view) : NULL;
    if (names == NULL) {
        jzi_flight_free(view, &flight);
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    uint64_t now_ns = jzi_control_now_ns(client->control);
    jzi_json_open(&client->out, "events", '[');
    for (size_t i = 0; i < flight.count; i++) {
        write_event(&client->out, names, &flight.events[i], now_ns, with_text);
    }
    jzi_json_close(&client->out, ']');
    jzi_names_close(names);
    jzi_flight_free(view, &flight);
    return true;
}
