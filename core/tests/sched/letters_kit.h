/* A subscriber that reads with its own cursor, and a small box that buries what it has no room for.
 */
#ifndef JZT_LETTERS_KIT_H
#define JZT_LETTERS_KIT_H

#include "puppet.h"

enum { SUBSCRIBE = 1, UNSUBSCRIBE, MAKE, WORK, FAIL, END, READ_MAX = 8 };

/* What a subscriber was told and what it read. */
typedef struct reader {
    puppet *self;
    const puppet *box;
    uint64_t notices;
    uint64_t told; /* u64 of the last notice */
    uint64_t cursor;
    uint64_t read;
    uint64_t makes;  /* letters to make in the next notice */
    bool leaves;     /* unsubscribes in its next notice */
    bool returns;    /* and subscribes again at once */
    jzx_err err;     /* of the last call */
    jzx_err end_err; /* of a subscription in deinit */
} reader;

/* The box has room for one, so the others die at once. */
static inline void make_letters(jzx_loop *loop, const puppet *box, uint64_t count)
{
    jzx_err err = JZX_OK;
    for (uint64_t made = 0, before = 0; made < count && err == JZX_OK;) {
        jzx_counters now;
        jzx_loop_counters(loop, &now);
        before = now.dead;
        err = jzx_send_u64(loop, box->id, 0, WORK);
        jzx_loop_counters(loop, &now);
        made += now.dead - before;
    }
    CHECK_OK(err);
}

static inline void look(jzx_loop *loop, reader *rd)
{
    jzx_dead_letter letters[READ_MAX];
    uint64_t lagged = 0;
    size_t count = READ_MAX;
    while (count == READ_MAX) {
        count = jzx_dead_letters_read(loop, &rd->cursor, letters, READ_MAX, &lagged);
        rd->read += count + lagged;
    }
}

static inline void take_notice(jzx_context *ctx, const jzx_message *msg, reader *rd)
{
    CHECK_EQ(msg->kind, JZX_KIND_NOTICE);
    CHECK((msg->flags & JZX_MSG_VALUE) != 0);
    CHECK_EQ(msg->len, 0);
    CHECK_EQ(msg->sender, JZX_NOBODY);
    CHECK(jzx_message_signal(msg) == NULL);
    CHECK(jzx_message_take(ctx) == NULL);
    CHECK(msg->u64 > rd->told); /* there is news in every notice */
    rd->notices++;
    rd->told = msg->u64;
    look(ctx->loop, rd);
    CHECK_EQ(rd->cursor, msg->u64);
    uint64_t makes = rd->makes;
    rd->makes = 0;
    make_letters(ctx->loop, rd->box, makes);
    if (rd->leaves) {
        CHECK_OK(jzx_dead_letters_unsubscribe(ctx->loop));
    }
    if (rd->returns) {
        CHECK_OK(jzx_dead_letters_subscribe(ctx->loop));
    }
    rd->leaves = rd->returns = false;
}

static inline jzx_behavior_result reader_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    reader *rd = self->arg;
    switch (msg->tag) {
    case SUBSCRIBE:
        rd->err = jzx_dead_letters_subscribe(ctx->loop);
        break;
    case UNSUBSCRIBE:
        rd->err = jzx_dead_letters_unsubscribe(ctx->loop);
        break;
    case MAKE:
        make_letters(ctx->loop, rd->box, msg->u64);
        break;
    case FAIL:
        return JZX_BEHAVIOR_FAIL;
    case END:
        return JZX_BEHAVIOR_STOP;
    case JZX_TAG_DEAD_LETTERS:
        take_notice(ctx, msg, rd);
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static inline void reader_end(jzx_context *ctx, puppet *self, uint32_t what)
{
    (void)what; /* a bare puppet has one hook */
    reader *rd = self->arg;
    rd->end_err = jzx_dead_letters_subscribe(ctx->loop);
    CHECK_OK(jzx_dead_letters_unsubscribe(ctx->loop));
}

typedef struct desk {
    rig r;
    puppet *box;
} desk;

static inline void desk_open(desk *d, const jzx_config *config)
{
    jzx_spawn_opts opts = {.mailbox_cap = 1, .full_policy = JZX_FULL_DROP_NEWEST};
    d->r = rig_open_fifo(config);
    d->box = puppet_start(&d->r, NULL, &opts);
}

static inline void reader_new(desk *d, reader *rd)
{
    *rd = (reader){.self = puppet_new(reader_on), .box = d->box};
    rd->self->arg = rd;
    rd->self->during = reader_end;
}

static inline void reader_start(desk *d, reader *rd, const jzx_spawn_opts *opts)
{
    reader_new(d, rd);
    puppet_start_as(&d->r, rd->self, opts);
    tell(&d->r, rd->self, SUBSCRIBE);
    rig_idle(&d->r);
    CHECK_OK(rd->err);
}

/* Checks conservation, leaks and all the rest. */
static inline void desk_close(desk *d, reader *readers, size_t count)
{
    rig_close(&d->r);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(readers[i].end_err, JZX_ERR_STOPPING);
        puppet_free(readers[i].self);
    }
    puppet_free(d->box);
}

#endif
