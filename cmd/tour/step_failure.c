/* Steps 5 and 6: actors that end badly, and messages that are not handled. */
#include "tour.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEPOSIT = 1, WITHDRAW = 2, NOTE = 3, ACCOUNTS = 3, LETTERS_MAX = 8 };

typedef struct account {
    uint64_t balance;
    unsigned handled;
} account;

typedef struct obituary {
    unsigned count;
    char name[JZX_NAME_MAX + 1];
    jzx_reason reason;
} obituary;

/* However deep the call, a panic ends the actor that is running. */
static void withdraw(jzx_context *ctx, account *me, uint64_t amount)
{
    if (amount > me->balance) {
        jzx_panic(ctx, 17, "balance would be negative");
    }
    me->balance -= amount;
}

static jzx_behavior_result bank(jzx_context *ctx, const jzx_message *msg)
{
    account *me = ctx->state;
    if (msg->tag == WITHDRAW) {
        withdraw(ctx, me, msg->u64);
    } else {
        me->balance += msg->u64;
    }
    me->handled++;
    return JZX_BEHAVIOR_OK;
}

static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    obituary *o = ctx;
    (void)id;
    o->count++;
    snprintf(o->name, sizeof o->name, "%s", name);
    o->reason = *reason;
}

void step_panic(tour *t)
{
    static const char *const names[ACCOUNTS] = {"ann", "bob", "eve"};
    static const jzx_observer observer = {.on_actor_stop = on_stop};
    account accounts[ACCOUNTS] = {{0}};
    jzx_actor_id ids[ACCOUNTS] = {0};
    obituary seen = {0};
    tour_say(
        t, "An actor fails by returning FAIL or by a panic, from any depth. That ends this actor\n"
           "and no other, and the reason is on record.");
    jzx_loop *loop = tour_loop_open(t);
    if (loop == NULL) {
        return;
    }
    bool ready = tour_ok(t, jzx_loop_set_observer(loop, &observer, &seen), "observe");
    for (int i = 0; ready && i < ACCOUNTS; i++) {
        jzx_spawn_opts opts = {.behavior = bank, .state = &accounts[i], .name = names[i]};
        ready = tour_ok(t, jzx_spawn(loop, &opts, &ids[i]), "spawn") &&
                tour_ok(t, jzx_send_u64(loop, ids[i], 100, DEPOSIT), "send") &&
                tour_ok(t, jzx_send_u64(loop, ids[i], i == 1 ? 500 : 50, WITHDRAW), "send");
    }
    if (ready && tour_ok(t, jzx_loop_run_until_idle(loop), "run")) {
        tour_saw(t,
                 seen.count == 1 && seen.reason.kind == JZX_REASON_PANIC && seen.reason.code == 17,
                 "%s ended: %s %" PRId32 ", \"%s\"", seen.name, jzx_reason_name(seen.reason.kind),
                 seen.reason.code, seen.reason.text);
        bool alive = jzx_send_u64(loop, ids[0], 1, DEPOSIT) == JZX_OK &&
                     jzx_send_u64(loop, ids[2], 1, DEPOSIT) == JZX_OK &&
                     jzx_loop_run_until_idle(loop) == JZX_OK;
        tour_saw(t, alive && accounts[0].handled == 3 && accounts[2].handled == 3,
                 "%s and %s went on and hold %" PRIu64 " each", names[0], names[2],
                 accounts[0].balance);
    }
    tour_loop_close(t, loop);
}

static jzx_behavior_result ignore(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

/* One message for each way of dying undelivered. */
static bool letters_make(tour *t, jzx_loop *loop)
{
    jzx_actor_id doomed = 0, slow = 0, newest = 0, oldest = 0;
    jzx_spawn_opts plain = {.behavior = ignore};
    jzx_spawn_opts keep_old = {
        .behavior = ignore, .mailbox_cap = 1, .full_policy = JZX_FULL_DROP_NEWEST};
    jzx_spawn_opts keep_new = {
        .behavior = ignore, .mailbox_cap = 1, .full_policy = JZX_FULL_DROP_OLDEST};
    if (!tour_ok(t, jzx_spawn(loop, &plain, &doomed), "spawn") ||
        !tour_ok(t, jzx_spawn(loop, &plain, &slow), "spawn") ||
        !tour_ok(t, jzx_spawn(loop, &keep_old, &newest), "spawn") ||
        !tour_ok(t, jzx_spawn(loop, &keep_new, &oldest), "spawn")) {
        return false;
    }
    jzx_send_opts late = {.flags = JZX_SEND_VALUE, .tag = NOTE, .deadline_ns = jzx_loop_now(loop)};
    bool sent = tour_ok(t, jzx_send_u64(loop, doomed, 1, NOTE), "send") &&
                tour_ok(t, jzx_stop(loop, doomed), "stop") &&
                tour_ok(t, jzx_send_with(loop, slow, &late), "send");
    for (uint64_t i = 0; sent && i < 2; i++) {
        sent = tour_ok(t, jzx_send_u64(loop, newest, i, NOTE), "send") &&
               tour_ok(t, jzx_send_u64(loop, oldest, i, NOTE), "send");
    }
    return sent && tour_saw(t, jzx_send_u64(loop, doomed, 2, NOTE) == JZX_ERR_STOPPING,
                            "a send to an ending actor is refused: that is no dead letter");
}

void step_dead_letters(tour *t)
{
    jzx_dead_letter letters[LETTERS_MAX];
    uint64_t cursor = 0;
    unsigned by_reason[JZX_DEAD_REASONS] = {0};
    tour_say(
        t, "A message that was accepted but not handled becomes a dead letter. A hook sees it, a\n"
           "ring remembers its facts, and counters say how many died of what.");
    jzx_loop *loop = tour_loop_open(t);
    if (loop == NULL) {
        return;
    }
    if (letters_make(t, loop) && tour_ok(t, jzx_loop_run_until_idle(loop), "run")) {
        size_t n = jzx_dead_letters_read(loop, &cursor, letters, LETTERS_MAX, NULL);
        for (size_t i = 0; i < n; i++) {
            by_reason[letters[i].reason % JZX_DEAD_REASONS]++;
            tour_saw(t, letters[i].tag == NOTE, "letter %" PRIu64 ": tag %" PRIu32 ", %s",
                     letters[i].seq, letters[i].tag, jzx_dead_reason_name(letters[i].reason));
        }
        tour_saw(t,
                 n == 4 && by_reason[JZX_DEAD_STOPPED] == 1 && by_reason[JZX_DEAD_EXPIRED] == 1 &&
                     by_reason[JZX_DEAD_DROPPED_NEWEST] == 1 &&
                     by_reason[JZX_DEAD_DROPPED_OLDEST] == 1,
                 "%zu letters, one for each reason", n);
    }
    tour_loop_close(t, loop);
}
