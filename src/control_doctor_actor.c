/* What one actor after the other suffers from: mailboxes, dead letters, time. */
#include "control_doctor_steps.h"

#include "base/alloc.h"
#include "os/thread.h"

enum {
    WIDE = 1000,     /* children of an actor that does not supervise */
    DEAD_MANY = 100, /* dead letters that are worth a word, */
    DEAD_SHARE = 10, /* if they are at least one in so many messages */
    SUSPECTS_MAX = 64,
    SLOW_MAX = 64,
    SLOW_MANY = 3
};
#define BETWEEN_LOOKS_NS UINT64_C(20000000)
#define STUCK_NS UINT64_C(1000000000)
#define ENDLESS_NS UINT64_C(1000000000)
#define SLOW_NS UINT64_C(100000000)
#define VERY_SLOW_NS UINT64_C(1000000000)

typedef struct census {
    jzi_doctor *doctor;
    /* How many there are of each rule: of 100,000 not every one is compared with the findings. */
    uint32_t tiny;
    uint32_t dead;
    uint32_t suspect_count;
    jzx_actor_id suspects[SUSPECTS_MAX]; /* with a mailbox that is full, or nearly */
} census;

static bool is_nearly_full(const jzi_sight *sight)
{
    return sight->cap > 1 && (uint64_t)sight->mailbox * 10 >= (uint64_t)sight->cap * 9;
}

/* Takes no lock and calls nothing of the program's: jzi_find() only writes. */
static bool examine(void *ctx, const jzi_sight *sight)
{
    census *all = ctx;
    jzi_doctor *doctor = all->doctor;
    if (is_nearly_full(sight) && all->suspect_count < SUSPECTS_MAX) {
        all->suspects[all->suspect_count++] = sight->id;
    }
    if (sight->cap == 1 && all->tiny++ < JZI_FINDINGS_PER_RULE) {
        jzi_find(doctor, JZI_NOTE, "tiny-mailbox", sight->id,
                 "Give it a larger mailbox_cap, unless one at a time is what you mean.",
                 "Its mailbox holds one message: whoever sends while that waits is refused.");
    }
    if (sight->dead >= DEAD_MANY && sight->dead >= sight->accepted / DEAD_SHARE &&
        all->dead++ < JZI_FINDINGS_PER_RULE) {
        jzi_find(doctor, JZI_WARNING, "dead-letters", sight->id,
                 "See `jzx dead` for the reasons; a larger mailbox_cap, a slower sender or "
                 "jzx_notify_room() help against a full one.",
                 "%u of the %u messages that it accepted became dead letters.",
                 (unsigned)sight->dead, (unsigned)sight->accepted);
    }
    if (sight->children >= WIDE && !sight->supervises) {
        jzi_find(doctor, JZI_NOTE, "wide-parent", sight->id,
                 "Put them under a dynamic supervisor, which restarts them and stops them "
                 "together.",
                 "It is the plain parent of %u actors: if one of them fails it is gone, and when "
                 "this one ends it waits for all of them.",
                 (unsigned)sight->children);
    }
    return true;
}

/* A mailbox that is full for a moment is none of our business. */
static void examine_mailboxes(const census *all)
{
    if (all->suspect_count > 0) {
        jzi_thread_pause(BETWEEN_LOOKS_NS);
    }
    for (uint32_t i = 0; i < all->suspect_count; i++) {
        jzi_sight sight;
        if (jzi_peek_actor(&all->doctor->control->view, all->suspects[i], &sight) &&
            is_nearly_full(&sight)) {
            jzi_find(all->doctor, JZI_WARNING, "full-mailbox", sight.id,
                     "Make it faster, spread its work over a router, slow its senders down with "
                     "jzx_notify_room(), or raise mailbox_cap.",
                     "Its mailbox stays full: %u of %u messages wait.", (unsigned)sight.mailbox,
                     (unsigned)sight.cap);
        }
    }
}

void jzi_doctor_actors(jzi_doctor *doctor)
{
    census all = {.doctor = doctor};
    jzi_peek_actors(&doctor->control->view, examine, &all);
    examine_mailboxes(&all);
}

void jzi_doctor_stuck(jzi_doctor *doctor)
{
    jzi_worker_sight workers[SUSPECTS_MAX];
    size_t count = jzi_find_stuck(doctor->control, doctor->now_ns, STUCK_NS, workers, SUSPECTS_MAX);
    for (size_t i = 0; i < count; i++) {
        char name[JZX_DISPATCHER_NAME_MAX + 1];
        jzi_dispatcher_name(doctor->control, workers[i].dispatcher, name);
        jzi_find(doctor, JZI_ERROR, "stuck", workers[i].actor,
                 "`jzx stuck` shows where it is. Behaviors must return: long work belongs to "
                 "jzx_run_blocking() or into pieces.",
                 "It has not returned from its code for %llu ms, and keeps dispatcher %s, worker "
                 "%u.",
                 (unsigned long long)jzi_ms_since(workers[i].turn_ns, doctor->now_ns), name,
                 (unsigned)workers[i].number);
        doctor->any_overrun = true;
    }
}

void jzi_doctor_asks(jzi_doctor *doctor)
{
    jzi_waits waits = {0};
    jzi_waits_gather(doctor->control, doctor->now_ns, ENDLESS_NS, &waits, &doctor->silence);
    for (size_t i = 0; i < waits.count; i++) {
        if (waits.list[i].endless) {
            jzi_find(doctor, JZI_WARNING, "ask-without-deadline", waits.list[i].asker,
                     "Give the ask a timeout_ms, so that the asker hears when nobody answers.",
                     "It asked actor %llx %llu ms ago, without a deadline, and has no answer.",
                     (unsigned long long)waits.list[i].callee,
                     (unsigned long long)(waits.list[i].age_ns / 1000000u));
        }
    }
    jzi_waits_free(doctor->control, &waits);
}

/* Turns that took too long, from what the flight recorder still has. */
typedef struct slow {
    jzx_actor_id actor;
    uint32_t times;
    uint64_t longest_ns;
} slow;
typedef struct slow_list {
    uint32_t count;
    slow list[SLOW_MAX];
} slow_list;

static void add_slow(slow_list *all, const jzi_tap_event *event)
{
    uint32_t at = 0;
    if (event->what != JZI_TAP_OVERRUN || event->value < SLOW_NS) {
        return;
    }
    while (at < all->count && all->list[at].actor != event->actor) {
        at++;
    }
    if (at == SLOW_MAX) {
        return;
    }
    if (at == all->count) {
        all->list[all->count++] = (slow){.actor = event->actor};
    }
    slow *one = &all->list[at];
    one->times++;
    one->longest_ns = event->value > one->longest_ns ? event->value : one->longest_ns;
}

static void read_events(const jzi_view *view, const jzi_worker_sight *worker, slow_list *all)
{
    jzi_tap_event events[128];
    uint64_t cursor = 0;
    uint64_t lost = 0;
    uint64_t newest = 0;
    uint64_t skipped = 0;
    size_t count = 1;
    jzi_peek_tap(view, worker->dispatcher, worker->number, &newest, &skipped);
    while (cursor < newest && count > 0) { /* what comes meanwhile is the next one's */
        count =
            jzi_peek_events(view, worker->dispatcher, worker->number, &cursor, events, 128, &lost);
        for (size_t i = 0; i < count; i++) {
            add_slow(all, &events[i]);
        }
    }
}

void jzi_doctor_overruns(jzi_doctor *doctor)
{
    const jzi_view *view = &doctor->control->view;
    slow_list all = {0};
    size_t count = 0;
    jzi_worker_sight *workers = jzi_workers_now(doctor->control, &count);
    for (size_t i = 0; i < count; i++) {
        read_events(view, &workers[i], &all);
    }
    jzi_free(&view->alloc, workers, count * sizeof *workers);
    for (uint32_t i = 0; i < all.count; i++) {
        const slow *one = &all.list[i];
        if (one->times >= SLOW_MANY || one->longest_ns >= VERY_SLOW_NS) {
            doctor->any_overrun = true;
            jzi_find(doctor, JZI_WARNING, "blocking-behavior", one->actor,
                     "Behaviors must not wait: use jzx_run_blocking(), timers or asks, or give it "
                     "a dispatcher of its own (\"pinned\").",
                     "It kept its dispatcher for over 100 ms %u times of late, once for %llu ms.",
                     (unsigned)one->times, (unsigned long long)(one->longest_ns / 1000000u));
        }
    }
}
