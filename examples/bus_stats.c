/* Who reads what is published, and who falls behind? A slow reader subscribes for ten events and
 * looks at only some of them; the counters of the bus and of each subscription tell where every
 * event went, and add up. Events are published by name, from the oldest kept on. Run: ./bus_stats
 */
#include <jzx/bus.h>
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

enum { TEMPERATURE = 1, PRESSURE = 2, KEEP = 8 };

typedef struct reader {
    jzx_bus *bus;
    jzx_sub_ref sub;
} reader;

static int only_warm(void *arg, const jzx_message *msg)
{
    (void)arg;
    return msg->u64 >= 20;
}

static jzx_behavior_result subscribe(jzx_context *ctx, void *arg)
{
    reader *me = ctx->state = arg;
    jzx_sub_opts opts = {.flags = JZX_SUB_FROM_OLDEST, .filter = only_warm};
    jzx_err err = jzx_bus_subscribe(ctx->loop, me->bus, "weather/*", &opts, &me->sub);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result read_event(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->kind == JZX_KIND_EVENT) {
        printf("reader: %s %" PRIu64 "\n", jzx_bus_event_of(ctx)->topic_name, msg->u64);
    } else if (msg->tag == JZX_TAG_LAGGED) {
        printf("reader: missed %" PRIu64 "\n", ((const jzx_lag_notice *)msg->data)->lost);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_err measure(jzx_bus *bus, uint64_t from, uint64_t to)
{
    jzx_err err = JZX_OK;
    for (uint64_t degrees = from; degrees <= to && err == JZX_OK; degrees++) {
        jzx_send_opts event = {.u64 = degrees, .tag = TEMPERATURE, .flags = JZX_SEND_VALUE};
        err = jzx_bus_publish_to(bus, "weather/temperature", &event);
    }
    return err;
}

int main(void)
{
    jzx_loop *loop = NULL;
    jzx_bus *bus = NULL;
    jzx_topic topic = 0;
    jzx_bus_opts small = {.keep = KEEP};
    jzx_bus_counts all;
    jzx_sub_counts one;
    if (jzx_loop_create(NULL, &loop) != JZX_OK || jzx_bus_create(loop, &small, &bus) != JZX_OK) {
        return 1;
    }
    reader me = {.bus = jzx_bus_retain(bus)}; /* the reader has a share of its own */
    jzx_spawn_opts opts = {.behavior = read_event, .init = subscribe, .state = &me};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    if ((err = jzx_bus_topic(bus, "weather/temperature", NULL, &topic)) != JZX_OK ||
        (err = measure(bus, 18, 21)) != JZX_OK || /* before anybody listens: kept */
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = measure(bus, 10, 29)) != JZX_OK || /* more than is kept, while nobody reads */
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_bus_sub_stats(loop, id, me.sub, &one)) != JZX_OK ||
        (err = jzx_bus_stats(bus, &all)) != JZX_OK) {
        fprintf(stderr, "bus_stats: %s\n", jzx_strerror(err));
        return 1;
    }
    printf("subscription: %" PRIu64 " published = %" PRIu64 " delivered + %" PRIu64
           " filtered + %" PRIu64 " lagged + %" PRIu64 " pending\n",
           one.published, one.delivered, one.filtered, one.lagged, one.pending);
    printf("bus: %" PRIu64 " events, %" PRIu64 " kept, %" PRIu64 " topic\n", all.published,
           all.kept, all.topics);
    jzx_loop_destroy(loop);
    jzx_bus_release(me.bus);
    jzx_bus_release(bus);
    return one.published == one.delivered + one.filtered + one.lagged + one.pending ? 0 : 1;
}
