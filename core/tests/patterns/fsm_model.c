/* Goal: random machines do what the rules of gen_statem say, event by event.
 * Method: a plain reference implementation plays a scenario with a random table first: one queue,
 * one list of postponed events, no mailbox, no stash. It decides at random what each action does
 * and writes that down. The real machine then plays the same scenario in virtual time, its actions
 * do what was written down, and both journals must be equal. Deadlines are chosen apart from each
 * other and from the messages, so that the order of timers is not in question here. */
#include "support/check.h"

#include <jzx/all.h>
#include <jzx/fsm.h>
#include <jzx/testkit.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    STATES = 4,
    EVENTS = 4,
    TIMERS = 2,
    SLOTS = 2 + TIMERS,
    COLUMNS = EVENTS + SLOTS,
    ROUNDS = 12,     /* bursts of messages */
    ROUND_MS = 1000, /* from one to the next */
    BURST_MAX = 6,
    OPS_MAX = 3,      /* per action */
    CALLS_MAX = 1500, /* actions per scenario; then they do nothing more */
    JOURNAL_MAX = 6000,
    QUEUE_MAX = 256,
    APART_MS = 3
};

/* What one action does. */
typedef enum op_kind {
    OP_GOTO,
    OP_POSTPONE,
    OP_INSERT,
    OP_SET,
    OP_CANCEL,
    OP_UPDATE,
    OP_KINDS
} op_kind;
typedef struct op {
    op_kind kind;
    uint32_t what; /* a state, an event or a slot */
    uint32_t ms;
    uint64_t value;
} op;
typedef struct call {
    op ops[OPS_MAX];
    uint32_t count;
} call;

/* A line of the journal: an action, or a state that was entered or left. */
typedef struct line {
    uint32_t state;
    uint32_t tag; /* LEFT, ENTERED, or the event's */
    uint64_t value;
} line;
enum { LEFT = 1000, ENTERED = 1001 };

typedef struct journal {
    line lines[JOURNAL_MAX];
    size_t len;
} journal;

/* Everything that both sides share. */
typedef struct scenario {
    uint32_t next[STATES][COLUMNS]; /* of the row; STATES: there is none */
    uint32_t timeout_ms[STATES];
    uint32_t burst[ROUNDS];
    uint32_t sent[ROUNDS][BURST_MAX]; /* events */
    call calls[CALLS_MAX];
    size_t calls_len;
} scenario;

static uint32_t tag_of(uint32_t column)
{
    return column < EVENTS ? column + 1 : JZX_FSM_STATE_TIMEOUT + (column - EVENTS);
}

static void write_down(journal *j, uint32_t state, uint32_t tag, uint64_t value)
{
    if (j->len < JOURNAL_MAX) {
        j->lines[j->len++] = (line){state, tag, value};
    }
}

/* The reference. */

enum { FROM_OUTSIDE = 1, FROM_INSIDE = 2 };

typedef struct event {
    uint32_t column;
    uint32_t source;
    uint64_t value;
} event;

typedef struct list {
    event at[QUEUE_MAX];
    size_t len;
} list;

typedef struct clockwork {
    bool runs;
    bool zero;
    uint64_t due_ms;
    uint64_t value;
} clockwork;

typedef struct reference {
    jzt_rng *rng;
    scenario *sc;
    journal *out;
    uint64_t now_ms;
    uint32_t state;
    list queue;    /* inserted, and postponed ones that come again */
    list inserted; /* by the event that is being handled */
    list postponed;
    clockwork timers[SLOTS];
    uint32_t zeros[SLOTS]; /* slots, in the order they were set */
    size_t zeros_len;
    bool timed;   /* this event set the state timeout */
    bool unclear; /* deadlines came too close to each other */
} reference;

static void push(list *l, event e)
{
    REQUIRE(l->len < QUEUE_MAX);
    l->at[l->len++] = e;
}

static event pop(list *l)
{
    event first = l->at[0];
    l->len--;
    memmove(&l->at[0], &l->at[1], l->len * sizeof first);
    return first;
}

/* All of `front` comes before all of `back`; `front` is empty afterwards. */
static void put_before(list *front, list *back)
{
    list both = *front;
    for (size_t i = 0; i < back->len; i++) {
        push(&both, back->at[i]);
    }
    *back = both;
    front->len = 0;
}

static void stop_timer(reference *ref, uint32_t slot)
{
    size_t kept = 0;
    for (size_t i = 0; i < ref->zeros_len; i++) {
        if (ref->zeros[i] != slot) {
            ref->zeros[kept++] = ref->zeros[i];
        }
    }
    ref->zeros_len = kept;
    ref->timers[slot].runs = false;
}

static void start_timer(reference *ref, uint32_t slot, uint32_t ms, uint64_t value)
{
    stop_timer(ref, slot);
    ref->timers[slot] = (clockwork){true, ms == 0, ref->now_ms + ms, value};
    if (ms == 0) {
        ref->zeros[ref->zeros_len++] = slot;
    }
}

/* Not close to a burst, nor to the deadline of another timer. */
static bool is_apart(const reference *ref, uint64_t due_ms)
{
    uint64_t in_round = due_ms % ROUND_MS;
    if (in_round < APART_MS || in_round > ROUND_MS - APART_MS) {
        return false;
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint64_t other = ref->timers[i].due_ms;
        bool waits = ref->timers[i].runs && !ref->timers[i].zero;
        if (waits && due_ms < other + APART_MS && other < due_ms + APART_MS) {
            return false;
        }
    }
    return true;
}

static uint32_t choose_ms(reference *ref)
{
    if (jzt_rng_below(ref->rng, 3) == 0) {
        return 0;
    }
    uint32_t ms = 0;
    do {
        ms = 5 + (uint32_t)jzt_rng_below(ref->rng, 2 * ROUND_MS);
    } while (!is_apart(ref, ref->now_ms + ms));
    return ms;
}

static op choose_op(reference *ref, bool outside)
{
    op o = {.kind = (op_kind)jzt_rng_below(ref->rng, OP_KINDS),
            .value = jzt_rng_below(ref->rng, 90)};
    switch (o.kind) {
    case OP_GOTO:
        o.what = (uint32_t)jzt_rng_below(ref->rng, STATES);
        break;
    case OP_INSERT:
        o.what = (uint32_t)jzt_rng_below(ref->rng, EVENTS);
        if (jzt_rng_below(ref->rng, 3) != 0) { /* else it would never come to an end */
            o.kind = OP_CANCEL;
            o.what = (uint32_t)jzt_rng_below(ref->rng, SLOTS);
        }
        break;
    case OP_POSTPONE:
        o.kind = outside ? OP_POSTPONE : OP_UPDATE;
        o.what = (uint32_t)jzt_rng_below(ref->rng, SLOTS);
        break;
    default:
        o.what = (uint32_t)jzt_rng_below(ref->rng, SLOTS);
        o.ms = o.kind == OP_SET ? choose_ms(ref) : 0;
        break;
    }
    return o;
}

static void play_op(reference *ref, const op *o, uint32_t *next, bool *wait)
{
    switch (o->kind) {
    case OP_GOTO:
        *next = o->what;
        break;
    case OP_POSTPONE:
        *wait = true;
        break;
    case OP_INSERT:
        push(&ref->inserted, (event){o->what, FROM_INSIDE, o->value});
        break;
    case OP_SET:
        start_timer(ref, o->what, o->ms, o->value);
        ref->timed = ref->timed || o->what == 0;
        break;
    case OP_CANCEL:
        stop_timer(ref, o->what);
        break;
    default:
        if (ref->timers[o->what].runs) {
            ref->timers[o->what].value = o->value;
        } else {
            start_timer(ref, o->what, 0, o->value);
            ref->timed = ref->timed || o->what == 0;
        }
        break;
    }
}

static void enter(reference *ref, bool changed)
{
    if (!ref->timed) {
        if (changed) {
            stop_timer(ref, 0);
        }
        if (ref->sc->timeout_ms[ref->state] > 0) {
            stop_timer(ref, 0);
            ref->unclear =
                ref->unclear || !is_apart(ref, ref->now_ms + ref->sc->timeout_ms[ref->state]);
            start_timer(ref, 0, ref->sc->timeout_ms[ref->state], 0);
        }
    }
    write_down(ref->out, ref->state, ENTERED, 0);
}

/* What the action of this event does, chosen now. */
static void act(reference *ref, event e, uint32_t *next, bool *wait)
{
    write_down(ref->out, ref->state, tag_of(e.column), e.value);
    REQUIRE(ref->sc->calls_len < CALLS_MAX);
    call *c = &ref->sc->calls[ref->sc->calls_len++];
    *c = (call){.count = 0};
    if (ref->sc->calls_len < CALLS_MAX / 2) {
        c->count = (uint32_t)jzt_rng_below(ref->rng, OPS_MAX + 1);
    }
    for (uint32_t i = 0; i < c->count; i++) {
        c->ops[i] = choose_op(ref, e.source == FROM_OUTSIDE);
        play_op(ref, &c->ops[i], next, wait);
    }
}

static void handle(reference *ref, event e)
{
    uint32_t next = ref->sc->next[ref->state][e.column];
    bool wait = next == JZX_FSM_POSTPONE;
    stop_timer(ref, 1);
    ref->timed = false;
    if (next == STATES) {
        return;
    }
    next = wait ? JZX_FSM_KEEP : next;
    act(ref, e, &next, &wait);
    bool repeat = next == JZX_FSM_REPEAT;
    bool changed = next < STATES && next != ref->state;
    if (repeat || changed) {
        write_down(ref->out, ref->state, LEFT, 0);
        ref->state = repeat ? ref->state : next;
        enter(ref, changed);
    }
    if (wait && e.source == FROM_OUTSIDE) {
        push(&ref->postponed, e);
    }
    if (changed) {
        put_before(&ref->postponed, &ref->queue);
    }
    put_before(&ref->inserted, &ref->queue);
}

/* Until it has nothing to do but to receive. */
static void settle(reference *ref)
{
    for (;;) {
        if (ref->queue.len > 0) {
            handle(ref, pop(&ref->queue));
        } else if (ref->zeros_len > 0) {
            uint32_t slot = ref->zeros[0];
            stop_timer(ref, slot);
            handle(ref, (event){EVENTS + slot, FROM_INSIDE, ref->timers[slot].value});
        } else {
            return;
        }
    }
}

static void let_time_pass(reference *ref, uint64_t until_ms)
{
    for (;;) {
        uint32_t first = SLOTS;
        for (uint32_t i = 0; i < SLOTS; i++) {
            const clockwork *t = &ref->timers[i];
            if (t->runs && t->due_ms < until_ms &&
                (first == SLOTS || t->due_ms < ref->timers[first].due_ms)) {
                first = i;
            }
        }
        if (first == SLOTS) {
            break;
        }
        ref->now_ms = ref->timers[first].due_ms;
        stop_timer(ref, first);
        handle(ref, (event){EVENTS + first, FROM_INSIDE, ref->timers[first].value});
        settle(ref);
    }
    ref->now_ms = until_ms;
}

/* False: the order of its timers would be in question. */
static bool play_reference(jzt_rng *rng, scenario *sc, journal *out)
{
    static reference ref;
    ref = (reference){.rng = rng, .sc = sc, .out = out};
    out->len = 0;
    sc->calls_len = 0;
    enter(&ref, true);
    settle(&ref);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < sc->burst[round]; i++) {
            handle(&ref, (event){sc->sent[round][i], FROM_OUTSIDE, 100 * round + i});
            settle(&ref);
        }
        let_time_pass(&ref, (round + 1) * (uint64_t)ROUND_MS);
    }
    return !ref.unclear;
}

/* The real machine. */

typedef struct real {
    jzx_fsm fsm;
    jzx_fsm_spec spec;
    const scenario *sc;
    journal *out;
    size_t calls_len;
    jzx_fsm_state_spec states[STATES];
    jzx_fsm_event_spec events[EVENTS];
    jzx_fsm_row rows[STATES * COLUMNS];
    const char *timers[TIMERS];
    uint16_t index[JZX_FSM_INDEX_LEN(STATES, EVENTS, TIMERS)];
} real;

static void do_op(jzx_fsm *fsm, jzx_context *ctx, const op *o)
{
    uint32_t timer = JZX_FSM_STATE_TIMEOUT + o->what;
    switch (o->kind) {
    case OP_GOTO:
        CHECK_OK(jzx_fsm_goto(fsm, o->what));
        break;
    case OP_POSTPONE:
        CHECK_OK(jzx_fsm_postpone(fsm));
        break;
    case OP_INSERT:
        CHECK_OK(jzx_fsm_insert(fsm, tag_of(o->what), o->value));
        break;
    case OP_SET:
        CHECK_OK(jzx_fsm_set_timer(fsm, ctx, timer, o->ms, o->value));
        break;
    case OP_CANCEL:
        (void)jzx_fsm_cancel_timer(fsm, ctx, timer);
        break;
    default:
        CHECK_OK(jzx_fsm_update_timer(fsm, ctx, timer, o->value));
        break;
    }
}

static jzx_behavior_result on_event(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *msg)
{
    real *me = fsm->data;
    write_down(me->out, jzx_fsm_state(fsm), msg->tag, msg->u64);
    if (me->calls_len < me->sc->calls_len) { /* else the journals differ already */
        const call *c = &me->sc->calls[me->calls_len++];
        for (uint32_t i = 0; i < c->count; i++) {
            do_op(fsm, ctx, &c->ops[i]);
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result on_enter(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *msg)
{
    real *me = fsm->data;
    (void)ctx, (void)msg;
    write_down(me->out, jzx_fsm_state(fsm), ENTERED, 0);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result on_exit(jzx_fsm *fsm, jzx_context *ctx, const jzx_message *msg)
{
    real *me = fsm->data;
    (void)ctx, (void)msg;
    write_down(me->out, jzx_fsm_state(fsm), LEFT, 0);
    return JZX_BEHAVIOR_OK;
}

static void make_spec(real *me, bool indexed)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    uint32_t rows = 0;
    for (uint32_t i = 0; i < STATES; i++) {
        me->states[i] = (jzx_fsm_state_spec){names[i], on_enter, on_exit, me->sc->timeout_ms[i],
                                             JZX_FSM_BY_GOTO};
        for (uint32_t k = 0; k < COLUMNS; k++) {
            if (me->sc->next[i][k] != STATES) {
                me->rows[rows++] =
                    (jzx_fsm_row)JZX_FSM_ROW(i, tag_of(k), me->sc->next[i][k], on_event);
            }
        }
    }
    for (uint32_t i = 0; i < EVENTS; i++) {
        me->events[i] = (jzx_fsm_event_spec){tag_of(i), names[i]};
    }
    for (uint32_t i = 0; i < TIMERS; i++) {
        me->timers[i] = names[i];
    }
    me->spec = (jzx_fsm_spec){.states = me->states,
                              .events = me->events,
                              .rows = me->rows,
                              .timers = me->timers,
                              .state_count = STATES,
                              .event_count = EVENTS,
                              .row_count = rows,
                              .timer_count = TIMERS,
                              .index = indexed ? me->index : NULL,
                              .index_len = indexed ? COUNT_OF(me->index) : 0};
}

static jzx_behavior_result real_init(jzx_context *ctx, void *arg)
{
    real *me = arg;
    char why[160];
    CHECK_OK(jzx_fsm_check(&me->spec, why, sizeof why));
    CHECK_STR(why, "");
    REQUIRE_OK(jzx_fsm_init(&me->fsm, &me->spec, me));
    ctx->state = me;
    return jzx_fsm_start(&me->fsm, ctx);
}

static void play_real(const scenario *sc, bool indexed, journal *out)
{
    static real me;
    jzx_sim_opts sim = {.seed = jzt_seed() | 1, .cost_ns = JZX_SIM_NO_COST};
    jzx_kit_opts opts = {.sim = &sim};
    jzx_kit *kit = NULL;
    REQUIRE_OK(jzx_kit_open(&opts, &kit));
    me = (real){.sc = sc, .out = out};
    out->len = 0;
    make_spec(&me, indexed);
    jzx_spawn_opts actor = {.behavior = jzx_fsm_behavior, .init = real_init, .state = &me};
    jzx_actor_id id = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn(kit->loop, &actor, &id));
    REQUIRE_OK(jzx_loop_run_until_idle(kit->loop));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < sc->burst[round]; i++) {
            REQUIRE_OK(jzx_send_u64(kit->loop, id, 100 * round + i, tag_of(sc->sent[round][i])));
        }
        REQUIRE_OK(jzx_kit_run(kit, ROUND_MS));
    }
    CHECK_EQ(jzx_actor_state(kit->loop, id), JZX_STATE_RUNNING);
    const char *wrong = jzx_kit_close(kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

static void make_scenario(jzt_rng *rng, scenario *sc)
{
    static const uint32_t special[] = {JZX_FSM_KEEP,     JZX_FSM_KEEP,   JZX_FSM_POSTPONE,
                                       JZX_FSM_POSTPONE, JZX_FSM_REPEAT, STATES};
    for (uint32_t i = 0; i < STATES; i++) {
        bool timeout = jzt_rng_below(rng, 3) == 0;
        sc->timeout_ms[i] = timeout ? 100 + (uint32_t)jzt_rng_below(rng, ROUND_MS) : 0;
        for (uint32_t k = 0; k < COLUMNS; k++) {
            uint64_t way = jzt_rng_below(rng, STATES + COUNT_OF(special));
            uint32_t next = way < STATES ? (uint32_t)way : special[way - STATES];
            bool can_wait = k < EVENTS;
            sc->next[i][k] = next == JZX_FSM_POSTPONE && !can_wait ? JZX_FSM_KEEP : next;
        }
        if (timeout && sc->next[i][EVENTS] == STATES) {
            sc->next[i][EVENTS] = JZX_FSM_REPEAT; /* a state with a timeout has a row for it */
        }
    }
    for (uint32_t i = 0; i < ROUNDS; i++) {
        sc->burst[i] = (uint32_t)jzt_rng_below(rng, BURST_MAX + 1);
        for (uint32_t k = 0; k < sc->burst[i]; k++) {
            sc->sent[i][k] = (uint32_t)jzt_rng_below(rng, EVENTS);
        }
    }
}

/* True when they are equal; else the first difference is shown. */
static bool same(const journal *want, const journal *got, uint64_t number)
{
    size_t i = 0;
    while (i < want->len && i < got->len && want->lines[i].state == got->lines[i].state &&
           want->lines[i].tag == got->lines[i].tag && want->lines[i].value == got->lines[i].value) {
        i++;
    }
    if (i == want->len && i == got->len) {
        return true;
    }
    fprintf(stderr, "  scenario %llu: %zu lines expected, %zu there; differ at %zu\n",
            (unsigned long long)number, want->len, got->len, i);
    for (size_t k = i > 8 ? i - 8 : 0; k <= i + 1; k++) {
        const line *w = k < want->len ? &want->lines[k] : &(line){0};
        const line *g = k < got->len ? &got->lines[k] : &(line){0};
        fprintf(stderr, "  %3zu want %u:%x=%u got %u:%x=%u\n", k, (unsigned)w->state,
                (unsigned)w->tag, (unsigned)w->value, (unsigned)g->state, (unsigned)g->tag,
                (unsigned)g->value);
    }
    return false;
}

static void test_random_machines_follow_the_rules(void)
{
    static scenario sc;
    static journal want, got;
    jzt_rng rng = jzt_rng_seeded();
    const char *asked = getenv("JZX_MODEL_SEEDS");
    uint64_t scenarios = asked == NULL ? (JZT_SANITIZED ? 150 : 1000) : strtoull(asked, NULL, 10);
    uint64_t lines = 0;
    uint64_t played = 0;
    for (uint64_t i = 0; i < scenarios && jzt_failures() == 0; i++) {
        make_scenario(&rng, &sc);
        if (!play_reference(&rng, &sc, &want)) {
            continue;
        }
        played++;
        play_real(&sc, i % 2 == 0, &got);
        CHECK(same(&want, &got, i));
        lines += want.len;
    }
    CHECK(played > scenarios / 2);
    CHECK(lines > played * 50);
}

static const jzt_test tests[] = {
    {"random_machines_follow_the_rules", test_random_machines_follow_the_rules},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
