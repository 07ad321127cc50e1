/* Operation trace: reads the workers' rings as they are written, and sends on what the client asked
 * for. Workers stop recording messages when the last trace ends. */
#include "base/alloc.h"
#include "control/op_trace_priv.h"
#include "control/server.h"

#include <string.h>

enum {
    RATE_DEFAULT = 1000,
    RATE_MAX = 100000,
    ROUND = 1024,
    ROUNDS = 16,
    CHUNK = 64,
    FAILURES = 8
};
#define SECOND_NS UINT64_C(1000000000)

static const jzi_view *view_of(const jzi_trace *trace)
{
    return &trace->client->control->view;
}

/* The ring of a worker. What was written before the trace began is not of it; a worker that came
 * later is read from its beginning. */
static jzi_trace_ring *find_ring(jzi_trace *trace, uint32_t dispatcher, uint32_t worker)
{
    for (size_t i = 0; i < trace->ring_count; i++) {
        jzi_trace_ring *ring = &trace->rings[i];
        if (ring->dispatcher == dispatcher && ring->worker == worker) {
            return ring;
        }
    }
    return NULL;
}

static bool trace_make_room(jzi_trace *trace, size_t cap)
{
    const jzx_allocator *alloc = &view_of(trace)->alloc;
    size_t had = trace->ring_cap;
    jzi_trace_ring *rings = jzi_alloc(alloc, cap * sizeof *rings);
    jzi_worker_snapshot *workers = jzi_alloc(alloc, cap * sizeof *workers);
    if (rings == NULL || workers == NULL) {
        jzi_free(alloc, rings, cap * sizeof *rings);
        jzi_free(alloc, workers, cap * sizeof *workers);
        return false;
    }
    if (had > 0) {
        memcpy(rings, trace->rings, trace->ring_count * sizeof *rings);
    }
    jzi_free(alloc, trace->rings, had * sizeof *rings);
    jzi_free(alloc, trace->workers, had * sizeof *workers);
    trace->rings = rings;
    trace->workers = workers;
    trace->ring_cap = cap;
    return true;
}

/* Adds rings of workers that are new. One that is gone stays: reading it gives nothing. */
static bool find_rings(jzi_trace *trace, bool at_start)
{
    const jzi_view *view = view_of(trace);
    size_t there = jzi_peek_workers(view, trace->workers, trace->ring_cap);
    if (trace->ring_count + there > trace->ring_cap) {
        if (!trace_make_room(trace, 2 * (trace->ring_count + there))) {
            return false;
        }
        there = jzi_peek_workers(view, trace->workers, trace->ring_cap);
    }
    for (size_t i = 0; i < there && trace->ring_count < trace->ring_cap; i++) {
        const jzi_worker_snapshot *worker = &trace->workers[i];
        if (find_ring(trace, worker->dispatcher, worker->number) == NULL) {
            jzi_trace_ring *ring = &trace->rings[trace->ring_count++];
            *ring = (jzi_trace_ring){.dispatcher = worker->dispatcher, .worker = worker->number};
            if (at_start) {
                jzi_peek_event_ring(view, ring->dispatcher, ring->worker, &ring->cursor,
                                    &ring->skipped);
            }
        }
    }
    return true;
}

/* Whether lines may be added for this client. All traces share what may wait to be read, so that
 * ten that are not read take little more than one; and each may have a little, so that a client
 * that reads is not kept from it by those that do not. */
static bool has_room(const jzi_trace *trace)
{
    size_t all = 0;
    for (const jzi_trace *at = trace->client->control->traces; at != NULL; at = at->next) {
        all += jzi_client_waiting(at->client);
    }
    size_t mine = jzi_client_waiting(trace->client);
    return mine < JZI_TRACE_LEAST || (mine < JZI_AHEAD_MAX && all < JZI_AHEAD_MAX);
}

/* How many messages the worker left out: over the rate, or because the client does not read. One
 * whose numbers are smaller than before is another one, in the place of a dispatcher that was
 * removed. */
static void count_skipped(jzi_trace *trace, jzi_trace_ring *ring)
{
    uint64_t newest;
    uint64_t skipped;
    jzi_peek_event_ring(view_of(trace), ring->dispatcher, ring->worker, &newest, &skipped);
    if (newest < ring->cursor) {
        ring->cursor = ring->skipped = ring->order_ns = 0;
    }
    uint64_t more = skipped >= ring->skipped ? skipped - ring->skipped : skipped;
    trace->skipped += trace->stalled ? 0 : more;
    trace->lost += trace->stalled ? more : 0;
    ring->skipped = skipped;
}

static size_t read_ring(jzi_trace *trace, jzi_trace_ring *ring, jzi_flight_event *out, size_t cap)
{
    size_t count = 0;
    size_t got;
    do {
        jzi_event chunk[CHUNK];
        size_t want = cap - count < CHUNK ? cap - count : CHUNK;
        got = jzi_peek_events(view_of(trace), ring->dispatcher, ring->worker, &ring->cursor, chunk,
                              want, &trace->lost);
        for (size_t i = 0; i < got; i++) {
            out[count++] =
                jzi_flight_event_of(&chunk[i], ring->dispatcher, ring->worker, &ring->order_ns);
        }
    } while (got == CHUNK && count < cap);
    return count;
}

/* A fair part of each ring. */
static size_t read_round(jzi_trace *trace)
{
    size_t count = 0;
    size_t each = trace->ring_count == 0 ? 0 : ROUND / trace->ring_count;
    each = each < CHUNK ? CHUNK : each;
    for (size_t i = 0; i < trace->ring_count && count < ROUND; i++) {
        size_t cap = ROUND - count < each ? ROUND - count : each;
        count += read_ring(trace, &trace->rings[i], trace->events + count, cap);
    }
    jzi_flight_sort(trace->events, count);
    return count;
}

/* Takes one out of a bucket that holds what a second brings. */
static bool take_one(jzi_trace_ring *ring, uint32_t rate, uint64_t now_ns)
{
    uint64_t passed = now_ns > ring->filled_ns ? now_ns - ring->filled_ns : 0;
    uint64_t grown = passed >= SECOND_NS ? rate : passed * rate / SECOND_NS;
    if (grown > 0) {
        ring->left = grown >= rate - ring->left ? rate : ring->left + (uint32_t)grown;
        ring->filled_ns = passed >= SECOND_NS ? now_ns : ring->filled_ns + grown * SECOND_NS / rate;
    }
    if (ring->left == 0) {
        return false;
    }
    ring->left--;
    return true;
}

/* The workers keep to the highest rate of all traces; a lower one is kept here, in the same way. */
static bool is_in_rate(jzi_trace *trace, const jzi_flight_event *event)
{
    uint32_t most = atomic_load_explicit(&view_of(trace)->board->rate, memory_order_relaxed);
    jzi_trace_ring *ring = find_ring(trace, event->dispatcher, event->worker);
    if ((event->at.what != JZI_RING_HANDLED && event->at.what != JZI_RING_SENT) ||
        trace->rate >= most || ring == NULL) {
        return true;
    }
    bool in = take_one(ring, trace->rate, event->order_ns);
    trace->skipped += !in;
    return in;
}

static void write_name(jzi_trace *trace, const char *member, jzx_actor_id id)
{
    const char *name = jzi_names_actor(trace->names, id);
    jzi_json_text(&trace->client->out, member, name[0] == '\0' ? NULL : name);
}

/* With what words it failed: the failure of that actor which is nearest in time. */
static void write_failure(jzi_trace *trace, const jzi_event *at)
{
    jzi_json *out = &trace->client->out;
    jzi_failure found[FAILURES];
    const jzi_failure *nearest = NULL;
    uint64_t best_ns = SECOND_NS;
    size_t count = jzi_board_failures(view_of(trace)->board, at->actor, found, FAILURES);
    for (size_t i = 0; i < count; i++) {
        uint64_t away_ns = at->time_ns > found[i].time_ns ? at->time_ns - found[i].time_ns
                                                          : found[i].time_ns - at->time_ns;
        if (found[i].reason.kind == at->detail && away_ns < best_ns) {
            nearest = &found[i];
            best_ns = away_ns;
        }
    }
    jzi_json_text(out, "text",
                  nearest == NULL || nearest->reason.text[0] == '\0' ? NULL : nearest->reason.text);
}

/* What the number in `detail` means, in the words that `failures` and `dead` have for it. */
static void write_reason(jzi_trace *trace, const jzi_event *at)
{
    jzi_json *out = &trace->client->out;
    if (at->what == JZI_RING_FAIL || at->what == JZI_RING_END || at->what == JZI_RING_ESCALATE) {
        jzi_json_text(out, "reason", jzx_reason_name(at->detail));
    } else if (at->what == JZI_RING_DEAD) {
        jzi_json_text(out, "reason", jzi_dead_name(at->detail));
    }
    if (at->what == JZI_RING_FAIL) {
        write_failure(trace, at);
    }
}

static void write_event(jzi_trace *trace, const jzi_flight_event *event)
{
    jzi_json *out = &trace->client->out;
    const jzi_event *at = &event->at;
    const jzi_dispatcher_snapshot *where = jzi_names_dispatcher(trace->names, event->dispatcher);
    bool handled = at->what == JZI_RING_HANDLED;
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "id", trace->client->stream.id);
    jzi_json_open(out, "event", '{');
    jzi_json_text(out, "what", jzi_event_what_name(at->what));
    jzi_json_u64(out, "t_ns", at->time_ns);
    if (handled) {
        jzi_json_u64(out, "dur_ns", at->value);
    }
    jzi_json_actor(out, "actor", at->actor);
    write_name(trace, "name", at->actor);
    jzi_json_actor(out, "peer", at->peer);
    write_name(trace, "peer_name", at->peer);
    if (handled || at->what == JZI_RING_SENT) {
        jzi_json_u64(out, "tag", at->tag);
        jzi_json_text(out, "kind", jzi_kind_name(at->kind));
        if (handled) {
            jzi_json_text(out, "result", jzi_result_name(at->detail));
        }
        jzi_json_u64(out, "stamp", at->stamp);
        jzi_json_actor(out, "correlation", at->correlation);
    } else {
        jzi_flight_write_details(out, at);
        write_reason(trace, at);
    }
    jzi_json_text(out, "dispatcher", where == NULL ? NULL : where->name);
    jzi_json_u64(out, "worker", event->worker);
    jzi_json_close(out, '}');
    jzi_json_close(out, '}');
    jzi_json_raw(out, "\n", 1);
}

static void count_all_skipped(jzi_trace *trace)
{
    for (size_t i = 0; i < trace->ring_count; i++) {
        count_skipped(trace, &trace->rings[i]);
    }
}

/* While a client does not read, workers record nothing for it: that is what costs the program. What
 * they leave out then is lost. */
static void stall(jzi_trace *trace, bool stalled)
{
    if (trace->stalled != stalled) {
        count_all_skipped(trace); /* as it was until now */
        trace->stalled = stalled;
        (void)jzi_traces_tell(trace->client->control); /* without memory: as it was */
    }
}

static void write_counts(jzi_trace *trace, uint64_t now_ns)
{
    jzi_json *out = &trace->client->out;
    count_all_skipped(trace);
    trace->told_ns = now_ns;
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "id", trace->client->stream.id);
    jzi_json_u64(out, "skipped", trace->skipped);
    jzi_json_u64(out, "lost", trace->lost);
    jzi_json_close(out, '}');
    jzi_json_raw(out, "\n", 1);
}

void jzi_traces_refill(jzx_control *control)
{
    control->trace_events = ROUNDS * ROUND;
}

/* Until all rings are read, or for now. What is over the budget of all traces waits in the rings,
 * or is overwritten there and counted as lost. */
static void pump_events(jzi_trace *trace)
{
    jzx_control *control = trace->client->control;
    size_t count = 1;
    while (count > 0 && control->trace_events > 0 && has_room(trace)) {
        count = read_round(trace);
        control->trace_events -=
            count < control->trace_events ? (uint32_t)count : control->trace_events;
        for (size_t j = 0; j < count; j++) {
            const jzi_flight_event *event = &trace->events[j];
            if (jzi_trace_follows(trace, &event->at) && is_in_rate(trace, event)) {
                write_event(trace, event);
            }
        }
    }
}

static void pump(jzi_client *client)
{
    jzi_trace *trace = client->stream.state;
    uint64_t now_ns = jzi_control_now_ns(client->control);
    bool room = has_room(trace);
    /* Going on begins when there is room for more than the next line. */
    stall(trace, !room || (trace->stalled && jzi_client_waiting(client) >= JZI_TRACE_LEAST / 2));
    if (!room) {
        return; /* what is overwritten meanwhile is counted as lost */
    }
    jzi_names_refresh(trace->names);
    (void)find_rings(trace, false);
    pump_events(trace);
    if (trace->under != JZX_NOBODY && now_ns >= trace->look_ns) {
        (void)jzi_trace_look(trace); /* without memory: as it was, until the next look */
    }
    if (now_ns - trace->told_ns >= SECOND_NS) {
        write_counts(trace, now_ns);
    }
}

static void free_trace(jzi_trace *trace)
{
    const jzx_allocator alloc = view_of(trace)->alloc;
    if (trace->names != NULL) {
        jzi_names_close(trace->names);
    }
    jzi_idmap_deinit(&trace->chosen, &alloc);
    jzi_idmap_deinit(&trace->below, &alloc);
    jzi_idmap_deinit(&trace->before, &alloc);
    jzi_free(&alloc, trace->rings, trace->ring_cap * sizeof *trace->rings);
    jzi_free(&alloc, trace->workers, trace->ring_cap * sizeof *trace->workers);
    jzi_free(&alloc, trace->events, ROUND * sizeof *trace->events);
    jzi_free(&alloc, trace, sizeof *trace);
}

/* Takes the trace out of what workers are asked for. Without memory for fewer marks the workers are
 * left with too many. */
static void trace_leave(jzi_trace *trace)
{
    jzi_trace **at = &trace->client->control->traces;
    while (*at != NULL && *at != trace) {
        at = &(*at)->next;
    }
    if (*at == trace) {
        *at = trace->next;
    }
    (void)jzi_traces_tell(trace->client->control);
}

/* There is no next time for what is still in the rings. */
static void count_unread(jzi_trace *trace)
{
    for (size_t i = 0; i < trace->ring_count; i++) {
        uint64_t newest;
        uint64_t skipped;
        const jzi_trace_ring *ring = &trace->rings[i];
        jzi_peek_event_ring(view_of(trace), ring->dispatcher, ring->worker, &newest, &skipped);
        trace->lost += newest > ring->cursor ? newest - ring->cursor : 0;
    }
}

static void end(jzi_client *client)
{
    jzi_trace *trace = client->stream.state;
    trace_leave(trace);
    jzi_traces_refill(client->control);
    pump_events(trace);
    if (!has_room(trace)) {
        count_unread(trace);
    }
    write_counts(trace, jzi_control_now_ns(client->control));
    client->stream.state = NULL;
    free_trace(trace);
}

/* A correlation as it is shown: hexadecimal digits. False: something else. */
static bool read_correlation(jzi_trace *trace, jzi_request *request)
{
    const char *text = jzi_request_text(request, "correlation");
    trace->correlation = 0;
    if (text == NULL) {
        return !jzi_request_has(request, "correlation");
    }
    size_t len = strlen(text);
    if (len == 0 || len > 16 || strspn(text, "0123456789abcdefABCDEF") != len) {
        return false;
    }
    for (; *text != '\0'; text++) {
        uint32_t digit = (uint32_t)(*text <= '9' ? *text - '0' : (*text | 0x20) - 'a' + 10);
        trace->correlation = trace->correlation << 4 | digit;
    }
    return trace->correlation != 0;
}

/* False: refused. */
static bool read_filter(jzi_trace *trace, jzi_request *request)
{
    jzi_client *client = trace->client;
    const jzx_allocator *alloc = &view_of(trace)->alloc;
    const char *const *list;
    size_t count = jzi_request_list(request, "actors", &list);
    trace->has_tag = jzi_request_has(request, "tag");
    trace->tag = (uint32_t)jzi_request_u64(request, "tag", 0, UINT32_MAX);
    if (!read_correlation(trace, request)) {
        return jzi_refuse(client, "BAD_REQUEST",
                          "Member 'correlation' is a number in hexadecimal digits, as text.");
    }
    trace->rate = (uint32_t)jzi_request_u64(request, "rate", RATE_DEFAULT, RATE_MAX);
    trace->sends = jzi_request_bool(request, "sends", false);
    if (request->wrong != NULL || trace->rate == 0) {
        return jzi_refuse(client, "BAD_REQUEST", "Member '%.40s' is of another type or too large.",
                          request->wrong != NULL ? request->wrong : "rate");
    }
    for (size_t i = 0; i < count; i++) {
        jzx_actor_id id;
        if (!jzi_find_actor(client, list[i], &id)) {
            return false;
        }
        if (jzi_idmap_add(&trace->chosen, alloc, sizeof id, id) == NULL) {
            return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
        }
    }
    if (jzi_request_has(request, "under") &&
        !jzi_request_actor(client, request, "under", &trace->under)) {
        return false;
    }
    trace->has_actors = count > 0 || trace->under != JZX_NOBODY;
    return true;
}

/* False: refused. */
static bool trace_begin(jzi_trace *trace, jzi_request *request)
{
    jzx_control *control = trace->client->control;
    trace->events = jzi_alloc(&control->view.alloc, ROUND * sizeof *trace->events);
    trace->names = jzi_names_open(&control->view);
    if (trace->events == NULL || trace->names == NULL || !find_rings(trace, true)) {
        return jzi_refuse_err(trace->client, JZX_ERR_NO_MEMORY);
    }
    if (!read_filter(trace, request)) {
        return false;
    }
    trace->told_ns = jzi_control_now_ns(control);
    trace->next = control->traces;
    control->traces = trace;
    jzx_err err = trace->under == JZX_NOBODY ? jzi_traces_tell(control) : jzi_trace_look(trace);
    if (err != JZX_OK) {
        trace_leave(trace);
        return jzi_refuse_err(trace->client, err);
    }
    return true;
}

bool jzi_op_trace(jzi_client *client, jzi_request *request)
{
    if (client->stream.pump != NULL) {
        return jzi_refuse(client, "ALREADY", "This connection has a trace; end it first.");
    }
    jzi_trace *trace = jzi_alloc_zeroed(&client->control->view.alloc, sizeof *trace);
    if (trace == NULL) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    trace->client = client;
    if (!trace_begin(trace, request)) {
        free_trace(trace);
        return false;
    }
    client->stream =
        (jzi_trace_stream){.id = request->id, .pump = pump, .end = end, .state = trace};
    return true;
}
