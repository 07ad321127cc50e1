/* Goal: with `serialize` the callbacks of all dispatchers come on the thread of "loop", one after
 * the other, in order, with copies that are valid; what cannot be told costs no message, and
 * nothing is left behind (R5, R6, R21, R31).
 * Method: a recorder without locks or atomics, so that a sanitizer sees every call that is not in
 * the row; actors in every place that start, fail, restart, give up, overflow and end. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "nest.h"
#include "world.h"

#include "loop/system.h" /* how many were not told */

enum { WORK = 1, GO = 2, SEEN_MAX = 40000 };

typedef enum sort {
    START,
    STOP,
    FAILED,
    RESTART,
    RESTART_SHORT,
    ESCALATE,
    ESCALATE_SHORT,
    FULL,
    LOOP_START,
    LOOP_STOP,
    LETTER
} sort;

typedef struct glance {
    sort what;
    jzx_actor_id id;
    jzx_actor_id other;
    char name[JZX_NAME_MAX + 1];
    char child[JZX_NAME_MAX + 1];
    jzx_reason reason;
    uint64_t u64;
    uint64_t seq;
    uint32_t number;
} glance;

typedef struct recorder {
    world *w;
    pthread_t thread;
    bool inside;
    bool closed; /* it must not be called any more */
    size_t count;
    glance seen[SEEN_MAX];
} recorder;

static glance *add(void *ctx, sort what, jzx_actor_id id)
{
    recorder *rec = ctx;
    CHECK(!rec->inside);
    CHECK(!rec->closed);
    CHECK(pthread_equal(rec->thread, pthread_self()));
    rec->inside = true;
    REQUIRE(rec->count < SEEN_MAX);
    glance *at = &rec->seen[rec->count++];
    *at = (glance){.what = what, .id = id};
    rec->inside = false;
    return at;
}

static void on_start(void *ctx, jzx_actor_id id, const char *name)
{
    recorder *rec = ctx;
    snprintf(add(ctx, START, id)->name, JZX_NAME_MAX, "%s", name);
    cast_observer.on_actor_spawn(&rec->w->cast, id, name);
}

static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    recorder *rec = ctx;
    glance *at = add(ctx, STOP, id);
    snprintf(at->name, sizeof at->name, "%s", name);
    at->reason = *reason;
    cast_observer.on_actor_stop(&rec->w->cast, id, name, reason);
}

static void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    glance *at = add(ctx, FAILED, id);
    snprintf(at->name, sizeof at->name, "%s", name);
    at->reason = *reason;
}

static void on_actor_restart(void *ctx, jzx_actor_id id, int attempt)
{
    add(ctx, RESTART_SHORT, id)->number = (uint32_t)attempt;
}

static void on_restart(void *ctx, const jzx_restart_event *e)
{
    glance *at = add(ctx, RESTART, e->id);
    snprintf(at->name, sizeof at->name, "%s", e->name);
    at->other = e->supervisor;
    at->reason = *e->cause;
    at->number = e->incarnation;
}

static void on_supervisor_escalate(void *ctx, jzx_actor_id id)
{
    (void)add(ctx, ESCALATE_SHORT, id);
}

static void on_escalate(void *ctx, const jzx_escalation_event *e)
{
    glance *at = add(ctx, ESCALATE, e->supervisor);
    snprintf(at->name, sizeof at->name, "%s", e->supervisor_name);
    snprintf(at->child, sizeof at->child, "%s", e->child_name);
    at->other = e->child;
    at->reason = *e->cause;
    at->number = e->reason;
}

static void on_full(void *ctx, jzx_actor_id id)
{
    (void)add(ctx, FULL, id);
}

static void on_loop_start(void *ctx)
{
    (void)add(ctx, LOOP_START, 0);
}

static void on_loop_stop(void *ctx)
{
    (void)add(ctx, LOOP_STOP, 0);
}

static void on_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    glance *at = add(ctx, LETTER, letter->target);
    at->other = letter->sender;
    at->seq = letter->seq;
    at->number = letter->reason;
    CHECK_EQ(msg->tag, letter->tag);
    CHECK_EQ(msg->len, letter->len);
    CHECK_EQ(msg->sender, letter->sender);
    CHECK(msg->drop == NULL);
    if ((msg->flags & JZX_MSG_VALUE) != 0) {
        at->u64 = msg->u64;
    } else {
        CHECK(msg->data == NULL);
    }
}

static const jzx_observer everything = {.on_actor_start = on_start,
                                        .on_actor_stop = on_stop,
                                        .on_actor_restart = on_actor_restart,
                                        .on_supervisor_escalate = on_supervisor_escalate,
                                        .on_mailbox_full = on_full,
                                        .on_loop_start = on_loop_start,
                                        .on_loop_stop = on_loop_stop,
                                        .on_dead_letter = on_letter,
                                        .on_actor_fail = on_fail,
                                        .on_restart = on_restart,
                                        .on_escalate = on_escalate};

/* It listens until somebody else does. */
static recorder *listen_to(world *w)
{
    recorder *rec = calloc(1, sizeof *rec);
    REQUIRE(rec != NULL);
    rec->w = w;
    rec->thread = pthread_self();
    REQUIRE_OK(jzx_system_set_observer(w->system, &everything, rec, 1));
    return rec;
}

/* The nth of its kind about an actor (0: any); NULL: there is none. */
static const glance *find(const recorder *rec, sort what, jzx_actor_id id, size_t nth)
{
    for (size_t i = 0; i < rec->count; i++) {
        const glance *at = &rec->seen[i];
        if (at->what == what && (id == 0 || at->id == id) && nth-- == 0) {
            return at;
        }
    }
    return NULL;
}

static size_t count_of(const recorder *rec, sort what, jzx_actor_id id)
{
    size_t count = 0;
    while (find(rec, what, id, count) != NULL) {
        count++;
    }
    return count;
}

static void test_starts_and_ends_of_all_dispatchers_come_in_a_row_R31(void)
{
    world *w = world_open();
    recorder *rec = listen_to(w);
    for (size_t i = 0; i < PLACES; i++) {
        char name[16];
        snprintf(name, sizeof name, "at %s", places[i]);
        puppet *a = puppet_up(puppet_at(w, name, places[i]));
        jzx_actor_id id = ID_OF(a);
        WAIT(w, find(rec, START, id, 0) != NULL);
        CHECK_STR(find(rec, START, id, 0)->name, name);
        puppet_order(a, T_FAIL);
        WAIT(w, find(rec, STOP, id, 0) != NULL);
        const glance *fail = find(rec, FAILED, id, 0);
        const glance *stop = find(rec, STOP, id, 0);
        REQUIRE(fail != NULL);
        CHECK(find(rec, START, id, 0) < fail && fail < stop);
        CHECK_STR(fail->name, name);
        CHECK_STR(stop->name, name);
        CHECK_EQ(fail->reason.code, 7);
        CHECK_STR(fail->reason.text, "as told");
        CHECK_EQ(stop->reason.kind, JZX_REASON_FAILED);
        CHECK_STR(stop->reason.text, "as told");
    }
    CHECK_EQ(rec->count, 4 * PLACES); /* with what each failed on */
    world_close(w);
    free(rec);
}

/* The supervisor in one place, the kid in another. */
static void restart_and_give_up(world *w, recorder *rec, size_t at, size_t which)
{
    rec->count = 0;
    nest *n = nest_new(w, at, JZX_PERMANENT);
    n->spec.intensity = 1;
    nest_start(n);
    puppet *kid = n->kid[which];
    jzx_actor_id id = ID_OF(kid);
    puppet_order(kid, T_FAIL);
    WAIT(w, find(rec, RESTART_SHORT, id, 0) != NULL);
    const glance *again = find(rec, RESTART, id, 0);
    REQUIRE(again != NULL);
    CHECK(find(rec, FAILED, id, 0) < again);
    CHECK(find(rec, RESTART_SHORT, id, 0) == again + 1 || which != 0);
    CHECK_STR(again->name, kid->name);
    CHECK_EQ(again->other, n->sup);
    CHECK_STR(again->reason.text, "as told");
    CHECK_EQ(again->number, 2);
    CHECK_EQ(find(rec, RESTART_SHORT, id, 0)->number, 1);
    WAIT(w, puppet_signals(kid, JZX_SIGNAL_POST_RESTART) == 1);
    puppet_order(kid, T_FAIL);
    WAIT(w, find(rec, STOP, n->sup, 0) != NULL);
    const glance *over = find(rec, ESCALATE, n->sup, 0);
    REQUIRE(over != NULL);
    CHECK(find(rec, ESCALATE_SHORT, n->sup, 0) < over && over < find(rec, STOP, n->sup, 0));
    CHECK_STR(over->name, "sup");
    CHECK_STR(over->child, kid->name);
    CHECK_EQ(over->other, id);
    CHECK_STR(over->reason.text, "as told");
    CHECK_EQ(over->number, JZX_REASON_GAVE_UP);
    CHECK_EQ(count_of(rec, ESCALATE, 0), 1);
    nest_close(n);
    CHECK_EQ(count_of(rec, START, 0), count_of(rec, STOP, 0));
}

static void test_restarts_and_escalations_bring_their_strings_along_R19(void)
{
    for (size_t at = 0; at < PLACES; at++) {
        world *w = world_open();
        recorder *rec = listen_to(w);
        restart_and_give_up(w, rec, at, at % KIDS);
        world_close(w);
        free(rec);
    }
}

/* Sends to itself more than it has room for. */
static void overflow(jzx_context *ctx, puppet *self, void *arg)
{
    (void)self;
    (void)arg;
    CHECK_OK(jzx_send_u64(ctx->loop, ctx->self, 0, WORK));
    jzx_err err = jzx_send_u64(ctx->loop, ctx->self, 0, WORK);
    CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL); /* the call itself may take some room */
    CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 0, WORK), JZX_ERR_MAILBOX_FULL);
    CHECK_EQ(jzx_send_u64(ctx->loop, ctx->self, 0, WORK), JZX_ERR_MAILBOX_FULL);
}

static void test_full_mailboxes_are_told_R21(void)
{
    world *w = world_open();
    recorder *rec = listen_to(w);
    for (size_t i = 0; i < PLACES; i++) {
        puppet *a = puppet_at(w, places[i], places[i]);
        a->opts.mailbox_cap = 2;
        puppet_up(a);
        puppet_call(a, overflow, NULL);
        WAIT(w, find(rec, FULL, ID_OF(a), 0) != NULL);
        puppet_end(a);
        CHECK_EQ(count_of(rec, FULL, ID_OF(a)), 1);
    }
    world_close(w);
    free(rec);
}

static void test_runs_of_the_loop_are_told_in_their_place_R31(void)
{
    world *w = world_open();
    recorder *rec = listen_to(w);
    jzx_loop_request_stop(w->loop);
    REQUIRE_OK(jzx_loop_run(w->loop));
    world_settle(w);
    REQUIRE_EQ(rec->count, 2);
    CHECK_EQ(rec->seen[0].what, LOOP_START);
    CHECK_EQ(rec->seen[1].what, LOOP_STOP);
    world_close(w);
    free(rec);
}

typedef struct load {
    uint64_t count;
    uint64_t first;
    _Atomic uint64_t sent; /* that were accepted */
} load;

/* A box for one that drops what is new: all but one of these die, in this order. */
static void flood(jzx_context *ctx, puppet *self, void *arg)
{
    load *l = arg;
    (void)self;
    for (uint64_t i = 0; i < l->count; i++) {
        jzx_err err = jzx_send_u64(ctx->loop, ctx->self, l->first + i, WORK);
        CHECK(err == JZX_OK || err == JZX_ERR_NO_MEMORY);
        atomic_fetch_add(&l->sent, err == JZX_OK);
    }
}

static puppet *box_start(world *w, const char *name, const char *place)
{
    puppet *a = puppet_at(w, name, place);
    a->opts.mailbox_cap = 1;
    a->opts.full_policy = JZX_FULL_DROP_NEWEST;
    return puppet_up(a);
}

static jzx_behavior_result flood_on_go(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag == GO) {
        flood(ctx, self, self->arg);
    }
    return JZX_BEHAVIOR_OK;
}

/* Of one dispatcher they come in the order in which they were made; R6 for what is observed. */
static void test_letters_of_each_dispatcher_come_in_their_order_R6(void)
{
    enum { EACH = JZT_SANITIZED ? 500 : 2000 };
    world *w = world_open();
    recorder *rec = listen_to(w);
    puppet *box[PLACES];
    load l = {.count = EACH, .first = 1};
    for (size_t i = 0; i < PLACES; i++) {
        box[i] = puppet_at(w, places[i], places[i]);
        box[i]->opts.mailbox_cap = 2;
        box[i]->opts.full_policy = JZX_FULL_DROP_NEWEST;
        box[i]->on = flood_on_go;
        box[i]->arg = &l;
        puppet_up(box[i]);
    }
    for (size_t i = 0; i < PLACES; i++) {
        REQUIRE_OK(jzx_send_async_u64(w->sender, ID_OF(box[i]), 0, GO));
    }
    for (size_t i = 0; i < PLACES; i++) {
        WAIT(w, atomic_load(&box[i]->worked) > 1);
    }
    world_settle(w);
    jzx_counters c = world_counters(w);
    CHECK_EQ(count_of(rec, LETTER, 0), c.dead);
    for (size_t i = 0; i < PLACES; i++) {
        uint64_t last = 0;
        uint64_t seq = 0;
        uint64_t letters = 0;
        for (size_t j = 0; j < rec->count; j++) {
            const glance *at = &rec->seen[j];
            if (at->what == LETTER && at->id == ID_OF(box[i])) {
                CHECK(at->u64 > last);
                CHECK(at->seq > seq);
                CHECK_EQ(at->other, at->id);
                last = at->u64;
                seq = at->seq;
                letters++;
            }
        }
        CHECK_EQ(letters + atomic_load(&box[i]->worked), EACH + 1);
        puppet_end(box[i]);
    }
    world_close(w);
    free(rec);
}

static _Atomic uint64_t drops;

static void count_drop(void *data)
{
    free(data);
    atomic_fetch_add(&drops, 1);
}

static void send_block_twice(jzx_context *ctx, puppet *self, void *arg)
{
    (void)self;
    (void)arg;
    for (int i = 0; i < 2; i++) {
        jzx_send_opts opts = {.data = malloc(16), .len = 16, .drop = count_drop, .tag = WORK};
        memset(opts.data, 7, 16);
        CHECK_OK(jzx_send_with(ctx->loop, ctx->self, &opts));
    }
}

static void test_of_a_letter_everything_but_its_data_is_told_R21(void)
{
    world *w = world_open();
    recorder *rec = listen_to(w);
    for (size_t i = 0; i < PLACES; i++) {
        puppet *box = box_start(w, places[i], places[i]);
        atomic_store(&drops, 0);
        puppet_call(box, send_block_twice, NULL);
        WAIT(w, find(rec, LETTER, ID_OF(box), 0) != NULL);
        CHECK_EQ(find(rec, LETTER, ID_OF(box), 0)->number, JZX_DEAD_DROPPED_NEWEST);
        puppet_end(box);
        CHECK_EQ(atomic_load(&drops), 2); /* the other one by the actor's end or its behavior */
    }
    world_close(w);
    free(rec);
}

/* "loop" stands still, so that what happens elsewhere waits. */
static void happen_elsewhere(world *w, const char *name, size_t at)
{
    puppet *box = box_start(w, name, places[at]);
    load l = {.count = 10, .first = 1};
    uint64_t before = world_counters(w).ended;
    puppet_call(box, flood, &l);
    puppet_order(box, T_STOP);
    if (at != AT_LOOP) {
        WAIT_STILL(world_counters(w).ended > before);
    }
}

static void test_who_listens_no_more_is_not_called_R31(void)
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        for (int next = 0; next < 3; next++) {
            recorder *rec = listen_to(w);
            happen_elsewhere(w, "box", at);
            rec->closed = true;
            recorder *heir = NULL;
            if (next == 0) {
                REQUIRE_OK(jzx_system_set_observer(w->system, NULL, NULL, 1));
            } else if (next == 1) {
                REQUIRE_OK(jzx_system_set_observer(w->system, NULL, NULL, 0));
            } else {
                heir = listen_to(w);
            }
            free(rec); /* a call would be seen as a use of freed memory */
            world_settle(w);
            CHECK(heir == NULL || at == AT_LOOP || heir->count <= 1); /* its last sign of life */
            REQUIRE_OK(jzx_system_set_observer(w->system, NULL, NULL, 1));
            free(heir);
        }
    }
    atomic_store(&w->cast.starts, 0); /* whoever listened heard of some */
    atomic_store(&w->cast.ends, 0);
    world_close(w);
}

static void test_what_waits_is_told_when_the_system_is_destroyed_R31(void)
{
    for (size_t at = 0; at < PLACES; at++) {
        world *w = world_open();
        recorder *rec = listen_to(w);
        happen_elsewhere(w, "box", at);
        puppet *left = puppet_up(puppet_at(w, "left", places[at]));
        happen_elsewhere(w, "other", (at + 1) % PLACES);
        (void)left;
        jzx_counters c = world_counters(w);
        jzx_sender_release(w->sender);
        REQUIRE_OK(jzx_system_destroy(w->system));
        CHECK_EQ(count_of(rec, START, 0), c.spawned);
        CHECK_EQ(count_of(rec, STOP, 0), c.spawned);
        CHECK(count_of(rec, LETTER, 0) >= 9);
        CHECK_EQ(jzx_fault_leaked(w->fault, NULL), 0);
        jzx_fault_destroy(w->fault);
        cast_close(&w->cast);
        free(w);
        free(rec);
    }
}

/* How many letters there were while there was no memory. */
static uint64_t flood_without_memory(puppet *box)
{
    world *w = box->w;
    load l = {.count = 50, .first = 1};
    uint64_t dead = world_counters(w).dead;
    uint64_t handled = atomic_load(&box->worked);
    jzx_fault_arm_alloc(w->fault, 1, 1);
    puppet_call(box, flood, &l);
    if (!puppet_on_loop(box)) {
        WAIT_STILL(world_counters(w).dead - dead + atomic_load(&box->worked) - handled == l.sent);
    }
    jzx_fault_arm_alloc(w->fault, 0, 0);
    world_settle(w);
    uint64_t died = world_counters(w).dead - dead;
    CHECK_EQ(died + atomic_load(&box->worked) - handled, l.sent);
    return died;
}

/* Without memory observations are lost, and nothing else; each one is counted. */
static void test_without_memory_observations_are_lost_but_no_message_R5(void)
{
    world *w = world_open();
    recorder *rec = listen_to(w);
    for (size_t i = 0; i < PLACES; i++) {
        puppet *box = box_start(w, places[i], places[i]);
        load l = {.count = 50, .first = 1};
        uint64_t lost = atomic_load(&w->system->unobserved);
        uint64_t died = 0;
        size_t told = 0;
        /* Until a worker that has nodes from before is the one without memory. */
        for (int n = 0; n < 1000 && atomic_load(&w->system->unobserved) == lost; n++) {
            puppet_call(box, flood, &l);
            world_settle(w);
            told = count_of(rec, LETTER, ID_OF(box));
            died = flood_without_memory(box);
        }
        uint64_t more = atomic_load(&w->system->unobserved) - lost;
        CHECK(more > 0);
        CHECK_EQ(more + count_of(rec, LETTER, ID_OF(box)) - told, died);
        puppet_end(box);
    }
    world_close(w);
    free(rec);
}

static void test_an_observer_is_set_everywhere_or_nowhere_R31(void)
{
    world *w = world_open();
    puppet *a = puppet_up(puppet_at(w, "pool", "pool"));
    world_settle(w);
    recorder *rec = calloc(1, sizeof *rec);
    rec->thread = pthread_self();
    rec->w = w;
    rec->closed = true;
    for (uint64_t n = 1; n <= 3; n++) { /* one for each dispatcher but "loop" */
        jzx_fault_arm_alloc(w->fault, n, 1);
        CHECK_EQ(jzx_system_set_observer(w->system, &everything, rec, 1), JZX_ERR_NO_MEMORY);
        jzx_fault_arm_alloc(w->fault, 0, 0);
    }
    puppet_end(a); /* as the world's own observer tells */
    rec->closed = false;
    CHECK_OK(jzx_system_set_observer(w->system, &everything, rec, 1));
    struct {
        jzx_observer known;
        uint64_t unknown;
    } newer = {everything, 1};
    const void *given = &newer;
    CHECK_EQ(jzx_system_set_observer_sized(w->system, given, sizeof newer, rec, 1),
             JZX_ERR_NEWER_STRUCT);
    a = puppet_up(puppet_at(w, "again", "pool"));
    puppet_end(a);
    CHECK_EQ(rec->count, 2);
    world_close(w);
    free(rec);
}

static const jzt_test tests[] = {
    {"starts_and_ends_of_all_dispatchers_come_in_a_row_R31",
     test_starts_and_ends_of_all_dispatchers_come_in_a_row_R31},
    {"restarts_and_escalations_bring_their_strings_along_R19",
     test_restarts_and_escalations_bring_their_strings_along_R19},
    {"full_mailboxes_are_told_R21", test_full_mailboxes_are_told_R21},
    {"runs_of_the_loop_are_told_in_their_place_R31",
     test_runs_of_the_loop_are_told_in_their_place_R31},
    {"letters_of_each_dispatcher_come_in_their_order_R6",
     test_letters_of_each_dispatcher_come_in_their_order_R6},
    {"of_a_letter_everything_but_its_data_is_told_R21",
     test_of_a_letter_everything_but_its_data_is_told_R21},
    {"who_listens_no_more_is_not_called_R31", test_who_listens_no_more_is_not_called_R31},
    {"what_waits_is_told_when_the_system_is_destroyed_R31",
     test_what_waits_is_told_when_the_system_is_destroyed_R31},
    {"without_memory_observations_are_lost_but_no_message_R5",
     test_without_memory_observations_are_lost_but_no_message_R5},
    {"an_observer_is_set_everywhere_or_nowhere_R31",
     test_an_observer_is_set_everywhere_or_nowhere_R31},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
