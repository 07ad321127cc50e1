/* Spike: what do the workers of a pool share?
 *
 *     cc -O2 -std=c17 -pthread bench/spikes/queues.c -o /tmp/spike_queues
 *     /tmp/spike_queues 99 200000     # rounds, operations per round
 *
 * Two workers, one per CPU. An operation is a turn: put back the actor that just ran, take the next
 * one, work a little. All actors start at worker 0. With 64 there is enough for both, with 1 and 3
 * one of the workers mostly looks around in vain, as in a ring or a ping-pong.
 *   floor   a ring per worker, all under one adaptive mutex, taken once per turn
 *   steal   a ring per worker; its owner takes by CAS on the head, a thief takes half by one CAS
 *   shared  one ring for all workers, each slot with a turn number */
#include "rounds.h"

enum { CAP = 256, WORK = 20, REPORT = 128 };

/* Actors are numbers from 1; 0 is none. There are never more than a queue holds. */
typedef struct run_queue {
    _Alignas(LINE) _Atomic uint32_t head;
    _Alignas(LINE) _Atomic uint32_t tail;
    _Alignas(LINE) _Atomic uint32_t slots[CAP];
} run_queue;
static run_queue queues[2];
static _Alignas(LINE) pthread_mutex_t lock;
static _Alignas(LINE) _Atomic uint64_t done;

/* A slot whose turn is a position may be written there; one more, it may be read. */
static struct {
    _Alignas(LINE) _Atomic uint32_t head;
    _Alignas(LINE) _Atomic uint32_t tail;
    struct {
        _Alignas(LINE) _Atomic uint32_t turn;
        uint32_t actor;
    } slots[CAP];
} shared;

static void put_own(run_queue *q, uint32_t actor)
{
    uint32_t tail = load(&q->tail, relaxed);
    store(&q->slots[tail % CAP], actor, relaxed);
    store(&q->tail, tail + 1, release);
}

/* Under the lock nothing has to be atomic: relaxed loads and stores are plain ones. */
static uint32_t floor_take(run_queue *q)
{
    uint32_t head = load(&q->head, relaxed);
    if (head == load(&q->tail, relaxed)) {
        return 0;
    }
    store(&q->head, head + 1, relaxed);
    return load(&q->slots[head % CAP], relaxed);
}

static uint32_t floor_turn(int me, uint32_t ran)
{
    pthread_mutex_lock(&lock);
    if (ran != 0) {
        put_own(&queues[me], ran);
    }
    uint32_t next = floor_take(&queues[me]);
    if (next == 0) {
        next = floor_take(&queues[1 - me]);
    }
    pthread_mutex_unlock(&lock);
    return next;
}

static uint32_t steal_own(run_queue *q)
{
    uint32_t head = load(&q->head, relaxed);
    while (head != load(&q->tail, relaxed)) {
        uint32_t actor = load(&q->slots[head % CAP], relaxed);
        if (cas(&q->head, &head, head + 1)) {
            return actor;
        }
    }
    return 0;
}

/* Copies first, then claims: what was copied counts only if no other worker moved the head
 * meanwhile. */
static uint32_t steal_half(run_queue *from, run_queue *to)
{
    uint32_t head = load(&from->head, acquire);
    for (;;) {
        uint32_t count = load(&from->tail, acquire) - head;
        uint32_t tail = load(&to->tail, relaxed);
        count -= count / 2;
        if (count == 0 || count > CAP / 2) {
            return 0; /* empty, or the two numbers are of different moments */
        }
        for (uint32_t i = 0; i < count; i++) {
            uint32_t actor = load(&from->slots[(head + i) % CAP], relaxed);
            store(&to->slots[(tail + i) % CAP], actor, relaxed);
        }
        if (cas(&from->head, &head, head + count)) {
            store(&to->tail, tail + count - 1, release); /* the last one runs now */
            return load(&to->slots[(tail + count - 1) % CAP], relaxed);
        }
    }
}

static uint32_t steal_turn(int me, uint32_t ran)
{
    if (ran != 0) {
        put_own(&queues[me], ran);
    }
    uint32_t next = steal_own(&queues[me]);
    return next != 0 ? next : steal_half(&queues[1 - me], &queues[me]);
}

static void shared_put(uint32_t actor)
{
    uint32_t at = atomic_fetch_add_explicit(&shared.tail, 1, memory_order_relaxed);
    while (load(&shared.slots[at % CAP].turn, acquire) != at) {
        sched_yield(); /* its reader of one round before is not quite done */
    }
    shared.slots[at % CAP].actor = actor;
    store(&shared.slots[at % CAP].turn, at + 1, release);
}

static uint32_t shared_turn(int me, uint32_t ran)
{
    (void)me;
    if (ran != 0) {
        shared_put(ran);
    }
    uint32_t at = load(&shared.head, relaxed);
    while (load(&shared.slots[at % CAP].turn, acquire) == at + 1) {
        if (cas(&shared.head, &at, at + 1)) {
            uint32_t actor = shared.slots[at % CAP].actor;
            store(&shared.slots[at % CAP].turn, at + CAP, release);
            return actor;
        }
    }
    return 0;
}

static void reset(uint32_t actors)
{
    store(&done, 0, relaxed);
    for (int i = 0; i < 2; i++) {
        store(&queues[i].head, 0, relaxed);
        store(&queues[i].tail, 0, relaxed);
    }
    store(&shared.head, 0, relaxed);
    store(&shared.tail, 0, relaxed);
    for (uint32_t i = 0; i < CAP; i++) {
        store(&shared.slots[i].turn, i, relaxed);
    }
    for (uint32_t i = 1; i <= actors; i++) {
        put_own(&queues[0], i);
        shared_put(i);
    }
}

static inline void turns(int me, uint64_t ops, uint32_t (*turn)(int me, uint32_t ran))
{
    static _Alignas(LINE) uint64_t states[CAP][LINE / sizeof(uint64_t)];
    uint32_t actor = 0;
    unsigned tries = 0, count = 0;
    while (load(&done, relaxed) < ops) {
        actor = turn(me, actor);
        if (actor == 0) {
            back_off(&tries);
            continue;
        }
        tries = 0;
        for (int i = 0; i < WORK; i++) {
            states[actor][0] = states[actor][0] * 48271u % 2147483647u + 1;
        }
        if (++count % REPORT == 0) {
            atomic_fetch_add_explicit(&done, REPORT, memory_order_relaxed);
        }
    }
}

static void floor_run(int me, uint32_t size, uint64_t ops)
{
    (void)size;
    turns(me, ops, floor_turn);
}

static void steal_run(int me, uint32_t size, uint64_t ops)
{
    (void)size;
    turns(me, ops, steal_turn);
}

static void shared_run(int me, uint32_t size, uint64_t ops)
{
    (void)size;
    turns(me, ops, shared_turn);
}

int main(int argc, char **argv)
{
    static const variant variants[] = {
        {"floor", reset, floor_run, 1},   {"steal", reset, steal_run, 1},
        {"shared", reset, shared_run, 1}, {"floor", reset, floor_run, 3},
        {"steal", reset, steal_run, 3},   {"shared", reset, shared_run, 3},
        {"floor", reset, floor_run, 64},  {"steal", reset, steal_run, 64},
        {"shared", reset, shared_run, 64}};
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&lock, &attr);
    return run_rounds(argc, argv, variants, (int)(sizeof variants / sizeof variants[0]));
}
