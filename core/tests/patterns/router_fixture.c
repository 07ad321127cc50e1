#define _GNU_SOURCE
#include "router_fixture.h"

jzx_behavior_result hand_init(jzx_context *ctx, void *arg)
{
    hand *h = arg;
    jzx_actor_facts facts;
    h->holds = h->holds && h->id == ctx->self; /* the next one with this index is another one */
    h->id = ctx->self;
    h->starts++;
    if (h->c->all_len < ALL_MAX) {
        h->c->all[h->c->all_len++] = ctx->self;
    }
    ctx->state = h;
    if (jzx_actor_inspect(ctx->loop, ctx->self, &facts) != JZX_OK ||
        jzx_stash_set_cap(ctx, facts.mailbox_cap) != JZX_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    return JZX_BEHAVIOR_OK;
}

void hand_deinit(jzx_context *ctx)
{
    ((hand *)ctx->state)->ends++;
}

jzx_behavior_result hand_behavior(jzx_context *ctx, const jzx_message *msg)
{
    hand *h = ctx->state;
    bool current_one = h->id == ctx->self; /* else it is on its way out */
    if (msg->tag == GO) {                  /* as a timer it is never refused */
        h->holds = h->holds && !current_one;
        (void)jzx_unstash(ctx, JZX_UNSTASH_ALL);
        return JZX_BEHAVIOR_OK;
    }
    if (msg->kind != JZX_KIND_USER) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_actor_facts facts = {0};
    bool held = h->holds && current_one && (msg->flags & JZX_MSG_URGENT) == 0 &&
                jzx_actor_inspect(ctx->loop, ctx->self, &facts) == JZX_OK && !facts.stopping;
    if (held && jzx_stash(ctx) == JZX_OK) {
        return JZX_BEHAVIOR_OK;
    }
    uint64_t value = (msg->flags & JZX_MSG_VALUE) != 0               ? msg->u64
                     : msg->data != NULL && msg->len >= sizeof value ? *(const uint64_t *)msg->data
                                                                     : 0;
    h->got++;
    h->last = value;
    if (h->c->len < NOTES_MAX) {
        h->c->notes[h->c->len++] = (note){.hand = h->index,
                                          .tag = msg->tag,
                                          .value = value,
                                          .sender = msg->sender,
                                          .by = ctx->self};
    }
    switch (msg->tag) {
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case STOP:
        return JZX_BEHAVIOR_STOP;
    case ECHO:
        (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, value * 100 + h->index, ECHO);
        return JZX_BEHAVIOR_OK;
    case KEEP:
        h->c->kept = jzx_request_keep(ctx);
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

void crew_prepare(void *arg, uint32_t index, jzx_spawn_opts *worker)
{
    crew *c = arg;
    hand *h = &c->hands[index % HANDS_MAX];
    h->c = c;
    h->index = index;
    worker->state = h;
}

crew *crew_new(void)
{
    crew *c = calloc(1, sizeof *c);
    REQUIRE(c != NULL);
    for (uint32_t i = 0; i < HANDS_MAX; i++) {
        c->hands[i].c = c;
        c->hands[i].index = i;
    }
    return c;
}

const jzx_spawn_opts hand_opts = {
    .behavior = hand_behavior, .init = hand_init, .deinit = hand_deinit, .mailbox_cap = 4};

const jzx_supervisor_spec lenient = {.intensity = 1000};

jzx_router_opts crew_opts(crew *c, uint32_t strategy, uint32_t workers)
{
    return (jzx_router_opts){.strategy = strategy,
                             .worker = &hand_opts,
                             .restart = &lenient,
                             .prepare = crew_prepare,
                             .prepare_arg = c,
                             .workers = workers,
                             .mailbox_cap = 64};
}

jzx_actor_id crew_route(rig *r, const jzx_router_opts *opts)
{
    jzx_actor_id id = 0;
    REQUIRE_OK(jzx_router_spawn(r->loop, opts, &id));
    rig_idle(r);
    return id;
}

jzx_actor_id crew_start(rig *r, crew *c, uint32_t strategy, uint32_t workers)
{
    jzx_router_opts opts = crew_opts(c, strategy, workers);
    return crew_route(r, &opts);
}

void work(rig *r, jzx_actor_id to, uint64_t value)
{
    REQUIRE_OK(jzx_send_u64(r->loop, to, value, WORK));
}

void order(rig *r, const hand *h, uint32_t tag)
{
    REQUIRE_OK(try_urgent(r->loop, h->id, tag));
}

void let_go(rig *r, hand *h)
{
    order(r, h, GO);
    rig_idle(r);
}

uint64_t key_of(void *arg, const jzx_message *msg)
{
    return msg->u64 % *(const uint64_t *)arg;
}

uint64_t keys = 16;

jzx_router_opts hash_opts(crew *c, uint32_t workers, uint32_t overflow)
{
    jzx_router_opts opts = crew_opts(c, JZX_ROUTE_HASH, workers);
    opts.key = key_of;
    opts.key_arg = &keys;
    opts.overflow = overflow;
    return opts;
}

_Atomic uint32_t drops;

void count_drop(void *data)
{
    atomic_fetch_add(&drops, 1);
    free(data);
}

jzx_err send_owned(rig *r, jzx_actor_id to, uint64_t value, void (*drop)(void *))
{
    uint64_t *data = malloc(sizeof *data);
    REQUIRE(data != NULL);
    *data = value;
    jzx_send_opts opts = {.data = data, .len = sizeof *data, .tag = WORK, .drop = drop};
    jzx_err err = jzx_send_with(r->loop, to, &opts);
    if (err != JZX_OK) {
        free(data);
    }
    return err;
}

void drop_plain(const jzx_message *msg)
{
    count_drop(msg->data);
}

jzx_behavior_result asker_behavior(jzx_context *ctx, const jzx_message *msg)
{
    asker *a = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    if (msg->kind == JZX_KIND_USER && msg->tag == STOP) {
        return JZX_BEHAVIOR_STOP;
    }
    if (msg->kind == JZX_KIND_USER) {
        a->err = jzx_ask(ctx->loop, a->target, &a->opts, &a->ref);
    } else if (reply != NULL) {
        a->replies++;
        a->outcome = reply->outcome;
        a->callee = reply->callee;
        a->tag = msg->tag;
        a->value = (msg->flags & JZX_MSG_VALUE) != 0 ? msg->u64 : 0;
        if (msg->tag == JZX_TAG_ROUTER_FAILED && msg->len == sizeof a->failure) {
            memcpy(&a->failure, msg->data, sizeof a->failure);
        }
    }
    return JZX_BEHAVIOR_OK;
}

void asker_start(rig *r, asker *a, jzx_actor_id target, uint32_t tag, uint64_t value)
{
    *a = (asker){.target = target,
                 .opts = {.u64 = value, .tag = tag, .flags = JZX_SEND_VALUE, .timeout_ms = 1000}};
    jzx_spawn_opts opts = {.behavior = asker_behavior, .state = a};
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &a->id));
}

void ask_now(rig *r, asker *a)
{
    REQUIRE_OK(jzx_send_u64(r->loop, a->id, 0, WORK));
}

asker ask_once(rig *r, jzx_actor_id target, uint32_t tag, uint64_t value)
{
    asker a;
    asker_start(r, &a, target, tag, value);
    ask_now(r, &a);
    REQUIRE_OK(jzx_kit_settle(r->kit));
    REQUIRE_OK(jzx_send_u64(r->loop, a.id, 0, STOP));
    rig_idle(r);
    return a;
}

jzx_behavior_result stats_behavior(jzx_context *ctx, const jzx_message *msg)
{
    stats_reader *s = ctx->state;
    if (msg->tag == JZX_TAG_ROUTER_STATS && msg->data != NULL) {
        const jzx_router_stats *got = msg->data;
        s->stats = *got;
        for (uint32_t i = 0; i < got->workers && i < HANDS_MAX; i++) {
            s->workers[i] = *jzx_router_worker_at(got, i);
        }
        s->answers++;
        return JZX_BEHAVIOR_STOP;
    }
    CHECK_OK(jzx_router_get_stats(ctx->loop, s->router));
    return JZX_BEHAVIOR_OK;
}

stats_reader stats_of(rig *r, jzx_actor_id router)
{
    stats_reader s = {.router = router};
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = stats_behavior, .state = &s};
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &id));
    REQUIRE_OK(jzx_send_u64(r->loop, id, 0, WORK));
    rig_idle(r);
    CHECK_EQ(s.answers, 1);
    return s;
}

void check_all_once(const crew *c, uint64_t count)
{
    static uint32_t seen[NOTES_MAX];
    memset(seen, 0, sizeof seen);
    CHECK_EQ(c->len, count);
    for (size_t i = 0; i < c->len; i++) {
        REQUIRE(c->notes[i].value < NOTES_MAX);
        seen[c->notes[i].value]++;
    }
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(seen[i], 1);
    }
}

void check_rising(const crew *c)
{
    uint64_t last[HANDS_MAX] = {0};
    bool any[HANDS_MAX] = {0};
    for (size_t i = 0; i < c->len; i++) {
        const note *n = &c->notes[i];
        CHECK(!any[n->hand] || n->value > last[n->hand]);
        last[n->hand] = n->value;
        any[n->hand] = true;
    }
}
