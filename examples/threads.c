/* Four threads send to one actor through senders of their own. Verdicts come at once: a thread that
 * finds the mailbox full waits for room and tries again, so every number arrives exactly once and
 * the numbers of each thread arrive in order. Run: ./threads */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, PER_THREAD = 50000 };

typedef struct worker {
    pthread_t thread;
    jzx_sender *sender;
    jzx_actor_id to;
    uint32_t tag; /* which worker */
    jzx_err err;
} worker;

typedef struct tally {
    uint64_t next[THREADS]; /* by tag */
    uint64_t total;
    uint64_t out_of_order;
} tally;

static void *send_numbers(void *arg)
{
    worker *me = arg;
    for (uint64_t i = 0; i < PER_THREAD && me->err == JZX_OK; i++) {
        /* The room that it waited for may be gone again when it sends: only the send decides. */
        while ((me->err = jzx_send_async_u64(me->sender, me->to, i, me->tag)) ==
                   JZX_ERR_MAILBOX_FULL &&
               jzx_sender_wait_room(me->sender, me->to, JZX_TIMEOUT_INFINITE) == JZX_OK) {
        }
    }
    jzx_sender_release(me->sender);
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

int main(void)
{
    tally sum = {0};
    worker workers[THREADS] = {0};
    int started = 0;
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = count, .state = &sum};
    jzx_err err = jzx_loop_create(NULL, &loop);
    if (err == JZX_OK) {
        err = jzx_spawn(loop, &opts, &id);
    }
    for (; err == JZX_OK && started < THREADS; started++) {
        worker *w = &workers[started];
        *w = (worker){.to = id, .tag = (uint32_t)started};
        err = jzx_sender_open(loop, JZX_SENDER_SINGLE, &w->sender);
        if (err != JZX_OK) {
            break;
        }
        if (pthread_create(&w->thread, NULL, send_numbers, w) != 0) {
            jzx_sender_release(w->sender);
            err = JZX_ERR_NO_MEMORY;
            break;
        }
    }
    if (err == JZX_OK) {
        err = jzx_loop_run(loop);
    }
    jzx_loop_destroy(loop); /* senders may outlive it: their sends answer JZX_ERR_LOOP_CLOSED */
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        if (err == JZX_OK) {
            err = workers[i].err;
        }
    }
    if (err != JZX_OK) {
        fprintf(stderr, "threads: %s\n", jzx_strerror(err));
    } else {
        printf("%" PRIu64 " numbers from %d threads, %" PRIu64 " out of order\n", sum.total,
               THREADS, sum.out_of_order);
    }
    return err == JZX_OK && sum.out_of_order == 0 ? 0 : 1;
}
