/* Goal: a send means the same between any two places (R4, R5, R6, R11, R12, R13, R31, R33): the
 * verdict comes at once and is exact, payloads arrive whole and are released once, order is kept.
 * Method: a puppet in every place sends to one in every place; the receiver is kept in its
 * behavior, or "loop" stands still, while verdicts are looked at. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { WORK = 1, LOUD = 2, LAST = 3, SENDS_MAX = 64 };

static _Atomic uint64_t drops;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

/* A sender and a receiver; `run` is called inside the sender while the receiver cannot move. */
typedef struct pair {
    world *w;
    puppet *from;
    puppet *to;
    jzx_actor_id id; /* whom `run` sends to */
    jzx_err err[SENDS_MAX];
} pair;

static pair *pair_open(world *w, size_t from, size_t to, const jzx_spawn_opts *opts)
{
    static pair p;
    p = (pair){.w = w};
    p.from = puppet_up(puppet_at(w, "from", places[from]));
    p.to = puppet_at(w, "to", places[to]);
    if (opts != NULL) {
        p.to->opts = *opts;
    }
    (void)puppet_up(p.to);
    p.id = atomic_load(&p.to->id);
    return &p;
}

static void pair_close(pair *p)
{
    world_settle(p->w);
    (void)jzx_system_stop(p->w->system, atomic_load(&p->from->id));
    (void)jzx_system_stop(p->w->system, atomic_load(&p->to->id));
    WAIT(p->w, atomic_load(&p->from->ends) == 1 && atomic_load(&p->to->ends) == 1);
}

static void pair_run(pair *p, puppet_fn run)
{
    puppet_hold_from(p->to, p->from);
    puppet_call(p->from, run, p);
    puppet_release(p->to);
    world_settle(p->w);
}

/* Calls the body for every two places, in one world. */
static jzx_err send_flags(jzx_loop *loop, jzx_actor_id to, uint32_t tag, uint32_t flags,
                          uint32_t margin)
{
    jzx_send_opts opts = {.u64 = tag, .tag = tag, .flags = flags | JZX_SEND_VALUE};
    opts.margin = margin;
    return jzx_send_with(loop, to, &opts);
}

static void fill_eight(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, p->id, i, WORK));
    }
    CHECK_EQ(jzx_send_u64(ctx->loop, p->id, 8, WORK), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(jzx_send_copy(ctx->loop, p->id, "x", 1, WORK), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(send_flags(ctx->loop, p->id, WORK, 0, 1), JZX_ERR_MAILBOX_FULL);
    CHECK_OK(send_flags(ctx->loop, p->id, LOUD, JZX_SEND_URGENT, 0)); /* an eighth more */
    CHECK_EQ(send_flags(ctx->loop, p->id, LOUD, JZX_SEND_URGENT, 0), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(jzx_send_u64(ctx->loop, p->id, 8, WORK), JZX_ERR_MAILBOX_FULL);
}

static void cap_is_exact(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to, &(jzx_spawn_opts){.mailbox_cap = 8});
    for (int round = 0; round < 2; round++) { /* all of the room comes back */
        puppet_log_clear(p->to);
        pair_run(p, fill_eight);
        CHECK_EQ(puppet_saw(p->to, WORK), 8);
        CHECK_EQ(puppet_saw(p->to, LOUD), 1);
    }
    pair_close(p);
}

static void test_a_cap_is_exact_between_any_two_R11(void)
{
    for_all_pairs(cap_is_exact);
}

static void keep_margin(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    CHECK_EQ(send_flags(ctx->loop, p->id, WORK, 0, UINT32_MAX), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(send_flags(ctx->loop, p->id, WORK, 0, 8), JZX_ERR_MAILBOX_FULL);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(send_flags(ctx->loop, p->id, WORK, 0, 3));
    }
    CHECK_EQ(send_flags(ctx->loop, p->id, WORK, 0, 3), JZX_ERR_MAILBOX_FULL);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(send_flags(ctx->loop, p->id, WORK, 0, 0));
    }
    CHECK_EQ(send_flags(ctx->loop, p->id, WORK, 0, 0), JZX_ERR_MAILBOX_FULL);
}

static void margin_is_kept(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to, &(jzx_spawn_opts){.mailbox_cap = 8});
    pair_run(p, keep_margin);
    CHECK_EQ(puppet_saw(p->to, WORK), 8);
    pair_close(p);
}

static void test_a_margin_is_kept_between_any_two_R12(void)
{
    for_all_pairs(margin_is_kept);
}

static void send_seven(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    for (uint64_t i = 0; i < 7; i++) {
        jzx_send_opts opts = {.data = calloc(1, 8), .len = i, .drop = count_drop, .tag = WORK};
        CHECK_OK(jzx_send_with(ctx->loop, p->id, &opts));
    }
}

static void policies_drop(world *w, size_t from, size_t to)
{
    static const struct {
        uint32_t policy, reason, first;
    } table[] = {{JZX_FULL_DROP_NEWEST, JZX_DEAD_DROPPED_NEWEST, 0},
                 {JZX_FULL_DROP_OLDEST, JZX_DEAD_DROPPED_OLDEST, 3}};
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        jzx_spawn_opts opts = {.mailbox_cap = 4, .full_policy = table[i].policy};
        pair *p = pair_open(w, from, to, &opts);
        uint64_t dead = world_counters(w).dead_by[table[i].reason];
        atomic_store(&drops, 0);
        puppet_log_clear(p->to);
        pair_run(p, send_seven);
        CHECK_EQ(puppet_saw(p->to, WORK), 4);
        CHECK_EQ(world_counters(w).dead_by[table[i].reason] - dead, 3);
        CHECK_EQ(atomic_load(&drops), 7);
        for (size_t k = 0; k < 4; k++) {
            CHECK_EQ(puppet_sight(p->to, k).len, table[i].first + k);
        }
        pair_close(p);
    }
}

static void test_drop_policies_work_between_any_two_R11(void)
{
    for_all_pairs(policies_drop);
}

static void refuse_block(jzx_loop *loop, jzx_actor_id id, uint32_t flags, jzx_err want)
{
    jzx_send_opts opts = {
        .data = malloc(8), .len = 8, .drop = count_drop, .tag = WORK, .flags = flags};
    uint64_t before = atomic_load(&drops);
    jzx_err err = jzx_send_with(loop, id, &opts);
    CHECK_STR(jzx_err_name(err), jzx_err_name(want));
    if (err != JZX_OK && (flags & JZX_SEND_CONSUME) == 0) {
        free(opts.data); /* it is still ours */
    }
    CHECK_EQ(atomic_load(&drops), before + (flags & JZX_SEND_CONSUME ? 1 : 0));
}

/* Sends of every form to somebody who takes none, with this verdict; CONSUME drops all the same. */
static void refuse_all(jzx_loop *loop, jzx_actor_id id, jzx_err want)
{
    static char still_ours;
    refuse_block(loop, id, 0, want);
    refuse_block(loop, id, JZX_SEND_CONSUME, want);
    refuse_block(loop, id, JZX_SEND_URGENT, want);
    CHECK_EQ(jzx_send(loop, id, &still_ours, 1, WORK), want);
    CHECK_EQ(jzx_send_u64(loop, id, 1, WORK), want);
    CHECK_EQ(jzx_send_copy(loop, id, "abc", 3, WORK), want);
    CHECK_EQ(jzx_send_after(loop, id, 1, NULL, 0, WORK, NULL), want);
}

static void find_nobody(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    refuse_all(ctx->loop, p->id, JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_stop(ctx->loop, p->id), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_stop_drained(ctx->loop, p->id), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_kill(ctx->loop, p->id), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_send_u64(ctx->loop, JZX_NOBODY, 1, WORK), JZX_ERR_NO_SUCH_ACTOR);
    for (uint64_t index = 0; index < 256; index++) { /* also dispatchers that are not there */
        jzx_actor_id forged = UINT64_C(0xFEDC0000) << 32 | index << 24 | 5;
        CHECK_EQ(jzx_send_u64(ctx->loop, forged, 1, WORK), JZX_ERR_NO_SUCH_ACTOR);
        CHECK_EQ(jzx_stop(ctx->loop, forged), JZX_ERR_NO_SUCH_ACTOR);
    }
    CHECK_EQ(jzx_send_u64(ctx->loop, atomic_load(&p->from->id), 1, JZX_TAG_SYSTEM_FIRST),
             JZX_ERR_RESERVED_TAG);
}

static void stop_and_try(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    CHECK_OK(jzx_stop(ctx->loop, p->id)); /* from here on it is closed, held or not */
    refuse_all(ctx->loop, p->id, JZX_ERR_STOPPING);
    CHECK_OK(jzx_stop(ctx->loop, p->id));
}

static void the_closed_refuse(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to, NULL);
    atomic_store(&drops, 0);
    puppet_hold_from(p->to, p->from);
    puppet_call(p->from, stop_and_try, p);
    puppet_release(p->to);
    CHECK_PUPPET_ENDED(p->to, JZX_REASON_SHUTDOWN);
    CHECK_EQ(puppet_saw(p->to, WORK), 0);
    puppet_call(p->from, find_nobody, p);
    pair_close(p);
}

static void test_the_stopping_and_the_gone_refuse_at_once_R11(void)
{
    for_all_pairs(the_closed_refuse);
}

static jzx_err send_reserved(jzx_loop *loop, jzx_actor_id to)
{
    jzx_send_opts opts = {.u64 = 1, .tag = JZX_TAG_SYSTEM_FIRST + 9, .flags = JZX_SEND_VALUE};
    return jzx_send_with(loop, to, &opts);
}

static void without_memory(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    static char big[300000];
    char *block = malloc(8);
    jzx_fault_arm_alloc(self->w->fault, 1, 1);
    jzx_err err = jzx_send_copy(ctx->loop, p->id, big, sizeof big, WORK);
    jzx_send_opts opts = {.data = block, .len = 8, .drop = count_drop, .tag = WORK};
    jzx_err small = jzx_send_with(ctx->loop, p->id, &opts); /* from what is there already, or not */
    jzx_fault_arm_alloc(self->w->fault, 0, 0);
    CHECK_EQ(err, JZX_ERR_NO_MEMORY);
    CHECK(small == JZX_OK || small == JZX_ERR_NO_MEMORY);
    if (small != JZX_OK) {
        count_drop(block);
    }
    CHECK_EQ(send_reserved(ctx->loop, p->id), JZX_ERR_RESERVED_TAG);
    CHECK_OK(jzx_send_copy(ctx->loop, p->id, big, sizeof big, LAST));
}

static void memory_runs_out(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to, NULL);
    atomic_store(&drops, 0);
    pair_run(p, without_memory);
    CHECK_EQ(puppet_saw(p->to, LAST), 1);
    CHECK_EQ(atomic_load(&drops), 1);
    pair_close(p);
}

static void test_without_memory_a_send_says_so_and_loses_nothing_R11(void)
{
    for_all_pairs(memory_runs_out);
}

/* Payloads: a value, copies of all classes of size, blocks with and without drop. */
static const size_t copy_sizes[] = {0, 1, 8, 63, 64, 65, 128, 1000, 65536, 1000000};
static unsigned char bytes[1000000];

static void send_payloads(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    for (size_t i = 0; i < COUNT_OF(copy_sizes); i++) {
        CHECK_OK(jzx_send_copy(ctx->loop, p->id, bytes, copy_sizes[i], WORK));
    }
    CHECK_OK(jzx_send_u64(ctx->loop, p->id, UINT64_MAX, WORK));
    CHECK_OK(jzx_send(ctx->loop, p->id, NULL, 0, WORK));
    CHECK_OK(jzx_send(ctx->loop, p->id, memcpy(malloc(100), bytes, 100), 100, LOUD));
    for (uint32_t take = 0; take < 2; take++) {
        jzx_send_opts opts = {.len = 100, .drop = count_drop, .tag = LAST + take};
        opts.data = memcpy(malloc(100), bytes, 100);
        CHECK_OK(jzx_send_with(ctx->loop, p->id, &opts));
    }
}

static jzx_behavior_result take_payload(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    if (msg->tag == LOUD) {
        CHECK(msg->drop == NULL && jzx_message_take(ctx) == msg->data);
        free(msg->data); /* without drop it is ours */
    } else if (msg->tag == LAST + 1) {
        void *mine = jzx_message_take(ctx);
        CHECK(mine == msg->data && jzx_message_take(ctx) == NULL);
        free(mine);
    } else if (msg->flags & JZX_MSG_COPY) {
        CHECK(jzx_message_take(ctx) == NULL);
    }
    return JZX_BEHAVIOR_OK;
}

static void payloads_arrive(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to, NULL);
    p->to->on = take_payload;
    puppet_log_clear(p->to);
    atomic_store(&drops, 0);
    pair_run(p, send_payloads);
    size_t n = COUNT_OF(copy_sizes);
    CHECK_EQ(puppet_log_len(p->to), n + 5);
    for (size_t i = 0; i < n; i++) {
        sight e = puppet_sight(p->to, i);
        CHECK_EQ(e.len, copy_sizes[i]);
        CHECK(e.len == 0 || (e.flags & JZX_MSG_COPY));
        CHECK(e.len == 0 || e.sum == sum_of(bytes, copy_sizes[i]));
        CHECK_EQ(e.sender, atomic_load(&p->from->id));
        CHECK_EQ(e.kind, JZX_KIND_USER);
    }
    CHECK_EQ(puppet_sight(p->to, n).u64, UINT64_MAX);
    for (size_t i = n + 2; i < n + 5; i++) {
        CHECK_EQ(puppet_sight(p->to, i).len, 100);
        CHECK_EQ(puppet_sight(p->to, i).sum, sum_of(bytes, 100));
    }
    CHECK_EQ(atomic_load(&drops), 1); /* of the one that was not taken */
    pair_close(p);
}

static void test_payloads_arrive_whole_and_are_released_once_R4(void)
{
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * 31 + (i >> 8));
    }
    for_all_pairs(payloads_arrive);
}

static void send_with_deadlines(jzx_context *ctx, puppet *self, void *arg)
{
    pair *p = arg;
    (void)self;
    uint64_t now = jzx_loop_now(ctx->loop);
    jzx_send_opts opts = {.data = malloc(8), .len = 8, .drop = count_drop, .tag = WORK};
    opts.deadline_ns = now + 1;
    CHECK_OK(jzx_send_with(ctx->loop, p->id, &opts));
    opts.deadline_ns = now + 3600000 * MS;
    opts.data = calloc(1, 8);
    opts.tag = LAST;
    CHECK_OK(jzx_send_with(ctx->loop, p->id, &opts));
    CHECK_OK(send_flags(ctx->loop, p->id, LOUD, JZX_SEND_URGENT, 0));
    while (jzx_loop_now(ctx->loop) < now + 100000) {
    }
}

static void deadlines_and_urgency(world *w, size_t from, size_t to)
{
    pair *p = pair_open(w, from, to, NULL);
    puppet_log_clear(p->to);
    atomic_store(&drops, 0);
    uint64_t expired = world_counters(w).dead_by[JZX_DEAD_EXPIRED];
    pair_run(p, send_with_deadlines);
    CHECK_EQ(puppet_log_len(p->to), 2);
    CHECK_EQ(puppet_sight(p->to, 0).tag, LOUD); /* sent last, handled first */
    CHECK(puppet_sight(p->to, 0).flags & JZX_MSG_URGENT);
    CHECK_EQ(puppet_sight(p->to, 1).tag, LAST);
    CHECK_EQ(world_counters(w).dead_by[JZX_DEAD_EXPIRED] - expired, 1);
    CHECK_EQ(atomic_load(&drops), 2);
    pair_close(p);
}

static void test_late_messages_expire_and_urgent_ones_jump_R13(void)
{
    for_all_pairs(deadlines_and_urgency);
}

/* Senders in all places stream to one receiver, which answers each. */
enum { STREAM = 400 };

static void stream(jzx_context *ctx, puppet *self, void *arg)
{
    jzx_actor_id to = atomic_load(&((puppet *)arg)->id);
    uint64_t next = atomic_load(&self->number);
    for (; next < STREAM && jzx_send_u64(ctx->loop, to, next, WORK) == JZX_OK; next++) {
    }
    atomic_store(&self->number, next);
    if (next < STREAM) {
        CHECK_OK(jzx_notify_room(ctx->loop, to));
    }
}

static jzx_behavior_result stream_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->kind == JZX_KIND_NOTICE) {
        stream(ctx, self, self->arg);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result answer(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)self;
    CHECK_OK(jzx_send_u64(ctx->loop, msg->sender, msg->u64, LAST));
    return JZX_BEHAVIOR_OK;
}

static void check_stream(puppet *a, jzx_actor_id sender, uint32_t tag)
{
    uint64_t next = 0;
    size_t len = puppet_log_len(a);
    for (size_t i = 0; i < len; i++) {
        sight e = puppet_sight(a, i);
        if (e.signal == 0 && e.tag == tag && e.sender == sender) {
            CHECK_EQ(e.u64, next);
            next++;
        }
    }
    CHECK_EQ(next, STREAM);
}

static void test_messages_and_answers_keep_their_order_R6(void)
{
    for (size_t to = 0; to < PLACES; to++) {
        world *w = world_open();
        puppet *target = puppet_at(w, "to", places[to]);
        target->on = answer;
        target->opts.mailbox_cap = 100; /* so that room notices are part of it */
        (void)puppet_up(target);
        puppet *from[PLACES];
        for (size_t i = 0; i < PLACES; i++) {
            char name[64];
            snprintf(name, sizeof name, "f%zu", i);
            from[i] = puppet_at(w, name, places[i]);
            from[i]->on = stream_on;
            from[i]->arg = target;
            (void)puppet_up(from[i]);
        }
        for (size_t i = 0; i < PLACES; i++) {
            puppet_call(from[i], stream, target);
        }
        for (size_t i = 0; i < PLACES; i++) {
            WAIT(w, puppet_saw(from[i], LAST) == STREAM);
            check_stream(from[i], atomic_load(&target->id), LAST);
            check_stream(target, atomic_load(&from[i]->id), WORK);
        }
        CHECK_EQ(world_counters(w).dead, 0);
        world_close(w);
    }
}

/* From outside of actors: main through "loop", threads through a sender; nobody is the sender. */
static void test_sends_from_outside_reach_every_place_R7(void)
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        puppet *a = puppet_up(puppet_at(w, places[at], places[at]));
        puppet_log_clear(a);
        jzx_actor_id id = atomic_load(&a->id);
        for (uint64_t i = 0; i < 100; i++) { /* one thread, two ways, one order */
            REQUIRE_OK(jzx_send_u64(w->loop, id, 2 * i, WORK));
            REQUIRE_OK(jzx_send_copy(w->loop, id, "0123456789", 10, LAST));
        }
        WAIT(w, puppet_log_len(a) == 200);
        for (size_t i = 0; i < 200; i++) {
            sight e = puppet_sight(a, i);
            CHECK_EQ(e.sender, JZX_NOBODY);
            CHECK_EQ(e.tag, i % 2 == 0 ? WORK : LAST);
            CHECK(i % 2 == 1 || e.u64 == i);
        }
    }
    world_close(w);
}

static const jzt_test tests[] = {
    {"a_cap_is_exact_between_any_two_R11", test_a_cap_is_exact_between_any_two_R11},
    {"a_margin_is_kept_between_any_two_R12", test_a_margin_is_kept_between_any_two_R12},
    {"drop_policies_work_between_any_two_R11", test_drop_policies_work_between_any_two_R11},
    {"the_stopping_and_the_gone_refuse_at_once_R11",
     test_the_stopping_and_the_gone_refuse_at_once_R11},
    {"without_memory_a_send_says_so_and_loses_nothing_R11",
     test_without_memory_a_send_says_so_and_loses_nothing_R11},
    {"payloads_arrive_whole_and_are_released_once_R4",
     test_payloads_arrive_whole_and_are_released_once_R4},
    {"late_messages_expire_and_urgent_ones_jump_R13",
     test_late_messages_expire_and_urgent_ones_jump_R13},
    {"messages_and_answers_keep_their_order_R6", test_messages_and_answers_keep_their_order_R6},
    {"sends_from_outside_reach_every_place_R7", test_sends_from_outside_reach_every_place_R7},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
