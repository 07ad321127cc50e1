/* Operation metrics: what the program counts, in the text format of Prometheus.
 * docs/reference/METRICS.md lists the names; a test compares. */
#include "base/alloc.h"
#include "control/control_priv.h"
#include "control/metrics_text.h"
#include "control/server.h"
#include "os/debug/descriptors.h"
#include "os/debug/process.h"

#include <jzx/lifecycle.h>
#include <jzx/system.h>

#include <stdio.h>
#include <string.h>

/* Times are measured for so long after the last request. */
#define MEASURE_NS UINT64_C(60000000000)
enum { LABEL_SIZE = 32 };

/* Totals that are one number each. */
typedef struct simple {
    const char *name;
    const char *type;
    const char *help;
    size_t offset; /* in jzx_counters */
} simple;
#define COUNTER(name, member, help)                                                                \
    {                                                                                              \
        name, "counter", help, offsetof(jzx_counters, member)                                      \
    }
#define GAUGE(name, member, help)                                                                  \
    {                                                                                              \
        name, "gauge", help, offsetof(jzx_counters, member)                                        \
    }
static const simple simples[] = {
    COUNTER("jzx_messages_accepted_total", accepted, "Messages that a mailbox took in."),
    COUNTER("jzx_messages_handled_total", handled, "Messages that were given to a behavior."),
    COUNTER("jzx_messages_redirected_total", redirected,
            "Messages that went to another actor when theirs ended."),
    COUNTER("jzx_messages_revoked_total", revoked, "Events that were cancelled while they waited."),
    COUNTER("jzx_messages_abandoned_total", abandoned,
            "Dead messages whose data nobody could release."),
    GAUGE("jzx_messages_queued", queued, "Messages that wait in mailboxes now."),
    GAUGE("jzx_messages_in_hand", in_hand, "Behaviors that have a message in hand now."),
    COUNTER("jzx_commands_total", commands, "Stops and kills that were asked for."),
    COUNTER("jzx_async_sent_total", async_sent, "Messages accepted from other threads."),
    COUNTER("jzx_async_arrived_total", async_arrived,
            "Messages of other threads that a dispatcher took in."),
    GAUGE("jzx_actors", live, "Actors that live now."),
    COUNTER("jzx_actors_spawned_total", spawned, "Actors that were spawned."),
    COUNTER("jzx_actors_ended_total", ended, "Actors that ended."),
    COUNTER("jzx_failures_total", failures, "Incarnations of actors that failed."),
    COUNTER("jzx_restarts_total", restarts, "Incarnations of actors that began to start again."),
    COUNTER("jzx_escalations_total", escalations, "Supervisors that gave up or escalated."),
    GAUGE("jzx_timers", timers, "Timers that are armed now."),
    GAUGE("jzx_io_references", refs, "Descriptors, signals and the like that actors hold now."),
    GAUGE("jzx_watches", watches, "Watches and links between actors now."),
    COUNTER("jzx_asks_total", asks, "Questions that actors asked."),
    COUNTER("jzx_replies_total", replies, "Replies that were given."),
    COUNTER("jzx_late_replies_total", late_replies, "Replies that no asker waited for any more."),
    COUNTER("jzx_ticks_total", ticks, "Rounds of the dispatchers."),
    COUNTER("jzx_turns_total", turns, "Turns of actors."),
    COUNTER("jzx_polls_total", polls, "Looks at the poller, waiting or not."),
    COUNTER("jzx_wakeups_total", wakeups, "Waits of dispatchers that ended."),
    COUNTER("jzx_wakes_sent_total", wakes_sent, "Wake-up calls between threads."),
};

static void write_simples(jzi_metrics *to, const jzx_counters *counters)
{
    for (size_t i = 0; i < sizeof simples / sizeof simples[0]; i++) {
        uint64_t value;
        memcpy(&value, (const char *)counters + simples[i].offset, sizeof value);
        jzi_metrics_one(to, simples[i].name, simples[i].type, simples[i].help, value);
    }
}

/* Words for people become values of labels: without blanks. */
static void write_by(jzi_metrics *to, const char *label, const char *words, uint64_t value)
{
    char text[LABEL_SIZE];
    (void)snprintf(text, sizeof text, "%s", words);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == ' ' ? '_' : *at;
    }
    jzi_metrics_u64(to, (jzi_label[JZI_LABELS]){{label, text}}, value);
}

static void write_reasons(jzi_metrics *to, const jzx_counters *counters)
{
    static const char *const refusals[JZX_REFUSED_REASONS] = {
        "no_such_actor", "stopping", "full", "no_memory", "invalid", "loop_closed"};
    jzi_metrics_begin(to, "jzx_messages_dead_total", "counter",
                      "Messages that were accepted and not handled, by reason.");
    for (uint32_t i = 0; i < JZX_DEAD_REASONS; i++) {
        write_by(to, "reason", jzx_dead_reason_name(i), counters->dead_by[i]);
    }
    jzi_metrics_begin(to, "jzx_sends_refused_total", "counter",
                      "Sends that were refused, by reason.");
    for (uint32_t i = 0; i < JZX_REFUSED_REASONS; i++) {
        write_by(to, "reason", refusals[i], counters->refused[i]);
    }
}

/* What only a look at all actors tells. */
typedef struct crowd {
    uint64_t states[JZX_STATES];
    uint64_t full;
    uint64_t deepest;
    uint64_t memory;
} crowd;

static bool see_actor(void *ctx, const jzi_actor_snapshot *snapshot)
{
    crowd *all = ctx;
    all->states[snapshot->state % JZX_STATES]++;
    all->full += snapshot->cap > 0 && snapshot->mailbox >= snapshot->cap;
    all->deepest = snapshot->mailbox > all->deepest ? snapshot->mailbox : all->deepest;
    all->memory += snapshot->memory;
    return true;
}

static void write_crowd(jzi_metrics *to, const jzi_view *view)
{
    crowd all = {0};
    jzi_peek_actors(view, see_actor, &all);
    jzi_metrics_begin(to, "jzx_actors_by_state", "gauge", "Actors that live now, by state.");
    for (uint32_t i = 0; i < JZX_STATE_TERMINATED; i++) { /* a terminated actor does not live */
        write_by(to, "state", jzx_state_name(i), all.states[i]);
    }
    jzi_metrics_one(to, "jzx_mailbox_depth_max", "gauge",
                    "Messages that wait in the fullest mailbox now.", all.deepest);
    jzi_metrics_one(to, "jzx_mailboxes_full", "gauge", "Mailboxes that are full now.", all.full);
    jzi_metrics_one(to, "jzx_actor_memory_bytes", "gauge",
                    "Memory that the runtime holds for actors now.", all.memory);
}

/* What tells dispatchers apart: several may have the same name, as those of "pinned" do. */
typedef struct place {
    char index[LABEL_SIZE];
    char worker[LABEL_SIZE];
    jzi_label labels[JZI_LABELS];
} place;

/* Points into itself. */
static void set_place(place *at, const char *dispatcher, uint32_t index)
{
    (void)snprintf(at->index, sizeof at->index, "%u", (unsigned)index);
    at->labels[0] = (jzi_label){"dispatcher", dispatcher};
    at->labels[1] = (jzi_label){"index", at->index};
    at->labels[2] = (jzi_label){NULL, NULL};
}

/* Each family needs its samples in a row, so the list is gone through once for each. */
static void write_dispatchers(jzi_metrics *to, const jzx_control *control,
                              const jzi_dispatcher_snapshot *list, size_t count)
{
    static const char *const kinds[] = {"loop", "pinned", "pool"};
    uint64_t now_ns = jzi_control_now_ns(control);
    uint64_t us;
    bool answering;
    place at;
    jzi_metrics_begin(to, "jzx_dispatcher_actors", "gauge", "Actors of a dispatcher now.");
    for (size_t i = 0; i < count; i++) {
        set_place(&at, list[i].name, list[i].index);
        at.labels[2] = (jzi_label){"kind", list[i].kind < 3 ? kinds[list[i].kind] : "unknown"};
        jzi_metrics_u64(to, at.labels, list[i].live);
    }
    jzi_metrics_begin(to, "jzx_dispatcher_latency_seconds", "gauge",
                      "How long a dispatcher takes to answer a question put to it.");
    for (size_t i = 0; i < count; i++) {
        if (jzi_control_latency(control, list[i].index, now_ns, &us, &answering)) {
            set_place(&at, list[i].name, list[i].index);
            jzi_metrics_seconds(to, at.labels, us * 1000);
        }
    }
    jzi_metrics_begin(to, "jzx_dispatcher_answering", "gauge",
                      "1 while a dispatcher answers in time, 0 while it does not.");
    for (size_t i = 0; i < count; i++) {
        if (jzi_control_latency(control, list[i].index, now_ns, &us, &answering)) {
            set_place(&at, list[i].name, list[i].index);
            jzi_metrics_u64(to, at.labels, answering);
        }
    }
}

static void set_worker(place *at, const jzi_worker_snapshot *worker,
                       const jzi_dispatcher_snapshot *list, size_t count)
{
    const char *name = "";
    for (size_t i = 0; i < count; i++) {
        name = list[i].index == worker->dispatcher ? list[i].name : name;
    }
    set_place(at, name, worker->dispatcher);
    (void)snprintf(at->worker, sizeof at->worker, "%u", (unsigned)worker->number);
    at->labels[2] = (jzi_label){"worker", at->worker};
}

static void write_workers(jzi_metrics *to, const jzi_worker_snapshot *workers, size_t worker_count,
                          const jzi_dispatcher_snapshot *list, size_t count)
{
    place at;
    jzi_metrics_begin(to, "jzx_worker_handled_total", "counter",
                      "Messages that a worker gave to behaviors.");
    for (size_t i = 0; i < worker_count; i++) {
        set_worker(&at, &workers[i], list, count);
        jzi_metrics_u64(to, at.labels, workers[i].handled);
    }
    jzi_metrics_begin(to, "jzx_worker_cpu_seconds_total", "counter",
                      "Processor time of the thread that runs a worker.");
    for (size_t i = 0; i < worker_count; i++) {
        if (workers[i].tid != 0) {
            set_worker(&at, &workers[i], list, count);
            jzi_metrics_seconds(to, at.labels, jzi_thread_cpu_ns(workers[i].tid));
        }
    }
    jzi_metrics_begin(to, "jzx_worker_running", "gauge",
                      "1 while a worker runs the code of an actor, else 0.");
    for (size_t i = 0; i < worker_count; i++) {
        set_worker(&at, &workers[i], list, count);
        jzi_metrics_u64(to, at.labels, workers[i].actor != JZX_NOBODY);
    }
}

/* False: no memory. */
static bool write_places(jzi_metrics *to, const jzx_control *control)
{
    const jzi_view *view = &control->view;
    size_t cap = jzi_peek_dispatchers(view, NULL, 0) + 1;
    size_t worker_cap = jzi_peek_workers(view, NULL, 0) + 1;
    jzi_dispatcher_snapshot *list = jzi_alloc(&view->alloc, cap * sizeof *list);
    jzi_worker_snapshot *workers = jzi_alloc(&view->alloc, worker_cap * sizeof *workers);
    if (list != NULL && workers != NULL) {
        size_t count = jzi_peek_dispatchers(view, list, cap);
        size_t worker_count = jzi_peek_workers(view, workers, worker_cap);
        count = count < cap ? count : cap;
        write_dispatchers(to, control, list, count);
        write_workers(to, workers, worker_count < worker_cap ? worker_count : worker_cap, list,
                      count);
    }
    bool done = list != NULL && workers != NULL;
    jzi_free(&view->alloc, list, cap * sizeof *list);
    jzi_free(&view->alloc, workers, worker_cap * sizeof *workers);
    return done;
}

static void write_times(jzi_metrics *to, const jzi_view *view)
{
    static const struct {
        const char *name;
        const char *help;
    } kinds[JZI_TIME_KINDS] = {
        [JZI_TIME_TURN] = {"jzx_turn_seconds", "Turns of actors: some of them are timed."},
        [JZI_TIME_WAIT] = {"jzx_queue_wait_seconds",
                           "From send to behavior: some messages are timed."},
        [JZI_TIME_ASK] = {"jzx_ask_seconds", "From an ask to its outcome: all are timed."},
    };
    jzi_times times[JZI_TIME_KINDS];
    jzi_peek_times(view, times);
    for (uint32_t i = 0; i < JZI_TIME_KINDS; i++) {
        jzi_metrics_histogram(to, kinds[i].name, kinds[i].help, times[i].buckets, JZI_TIME_BUCKETS,
                              JZI_TIME_FIRST, times[i].sum_ns);
    }
}

static void write_process(jzi_metrics *to, const jzx_control *control)
{
    jzi_process_use use;
    uint64_t open_fds;
    uint64_t max_fds;
    jzi_process_sample(&use);
    jzi_descriptors_count(&open_fds, &max_fds);
    jzi_metrics_begin(to, "jzx_info", "gauge", "Always 1: the program and its version of Jazz.");
    jzi_metrics_u64(
        to, (jzi_label[JZI_LABELS]){{"program", control->name}, {"version", JZX_VERSION_STRING}},
        1);
    jzi_metrics_begin(to, "jzx_uptime_seconds", "gauge", "Since the control plane was started.");
    jzi_metrics_seconds(to, NULL, jzi_control_now_ns(control) - control->started_ns);
    jzi_metrics_one(to, "jzx_process_resident_memory_bytes", "gauge",
                    "Memory of the process that is resident.", use.rss_bytes);
    jzi_metrics_begin(to, "jzx_process_cpu_seconds_total", "counter",
                      "Processor time of the process, user and system.");
    jzi_metrics_seconds(to, NULL, use.cpu_ms * 1000000);
    jzi_metrics_one(to, "jzx_process_threads", "gauge", "Threads of the process.", use.threads);
    jzi_metrics_one(to, "jzx_process_open_fds", "gauge", "Descriptors that are open.", open_fds);
    jzi_metrics_one(to, "jzx_process_max_fds", "gauge", "Descriptors that may be open.", max_fds);
}

bool jzi_op_metrics(jzi_client *client, jzi_request *request)
{
    jzx_control *control = client->control;
    jzi_metrics to = {0};
    jzx_counters counters;
    (void)request;
    control->metrics_until_ns = jzi_control_now_ns(control) + MEASURE_NS;
    jzi_board_want(control->view.board, JZI_WANT_TIMES, 0);
    jzi_server_ping_first(control->server);
    jzi_json_init(&to.text, &control->view.alloc);
    jzi_peek_counters(&control->view, &counters);
    write_process(&to, control);
    write_simples(&to, &counters);
    write_reasons(&to, &counters);
    write_crowd(&to, &control->view);
    bool done = write_places(&to, control);
    write_times(&to, &control->view);
    jzi_json_raw(&to.text, "", 1);
    done = done && !to.text.failed;
    if (done) {
        jzi_json_text(&client->out, "text", to.text.bytes);
    }
    jzi_json_deinit(&to.text);
    return done || jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
}

void jzi_metrics_tick(jzx_control *control)
{
    if (control->metrics_until_ns != 0 &&
        jzi_control_now_ns(control) >= control->metrics_until_ns) {
        control->metrics_until_ns = 0;
        jzi_board_want(control->view.board, 0, JZI_WANT_TIMES);
    }
}
