/* Goal: whatever threads do to one door, it never lets in more than the cap, its account comes out
 * exact, and the slot becomes free exactly once per tenant (R2, R10, R32).
 * Method: threads that enter and leave while another opens, closes and reopens. Runs under TSan. */
#include "actor/door.h"

#include <jzx/actor.h>

#include "support/check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 20000, CAP = 3, TENANTS = 200 };

#define FIRST 5u

static jzi_door door;
static _Atomic uint32_t inside;  /* reservations that are out now, counted by the threads */
static _Atomic uint32_t current; /* the generation that is being sent to */
static _Atomic uint32_t freed;   /* how often a leave said that it freed the slot */
static _Atomic bool over;

typedef struct worker {
    pthread_t thread;
    uint64_t entered, refused, gone;
    uint32_t worst;
} worker;

static jzx_actor_id id_of(uint32_t generation)
{
    return (jzx_actor_id)generation << 32;
}

static void open_door(uint32_t generation)
{
    atomic_store_explicit(&door.gate, jzi_gate_make(generation) | JZI_GATE_PIN,
                          memory_order_release);
}

/* Counted after entering and before leaving, so it is never more than the gate's own count. */
static void visit(worker *w)
{
    uint32_t now = atomic_fetch_add(&inside, 1) + 1;
    if (now > w->worst) {
        w->worst = now;
    }
    w->entered++;
    atomic_fetch_sub(&inside, 1);
    if (jzi_door_leave(&door, 1)) {
        atomic_fetch_add(&freed, 1);
    }
}

static void *hammer(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        switch (jzi_door_enter(&door, id_of(FIRST), 0, JZX_FULL_REJECT, 0, false)) {
        case JZI_ENTRY_OK:
            visit(w);
            break;
        case JZI_ENTRY_FULL:
            w->refused++;
            break;
        default:
            w->gone++;
            break;
        }
    }
    return NULL;
}

static void start(uint32_t cap)
{
    atomic_store(&inside, 0);
    atomic_store(&freed, 0);
    atomic_store(&over, false);
    atomic_store(&door.cap, cap);
    open_door(FIRST);
}

static void test_threads_never_exceed_the_cap_and_the_account_is_exact_R10(void)
{
    worker workers[THREADS] = {0};
    uint64_t entered = 0, refused = 0;
    start(CAP);
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&workers[i].thread, NULL, hammer, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK(workers[i].worst <= CAP);
        CHECK_EQ(workers[i].gone, 0);
        entered += workers[i].entered;
        refused += workers[i].refused;
    }
    CHECK_EQ(entered + refused, (uint64_t)THREADS * ROUNDS);
    CHECK(entered > 0);
    CHECK_EQ(atomic_load(&door.gate), jzi_gate_make(FIRST) | JZI_GATE_PIN);
    CHECK_EQ(atomic_load(&freed), 0);
}

static void *keep_all(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < ROUNDS / 10; i++) {
        if (jzi_door_enter(&door, id_of(FIRST), 0, JZX_FULL_REJECT, 0, false) == JZI_ENTRY_OK) {
            w->entered++;
        } else {
            w->refused++;
        }
    }
    return NULL;
}

static void test_reservations_that_stay_out_fill_the_gate_to_the_last_one_R10(void)
{
    enum { LARGE = THREADS * ROUNDS / 20 };
    worker workers[THREADS] = {0};
    uint64_t entered = 0;
    start(LARGE);
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&workers[i].thread, NULL, keep_all, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        entered += workers[i].entered;
    }
    CHECK_EQ(entered, LARGE);
    CHECK_EQ(jzi_gate_used(atomic_load(&door.gate)), LARGE);
}

static void *follow_tenants(void *arg)
{
    worker *w = arg;
    while (!atomic_load(&over)) {
        uint32_t generation = atomic_load(&current);
        jzi_entry entry = jzi_door_enter(&door, id_of(generation), 0, JZX_FULL_REJECT, 0, false);
        if (entry == JZI_ENTRY_OK) {
            /* While a reservation is out the slot is not given to the next tenant. */
            uint64_t gate = atomic_load(&door.gate);
            if (jzi_gate_generation(gate) != generation) {
                w->worst = UINT32_MAX;
            }
            visit(w);
        } else {
            w->gone++;
        }
    }
    return NULL;
}

/* Whoever makes the gate free says so: one of the leavers, or this thread when it takes the life
 * pin. Exactly one of them, for each tenant. */
static void test_every_tenant_frees_the_slot_once_and_keeps_it_while_visited_R2(void)
{
    worker workers[THREADS] = {0};
    start(CAP);
    atomic_store(&current, FIRST);
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&workers[i].thread, NULL, follow_tenants, &workers[i]), 0);
    }
    uint32_t generation = FIRST;
    for (uint32_t tenant = 1; tenant <= TENANTS; tenant++) {
        for (int i = 0; i < 50; i++) {
            (void)atomic_load(&door.gate);
        }
        atomic_fetch_add(&door.gate, JZI_GATE_CLOSED);
        uint64_t gate = atomic_fetch_sub(&door.gate, JZI_GATE_PIN) - JZI_GATE_PIN;
        if (jzi_gate_is_free(gate)) {
            atomic_fetch_add(&freed, 1);
        }
        while (atomic_load(&freed) != tenant) {
            if (atomic_load(&freed) > tenant) {
                break; /* twice: reported below */
            }
        }
        CHECK(jzi_gate_is_free(atomic_load(&door.gate)));
        generation++;
        atomic_store(&current, generation);
        open_door(generation);
    }
    atomic_store(&over, true);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK(workers[i].worst <= CAP);
    }
    CHECK_EQ(atomic_load(&freed), TENANTS);
    CHECK_EQ(atomic_load(&door.gate), jzi_gate_make(generation) | JZI_GATE_PIN);
}

static const jzt_test tests[] = {
    {"threads_never_exceed_the_cap_and_the_account_is_exact_R10",
     test_threads_never_exceed_the_cap_and_the_account_is_exact_R10},
    {"reservations_that_stay_out_fill_the_gate_to_the_last_one_R10",
     test_reservations_that_stay_out_fill_the_gate_to_the_last_one_R10},
    {"every_tenant_frees_the_slot_once_and_keeps_it_while_visited_R2",
     test_every_tenant_frees_the_slot_once_and_keeps_it_while_visited_R2},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
