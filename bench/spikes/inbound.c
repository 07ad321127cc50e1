/* Spike: how do messages from other threads reach a loop? (docs/internals/adr/0002)
 *
 *     cc -O2 -std=c17 -pthread bench/spikes/inbound.c -o /tmp/spike_inbound
 *     /tmp/spike_inbound 999 20000     # rounds, messages per round
 *
 * Rounds are short, and counting_2t keeps only those in which no thread lost its CPU to another
 * process: the machine is shared. counting2p_2t cannot be filtered that way, because three threads
 * on two CPUs take them from each other; there p10 is the better number.
 *
 * counting_2t is one producer on CPU 1 and the consumer on CPU 0; counting2p_2t is two producers
 * and the consumer on the same two CPUs, not pinned. At most 1,024 messages are outstanding; a
 * producer that is refused pauses 64 times, then yields, and tries again.
 *   treiber   one list of 64-byte nodes for all: push by CAS, taken whole by exchange, turned
 *             around; a gate CAS per send counts what is outstanding; nodes go home in batches of
 *             64 through a list per producer
 *   spsc_gate a ring of 64-byte slots per producer, and the same gate CAS per send
 *   spsc_bare the same ring and nothing else: a try-push that can refuse, the floor
 * The consumer calls a function per message and settles the gate every 128 messages in all of them.
 * The variants take turns inside each round, so that noise falls on all of them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define CAP 1024u
#define TURN 128u
#define HOME_BATCH 64u
#define PRODUCERS_MAX 2
#define ROUNDS_MAX 999
#define GENERATION ((uint64_t)7 << 32)

typedef struct message {
    int64_t v;
    size_t len;
    uint32_t tag, flags;
    uint64_t sender;
    void (*drop)(void *data);
    uint64_t deadline_ns;
} message;

typedef struct node {
    _Alignas(64) struct node *next;
    message msg;
    uint32_t owner, ask;
} node;
_Static_assert(sizeof(node) == 64, "one cache line");

typedef struct ring {
    _Alignas(64) _Atomic uint64_t tail;
    uint64_t cached_head;
    _Alignas(64) _Atomic uint64_t head;
    uint64_t cached_tail;
    node slots[CAP];
} ring;

typedef struct producer {
    _Alignas(64) node *local;          /* producer only */
    _Alignas(64) _Atomic(node *) home; /* batches that came back */
    _Alignas(64) node *batch;          /* consumer only: the batch being gathered */
    node *batch_last;
    uint32_t batch_len;
    node *nodes;
    ring *ring;
} producer;

static _Alignas(64) _Atomic uint64_t gate;
static _Alignas(64) _Atomic(node *) inbound;
static _Alignas(64) _Atomic int sleeping;
static producer producers[PRODUCERS_MAX];
static uint64_t to_send;
static int pinned;
static _Alignas(64) _Atomic int ready; /* producers on their CPU */
static _Atomic int go;

static int64_t total;
static void count(const message *m)
{
    total += m->v;
}
static void (*volatile handler)(const message *) = count;

static uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < 0) {
        CPU_SET(0, &set);
        CPU_SET(1, &set);
    } else {
        CPU_SET(cpu, &set);
    }
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void back_off(unsigned *tries)
{
    if (++*tries <= 64) {
        __builtin_ia32_pause();
    } else {
        sched_yield();
    }
}

static int gate_enter(void)
{
    uint64_t g = atomic_load_explicit(&gate, memory_order_relaxed);
    do {
        if (g >> 32 != GENERATION >> 32 || (g & 0xFFFFF) >= CAP) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&gate, &g, g + 1, memory_order_acquire,
                                                    memory_order_relaxed));
    return 1;
}

static void gate_leave(uint64_t n)
{
    atomic_fetch_sub_explicit(&gate, n, memory_order_release);
}

static message one(void)
{
    return (message){.v = 1, .tag = 1, .sender = 42};
}

static int treiber_send(producer *p)
{
    if (p->local == NULL) {
        p->local = atomic_exchange_explicit(&p->home, NULL, memory_order_acquire);
        if (p->local == NULL) {
            return 0;
        }
    }
    if (!gate_enter()) {
        return 0;
    }
    node *n = p->local;
    p->local = n->next;
    n->msg = one();
    n->owner = (uint32_t)(p - producers);
    node *head = atomic_load_explicit(&inbound, memory_order_relaxed);
    do {
        n->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&inbound, &head, n, memory_order_seq_cst,
                                                    memory_order_relaxed));
    if (atomic_load(&sleeping)) {
        abort(); /* the eventfd would be written here */
    }
    return 1;
}

static void node_home(producer *p)
{
    node *head = atomic_load_explicit(&p->home, memory_order_relaxed);
    do {
        p->batch_last->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&p->home, &head, p->batch, memory_order_release,
                                                    memory_order_relaxed));
    p->batch = NULL;
    p->batch_len = 0;
}

static uint64_t treiber_receive(void)
{
    node *n = atomic_load_explicit(&inbound, memory_order_relaxed);
    if (n == NULL) {
        return 0;
    }
    n = atomic_exchange_explicit(&inbound, NULL, memory_order_acquire);
    node *list = NULL;
    while (n != NULL) {
        node *next = n->next;
        n->next = list;
        list = n;
        n = next;
    }
    uint64_t handled = 0, since = 0;
    while (list != NULL) {
        node *next = list->next;
        handler(&list->msg);
        producer *p = &producers[list->owner];
        if (p->batch == NULL) {
            p->batch_last = list;
        }
        list->next = p->batch;
        p->batch = list;
        if (++p->batch_len == HOME_BATCH) {
            node_home(p);
        }
        handled++;
        if (++since == TURN) {
            gate_leave(since);
            since = 0;
        }
        list = next;
    }
    if (since != 0) {
        gate_leave(since);
    }
    for (int i = 0; i < PRODUCERS_MAX; i++) {
        if (producers[i].batch != NULL) {
            node_home(&producers[i]);
        }
    }
    return handled;
}

static int ring_push(ring *r)
{
    uint64_t t = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (t - r->cached_head == CAP) {
        r->cached_head = atomic_load_explicit(&r->head, memory_order_acquire);
        if (t - r->cached_head == CAP) {
            return 0;
        }
    }
    r->slots[t % CAP].msg = one();
    atomic_store_explicit(&r->tail, t + 1, memory_order_release);
    return 1;
}

static int spsc_gate_send(producer *p)
{
    if (!gate_enter()) {
        return 0;
    }
    if (!ring_push(p->ring)) {
        abort(); /* cannot happen: the ring is as long as the cap */
    }
    if (atomic_load(&sleeping)) {
        abort();
    }
    return 1;
}

static int spsc_bare_send(producer *p)
{
    return ring_push(p->ring);
}

/* The head moves before the gate opens, so a producer that passes the gate finds room in the
 * ring. */
static uint64_t ring_drain(ring *r, int gated)
{
    uint64_t h = atomic_load_explicit(&r->head, memory_order_relaxed);
    uint64_t t = atomic_load_explicit(&r->tail, memory_order_acquire);
    uint64_t n = t - h < TURN ? t - h : TURN;
    for (uint64_t i = 0; i < n; i++) {
        handler(&r->slots[(h + i) % CAP].msg);
    }
    if (n != 0) {
        atomic_store_explicit(&r->head, h + n, memory_order_release);
        if (gated) {
            gate_leave(n);
        }
    }
    return n;
}

static uint64_t spsc_gate_receive(void)
{
    uint64_t n = 0;
    for (int i = 0; i < PRODUCERS_MAX; i++) {
        n += ring_drain(producers[i].ring, 1);
    }
    return n;
}

static uint64_t spsc_bare_receive(void)
{
    uint64_t n = 0;
    for (int i = 0; i < PRODUCERS_MAX; i++) {
        n += ring_drain(producers[i].ring, 0);
    }
    return n;
}

typedef struct variant {
    const char *name;
    int (*send)(producer *p);
    uint64_t (*receive)(void);
    void *(*thread)(void *arg);
} variant;

/* One thread function per variant, so that the send is a direct call. */
#define MAKE_THREAD(name, send)                                                                    \
    static void *name(void *arg)                                                                   \
    {                                                                                              \
        producer *p = arg;                                                                         \
        unsigned tries = 0;                                                                        \
        pin(pinned ? 1 : -1);                                                                      \
        atomic_fetch_add(&ready, 1);                                                               \
        while (!atomic_load(&go)) {                                                                \
            sched_yield();                                                                         \
        }                                                                                          \
        for (uint64_t i = 0; i < to_send;) {                                                       \
            if (send(p)) {                                                                         \
                i++;                                                                               \
                tries = 0;                                                                         \
            } else {                                                                               \
                back_off(&tries);                                                                  \
            }                                                                                      \
        }                                                                                          \
        return NULL;                                                                               \
    }
MAKE_THREAD(treiber_thread, treiber_send)
MAKE_THREAD(spsc_gate_thread, spsc_gate_send)
MAKE_THREAD(spsc_bare_thread, spsc_bare_send)

static const variant variants[] = {
    {"treiber", treiber_send, treiber_receive, treiber_thread},
    {"spsc_gate", spsc_gate_send, spsc_gate_receive, spsc_gate_thread},
    {"spsc_bare", spsc_bare_send, spsc_bare_receive, spsc_bare_thread},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static void setup(void)
{
    atomic_store(&gate, GENERATION);
    for (uint32_t i = 0; i < PRODUCERS_MAX; i++) {
        producer *p = &producers[i];
        if (p->nodes == NULL) {
            p->nodes = aligned_alloc(64, 2 * CAP * sizeof(node));
            p->ring = aligned_alloc(64, sizeof(ring));
            if (p->nodes == NULL || p->ring == NULL) {
                abort();
            }
        }
        p->local = NULL;
        for (uint32_t k = 0; k < 2 * CAP; k++) {
            p->nodes[k].next = p->local;
            p->local = &p->nodes[k];
        }
        atomic_store(&p->home, NULL);
        p->batch = NULL;
        p->batch_len = 0;
        atomic_store(&p->ring->head, 0);
        atomic_store(&p->ring->tail, 0);
        p->ring->cached_head = 0;
    }
}

static long preemptions(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

static double run_one(const variant *v, int producing, uint64_t messages, int *out_disturbed)
{
    pthread_t threads[PRODUCERS_MAX];
    setup();
    to_send = messages / (uint64_t)producing;
    pinned = producing == 1;
    pin(pinned ? 0 : -1);
    total = 0;
    uint64_t expected = to_send * (uint64_t)producing, got = 0;
    atomic_store(&ready, 0);
    atomic_store(&go, 0);
    for (int i = 0; i < producing; i++) {
        if (pthread_create(&threads[i], NULL, v->thread, &producers[i]) != 0) {
            abort();
        }
    }
    while (atomic_load(&ready) != producing) {
        sched_yield();
    }
    long before = preemptions();
    uint64_t start = clock_ns();
    atomic_store(&go, 1);
    unsigned tries = 0;
    while (got < expected) {
        uint64_t n = v->receive();
        got += n;
        if (n != 0) {
            tries = 0;
        } else {
            back_off(&tries);
        }
    }
    uint64_t elapsed = clock_ns() - start;
    *out_disturbed = preemptions() != before;
    for (int i = 0; i < producing; i++) {
        pthread_join(threads[i], NULL);
    }
    if (total != (int64_t)expected) {
        abort();
    }
    return (double)elapsed / (double)expected;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 11;
    uint64_t messages = argc > 2 ? strtoull(argv[2], NULL, 10) : 3000000;
    static double ns[PRODUCERS_MAX][VARIANTS][ROUNDS_MAX];
    static int kept[PRODUCERS_MAX][VARIANTS];
    if (rounds < 1 || rounds > ROUNDS_MAX || messages == 0) {
        fprintf(stderr, "usage: spike_inbound ROUNDS(1-999) MESSAGES\n");
        return 2;
    }
    for (int r = 0; r < rounds; r++) {
        for (int producing = 1; producing <= PRODUCERS_MAX; producing++) {
            for (int k = 0; k < VARIANTS; k++) {
                int turn = (k + r) % VARIANTS;
                int disturbed;
                double result = run_one(&variants[turn], producing, messages, &disturbed);
                if (producing > 1 || !disturbed) {
                    ns[producing - 1][turn][kept[producing - 1][turn]++] = result;
                }
            }
        }
    }
    for (int p = 0; p < PRODUCERS_MAX; p++) {
        double median[VARIANTS], p10[VARIANTS];
        for (int k = 0; k < VARIANTS; k++) {
            qsort(ns[p][k], (size_t)kept[p][k], sizeof(double), compare);
            median[k] = ns[p][k][kept[p][k] / 2];
            p10[k] = ns[p][k][kept[p][k] / 10];
        }
        for (int k = 0; k < VARIANTS; k++) {
            printf("%-13s %-9s %3d rounds: p10 %6.1f median %6.1f ns/op, %.2fx %.2fx bare\n",
                   p == 0 ? "counting_2t" : "counting2p_2t", variants[k].name, kept[p][k], p10[k],
                   median[k], p10[k] / p10[VARIANTS - 1], median[k] / median[VARIANTS - 1]);
        }
    }
    return 0;
}
