#define _GNU_SOURCE
#include "desk.h"

parcel parcels[PARCELS];

void parcel_drop(void *data)
{
    ((parcel *)data)->drops++;
}

unsigned char parcel_byte(uint32_t tag, size_t i)
{
    return (unsigned char)(tag * 31 + i * 7);
}

jzx_send_opts parcel_opts(form what, uint32_t tag, size_t len)
{
    static unsigned char bytes[COPY_MAX];
    jzx_send_opts opts = {.tag = tag};
    switch (what) {
    case F_COPY:
        for (size_t i = 0; i < len; i++) {
            bytes[i] = parcel_byte(tag, i);
        }
        opts.data = bytes;
        opts.len = len;
        opts.flags = JZX_SEND_COPY;
        break;
    case F_DROP:
        opts.drop = parcel_drop;
        /* fall through */
    case F_BARE:
        opts.data = &parcels[tag];
        opts.len = len;
        break;
    default:
        opts.u64 = tag;
        opts.flags = JZX_SEND_VALUE;
    }
    return opts;
}

void parcel_check(const jzx_message *msg)
{
    CHECK_EQ(msg->kind, JZX_KIND_USER);
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        CHECK_EQ(msg->u64, msg->tag);
    } else if ((msg->flags & JZX_MSG_COPY) != 0) {
        const unsigned char *bytes = msg->data;
        for (size_t i = 0; i < msg->len; i++) {
            CHECK(bytes[i] == parcel_byte(msg->tag, i));
        }
    } else {
        CHECK(msg->data == &parcels[msg->tag]);
        CHECK_EQ(parcels[msg->tag].drops, 0);
    }
}

void say_error(const puppet *self, jzx_err err)
{
    say("%s!%s", self->name, jzx_err_name(err) + strlen("JZX_ERR_"));
}

void desk_stash(jzx_context *ctx, const jzx_message *msg)
{
    const puppet *self = ctx->state;
    jzx_err err = jzx_stash(ctx);
    if (err == JZX_OK) {
        say("%s~%x", self->name, (unsigned)msg->tag);
        parcel_check(msg); /* it can still be looked at */
    } else {
        say_error(self, err);
    }
}

static void desk_unstash(jzx_context *ctx, uint32_t count)
{
    jzx_err err = jzx_unstash(ctx, count);
    if (err != JZX_OK) {
        say_error(ctx->state, err);
    }
}

jzx_behavior_result desk_order(jzx_context *ctx, const jzx_message *msg)
{
    switch (msg->tag) {
    case S_SERVE:
        CHECK_OK(jzx_become(ctx, desk_open));
        desk_unstash(ctx, JZX_UNSTASH_ALL);
        break;
    case S_OPEN:
        CHECK_OK(jzx_become(ctx, desk_open));
        break;
    case S_CLOSE:
        CHECK_OK(jzx_become(ctx, desk_closed));
        break;
    case S_TWICE:
        desk_unstash(ctx, 1);
        desk_unstash(ctx, 1);
        break;
    default:
        if (msg->tag >= T_FAIL) {
            return puppet_obey(ctx, msg->tag, ctx->state);
        }
        desk_unstash(ctx, msg->tag - S_UNSTASH == S_ALL ? JZX_UNSTASH_ALL : msg->tag - S_UNSTASH);
    }
    return JZX_BEHAVIOR_OK;
}

bool desk_is_work(const jzx_message *msg)
{
    return msg->kind == JZX_KIND_USER && msg->tag < PARCELS;
}

jzx_behavior_result desk_closed(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    self->msg = msg;
    if (desk_is_work(msg)) {
        parcel_check(msg);
        desk_stash(ctx, msg);
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == S_BOTH) {
        CHECK_OK(jzx_stash(ctx));
        CHECK_OK(jzx_become(ctx, desk_open));
        desk_unstash(ctx, JZX_UNSTASH_ALL);
        return JZX_BEHAVIOR_OK;
    }
    return msg->kind == JZX_KIND_USER ? desk_order(ctx, msg) : puppet_behavior(ctx, msg);
}

jzx_behavior_result desk_open(jzx_context *ctx, const jzx_message *msg)
{
    puppet *self = ctx->state;
    self->msg = msg;
    if (desk_is_work(msg)) {
        parcel_check(msg);
        if ((msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) == 0 && msg->drop == NULL) {
            parcels[msg->tag].owned++;
        }
        return puppet_behavior(ctx, msg);
    }
    if (msg->tag == S_BOTH) {
        say("%s:both", self->name);
        return JZX_BEHAVIOR_OK;
    }
    return msg->kind == JZX_KIND_USER ? desk_order(ctx, msg) : puppet_behavior(ctx, msg);
}

void desk_spawn(jzx_loop *loop, desk *d)
{
    jzx_spawn_opts opts = d->opts;
    jzx_spawn_opts base = puppet_opts(&d->a);
    opts.behavior = opts.behavior == NULL ? desk_closed : opts.behavior;
    opts.state = base.state;
    opts.name = base.name;
    opts.init = base.init;
    opts.deinit = base.deinit;
    opts.on_signal = base.on_signal;
    puppet_spawn_with(loop, &d->a, &opts);
}

void desk_begin(jzx_context *ctx, puppet *self, uint32_t what)
{
    desk *d = self->arg;
    if (what == IN_INIT) {
        REQUIRE_OK(jzx_set_child_policy(ctx, d->policy));
        desk_spawn(ctx->loop, d);
    }
}

void desk_start(desk *d, const jzx_config *config, const jzx_spawn_opts *opts,
                const jzx_supervisor_spec *policy)
{
    play_open(&d->r, config);
    memset(parcels, 0, sizeof parcels);
    d->opts = opts == NULL ? (jzx_spawn_opts){0} : *opts;
    d->policy = policy;
    puppet_name(&d->a, "a");
    puppet_name(&d->p, "p");
    if (policy == NULL) {
        desk_spawn(d->r.loop, d);
    } else {
        d->p.arg = d;
        d->p.during = desk_begin;
        jzx_spawn_opts parent = puppet_opts(&d->p);
        puppet_spawn_with(d->r.loop, &d->p, &parent);
    }
    rig_idle(&d->r);
    CHECK_STATE(&d->r, &d->a, JZX_STATE_RUNNING);
    said_clear();
}

void desk_close(desk *d)
{
    play_close(&d->r);
}

void desk_tell_all(desk *d, const uint32_t *tags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tell(&d->r, &d->a, tags[i]);
    }
}

const char *said_work(void)
{
    static char work[SAID_MAX];
    size_t len = 0;
    work[0] = '\0';
    for (const char *at = said; *at != '\0';) {
        size_t word = strcspn(at, " ");
        if (strcspn(at, ":~!") < word) {
            len += (size_t)snprintf(work + len, sizeof work - len, "%s%.*s", len > 0 ? " " : "",
                                    (int)word, at);
        }
        at += word + (at[word] == ' ' ? 1 : 0);
    }
    return work;
}

jzx_actor_facts desk_facts(desk *d)
{
    jzx_actor_facts facts;
    REQUIRE_OK(jzx_actor_inspect(d->r.loop, d->a.id, &facts));
    return facts;
}
