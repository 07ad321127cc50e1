/* A device whose library blocks. Its actor has a thread of its own ("pinned"), so nobody waits for
 * it but those who asked; its supervisor and the client run on "loop". When the line breaks, the
 * actor fails and is restarted there: its id stays, and the question comes again. Run: ./pinned */
#define _POSIX_C_SOURCE 200809L
#include <jzx/jzx.h>
#include <jzx/system.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { ASK = 1, READING = 2, BEAT = 3, READINGS = 4 };

/* Somebody else's library: every call takes its time, and the first line breaks at the third. */
typedef struct device {
    uint32_t line;
    uint32_t calls;
} device;

static int device_read(device *dev, uint64_t which, uint64_t *out)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    *out = which * 11;
    return ++dev->calls == 3 && dev->line == 1 ? -1 : 0;
}

static jzx_behavior_result open_device(jzx_context *ctx, void *arg)
{
    device *dev = ctx->state = arg;
    *dev = (device){.line = jzx_actor_incarnation(ctx->loop, ctx->self)};
    printf("line %" PRIu32 " is open\n", dev->line);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result driver(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t value = 0;
    if (device_read(ctx->state, msg->u64, &value) != 0) {
        return jzx_fail(ctx, 5, "the line is broken");
    }
    jzx_err err = jzx_send_u64(ctx->loop, msg->sender, value, READING);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

typedef struct client {
    jzx_child_info driver;
    uint64_t next;
    uint64_t beats; /* while it waited */
} client;

static jzx_behavior_result start_client(jzx_context *ctx, void *arg)
{
    client *me = ctx->state = arg;
    jzx_actor_id app = jzx_actor_parent(ctx->loop, ctx->self);
    jzx_timer_opts every = {.delay_ms = 2, .period_ms = 2, .tag = BEAT};
    jzx_err err;
    if ((err = jzx_supervisor_child(ctx->loop, app, "driver", &me->driver)) != JZX_OK ||
        (err = jzx_timer_start(ctx->loop, ctx->self, &every, NULL)) != JZX_OK ||
        (err = jzx_send_u64(ctx->loop, me->driver.actor, me->next, ASK)) != JZX_OK) {
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result use_device(jzx_context *ctx, const jzx_message *msg)
{
    client *me = ctx->state;
    me->beats += msg->tag == BEAT;
    if (msg->tag == READING) {
        printf("reading %" PRIu64 ": %" PRIu64 "\n", me->next, msg->u64);
        if (me->next++ == READINGS) {
            return JZX_BEHAVIOR_STOP; /* it is significant: its supervisor ends with it */
        }
        jzx_err err = jzx_send_u64(ctx->loop, me->driver.actor, me->next, ASK);
        return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
    }
    return JZX_BEHAVIOR_OK;
}

int main(void)
{
    device dev = {0};
    client user = {.next = 1};
    jzx_supervisor_spec spec = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    jzx_child_spec children[] = {
        {"driver", driver, open_device, &dev, .flags = JZX_SPAWN_REDELIVER, .dispatcher = "pinned"},
        {"client", use_device, start_client, &user, .mode = JZX_TRANSIENT, .significant = 1}};
    jzx_supervisor_init app = {
        .name = "app", .spec = &spec, .children = children, .child_count = 2};
    jzx_system *system = NULL;
    jzx_err err;
    if ((err = jzx_system_create(NULL, &system)) != JZX_OK ||
        (err = jzx_spawn_supervisor(jzx_system_loop(system), &app, NULL)) != JZX_OK ||
        (err = jzx_system_run(system)) != JZX_OK) {
        fprintf(stderr, "pinned: %s\n", jzx_strerror(err));
    }
    jzx_system_destroy(system);
    printf("the loop was free meanwhile: %s\n", user.beats >= 10 ? "yes" : "no");
    return err == JZX_OK ? 0 : 1;
}
