/* Goal: the dead letters of a system are one sequence (R21): whoever reads on whichever dispatcher
 * reads those of all, and whoever subscribes hears of all, by one waiting notice at most.
 * Method: boxes in every place that bury what they have no room for; readers in every place with a
 * cursor of their own; a crowd that comes and goes meanwhile. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

enum { WORK = 1, FLOOD = 2, READ_MAX = 16 };

/* The world knows puppets by their names. */
static puppet *somebody(world *w, const char *what, const char *place)
{
    static uint32_t count;
    char name[32];
    snprintf(name, sizeof name, "%s %u", what, count++);
    puppet *a = puppet_at(w, name, place);
    a->mute = true;
    return a;
}

/* Boxes: each has room for two and drops what is new. */

static void flood(jzx_context *ctx, puppet *self, void *arg)
{
    const uint64_t *count = arg;
    (void)self;
    for (uint64_t i = 0; i < *count; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, i, WORK));
    }
}

static jzx_behavior_result box_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag == FLOOD) {
        uint64_t count = msg->u64;
        flood(ctx, self, &count);
    }
    return JZX_BEHAVIOR_OK;
}

static puppet *box_start(world *w, const char *place)
{
    puppet *a = somebody(w, "box", place);
    a->opts.mailbox_cap = 2;
    a->opts.full_policy = JZX_FULL_DROP_NEWEST;
    a->on = box_on;
    return puppet_up(a);
}

/* Makes some, and says how many there are then. "loop" stands still if the box is elsewhere. */
static uint64_t make_letters(puppet *box, uint64_t count)
{
    uint64_t dead = world_counters(box->w).dead;
    puppet_call(box, flood, &count);
    if (puppet_on_loop(box)) {
        WAIT(box->w, world_counters(box->w).dead >= dead + count - 2);
    } else {
        WAIT_STILL(world_counters(box->w).dead >= dead + count - 2);
    }
    return world_counters(box->w).dead;
}

/* Readers. */

typedef struct reader {
    puppet *self;
    uint64_t cursor;
    uint64_t last_ns;
    jzx_err err;
    _Atomic uint64_t told; /* by the last notice */
    _Atomic uint64_t notices;
    _Atomic uint64_t read; /* and lagged */
    _Atomic uint64_t lagged;
} reader;

static void read_all(jzx_loop *loop, reader *rd)
{
    jzx_dead_letter letters[READ_MAX];
    size_t count = READ_MAX;
    while (count == READ_MAX) {
        uint64_t lagged = 0;
        uint64_t before = rd->cursor;
        count = jzx_dead_letters_read(loop, &rd->cursor, letters, READ_MAX, &lagged);
        CHECK_EQ(rd->cursor, before + count + lagged);
        for (size_t i = 0; i < count; i++) {
            CHECK(letters[i].seq <= rd->cursor && letters[i].seq > before);
            CHECK(letters[i].time_ns >= rd->last_ns); /* what a rate limit relies on */
            before = letters[i].seq;
            rd->last_ns = letters[i].time_ns;
        }
        atomic_fetch_add(&rd->read, count + lagged);
        atomic_fetch_add(&rd->lagged, lagged);
    }
}

static jzx_behavior_result reader_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    reader *rd = self->arg;
    if (msg->tag == JZX_TAG_DEAD_LETTERS) {
        CHECK_EQ(msg->kind, JZX_KIND_NOTICE);
        CHECK(msg->u64 > atomic_load(&rd->told)); /* there is news in every notice */
        atomic_store(&rd->told, msg->u64);
        atomic_fetch_add(&rd->notices, 1);
        read_all(ctx->loop, rd);
        CHECK(rd->cursor >= msg->u64);
    }
    return JZX_BEHAVIOR_OK;
}

static void subscribe(jzx_context *ctx, puppet *self, void *arg)
{
    reader *rd = self->arg;
    (void)arg;
    rd->err = jzx_dead_letters_subscribe(ctx->loop);
}

static void unsubscribe(jzx_context *ctx, puppet *self, void *arg)
{
    reader *rd = self->arg;
    (void)arg;
    rd->err = jzx_dead_letters_unsubscribe(ctx->loop);
}

static void read_now(jzx_context *ctx, puppet *self, void *arg)
{
    (void)arg;
    read_all(ctx->loop, self->arg);
}

static void reader_start(world *w, reader *rd, const char *place)
{
    *rd = (reader){.self = somebody(w, "reader", place)};
    rd->self->on = reader_on;
    rd->self->arg = rd;
    puppet_up(rd->self);
    puppet_call(rd->self, subscribe, NULL);
    CHECK_OK(rd->err);
}

static void reader_end(reader *rd)
{
    puppet_end(rd->self);
}

static void test_letters_of_all_dispatchers_are_one_sequence_R21(void)
{
    world *w = world_open();
    puppet *box[PLACES];
    uint64_t count = 0;
    for (size_t i = 0; i < PLACES; i++) {
        box[i] = box_start(w, places[i]);
        count = make_letters(box[i], 20);
    }
    world_settle(w);
    count = world_counters(w).dead;
    jzx_dead_letter letters[256];
    uint64_t cursor = 0;
    uint64_t lagged = 7;
    REQUIRE_EQ(jzx_dead_letters_read(w->loop, &cursor, letters, 256, &lagged), count);
    CHECK_EQ(cursor, count);
    CHECK_EQ(lagged, 0);
    size_t from = 0;
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(letters[i].seq, i + 1);
        CHECK(i == 0 || letters[i].time_ns >= letters[i - 1].time_ns);
        while (from < PLACES && letters[i].target != ID_OF(box[from])) {
            from++; /* one place after the other */
        }
        REQUIRE(from < PLACES);
        char line[160];
        CHECK(jzx_dead_letter_format(&letters[i], line, sizeof line) > 0);
    }
    CHECK_EQ(from, PLACES - 1);
    for (size_t i = 0; i < PLACES; i++) {
        reader rd;
        reader_start(w, &rd, places[i]);
        puppet_call(rd.self, read_now, NULL);
        CHECK_EQ(atomic_load(&rd.read), count);
        CHECK_EQ(atomic_load(&rd.notices), 0); /* from before the subscription */
        reader_end(&rd);
        puppet_end(box[i]);
    }
    world_close(w);
}

static void test_a_subscriber_hears_of_letters_of_every_dispatcher_R21(void)
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        for (size_t from = 0; from < PLACES; from++) {
            reader rd;
            puppet *box = box_start(w, places[from]);
            reader_start(w, &rd, places[at]);
            for (int n = 0; n < 3; n++) {
                (void)make_letters(box, 5);
                world_settle(w);
                uint64_t made = world_counters(w).dead;
                CHECK_EQ(atomic_load(&rd.told), made);
                CHECK_EQ(atomic_load(&rd.read), made);
            }
            CHECK(atomic_load(&rd.notices) >= 3);
            reader_end(&rd);
            puppet_end(box);
        }
    }
    world_close(w);
}

static void test_however_many_letters_one_notice_waits_R21(void)
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        reader rd;
        puppet *box = box_start(w, places[(at + 2) % PLACES]);
        reader_start(w, &rd, places[at]);
        puppet_hold(rd.self); /* on "loop": it stands still */
        uint64_t made = 0;
        for (int n = 0; n < 10 && !puppet_on_loop(box); n++) {
            made = make_letters(box, 50);
        }
        puppet_release(rd.self);
        world_settle(w);
        if (made > 0) {
            CHECK(atomic_load(&rd.notices) <= 2); /* a second for what came while it read */
        }
        CHECK_EQ(atomic_load(&rd.told), puppet_on_loop(box) ? 0 : made);
        reader_end(&rd);
        puppet_end(box);
    }
    world_close(w);
}

static void test_who_unsubscribed_or_ended_hears_nothing_R21(void)
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        reader rd[2];
        puppet *box = box_start(w, places[(at + 1) % PLACES]);
        reader_start(w, &rd[0], places[at]);
        reader_start(w, &rd[1], places[at]);
        puppet_call(rd[0].self, unsubscribe, NULL);
        CHECK_OK(rd[0].err);
        (void)make_letters(box, 10);
        world_settle(w);
        CHECK_EQ(atomic_load(&rd[0].notices), 0);
        CHECK(atomic_load(&rd[1].notices) > 0);
        reader_end(&rd[1]);
        (void)make_letters(box, 10); /* nobody listens there */
        world_settle(w);
        puppet_call(rd[0].self, subscribe, NULL);
        CHECK_OK(rd[0].err);
        (void)make_letters(box, 10);
        world_settle(w);
        CHECK_EQ(atomic_load(&rd[0].told), world_counters(w).dead);
        reader_end(&rd[0]);
        puppet_end(box);
    }
    world_close(w);
}

static void test_who_is_late_learns_how_many_it_missed_R21(void)
{
    jzx_config config = {.dead_letter_ring = 4};
    world *w = world_open_with(&config, false);
    puppet *desk = box_start(w, "desk");
    puppet *crew = box_start(w, "crew");
    (void)make_letters(desk, 30);
    (void)make_letters(crew, 30);
    world_settle(w);
    uint64_t made = world_counters(w).dead;
    uint64_t cursor = 0;
    uint64_t lagged = 0;
    jzx_dead_letter letters[8];
    REQUIRE_EQ(jzx_dead_letters_read(w->loop, &cursor, letters, 8, &lagged), 4);
    CHECK_EQ(lagged, made - 4);
    CHECK_EQ(letters[0].seq, made - 3);
    CHECK_EQ(letters[3].seq, made);
    CHECK_EQ(letters[3].target, ID_OF(crew));
    puppet_end(desk);
    puppet_end(crew);
    world_close(w);
}

static void test_a_limit_holds_for_letters_of_all_R21(void)
{
    world *w = world_open();
    puppet *box[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        box[i] = box_start(w, places[i]);
        REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(box[i]), 40, FLOOD));
    }
    for (size_t i = 0; i < PLACES; i++) {
        WAIT(w, atomic_load(&box[i]->worked) > 1);
    }
    world_settle(w);
    jzx_letter_limit limit = {.per_second = 1, .burst = 10};
    jzx_dead_letter letter;
    uint64_t cursor = 0;
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    uint64_t printed = 0;
    uint64_t held_back = 0;
    while (jzx_dead_letters_read(w->loop, &cursor, &letter, 1, NULL) == 1) {
        uint64_t suppressed = 0;
        first_ns = letter.seq == 1 ? letter.time_ns : first_ns;
        last_ns = letter.time_ns;
        printed += (uint64_t)jzx_letter_limit_pass(&limit, &letter, &suppressed);
        held_back += suppressed;
    }
    CHECK_EQ(cursor, world_counters(w).dead);
    CHECK(printed >= 10 && printed <= 11 + (last_ns - first_ns) / (1000 * MS));
    CHECK_EQ(printed + held_back + limit.suppressed, cursor);
    for (size_t i = 0; i < PLACES; i++) {
        puppet_end(box[i]);
    }
    world_close(w);
}

static void test_a_crowd_of_readers_misses_nothing_R21(void)
{
    enum { ROUNDS = JZT_SANITIZED ? 5 : 20, EACH = 200 };
    world *w = world_open();
    puppet *box[PLACES];
    reader rd[PLACES];
    for (size_t i = 0; i < PLACES; i++) {
        box[i] = box_start(w, places[i]);
        reader_start(w, &rd[i], places[i]);
    }
    for (int n = 0; n < ROUNDS; n++) {
        for (size_t i = 0; i < PLACES; i++) {
            REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(box[i]), EACH, FLOOD));
        }
        for (size_t i = 0; i < PLACES; i++) {
            reader guest; /* comes and goes meanwhile; of "pinned" with its dispatcher */
            reader_start(w, &guest, places[(i + (size_t)n) % PLACES]);
            world_step(w);
            reader_end(&guest);
        }
        world_settle(w);
    }
    uint64_t made = world_counters(w).dead;
    CHECK(made >= (uint64_t)ROUNDS * PLACES * (EACH - 2));
    for (size_t i = 0; i < PLACES; i++) {
        CHECK_EQ(atomic_load(&rd[i].told), made);
        CHECK_EQ(atomic_load(&rd[i].read), made);
        puppet_end(box[i]);
        reader_end(&rd[i]);
    }
    world_close(w);
}

static void test_a_system_goes_with_letters_and_notices_under_way_R21(void)
{
    for (size_t at = 0; at < PLACES; at++) {
        world *w = world_open();
        reader rd[PLACES];
        for (size_t i = 0; i < PLACES; i++) {
            reader_start(w, &rd[i], places[i]);
        }
        puppet *box = box_start(w, places[at]);
        REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(box), 500, FLOOD));
        if (at != AT_LOOP) {
            WAIT_STILL(atomic_load(&box->worked) > 0);
        }
        jzx_sender_release(w->sender);
        REQUIRE_OK(jzx_system_destroy(w->system));
        CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
        jzx_fault_destroy(w->fault);
        cast_close(&w->cast);
        free(w);
    }
}

static void test_without_memory_nobody_subscribes_R21(void)
{
    world *w = world_open();
    puppet *box = box_start(w, "crew");
    for (size_t at = 0; at < PLACES; at++) {
        reader rd;
        reader_start(w, &rd, places[at]);
        puppet_call(rd.self, unsubscribe, NULL);
        world_settle(w);
        jzx_fault_arm_alloc(w->fault, 1, 1);
        puppet_call(rd.self, subscribe, NULL);
        jzx_fault_arm_alloc(w->fault, 0, 0);
        CHECK_EQ(rd.err, JZX_ERR_NO_MEMORY);
        (void)make_letters(box, 10);
        world_settle(w);
        CHECK_EQ(atomic_load(&rd.notices), 0);
        reader_end(&rd);
    }
    puppet_end(box);
    world_close(w);
}

/* In simulation: boxes and readers on two dispatchers, by turns as the seed says. */
typedef struct replay {
    uint64_t notices;
    uint64_t read;
    uint64_t cursor;
    uint64_t observed;
    uint64_t sum; /* of everything that was read and observed, in its order */
} replay;

static jzx_behavior_result sim_box(jzx_context *ctx, const jzx_message *msg)
{
    for (uint64_t i = 0; msg->tag == FLOOD && i < 20; i++) {
        CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, i, WORK));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result sim_reader(jzx_context *ctx, const jzx_message *msg)
{
    replay *rp = ctx->state;
    jzx_dead_letter letter;
    if (msg->tag == WORK) {
        CHECK_OK(jzx_dead_letters_subscribe(ctx->loop));
        return JZX_BEHAVIOR_OK;
    }
    rp->notices++;
    while (jzx_dead_letters_read(ctx->loop, &rp->cursor, &letter, 1, NULL) == 1) {
        rp->read++;
        CHECK_EQ(letter.seq, rp->read);
        rp->sum = rp->sum * 31 + letter.target % 1024 + letter.time_ns;
    }
    return JZX_BEHAVIOR_OK;
}

static void sim_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    replay *rp = ctx;
    rp->observed++;
    rp->sum = rp->sum * 31 + letter->seq + msg->u64;
}

static replay play(uint64_t seed)
{
    replay rp = {0};
    jzx_sim *sim = NULL;
    jzx_system *system = NULL;
    jzx_sim_opts opts = {.seed = seed};
    REQUIRE_OK(jzx_sim_create(&opts, &sim));
    jzx_config config = {.env = jzx_sim_env(sim)};
    jzx_dispatcher_spec specs[] = {
        {.name = "desk", .kind = JZX_DISPATCHER_PINNED},
        {.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = CREW_WORKERS}};
    jzx_system_config sc = {.loop = &config, .dispatchers = specs, .dispatcher_count = 2};
    REQUIRE_OK(jzx_system_create(&sc, &system));
    jzx_observer observer = {.on_dead_letter = sim_letter};
    REQUIRE_OK(jzx_system_set_observer(system, &observer, &rp, 1));
    jzx_loop *loop = jzx_system_loop(system);
    jzx_actor_id id = 0;
    jzx_spawn_opts reads = {.behavior = sim_reader, .state = &rp, .dispatcher = "desk"};
    REQUIRE_OK(jzx_spawn(loop, &reads, &id));
    REQUIRE_OK(jzx_send_u64(loop, id, 0, WORK));
    REQUIRE_OK(jzx_sim_settle_system(sim, system));
    const char *const at[] = {"loop", "desk", "crew"};
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        jzx_spawn_opts box = {.behavior = sim_box,
                              .mailbox_cap = 2,
                              .full_policy = JZX_FULL_DROP_NEWEST,
                              .dispatcher = at[i]};
        REQUIRE_OK(jzx_spawn(loop, &box, &id));
        REQUIRE_OK(jzx_send_u64(loop, id, 0, FLOOD));
    }
    REQUIRE_OK(jzx_sim_settle_system(sim, system));
    jzx_counters c;
    jzx_system_counters(system, &c);
    CHECK(c.dead >= 3 * 18);
    CHECK_EQ(rp.read, c.dead);
    CHECK_EQ(rp.observed, c.dead);
    CHECK(rp.notices >= 1);
    REQUIRE_OK(jzx_system_destroy(system));
    jzx_sim_destroy(sim);
    return rp;
}

static void test_simulated_letters_are_the_same_every_time_R30(void)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        replay first = play(seed);
        replay again = play(seed);
        CHECK_EQ(again.notices, first.notices);
        CHECK_EQ(again.sum, first.sum);
    }
}

static const jzt_test tests[] = {
    {"letters_of_all_dispatchers_are_one_sequence_R21",
     test_letters_of_all_dispatchers_are_one_sequence_R21},
    {"a_subscriber_hears_of_letters_of_every_dispatcher_R21",
     test_a_subscriber_hears_of_letters_of_every_dispatcher_R21},
    {"however_many_letters_one_notice_waits_R21", test_however_many_letters_one_notice_waits_R21},
    {"who_unsubscribed_or_ended_hears_nothing_R21",
     test_who_unsubscribed_or_ended_hears_nothing_R21},
    {"who_is_late_learns_how_many_it_missed_R21", test_who_is_late_learns_how_many_it_missed_R21},
    {"a_limit_holds_for_letters_of_all_R21", test_a_limit_holds_for_letters_of_all_R21},
    {"a_crowd_of_readers_misses_nothing_R21", test_a_crowd_of_readers_misses_nothing_R21},
    {"a_system_goes_with_letters_and_notices_under_way_R21",
     test_a_system_goes_with_letters_and_notices_under_way_R21},
    {"simulated_letters_are_the_same_every_time_R30",
     test_simulated_letters_are_the_same_every_time_R30},
    {"without_memory_nobody_subscribes_R21", test_without_memory_nobody_subscribes_R21},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
