#include "rig.h"

const rig_world rig_worlds[RIG_WORLDS] = {
    [RIG_SIM] = {"sim", NULL},
    [RIG_EPOLL] = {"epoll", jzx_env_epoll},
};
const rig_world *rig_current = &rig_worlds[RIG_SIM];

const jzx_config one_turn = {.max_actors_per_tick = 1};

rig rig_open_with(const jzx_config *config, const jzx_sim_opts *sim)
{
    rig r = {0};
    jzx_kit_opts opts = {
        .config = config, .sim = sim, .env = rig_current->env == NULL ? NULL : rig_current->env()};
    REQUIRE_OK(jzx_kit_open(&opts, &r.kit));
    r.loop = r.kit->loop;
    r.sim = r.kit->sim;
    r.fault = r.kit->fault;
    return r;
}

rig rig_open(const jzx_config *config)
{
    jzx_sim_opts sim = {.seed = jzt_seed() | 1};
    return rig_open_with(config, &sim);
}

rig rig_open_fifo(const jzx_config *config)
{
    jzx_sim_opts sim = {.seed = jzt_seed() | 1, .flags = JZX_SIM_FIFO};
    return rig_open_with(config, &sim);
}

void rig_close(rig *r)
{
    const char *wrong = jzx_kit_close(r->kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    *r = (rig){0};
}

static void rig_check(rig *r)
{
    const char *wrong = jzx_testkit_check(r->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

void rig_idle(rig *r)
{
    REQUIRE_OK(jzx_loop_run_until_idle(r->loop));
    rig_check(r);
}

void run_ms(rig *r, uint64_t ms)
{
    REQUIRE_OK(jzx_kit_run(r->kit, ms));
    rig_check(r);
}

bool step_until(rig *r, jzx_actor_id id, jzx_state state)
{
    for (int i = 0; i < 200; i++) {
        if (jzx_actor_state(r->loop, id) == state) {
            return true;
        }
        REQUIRE_OK(jzx_loop_step(r->loop, 0));
    }
    return jzx_actor_state(r->loop, id) == state;
}

jzx_counters rig_counters(rig *r)
{
    jzx_counters now;
    jzx_loop_counters(r->loop, &now);
    return now;
}

size_t rig_bytes(const rig *r)
{
    size_t bytes = 0;
    (void)jzx_fault_leaked(r->fault, &bytes);
    return bytes;
}

void spend(jzx_loop *loop, uint64_t ns)
{
    uint64_t end = jzx_loop_now(loop) + ns;
    while (jzx_loop_now(loop) < end) {
    }
}

jzx_err try_urgent(jzx_loop *loop, jzx_actor_id to, uint32_t tag)
{
    jzx_send_opts opts = {.u64 = tag, .tag = tag, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    return jzx_send_with(loop, to, &opts);
}

void check_tags(int line, const uint32_t *got, size_t got_len, const uint32_t *want,
                size_t want_len)
{
    size_t same = 0;
    while (same < got_len && same < want_len && got[same] == want[same]) {
        same++;
    }
    if (same < got_len || same < want_len) {
        fprintf(stderr, "  line %d: differs at %zu; got", line, same);
        for (size_t i = 0; i < got_len && i < 40; i++) {
            fprintf(stderr, " %x", (unsigned)got[i]);
        }
        fprintf(stderr, "; want");
        for (size_t i = 0; i < want_len && i < 40; i++) {
            fprintf(stderr, " %x", (unsigned)want[i]);
        }
        fprintf(stderr, "\n");
    }
    jzt_check_eq(JZT_CHECK, __FILE__, line, "messages as expected", "all", (intmax_t)same,
                 (intmax_t)(got_len > want_len ? got_len : want_len));
}

size_t dead_facts(rig *r, uint32_t *out, size_t cap)
{
    jzx_dead_letter letters[64];
    uint64_t cursor = 0;
    uint64_t lagged = 0;
    size_t count = jzx_dead_letters_read(r->loop, &cursor, letters, COUNT_OF(letters), &lagged);
    CHECK_EQ(lagged, 0);
    for (size_t i = 0; i < count && i < cap; i++) {
        out[i] = (uint32_t)letters[i].reason << 24 | letters[i].tag;
    }
    return count < cap ? count : cap;
}

enum { TESTS_MAX = 64, NAME_SIZE = 128, ARGS_MAX = 32 };

static int run_world(const rig_world *world, const jzt_test *suite, size_t count, int argc,
                     char **argv)
{
    static char names[TESTS_MAX][NAME_SIZE];
    jzt_test tests[TESTS_MAX];
    char *args[ARGS_MAX];
    int args_len = 0;
    REQUIRE(count <= TESTS_MAX);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], NAME_SIZE, "%s/%s", world->name, suite[i].name);
        tests[i] = (jzt_test){.name = names[i], .run = suite[i].run};
    }
    for (int i = 0; i < argc && args_len < ARGS_MAX; i++) {
        bool mine = i == 0 || strncmp(argv[i], world->name, strlen(world->name)) == 0;
        if (mine) {
            args[args_len++] = argv[i];
        }
    }
    if (argc > 1 && args_len == 1) {
        return 77;
    }
    rig_current = world;
    return jzt_main(args_len, args, tests, count);
}

int run_worlds(const jzt_test *suite, size_t count, int argc, char **argv)
{
    int result = 77;
    for (size_t i = 0; i < RIG_WORLDS; i++) {
        int one = run_world(&rig_worlds[i], suite, count, argc, argv);
        if (one == 1 || one == 2) {
            result = one;
        } else if (one == 0 && result == 77) {
            result = 0;
        }
    }
    return result;
}
