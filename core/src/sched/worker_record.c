/* What a worker does for tools that look: the worker sees what is wanted once per tick, and only
 * then takes the careful way through its turns, where these functions are called. */
#include "sched/worker_record.h"

#include "base/random.h"
#include "os/debug/usdt.h"

#define CAREFUL (JZI_WANT_MESSAGES | JZI_WANT_SENDS | JZI_WANT_TIMES | JZI_WANT_PROBES)
/* A sample that was not handed over for so long is counted as that long. */
#define SAMPLE_LATE_NS UINT64_C(5000000000)
#define SECOND_NS UINT64_C(1000000000)
/* Of each kind of event but failures the recorder takes so many per so long: it remembers more. */
#define OFTEN_NS UINT64_C(100000000)
#define OFTEN_EVENTS 8u
#define LONG_SLEEP_NS UINT64_C(10000000)
/* Times are taken in some ticks, each with the same chance as any other: so nothing that a program
 * does in a rhythm is met more often than the rest. The chance is 1 where there is little to do,
 * and falls to 1 in 64 where there are many messages: as many as this per so long may be timed. */
#define CHANCES 64u
#define SHARE_NS UINT64_C(100000000)
#define SHARE_MESSAGES UINT64_C(2000)
/* After a wait that outlasted its tick comes a rest of so many times its length, but not where
 * there is little to do. */
#define REST_TIMES 63u
/* In a pool another worker may have handed over the message: then its wait is not known. */
#define POOL_PATIENCE_NS UINT64_C(50000000)

static bool is_exact(const jzi_worker *worker)
{
    return worker->max_stride == 1 || worker->env->trace != NULL;
}

/* Every message is to be looked at, not only some for their times. */
static bool is_always_instrumented(const jzi_worker *worker)
{
    return is_exact(worker) || (worker->wanted & (CAREFUL & ~JZI_WANT_TIMES)) != 0;
}

/* A number below `sides`. By chance, so that a program that does the same again and again is not
 * always met at the same place. */
static uint32_t roll(jzi_event_ring *event_ring, uint32_t sides)
{
    return jzi_random_below(&event_ring->dice, sides);
}

/* While sends are to be seen, or the tick is timed, other threads mark what they send. */
static void ask_senders(jzi_worker *worker)
{
    jzi_event_ring *event_ring = worker->event_ring;
    if (event_ring == NULL) {
        return;
    }
    bool asks =
        event_ring->sampling || (event_ring->bits & (JZI_WANT_SENDS | JZI_WANT_PROBES)) != 0;
    if (event_ring->asking != asks) {
        event_ring->asking = asks;
        (void)atomic_fetch_add_explicit(&worker->inbox->watched, asks ? 1u : UINT32_MAX,
                                        memory_order_relaxed);
    }
}

/* Sends go the long way while they are to be seen, or one of them is to be timed. */
void jzi_worker_set_quick(jzi_worker *worker)
{
    ask_senders(worker);
    uint32_t bits = worker->event_ring == NULL ? 0 : worker->event_ring->bits;
    bool sample =
        worker->event_ring != NULL && worker->event_ring->sampling &&
        (worker->event_ring->sample.target == JZX_NOBODY || worker->event_ring->choice > 0);
    if (!worker->pooled) { /* in a pool sends never go the quick way */
        worker->quick = (bits & (JZI_WANT_SENDS | JZI_WANT_PROBES)) == 0 && !sample;
        worker->quick_slots = worker->quick ? worker->slots_made : 0;
    }
}

void jzi_worker_see_board(jzi_worker *worker, uint32_t wanted)
{
    if (worker->event_ring == NULL && wanted != 0) {
        uint32_t events =
            atomic_load_explicit(&worker->dispatcher->board->ring_events, memory_order_relaxed);
        jzi_event_ring *event_ring = jzi_event_ring_create(&worker->alloc, events);
        if (event_ring == NULL) {
            return; /* in a later tick, then */
        }
        JZI_PUBLISH_READY(worker->event_ring, event_ring);
    }
    worker->wanted = wanted;
    if (worker->event_ring != NULL) {
        worker->event_ring->bits = wanted;
        worker->event_ring->sampling = (wanted & JZI_WANT_TIMES) != 0;
        worker->event_ring->share_ns = worker->now_ns;
        worker->event_ring->share_handled = jzi_count_get(&worker->counters.handled);
        if ((wanted & JZI_WANT_TIMES) == 0) {
            worker->event_ring->sample.target = JZX_NOBODY;
        }
    }
    worker->timing = (wanted & JZI_WANT_TIMES) != 0;
    worker->recording =
        worker->env->trace != NULL || (wanted & (JZI_WANT_RECORD | JZI_WANT_PROBES)) != 0;
    worker->recording_often = worker->recording;
    worker->throttled = false;
    worker->instrumented = is_exact(worker) || (wanted & CAREFUL) != 0;
    jzi_worker_set_quick(worker);
}

void jzi_worker_look_at_probes(jzi_worker *worker)
{
    worker->probed = jzi_usdt_is_wanted() ? JZI_WANT_PROBES : 0;
}

static const char *name_of(const jzi_worker *worker, jzx_actor_id id)
{
    const jzi_actor *actor = jzi_worker_find(worker, id);
    return actor == NULL ? "" : jzi_actor_name(actor);
}

static uint64_t exact_now(const jzi_worker *worker)
{
    return worker->env->now_ns(worker->env->ctx);
}

/* A mass of spawns, ends or timers: for the rest of the window no call is made for them, unless
 * env->trace or a tracer wants each. */
static void hush(jzi_worker *worker)
{
    if (worker->env->trace == NULL && worker->probed == 0) {
        jzi_event_ring *event_ring = worker->event_ring;
        worker->throttled = true;
        worker->recording_often = false;
        event_ring->throttled_ns = worker->now_ns;
        event_ring->spawned = jzi_count_get(&worker->counters.spawned);
        event_ring->ended = jzi_count_get(&worker->counters.ended);
    }
}

void jzi_worker_unthrottle(jzi_worker *worker)
{
    jzi_event_ring *event_ring = worker->event_ring;
    if (worker->now_ns - event_ring->throttled_ns >= OFTEN_NS) {
        worker->throttled = false;
        worker->recording_often = true;
        event_ring->often[JZI_RING_SPAWN].more +=
            (uint32_t)(jzi_count_get(&worker->counters.spawned) - event_ring->spawned);
        event_ring->often[JZI_RING_END].more +=
            (uint32_t)(jzi_count_get(&worker->counters.ended) - event_ring->ended);
    }
}

/* False: there were enough of this kind lately. */
static bool is_news(jzi_worker *worker, jzi_event *event)
{
    jzi_event_ring *event_ring = worker->event_ring;
    uint32_t what = event->what;
    if (what == JZI_RING_FAIL || what == JZI_RING_RESTART || what == JZI_RING_ESCALATE) {
        return true;
    }
    if (event->time_ns - event_ring->often[what].window_ns >= OFTEN_NS) {
        event_ring->often[what].window_ns = event->time_ns;
        event_ring->often[what].left = OFTEN_EVENTS;
    }
    if (event_ring->often[what].left == 0) {
        event_ring->often[what].more++;
        if (what == JZI_RING_SPAWN || what == JZI_RING_END || what == JZI_RING_TIMER ||
            what == JZI_RING_STOP) {
            hush(worker);
        }
        return false;
    }
    event_ring->often[what].left--;
    event->more = event_ring->often[what].more;
    event_ring->often[what].more = 0;
    return true;
}

static void reach_probe(const jzi_worker *worker, const jzi_event *event)
{
    if (event->what == JZI_RING_SPAWN) {
        jzi_usdt_spawn(event->actor, event->peer, name_of(worker, event->actor));
    } else if (event->what == JZI_RING_END) {
        jzi_usdt_exit(event->actor, event->detail, (int32_t)(int64_t)event->value);
    } else if (event->what == JZI_RING_RESTART) {
        jzi_usdt_restart(event->actor, event->peer, event->detail);
    } else if (event->what == JZI_RING_TIMER) {
        jzi_usdt_timer(event->actor, event->tag);
    }
}

void jzi_worker_note(jzi_worker *worker, jzi_event_what what, jzx_actor_id actor, jzx_actor_id peer,
                     uint32_t tag, uint32_t detail, uint64_t value)
{
    uint32_t bits = worker->event_ring == NULL ? 0 : worker->event_ring->bits;
    jzi_event event = {
        .time_ns = worker->now_ns,
        .actor = actor,
        .peer = peer,
        .value = value,
        .tag = tag,
        .detail = (uint16_t)(detail < UINT16_MAX ? detail : UINT16_MAX),
        .what = (uint8_t)what,
    };
    if ((bits & JZI_WANT_PROBES) != 0) {
        reach_probe(worker, &event);
    }
    if ((bits & JZI_WANT_RECORD) != 0 && is_news(worker, &event)) {
        if (what != JZI_RING_SLEEP && what != JZI_RING_TIMER) {
            event.time_ns = exact_now(worker);
        }
        jzi_event_ring_write(worker->event_ring, &event);
    }
}

void jzi_worker_slept(jzi_worker *worker, uint64_t from_ns, uint64_t timeout_ns)
{
    if (worker->probed != 0) {
        jzi_usdt_poll(timeout_ns);
    }
    uint64_t now = worker->now_ns;
    if (now - from_ns >= LONG_SLEEP_NS) {
        worker->now_ns = from_ns; /* the time of the first of the two */
        jzi_worker_note(worker, JZI_RING_SLEEP, JZX_NOBODY, JZX_NOBODY, 0, 0, timeout_ns);
        worker->now_ns = now;
        jzi_worker_note(worker, JZI_RING_WAKE, JZX_NOBODY, JZX_NOBODY, 0, 0, now - from_ns);
    }
}

/* Whether the filter lets this one through. */
static bool is_marked(const jzi_board *board, jzx_actor_id id)
{
    if (atomic_load_explicit(&board->use_marks, memory_order_relaxed) == 0) {
        return true;
    }
    const _Atomic uint64_t *marks =
        atomic_load_explicit(&board->marks[jzx_id_dispatcher(id)], memory_order_acquire);
    uint32_t slot = jzx_id_slot(id);
    return marks != NULL && slot / 64 < board->marks_words &&
           (atomic_load_explicit(&marks[slot / 64], memory_order_relaxed) >> slot % 64 & 1) != 0;
}

static bool is_traced(const jzi_worker *worker, jzx_actor_id id, uint32_t tag)
{
    const jzi_board *board = worker->dispatcher->board;
    uint64_t only = atomic_load_explicit(&board->tag, memory_order_relaxed);
    return (only >> 32 == 0 || (uint32_t)only == tag) && is_marked(board, id);
}

/* At most `rate` per second: a bucket that holds what a second brings, or half of the ring. */
static bool has_room(jzi_worker *worker, uint64_t now)
{
    jzi_event_ring *event_ring = worker->event_ring;
    uint32_t rate = atomic_load_explicit(&worker->dispatcher->board->rate, memory_order_relaxed);
    uint32_t most = rate < event_ring->mask / 2 ? rate : event_ring->mask / 2;
    if (rate != event_ring->rate) {
        event_ring->rate = rate;
        event_ring->left = most;
        event_ring->window_ns = now;
    }
    uint64_t passed = now - event_ring->window_ns;
    uint64_t grown = passed >= SECOND_NS ? most : passed * rate / SECOND_NS;
    if (grown > 0) {
        event_ring->left =
            grown >= most - event_ring->left ? most : event_ring->left + (uint32_t)grown;
        event_ring->window_ns =
            passed >= SECOND_NS ? now : event_ring->window_ns + grown * SECOND_NS / rate;
    }
    if (event_ring->left == 0) {
        jzi_count_add(&event_ring->skipped, 1);
        return false;
    }
    event_ring->left--;
    return true;
}

/* Without asking the clock: the bucket is empty and was not filled since. One message less. */
static bool is_used_up(jzi_worker *worker)
{
    jzi_event_ring *event_ring = worker->event_ring;
    uint32_t rate = atomic_load_explicit(&worker->dispatcher->board->rate, memory_order_relaxed);
    /* With a rate of 0 no tool reads: there is nothing to wait for. */
    bool empty = rate == 0 || (event_ring->left == 0 && rate == event_ring->rate &&
                               worker->now_ns < event_ring->window_ns + SECOND_NS / rate);
    jzi_count_add(&event_ring->skipped, empty ? 1 : 0);
    return empty;
}

void jzi_worker_turn_begins(jzi_worker *worker)
{
    jzi_event_ring *event_ring = worker->event_ring;
    if (event_ring == NULL) {
        return;
    }
    event_ring->turn_ns = 0;
    if (event_ring->sampling && --event_ring->until_timed == 0) {
        event_ring->until_timed = 1 + roll(event_ring, 2 * JZI_TIMED_TURNS - 1);
        event_ring->turn_ns = exact_now(worker);
    }
}

void jzi_worker_turn_ended(jzi_worker *worker)
{
    jzi_event_ring *event_ring = worker->event_ring;
    if (event_ring != NULL && event_ring->turn_ns != 0) {
        jzi_histogram_add(&event_ring->times[JZI_TIME_TURN],
                          exact_now(worker) - event_ring->turn_ns);
        event_ring->turn_ns = 0;
    }
}

/* No other message is a candidate any more: the sample waits. */
static void settle_sample(jzi_worker *worker)
{
    if (worker->event_ring->choice > 0) {
        worker->event_ring->choice = 0;
        jzi_worker_set_quick(worker);
    }
}

static void end_sample(jzi_worker *worker, uint64_t now)
{
    jzi_event_ring *event_ring = worker->event_ring;
    uint64_t waited = now > event_ring->sample.sent_ns ? now - event_ring->sample.sent_ns : 0;
    jzi_histogram_add(&event_ring->times[JZI_TIME_WAIT], waited);
    event_ring->sample.target = JZX_NOBODY;
    jzi_worker_set_quick(worker);
}

/* How many messages there are of late says how many of the ticks are timed. */
static void weigh_ticks(jzi_worker *worker)
{
    jzi_event_ring *event_ring = worker->event_ring;
    uint64_t handled = jzi_count_get(&worker->counters.handled);
    uint64_t messages = handled - event_ring->share_handled;
    uint64_t length = worker->now_ns - event_ring->share_ns;
    if (length < SHARE_NS && messages < SHARE_MESSAGES) {
        return;
    }
    uint64_t may = length * SHARE_MESSAGES / SHARE_NS;
    uint64_t share = messages <= may ? CHANCES : CHANCES * may / messages;
    event_ring->share = share == 0 ? 1 : (uint32_t)share;
    event_ring->share_ns = worker->now_ns;
    event_ring->share_handled = handled;
}

/* Whether a wait is still being measured: then messages are looked at until it is over, in whatever
 * tick, so that long ones are measured as often as short ones. */
static bool is_waiting(jzi_worker *worker)
{
    jzi_event_ring *event_ring = worker->event_ring;
    uint64_t now = worker->now_ns;
    if (event_ring->sample.target != JZX_NOBODY) {
        /* The tick's time may be older than the send. */
        uint64_t waited = now > event_ring->sample.sent_ns ? now - event_ring->sample.sent_ns : 0;
        if (waited < (worker->pooled ? POOL_PATIENCE_NS : SAMPLE_LATE_NS)) {
            return true;
        }
        if (!worker->pooled) {
            jzi_histogram_add(&event_ring->times[JZI_TIME_WAIT], waited);
        }
        event_ring->sample.target = JZX_NOBODY;
        event_ring->choice = 0;
    }
    return false;
}

/* Waits that last longer than their tick are paid for by a rest. */
static void rest_after_wait(jzi_worker *worker, bool waiting)
{
    jzi_event_ring *event_ring = worker->event_ring;
    uint64_t now = worker->now_ns;
    if (waiting && event_ring->wait_ns == 0) {
        event_ring->wait_ns = now;
    } else if (!waiting && event_ring->wait_ns != 0) {
        uint64_t length =
            now - event_ring->wait_ns < SECOND_NS ? now - event_ring->wait_ns : SECOND_NS;
        event_ring->rest_ns = event_ring->share == CHANCES ? 0 : now + REST_TIMES * length;
        event_ring->wait_ns = 0;
    }
}

void jzi_worker_pace_times(jzi_worker *worker)
{
    jzi_event_ring *event_ring = worker->event_ring;
    if (event_ring == NULL || is_always_instrumented(worker)) {
        return;
    }
    weigh_ticks(worker);
    bool waiting = is_waiting(worker);
    rest_after_wait(worker, waiting);
    event_ring->sampling =
        worker->now_ns >= event_ring->rest_ns && roll(event_ring, CHANCES) < event_ring->share;
    worker->instrumented = event_ring->sampling || waiting;
    jzi_worker_set_quick(worker);
}

void jzi_worker_handing_over(jzi_worker *worker, const jzi_actor *actor, const jzi_node *node)
{
    jzi_event_ring *event_ring = worker->event_ring;
    if (event_ring == NULL || (event_ring->bits & CAREFUL) == 0) {
        return;
    }
    if ((event_ring->bits & JZI_WANT_PROBES) != 0) {
        jzi_usdt_receive(actor->id, node->msg.sender, node->msg.tag);
    }
    settle_sample(worker);
    event_ring->begun_ns = 0;
    if ((event_ring->bits & JZI_WANT_MESSAGES) != 0 &&
        is_traced(worker, actor->id, node->msg.tag) && !is_used_up(worker)) {
        event_ring->begun_ns = exact_now(worker);
    }
    if (event_ring->sample.target != JZX_NOBODY) {
        uint64_t now = event_ring->begun_ns != 0 ? event_ring->begun_ns : worker->now_ns;
        bool here =
            event_ring->sample.target == actor->id && event_ring->sample.stamp == node->stamp;
        bool late = !worker->pooled && now > event_ring->sample.sent_ns + SAMPLE_LATE_NS;
        if (here || late) {
            end_sample(worker, event_ring->begun_ns != 0 ? now : exact_now(worker));
        }
    }
}

void jzi_worker_handled(jzi_worker *worker, const jzi_actor *actor, const jzi_node *node,
                        uint32_t result)
{
    jzi_worker_trace(worker, JZX_TRACE_HANDLED, actor, &node->msg, result);
    jzi_event_ring *event_ring = worker->event_ring;
    if (event_ring == NULL || (event_ring->bits & JZI_WANT_MESSAGES) == 0 ||
        event_ring->begun_ns == 0) {
        return;
    }
    uint64_t now = exact_now(worker);
    if (!has_room(worker, now)) {
        return;
    }
    jzi_event event = {
        .time_ns = event_ring->begun_ns,
        .actor = actor->id,
        .peer = node->msg.sender,
        .value = now - event_ring->begun_ns,
        .correlation = jzi_worker_correlation(worker),
        .tag = node->msg.tag,
        .stamp = node->stamp,
        .detail = (uint16_t)result,
        .what = JZI_RING_HANDLED,
        .kind = node->msg.kind,
    };
    jzi_event_ring_write(event_ring, &event);
}

/* One of the messages that are sent before the next one is handed over becomes the sample, each
 * with the same chance: the first of a burst waits shortest, the first that arrived has waited
 * longest. */
static void consider_sample(jzi_worker *worker, jzx_actor_id target, uint32_t stamp,
                            uint64_t sent_ns)
{
    jzi_event_ring *event_ring = worker->event_ring;
    if (event_ring->sample.target != JZX_NOBODY && event_ring->choice == 0) {
        return;
    }
    event_ring->choice++;
    if (roll(event_ring, event_ring->choice) == 0) {
        event_ring->sample.target = target;
        event_ring->sample.stamp = stamp;
        event_ring->sample.sent_ns = sent_ns == JZI_SENT_NOW ? exact_now(worker) : sent_ns;
    }
}

void jzi_worker_saw_send(jzi_worker *worker, const jzi_actor *actor, const jzi_node *node,
                         uint64_t sent_ns)
{
    jzi_event_ring *event_ring = worker->event_ring;
    if (event_ring == NULL) {
        return;
    }
    if ((event_ring->bits & JZI_WANT_PROBES) != 0) {
        jzi_usdt_send(node->msg.sender, actor->id, node->msg.tag);
    }
    if (event_ring->sampling && sent_ns != 0) {
        consider_sample(worker, actor->id, node->stamp, sent_ns);
    }
    if ((event_ring->bits & JZI_WANT_SENDS) == 0 ||
        (!is_traced(worker, node->msg.sender, node->msg.tag) &&
         !is_traced(worker, actor->id, node->msg.tag))) {
        return;
    }
    if (is_used_up(worker)) {
        return;
    }
    uint64_t now = exact_now(worker);
    if (!has_room(worker, now)) {
        return;
    }
    jzi_event event = {
        .time_ns = now,
        .actor = node->msg.sender,
        .peer = actor->id,
        .correlation = (jzi_msg_flags(&node->msg) & JZI_MSG_ASK) == 0
                           ? 0
                           : worker->dispatcher->on_request_correlation(worker, node),
        .tag = node->msg.tag,
        .stamp = node->stamp,
        .what = JZI_RING_SENT,
        .kind = node->msg.kind,
    };
    jzi_event_ring_write(event_ring, &event);
}

void jzi_worker_ask_took(jzi_worker *worker, uint64_t asked_ns)
{
    if (worker->event_ring != NULL) {
        uint64_t now = exact_now(worker);
        jzi_histogram_add(&worker->event_ring->times[JZI_TIME_ASK],
                          now > asked_ns ? now - asked_ns : 0);
    }
}
