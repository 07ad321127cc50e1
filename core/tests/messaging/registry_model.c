/* Goal: names and groups are what a plain table of them says, in order, whoever registers, waits,
 * watches, restarts and dies on whatever dispatcher; and the same seed gives the same run (R3, R16,
 * R18, R30). Method: a simulated system; actors draw what they do and tell the reference as they do
 * it. When all is quiet the two are compared, and so is what everybody was told. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/registry.h>
#include <jzx/testkit.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define MS UINT64_C(1000000)

enum { GO = 1, FAIL = 2, PLAIN = 7, STAFF = 5, ACTORS = PLAIN + STAFF };
enum { NAMES = 5, GROUPS = 3, WAITS = 3, TIMEOUT_MS = 40, SLACK_MS = 3 };
enum { SEEDS = JZT_SANITIZED ? 30 : 120, BATCHES = 400 };

static const char *const places[] = {"loop", "desk", "pool", "crew", "pinned"};
static const char *const names[NAMES] = {"n0", "n1", "n2", "n3", "n4"};
static const char *const groups[GROUPS] = {"g0", "g1", "g2"};

/* The reference. Lists are in the order of their making; -1 is nobody. */
typedef struct list {
    int at[ACTORS];
    int count;
} list;

typedef struct wait {
    jzx_name_ref ref; /* 0: none */
    int name;
    bool due; /* it has to be told, */
    jzx_actor_id id;
    uint64_t deadline_ns; /* 0: never */
} wait;

typedef struct watch {
    jzx_group_ref ref;
    uint64_t joined, left;         /* what it is to hear of */
    uint64_t got_joined, got_left; /* what it heard */
    uint64_t got_members, got_version;
    uint64_t notices;
} watch;

typedef struct actor {
    jzx_actor_id id; /* 0: it is not there */
    size_t place;
    wait waits[WAITS];
    watch watches[GROUPS];
} actor;

static struct {
    jzx_sim *sim;
    jzx_fault *fault;
    jzx_system *system;
    jzt_rng rng;
    actor actors[ACTORS];
    int holder[NAMES];
    int order[NAMES]; /* names that are had */
    int had;
    bool still; /* nobody does anything on their own */
    list members[GROUPS];
    uint64_t told, timed_out, changes, cancels, registered;
} m;

static uint64_t draw(uint64_t bound)
{
    return jzt_rng_below(&m.rng, bound);
}

/* What happens, as the reference has it. */

static void ref_took(int name, int who)
{
    m.holder[name] = who;
    m.order[m.had++] = name;
    m.registered++;
    for (size_t i = 0; i < ACTORS; i++) {
        for (size_t j = 0; j < WAITS; j++) {
            wait *w = &m.actors[i].waits[j];
            if (w->ref != 0 && w->name == name && !w->due) {
                w->due = true;
                w->id = m.actors[who].id;
            }
        }
    }
}

static void ref_freed(int name)
{
    int i = 0;
    while (m.order[i] != name) {
        i++;
    }
    memmove(&m.order[i], &m.order[i + 1], (size_t)(m.had - i - 1) * sizeof m.order[0]);
    m.had--;
    m.holder[name] = -1;
}

static bool ref_is_member(int group, int who)
{
    for (int i = 0; i < m.members[group].count; i++) {
        if (m.members[group].at[i] == who) {
            return true;
        }
    }
    return false;
}

static void ref_joined(int group, int who)
{
    list *all = &m.members[group];
    all->at[all->count++] = who;
    for (size_t i = 0; i < ACTORS; i++) {
        m.actors[i].watches[group].joined++;
    }
}

static void ref_left(int group, int who)
{
    list *all = &m.members[group];
    int i = 0;
    while (all->at[i] != who) {
        i++;
    }
    memmove(&all->at[i], &all->at[i + 1], (size_t)(all->count - i - 1) * sizeof all->at[0]);
    all->count--;
    for (size_t j = 0; j < ACTORS; j++) {
        m.actors[j].watches[group].left++;
    }
}

/* An incarnation is over: it waits for nothing, and watches nothing. */
static void ref_forgot(int who)
{
    memset(m.actors[who].waits, 0, sizeof m.actors[who].waits);
    memset(m.actors[who].watches, 0, sizeof m.actors[who].watches);
}

static void ref_ended(int who)
{
    for (int i = 0; i < NAMES; i++) {
        if (m.holder[i] == who) {
            ref_freed(i);
        }
    }
    for (int i = 0; i < GROUPS; i++) {
        if (ref_is_member(i, who)) {
            ref_left(i, who);
        }
    }
    ref_forgot(who);
    m.actors[who].id = JZX_NOBODY;
}

/* What actors do. */

static bool is_here(const jzx_context *ctx, int who)
{
    return jzx_id_dispatcher(m.actors[who].id) == jzx_id_dispatcher(ctx->self);
}

static void play_register(jzx_context *ctx, int self)
{
    int name = (int)draw(NAMES);
    int who = draw(4) == 0 ? (int)draw(ACTORS) : self;
    jzx_err err = jzx_register(ctx->loop, names[name], m.actors[who].id);
    jzx_err wanted = m.actors[who].id == JZX_NOBODY ? JZX_ERR_NO_SUCH_ACTOR
                     : !is_here(ctx, who)           ? JZX_ERR_WRONG_DISPATCHER
                     : m.holder[name] == who        ? JZX_OK
                     : m.holder[name] != -1         ? JZX_ERR_NAME_TAKEN
                                                    : JZX_OK;
    CHECK_EQ(err, wanted);
    if (err == JZX_OK && m.holder[name] == -1) {
        ref_took(name, who);
    }
}

static void play_unregister(jzx_context *ctx)
{
    int name = (int)draw(NAMES);
    int who = m.holder[name];
    jzx_err err = jzx_unregister(ctx->loop, names[name]);
    jzx_err wanted = who == -1            ? JZX_ERR_NO_SUCH_NAME
                     : !is_here(ctx, who) ? JZX_ERR_WRONG_DISPATCHER
                                          : JZX_OK;
    CHECK_EQ(err, wanted);
    if (err == JZX_OK) {
        ref_freed(name);
    }
}

static void play_wait(jzx_context *ctx, int self)
{
    wait *w = &m.actors[self].waits[draw(WAITS)];
    if (w->ref != 0) {
        if (draw(3) == 0) {
            CHECK_OK(jzx_await_cancel(ctx->loop, w->ref)); /* also if it is queued by now */
            w->ref = 0;
            m.cancels++;
        }
        return;
    }
    bool timed = draw(2) == 0;
    int name = (int)draw(NAMES);
    *w = (wait){.name = name,
                .due = m.holder[name] != -1,
                .id = m.holder[name] == -1 ? JZX_NOBODY : m.actors[m.holder[name]].id,
                .deadline_ns = timed ? jzx_sim_now(m.sim) + TIMEOUT_MS * MS : 0};
    CHECK_OK(
        jzx_await_name(ctx->loop, names[name], timed ? TIMEOUT_MS : JZX_TIMEOUT_INFINITE, &w->ref));
}

static void play_group(jzx_context *ctx, int self)
{
    int group = (int)draw(GROUPS);
    bool in = ref_is_member(group, self);
    watch *w = &m.actors[self].watches[group];
    switch (draw(4)) {
    case 0:
        CHECK_EQ(jzx_group_leave(ctx->loop, groups[group], ctx->self),
                 in ? JZX_OK : JZX_ERR_NO_SUCH_GROUP);
        if (in) {
            ref_left(group, self);
        }
        break;
    case 1:
        if (w->ref != 0) {
            CHECK_OK(jzx_group_unwatch(ctx->loop, w->ref));
            w->ref = 0;
        } else {
            *w = (watch){0};
            CHECK_OK(jzx_group_watch(ctx->loop, groups[group], &w->ref));
        }
        break;
    default:
        CHECK_OK(jzx_group_join(ctx->loop, groups[group], ctx->self));
        if (!in) {
            ref_joined(group, self);
        }
        break;
    }
}

static void be_told(int self, const jzx_name_notice *notice)
{
    wait *w = NULL;
    for (size_t i = 0; i < WAITS; i++) {
        if (m.actors[self].waits[i].ref == notice->ref) {
            w = &m.actors[self].waits[i];
        }
    }
    REQUIRE(w != NULL); /* asked for, not cancelled, not told before */
    CHECK_STR(notice->name, names[w->name]);
    if (notice->err == JZX_OK) {
        CHECK(w->due);
        CHECK_EQ(notice->id, w->id);
        m.told++;
    } else {
        CHECK_EQ(notice->err, JZX_ERR_TIMED_OUT);
        CHECK(w->deadline_ns != 0 && jzx_sim_now(m.sim) >= w->deadline_ns);
        m.timed_out++;
    }
    w->ref = 0;
}

static void see_change(int self, const jzx_group_notice *notice)
{
    watch *w = NULL;
    for (int i = 0; i < GROUPS; i++) {
        if (m.actors[self].watches[i].ref == notice->ref) {
            w = &m.actors[self].watches[i];
            CHECK_STR(notice->group, groups[i]);
        }
    }
    REQUIRE(w != NULL);
    CHECK(w->notices == 0 || notice->version > w->got_version); /* there is news in each */
    w->notices++;
    w->got_joined += notice->joined;
    w->got_left += notice->left;
    w->got_members = notice->members;
    w->got_version = notice->version;
    m.changes++;
}

static jzx_behavior_result actor_run(jzx_context *ctx, const jzx_message *msg)
{
    int self = (int)((const actor *)ctx->state - m.actors);
    if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_NAME) {
        be_told(self, msg->data);
    } else if (msg->kind == JZX_KIND_NOTICE && msg->tag == JZX_TAG_GROUP) {
        see_change(self, msg->data);
    } else if (msg->tag == FAIL) {
        return JZX_BEHAVIOR_FAIL;
    }
    if (msg->tag != GO && (m.still || draw(8) != 0)) {
        return JZX_BEHAVIOR_OK;
    }
    switch (draw(5)) {
    case 0:
        play_register(ctx, self);
        break;
    case 1:
        play_unregister(ctx);
        break;
    case 2:
        play_wait(ctx, self);
        break;
    default:
        play_group(ctx, self);
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result actor_init(jzx_context *ctx, void *arg)
{
    actor *self = ctx->state = arg;
    self->id = ctx->self;
    return JZX_BEHAVIOR_OK;
}

/* What the test does. */

static void spawn_plain(int who)
{
    actor *self = &m.actors[who];
    int name = (int)draw(NAMES);
    bool registers = draw(2) == 0;
    jzx_spawn_opts opts = {.behavior = actor_run,
                           .init = actor_init,
                           .state = self,
                           .name = names[name],
                           .flags = registers ? JZX_SPAWN_REGISTER : 0,
                           .dispatcher = places[draw(COUNT_OF(places))]};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = draw(2) == 0 ? jzx_spawn(jzx_system_loop(m.system), &opts, &id)
                               : jzx_system_spawn(m.system, &opts, &id);
    CHECK_EQ(err, registers && m.holder[name] != -1 ? JZX_ERR_NAME_TAKEN : JZX_OK);
    if (err == JZX_OK) {
        self->id = id;
        if (registers) {
            ref_took(name, who);
        }
    }
}

static void spawn_staff(void)
{
    jzx_child_spec children[STAFF];
    static char ids[STAFF][16];
    for (int i = 0; i < STAFF; i++) {
        snprintf(ids[i], sizeof ids[i], "s%d", i);
        children[i] = (jzx_child_spec){.id = ids[i],
                                       .behavior = actor_run,
                                       .init = actor_init,
                                       .arg = &m.actors[PLAIN + i],
                                       .mode = JZX_PERMANENT,
                                       .dispatcher = places[(size_t)i % 4]};
    }
    jzx_supervisor_spec spec = {.intensity = 1000, .period_ms = 1};
    jzx_supervisor_init init = {
        .name = "sup", .spec = &spec, .children = children, .child_count = STAFF};
    REQUIRE_OK(jzx_spawn_supervisor(jzx_system_loop(m.system), &init, NULL));
}

static void settle(void)
{
    REQUIRE_OK(jzx_system_run_until_idle(m.system, 0));
}

static void open_model(uint64_t seed)
{
    static const jzx_dispatcher_spec specs[] = {
        {.name = "desk", .kind = JZX_DISPATCHER_PINNED},
        {.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = 2},
    };
    memset(&m, 0, sizeof m);
    m.rng.state = seed;
    memset(m.holder, -1, sizeof m.holder);
    jzx_sim_opts sim = {.seed = seed};
    REQUIRE_OK(jzx_sim_create(&sim, &m.sim));
    REQUIRE_OK(jzx_fault_create(jzx_sim_env(m.sim), &m.fault));
    jzx_config loop = {.env = jzx_fault_env(m.fault),
                       .allocator = jzx_fault_allocator(m.fault),
                       .max_actors_per_tick = 2};
    jzx_system_config config = {.loop = &loop,
                                .dispatchers = specs,
                                .dispatcher_count = COUNT_OF(specs),
                                .pool_workers = 3};
    REQUIRE_OK(jzx_system_create(&config, &m.system));
    spawn_staff();
    settle();
}

static uint64_t close_model(void)
{
    uint64_t digest = jzx_sim_digest(m.sim);
    CHECK_OK(jzx_system_destroy(m.system));
    CHECK_EQ(jzx_fault_leaked(m.fault, NULL), 0);
    CHECK_STR(jzx_fault_check(m.fault), NULL);
    CHECK_STR(jzx_sim_check(m.sim), NULL);
    jzx_fault_destroy(m.fault);
    jzx_sim_destroy(m.sim);
    return digest;
}

/* The comparison, when all is quiet. */

static void compare_names(jzx_loop *loop)
{
    jzx_name_info info[NAMES];
    CHECK_EQ(jzx_registered(loop, info, NAMES), m.had);
    for (int i = 0; i < m.had; i++) {
        CHECK_STR(info[i].name, names[m.order[i]]);
        CHECK_EQ(info[i].id, m.actors[m.holder[m.order[i]]].id);
    }
    for (int i = 0; i < NAMES; i++) {
        CHECK_EQ(jzx_whereis(loop, names[i]),
                 m.holder[i] == -1 ? JZX_NOBODY : m.actors[m.holder[i]].id);
    }
    for (int who = 0; who < ACTORS; who++) {
        size_t count =
            m.actors[who].id == JZX_NOBODY ? 0 : jzx_names_of(loop, m.actors[who].id, info, NAMES);
        size_t next = 0;
        for (int i = 0; i < m.had; i++) {
            if (m.holder[m.order[i]] == who && next < count) {
                CHECK_STR(info[next++].name, names[m.order[i]]);
            }
        }
        CHECK_EQ(next, count);
    }
}

static void compare_groups(jzx_loop *loop)
{
    jzx_actor_id ids[ACTORS];
    for (int group = 0; group < GROUPS; group++) {
        const list *want = &m.members[group];
        CHECK_EQ(jzx_group_members(loop, groups[group], ids, ACTORS), want->count);
        for (int i = 0; i < want->count; i++) {
            CHECK_EQ(ids[i], m.actors[want->at[i]].id);
        }
    }
}

static void compare_told(jzx_loop *loop)
{
    for (int who = 0; who < ACTORS; who++) {
        for (int i = 0; i < WAITS; i++) {
            const wait *w = &m.actors[who].waits[i];
            CHECK(w->ref == 0 || !w->due);
            CHECK(w->ref == 0 || w->deadline_ns == 0 ||
                  w->deadline_ns + SLACK_MS * MS > jzx_sim_now(m.sim));
        }
        for (int i = 0; i < GROUPS; i++) {
            const watch *w = &m.actors[who].watches[i];
            if (w->ref != 0) {
                CHECK_EQ(w->got_joined, w->joined);
                CHECK_EQ(w->got_left, w->left);
                CHECK_EQ(w->got_members, m.members[i].count);
                CHECK_EQ(w->got_version, jzx_group_version(loop, groups[i]));
            }
        }
    }
}

static void compare(void)
{
    jzx_loop *loop = jzx_system_at(m.system, (uint32_t)draw(3)); /* all see the same */
    loop = loop == NULL ? jzx_system_loop(m.system) : loop;
    compare_names(loop);
    compare_groups(loop);
    compare_told(loop);
}

/* Deaths and restarts come alone: in what order they meet others is not the reference's business,
 * but what is left afterwards is. */
static void play_batch(void)
{
    jzx_loop *loop = jzx_system_loop(m.system);
    int who = (int)draw(ACTORS);
    uint64_t what = draw(20);
    m.still = what < 6;
    if (what == 0) {
        REQUIRE_OK(jzx_sim_run_system(m.sim, m.system, TIMEOUT_MS / 2));
    } else if (what < 4 && who < PLAIN && m.actors[who].id != JZX_NOBODY) {
        CHECK_OK(jzx_system_kill(m.system, m.actors[who].id));
        settle();
        ref_ended(who);
    } else if (who < PLAIN && m.actors[who].id == JZX_NOBODY) {
        spawn_plain(who);
    } else if (what < 6 && who >= PLAIN) {
        CHECK_OK(jzx_send_u64(loop, m.actors[who].id, 0, FAIL));
        settle();
        ref_forgot(who);
        REQUIRE_OK(jzx_sim_run_system(m.sim, m.system, 1)); /* its restart */
    } else {
        for (uint64_t n = 1 + draw(6); n > 0; n--) {
            int each = (int)draw(ACTORS);
            if (m.actors[each].id != JZX_NOBODY) {
                CHECK_OK(jzx_send_u64(loop, m.actors[each].id, 0, GO));
            }
        }
    }
    settle();
    m.still = false;
}

static uint64_t play(uint64_t seed)
{
    open_model(seed);
    for (int i = 0; i < BATCHES && jzt_failures() == 0; i++) {
        play_batch();
        compare();
    }
    if (jzt_failures() != 0) {
        printf("    (seed %llu of the model)\n", (unsigned long long)seed);
    }
    return close_model();
}

static void test_the_registry_is_what_a_plain_table_says(void)
{
    uint64_t told = 0, timed_out = 0, changes = 0, cancels = 0;
    for (uint64_t i = 0; i < SEEDS && jzt_failures() == 0; i++) {
        (void)play((jzt_seed() + i * 7919) | 1);
        told += m.told;
        timed_out += m.timed_out;
        changes += m.changes;
        cancels += m.cancels;
    }
    const uint64_t few = SEEDS / 4; /* of each: else the model would not try it */
    CHECK(told > few && timed_out > few && changes > few && cancels > few);
}

static void test_the_same_seed_gives_the_same_run_R30(void)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        uint64_t first = play(seed);
        void *shift = malloc(12345); /* so that addresses differ */
        CHECK_EQ(play(seed), first);
        free(shift);
    }
}

static const jzt_test tests[] = {
    {"the_registry_is_what_a_plain_table_says", test_the_registry_is_what_a_plain_table_says},
    {"the_same_seed_gives_the_same_run_R30", test_the_same_seed_gives_the_same_run_R30},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
