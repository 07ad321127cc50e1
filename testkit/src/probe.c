/* Probes. The struct has two owners, the test and the actor, so that either may end first. */
#include <jzx/lifecycle.h>
#include <jzx/monitor.h>
#include <jzx/net.h>
#include <jzx/testkit.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A request to send, from jzx_probe_send(). Its address in the message is the password: no other
 * sender can have that. */
#define PROBE_TAG_SEND 0x70726F62u

struct jzx_probe {
    jzx_loop *loop;
    jzx_actor_id id;
    int owners;
    bool gone; /* the actor ended */

    jzx_probe_record **records; /* owned, and so is each of them */
    size_t count;
    size_t cap;
    size_t lost; /* messages for which there was no memory */

    jzx_actor_id send_to;
    const jzx_send_opts *send_opts;
    size_t send_size;
    jzx_err send_result;
    bool send_done;
    jzx_actor_id watch; /* in place of a send: the actor to watch */
    jzx_watch_ref watch_ref;
};

/* What is waited for. */
typedef struct wanted {
    enum { ANY, TAG, END, STATE } what;
    uint32_t tag; /* or jzx_state */
    jzx_actor_id actor;
} wanted;

static void probe_release(jzx_probe *probe)
{
    probe->owners--;
    if (probe->owners > 0) {
        return;
    }
    for (size_t i = 0; i < probe->count; i++) {
        free(probe->records[i]);
    }
    free(probe->records);
    free(probe);
}

static jzx_probe_record *record_add(jzx_probe *probe)
{
    if (probe->count == probe->cap) {
        size_t cap = probe->cap == 0 ? 16 : probe->cap * 2;
        jzx_probe_record **moved = realloc(probe->records, cap * sizeof(jzx_probe_record *));
        if (moved == NULL) {
            return NULL;
        }
        probe->records = moved;
        probe->cap = cap;
    }
    jzx_probe_record *record = calloc(1, sizeof *record);
    if (record != NULL) {
        probe->records[probe->count++] = record;
    }
    return record;
}

static void bytes_copy(jzx_probe_record *record, const void *data, size_t len)
{
    record->len = len;
    if (data != NULL && len > 0) {
        memcpy(record->bytes, data, len < JZX_PROBE_BYTES ? len : JZX_PROBE_BYTES);
    }
}

static void record_fill(jzx_probe_record *record, const jzx_message *msg)
{
    record->sender = msg->sender;
    record->tag = msg->tag;
    record->flags = msg->flags;
    record->kind = msg->kind;
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        record->u64 = msg->u64;
        return;
    }
    if (msg->kind == JZX_KIND_IO) {
        const jzx_io_event *event = msg->data;
        record->io = *event;
        record->io.data = NULL;
        bytes_copy(record, event->data, event->data == NULL ? 0 : event->len);
        return;
    }
    const jzx_signal *signal = jzx_message_signal(msg);
    if (signal != NULL) {
        record->about = signal->from;
        record->ref = signal->ref;
        record->reason = *signal->reason;
    }
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_ROOM) {
        bytes_copy(record, msg->data, sizeof(jzx_room_notice));
        return;
    }
    bytes_copy(record, msg->data, msg->data == NULL ? 0 : msg->len);
    bool events = msg->kind != JZX_KIND_USER && msg->kind != JZX_KIND_TIMER;
    if (jzx_message_owner(msg) == JZX_OWNER_ACTOR && !events) {
        record->data = msg->data;
    }
}

static jzx_behavior_result probe_behavior(jzx_context *ctx, const jzx_message *msg)
{
    jzx_probe *probe = ctx->state;
    if (msg->tag == PROBE_TAG_SEND && (msg->flags & JZX_MSG_VALUE) == 0 && msg->data == probe) {
        if (probe->watch != JZX_NOBODY) {
            probe->send_result = jzx_watch(ctx->loop, probe->watch, 0, &probe->watch_ref);
            probe->watch = JZX_NOBODY;
            probe->send_done = true;
        } else if (probe->send_opts != NULL) {
            probe->send_result =
                jzx_send_with_sized(ctx->loop, probe->send_to, probe->send_opts, probe->send_size);
            probe->send_opts = NULL;
            probe->send_done = true;
        }
        return JZX_BEHAVIOR_OK;
    }
    jzx_probe_record *record = record_add(probe);
    if (record == NULL) {
        probe->lost++;
        return JZX_BEHAVIOR_OK;
    }
    record->time_ns = jzx_loop_now(ctx->loop);
    record_fill(record, msg);
    return JZX_BEHAVIOR_OK;
}

static void probe_deinit(jzx_context *ctx)
{
    jzx_probe *probe = ctx->state;
    probe->gone = true;
    probe_release(probe);
}

jzx_err jzx_probe_spawn(jzx_loop *loop, jzx_probe **out_probe)
{
    if (loop == NULL || out_probe == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_probe *probe = calloc(1, sizeof *probe);
    if (probe == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    probe->loop = loop;
    probe->owners = 2;
    jzx_spawn_opts opts = {.behavior = probe_behavior,
                           .state = probe,
                           .deinit = probe_deinit,
                           .name = "probe",
                           .mailbox_cap = JZX_MAILBOX_CAP_MAX};
    jzx_err err = jzx_spawn(loop, &opts, &probe->id);
    if (err != JZX_OK) {
        free(probe);
        return err;
    }
    *out_probe = probe;
    return JZX_OK;
}

void jzx_probe_free(jzx_probe *probe)
{
    if (probe == NULL) {
        return;
    }
    if (!probe->gone) {
        jzx_stop(probe->loop, probe->id);
    }
    probe_release(probe);
}

jzx_actor_id jzx_probe_id(const jzx_probe *probe)
{
    return probe->id;
}

size_t jzx_probe_count(const jzx_probe *probe)
{
    return probe->count;
}

const jzx_probe_record *jzx_probe_at(const jzx_probe *probe, size_t index)
{
    return index < probe->count ? probe->records[index] : NULL;
}

void jzx_probe_forget(jzx_probe *probe)
{
    for (size_t i = 0; i < probe->count; i++) {
        probe->records[i]->expected = 1;
    }
}

static bool is_wanted(const jzx_probe_record *record, const wanted *want)
{
    if (want->what == END) {
        return record->kind == JZX_KIND_NOTICE && record->tag == JZX_TAG_TERMINATED &&
               record->about == want->actor;
    }
    return want->what == ANY || (want->what == TAG && record->tag == want->tag);
}

static jzx_probe_record *unexpected_find(jzx_probe *probe, const wanted *want)
{
    for (size_t i = 0; i < probe->count; i++) {
        jzx_probe_record *record = probe->records[i];
        if (record->expected == 0 && is_wanted(record, want)) {
            return record;
        }
    }
    return NULL;
}

static bool is_there(jzx_probe *probe, const wanted *want, jzx_probe_record **out)
{
    if (want->what == STATE) {
        return (uint32_t)jzx_actor_state(probe->loop, want->actor) == want->tag;
    }
    *out = unexpected_find(probe, want);
    return *out != NULL || probe->gone;
}

/* Runs the loop until there is such a message or the time is over. A loop that is gone moves no
 * more; what was recorded before still counts. */
static jzx_err probe_wait(jzx_probe *probe, const wanted *want, uint64_t ms, jzx_probe_record **out)
{
    if (is_there(probe, want, out)) {
        return JZX_OK;
    }
    uint64_t now = jzx_loop_now(probe->loop);
    uint64_t limit = ms > (UINT64_MAX - now) / 1000000 ? UINT64_MAX : now + ms * 1000000;
    for (;;) {
        jzx_err err = jzx_loop_step(probe->loop, limit > now ? limit - now : 0);
        if (err != JZX_OK) {
            return err;
        }
        if (is_there(probe, want, out) || now >= limit) {
            return JZX_OK;
        }
        now = jzx_loop_now(probe->loop);
    }
}

static jzx_err probe_take(jzx_probe *probe, const wanted *want, uint64_t ms, jzx_probe_record **out)
{
    jzx_err err = probe_wait(probe, want, ms, out);
    if (err != JZX_OK) {
        return err;
    }
    if (*out == NULL) {
        return probe->lost > 0 ? JZX_ERR_NO_MEMORY : JZX_ERR_TIMED_OUT;
    }
    (*out)->expected = 1;
    return JZX_OK;
}

jzx_err jzx_probe_expect(jzx_probe *probe, uint32_t tag, uint64_t within_ms,
                         const jzx_probe_record **out_record)
{
    const wanted want = {.what = TAG, .tag = tag};
    jzx_probe_record *record = NULL;
    jzx_err err = probe_take(probe, &want, within_ms, &record);
    if (err == JZX_OK && out_record != NULL) {
        *out_record = record;
    }
    return err;
}

jzx_err jzx_probe_expect_terminated(jzx_probe *probe, jzx_actor_id target, uint64_t within_ms,
                                    jzx_reason *out_reason)
{
    const wanted want = {.what = END, .actor = target};
    jzx_probe_record *record = NULL;
    jzx_err err = probe_take(probe, &want, within_ms, &record);
    if (err == JZX_OK && out_reason != NULL) {
        *out_reason = record->reason;
    }
    return err;
}

jzx_err jzx_probe_expect_state(jzx_probe *probe, jzx_actor_id id, uint32_t state,
                               uint64_t within_ms)
{
    const wanted want = {.what = STATE, .actor = id, .tag = state};
    jzx_probe_record *record = NULL;
    jzx_err err = probe_wait(probe, &want, within_ms, &record);
    if (err != JZX_OK) {
        return err;
    }
    return is_there(probe, &want, &record) ? JZX_OK : JZX_ERR_TIMED_OUT;
}

jzx_err jzx_probe_expect_none(jzx_probe *probe, uint64_t for_ms)
{
    const wanted want = {.what = ANY};
    jzx_probe_record *record = NULL;
    jzx_err err = probe_wait(probe, &want, for_ms, &record);
    if (err != JZX_OK) {
        return err;
    }
    return record != NULL ? JZX_ERR_ALREADY : JZX_OK;
}

/* Has the actor do what was left for it, and runs the loop until it did. */
static jzx_err probe_ask(jzx_probe *probe)
{
    probe->send_done = false;
    jzx_send_opts request = {.data = probe, .tag = PROBE_TAG_SEND, .flags = JZX_SEND_URGENT};
    jzx_err err = jzx_send_with(probe->loop, probe->id, &request);
    /* The request is ready to run, so each step that changes nothing else brings it nearer. */
    while (err == JZX_OK && !probe->send_done && !probe->gone) {
        err = jzx_loop_step(probe->loop, 0);
    }
    probe->send_opts = NULL;
    probe->watch = JZX_NOBODY;
    if (err != JZX_OK) {
        return err;
    }
    return probe->send_done ? probe->send_result : JZX_ERR_NO_SUCH_ACTOR;
}

jzx_err jzx_probe_send_sized(jzx_probe *probe, jzx_actor_id to, const jzx_send_opts *opts,
                             size_t opts_size)
{
    if (opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (probe->gone) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    probe->send_to = to;
    probe->send_opts = opts;
    probe->send_size = opts_size;
    return probe_ask(probe);
}

jzx_err jzx_probe_watch(jzx_probe *probe, jzx_actor_id target, jzx_watch_ref *out_ref)
{
    if (target == JZX_NOBODY) {
        return JZX_ERR_INVALID_ARG;
    }
    if (probe->gone) {
        return JZX_ERR_NO_SUCH_ACTOR;
    }
    probe->watch = target;
    jzx_err err = probe_ask(probe);
    if (err == JZX_OK && out_ref != NULL) {
        *out_ref = probe->watch_ref;
    }
    return err;
}
