/* Spike: how do messages get from one dispatcher to another?
 *
 *     cc -O2 -std=c17 -pthread bench/spikes/crossing.c -o /tmp/spike_crossing
 *     /tmp/spike_crossing 99 200000     # rounds, messages per round
 *
 * Two dispatchers, one per CPU. Each sends bursts of 1, 8 or 64 messages to the other and takes in
 * what came; an operation is a message, sent and received. Messages take 64 bytes; at most 1,024
 * are under way in each direction.
 *   treiber one list per dispatcher: push by CAS, taken whole by exchange, turned around
 *   spsc    a ring for each pair of dispatchers
 *   spsc16  the same in a system of 16: as many rings have to be looked at */
#include "rounds.h"

enum { ROOM = 1024, PAIRS = 16 };

typedef struct node {
    _Alignas(LINE) struct node *next;
    uint64_t message[7];
} node;

typedef struct ring {
    _Alignas(LINE) _Atomic uint64_t tail;
    uint64_t head_seen;
    _Alignas(LINE) _Atomic uint64_t head;
    _Alignas(LINE) uint64_t slots[ROOM][LINE / sizeof(uint64_t)];
} ring;

static struct {
    _Alignas(LINE) _Atomic(node *) inbound;
    _Alignas(LINE) node *spare; /* what it received last it sends next */
    node nodes[ROOM];
    ring rings[PAIRS]; /* by sender; only that of the other one is ever used */
} sides[2];

static void reset(uint32_t burst)
{
    (void)burst;
    for (int i = 0; i < 2; i++) {
        store(&sides[i].inbound, NULL, relaxed);
        sides[i].spare = NULL;
        for (uint32_t k = 0; k < ROOM; k++) {
            sides[i].nodes[k].next = sides[i].spare;
            sides[i].spare = &sides[i].nodes[k];
        }
    }
}

static bool treiber_send(int me, uint64_t value)
{
    node *n = sides[me].spare;
    if (n == NULL) {
        return false;
    }
    sides[me].spare = n->next;
    n->message[0] = value;
    n->next = load(&sides[1 - me].inbound, relaxed);
    while (!cas(&sides[1 - me].inbound, &n->next, n)) {
    }
    return true;
}

static uint64_t treiber_receive(int me, uint64_t *sum)
{
    uint64_t count = 0;
    node *list = NULL;
    if (load(&sides[me].inbound, relaxed) == NULL) {
        return 0;
    }
    node *n = atomic_exchange_explicit(&sides[me].inbound, NULL, memory_order_acquire);
    for (node *next; n != NULL; n = next) {
        next = n->next;
        n->next = list;
        list = n;
    }
    for (node *next; list != NULL; list = next) {
        next = list->next;
        *sum += list->message[0];
        list->next = sides[me].spare;
        sides[me].spare = list;
        count++;
    }
    return count;
}

static bool spsc_send(int me, uint64_t value)
{
    ring *r = &sides[1 - me].rings[me];
    uint64_t tail = load(&r->tail, relaxed);
    if (tail - r->head_seen == ROOM) {
        r->head_seen = load(&r->head, acquire);
        if (tail - r->head_seen == ROOM) {
            return false;
        }
    }
    r->slots[tail % ROOM][0] = value;
    store(&r->tail, tail + 1, release);
    return true;
}

static uint64_t spsc_receive_from(ring *r, uint64_t *sum)
{
    uint64_t first = load(&r->head, relaxed);
    uint64_t tail = load(&r->tail, acquire);
    for (uint64_t head = first; head != tail; head++) {
        *sum += r->slots[head % ROOM][0];
    }
    if (first != tail) {
        store(&r->head, tail, release);
    }
    return tail - first;
}

static uint64_t spsc_receive(int me, uint64_t *sum)
{
    return spsc_receive_from(&sides[me].rings[1 - me], sum);
}

static uint64_t spsc16_receive(int me, uint64_t *sum)
{
    uint64_t count = 0;
    for (int i = 0; i < PAIRS; i++) {
        count += spsc_receive_from(&sides[me].rings[i], sum);
    }
    return count;
}

static inline void exchange(int me, uint32_t burst, uint64_t ops,
                            bool (*send)(int me, uint64_t value),
                            uint64_t (*receive)(int me, uint64_t *sum))
{
    uint64_t sent = 0, got = 0, sum = 0, each = ops / 2;
    unsigned tries = 0;
    while (sent < each || got < each) {
        uint64_t before = sent + got;
        for (uint32_t i = 0; i < burst && sent < each && send(me, 1); i++) {
            sent++;
        }
        got += receive(me, &sum);
        if (sent + got == before) {
            back_off(&tries);
        } else {
            tries = 0;
        }
    }
    if (sum != each) {
        abort();
    }
}

static void treiber_run(int me, uint32_t burst, uint64_t ops)
{
    exchange(me, burst, ops, treiber_send, treiber_receive);
}

static void spsc_run(int me, uint32_t burst, uint64_t ops)
{
    exchange(me, burst, ops, spsc_send, spsc_receive);
}

static void spsc16_run(int me, uint32_t burst, uint64_t ops)
{
    exchange(me, burst, ops, spsc_send, spsc16_receive);
}

int main(int argc, char **argv)
{
    static const variant variants[] = {
        {"treiber", reset, treiber_run, 1},  {"spsc", reset, spsc_run, 1},
        {"spsc16", reset, spsc16_run, 1},    {"treiber", reset, treiber_run, 8},
        {"spsc", reset, spsc_run, 8},        {"spsc16", reset, spsc16_run, 8},
        {"treiber", reset, treiber_run, 64}, {"spsc", reset, spsc_run, 64},
        {"spsc16", reset, spsc16_run, 64}};
    return run_rounds(argc, argv, variants, (int)(sizeof variants / sizeof variants[0]));
}
