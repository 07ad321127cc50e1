/* Goal: one spec serves machines on several threads, also while the first of them fills in its
 * index. Method: many actors on the workers of a pool, all started and sent to at once; sanitizers
 * look on. not on: pinned pool: it chooses its dispatcher itself. */
#include "fsm_fixture.h"

#include <stdatomic.h>

enum { MACHINES = 200, TURNS = 50 };

static _Atomic uint64_t entered[STATES];
static _Atomic uint64_t ended;

static jzx_behavior_result count_enter(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *event)
{
    (void)ctx, (void)event;
    atomic_fetch_add_explicit(&entered[jzx_fsm_state(fsm)], 1, memory_order_relaxed);
    return JZX_BEHAVIOR_OK;
}

/* e1 goes round; e2 waits for C; e3 ends it. */
static const jzx_fsm_state_spec states[STATES] = {
    {"A", count_enter, NULL, 0, 0},
    {"B", count_enter, NULL, 0, 0},
    {"C", count_enter, NULL, 0, 0},
    {"END", count_enter, NULL, 0, JZX_FSM_FINAL},
};
static const jzx_fsm_row rows[] = {
    JZX_FSM_ROW(A, E1, B, NULL),
    JZX_FSM_ROW(B, E1, C, NULL),
    JZX_FSM_ROW(C, E2, A, NULL),
    JZX_FSM_ROW(JZX_FSM_ANY, E2, JZX_FSM_POSTPONE, NULL),
    JZX_FSM_ROW(JZX_FSM_ANY, E3, END, NULL),
};

static jzx_behavior_result make(jzx_context *ctx, void *arg)
{
    const jzx_fsm_spec *spec = arg;
    jzx_fsm *fsm = malloc(sizeof *fsm);
    if (fsm == NULL || jzx_fsm_init(fsm, spec, NULL) != JZX_OK) {
        free(fsm);
        return JZX_BEHAVIOR_FAIL;
    }
    ctx->state = fsm;
    return jzx_fsm_start(fsm, ctx);
}

static void unmake(jzx_context *ctx)
{
    const jzx_fsm *fsm = ctx->state;
    CHECK_EQ(jzx_fsm_state(fsm), END);
    CHECK_EQ(fsm->changes, 3 * TURNS + 1);
    CHECK_EQ(fsm->refused + fsm->unhandled, 0);
    atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
    free(ctx->state);
}

static void play(const jzx_fsm_spec *spec)
{
    static const uint32_t round[] = {E2, E1, E1};
    jzx_kit_opts opts = {.env = jzx_env_epoll(), .dispatcher = JZX_DISPATCHER_POOL, .workers = 3};
    jzx_kit *kit = NULL;
    jzx_actor_id ids[MACHINES];
    REQUIRE_OK(jzx_kit_open(&opts, &kit));
    jzx_spawn_opts actor = {.behavior = jzx_fsm_behavior,
                            .init = make,
                            .deinit = unmake,
                            .state = (void *)(uintptr_t)spec};
    for (size_t i = 0; i < MACHINES; i++) {
        REQUIRE_OK(jzx_spawn(kit->loop, &actor, &ids[i]));
    }
    for (size_t turn = 0; turn < TURNS; turn++) {
        for (size_t i = 0; i < MACHINES; i++) {
            for (size_t k = 0; k < COUNT_OF(round); k++) {
                REQUIRE_OK(jzx_send_u64(kit->loop, ids[i], turn, round[k]));
            }
        }
    }
    for (size_t i = 0; i < MACHINES; i++) {
        REQUIRE_OK(jzx_send_u64(kit->loop, ids[i], 0, E3));
    }
    for (int i = 0; i < 1000 && atomic_load(&ended) < MACHINES; i++) {
        REQUIRE_OK(jzx_kit_run(kit, 5));
    }
    const char *wrong = jzx_kit_close(kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    CHECK_EQ(atomic_load(&ended), MACHINES);
    CHECK_EQ(atomic_load(&entered[C]), (uint64_t)MACHINES * TURNS);
    CHECK_EQ(atomic_load(&entered[END]), MACHINES);
}

static void test_machines_of_several_threads_share_a_spec(void)
{
    static uint16_t index[JZX_FSM_INDEX_LEN(STATES, EVENTS, TIMERS)];
    for (int indexed = 0; indexed < 2; indexed++) {
        for (size_t i = 0; i < STATES; i++) {
            atomic_store(&entered[i], 0);
        }
        atomic_store(&ended, 0);
        jzx_fsm_spec spec = {.name = "round",
                             .states = states,
                             .events = lab_events,
                             .rows = rows,
                             .timers = lab_timers,
                             .state_count = STATES,
                             .event_count = EVENTS,
                             .row_count = COUNT_OF(rows),
                             .timer_count = TIMERS,
                             .index = indexed ? index : NULL,
                             .index_len = indexed ? COUNT_OF(index) : 0};
        play(&spec);
    }
}

static const jzt_test tests[] = {
    {"machines_of_several_threads_share_a_spec", test_machines_of_several_threads_share_a_spec},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
