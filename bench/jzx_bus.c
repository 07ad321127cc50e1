/* Publishing to 1, 10 and 1,000 subscribers of one loop. The other side does it by hand: a loop of
 * sends of a payload that counts its references. */
#include "bench.h"
#include "sides.h"

#include <jzx/bus.h>
#include <jzx/jzx.h>

#include <stdatomic.h>
#include <stdlib.h>

enum { TAG_GO = 1, TAG_EVENT = 2, BURST = 16, SUBS_MAX = 1000, BUDGET_US = 100000 };

/* What both sides share: the publisher, the listeners, and how much is left. */
typedef struct fair {
    jzx_bus *bus; /* NULL: by hand */
    jzx_topic topic;
    uint32_t subs;
    jzx_actor_id ids[SUBS_MAX];
    uint64_t left;  /* to be published */
    uint64_t heard; /* deliveries so far */
    uint64_t wanted;
} fair;

typedef struct parcel {
    _Atomic uint32_t refs;
    uint64_t value;
} parcel;

static void drop_parcel(void *data)
{
    parcel *p = data;
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) {
        free(p);
    }
}

static parcel *make_parcel(uint32_t refs)
{
    parcel *p = bench_alloc(1, sizeof *p);
    atomic_init(&p->refs, refs);
    p->value = 1;
    return p;
}

static void send_by_hand(jzx_loop *loop, const fair *all)
{
    jzx_send_opts opts = {.data = make_parcel(all->subs),
                          .len = sizeof(parcel),
                          .drop = drop_parcel,
                          .tag = TAG_EVENT};
    for (uint32_t i = 0; i < all->subs; i++) {
        bench_check(jzx_send_with(loop, all->ids[i], &opts), "send");
    }
}

static jzx_behavior_result publish(jzx_context *ctx, const jzx_message *msg)
{
    fair *all = ctx->state;
    (void)msg;
    /* No more than two bursts are under way, so no subscriber is full and none lags. */
    bool soon = all->wanted - all->left * all->subs > all->heard + (uint64_t)BURST * all->subs;
    for (uint32_t i = 0; i < BURST && all->left > 0 && !soon; i++) {
        if (all->bus == NULL) {
            send_by_hand(ctx->loop, all);
        } else {
            bench_check(jzx_bus_publish(all->bus, all->topic, make_parcel(1), sizeof(parcel),
                                        drop_parcel, TAG_EVENT),
                        "publish");
        }
        all->left--;
    }
    if (all->left > 0) {
        bench_check(jzx_send_u64(ctx->loop, ctx->self, 0, TAG_GO), "send");
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result listen(jzx_context *ctx, const jzx_message *msg)
{
    fair *all = ctx->state;
    if (msg->tag == TAG_GO) {
        jzx_sub_ref ref = 0;
        if (all->bus != NULL) {
            bench_check(jzx_bus_subscribe(ctx->loop, all->bus, "fair", NULL, &ref), "subscribe");
        }
        return JZX_BEHAVIOR_OK;
    }
    all->heard += ((const parcel *)msg->data)->value;
    if (all->heard == all->wanted) {
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

static void fan_out(const bench_run *run, uint32_t subs, bool by_hand, bench_sample *out)
{
    static fair all;
    jzx_loop *loop = bench_loop_open_with(BUDGET_US, BUDGET_US); /* a burst is a long turn */
    all = (fair){.subs = subs, .left = run->ops / subs, .wanted = run->ops / subs * subs};
    if (!by_hand) {
        bench_check(jzx_bus_create(loop, NULL, &all.bus), "bus");
        bench_check(jzx_bus_topic(all.bus, "fair", NULL, &all.topic), "topic");
    }
    jzx_spawn_opts opts = {.behavior = listen, .state = &all};
    for (uint32_t i = 0; i < subs; i++) {
        bench_check(jzx_spawn(loop, &opts, &all.ids[i]), "spawn");
        bench_check(jzx_send_u64(loop, all.ids[i], 0, TAG_GO), "send");
    }
    bench_check(jzx_loop_run_until_idle(loop), "run");
    jzx_actor_id publisher = JZX_NOBODY;
    opts.behavior = publish;
    opts.max_msgs = 1; /* all subscribers hear a burst before the next one */
    bench_check(jzx_spawn(loop, &opts, &publisher), "spawn");
    bench_check(jzx_send_u64(loop, publisher, 0, TAG_GO), "send");
    bench_watch watch = bench_start();
    bench_check(jzx_loop_run(loop), "run");
    bench_stop(watch, all.wanted, out);
    jzx_bus_release(all.bus);
    bench_check(jzx_loop_destroy(loop), "destroy");
}

void bench_raw_bus1(const bench_run *run, bench_sample *out)
{
    fan_out(run, 1, true, out);
}
void bench_jzx_bus1(const bench_run *run, bench_sample *out)
{
    fan_out(run, 1, false, out);
}
void bench_raw_bus10(const bench_run *run, bench_sample *out)
{
    fan_out(run, 10, true, out);
}
void bench_jzx_bus10(const bench_run *run, bench_sample *out)
{
    fan_out(run, 10, false, out);
}
void bench_raw_bus1000(const bench_run *run, bench_sample *out)
{
    fan_out(run, SUBS_MAX, true, out);
}
void bench_jzx_bus1000(const bench_run *run, bench_sample *out)
{
    fan_out(run, SUBS_MAX, false, out);
}
