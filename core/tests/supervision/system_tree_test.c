/* Goal: trees over several dispatchers start in order, stop in reverse order, nest, and can be
 * changed while they run (R3, R6, R16, R18, R19, R20, R31). Method: a supervisor in each place with
 * children, and supervisors, in every place. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "nest.h"

enum { WORK = 1, GO = 2 };

static const jzx_supervisor_spec patient = {.intensity = JZX_INTENSITY_MAX};

/* The seq of the nth time a puppet saw this signal. */
static uint64_t seq_of(puppet *a, uint32_t signal)
{
    sight e = {0};
    (void)puppet_count(a, signal, 0, &e);
    return e.seq;
}

static void start_and_stop(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    nest_start(n);
    for (size_t i = 1; i < KIDS; i++) { /* each when the one before is RUNNING */
        CHECK(atomic_load(&n->kid[i]->init_seq) > seq_of(n->kid[i - 1], JZX_SIGNAL_POST_START));
    }
    CHECK_OK(jzx_stop(w->loop, n->sup));
    (void)nest_wait_end(n, JZX_SIGNAL_CHILD_ENDED, JZX_REASON_SHUTDOWN);
    for (size_t i = 0; i < KIDS; i++) {
        CHECK_PUPPET_ENDED(n->kid[i], JZX_REASON_SHUTDOWN);
        if (i > 0) { /* nobody is asked before the one after it is gone */
            CHECK(seq_of(n->kid[i - 1], JZX_SIGNAL_PRE_STOP) > atomic_load(&n->kid[i]->end_seq));
        }
    }
    nest_close(n);
}

static void test_children_start_in_order_and_stop_in_reverse_R16(void)
{
    for_all_places(start_and_stop);
}

static void start_fails(world *w, size_t at)
{
    for (int how = 0; how < 2; how++) {
        nest *n = nest_new(w, at, JZX_PERMANENT);
        n->kid[3]->panics[IN_INIT] = how == 0;
        n->kid[3]->answer[IN_INIT] = JZX_BEHAVIOR_FAIL;
        nest_begin(n);
        (void)nest_wait_end(n, JZX_SIGNAL_CHILD_FAILED, JZX_REASON_START_FAILED);
        for (size_t i = 0; i < 3; i++) {
            CHECK_PUPPET_ENDED(n->kid[i], JZX_REASON_SHUTDOWN);
            CHECK(i == 0 ||
                  atomic_load(&n->kid[i]->end_seq) < atomic_load(&n->kid[i - 1]->end_seq));
        }
        CHECK_EQ(atomic_load(&n->kid[4]->inits), 0);
        nest_close(n);
    }
}

static void test_a_start_that_fails_elsewhere_takes_the_tree_down_R19(void)
{
    for_all_places(start_fails);
}

/* An id of a dispatcher that is not there is a failed start too, and nothing hangs. */
static void unknown_place(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    n->children[2].dispatcher = "nowhere";
    puppet_call(n->boss, nest_spawn, n);
    if (n->err == JZX_OK) {
        (void)nest_wait_end(n, JZX_SIGNAL_CHILD_FAILED, JZX_REASON_START_FAILED);
    } else {
        CHECK_EQ(n->err, JZX_ERR_NO_SUCH_DISPATCHER); /* "those of jzx_spawn()" */
        CHECK_EQ(atomic_load(&n->kid[0]->inits), 0);
    }
    CHECK_EQ(atomic_load(&n->kid[2]->inits), 0);
    nest_close(n);
}

static void test_a_child_of_an_unknown_dispatcher_does_not_start_R19(void)
{
    for_all_places(unknown_place);
}

/* Deadlines of children elsewhere: own time, brutal, and one that needs a while. */
static jzx_behavior_result end_on_go(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    (void)self;
    return msg->tag == GO ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

static void stop_times(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    n->children[1].shutdown_ms = 40; /* k1 defers for ever */
    n->kid[1]->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER;
    n->children[2].shutdown_ms = JZX_SHUTDOWN_BRUTAL;
    n->kid[3]->answer[JZX_SIGNAL_PRE_STOP] = JZX_BEHAVIOR_DEFER; /* k3 needs a while, and gets it */
    n->kid[3]->on = end_on_go;
    nest_start(n);
    REQUIRE_OK(jzx_send_after(w->loop, atomic_load(&n->kid[3]->id), 30, NULL, 0, GO, NULL));
    CHECK_OK(jzx_stop(w->loop, n->sup));
    (void)nest_wait_end(n, JZX_SIGNAL_CHILD_ENDED, JZX_REASON_SHUTDOWN);
    static const uint32_t reasons[KIDS] = {JZX_REASON_SHUTDOWN, JZX_REASON_STOP_TIMEOUT,
                                           JZX_REASON_KILLED, JZX_REASON_NORMAL,
                                           JZX_REASON_SHUTDOWN};
    for (size_t i = 0; i < KIDS; i++) {
        CHECK_PUPPET_ENDED(n->kid[i], reasons[i]);
        CHECK(i == 0 || atomic_load(&n->kid[i]->end_seq) < atomic_load(&n->kid[i - 1]->end_seq));
    }
    CHECK_EQ(puppet_signals(n->kid[2], JZX_SIGNAL_PRE_STOP), 0);
    uint64_t took = atomic_load(&n->kid[1]->end_ns) - atomic_load(&n->kid[2]->end_ns);
    CHECK(took >= 39 * MS && took < 4000 * MS);
    nest_close(n);
}

static void test_children_elsewhere_get_their_time_and_no_more_R16(void)
{
    for_all_places(stop_times);
}

/* Nested: top in one place, mid in another, leaves in a third. */
static void nested(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    jzx_supervisor_spec strict = {.intensity = JZX_INTENSITY_NEVER};
    jzx_child_spec leaves[] = {n->children[2], n->children[3]};
    jzx_supervisor_init mid = {.spec = &strict, .children = leaves, .child_count = 2};
    n->children[1] = (jzx_child_spec){.id = "mid",
                                      .supervisor = &mid,
                                      .mode = JZX_PERMANENT,
                                      .dispatcher = places[(at + 1) % PLACES]};
    n->count = 2; /* k0 and mid */
    n->spec = patient;
    nest_begin(n);
    WAIT(w, puppet_signals(n->kid[3], JZX_SIGNAL_POST_START) == 1);
    world_settle(w);
    jzx_actor_id leaf = atomic_load(&n->kid[2]->id), other = atomic_load(&n->kid[3]->id);
    jzx_child_info info = nest_child(n, "mid");
    jzx_actor_id mid_id = info.actor;
    CHECK_EQ(info.is_supervisor, 1);
    CHECK_EQ(jzx_id_dispatcher(mid_id) == jzx_id_dispatcher(n->sup), 0);
    puppet_end_by(n->kid[2], BY_FAIL); /* mid gives up, top makes it anew */
    WAIT(w, atomic_load(&n->kid[2]->ups) == 2 && atomic_load(&n->kid[3]->ups) == 2);
    world_settle(w);
    CHECK_EQ(nest_child(n, "mid").actor, mid_id);
    CHECK_EQ(nest_child(n, "mid").restarts, 1);
    CHECK(atomic_load(&n->kid[2]->id) != leaf && atomic_load(&n->kid[3]->id) != other);
    CHECK_EQ(jzx_send_u64(w->loop, leaf, 1, WORK), JZX_ERR_NO_SUCH_ACTOR); /* R3 */
    CHECK_EQ(jzx_send_u64(w->loop, other, 1, WORK), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_OK(jzx_send_u64(w->loop, atomic_load(&n->kid[2]->id), 1, WORK));
    WAIT(w, puppet_saw(n->kid[2], WORK) == 1);
    CHECK_EQ(atomic_load(&n->kid[0]->ups), 1);
    CHECK_OK(jzx_kill(w->loop, mid_id)); /* and a kill of it takes its leaves first */
    WAIT(w, atomic_load(&n->kid[2]->ups) == 3 && atomic_load(&n->kid[3]->ups) == 3);
    CHECK_EQ(atomic_load(&n->kid[2]->deinits), 2);
    nest_close(n);
}

static void test_supervisors_nest_over_dispatchers_R19(void)
{
    for_all_places(nested);
}

static void significant(world *w, size_t at)
{
    for (uint32_t all = 0; all < 2; all++) {
        nest *n = nest_new(w, at, JZX_TRANSIENT);
        n->spec = patient;
        n->spec.auto_shutdown = all ? JZX_AUTO_ALL_SIGNIFICANT : JZX_AUTO_ANY_SIGNIFICANT;
        n->children[1].significant = 1;
        n->children[4].significant = 1;
        nest_start(n);
        jzx_actor_id id = atomic_load(&n->kid[1]->id);
        puppet_end_by(n->kid[1], BY_FAIL); /* it is restarted: that is no end */
        WAIT_LIFE(n->kid[1], id, 2);
        puppet_end_by(n->kid[1], BY_RETURN);
        CHECK_PUPPET_ENDED(n->kid[1], JZX_REASON_NORMAL);
        if (all) {
            world_settle(w);
            CHECK_EQ(puppet_signals(n->boss, JZX_SIGNAL_CHILD_ENDED), 0);
            puppet_end_by(n->kid[4], BY_RETURN);
        }
        (void)nest_wait_end(n, JZX_SIGNAL_CHILD_ENDED, JZX_REASON_SHUTDOWN);
        CHECK_PUPPET_ENDED(n->kid[0], JZX_REASON_SHUTDOWN);
        nest_close(n);
    }
}

static void test_significant_children_elsewhere_end_their_supervisor_R19(void)
{
    for_all_places(significant);
}

/* Calls that change a running supervisor, made inside the boss. */
static void terminate(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    n->err = jzx_supervisor_terminate_child(ctx->loop, n->sup, n->name);
}

static void restart(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    n->err = jzx_supervisor_restart_child(ctx->loop, n->sup, n->name, &n->id);
}

static void forget(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    n->err = jzx_supervisor_delete_child(ctx->loop, n->sup, n->name);
}

static void add(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    n->err = jzx_supervisor_start_child(ctx->loop, n->sup, &n->children[KIDS], &n->id);
}

static void ask_spec(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    n->err = jzx_supervisor_get_spec(ctx->loop, n->sup, n->name, &n->got);
}

static void administered(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_PERMANENT);
    n->spec = patient;
    nest_start(n);
    for (size_t i = 0; i < KIDS; i++) {
        n->name = n->kid[i]->name;
        puppet_call(n->boss, forget, n);
        CHECK_EQ(n->err, JZX_ERR_CHILD_RUNNING);
        puppet_call(n->boss, terminate, n);
        CHECK_OK(n->err);
        CHECK_PUPPET_ENDED(n->kid[i], JZX_REASON_SHUTDOWN);
        world_settle(w);
        CHECK_EQ(nest_child(n, n->name).status, JZX_CHILD_DOWN);
        CHECK_EQ(nest_child(n, n->name).actor, JZX_NOBODY);
        puppet_call(n->boss, restart, n);
        CHECK_OK(n->err);
        WAIT(w, atomic_load(&n->kid[i]->ups) == 2);
        CHECK_EQ(n->id, atomic_load(&n->kid[i]->id));
        world_settle(w);
        CHECK_EQ(nest_child(n, n->name).status, JZX_CHILD_RUNNING);
        puppet_call(n->boss, ask_spec, n);
        CHECK_OK(n->err);
        CHECK_STR(n->got.dispatcher, n->kid[i]->place);
        char place[32]; /* a new child, whose spec is gone when the call returned */
        snprintf(place, sizeof place, "%s", places[i]);
        puppet *extra = puppet_at(w, "extra", places[i]);
        n->children[KIDS] = puppet_spec(extra, JZX_TEMPORARY);
        n->children[KIDS].dispatcher = place;
        puppet_call(n->boss, add, n);
        CHECK_OK(n->err);
        memset(place, '?', sizeof place - 1);
        WAIT(w, puppet_is_up(extra));
        CHECK_EQ(n->id, atomic_load(&extra->id));
        puppet_end_by(extra, BY_FAIL);
        CHECK_PUPPET_ENDED(extra, JZX_REASON_FAILED);
        world_settle(w);
    }
    for (size_t i = 0; i < KIDS; i++) {
        atomic_store(&n->kid[i]->ends, 0); /* they live again */
    }
    nest_close(n);
}

static void test_children_elsewhere_are_added_stopped_and_started_R19(void)
{
    for_all_places(administered);
}

/* A dynamic supervisor makes its children elsewhere. */
enum { MANY = 40 };
static puppet *crowd[MANY];

static void start_crowd(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    for (size_t i = 0; i < MANY; i++) {
        jzx_actor_id id = 0;
        CHECK_OK(jzx_supervisor_start_dynamic(ctx->loop, n->sup, crowd[i], &id));
        atomic_store(&crowd[i]->id, id);
    }
    CHECK_OK(jzx_supervisor_count(ctx->loop, n->sup, &n->counts));
}

static void dynamic(world *w, size_t at)
{
    for (size_t to = 0; to < PLACES; to++) {
        nest *n = nest_new(w, at, JZX_TRANSIENT);
        n->spec = patient;
        n->spec.strategy = JZX_DYNAMIC;
        n->count = 1;
        n->children[0].arg = NULL;
        n->children[0].dispatcher = places[to];
        nest_begin(n);
        world_settle(w);
        for (size_t i = 0; i < MANY; i++) {
            char name[64];
            snprintf(name, sizeof name, "c%zu.%zu.%zu", at, to, i);
            crowd[i] = puppet_at(w, name, places[to]);
        }
        puppet_call(n->boss, start_crowd, n);
        for (size_t i = 0; i < MANY; i++) {
            WAIT(w, puppet_is_up(crowd[i]));
            CHECK_EQ(jzx_id_dispatcher(atomic_load(&crowd[i]->id)) == jzx_id_dispatcher(n->sup),
                     at == to && at != AT_PINNED);
            puppet_end_by(crowd[i], i % 2 == 0 ? BY_FAIL : BY_KILL);
        }
        for (size_t i = 0; i < MANY; i++) {
            WAIT(w, atomic_load(&crowd[i]->ups) == 2);
        }
        world_settle(w);
        nest_close(n);
    }
}

static void test_a_dynamic_supervisor_makes_children_elsewhere_R19(void)
{
    for_all_places(dynamic);
}

/* R18, R20: a watch survives restarts, and tells of them when asked; a link does not. */
typedef struct looker {
    puppet *target;
    jzx_watch_ref plain, full;
} looker;

static void look(jzx_context *ctx, puppet *self, void *arg)
{
    looker *l = arg;
    (void)self;
    jzx_actor_id id = atomic_load(&l->target->id);
    CHECK_OK(jzx_trap_exits(ctx, 1));
    CHECK_OK(jzx_watch(ctx->loop, id, 0, &l->plain));
    CHECK_OK(jzx_watch(ctx->loop, id, JZX_WATCH_RESTARTS, &l->full));
    CHECK_OK(jzx_link(ctx->loop, id));
}

static void watched_restarts(world *w, size_t at)
{
    nest *n = nest_new(w, at, JZX_TRANSIENT);
    n->spec = patient;
    nest_start(n);
    for (size_t i = 0; i < KIDS; i++) {
        puppet *eye = puppet_up(puppet_at(w, "eye", places[(2 * i + at) % PLACES]));
        static looker l;
        l = (looker){.target = n->kid[i]};
        puppet_call(eye, look, &l);
        world_settle(w);
        jzx_actor_id id = atomic_load(&n->kid[i]->id);
        for (uint32_t life = 2; life < 5; life++) {
            puppet_end_by(n->kid[i], BY_FAIL);
            WAIT_LIFE(n->kid[i], id, life);
            WAIT(w, puppet_signals(eye, JZX_SIGNAL_RESTARTED) == life - 1);
            sight e = {0};
            (void)puppet_count(eye, JZX_SIGNAL_RESTARTED, 0, &e);
            CHECK_EQ(e.ref, l.full);
            CHECK_EQ(e.incarnation, life);
            CHECK_EQ(e.sender, id);
        }
        world_settle(w);
        sight e = {0};
        CHECK_EQ(puppet_count(eye, JZX_SIGNAL_EXIT, 0, &e), 1); /* of the first life only */
        CHECK_EQ(e.reason.kind, JZX_REASON_FAILED);
        CHECK_EQ(puppet_signals(eye, JZX_SIGNAL_TERMINATED), 0);
        puppet_end_by(n->kid[i], BY_RETURN);
        WAIT(w, puppet_signals(eye, JZX_SIGNAL_TERMINATED) == 2);
        (void)puppet_count(eye, JZX_SIGNAL_TERMINATED, 0, &e);
        CHECK_EQ(e.reason.kind, JZX_REASON_NORMAL);
        CHECK_EQ(e.incarnation, 4);
        CHECK_OK(jzx_stop(w->loop, atomic_load(&eye->id)));
        WAIT(w, atomic_load(&eye->ends) == 1);
    }
    nest_close(n);
}

static void test_watches_survive_restarts_elsewhere_and_links_do_not_R20(void)
{
    for_all_places(watched_restarts);
}

static const jzt_test tests[] = {
    {"children_start_in_order_and_stop_in_reverse_R16",
     test_children_start_in_order_and_stop_in_reverse_R16},
    {"a_start_that_fails_elsewhere_takes_the_tree_down_R19",
     test_a_start_that_fails_elsewhere_takes_the_tree_down_R19},
    {"a_child_of_an_unknown_dispatcher_does_not_start_R19",
     test_a_child_of_an_unknown_dispatcher_does_not_start_R19},
    {"children_elsewhere_get_their_time_and_no_more_R16",
     test_children_elsewhere_get_their_time_and_no_more_R16},
    {"supervisors_nest_over_dispatchers_R19", test_supervisors_nest_over_dispatchers_R19},
    {"significant_children_elsewhere_end_their_supervisor_R19",
     test_significant_children_elsewhere_end_their_supervisor_R19},
    {"children_elsewhere_are_added_stopped_and_started_R19",
     test_children_elsewhere_are_added_stopped_and_started_R19},
    {"a_dynamic_supervisor_makes_children_elsewhere_R19",
     test_a_dynamic_supervisor_makes_children_elsewhere_R19},
    {"watches_survive_restarts_elsewhere_and_links_do_not_R20",
     test_watches_survive_restarts_elsewhere_and_links_do_not_R20},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
