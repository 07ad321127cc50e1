#define _GNU_SOURCE
#include "bus_fixture.h"

static void hear_event(jzx_context *ctx, listener *self, const jzx_message *msg)
{
    const jzx_event *event = jzx_bus_event_of(ctx);
    REQUIRE(event != NULL);
    CHECK(jzx_message_take(ctx) == NULL);
    CHECK(jzx_message_signal(msg) == NULL);
    CHECK_EQ(event->publisher, msg->sender);
    if (self->count < EVENTS_MAX) {
        self->events[self->count++] =
            (heard){.seq = event->seq,
                    .value = (msg->flags & JZX_MSG_VALUE) != 0 ? msg->u64 : 0,
                    .sender = msg->sender,
                    .topic = event->topic,
                    .tag = msg->tag,
                    .sub = event->sub};
    }
    if (self->during != NULL) {
        self->during(ctx, self, msg);
    }
}

jzx_behavior_result hear_lag(jzx_context *ctx, const jzx_message *msg)
{
    listener *self = ((puppet *)ctx->state)->arg;
    CHECK_EQ(msg->kind, JZX_KIND_NOTICE);
    CHECK_EQ(msg->tag, JZX_TAG_LAGGED);
    CHECK_EQ(msg->len, sizeof(jzx_lag_notice));
    CHECK(jzx_bus_event_of(ctx) == NULL);
    if (self->lags < LAGS_MAX) {
        self->lag_at[self->lags] = self->count;
        self->lag[self->lags++] = *(const jzx_lag_notice *)msg->data;
    }
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result listener_on(jzx_context *ctx, const jzx_message *msg, puppet *subject_self)
{
    listener *self = subject_self->arg;
    if (msg->kind == JZX_KIND_EVENT) {
        hear_event(ctx, self, msg);
    } else if (msg->tag == JZX_TAG_LAGGED) {
        return hear_lag(ctx, msg);
    } else if (msg->tag == CALL) {
        const call *what = msg->data;
        what->fn(ctx, self, what->arg);
    } else if (msg->tag == FAIL) {
        return JZX_BEHAVIOR_FAIL;
    } else if (msg->tag == END) {
        return JZX_BEHAVIOR_STOP;
    }
    return JZX_BEHAVIOR_OK;
}

listener *listener_new(jzx_bus *bus)
{
    listener *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    self->bus = bus;
    self->self = puppet_new(listener_on);
    self->self->arg = self;
    return self;
}

listener *listener_start(rig *r, jzx_bus *bus, const jzx_spawn_opts *opts)
{
    listener *self = listener_new(bus);
    puppet_start_as(r, self->self, opts);
    return self;
}

void listener_free(listener *self)
{
    puppet_free(self->self);
    free(self);
}

void listener_order(rig *r, listener *self, call *what)
{
    REQUIRE_OK(jzx_send(r->loop, self->self->id, what, sizeof *what, CALL));
}

void listener_call(rig *r, listener *self, listener_fn fn, void *arg)
{
    call what = {fn, arg};
    listener_order(r, self, &what);
    rig_idle(r);
}

void do_subscribe(jzx_context *ctx, listener *self, void *arg)
{
    const wish *w = arg;
    jzx_sub_ref ref = 0;
    self->err = jzx_bus_subscribe(ctx->loop, self->bus, w->topic, w->opts, &ref);
    if (self->err == JZX_OK) {
        self->ref = ref;
    }
}

jzx_err try_subscribe(rig *r, listener *self, const char *topic, const jzx_sub_opts *opts)
{
    wish w = {topic, opts};
    listener_call(r, self, do_subscribe, &w);
    return self->err;
}

void subscribe(rig *r, listener *self, const char *topic, const jzx_sub_opts *opts)
{
    REQUIRE_OK(try_subscribe(r, self, topic, opts));
}

void do_unsubscribe(jzx_context *ctx, listener *self, void *arg)
{
    (void)arg;
    self->err = jzx_bus_unsubscribe(ctx->loop, self->ref);
}

void do_publish(jzx_context *ctx, listener *self, void *arg)
{
    const run *what = arg;
    (void)ctx;
    for (uint64_t i = 0; i < what->count; i++) {
        CHECK_OK(jzx_bus_publish_u64(self->bus, what->topic, what->first + i,
                                     (uint32_t)(what->first + i)));
    }
}

jzx_topic topic_of(jzx_bus *bus, const char *name)
{
    jzx_topic topic = 0;
    REQUIRE_OK(jzx_bus_topic(bus, name, NULL, &topic));
    REQUIRE(topic != 0);
    return topic;
}

void hall_open(hall *h, uint32_t keep)
{
    jzx_bus_opts opts = {.keep = keep};
    h->r = rig_open_fifo(NULL);
    REQUIRE_OK(jzx_bus_create(h->r.loop, &opts, &h->bus));
    h->t = topic_of(h->bus, "t");
    h->speaker = listener_start(&h->r, h->bus, NULL);
}

void hall_say(hall *h, jzx_topic topic, uint64_t first, uint64_t count)
{
    run what = {topic, first, count};
    listener_call(&h->r, h->speaker, do_publish, &what);
}

void shout(hall *h, jzx_topic topic, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        REQUIRE_OK(jzx_bus_publish_u64(h->bus, topic, first + i, (uint32_t)(first + i)));
    }
}

jzx_sub_counts sub_counts(hall *h, listener *self)
{
    jzx_sub_counts counts = {0};
    CHECK_OK(jzx_bus_sub_stats(h->r.loop, self->self->id, self->ref, &counts));
    CHECK_EQ(counts.published, counts.delivered + counts.filtered + counts.lagged + counts.pending);
    return counts;
}

jzx_bus_counts bus_counts(hall *h)
{
    jzx_bus_counts counts = {0};
    CHECK_OK(jzx_bus_stats(h->bus, &counts));
    return counts;
}

void check_values(int line, const listener *self, size_t from, uint64_t first, uint64_t count)
{
    jzt_check_eq(JZT_CHECK, __FILE__, line, "events heard", "count", (intmax_t)self->count,
                 (intmax_t)(from + count));
    for (uint64_t i = 0; i < count && from + i < self->count && jzt_failures() == 0; i++) {
        jzt_check_eq(JZT_CHECK, __FILE__, line, "value", "as published",
                     (intmax_t)self->events[from + i].value, (intmax_t)(first + i));
    }
}

void hall_free(hall *h, listener **all, size_t count)
{
    rig_close(&h->r);
    listener_free(h->speaker);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(all[i]->self->deinits, 1);
        listener_free(all[i]);
    }
}

void hall_close_bus_last(hall *h, listener **all, size_t count)
{
    REQUIRE_OK(jzx_loop_destroy(h->r.loop));
    h->r.kit->loop = NULL;
    CHECK_EQ(bus_counts(h).subscriptions, 0);
    jzx_bus_release(h->bus);
    hall_free(h, all, count);
}

void hall_close_bus_first(hall *h, listener **all, size_t count)
{
    jzx_bus_release(h->bus);
    hall_free(h, all, count);
}

void hall_close(hall *h, listener **all, size_t count)
{
    if ((jzt_seed() & 2) != 0) {
        hall_close_bus_first(h, all, count);
    } else {
        hall_close_bus_last(h, all, count);
    }
}
