/* What each thread can see of one actor after the other: mailboxes, dead letters, time. */
#include "control/op_facts_priv.h"

#include "base/alloc.h"
#include "os/thread.h"

enum { SUSPECTS_MAX = 64, SEEN_MAX = SUSPECTS_MAX + 3 * JZI_FACTS_PER_KIND, SLOW_MAX = 64 };
#define BETWEEN_LOOKS_NS UINT64_C(20000000)
#define NS_PER_MS UINT64_C(1000000)

/* Why an actor is listed. */
enum { FULL, SMALL, DEAD, WIDE, REASONS };

typedef struct census {
    const jzi_limits *limits;
    uint32_t found[REASONS];
    uint32_t count;
    bool cut;
    jzi_actor_snapshot seen[SEEN_MAX];
} census;

/* One more of that reason, and there is room for it. */
static bool facts_actor_admit(census *all, uint32_t reason, uint32_t most)
{
    if (all->found[reason] == most) {
        all->cut = true;
        return false;
    }
    all->found[reason]++;
    return true;
}

/* Takes no lock and calls nothing of the program's. */
static bool see_actor(void *ctx, const jzi_actor_snapshot *snapshot)
{
    census *all = ctx;
    const jzi_limits *limits = all->limits;
    bool full = snapshot->cap > 1 && (uint64_t)snapshot->mailbox * 100 >=
                                         (uint64_t)snapshot->cap * limits->mailbox_percent;
    bool dead =
        snapshot->dead > 0 && snapshot->dead >= limits->dead_min &&
        (limits->dead_share == 0 || snapshot->dead >= snapshot->accepted / limits->dead_share);
    bool small = snapshot->cap > 0 && snapshot->cap <= limits->cap_max;
    bool wide = !snapshot->supervises && snapshot->children > 0 &&
                snapshot->children >= limits->children_min;
    bool listed = full && facts_actor_admit(all, FULL, SUSPECTS_MAX);
    listed = (small && facts_actor_admit(all, SMALL, JZI_FACTS_PER_KIND)) || listed;
    listed = (dead && facts_actor_admit(all, DEAD, JZI_FACTS_PER_KIND)) || listed;
    listed = (wide && facts_actor_admit(all, WIDE, JZI_FACTS_PER_KIND)) || listed;
    if (listed) {
        all->seen[all->count++] = *snapshot;
    }
    return true;
}

/* A mailbox that is full for a moment is nothing to tell: what waited at both looks counts. */
static void write_actor(jzi_facts *facts, const jzi_actor_snapshot *before)
{
    jzi_json *out = &facts->client->out;
    jzi_actor_snapshot now;
    if (!jzi_peek_actor(&facts->control->view, before->id, &now)) {
        return;
    }
    jzi_facts_open(facts, now.id);
    jzi_json_u64(out, "mailbox", before->mailbox < now.mailbox ? before->mailbox : now.mailbox);
    jzi_json_u64(out, "cap", now.cap);
    jzi_json_u64(out, "accepted", now.accepted);
    jzi_json_u64(out, "dead", now.dead);
    jzi_json_u64(out, "children", now.children);
    jzi_json_bool(out, "supervisor", now.supervises);
    jzi_json_close(out, '}');
}

void jzi_facts_actors(jzi_facts *facts)
{
    const jzx_allocator *alloc = &facts->control->view.alloc;
    census *all = jzi_alloc_zeroed(alloc, sizeof *all);
    jzi_json_open(&facts->client->out, "actors", '[');
    if (all == NULL) {
        facts->cut = true;
    } else {
        all->limits = &facts->limits;
        jzi_peek_actors(&facts->control->view, see_actor, all);
        if (all->found[FULL] > 0) {
            jzi_thread_pause(BETWEEN_LOOKS_NS);
        }
        for (uint32_t i = 0; i < all->count; i++) {
            write_actor(facts, &all->seen[i]);
        }
        facts->cut = facts->cut || all->cut;
        jzi_free(alloc, all, sizeof *all);
    }
    jzi_json_close(&facts->client->out, ']');
}

void jzi_facts_running(jzi_facts *facts)
{
    jzi_json *out = &facts->client->out;
    jzi_worker_snapshot workers[SUSPECTS_MAX];
    size_t count = jzi_workers_find_stuck(
        facts->control, facts->now_ns, facts->limits.running_ms * NS_PER_MS, workers, SUSPECTS_MAX);
    jzi_json_open(out, "running", '[');
    for (size_t i = 0; i < count; i++) {
        char name[JZX_DISPATCHER_NAME_MAX + 1];
        jzi_dispatcher_name(facts->control, workers[i].dispatcher, name);
        jzi_facts_open(facts, workers[i].actor);
        jzi_json_u64(out, "index", workers[i].dispatcher);
        jzi_json_text(out, "dispatcher", name);
        jzi_json_u64(out, "worker", workers[i].number);
        jzi_json_u64(out, "for_ms", jzi_ms_since(workers[i].turn_ns, facts->now_ns));
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
}

/* Asks without a deadline, the oldest first. */
void jzi_facts_asks(jzi_facts *facts)
{
    jzi_json *out = &facts->client->out;
    jzi_waits waits = {0};
    uint32_t told = 0;
    jzi_waits_gather(facts->control, facts->now_ns, facts->limits.ask_ms * NS_PER_MS, &waits,
                     &facts->silence);
    facts->cut = facts->cut || waits.cut;
    jzi_json_open(out, "asks", '[');
    for (size_t i = 0; i < waits.count; i++) {
        const jzi_wait *wait = &waits.list[i];
        if (!wait->endless) {
            continue;
        }
        if (told++ == JZI_FACTS_PER_KIND) {
            facts->cut = true;
            break;
        }
        jzi_facts_open(facts, wait->asker);
        jzi_json_actor(out, "callee", wait->callee);
        jzi_write_actor_name(facts->client, "callee_name", wait->callee);
        jzi_json_u64(out, "age_ms", wait->age_ns / NS_PER_MS);
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
    jzi_waits_free(facts->control, &waits);
}

/* Turns that took too long, from what the flight recorder still has. */
typedef struct slow {
    jzx_actor_id actor;
    uint32_t times;
    uint64_t longest_ns;
} slow;
typedef struct slow_list {
    uint64_t least_ns;
    uint32_t count;
    bool cut;
    slow list[SLOW_MAX];
} slow_list;

static void add_slow(slow_list *all, const jzi_event *event)
{
    uint32_t at = 0;
    if (event->what != JZI_RING_OVERRUN || event->value < all->least_ns) {
        return;
    }
    while (at < all->count && all->list[at].actor != event->actor) {
        at++;
    }
    if (at == SLOW_MAX) {
        all->cut = true;
        return;
    }
    if (at == all->count) {
        all->list[all->count++] = (slow){.actor = event->actor};
    }
    slow *one = &all->list[at];
    one->times++;
    one->longest_ns = event->value > one->longest_ns ? event->value : one->longest_ns;
}

static void read_events(const jzi_view *view, const jzi_worker_snapshot *worker, slow_list *all)
{
    jzi_event events[128];
    uint64_t cursor = 0;
    uint64_t lost = 0;
    uint64_t newest = 0;
    uint64_t skipped = 0;
    size_t count = 1;
    jzi_peek_event_ring(view, worker->dispatcher, worker->number, &newest, &skipped);
    while (cursor < newest && count > 0) { /* what comes meanwhile is for the next look */
        count =
            jzi_peek_events(view, worker->dispatcher, worker->number, &cursor, events, 128, &lost);
        for (size_t i = 0; i < count; i++) {
            add_slow(all, &events[i]);
        }
    }
}

void jzi_facts_slow(jzi_facts *facts)
{
    const jzi_view *view = &facts->control->view;
    jzi_json *out = &facts->client->out;
    slow_list all = {.least_ns = facts->limits.slow_ms * NS_PER_MS};
    size_t count = 0;
    jzi_worker_snapshot *workers = jzi_workers_now(facts->control, &count);
    for (size_t i = 0; i < count; i++) {
        read_events(view, &workers[i], &all);
    }
    jzi_free(&view->alloc, workers, count * sizeof *workers);
    facts->cut = facts->cut || all.cut;
    jzi_json_open(out, "slow", '[');
    for (uint32_t i = 0; i < all.count; i++) {
        jzi_facts_open(facts, all.list[i].actor);
        jzi_json_u64(out, "times", all.list[i].times);
        jzi_json_u64(out, "longest_ms", all.list[i].longest_ns / NS_PER_MS);
        jzi_json_close(out, '}');
    }
    jzi_json_close(out, ']');
}
