/* Goal: messages of other dispatchers can be set aside, passed on and discarded like any other, and
 * go on to other dispatchers with everything they came with (R4-R7, R10, R16, R31). Method: a
 * system in simulation with a loop, a pinned loop and two pools; every way between them. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#include "desk.h"

static const char *const places[] = {"loop", "desk", "pool", "crew"};
enum { PLACES = 4 };

typedef struct town {
    jzx_sim *sim;
    jzx_fault *fault;
    jzx_system *system;
    jzx_loop *loop;
    jzx_actor_id origins[PLACES];
} town;

/* What an origin is told to send. */
typedef struct order {
    jzx_send_opts opts;
    jzx_actor_id to;
    jzx_err err;
} order;

static jzx_behavior_result originate(jzx_context *ctx, const jzx_message *msg)
{
    order *o = msg->data;
    o->err = jzx_send_with(ctx->loop, o->to, &o->opts);
    return JZX_BEHAVIOR_OK;
}

static jzx_actor_id spawn_at(town *t, size_t place, jzx_behavior_fn behavior, void *state,
                             const jzx_spawn_opts *given)
{
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = given == NULL ? (jzx_spawn_opts){0} : *given;
    opts.behavior = behavior;
    opts.state = state;
    opts.dispatcher = places[place];
    REQUIRE_OK(jzx_spawn(t->loop, &opts, &id));
    return id;
}

static void town_settle(town *t)
{
    REQUIRE_OK(jzx_sim_settle_system(t->sim, t->system));
    jzx_counters c;
    jzx_system_counters(t->system, &c);
    CHECK_EQ(c.accepted, c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand);
    const char *wrong = jzx_loop_audit(t->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static void town_open(town *t)
{
    static const jzx_dispatcher_spec specs[] = {
        {.name = "desk", .kind = JZX_DISPATCHER_PINNED},
        {.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = 2},
    };
    *t = (town){0};
    memset(parcels, 0, sizeof parcels);
    jzx_sim_opts sim = {.seed = jzt_seed() | 1};
    REQUIRE_OK(jzx_sim_create(&sim, &t->sim));
    REQUIRE_OK(jzx_fault_create(jzx_sim_env(t->sim), &t->fault));
    jzx_config loop = {.env = jzx_fault_env(t->fault), .allocator = jzx_fault_allocator(t->fault)};
    jzx_system_config config = {.loop = &loop,
                                .dispatchers = specs,
                                .dispatcher_count = COUNT_OF(specs),
                                .pool_workers = 3};
    REQUIRE_OK(jzx_system_create(&config, &t->system));
    t->loop = jzx_system_loop(t->system);
    for (size_t i = 0; i < PLACES; i++) {
        t->origins[i] = spawn_at(t, i, originate, NULL, NULL);
    }
    town_settle(t);
}

static void town_close(town *t)
{
    town_settle(t);
    CHECK_OK(jzx_system_destroy(t->system));
    CHECK_EQ(jzx_fault_leaked(t->fault, NULL), 0);
    CHECK_STR(jzx_fault_check(t->fault), NULL);
    CHECK_STR(jzx_sim_check(t->sim), NULL);
    jzx_fault_destroy(t->fault);
    jzx_sim_destroy(t->sim);
}

/* Has an origin send, and runs until all is quiet. */
static void town_send(town *t, size_t from, jzx_actor_id to, const jzx_send_opts *opts)
{
    order o = {.opts = *opts, .to = to, .err = JZX_ERR_BUSY};
    jzx_send_opts tell_it = {.data = &o};
    REQUIRE_OK(jzx_send_with(t->loop, t->origins[from], &tell_it));
    town_settle(t);
    CHECK_OK(o.err);
}

/* A clerk that sets everything aside while it is closed, and else passes it on or keeps it. */
typedef struct clerk {
    jzx_actor_id id;
    jzx_actor_id next; /* JZX_NOBODY: keeps it */
    bool closed;
    jzx_err err; /* what forward said last */
    size_t count;
    struct {
        jzx_actor_id sender;
        uint64_t deadline_ns;
        size_t len;
        uint32_t tag;
        uint32_t flags;
    } got[16];
} clerk;

enum { SERVE = 0x200 };

static jzx_behavior_result clerk_run(jzx_context *ctx, const jzx_message *msg)
{
    clerk *self = ctx->state;
    if (msg->tag == SERVE) {
        self->closed = false;
        CHECK_OK(jzx_unstash(ctx, JZX_UNSTASH_ALL));
        return JZX_BEHAVIOR_OK;
    }
    parcel_check(msg);
    if (self->closed) {
        CHECK_OK(jzx_stash(ctx));
        parcel_check(msg);
        return JZX_BEHAVIOR_OK;
    }
    if (self->next != JZX_NOBODY) {
        self->err = jzx_forward(ctx, self->next);
        return JZX_BEHAVIOR_OK;
    }
    REQUIRE(self->count < COUNT_OF(self->got));
    self->got[self->count].sender = msg->sender;
    self->got[self->count].deadline_ns = msg->deadline_ns;
    self->got[self->count].len = msg->len;
    self->got[self->count].tag = msg->tag;
    self->got[self->count++].flags = msg->flags & 0xFu;
    if (msg->drop == NULL && (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) == 0) {
        parcels[msg->tag].owned++;
    }
    return JZX_BEHAVIOR_OK;
}

static const size_t lengths[] = {0, 1, 64, 65, COPY_MAX};

/* From each place by way of each to each: closed on the way and passed on when it opens. */
static void test_every_way_between_dispatchers_keeps_the_message_R4_R7(void)
{
    town t;
    town_open(&t);
    for (size_t way = 0; way < PLACES * PLACES * PLACES; way++) {
        size_t from = way % PLACES;
        size_t via = way / PLACES % PLACES;
        size_t to = way / PLACES / PLACES;
        for (form what = F_VALUE; what < FORMS; what++) {
            size_t len = lengths[(way + what) % COUNT_OF(lengths)];
            clerk last = {.closed = way % 2 == 0};
            clerk first = {.closed = way % 3 == 0, .err = JZX_ERR_BUSY};
            memset(parcels, 0, sizeof parcels);
            last.id = spawn_at(&t, to, clerk_run, &last, NULL);
            first.id = spawn_at(&t, via, clerk_run, &first, NULL);
            first.next = last.id;
            jzx_send_opts opts = parcel_opts(what, 5, len);
            opts.deadline_ns = way % 5 == 0 ? jzx_loop_now(t.loop) + 60000 * MS : 0;
            opts.flags |= way % 7 == 0 ? JZX_SEND_URGENT : 0;
            town_send(&t, from, first.id, &opts);
            jzx_send_opts serve = {.tag = SERVE, .flags = JZX_SEND_VALUE};
            if (first.closed) {
                town_send(&t, from, first.id, &serve);
            }
            if (last.closed) {
                town_send(&t, from, last.id, &serve);
            }
            CHECK_OK(first.err);
            REQUIRE_EQ(last.count, 1);
            CHECK_EQ(last.got[0].sender, t.origins[from]);
            CHECK_EQ(last.got[0].tag, 5);
            CHECK_EQ(last.got[0].len, what == F_VALUE ? 0 : len);
            CHECK_EQ(last.got[0].deadline_ns, opts.deadline_ns);
            CHECK_EQ((last.got[0].flags & JZX_MSG_URGENT) != 0, way % 7 == 0);
            CHECK_EQ(parcels[5].drops, what == F_DROP ? 1 : 0);
            CHECK_EQ(parcels[5].owned, what == F_BARE ? 1 : 0);
            CHECK_OK(jzx_stop(t.loop, first.id));
            CHECK_OK(jzx_stop(t.loop, last.id));
            town_settle(&t);
        }
    }
    town_close(&t);
}

/* Several that arrived from elsewhere wait, and keep their order and their slots. */
static void test_foreign_messages_wait_in_order_and_within_the_cap_R10(void)
{
    for (size_t at = 0; at < PLACES; at++) {
        town t;
        town_open(&t);
        clerk holder = {.closed = true};
        jzx_spawn_opts small = {.mailbox_cap = 8};
        holder.id = spawn_at(&t, at, clerk_run, &holder, &small);
        for (uint32_t tag = 1; tag <= 4; tag++) {
            jzx_send_opts opts = parcel_opts((form)(tag % FORMS), tag, lengths[tag]);
            town_send(&t, (at + tag) % PLACES, holder.id, &opts);
        }
        CHECK_EQ(holder.count, 0);
        jzx_counters c;
        jzx_system_counters(t.system, &c);
        CHECK_EQ(c.queued, 4);
        jzx_send_opts serve = {.tag = SERVE, .flags = JZX_SEND_VALUE};
        town_send(&t, (at + 1) % PLACES, holder.id, &serve);
        REQUIRE_EQ(holder.count, 4);
        for (uint32_t tag = 1; tag <= 4; tag++) {
            CHECK_EQ(holder.got[tag - 1].tag, tag);
        }
        town_close(&t);
    }
}

/* Full, gone, and refused in the same words as at home; the message stays in hand. */
static jzx_behavior_result try_far(jzx_context *ctx, const jzx_message *msg)
{
    clerk *self = ctx->state;
    parcel_check(msg);
    self->err = jzx_forward(ctx, self->next);
    if (self->err != JZX_OK) {
        CHECK(jzx_message_take(ctx) == &parcels[msg->tag]);
        parcels[msg->tag].owned++;
    }
    return JZX_BEHAVIOR_OK;
}

static void test_far_refusals_leave_it_in_hand_R11(void)
{
    for (size_t from = 0; from < PLACES; from++) {
        for (size_t to = 0; to < PLACES; to++) {
            town t;
            town_open(&t);
            clerk last = {.closed = true};
            clerk first = {.err = JZX_ERR_BUSY};
            jzx_spawn_opts tiny = {.mailbox_cap = 1};
            last.id = spawn_at(&t, to, clerk_run, &last, &tiny);
            first.id = spawn_at(&t, from, try_far, &first, NULL);
            first.next = last.id;
            jzx_send_opts opts = parcel_opts(F_VALUE, 1, 0);
            town_send(&t, from, last.id, &opts); /* the stash is the whole mailbox */
            opts = parcel_opts(F_DROP, 2, 8);
            town_send(&t, from, first.id, &opts);
            CHECK_EQ(first.err, JZX_ERR_MAILBOX_FULL);
            CHECK_OK(jzx_kill(t.loop, last.id));
            town_settle(&t);
            opts = parcel_opts(F_DROP, 3, 8);
            town_send(&t, from, first.id, &opts);
            CHECK_EQ(first.err, JZX_ERR_NO_SUCH_ACTOR);
            CHECK_EQ(parcels[2].owned + parcels[3].owned, 2);
            CHECK_EQ(parcels[2].drops + parcels[3].drops, 0);
            town_close(&t);
        }
    }
}

static void test_a_stash_is_redirected_to_another_dispatcher_R16(void)
{
    for (size_t from = 0; from < PLACES; from++) {
        for (size_t to = 0; to < PLACES; to++) {
            town t;
            town_open(&t);
            clerk heir = {0};
            clerk holder = {.closed = true};
            heir.id = spawn_at(&t, to, clerk_run, &heir, NULL);
            jzx_spawn_opts redirect = {.drain = JZX_DRAIN_REDIRECT, .redirect_to = heir.id};
            holder.id = spawn_at(&t, from, clerk_run, &holder, &redirect);
            for (uint32_t tag = 1; tag <= 4; tag++) {
                jzx_send_opts opts = parcel_opts((form)(tag % FORMS), tag, lengths[tag]);
                town_send(&t, tag % PLACES, holder.id, &opts);
            }
            CHECK_OK(jzx_stop(t.loop, holder.id));
            town_settle(&t);
            REQUIRE_EQ(heir.count, 4);
            for (uint32_t tag = 1; tag <= 4; tag++) {
                CHECK_EQ(heir.got[tag - 1].tag, tag);
                CHECK_EQ(heir.got[tag - 1].sender, t.origins[tag % PLACES]);
            }
            town_close(&t);
        }
    }
}

static const jzt_test tests[] = {
    {"every_way_between_dispatchers_keeps_the_message_R4_R7",
     test_every_way_between_dispatchers_keeps_the_message_R4_R7},
    {"foreign_messages_wait_in_order_and_within_the_cap_R10",
     test_foreign_messages_wait_in_order_and_within_the_cap_R10},
    {"far_refusals_leave_it_in_hand_R11", test_far_refusals_leave_it_in_hand_R11},
    {"a_stash_is_redirected_to_another_dispatcher_R16",
     test_a_stash_is_redirected_to_another_dispatcher_R16},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
