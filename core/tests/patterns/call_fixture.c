#define _GNU_SOURCE
#include "call_fixture.h"

uint64_t data_drops; /* of all strings, by whatever hook */

void drop_string(void *data)
{
    data_drops++;
    free(data);
}

void drop_string_msg(const jzx_message *msg)
{
    drop_string(msg->data);
}

char *new_string(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    REQUIRE(copy != NULL);
    return strcpy(copy, text);
}

static void service_note(service *self, jzx_loop *loop, const jzx_message *msg)
{
    seen *it = &self->seen[self->count % SEEN_MAX];
    *it = (seen){.msg = *msg, .at_ns = jzx_loop_now(loop)};
    if ((msg->flags & JZX_MSG_VALUE) == 0 && msg->data != NULL) {
        size_t len = msg->len < sizeof it->bytes ? msg->len : sizeof it->bytes;
        memcpy(it->bytes, msg->data, len);
    }
    self->count++;
}

static void service_later(jzx_context *ctx, const service *self, uint64_t request)
{
    jzx_timer_opts timer = {
        .delay_ms = self->late_ms, .u64 = request, .tag = LATE_NOW, .flags = JZX_TIMER_VALUE};
    jzx_err err =
        request == 0 ? JZX_ERR_NO_MEMORY : jzx_timer_start(ctx->loop, ctx->self, &timer, NULL);
    (void)err; /* in a sweep there may be none: then it is silent */
}

const char big[300] = "copied";

/* A string that is the caller's from now on, with drop or without. */
static void service_give(jzx_context *ctx, jzx_request request, uint32_t tag, bool drops)
{
    jzx_send_opts opts = {.data = new_string("given"),
                          .len = 6,
                          .tag = tag,
                          .drop = drops ? drop_string : NULL,
                          .flags = drops ? JZX_SEND_CONSUME : 0};
    jzx_err err = jzx_reply_with(ctx, request, &opts);
    if (err != JZX_OK && !drops) {
        drop_string(opts.data);
    }
}

static jzx_behavior_result service_act(jzx_context *ctx, const jzx_message *msg, act what)
{
    const jzx_request here = JZX_REQUEST_IN_HAND;
    uint32_t tag = msg->tag + 100;
    switch (what) {
    case ANSWER:
        (void)jzx_reply_u64(ctx, here, msg->u64 + 1, tag);
        break;
    case COPY:
        (void)jzx_reply_copy(ctx, here, big, sizeof big, tag);
        break;
    case DATA:
    case RAW:
        service_give(ctx, here, tag, what == DATA);
        break;
    case BAD:
        (void)jzx_reply_u64(ctx, here, 13, BAD_TAG);
        break;
    case LATE:
        service_later(ctx, ctx->state, jzx_request_keep(ctx));
        break;
    case SILENT:
        (void)jzx_request_keep(ctx);
        break;
    case FORGET:
        break;
    case FAIL:
        return jzx_fail(ctx, 5, "as the script says");
    case STOP:
        return JZX_BEHAVIOR_STOP;
    }
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result service_behavior(jzx_context *ctx, const jzx_message *msg)
{
    service *self = ctx->state;
    if (msg->kind == JZX_KIND_TIMER && msg->tag == LATE_NOW) {
        if (self->late_as == ANSWER) {
            (void)jzx_reply_u64(ctx, msg->u64, 7, 107);
        } else {
            service_give(ctx, msg->u64, 107, self->late_as == DATA);
        }
        return JZX_BEHAVIOR_OK;
    }
    if (msg->kind != JZX_KIND_USER) {
        return JZX_BEHAVIOR_OK;
    }
    if (!jzx_is_ask(ctx)) {
        self->plain++;
        service_note(self, ctx->loop, msg);
        return JZX_BEHAVIOR_OK;
    }
    act what = self->count < self->script_len ? self->script[self->count] : self->then;
    service_note(self, ctx->loop, msg);
    jzx_behavior_result result = service_act(ctx, msg, what);
    bool owned = (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) == 0 && msg->drop == NULL;
    if (owned && msg->data != NULL) {
        drop_string(msg->data);
    }
    return result;
}

service *service_start(rig *r, act then, const jzx_spawn_opts *given)
{
    service *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    self->then = then;
    jzx_spawn_opts opts = given == NULL ? (jzx_spawn_opts){0} : *given;
    opts.behavior = service_behavior;
    opts.state = self;
    opts.drop_msg = drop_string_msg;
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &self->id));
    return self;
}

jzx_actor_id start_supervised(rig *r, const jzx_child_spec *spec, jzx_actor_id *out_supervisor)
{
    jzx_supervisor_spec rules = {.intensity = 1000};
    jzx_supervisor_init init = {.spec = &rules, .children = spec, .child_count = 1};
    REQUIRE_OK(jzx_spawn_supervisor(r->loop, &init, out_supervisor));
    REQUIRE_OK(jzx_loop_run_until_idle(r->loop));
    jzx_child_info info = {0};
    REQUIRE_EQ(jzx_supervisor_children(r->loop, *out_supervisor, &info, 1), 1);
    return info.actor;
}

service *service_start_supervised(rig *r, act then)
{
    service *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    self->then = then;
    jzx_child_spec spec = {.id = "service",
                           .behavior = service_behavior,
                           .arg = self,
                           .drop_msg = drop_string_msg,
                           .flags = JZX_SPAWN_STATELESS};
    self->id = start_supervised(r, &spec, &self->supervisor);
    return self;
}

void service_script(service *self, const act *script, size_t len)
{
    REQUIRE(len <= SCRIPT_MAX);
    memcpy(self->script, script, len * sizeof *script);
    self->script_len = len;
    self->count = 0;
}

static void client_hear(client *self, jzx_context *ctx, const jzx_message *msg)
{
    const jzx_reply *reply = jzx_reply_of(ctx);
    REQUIRE(reply != NULL && self->count < ANSWERS_MAX);
    if (msg->tag == JZX_TAG_BREAKER_FACTS) {
        REQUIRE_EQ(msg->len, sizeof self->breaker);
        memcpy(&self->breaker, msg->data, sizeof self->breaker);
        return;
    }
    if (msg->tag == JZX_TAG_RETRY_FACTS) {
        REQUIRE_EQ(msg->len, sizeof self->retry);
        memcpy(&self->retry, msg->data, sizeof self->retry);
        return;
    }
    answer *it = &self->got[self->count++];
    *it = (answer){.order = (uint64_t)(uintptr_t)reply->arg,
                   .outcome = reply->outcome,
                   .tag = msg->tag,
                   .flags = msg->flags,
                   .at_ns = jzx_loop_now(ctx->loop)};
    it->failed = jzx_call_failed(msg, &it->failure) != 0;
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        it->u64 = msg->u64;
    } else if (!it->failed && msg->data != NULL) {
        memcpy(it->bytes, msg->data, msg->len < sizeof it->bytes ? msg->len : sizeof it->bytes);
        if ((msg->flags & JZX_MSG_COPY) == 0 && msg->drop == NULL) {
            drop_string(msg->data);
        }
    }
}

jzx_behavior_result client_behavior(jzx_context *ctx, const jzx_message *msg)
{
    client *self = ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        client_hear(self, ctx, msg);
    } else if (msg->kind != JZX_KIND_USER) {
        return JZX_BEHAVIOR_OK;
    } else if (msg->tag == ASK_NOW) {
        uint64_t i = msg->u64;
        self->errs[i] = jzx_ask(ctx->loop, self->to[i], &self->orders[i], &self->refs[i]);
    } else if (msg->tag == CANCEL_NOW) {
        CHECK_OK(jzx_ask_cancel(ctx->loop, self->refs[msg->u64]));
    } else if (msg->tag == STOP_NOW) {
        return JZX_BEHAVIOR_STOP;
    } else if (msg->tag == JZX_TAG_BREAKER_STATE) {
        REQUIRE(self->change_count < COUNT_OF(self->changes));
        self->changes[self->change_count++] = (uint32_t)msg->u64;
    }
    return JZX_BEHAVIOR_OK;
}

client *client_start(rig *r)
{
    client *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    jzx_spawn_opts opts = {.behavior = client_behavior, .state = self, .drop_msg = drop_string_msg};
    REQUIRE_OK(jzx_spawn(r->loop, &opts, &self->id));
    return self;
}

uint64_t call_with(rig *r, client *c, jzx_actor_id to, const jzx_ask_opts *opts)
{
    REQUIRE(c->asked < ANSWERS_MAX);
    uint64_t i = c->asked++;
    c->orders[i] = *opts;
    c->orders[i].arg = (void *)(uintptr_t)i;
    c->to[i] = to;
    REQUIRE_OK(jzx_send_u64(r->loop, c->id, i, ASK_NOW));
    return i;
}

uint64_t call(rig *r, client *c, jzx_actor_id to, uint32_t tag)
{
    jzx_ask_opts opts = {.u64 = tag, .tag = tag, .flags = JZX_SEND_VALUE, .timeout_ms = 60000};
    return call_with(r, c, to, &opts);
}

void call_and_run(rig *r, client *c, jzx_actor_id to, uint32_t tag)
{
    (void)call(r, c, to, tag);
    run_ms(r, 2);
}

const answer *answer_to(const client *c, uint64_t which)
{
    const answer *found = NULL;
    size_t answers = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->got[i].order == which) {
            found = &c->got[i];
            answers++;
        }
    }
    REQUIRE_EQ(answers, 1);
    return found;
}

void check_good_at(int line, const client *c, uint64_t which, uint64_t value)
{
    const answer *it = answer_to(c, which);
    jzt_check_eq(JZT_CHECK, __FILE__, line, "failed", "no", it->failed, 0);
    jzt_check_eq(JZT_CHECK, __FILE__, line, "value", "as expected", (intmax_t)it->u64,
                 (intmax_t)value);
}

void check_failed_at(int line, const client *c, uint64_t which, jzx_err err, uint32_t outcome,
                     uint32_t attempts)
{
    const answer *it = answer_to(c, which);
    jzt_check_eq(JZT_CHECK, __FILE__, line, "failed", "yes", it->failed, 1);
    jzt_check_eq(JZT_CHECK, __FILE__, line, "err", "as expected", it->failure.err, err);
    jzt_check_eq(JZT_CHECK, __FILE__, line, "outcome", "as expected", it->failure.outcome, outcome);
    jzt_check_eq(JZT_CHECK, __FILE__, line, "attempts", "as expected", it->failure.attempts,
                 attempts);
}

const jzx_breaker_facts *breaker_facts(rig *r, client *c, jzx_actor_id breaker)
{
    (void)call_with(r, c, breaker, &(jzx_ask_opts){.tag = JZX_TAG_BREAKER_FACTS});
    run_ms(r, 1);
    const jzx_breaker_facts *f = &c->breaker;
    CHECK_EQ(f->calls,
             f->successes + f->failures + f->short_circuited + f->busy + f->errors + f->in_flight);
    return f;
}

const jzx_retry_facts *retry_facts(rig *r, client *c, jzx_actor_id retry)
{
    (void)call_with(r, c, retry, &(jzx_ask_opts){.tag = JZX_TAG_RETRY_FACTS});
    run_ms(r, 1);
    const jzx_retry_facts *f = &c->retry;
    CHECK_EQ(f->calls, f->successes + f->failures + f->refused + f->in_flight);
    return f;
}

jzx_actor_id breaker_start(rig *r, const jzx_breaker_opts *opts)
{
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_breaker_spawn(r->loop, opts, &id));
    return id;
}

jzx_actor_id retry_start(rig *r, const jzx_retry_opts *opts)
{
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_retry_spawn(r->loop, opts, &id));
    return id;
}

int is_bad(void *arg, const jzx_message *reply)
{
    (void)arg;
    return reply->tag == BAD_TAG;
}

static jzx_behavior_result walk(jzx_context *ctx, const jzx_message *msg)
{
    walker *self = ctx->state;
    jzx_call_failure failure;
    if (msg->kind == JZX_KIND_REPLY) {
        if (!jzx_call_failed(msg, &failure)) {
            self->good++;
        } else if (failure.err == JZX_ERR_CIRCUIT_OPEN) {
            self->refused++;
        } else {
            self->bad++;
        }
    }
    jzx_err err;
    if (self->left == 0) {
        err = jzx_send_u64(ctx->loop, self->collector, 1, 1);
        return err == JZX_OK ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
    }
    self->left--;
    jzx_ask_opts opts = {.u64 = self->left, .tag = 3, .flags = JZX_SEND_VALUE};
    err = jzx_ask(ctx->loop, self->door, &opts, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result serve_two_of_three(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *served = ctx->state;
    if (jzx_is_ask(ctx) && ++*served % 3 != 0) {
        (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64, 4);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result collect(jzx_context *ctx, const jzx_message *msg)
{
    uint32_t *waiting = ctx->state;
    if (msg->kind == JZX_KIND_USER && --*waiting == 0) {
        jzx_loop_request_stop(ctx->loop);
    }
    return JZX_BEHAVIOR_OK;
}

void crowd_open(crowd *c)
{
    *c = (crowd){.waiting = CROWD};
    jzx_kit_opts opts = {.env = jzx_env_epoll()};
    jzx_spawn_opts serves = {.behavior = serve_two_of_three, .state = &c->served};
    jzx_spawn_opts collects = {.behavior = collect, .state = &c->waiting};
    REQUIRE_OK(jzx_kit_open(&opts, &c->kit));
    REQUIRE_OK(jzx_spawn(c->kit->loop, &serves, &c->service));
    REQUIRE_OK(jzx_spawn(c->kit->loop, &collects, &c->collector));
}

void crowd_run(crowd *c, jzx_actor_id door)
{
    for (size_t i = 0; i < CROWD; i++) {
        jzx_actor_id id = JZX_NOBODY;
        jzx_spawn_opts walks = {.behavior = walk, .state = &c->walkers[i]};
        c->walkers[i] = (walker){.door = door, .left = EACH, .collector = c->collector};
        REQUIRE_OK(jzx_spawn(c->kit->loop, &walks, &id));
        REQUIRE_OK(jzx_send_u64(c->kit->loop, id, 0, 1));
    }
    REQUIRE_OK(jzx_loop_run(c->kit->loop));
    for (size_t i = 0; i < CROWD; i++) {
        const walker *it = &c->walkers[i];
        CHECK_EQ(it->good + it->bad + it->refused, EACH);
        c->good += it->good;
        c->bad += it->bad;
        c->refused += it->refused;
    }
}

void crowd_close(crowd *c)
{
    const char *wrong = jzx_kit_close(c->kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}
