/* Goal: whatever happens, every subscription gets exactly what a plain list of all publications
 * says: in order, once, nothing missing but what it was told is lost, and lost is what was
 * published last before the place where it resumes (section 7). An event never overtakes what its
 * publisher sent before (R6). Same seed, same trace (R30).
 * Method: a simulated system with dispatchers of every kind; actors that subscribe, unsubscribe,
 * publish, send, die and are replaced as the seed says; the driver publishes from outside; each
 * delivery is compared with the list. */
/* not on: pinned pool; a system says itself where its actors run. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/bus.h>
#include <jzx/testkit.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { GO = 1, NOTE = 2, PEOPLE = 10, SUBS = 4, TOPICS = 8, LOG_MAX = 4000 };
enum { ROUNDS = 60, HOPS = 40, SEEDS = JZT_TSAN ? 4 : JZT_SANITIZED ? 12 : 40 };

static const char *const places[] = {"loop", "desk", "pool", "crew"};
static const char *const topics[TOPICS] = {"a", "a/x", "a/y", "ab", "b", "b/x", "b/x/1", "c"};
static const char *const patterns[] = {"a",     "a/x", "a/y", "ab", "b",   "b/x",
                                       "b/x/1", "c",   "*",   "a*", "b/*", "a/*"};

/* One publication, as the reference remembers it. */
typedef struct entry {
    uint32_t topic;
    uint32_t tag;
    uint32_t publisher; /* PEOPLE: the driver */
    uint32_t notes[PEOPLE];
} entry;

typedef struct sub {
    bool on;
    jzx_sub_ref ref;
    const char *pattern;
    jzx_sub_opts opts;
    uint64_t modulus; /* of the filter; 0: none */
    uint64_t first;   /* publications up to here are not for it */
    uint64_t pos;     /* everything up to here is settled */
    uint64_t delivered, lost;
} sub;

typedef struct town town;
typedef struct person {
    town *t;
    uint32_t number;
    jzx_actor_id id;
    bool up;
    uint32_t notes[PEOPLE]; /* got, by sender */
    sub subs[SUBS];
} person;

struct town {
    jzx_sim *sim;
    jzx_fault *fault;
    jzx_system *system;
    jzx_bus *bus;
    jzt_rng rng;
    uint32_t hops;
    uint32_t declared;
    jzx_topic number[TOPICS];
    person people[PEOPLE];
    uint32_t notes[PEOPLE][PEOPLE]; /* accepted: from, to */
    entry log[LOG_MAX];
    uint64_t published;
    uint64_t delivered, lagged; /* in all, to see that the play is worth it */
};

static uint64_t draw(town *t, uint64_t bound)
{
    return jzt_rng_below(&t->rng, bound);
}

/* The reference. */

static bool covers(const char *pattern, uint32_t topic)
{
    size_t len = strlen(pattern);
    return pattern[len - 1] == '*' ? strncmp(pattern, topics[topic], len - 1) == 0
                                   : strcmp(pattern, topics[topic]) == 0;
}

static bool passes(const sub *s, const entry *e)
{
    bool any = s->opts.tag_first == 0 && s->opts.tag_last == 0;
    return (any || (e->tag >= s->opts.tag_first && e->tag <= s->opts.tag_last)) &&
           (s->modulus == 0 || e->tag % s->modulus == 0);
}

/* Nothing between what is settled and `seq` was to be delivered. */
static void settle_before(town *t, sub *s, uint64_t seq)
{
    for (uint64_t i = s->pos + 1; i < seq; i++) {
        CHECK(!covers(s->pattern, t->log[i - 1].topic) || !passes(s, &t->log[i - 1]));
    }
    s->pos = seq > 0 && seq - 1 > s->pos ? seq - 1 : s->pos;
}

static void got_event(town *t, person *p, sub *s, const jzx_event *event, const jzx_message *msg)
{
    REQUIRE(event->seq > s->pos && event->seq <= t->published);
    settle_before(t, s, event->seq);
    const entry *e = &t->log[event->seq - 1];
    CHECK(covers(s->pattern, e->topic) && passes(s, e));
    CHECK_STR(event->topic_name, topics[e->topic]);
    CHECK_EQ(event->topic, t->number[e->topic]);
    CHECK_EQ(msg->u64, event->seq);
    CHECK_EQ(msg->tag, e->tag);
    if (e->publisher < PEOPLE) {
        CHECK(p->notes[e->publisher] >= e->notes[p->number]);
    }
    s->pos = event->seq;
    s->delivered++;
    t->delivered++;
}

/* The last `lost` of those it covers before the place where it resumes. */
static void got_lag(town *t, sub *s, const jzx_lag_notice *lag)
{
    uint64_t from = lag->resumes_at;
    uint64_t left = lag->lost;
    CHECK(lag->lost > 0);
    CHECK(lag->resumes_at <= t->published + 1);
    while (left > 0 && from - 1 > s->pos) {
        from--;
        left -= covers(s->pattern, t->log[from - 1].topic);
    }
    CHECK_EQ(left, 0);
    settle_before(t, s, from);
    s->pos = lag->resumes_at - 1;
    s->lost += lag->lost;
    t->lagged += lag->lost;
}

static void check_counts(town *t, person *p, sub *s)
{
    jzx_sub_counts c;
    jzx_loop *loop = jzx_system_at(t->system, jzx_id_dispatcher(p->id));
    REQUIRE_OK(jzx_bus_sub_stats(loop, p->id, s->ref, &c));
    uint64_t covered = 0;
    uint64_t passed = 0;
    for (uint64_t i = s->first; i < t->published; i++) {
        covered += covers(s->pattern, t->log[i].topic);
        passed += covers(s->pattern, t->log[i].topic) && passes(s, &t->log[i]);
    }
    CHECK_EQ(c.published, covered);
    CHECK_EQ(c.delivered, s->delivered);
    CHECK_EQ(c.lagged, s->lost);
    CHECK_EQ(c.pending, 0);
    CHECK_EQ(c.published, c.delivered + c.filtered + c.lagged);
    CHECK(c.filtered <= covered - s->delivered);
    CHECK(s->lost > 0 || s->delivered == passed);
}

/* The players. */

static int filter(void *arg, const jzx_message *msg)
{
    const sub *s = arg;
    return msg->tag % s->modulus == 0;
}

static jzx_behavior_result resync(jzx_context *ctx, const jzx_message *msg)
{
    person *p = ctx->state;
    const jzx_lag_notice *lag = msg->data;
    for (size_t i = 0; i < SUBS; i++) {
        if (p->subs[i].on && p->subs[i].ref == lag->sub) {
            got_lag(p->t, &p->subs[i], lag);
            return JZX_BEHAVIOR_OK;
        }
    }
    CHECK(false); /* a notice for nobody */
    return JZX_BEHAVIOR_OK;
}

static void subscribe(jzx_context *ctx, person *p, sub *s)
{
    town *t = p->t;
    *s = (sub){.pattern = patterns[draw(t, COUNT_OF(patterns))]};
    if (draw(t, 3) == 0) {
        s->opts.tag_first = (uint32_t)draw(t, 5);
        s->opts.tag_last = s->opts.tag_first + 1 + (uint32_t)draw(t, 5);
    }
    if (draw(t, 3) == 0) {
        s->modulus = 2 + draw(t, 2);
        s->opts.filter = filter;
        s->opts.filter_arg = s;
    }
    s->opts.resync = draw(t, 2) == 0 ? resync : NULL;
    jzx_err err = jzx_bus_subscribe(ctx->loop, t->bus, s->pattern, &s->opts, &s->ref);
    s->on = err == JZX_OK;
    CHECK(s->on || err == JZX_ERR_NO_SUCH_TOPIC);
    s->first = s->pos = t->published;
}

static void publish(town *t, uint32_t who, uint64_t count)
{
    uint32_t topic = (uint32_t)draw(t, t->declared);
    for (uint64_t i = 0; i < count && t->published < LOG_MAX; i++) {
        entry *e = &t->log[t->published++];
        *e = (entry){.topic = topic, .tag = (uint32_t)draw(t, 10), .publisher = who};
        for (size_t to = 0; who < PEOPLE && to < PEOPLE; to++) {
            e->notes[to] = t->notes[who][to];
        }
        CHECK_OK(jzx_bus_publish_u64(t->bus, t->number[topic], t->published, e->tag));
    }
}

static void declare(town *t)
{
    jzx_topic_opts opts = {.keep = draw(t, 3) == 0 ? 1 + (uint32_t)draw(t, 6) : 0};
    if (t->declared < TOPICS) {
        REQUIRE_OK(jzx_bus_topic(t->bus, topics[t->declared], &opts, &t->number[t->declared]));
        t->declared++;
    }
}

static jzx_behavior_result act(jzx_context *ctx, person *p)
{
    town *t = p->t;
    sub *s = &p->subs[draw(t, SUBS)];
    person *other = &t->people[draw(t, PEOPLE)];
    switch (draw(t, 12)) {
    case 0:
    case 1:
        if (s->on) {
            CHECK_OK(jzx_bus_unsubscribe(ctx->loop, s->ref));
        }
        s->on = false;
        break;
    case 2:
    case 3:
    case 4:
        if (!s->on) {
            subscribe(ctx, p, s);
        }
        break;
    case 5:
        declare(t);
        break;
    case 6:
        return draw(t, 3) == 0 ? JZX_BEHAVIOR_FAIL : JZX_BEHAVIOR_OK;
    case 7:
        return draw(t, 3) == 0 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
    case 8:
    case 9:
        if (other->up && jzx_send_u64(ctx->loop, other->id, p->number, NOTE) == JZX_OK) {
            t->notes[p->number][other->number]++;
        }
        break;
    default:
        publish(t, p->number, 1 + draw(t, 4));
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result person_run(jzx_context *ctx, const jzx_message *msg)
{
    person *p = ctx->state;
    town *t = p->t;
    if (msg->tag == JZX_TAG_LAGGED) {
        return resync(ctx, msg);
    }
    if (msg->kind == JZX_KIND_EVENT) {
        const jzx_event *event = jzx_bus_event_of(ctx);
        for (size_t i = 0; i < SUBS; i++) {
            if (p->subs[i].on && p->subs[i].ref == event->sub) {
                got_event(t, p, &p->subs[i], event, msg);
                return draw(t, 20) == 0 ? act(ctx, p) : JZX_BEHAVIOR_OK;
            }
        }
        CHECK(false); /* an event for nobody */
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == NOTE) {
        p->notes[msg->u64]++;
        return JZX_BEHAVIOR_OK;
    }
    jzx_behavior_result result = act(ctx, p);
    if (t->hops > 0) {
        t->hops--;
        (void)!jzx_send_u64(ctx->loop, t->people[draw(t, PEOPLE)].id, 0, GO);
    }
    return result;
}

static void person_end(jzx_context *ctx)
{
    person *p = ctx->state;
    p->up = false;
    for (size_t i = 0; i < SUBS; i++) {
        p->subs[i].on = false;
    }
}

static void person_start(town *t, uint32_t number)
{
    person *p = &t->people[number];
    *p = (person){.t = t, .number = number, .up = true};
    for (size_t i = 0; i < PEOPLE; i++) {
        t->notes[i][number] = 0; /* they were for its predecessor */
        for (uint64_t k = 0; k < t->published; k++) {
            t->log[k].notes[number] = 0;
        }
    }
    jzx_spawn_opts opts = {.behavior = person_run,
                           .state = p,
                           .deinit = person_end,
                           .max_msgs = 1 + (uint32_t)draw(t, 6),
                           .dispatcher = places[draw(t, COUNT_OF(places))]};
    REQUIRE_OK(jzx_spawn(jzx_system_loop(t->system), &opts, &p->id));
}

/* The play. */

static void town_open(town *t, uint64_t seed, uint64_t play)
{
    static const jzx_dispatcher_spec specs[] = {
        {.name = "desk", .kind = JZX_DISPATCHER_PINNED},
        {.name = "crew", .kind = JZX_DISPATCHER_POOL, .workers = 2},
    };
    memset(t, 0, sizeof *t);
    t->rng.state = play;
    jzx_sim_opts sim = {.seed = seed};
    REQUIRE_OK(jzx_sim_create(&sim, &t->sim));
    REQUIRE_OK(jzx_fault_create(jzx_sim_env(t->sim), &t->fault));
    jzx_config loop = {.env = jzx_fault_env(t->fault),
                       .allocator = jzx_fault_allocator(t->fault),
                       .max_actors_per_tick = 3};
    jzx_system_config config = {.loop = &loop,
                                .dispatchers = specs,
                                .dispatcher_count = COUNT_OF(specs),
                                .pool_workers = 3};
    REQUIRE_OK(jzx_system_create(&config, &t->system));
    jzx_bus_opts bus = {.keep = 1 + (uint32_t)draw(t, 24)};
    REQUIRE_OK(jzx_bus_create(jzx_system_loop(t->system), &bus, &t->bus));
    declare(t);
    for (uint32_t i = 0; i < PEOPLE; i++) {
        person_start(t, i);
    }
}

static void town_close(town *t)
{
    CHECK_OK(jzx_system_destroy(t->system));
    jzx_bus_counts c;
    CHECK_OK(jzx_bus_stats(t->bus, &c));
    CHECK_EQ(c.subscriptions, 0);
    CHECK_EQ(c.published, t->published);
    CHECK_EQ(c.delivered, t->delivered);
    jzx_bus_release(t->bus);
    CHECK_EQ(jzx_fault_leaked(t->fault, NULL), 0);
    CHECK_STR(jzx_fault_check(t->fault), NULL);
    jzx_fault_destroy(t->fault);
    jzx_sim_destroy(t->sim);
}

/* At rest everything was settled, for everybody. */
static void check_rest(town *t)
{
    for (size_t i = 0; i < PEOPLE; i++) {
        person *p = &t->people[i];
        for (size_t k = 0; k < SUBS && p->up; k++) {
            if (p->subs[k].on) {
                settle_before(t, &p->subs[k], t->published + 1);
                check_counts(t, p, &p->subs[k]);
            }
        }
    }
}

static void play(town *t)
{
    for (int round = 0; round < ROUNDS && jzt_failures() == 0; round++) {
        t->hops = HOPS;
        for (uint32_t i = 0; i < PEOPLE; i++) {
            if (!t->people[i].up) {
                person_start(t, i);
            }
            (void)!jzx_send_u64(jzx_system_loop(t->system), t->people[i].id, 0, GO);
        }
        publish(t, PEOPLE, draw(t, 8));
        if (draw(t, 4) > 0) {
            REQUIRE_OK(jzx_sim_run_system(t->sim, t->system, 1));
            publish(t, PEOPLE, draw(t, 40));
        }
        REQUIRE_OK(jzx_sim_settle_system(t->sim, t->system));
        check_rest(t);
    }
}

static void test_every_subscription_gets_what_the_list_says(void)
{
    static town t;
    jzt_rng rng = jzt_rng_seeded();
    uint64_t delivered = 0;
    uint64_t lagged = 0;
    for (int i = 0; i < SEEDS && jzt_failures() == 0; i++) {
        uint64_t seed = jzt_rng_next(&rng) | 1;
        uint64_t game = jzt_rng_next(&rng);
        uint64_t digest[2];
        for (int again = 0; again < 2; again++) {
            town_open(&t, seed, game);
            play(&t);
            digest[again] = jzx_sim_digest(t.sim);
            delivered += t.delivered;
            lagged += t.lagged;
            town_close(&t);
        }
        CHECK_EQ(digest[0], digest[1]);
    }
    CHECK(delivered > 1000 && lagged > 1000); /* else it proves little */
}

static const jzt_test tests[] = {
    {"every_subscription_gets_what_the_list_says", test_every_subscription_gets_what_the_list_says},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
