/* Entry points for asks and their answers. */
#include "base/alloc.h"
#include "messaging/ask.h"
#include "sched/stash.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_TIMEOUT_MS = 5000, PATIENT_MS = 1000, NS_PER_MS = 1000000 };

const char *jzx_outcome_name(uint32_t outcome)
{
    static const char *const names[] = {
        "replied",       "timed out",    "expired",   "callee died", "callee restarted",
        "no such actor", "mailbox full", "cancelled", "forgotten",   "refused"};
    return outcome < sizeof names / sizeof names[0] ? names[outcome] : "unknown";
}

int jzx_reply_format(const jzx_reply *reply, char *buf, size_t cap)
{
    if (reply == NULL) {
        return snprintf(buf, cap, "no ask");
    }
    char reason[160] = "";
    if (reply->outcome == JZX_OUTCOME_CALLEE_DIED ||
        reply->outcome == JZX_OUTCOME_CALLEE_RESTARTED) {
        (void)jzx_reason_format(&reply->reason, reason, sizeof reason);
    }
    char name[JZX_NAME_MAX + 4] = "";
    if (reply->target_name[0] != '\0') {
        (void)snprintf(name, sizeof name, "'%s' ", reply->target_name);
    }
    return snprintf(buf, cap, "ask %s(%llx) tag %u: %s%s%s%s after %.1f ms, %u queued", name,
                    (unsigned long long)reply->target, (unsigned)reply->tag,
                    jzx_outcome_name(reply->outcome), reason[0] == '\0' ? "" : " (", reason,
                    reason[0] == '\0' ? "" : ")", (double)reply->age_ns / NS_PER_MS,
                    (unsigned)reply->queue_depth);
}

jzx_send_opts jzi_ask_request(const jzx_ask_opts *opts, const jzi_ask *ask)
{
    jzx_send_opts request = {
        .data = opts->data,
        .len = opts->len,
        .drop = opts->drop,
        .deadline_ns = ask == NULL ? 0 : ask->deadline_ns,
        .tag = opts->tag,
        .flags = opts->flags,
        .reserved = ask == NULL ? 0 : jzi_ask_index(ask),
    };
    if ((opts->flags & JZX_SEND_VALUE) != 0) {
        request.u64 = opts->u64;
    }
    return request;
}

jzx_err jzi_ask_check(const jzx_ask_opts *opts, uint32_t *out_flags)
{
    const jzx_send_opts request = jzi_ask_request(opts, NULL);
    jzx_err err =
        opts->reserved != 0 ? JZX_ERR_INVALID_ARG : jzi_mailbox_check_opts(&request, out_flags);
    *out_flags |= JZI_MSG_ASK; /* so the deadline is the ask's, not the message's */
    return err;
}

static inline __attribute__((always_inline)) void fill_in(jzi_ask *ask, jzx_actor_id to,
                                                          const jzx_ask_opts *opts, uint64_t now,
                                                          uint64_t slack, uint64_t inherited)
{
    uint32_t ms = opts->timeout_ms == 0 ? DEFAULT_TIMEOUT_MS : opts->timeout_ms;
    ask->asked_ns = now;
    ask->deadline_ns = ms == JZX_ASK_NO_TIMEOUT ? 0 : now + slack + (uint64_t)ms * NS_PER_MS;
    ask->on_reply = opts->on_reply;
    ask->reply.ask = jzi_ask_id(ask);
    ask->reply.arg = opts->arg;
    ask->reply.target = to;
    ask->reply.tag = opts->tag;
    ask->reply.correlation = opts->correlation != 0 ? opts->correlation
                             : inherited != 0       ? inherited
                                                    : ask->reply.ask;
}

void jzi_ask_fill(jzi_ask *ask, jzx_actor_id to, const jzx_ask_opts *opts, uint64_t now)
{
    fill_in(ask, to, opts, now, 0, 0);
}

uint32_t jzi_outcome_of(jzx_err err)
{
    return err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING ? JZX_OUTCOME_NO_SUCH_ACTOR
           : err == JZX_ERR_MAILBOX_FULL                           ? JZX_OUTCOME_MAILBOX_FULL
           : err == JZX_ERR_LOOP_CLOSED                            ? JZX_OUTCOME_CANCELLED
                                                                   : JZX_OUTCOME_REFUSED;
}

/* The request was refused. */
static void describe(jzi_worker *worker, jzx_actor_id to, const jzx_ask_opts *opts, jzx_err err)
{
    if (opts->failure == NULL) {
        return;
    }
    uint32_t depth = jzi_depth_of(worker->inbox, worker->dispatcher->directory, to);
    *opts->failure = (jzx_reply){
        .arg = opts->arg,
        .target = to,
        .callee = to,
        .outcome = jzi_outcome_of(err),
        .tag = opts->tag,
        .queue_depth = depth == UINT32_MAX ? 0 : depth,
        .err = err,
        .correlation = opts->correlation,
    };
    const jzi_actor *actor = jzi_worker_is_far(worker, to) ? NULL : jzi_worker_find(worker, to);
    if (actor != NULL) {
        memcpy(opts->failure->target_name, jzi_actor_name(actor),
               strlen(jzi_actor_name(actor)) + 1);
    }
}

/* When the ask begins. A long timeout needs no exact clock; *out_slack makes up for the difference,
 * so that the ask does not end early. */
static inline uint64_t begins_at(jzi_worker *worker, const jzx_ask_opts *opts, uint64_t *out_slack)
{
    bool patient = opts->timeout_ms == 0 || opts->timeout_ms >= PATIENT_MS;
    *out_slack = patient && !jzi_worker_is_exact(worker) ? JZI_RECENT_NS : 0;
    return patient ? jzi_worker_recent(worker) : jzi_worker_clock(worker);
}

/* A value to an actor of this loop that has room: the quick way of jzx_send_u64(). */
static inline bool send_quickly(jzi_worker *worker, jzx_actor_id to, const jzx_ask_opts *opts,
                                const jzi_ask *it)
{
    jzi_actor *actor = NULL;
    jzi_node *node = opts->flags == JZX_SEND_VALUE ? jzi_mailbox_quick(worker, to, &actor) : NULL;
    if (jzi_unlikely(node == NULL)) {
        return false;
    }
    jzi_mailbox_fill(&node->msg, opts->u64, 0, opts->tag, JZX_MSG_VALUE | JZI_MSG_ASK,
                     worker->ctx.self);
    node->msg.deadline_ns = it->deadline_ns;
    node->ops = (uint32_t)it->reply.ask;
    jzi_mailbox_put(worker, actor, node);
    return true;
}

static __attribute__((noinline)) jzx_err send_request(jzi_worker *worker, jzx_actor_id to,
                                                      const jzx_ask_opts *opts, jzi_ask *it,
                                                      uint32_t flags)
{
    const jzx_send_opts request = jzi_ask_request(opts, it);
    jzx_err err = jzi_send_inside(worker, to, &request, flags);
    if (err != JZX_OK) {
        jzi_ask_undo(worker, it);
        describe(worker, to, opts, err);
    }
    return err;
}

/* The options, and whether the running actor may ask. Anything but a value takes the long way. */
static inline jzx_err ask_api_check(jzi_worker *worker, const jzx_ask_opts *opts, uint32_t *flags)
{
    const jzi_actor *asker = worker->current;
    if (jzi_unlikely(asker == NULL || worker->ctx.self == JZX_NOBODY)) {
        return JZX_ERR_INVALID_ARG;
    }
    if (opts->flags != JZX_SEND_VALUE || opts->tag >= JZX_TAG_SYSTEM_FIRST || opts->drop != NULL ||
        opts->reserved != 0) {
        jzx_err err = jzi_ask_check(opts, flags);
        if (err != JZX_OK) {
            return err;
        }
    }
    if (jzi_unlikely((asker->flags & JZI_ACTOR_STOPPING) != 0 || worker->dispatcher->destroying)) {
        jzi_actor *owner = NULL;
        return jzi_worker_find_owner(worker, worker->ctx.self, &owner);
    }
    return JZX_OK;
}

static inline __attribute__((always_inline)) jzx_err
ask(jzi_worker *worker, jzx_actor_id to, const jzx_ask_opts *opts, jzx_ask_ref *out_ref)
{
    uint32_t flags = JZX_MSG_VALUE | JZI_MSG_ASK;
    jzx_err err = ask_api_check(worker, opts, &flags);
    if (jzi_unlikely(err != JZX_OK)) {
        return err;
    }
    bool equipped = jzi_pattern_state_of(worker->current) != NULL ||
                    jzi_worker_pattern_state(worker, worker->current) != NULL;
    jzi_ask *it = equipped ? jzi_ask_take(worker) : NULL;
    if (jzi_unlikely(it == NULL)) {
        return JZX_ERR_NO_MEMORY;
    }
    uint64_t slack = 0;
    uint64_t now = begins_at(worker, opts, &slack);
    fill_in(it, to, opts, now, slack, jzi_worker_correlation(worker));
    jzi_ask_begin(worker, worker->current, it);
    jzx_ask_ref ref = it->reply.ask;
    if (!send_quickly(worker, to, opts, it)) {
        err = send_request(worker, to, opts, it, flags);
        if (err != JZX_OK) {
            return err;
        }
    }
    jzi_count_add(&worker->counters.asks, 1);
    if (out_ref != NULL) {
        *out_ref = ref;
    }
    return JZX_OK;
}

static __attribute__((noinline)) jzx_err
enter_and_ask(jzx_loop *loop, jzx_actor_id to, const jzx_ask_opts *opts, jzx_ask_ref *out_ref)
{
    JZI_ENTER(loop, "jzx_ask");
    jzx_err err = ask(worker, to, opts, out_ref);
    return err == JZX_OK ? JZX_OK : jzi_worker_refuse(worker, to, err);
}

static __attribute__((noinline)) jzx_err ask_at_length(jzx_loop *loop, jzx_actor_id to,
                                                       const jzx_ask_opts *opts, size_t opts_size,
                                                       jzx_ask_ref *out_ref)
{
    jzx_ask_opts known;
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err == JZX_OK) {
        err = enter_and_ask(loop, to, &known, out_ref);
        if (err != JZX_OK) {
            jzi_ask_consume(&known);
        }
    }
    return err;
}

jzx_err jzx_ask_sized(jzx_loop *loop, jzx_actor_id to, const jzx_ask_opts *opts, size_t opts_size,
                      jzx_ask_ref *out_ref)
{
    if (jzi_unlikely(loop == NULL || opts == NULL || opts_size != sizeof *opts) ||
        !jzi_loop_is_plain(loop, "jzx_ask")) {
        return ask_at_length(loop, to, opts, opts_size, out_ref);
    }
    jzx_err err = ask(jzi_loop_worker(loop), to, opts, out_ref);
    if (jzi_unlikely(err != JZX_OK)) {
        jzi_ask_consume(opts);
        return jzi_worker_refuse(jzi_loop_worker(loop), to, err);
    }
    return JZX_OK;
}

jzx_err jzx_ask_cancel(jzx_loop *loop, jzx_ask_ref ref)
{
    JZI_ENTER(loop, "jzx_ask_cancel");
    if (worker == NULL || worker->ctx.self == JZX_NOBODY) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_ask *it = jzi_worker_is_far(worker, ref) ? NULL : jzi_ask_find(worker, ref, JZI_ASK_ASKER);
    if (it == NULL || it->waiter != NULL || it->asker != worker->ctx.self || it->pprev == NULL) {
        return JZX_ERR_NO_SUCH_REF;
    }
    jzi_ask_cancel(worker, it);
    return JZX_OK;
}

const jzx_reply *jzx_reply_of(const jzx_context *ctx)
{
    const jzi_worker *worker = jzi_worker_with_message(ctx);
    if (worker == NULL || worker->in_hand->msg.kind != JZX_KIND_REPLY) {
        return NULL;
    }
    return &jzi_container_of(worker->in_hand, const jzi_ask, errand.node)->reply;
}

uint32_t jzx_mailbox_depth(jzx_loop *loop, jzx_actor_id id)
{
    if (loop == NULL) {
        return UINT32_MAX;
    }
    const jzi_worker *worker = jzi_loop_worker(loop);
    return jzi_depth_of(worker->inbox, worker->dispatcher->directory, id);
}
