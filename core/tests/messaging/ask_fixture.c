#define _GNU_SOURCE
#include "ask_fixture.h"

static void party_handle_request(jzx_context *ctx, const jzx_message *msg, party *self)
{
    jzx_send_opts ten_more = {.u64 = msg->u64 + 10, .tag = msg->tag, .flags = JZX_SEND_VALUE};
    jzx_request request = 0;
    switch (self->how) {
    case ANSWER:
        CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64 + 1, msg->tag));
        break;
    case KEEP:
    case KEEP_AND_ANSWER:
        request = jzx_request_keep(ctx);
        REQUIRE(request != 0 && self->kept_len < KEPT_MAX);
        CHECK_EQ(jzx_request_keep(ctx), request);
        CHECK_EQ(jzx_is_ask(ctx), 1);
        self->kept[self->kept_len++] = request;
        if (self->how == KEEP_AND_ANSWER) {
            CHECK_OK(jzx_reply_u64(ctx, request, msg->u64 + 1, msg->tag));
        }
        break;
    case DROP:
        CHECK_OK(jzx_request_drop(ctx, JZX_REQUEST_IN_HAND));
        break;
    case DISCARD:
        CHECK_OK(jzx_discard(ctx));
        break;
    case STASH:
        CHECK_OK(jzx_stash(ctx));
        break;
    case FORWARD:
        CHECK_OK(jzx_forward(ctx, self->next->me.id));
        break;
    case DELEGATE:
        CHECK_OK(jzx_delegate(ctx, JZX_REQUEST_IN_HAND, self->next->me.id, &ten_more));
        break;
    default:
        break;
    }
}

jzx_behavior_result party_finish(jzx_context *ctx, party *self)
{
    static const uint32_t orders[FINISHES] = {[FAIL] = T_FAIL,
                                              [PANIC] = T_PANIC,
                                              [STOP] = T_STOP,
                                              [SELF_STOP] = T_SELF_STOP,
                                              [SELF_KILL] = T_SELF_KILL};
    uint32_t order = orders[self->end];
    if (self->once) {
        self->how = ANSWER;
        self->end = RETURN;
        self->then = NULL;
    }
    return order == 0 ? JZX_BEHAVIOR_OK : puppet_obey(ctx, order, &self->me);
}

jzx_behavior_result party_hear(jzx_context *ctx, const jzx_message *msg)
{
    party *self = ctx->state;
    const jzx_reply *reply = jzx_reply_of(ctx);
    REQUIRE(reply != NULL && msg->kind == JZX_KIND_REPLY);
    CHECK_EQ(jzx_is_ask(ctx), 0);
    CHECK_EQ(jzx_ask_cancel(ctx->loop, reply->ask), JZX_ERR_NO_SUCH_REF); /* it is over */
    const char *name = jzx_outcome_name(reply->outcome);
    if (reply->outcome == JZX_OUTCOME_REPLIED) {
        say("%s<%s %d>", self->me.name, name, (int)msg->u64);
        CHECK(msg->tag < JZX_TAG_SYSTEM_FIRST);
        CHECK_EQ(msg->sender, reply->callee);
    } else {
        CHECK_EQ(msg->tag, JZX_TAG_ASK_FAILED);
        CHECK(msg->data == reply);
    }
    if (reply->outcome == JZX_OUTCOME_CALLEE_DIED ||
        reply->outcome == JZX_OUTCOME_CALLEE_RESTARTED) {
        say("%s<%s: %s>", self->me.name, name, reason_text(&reply->reason));
    } else {
        CHECK_EQ(reply->reason.kind, JZX_REASON_NORMAL);
        CHECK_EQ(reply->reason.code, 0);
        CHECK_EQ(reply->reason.from, JZX_NOBODY);
        CHECK_STR(reply->reason.text, "");
        if (reply->outcome != JZX_OUTCOME_REPLIED) {
            say("%s<%s>", self->me.name, name);
        }
    }
    self->heard++;
    self->reply = *reply;
    self->msg = *msg;
    return JZX_BEHAVIOR_OK;
}

jzx_behavior_result party_behavior(jzx_context *ctx, const jzx_message *msg)
{
    party *self = ctx->state;
    CHECK(self->me.up);
    if (msg->kind == JZX_KIND_REPLY) {
        return party_hear(ctx, msg);
    }
    CHECK(jzx_reply_of(ctx) == NULL);
    if (!jzx_is_ask(ctx)) {
        return puppet_behavior(ctx, msg);
    }
    self->me.msg = msg;
    self->asked++;
    say("%s?%d", self->me.name, (int)msg->u64);
    party_handle_request(ctx, msg, self);
    if (self->then != NULL) {
        self->then(ctx, self);
    }
    return party_finish(ctx, self);
}

void party_name(party *self, const char *name)
{
    *self = (party){0};
    puppet_name(&self->me, name);
    self->me.mute = true;
}

void party_spawn_with(jzx_loop *loop, party *self)
{
    jzx_spawn_opts opts = self->opts;
    jzx_spawn_opts base = puppet_opts(&self->me);
    opts.behavior = party_behavior;
    opts.state = base.state;
    opts.name = base.name;
    opts.init = base.init;
    opts.deinit = base.deinit;
    opts.on_signal = base.on_signal;
    puppet_spawn_with(loop, &self->me, &opts);
}

static void trio_begin(jzx_context *ctx, puppet *self, uint32_t what)
{
    trio *t = self->arg;
    if (what == IN_INIT) {
        if (t->policy != NULL) {
            REQUIRE_OK(jzx_set_child_policy(ctx, t->policy));
        }
        party_spawn_with(ctx->loop, &t->a);
        party_spawn_with(ctx->loop, &t->b);
        party_spawn_with(ctx->loop, &t->c);
    }
}

void trio_open(trio *t, const jzx_config *config, const jzx_supervisor_spec *policy)
{
    play_open(&t->r, config);
    party_name(&t->a, "a");
    party_name(&t->b, "b");
    party_name(&t->c, "c");
    t->b.next = &t->c;
    t->policy = policy;
    puppet_name(&t->p, "p");
    t->p.mute = true;
    t->p.arg = t;
    t->p.during = trio_begin;
}

trio *the_trio;

void trio_start(trio *t)
{
    the_trio = t;
    jzx_spawn_opts parent = puppet_opts(&t->p);
    puppet_spawn_with(t->r.loop, &t->p, &parent);
    rig_idle(&t->r);
    t->a.to = t->b.me.id;
    t->a.ask =
        (jzx_ask_opts){.u64 = 1, .tag = ASK_TAG, .flags = JZX_SEND_VALUE, .failure = &t->a.failure};
    said_clear();
}

void trio_make(trio *t)
{
    trio_open(t, NULL, NULL);
    trio_start(t);
}

void trio_close(trio *t)
{
    play_close(&t->r);
}

void party_ask(jzx_context *ctx, puppet *me)
{
    party *self = (party *)me;
    self->err = jzx_ask(ctx->loop, self->to, &self->ask, &self->ref);
}

void trio_ask(trio *t)
{
    inside(&t->r, &t->a.me, party_ask);
}

void within(trio *t, party *who, void (*call)(jzx_context *ctx, puppet *self))
{
    inside(&t->r, &who->me, call);
}
