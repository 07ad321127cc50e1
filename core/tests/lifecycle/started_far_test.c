/* Goal: a parent hears that its child started wherever the two live, behind what the start hooks
 * sent and before anything later, also after restarts and while the parent is busy (R6, R9, R31).
 * Method: a parent and a child in every pair of places; the parent's log is compared as text. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { HELLO = 1, HOOK, WORK, ROUNDS = JZT_SANITIZED ? 60 : 300 };

typedef struct pair {
    world *w;
    puppet *parent, *child;
} pair;

static void to_parent(jzx_context *ctx, const puppet *self, uint32_t tag)
{
    const puppet *parent = self->arg;
    jzx_err err = jzx_send_u64(ctx->loop, atomic_load(&parent->id), atomic_load(&self->inits), tag);
    CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING);
}

static void say_hook(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == IN_INIT || what == JZX_SIGNAL_POST_START) {
        to_parent(ctx, self, what == IN_INIT ? HELLO : HOOK);
    }
}

static jzx_behavior_result work(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    to_parent(ctx, self, WORK);
    return msg->u64 == 0 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

/* Stays in the first notice of a start until the gate is open. */
static _Atomic int in_code, gate;
static void stay_in_notice(jzx_context *ctx, puppet *self, uint32_t what)
{
    uint64_t end = now_ns() + WAIT_LIMIT_MS * MS;
    (void)ctx;
    (void)self;
    if (what == JZX_SIGNAL_CHILD_STARTED) {
        atomic_store(&in_code, 1);
        while (atomic_load(&gate) == 0 && now_ns() < end) {
            pause_us(100);
        }
    }
}

static void spawn_child(jzx_context *ctx, puppet *self, void *arg)
{
    puppet *child = arg;
    (void)self;
    REQUIRE_OK(puppet_spawn_at(ctx->loop, child));
    REQUIRE_OK(jzx_send_u64(ctx->loop, atomic_load(&child->id), 0, WORK));
}

static void spawn_and_stay(jzx_context *ctx, puppet *self, void *arg)
{
    puppet *child = arg;
    REQUIRE_OK(puppet_spawn_at(ctx->loop, child));
    REQUIRE_OK(jzx_send_u64(ctx->loop, atomic_load(&child->id), 1, WORK)); /* fails */
    REQUIRE_OK(jzx_send_u64(ctx->loop, atomic_load(&child->id), 0, WORK));
    puppet_stay(self);
}

/* "hello1 hook1 started1": what the parent heard of its child, in order. */
static void heard(const pair *p, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < puppet_log_len(p->parent); i++) {
        static const char *const words[] = {"", "hello", "hook", "work"};
        sight e = puppet_sight(p->parent, i);
        bool about = e.signal == JZX_SIGNAL_CHILD_STARTED || e.signal == JZX_SIGNAL_CHILD_FAILED ||
                     e.signal == JZX_SIGNAL_CHILD_ENDED;
        if (about || (e.signal == 0 && e.tag <= WORK)) {
            CHECK_EQ(e.sender, atomic_load(&p->child->id));
            len += (size_t)snprintf(out + len, len < size ? size - len : 0, "%s%s%u",
                                    len == 0 ? "" : " ",
                                    about ? jzx_signal_name(e.signal) : words[e.tag],
                                    (unsigned)(about ? e.incarnation : e.u64));
        }
    }
    puppet_log_clear(p->parent);
}

#define CHECK_HEARD(p_, want)                                                                      \
    do {                                                                                           \
        char heard_[512];                                                                          \
        heard(p_, heard_, sizeof heard_);                                                          \
        CHECK_STR(heard_, want);                                                                   \
    } while (0)

/* Every notice speaks of a later life than the one before and comes behind the hooks of a life that
 * was not told yet; work of a life comes behind a notice of it; the last life is told, and nothing
 * comes after the end. */
static void check_told(const pair *p, uint32_t lives)
{
    uint32_t told = 0;
    uint64_t hooks = 0;
    bool ended = false;
    for (size_t i = 0; i < puppet_log_len(p->parent); i++) {
        sight e = puppet_sight(p->parent, i);
        CHECK(!ended);
        if (e.signal == JZX_SIGNAL_CHILD_STARTED) {
            CHECK(e.incarnation > told && hooks > told);
            told = e.incarnation;
        } else if (e.signal == JZX_SIGNAL_CHILD_ENDED) {
            ended = true;
        } else if (e.signal == 0 && e.tag == HOOK) {
            CHECK_EQ(e.u64, ++hooks);
        } else if (e.signal == 0 && e.tag == WORK) {
            CHECK(e.u64 <= told);
        }
    }
    CHECK_EQ(told, lives);
    CHECK_EQ(hooks, lives);
}

static pair pair_new(world *w, size_t up, size_t down)
{
    char name[32];
    snprintf(name, sizeof name, "parent-%s-%s", places[up], places[down]);
    pair p = {.w = w, .parent = puppet_at(w, name, places[up])};
    snprintf(name, sizeof name, "child-%s-%s", places[up], places[down]);
    p.child = puppet_at(w, name, places[down]);
    p.child->arg = p.parent;
    p.child->during = say_hook;
    p.child->on = work;
    p.child->opts.flags = JZX_SPAWN_TELL_START;
    p.child->opts.restart = JZX_RESTART_TRANSIENT;
    p.child->opts.restart_intensity = JZX_INTENSITY_MAX;
    return p;
}

static void order(const puppet *a, uint32_t tag, uint64_t value)
{
    REQUIRE_OK(jzx_send_async_u64(a->w->sender, atomic_load(&a->id), value, tag));
}

static void pair_end(pair *p)
{
    CHECK_OK(jzx_system_stop(p->w->system, atomic_load(&p->parent->id)));
    WAIT(p->w, atomic_load(&p->parent->ends) == 1 && atomic_load(&p->child->ends) == 1);
}

static void for_all_families(bool far_only, void (*body)(pair *p))
{
    world *w = world_open();
    for (size_t up = 0; up < PLACES; up++) {
        for (size_t down = 0; down < PLACES; down++) {
            pair p = pair_new(w, up, down);
            /* One that shares the parent's thread cannot do anything while the parent stays. */
            if (!far_only || (!puppet_on_loop(p.parent) && !share_thread(p.parent, p.child))) {
                p.parent->during = far_only ? stay_in_notice : NULL;
                (void)puppet_up(p.parent);
                puppet_log_clear(p.parent);
                body(&p);
            }
        }
    }
    world_close(w);
}

static void lives(pair *p)
{
    puppet_call(p->parent, spawn_child, p->child);
    WAIT(p->w, puppet_saw(p->parent, WORK) == 1);
    world_settle(p->w);
    CHECK_HEARD(p, "hello1 hook1 child_started1 work1");
    order(p->child, WORK, 1);
    order(p->child, WORK, 0);
    WAIT(p->w, puppet_saw(p->parent, WORK) == 2);
    world_settle(p->w);
    CHECK_HEARD(p, "work1 hello2 hook2 child_started2 work2");
    CHECK_OK(jzx_system_restart(p->w->system, atomic_load(&p->child->id)));
    WAIT(p->w, puppet_signals(p->parent, JZX_SIGNAL_CHILD_STARTED) == 1);
    world_settle(p->w);
    CHECK_HEARD(p, "hello3 hook3 child_started3");
    order(p->child, T_STOP, 0);
    WAIT(p->w, puppet_signals(p->parent, JZX_SIGNAL_CHILD_ENDED) == 1);
    world_settle(p->w);
    CHECK_HEARD(p, "child_ended3");
    pair_end(p);
}

static void test_a_start_elsewhere_is_told_in_its_place_R6_R31(void)
{
    for_all_families(false, lives);
}

/* The parent has a failure of its child to decide on and the notice of its start to hear: the child
 * starts anew and works while the parent is in that notice. */
static void starts_meanwhile(pair *p)
{
    atomic_store(&in_code, 0);
    atomic_store(&gate, 0);
    atomic_store(&p->parent->released, 0);
    p->parent->call_with = spawn_and_stay;
    p->parent->call_arg = p->child;
    puppet_order(p->parent, T_CALL);
    WAIT_STILL(atomic_load(&p->parent->held));
    WAIT(p->w, atomic_load(&p->child->fails) == 1);
    puppet_release(p->parent);
    WAIT(p->w, atomic_load(&in_code) == 1 && atomic_load(&p->child->worked) == 2);
    atomic_store(&gate, 1);
    WAIT(p->w, puppet_saw(p->parent, WORK) == 2);
    world_settle(p->w);
    check_told(p, 2);
    pair_end(p);
}

static void test_a_start_while_the_last_one_is_heard_is_told_in_its_place_R6(void)
{
    for_all_families(true, starts_meanwhile);
}

/* Starts as fast as they come. */
static void many_lives(pair *p)
{
    puppet_call(p->parent, spawn_child, p->child);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        order(p->child, WORK, i % 3 == 0);
    }
    order(p->child, T_STOP, 0);
    WAIT(p->w, puppet_signals(p->parent, JZX_SIGNAL_CHILD_ENDED) == 1);
    world_settle(p->w);
    check_told(p, ROUNDS / 3 + 1);
    pair_end(p);
}

static void test_many_starts_are_told_in_order_R6(void)
{
    for_all_families(false, many_lives);
}

/* A parent that ends at any moment leaves no notice behind: the world looks. */
static void parent_ends(pair *p)
{
    static uint32_t moment;
    puppet_call(p->parent, spawn_child, p->child);
    order(p->child, WORK, 1);
    pause_us(moment++ * 7 % 100);
    pair_end(p);
}

static void test_no_notice_outlives_its_parent_R9(void)
{
    for_all_families(false, parent_ends);
}

/* Transitions reach a system's observer from every dispatcher, also one after the other. */
static void count_move(void *ctx, const jzx_transition_event *move)
{
    _Atomic uint32_t *moves = ctx;
    CHECK(strcmp(move->name, "mover") == 0 && move->from != move->to);
    atomic_fetch_add(&moves[move->to], 1);
}

static void test_transitions_of_all_dispatchers_are_told_R14_R31(void)
{
    static const jzx_observer observer = {.on_transition = count_move};
    for (int in_a_row = 0; in_a_row < 2; in_a_row++) {
        _Atomic uint32_t moves[8] = {0};
        world *w = world_open();
        REQUIRE_OK(jzx_system_set_observer(w->system, &observer, (void *)moves, in_a_row));
        world_settle(w);
        for (size_t at = 0; at < PLACES; at++) {
            puppet *a = puppet_up(puppet_at(w, "mover", places[at]));
            order(a, T_STOP, 0);
            WAIT(w, atomic_load(&moves[JZX_STATE_TERMINATED]) == at + 1);
            CHECK_EQ(atomic_load(&moves[JZX_STATE_RUNNING]), at + 1);
            CHECK_EQ(atomic_load(&moves[JZX_STATE_STOPPING]), at + 1);
        }
        world_settle(w);
        REQUIRE_OK(jzx_system_set_observer(w->system, NULL, NULL, 0));
        world_close(w);
    }
}

static const jzt_test tests[] = {
    {"transitions_of_all_dispatchers_are_told_R14_R31",
     test_transitions_of_all_dispatchers_are_told_R14_R31},
    {"a_start_elsewhere_is_told_in_its_place_R6_R31",
     test_a_start_elsewhere_is_told_in_its_place_R6_R31},
    {"a_start_while_the_last_one_is_heard_is_told_in_its_place_R6",
     test_a_start_while_the_last_one_is_heard_is_told_in_its_place_R6},
    {"many_starts_are_told_in_order_R6", test_many_starts_are_told_in_order_R6},
    {"no_notice_outlives_its_parent_R9", test_no_notice_outlives_its_parent_R9},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
