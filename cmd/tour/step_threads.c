/* Step 7: threads outside the loop send through a sender. */
#include "tour.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>

enum { THREADS = 2, PER_THREAD = 100000 };

typedef struct talker {
    pthread_t thread;
    jzx_sender *sender;
    jzx_actor_id to;
    uint32_t tag;
    uint64_t refused;
    jzx_err err;
} talker;

typedef struct tally {
    uint64_t next[THREADS];
    uint64_t total;
    uint64_t out_of_order;
} tally;

static void *talk(void *arg)
{
    talker *me = arg;
    for (uint64_t i = 0; i < PER_THREAD && me->err == JZX_OK; i++) {
        while ((me->err = jzx_send_async_u64(me->sender, me->to, i, me->tag)) ==
               JZX_ERR_MAILBOX_FULL) {
            me->refused++;
            sched_yield();
        }
    }
    return NULL;
}

static jzx_behavior_result count(jzx_context *ctx, const jzx_message *msg)
{
    tally *me = ctx->state;
    me->out_of_order += msg->u64 != me->next[msg->tag];
    me->next[msg->tag] = msg->u64 + 1;
    me->total++;
    return me->total == (uint64_t)THREADS * PER_THREAD ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void report(tour *t, jzx_loop *loop, const tally *sum, uint64_t took_ns, uint64_t refused)
{
    jzx_counters c;
    jzx_loop_counters(loop, &c);
    tour_saw(t, sum->total == (uint64_t)THREADS * PER_THREAD && sum->out_of_order == 0,
             "%s messages from %d threads, each thread's in order: %.0f ns per message",
             tour_count(sum->total), THREADS, (double)took_ns / (double)(sum->total + 1));
    tour_saw(
        t, c.async_sent == c.async_arrived && c.async_sent == sum->total,
        "the threads counted %s sent, the loop %s taken in; refused as full, and sent again: %s",
        tour_count(c.async_sent), tour_count(c.async_arrived), tour_count(refused));
    tour_saw(t, c.wakes_sent < c.async_sent, "wake-up calls that were needed: %s",
             tour_count(c.wakes_sent));
}

void step_threads(tour *t)
{
    talker talkers[THREADS] = {{0}};
    tally sum = {0};
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = count, .state = &sum, .name = "tally"};
    jzx_sender *kept = NULL;
    uint64_t refused = 0;
    int started = 0;
    tour_say(t,
             "Other threads send through a handle. They get the same verdicts at once, without a\n"
             "lock, and wake the loop only when it sleeps.");
    jzx_loop *loop = tour_loop_open(t);
    if (loop == NULL) {
        return;
    }
    bool ready = tour_ok(t, jzx_spawn(loop, &opts, &id), "spawn") &&
                 tour_ok(t, jzx_sender_open(loop, JZX_SENDER_SHARED, &kept), "open a sender");
    uint64_t start = jzx_loop_now(loop);
    while (ready && started < THREADS) {
        talker *me = &talkers[started];
        me->to = id;
        me->tag = (uint32_t)started;
        ready = tour_ok(t, jzx_sender_clone(kept, JZX_SENDER_SINGLE, &me->sender), "clone it");
        if (ready && pthread_create(&me->thread, NULL, talk, me) != 0) {
            ready = tour_ok(t, JZX_ERR_NO_MEMORY, "start a thread");
            jzx_sender_release(me->sender);
        }
        started += ready ? 1 : 0;
    }
    if (ready) {
        tour_ok(t, jzx_loop_run(loop), "run");
    } else if (id != JZX_NOBODY) {
        jzx_stop(loop, id); /* threads that did start are refused and return */
        tour_ok(t, jzx_loop_run(loop), "run");
    }
    uint64_t took_ns = jzx_loop_now(loop) - start;
    for (int i = 0; i < started; i++) {
        (void)pthread_join(talkers[i].thread, NULL);
        refused += talkers[i].refused;
        jzx_sender_release(talkers[i].sender);
    }
    if (ready) {
        report(t, loop, &sum, took_ns, refused);
    }
    tour_loop_close(t, loop);
    tour_saw(t, jzx_send_async_u64(kept, id, 0, 0) == JZX_ERR_LOOP_CLOSED,
             "a sender outlives its loop and then answers JZX_ERR_LOOP_CLOSED");
    jzx_sender_release(kept);
}
