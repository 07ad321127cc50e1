/* What a thread can do with a sender, besides sending: the handle outlives the loop, can be shared
 * and counted, and stops actors and cancels timers with the same verdicts as an actor gets. The
 * thread here is somebody else's: a driver that pushes frames and knows nothing of loops. Run:
 * ./sender */
#define _POSIX_C_SOURCE 200809L /* strdup() */
#include <jzx/jzx.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME = 1, TEXT = 2, ALARM = 3 };

typedef struct driver {
    jzx_sender *sender;
    jzx_actor_id screen, log, spare;
    jzx_timer_id alarm;
} driver;

static jzx_behavior_result show(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    printf("%s\n", (const char *)msg->data);
    if (msg->tag == FRAME) {
        free(msg->data); /* a bare pointer is the receiver's; a copy is the runtime's */
    }
    return JZX_BEHAVIOR_OK;
}

static void drop_frame(const jzx_message *msg) /* of one that died before it was seen */
{
    if (msg->tag == FRAME) {
        free(msg->data);
    }
}

static void *drive(void *arg)
{
    driver *d = arg;
    char *frame = strdup("a frame, given away");
    if (frame == NULL || jzx_send_async(d->sender, d->screen, frame, 0, FRAME) != JZX_OK) {
        free(frame); /* still ours */
    }
    if (jzx_send_async_copy(d->sender, d->log, "a line, copied", 15, TEXT) != JZX_OK) {
        return arg;
    }
    /* The screen shows what it has, the log ends after what is queued now, the spare at once. */
    jzx_err drained = jzx_sender_stop_drained(d->sender, d->screen);
    jzx_err stopped = jzx_sender_stop_drained(d->sender, d->log);
    jzx_err killed = jzx_sender_kill(d->sender, d->spare);
    jzx_err again = jzx_sender_stop(d->sender, d->spare);
    jzx_err alarm = jzx_sender_cancel_timer(d->sender, d->alarm);
    while (jzx_sender_actor_state(d->sender, d->screen) != JZX_STATE_TERMINATED ||
           jzx_sender_actor_state(d->sender, d->log) != JZX_STATE_TERMINATED) {
        (void)sched_yield();
    }
    printf("verdicts: %d %d %d; a stop after the kill: %s\n", drained, stopped, killed,
           again == JZX_OK || again == JZX_ERR_NO_SUCH_ACTOR ? "fine" : jzx_err_name(again));
    printf("the timer of an actor that ends: %s\n",
           alarm == JZX_OK || alarm == JZX_ERR_ALREADY ? "will not come" : jzx_err_name(alarm));
    jzx_sender_release(d->sender); /* the thread's own share */
    return NULL;
}

int main(void)
{
    driver d = {0};
    pthread_t thread;
    void *failed = NULL;
    jzx_spawn_opts opts = {.behavior = show, .drop_msg = drop_frame};
    jzx_loop *loop = NULL;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &d.screen)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &d.log)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &d.spare)) != JZX_OK ||
        (err = jzx_send_after(loop, d.spare, 60000, NULL, 0, ALARM, &d.alarm)) != JZX_OK ||
        (err = jzx_sender_open(loop, JZX_SENDER_SHARED, &d.sender)) != JZX_OK) {
        fprintf(stderr, "sender: %s\n", jzx_strerror(err));
        return 1;
    }
    jzx_sender *mine = jzx_sender_retain(d.sender); /* two owners now */
    if (pthread_create(&thread, NULL, drive, &d) != 0) {
        return 1;
    }
    err = jzx_loop_run(loop); /* until no actor is left */
    (void)pthread_join(thread, &failed);
    jzx_loop_destroy(loop);
    printf("after the loop: %s\n", jzx_err_name(jzx_send_async(mine, d.screen, NULL, 0, TEXT)));
    jzx_sender_release(mine);
    return err == JZX_OK && failed == NULL ? 0 : 1;
}
