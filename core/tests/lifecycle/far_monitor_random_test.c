/* Goal: however watches, links, ends and restarts on several dispatchers meet, every watch is told
 * once or was taken back, nothing is told twice or too late, and at rest nothing is left (R18,
 * R20). Method: walkers on "loop", on pinned loops and on pools get orders drawn from a seed; each
 * keeps its own books and checks every notice against them. When all is quiet the books of all
 * walkers are held against each other and against the counters. Threads decide the rest, so a seed
 * does not repeat a run, only its orders. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum {
    IMMORTALS = 20, /* restarted by a supervisor on "loop" */
    MORTALS = 10,   /* end for good, and the test puts another one in their place */
    WALKERS = IMMORTALS + MORTALS,
    WATCHES = 16, /* of one walker at a time */
    ROUNDS = JZT_SANITIZED ? 8 : 24,
    ORDERS = JZT_SANITIZED ? 600 : 1500, /* in a round */
    ORDER = 1,
    NOTHING = 2,
    FAIL = 3
};

typedef struct watching {
    jzx_watch_ref ref; /* 0: the entry is free */
    jzx_actor_id target;
    uint32_t heard; /* the latest incarnation it was told */
    bool restarts;
} watching;

typedef struct town town;

/* One actor and its books. They are its own while it lives, and the test's at rest. */
typedef struct walker {
    town *t;
    struct walker *older; /* all that ever were */
    size_t number;
    bool loose;           /* anybody links and unlinks anybody: only sums can be checked */
    bool ended;           /* for the test */
    uint32_t incarnation; /* the latest that ran */
    watching watches[WATCHES];
    jzx_watch_ref over; /* the last reference that is over */
    bool linked[WALKERS];
    jzx_actor_id linked_to[WALKERS];
} walker;

struct town {
    world *w;
    walker *walkers; /* all that ever were */
    walker *now[WALKERS];
    _Atomic jzx_actor_id ids[WALKERS];
    _Atomic jzx_actor_id old_ids[WALKERS]; /* of mortals before */
    _Atomic uint64_t told;
    _Atomic uint64_t exits;
};

/* Even ones trap exits and are who links, so that they know of every link they have. */
static bool traps(const walker *me)
{
    return me->number % 2 == 0;
}

static watching *entry_of(walker *me, jzx_watch_ref ref)
{
    for (size_t i = 0; i < WATCHES; i++) {
        if (me->watches[i].ref == ref) {
            return &me->watches[i];
        }
    }
    return NULL;
}

static void close_entry(walker *me, watching *entry)
{
    me->over = entry->ref;
    *entry = (watching){0};
}

static void forget_links(walker *me)
{
    memset(me->linked, 0, sizeof me->linked);
}

static jzx_behavior_result walker_init(jzx_context *ctx, void *arg)
{
    walker *me = arg;
    ctx->state = me;
    me->incarnation++;
    me->over = 0;
    memset(me->watches, 0, sizeof me->watches); /* what a former life asked for is gone */
    forget_links(me);
    atomic_store(&me->t->ids[me->number], ctx->self);
    CHECK_OK(jzx_trap_exits(ctx, traps(me)));
    return JZX_BEHAVIOR_OK;
}

static void hear_terminated(walker *me, const jzx_signal *signal)
{
    watching *entry = entry_of(me, signal->ref);
    CHECK(entry != NULL); /* else it was told twice, after an unwatch, or to another life */
    if (entry != NULL) {
        CHECK_EQ(entry->target, signal->from);
        close_entry(me, entry);
    }
    atomic_fetch_add(&me->t->told, 1);
}

static void hear_restarted(walker *me, const jzx_signal *signal)
{
    watching *entry = entry_of(me, signal->ref);
    CHECK(entry != NULL);
    if (entry != NULL) {
        CHECK_EQ(entry->target, signal->from);
        CHECK(entry->restarts);
        CHECK(signal->incarnation > entry->heard);
        entry->heard = signal->incarnation;
    }
}

static void hear_exit(walker *me, const jzx_signal *signal)
{
    CHECK(traps(me));
    atomic_fetch_add(&me->t->exits, 1);
    if (me->loose) {
        return;
    }
    size_t from = 0;
    while (from < WALKERS && !(me->linked[from] && me->linked_to[from] == signal->from)) {
        from++;
    }
    /* A link that others made can be told here too, but those of lower numbers make none. */
    if (from < WALKERS) {
        me->linked[from] = false;
    } else {
        CHECK(me->number > 0);
    }
}

static jzx_behavior_result walker_signal(jzx_context *ctx, const jzx_signal *signal)
{
    walker *me = ctx->state;
    switch (signal->kind) {
    case JZX_SIGNAL_TERMINATED:
        hear_terminated(me, signal);
        break;
    case JZX_SIGNAL_RESTARTED:
        hear_restarted(me, signal);
        break;
    case JZX_SIGNAL_EXIT:
        hear_exit(me, signal);
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

/* Who was killed while it is in its code gets nothing new. */
static bool was_done(jzx_err err)
{
    return err == JZX_OK || err == JZX_ERR_STOPPING;
}

static void do_watch(jzx_context *ctx, walker *me, size_t other, jzt_rng *rng)
{
    watching *entry = entry_of(me, 0);
    jzx_actor_id id = atomic_load(&me->t->ids[other]);
    jzx_actor_id old = atomic_load(&me->t->old_ids[other]);
    id = old != 0 && jzt_rng_below(rng, 4) == 0 ? old : id;
    if (entry == NULL || id == 0 || id == ctx->self) {
        return;
    }
    uint32_t flags = jzt_rng_below(rng, 2) == 0 ? JZX_WATCH_RESTARTS : 0;
    entry->target = id;
    entry->restarts = flags != 0;
    jzx_err err = jzx_watch(ctx->loop, id, flags, &entry->ref);
    CHECK(was_done(err));
}

static void do_unwatch(jzx_context *ctx, walker *me, jzt_rng *rng)
{
    watching *entry = &me->watches[jzt_rng_below(rng, WATCHES)];
    if (entry->ref != 0) { /* it was not told yet, so this must come in time */
        CHECK_OK(jzx_unwatch(ctx->loop, entry->ref));
        close_entry(me, entry);
    }
    if (me->over != 0) {
        CHECK_EQ(jzx_unwatch(ctx->loop, me->over), JZX_ERR_NO_SUCH_REF);
    }
}

static void do_link(jzx_context *ctx, walker *me, size_t other, bool link)
{
    jzx_actor_id id = atomic_load(&me->t->ids[other]);
    if (id == 0 || id == ctx->self) {
        return;
    }
    if (me->loose) {
        CHECK(was_done(link ? jzx_link(ctx->loop, id) : jzx_unlink(ctx->loop, id)));
        return;
    }
    if (!traps(me) || other <= me->number) {
        return;
    }
    if (!link) {
        id = me->linked[other] ? me->linked_to[other] : id;
        CHECK_OK(jzx_unlink(ctx->loop, id));
        me->linked[other] = false;
    } else if (!me->linked[other]) {
        CHECK(was_done(jzx_link(ctx->loop, id)));
        me->linked[other] = true;
        me->linked_to[other] = id;
    }
}

/* A mortal is killed. A second kill would end an immortal for good: it is made to fail. */
static void shoot(jzx_context *ctx, const walker *me, size_t other)
{
    jzx_actor_id id = atomic_load(&me->t->ids[other]);
    jzx_err err =
        other >= IMMORTALS ? jzx_kill(ctx->loop, id) : jzx_send_u64(ctx->loop, id, 0, FAIL);
    CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING ||
          err == JZX_ERR_MAILBOX_FULL);
}

static jzx_behavior_result walk(jzx_context *ctx, const jzx_message *msg)
{
    walker *me = ctx->state;
    jzt_rng rng = {msg->u64};
    if (msg->tag == NOTHING) {
        return JZX_BEHAVIOR_OK;
    }
    size_t other = jzt_rng_below(&rng, WALKERS);
    uint64_t what = msg->tag == FAIL ? 87 : jzt_rng_below(&rng, 100);
    if (what < 35) {
        do_watch(ctx, me, other, &rng);
    } else if (what < 55) {
        do_unwatch(ctx, me, &rng);
    } else if (what < 75) {
        do_link(ctx, me, other, true);
    } else if (what < 87) {
        do_link(ctx, me, other, false);
    } else if (what < 90) {
        forget_links(me); /* a failure ends them at once */
        return jzx_fail(ctx, 7, "as told");
    } else if (what < 92) {
        forget_links(me);
        jzx_panic(ctx, 8, "as told");
    } else if (what < 94) {
        return JZX_BEHAVIOR_STOP;
    } else if (what < 97) {
        shoot(ctx, me, other);
    } else { /* several at once: the same target in one breath */
        do_watch(ctx, me, other, &rng);
        do_link(ctx, me, other, true);
        shoot(ctx, me, other);
        do_unwatch(ctx, me, &rng);
        do_link(ctx, me, other, false);
    }
    return JZX_BEHAVIOR_OK;
}

static walker *walker_new(town *t, size_t number, bool loose)
{
    walker *me = calloc(1, sizeof *me);
    REQUIRE(me != NULL);
    me->t = t;
    me->number = number;
    me->loose = loose;
    me->older = t->walkers;
    t->walkers = me;
    t->now[number] = me;
    return me;
}

static void spawn_mortal(town *t, size_t number, bool loose)
{
    jzx_actor_id id = 0;
    jzx_spawn_opts opts = {.behavior = walk,
                           .init = walker_init,
                           .on_signal = walker_signal,
                           .state = walker_new(t, number, loose),
                           .dispatcher = places[number % PLACES]};
    atomic_store(&t->old_ids[number], atomic_load(&t->ids[number]));
    REQUIRE_OK(jzx_spawn(t->w->loop, &opts, &id));
    atomic_store(&t->ids[number], id);
}

static jzx_actor_id spawn_immortals(town *t, bool loose)
{
    static char names[IMMORTALS][8];
    jzx_child_spec children[IMMORTALS] = {0};
    jzx_supervisor_spec spec = {.intensity = JZX_INTENSITY_MAX};
    for (size_t i = 0; i < IMMORTALS; i++) {
        snprintf(names[i], sizeof names[i], "i%zu", i);
        children[i] = (jzx_child_spec){.id = names[i],
                                       .behavior = walk,
                                       .init = walker_init,
                                       .arg = walker_new(t, i, loose),
                                       .on_signal = walker_signal,
                                       .dispatcher = places[i % PLACES]};
    }
    jzx_supervisor_init init = {
        .name = "sup", .spec = &spec, .children = children, .child_count = IMMORTALS};
    jzx_actor_id sup = 0;
    REQUIRE_OK(jzx_spawn_supervisor(t->w->loop, &init, &sup));
    for (size_t i = 0; i < IMMORTALS; i++) {
        WAIT(t->w, atomic_load(&t->ids[i]) != 0);
    }
    return sup;
}

/* Whether this walker can be reached; the message does nothing. */
static bool is_there(town *t, jzx_actor_id id)
{
    jzx_err err = jzx_send_async_u64(t->w->sender, id, 0, NOTHING);
    CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR);
    return err == JZX_OK;
}

static void check_entry(const town *t, const watching *entry)
{
    size_t of = 0;
    while (of < WALKERS && atomic_load(&t->ids[of]) != entry->target) {
        of++;
    }
    CHECK(of < WALKERS && !t->now[of]->ended); /* else the end was not told */
    if (of < WALKERS && entry->heard != 0) {
        CHECK_EQ(entry->heard, t->now[of]->incarnation);
    }
}

/* At rest: every book is true, and the counter is their sum. */
static void check_books(town *t, bool loose)
{
    uint64_t watches = 0, links = 0;
    world_settle(t->w);
    for (size_t i = 0; i < WALKERS; i++) {
        t->now[i]->ended = !is_there(t, atomic_load(&t->ids[i]));
        CHECK(!t->now[i]->ended || i >= IMMORTALS);
    }
    world_settle(t->w);
    for (size_t i = 0; i < WALKERS; i++) {
        const walker *me = t->now[i];
        for (size_t k = 0; k < WATCHES && !me->ended; k++) {
            if (me->watches[k].ref != 0) {
                watches++;
                check_entry(t, &me->watches[k]);
            }
        }
        for (size_t k = 0; k < WALKERS && !me->ended; k++) {
            links += me->linked[k];
            CHECK(!me->linked[k] || !t->now[k]->ended);
        }
    }
    uint64_t counted = world_counters(t->w).watches;
    if (loose) {
        CHECK(counted >= watches);
    } else {
        CHECK_EQ(counted, watches + links);
    }
}

static void play(bool loose)
{
    jzt_rng rng = jzt_rng_seeded();
    town *t = calloc(1, sizeof *t);
    REQUIRE(t != NULL);
    t->w = world_open();
    jzx_actor_id sup = spawn_immortals(t, loose);
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        for (size_t i = IMMORTALS; i < WALKERS; i++) {
            if (t->now[i] == NULL || !is_there(t, atomic_load(&t->ids[i]))) {
                spawn_mortal(t, i, loose);
            }
        }
        for (int i = 0; i < ORDERS; i++) {
            jzx_actor_id to = atomic_load(&t->ids[jzt_rng_below(&rng, WALKERS)]);
            jzx_err err = jzx_send_async_u64(t->w->sender, to, jzt_rng_next(&rng), ORDER);
            CHECK(err == JZX_OK || err == JZX_ERR_NO_SUCH_ACTOR || err == JZX_ERR_STOPPING ||
                  err == JZX_ERR_MAILBOX_FULL);
            if (i % 16 == 0) {
                REQUIRE_OK(jzx_loop_step(t->w->loop, 0));
            }
        }
        check_books(t, loose);
    }
    CHECK(atomic_load(&t->told) > 0);
    CHECK(atomic_load(&t->exits) > 0);
    for (size_t i = IMMORTALS; i < WALKERS; i++) {
        (void)jzx_system_stop(t->w->system, atomic_load(&t->ids[i]));
    }
    CHECK_OK(jzx_stop(t->w->loop, sup));
    WAIT(t->w, world_counters(t->w).live == 0);
    world_settle(t->w);
    CHECK_EQ(world_counters(t->w).watches, 0);
    world_close(t->w);
    while (t->walkers != NULL) {
        walker *next = t->walkers->older;
        free(t->walkers);
        t->walkers = next;
    }
    free(t);
}

static void test_every_watch_and_link_is_accounted_for_R20(void)
{
    play(false);
}

static void test_nothing_is_left_when_everybody_links_and_unlinks_R20(void)
{
    play(true);
}

static const jzt_test tests[] = {
    {"every_watch_and_link_is_accounted_for_R20", test_every_watch_and_link_is_accounted_for_R20},
    {"nothing_is_left_when_everybody_links_and_unlinks_R20",
     test_nothing_is_left_when_everybody_links_and_unlinks_R20},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
