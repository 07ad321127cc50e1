/* Asks of threads that run no actor: they wait. */
#include "base/alloc.h"
#include "messaging/ask.h"

#include "os/thread.h"

#include <string.h>

static void waiter_init(jzi_ask_waiter *waiter)
{
    (void)pthread_mutex_init(&waiter->lock, NULL);
    jzi_cond_init(&waiter->told);
    waiter->done = false;
}

static void waiter_deinit(jzi_ask_waiter *waiter)
{
    (void)pthread_cond_destroy(&waiter->told);
    (void)pthread_mutex_destroy(&waiter->lock);
}

/* Until the answer is there or the time is up, on the clock that the request's deadline is on; 0:
 * for ever. True: the answer is there. */
static bool wait_for(jzi_ask_waiter *waiter, const jzx_env *env, uint64_t deadline_ns)
{
    (void)pthread_mutex_lock(&waiter->lock);
    uint64_t now = env->now_ns(env->ctx);
    while (!waiter->done && (deadline_ns == 0 || now < deadline_ns)) {
        jzi_cond_wait(&waiter->told, &waiter->lock,
                      deadline_ns == 0 ? UINT64_MAX : deadline_ns - now);
        now = env->now_ns(env->ctx);
    }
    bool done = waiter->done;
    (void)pthread_mutex_unlock(&waiter->lock);
    return done;
}

void jzx_reply_release(jzx_sender *sender, jzx_message *msg)
{
    if (sender == NULL || msg == NULL) {
        return;
    }
    if ((jzi_msg_flags(msg) & JZI_MSG_BLOCK) != 0) {
        const jzx_allocator alloc = jzi_sender_inbox(sender)->alloc;
        jzi_free(&alloc, msg->data, msg->len);
    } else if (msg->drop != NULL && msg->data != NULL) {
        msg->drop(msg->data);
    }
    *msg = (jzx_message){0};
}

static void hand_out(jzx_sender *sender, const jzi_ask *ask, jzx_reply *out, jzx_message *msg)
{
    *out = ask->reply;
    if (ask->reply.outcome == JZX_OUTCOME_REPLIED) {
        jzx_message reply = ask->errand.node.msg;
        if (msg != NULL) {
            *msg = reply;
        } else {
            jzx_reply_release(sender, &reply);
        }
    }
}

/* How many messages wait at an actor. */
static uint32_t depth_at(const jzx_sender *sender, jzx_actor_id id)
{
    uint32_t depth = jzi_depth_of(jzi_sender_inbox(sender), jzi_sender_directory(sender), id);
    return depth == UINT32_MAX ? 0 : depth;
}

/* The request is on its way: waits, and says how the ask ended. */
static void await(jzx_sender *sender, jzi_ask *ask, jzi_ask_waiter *waiter, jzx_reply *out,
                  jzx_message *msg)
{
    const jzx_env *env = ask->home->env;
    if (!wait_for(waiter, env, ask->deadline_ns)) {
        if (jzi_ask_decide(ask)) {
            jzx_actor_id holder = atomic_load_explicit(&ask->holder, memory_order_relaxed);
            jzi_ask_conclude(NULL, ask, JZX_OUTCOME_TIMED_OUT,
                             holder == JZX_NOBODY ? ask->reply.target : holder, NULL);
            ask->reply.queue_depth = depth_at(sender, ask->reply.callee);
        } else {
            (void)wait_for(waiter, env, 0); /* the answer is being given right now */
        }
    }
    hand_out(sender, ask, out, msg);
    jzi_ask_leave(NULL, ask, JZI_ASK_ASKER);
}

static jzx_err ask_and_wait(jzx_sender *sender, jzx_actor_id to, const jzx_ask_opts *opts,
                            jzx_reply *out, jzx_message *msg)
{
    uint32_t flags = 0;
    jzx_err err = jzi_ask_check(opts, &flags);
    if (err != JZX_OK) {
        return err;
    }
    jzi_inbox *inbox = jzi_sender_inbox(sender);
    jzi_ask_waiter waiter;
    waiter_init(&waiter);
    jzi_ask *ask = jzi_ask_take_for(inbox, &waiter);
    err = JZX_ERR_NO_MEMORY;
    if (ask != NULL) {
        jzi_ask_fill(ask, to, opts, inbox->env->now_ns(inbox->env->ctx));
        const jzx_send_opts request = jzi_ask_request(opts, ask);
        err = jzi_sender_send(sender, to, &request, flags);
        if (err == JZX_OK) {
            await(sender, ask, &waiter, out, msg);
            err = (jzx_err)out->err;
        } else {
            jzi_ask_leave(NULL, ask, JZI_ASK_DUTY);
            jzi_ask_leave(NULL, ask, JZI_ASK_ASKER);
        }
    }
    waiter_deinit(&waiter);
    return err;
}

jzx_err jzi_ask_wait(jzx_sender *sender, jzx_actor_id to, const jzx_ask_opts *opts,
                     jzx_message *msg, bool *out_sent)
{
    jzx_reply reply = {.target = to, .callee = to, .tag = opts->tag, .outcome = UINT32_MAX};
    *out_sent = false;
    if (jzi_worker_here != NULL) {
        return JZX_ERR_DEADLOCK;
    }
    jzx_err err = ask_and_wait(sender, to, opts, &reply, msg);
    *out_sent = reply.outcome != UINT32_MAX;
    return err;
}

jzx_err jzx_ask_wait_sized(jzx_sender *sender, jzx_actor_id to, const jzx_ask_opts *opts,
                           size_t opts_size, jzx_reply *out, size_t out_size, jzx_message *msg)
{
    jzx_ask_opts known;
    if (sender == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    if (jzi_worker_here != NULL) {
        return JZX_ERR_DEADLOCK;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    jzx_reply reply = {.target = to,
                       .callee = to,
                       .tag = known.tag,
                       .outcome = UINT32_MAX,
                       .correlation = known.correlation};
    err = ask_and_wait(sender, to, &known, &reply, msg);
    if (reply.outcome == UINT32_MAX) { /* the request was not sent */
        reply.outcome = jzi_outcome_of(err);
        reply.err = err;
        reply.queue_depth = depth_at(sender, to);
        jzi_ask_consume(&known);
    }
    if (out != NULL) {
        memset(out, 0, out_size);
        memcpy(out, &reply, out_size < sizeof reply ? out_size : sizeof reply);
    }
    return err;
}
