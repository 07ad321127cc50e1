/* Goal: whatever clients send, in whatever pieces, while actors come, go, fail and are restarted on
 * several dispatchers: every answer is a line of JSON, in order, and the program works on. Method:
 * seeded threads; under TSan and ASan the same. JZX_STORM_MS makes it longer. */
/* not on: pinned pool (it has dispatchers of its own) */
#define _GNU_SOURCE
#include "control_fixture.h"
#include "json_check.h"

#include <jzx/system.h>

enum { CALLERS = 4, PARENTS = 3 };

typedef struct storm {
    program p;
    jzx_system *system;
    jzx_sender *sender;
    uint64_t end_ms;
    _Atomic uint64_t answers;
    _Atomic uint64_t refusals;
    jzx_actor_id root;
} storm;

static uint64_t storm_ms(void)
{
    const char *wish = getenv("JZX_STORM_MS");
    return wish != NULL ? strtoull(wish, NULL, 10) : 1200;
}

/* Actors that spawn, end, fail and send at random. */

typedef struct mood {
    storm *s;
    jzt_rng rng;
    uint32_t generation;
} mood;

static jzx_behavior_result live(jzx_context *ctx, const jzx_message *msg);

static void drop_mood(jzx_context *ctx)
{
    free(ctx->state);
}

static jzx_behavior_result begin_mood(jzx_context *ctx, void *arg)
{
    static _Atomic uint64_t count;
    mood *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return JZX_BEHAVIOR_FAIL;
    }
    m->s = arg;
    m->rng.state = jzt_seed() + atomic_fetch_add(&count, 1) * 7919;
    ctx->state = m;
    jzx_timer_opts beat = {.delay_ms = 1, .period_ms = 2};
    jzx_timer_id timer = 0;
    (void)!jzx_timer_start(ctx->loop, ctx->self, &beat, &timer);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result live(jzx_context *ctx, const jzx_message *msg)
{
    mood *m = ctx->state;
    uint64_t dice = jzt_rng_below(&m->rng, 100);
    (void)msg;
    if (control_ms() > m->s->end_ms) {
        return JZX_BEHAVIOR_OK;
    }
    if (dice < 20 && m->generation == 0) {
        static const char *const places[] = {NULL, "crunch", "disk"};
        char name[24];
        (void)snprintf(name, sizeof name, "kid-%u", (unsigned)jzt_rng_below(&m->rng, 50));
        jzx_spawn_opts opts = {.behavior = live,
                               .init = begin_mood,
                               .deinit = drop_mood,
                               .state = m->s,
                               .name = name,
                               .dispatcher = places[jzt_rng_below(&m->rng, 3)]};
        (void)!jzx_spawn(ctx->loop, &opts, NULL);
        return JZX_BEHAVIOR_OK;
    }
    if (dice < 40) {
        (void)!jzx_send_u64(ctx->loop, ctx->self, dice, 5);
    }
    return dice < 93 ? JZX_BEHAVIOR_OK : dice < 97 ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
}

/* Requests. */

static size_t random_request(jzt_rng *rng, char *out, size_t cap, unsigned id)
{
    static const char *const sorts[] = {"mailbox", "rate", "cpu",  "restarts", "memory",
                                        "dead",    "name", "tree", "uptime",   "nonsense"};
    static const char *const names[] = {"root",  "parent-0",  "parent-1", "kid-1",
                                        "kid-2", "100000000", "x\\ny"};
    static const char *const plain[] = {"program", "dead",    "failures", "stuck", "facts",
                                        "record",  "metrics", "actors",   "end",   "nothing"};
    static const char *const about[] = {"actor", "stop", "kill", "restart", "send"};
    const char *name = names[jzt_rng_below(rng, 7)];
    int len = 0;
    switch (jzt_rng_below(rng, 6)) {
    case 0:
    case 1:
        len = snprintf(
            out, cap,
            "{\"id\":%u,\"op\":\"actors\",\"sort\":\"%s\",\"limit\":%u,\"offset\":%u%s%s%s}\n", id,
            sorts[jzt_rng_below(rng, 10)], (unsigned)jzt_rng_below(rng, 60),
            (unsigned)jzt_rng_below(rng, 20),
            jzt_rng_below(rng, 3) == 0 ? ",\"under\":\"root\"" : "",
            jzt_rng_below(rng, 3) == 0 ? ",\"filter\":\"kid\"" : "",
            jzt_rng_below(rng, 3) == 0 ? ",\"depth\":1" : "");
        break;
    case 2:
        len = snprintf(
            out, cap, "{\"id\":%u,\"op\":\"trace\",\"under\":\"%s\",\"sends\":true,\"rate\":100}\n",
            id, name);
        break;
    case 3: {
        /* Not the root: it would be over. */
        uint64_t what = jzt_rng_below(rng, 5);
        len =
            snprintf(out, cap, "{\"id\":%u,\"op\":\"%s\",\"actor\":\"%s\",\"tag\":3}\n", id,
                     about[what], what == 1 || what == 2 ? names[3 + jzt_rng_below(rng, 4)] : name);
        break;
    }
    default:
        len = snprintf(out, cap, "{\"id\":%u,\"op\":\"%s\"}\n", id, plain[jzt_rng_below(rng, 10)]);
    }
    return (size_t)len;
}

/* The answer to a request; lines of a trace come in between. */
static bool hear_answer(caller *c, unsigned id)
{
    char mine[32];
    int len = snprintf(mine, sizeof mine, "{\"id\":%u,\"ok\":", id);
    for (;;) {
        const char *line = caller_hear(c);
        if (line == NULL) {
            CHECK_STR("", "an answer");
            return false;
        }
        if (!jzt_json_is_line(line, strlen(line))) {
            CHECK_STR(line, "JSON");
        }
        if (strncmp(line, mine, (size_t)len) == 0) {
            return true;
        }
        if (!line_has(line, "\"event\":") && !line_has(line, "\"skipped\":")) {
            CHECK_STR(line, mine);
            return false;
        }
    }
}

static void *ask_at_random(void *arg)
{
    static _Atomic uint64_t count;
    storm *s = arg;
    jzt_rng rng = {.state = jzt_seed() + 31 * atomic_fetch_add(&count, 1)};
    caller c;
    unsigned id = 1;
    bool good = true;
    memset(&c, 0, sizeof c);
    c.fd = try_connect(s->p.path);
    good = c.fd >= 0 && caller_hear(&c) != NULL;
    CHECK(good);
    while (good && control_ms() < s->end_ms) {
        char text[1024];
        unsigned burst = 1 + (unsigned)jzt_rng_below(&rng, 4);
        for (unsigned i = 0; i < burst; i++) {
            size_t len = random_request(&rng, text, sizeof text, id + i);
            size_t cut = (size_t)jzt_rng_below(&rng, len);
            (void)!send(c.fd, text, cut, MSG_NOSIGNAL);
            (void)!send(c.fd, text + cut, len - cut, MSG_NOSIGNAL);
        }
        for (unsigned i = 0; i < burst && good; i++) {
            good = hear_answer(&c, id + i);
            atomic_fetch_add(&s->answers, 1);
            atomic_fetch_add(&s->refusals, line_has(c.line, "\"ok\":false") ? 1 : 0);
        }
        id += burst;
    }
    caller_close(&c);
    return NULL;
}

/* Bytes of no meaning: every line that comes back is JSON, and then the connection may end. */
static void *babble(void *arg)
{
    storm *s = arg;
    jzt_rng rng = {.state = jzt_seed() + 4711};
    while (control_ms() < s->end_ms) {
        static const char pieces[] = "{}[]\",:0e-\\u \n\xC3\xFF"
                                     "atrue";
        static char bytes[12000];
        size_t len =
            1 + (size_t)jzt_rng_below(&rng, jzt_rng_below(&rng, 4) == 0 ? sizeof bytes : 300);
        uint64_t kind = jzt_rng_below(&rng, 4);
        for (size_t i = 0; i < len; i++) {
            bytes[i] = kind == 0   ? (char)jzt_rng_next(&rng)
                       : kind == 1 ? '['
                       : kind == 2 ? pieces[jzt_rng_below(&rng, sizeof pieces - 1)]
                                   : "{\"op\":\"actors\"}\n"[i % 16];
        }
        caller c;
        memset(&c, 0, sizeof c);
        c.fd = try_connect(s->p.path);
        if (c.fd < 0) {
            continue;
        }
        (void)!send(c.fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)shutdown(c.fd, SHUT_WR);
        while (caller_hear(&c) != NULL) {
            if (!jzt_json_is_line(c.line, strlen(c.line))) {
                CHECK_STR(c.line, "JSON");
            }
        }
        caller_close(&c);
    }
    return NULL;
}

static void *run_system(void *arg)
{
    storm *s = arg;
    jzx_err err = jzx_system_run(s->system);
    CHECK(err == JZX_OK);
    return NULL;
}

static void make_storm(storm *s)
{
    static const jzx_dispatcher_spec specs[] = {
        {.name = "crunch", .kind = JZX_DISPATCHER_POOL, .workers = 2},
        {.name = "disk", .kind = JZX_DISPATCHER_PINNED},
    };
    static char names[PARENTS][16];
    jzx_child_spec parents[PARENTS];
    memset(s, 0, sizeof *s);
    memset(parents, 0, sizeof parents);
    make_directory(&s->p);
    s->end_ms = control_ms() + storm_ms();
    jzx_system_config config = {.dispatchers = specs, .dispatcher_count = 2};
    REQUIRE_OK(jzx_system_create(&config, &s->system));
    s->p.loop = jzx_system_loop(s->system);
    for (int i = 0; i < PARENTS; i++) {
        (void)snprintf(names[i], sizeof names[i], "parent-%d", i);
        parents[i] = (jzx_child_spec){.id = names[i],
                                      .behavior = live,
                                      .init = begin_mood,
                                      .deinit = drop_mood,
                                      .arg = s,
                                      .dispatcher = i == 1   ? "crunch"
                                                    : i == 2 ? "disk"
                                                             : NULL};
    }
    jzx_supervisor_spec policy = {.intensity = 1000, .period_ms = 1};
    jzx_supervisor_init init = {
        .name = "root", .spec = &policy, .children = parents, .child_count = PARENTS};
    REQUIRE_OK(jzx_spawn_supervisor(s->p.loop, &init, &s->root));
}

static void test_clients_and_actors_go_wild_together(void)
{
    storm s;
    pthread_t runner;
    pthread_t callers[CALLERS + 1];
    make_storm(&s);
    program_serve(&s.p,
                  JZX_CONTROL_STOP | JZX_CONTROL_KILL | JZX_CONTROL_RESTART | JZX_CONTROL_SEND);
    REQUIRE(pthread_create(&runner, NULL, run_system, &s) == 0);
    for (int i = 0; i <= CALLERS; i++) {
        REQUIRE(pthread_create(&callers[i], NULL, i == CALLERS ? babble : ask_at_random, &s) == 0);
    }
    for (int i = 0; i <= CALLERS; i++) {
        (void)pthread_join(callers[i], NULL);
    }
    CHECK(atomic_load(&s.answers) > 20);
    CHECK(atomic_load(&s.refusals) < atomic_load(&s.answers));
    if (getenv("JZX_STORM_MS") != NULL) {
        (void)printf("%llu answers, %llu of them refusals\n",
                     (unsigned long long)atomic_load(&s.answers),
                     (unsigned long long)atomic_load(&s.refusals));
    }
    caller c;
    caller_open(&c, &s.p);
    CHECK_HAS(caller_ask(&c, "{\"op\":\"program\"}"), "\"ok\":true");
    caller_close(&c);
    jzx_loop_request_stop(s.p.loop);
    (void)pthread_join(runner, NULL);
    CHECK_OK(jzx_system_destroy(s.system));
    remove_directory(&s.p);
}

static const jzt_test tests[] = {
    {"clients_and_actors_go_wild_together", test_clients_and_actors_go_wild_together},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
