/* Spike: is a mailbox a list of nodes or a growing ring? (docs/internals/adr/0001)
 *
 *     cc -O2 -std=c17 bench/spikes/mailbox.c -o /tmp/spike_mailbox
 *     /tmp/spike_mailbox 9         # rounds; medians are printed
 *
 * Four variants of one single-threaded runtime, differing in the mailbox only:
 *   raw        one ring of {target, from, value}, as in the peers' lower bound; no mailboxes at all
 *   nodes      64-byte nodes from a last-in first-out free list, a circular list per actor
 *   ring_free  48-byte messages in a ring per actor, allocated on first use (8, doubling), given
 *              back to a free list of its size when the mailbox runs empty
 *   ring_keep  the same, but kept for good
 * A ring's messages are read in place. Everything else is the same: ids looked up in chunks of
 * 1,024 actors of 128 bytes, a generation check, a cap of 1,024 messages, a run ring of slot
 * numbers, 128 messages per turn. CPU time is measured, and the variants take turns inside each
 * round, so that what else runs on the machine falls on none or on all of them. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef SCALE
#define SCALE 1 /* -DSCALE=5 shortens a round to a fifth */
#endif
#define ROUND_TRIPS (5000000 / SCALE)
#define INCREMENTS (10000000 / SCALE)
#define SENDS_PER_TURN 1000
#define BIG_ACTORS 10000
#define BIG_PINGS (1000 / SCALE)
#define BUDGET 128
#define CAP 1024
#define ROUNDS_MAX 999

static uint64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint32_t lcg(uint32_t *state)
{
    *state = (uint32_t)(((uint64_t)*state * 48271u) % 2147483647u);
    return *state;
}

static __attribute__((noinline, cold)) void fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(2);
}

static void *must(void *p)
{
    if (p == NULL) {
        fail("no memory");
    }
    return p;
}

static int running;

/* The lower bound. */
typedef struct raw_actor raw_actor;
typedef void (*raw_fn)(raw_actor *self, raw_actor *from, int64_t v);
struct raw_actor {
    raw_fn fn;
    raw_actor *peer;
    int64_t n;
    uint32_t rng, pad;
};
typedef struct raw_event {
    raw_actor *to, *from;
    int64_t v;
} raw_event;
static raw_event raw_queue[1 << 15];
static uint64_t raw_head, raw_tail;

static inline void raw_post(raw_actor *to, raw_actor *from, int64_t v)
{
    if (raw_tail - raw_head >= (1 << 15)) {
        fail("ring full");
    }
    raw_queue[raw_tail++ & ((1 << 15) - 1)] = (raw_event){to, from, v};
}

static __attribute__((noinline)) void raw_run(void)
{
    running = 1;
    while (running && raw_head != raw_tail) {
        raw_event e = raw_queue[raw_head++ & ((1 << 15) - 1)];
        e.to->fn(e.to, e.from, e.v);
    }
    raw_head = raw_tail = 0;
}

static raw_actor *raw_big;
static int big_left;

static void raw_pingpong_fn(raw_actor *s, raw_actor *from, int64_t v)
{
    if (v == 0) {
        running = 0;
        return;
    }
    raw_post(from, s, v - 1);
}

static void raw_counter_fn(raw_actor *s, raw_actor *from, int64_t v)
{
    (void)from;
    if (v < 0) {
        running = 0;
        return;
    }
    s->n += v;
}

static void raw_producer_fn(raw_actor *s, raw_actor *from, int64_t v)
{
    (void)from;
    (void)v;
    for (int i = 0; i < SENDS_PER_TURN; i++) {
        raw_post(s->peer, s, 1);
    }
    s->n -= SENDS_PER_TURN;
    if (s->n > 0) {
        raw_post(s, s, 0);
    } else {
        raw_post(s->peer, s, -1);
    }
}

static void raw_big_fn(raw_actor *s, raw_actor *from, int64_t v)
{
    if (v >= 0) {
        raw_post(from, s, -1 - v);
        return;
    }
    if (s->n == 0) {
        running = --big_left != 0;
        return;
    }
    s->n--;
    raw_post(&raw_big[lcg(&s->rng) % BIG_ACTORS], s, s->n);
}

static void raw_pingpong(void)
{
    raw_actor a = {.fn = raw_pingpong_fn}, b = {.fn = raw_pingpong_fn};
    raw_post(&a, &b, ROUND_TRIPS * 2);
    raw_run();
}

static void raw_counting(void)
{
    raw_actor c = {.fn = raw_counter_fn};
    raw_actor p = {.fn = raw_producer_fn, .peer = &c, .n = INCREMENTS};
    raw_post(&p, &p, 0);
    raw_run();
    if (c.n != INCREMENTS) {
        fail("bad count");
    }
}

static void raw_big_run(void)
{
    raw_big = must(calloc(BIG_ACTORS, sizeof *raw_big));
    for (uint32_t i = 0; i < BIG_ACTORS; i++) {
        raw_big[i] = (raw_actor){.fn = raw_big_fn, .n = BIG_PINGS, .rng = i + 1};
        raw_post(&raw_big[i], &raw_big[i], -1);
    }
    big_left = BIG_ACTORS;
    raw_run();
    free(raw_big);
}

/* The runtime, compiled once per kind of mailbox through a template below. */
typedef struct message {
    union {
        void *data;
        int64_t v;
    };
    size_t len;
    uint32_t tag, flags;
    uint64_t sender;
    void (*drop)(void *data);
    uint64_t deadline_ns;
} message;
_Static_assert(sizeof(message) == 48, "as in jzx/types.h");

typedef struct node {
    struct node *next;
    message msg;
    uint32_t stamp, ask;
} node;
_Static_assert(sizeof(node) == 64, "one cache line");

typedef struct actor actor;
typedef void (*behavior)(uint64_t self, void *state, const message *msg);

struct actor {
    _Alignas(128) uint64_t gate; /* generation in the high half */
    uint32_t cap, kind;
    uint8_t door_rest[48];
    behavior fn;
    void *state;
    node *tail;     /* nodes: circular list */
    message *slots; /* rings */
    uint32_t size, head, used, queued;
    uint32_t accepted, handled;
};
_Static_assert(sizeof(actor) == 128, "two cache lines");

#define CHUNK 1024u
#define CHUNKS 1024u
static actor *directory[CHUNKS];
static uint32_t spawned;
static uint32_t run_ring[1 << 20];
static uint64_t run_head, run_tail;
static uint64_t ring_bytes;
/* Free rings by size class, so that giving storage back costs no malloc. */
static message *ring_free_list[32];

static actor *slot_actor(uint32_t slot)
{
    return &directory[slot / CHUNK][slot % CHUNK];
}

static actor *lookup(uint64_t id)
{
    uint32_t slot = (uint32_t)id & 0xFFFFFFu;
    if (slot >= spawned) {
        return NULL;
    }
    actor *a = slot_actor(slot);
    return a->gate >> 32 == id >> 32 ? a : NULL;
}

static uint64_t spawn(behavior fn, void *state)
{
    uint32_t slot = spawned++;
    if (directory[slot / CHUNK] == NULL) {
        directory[slot / CHUNK] = must(aligned_alloc(128, CHUNK * sizeof(actor)));
    }
    actor *a = slot_actor(slot);
    memset(a, 0, sizeof *a);
    a->gate = (uint64_t)(slot * 7 + 1) << 32;
    a->cap = CAP;
    a->fn = fn;
    a->state = state;
    return a->gate | slot;
}

static void table_clear(void)
{
    memset(ring_free_list, 0, sizeof ring_free_list); /* leaks a little: it is a spike */
    for (uint32_t slot = 0; slot < spawned; slot++) {
        free(slot_actor(slot)->slots);
    }
    for (uint32_t i = 0; i < CHUNKS; i++) {
        free(directory[i]);
        directory[i] = NULL;
    }
    spawned = 0;
    run_head = run_tail = 0;
    ring_bytes = 0;
}

static void schedule(actor *a, uint64_t id)
{
    if (!a->queued) {
        a->queued = 1;
        run_ring[run_tail++ & ((1 << 20) - 1)] = (uint32_t)id & 0xFFFFFFu;
    }
}

static node *node_free;

/* Slow paths stay out of line: inlined, they cost every send six pushes and pops. */
static __attribute__((noinline, cold)) node *node_refill(void)
{
    node *block = must(aligned_alloc(64, 1024 * sizeof *block));
    for (int i = 1; i < 1024; i++) {
        block[i].next = node_free;
        node_free = &block[i];
    }
    return &block[0];
}

static node *node_take(void)
{
    node *n = node_free;
    if (__builtin_expect(n == NULL, 0)) {
        return node_refill();
    }
    node_free = n->next;
    return n;
}

static message *ring_take(uint32_t size)
{
    uint32_t class = (uint32_t)__builtin_ctz(size);
    message *r = ring_free_list[class];
    if (r != NULL) {
        ring_free_list[class] = r->data;
        return r;
    }
    ring_bytes += size * sizeof *r;
    return must(malloc(size * sizeof *r));
}

static void ring_give(message *ring, uint32_t size)
{
    uint32_t class = (uint32_t)__builtin_ctz(size);
    ring->data = ring_free_list[class];
    ring_free_list[class] = ring;
}

/* A ring that grows while its own message is being read is given back after the call. */
static message *running_ring, *retired_ring;
static uint32_t retired_size;

static __attribute__((noinline, cold)) void ring_grow(actor *a)
{
    uint32_t size = a->size == 0 ? 8 : a->size * 2;
    message *bigger = ring_take(size);
    for (uint32_t i = 0; i < a->used; i++) {
        bigger[i] = a->slots[(a->head + i) & (a->size - 1)];
    }
    if (a->slots != NULL && a->slots == running_ring && retired_ring == NULL) {
        retired_ring = a->slots;
        retired_size = a->size;
    } else if (a->slots != NULL) {
        ring_give(a->slots, a->size);
    }
    a->slots = bigger;
    a->size = size;
    a->head = 0;
}

/* noinline, because the real ones are library calls. */
static __attribute__((noinline)) int send_nodes(uint64_t to, uint64_t from, int64_t v, uint32_t tag)
{
    actor *a = lookup(to);
    if (a == NULL) {
        return -3;
    }
    if (a->used >= a->cap) {
        return -5;
    }
    node *n = node_take();
    n->msg = (message){.v = v, .tag = tag, .sender = from};
    n->stamp = a->accepted++;
    if (a->tail == NULL) {
        n->next = n;
    } else {
        n->next = a->tail->next;
        a->tail->next = n;
    }
    a->tail = n;
    a->used++;
    schedule(a, to);
    return 0;
}

static __attribute__((noinline)) int send_ring(uint64_t to, uint64_t from, int64_t v, uint32_t tag)
{
    actor *a = lookup(to);
    if (a == NULL) {
        return -3;
    }
    if (a->used >= a->cap) {
        return -5;
    }
    if (__builtin_expect(a->used == a->size, 0)) {
        ring_grow(a);
    }
    a->slots[(a->head + a->used) & (a->size - 1)] = (message){.v = v, .tag = tag, .sender = from};
    a->used++;
    a->accepted++;
    schedule(a, to);
    return 0;
}

/* The list is taken off the actor for the turn, so that the next node is known without a store and
 * a load through the tail; what is left over goes back in front of what came in meanwhile. */
static void turn_nodes(actor *a, uint64_t id)
{
    node *last = a->tail;
    node *n = last->next;
    a->tail = NULL;
    for (int i = 0; i < BUDGET && n != NULL; i++) {
        node *next = n == last ? NULL : n->next;
        a->used--;
        a->fn(id, a->state, &n->msg);
        a->handled++;
        n->next = node_free;
        node_free = n;
        n = next;
    }
    if (n == NULL) {
        return;
    }
    if (a->tail == NULL) {
        last->next = n;
        a->tail = last;
    } else {
        last->next = a->tail->next;
        a->tail->next = n;
    }
}

/* The behavior reads the message in its slot, which counts as used until the call is over: copying
 * it out first was tried and costs twice as much in pingpong, because the wide loads of the copy
 * wait for the narrow stores of the send. */
static inline void turn_ring(actor *a, uint64_t id, int keep)
{
    for (int i = 0; i < BUDGET && a->used != 0; i++) {
        running_ring = a->slots;
        a->fn(id, a->state, &a->slots[a->head & (a->size - 1)]);
        if (__builtin_expect(retired_ring != NULL, 0)) {
            ring_give(retired_ring, retired_size);
            retired_ring = NULL;
        }
        a->head++;
        a->used--;
        a->handled++;
    }
    if (!keep && a->used == 0) {
        ring_give(a->slots, a->size);
        a->slots = NULL;
        a->size = 0;
    }
}

#define MAKE_RUN(name, turn, more)                                                                 \
    static __attribute__((noinline)) void name(void)                                               \
    {                                                                                              \
        running = 1;                                                                               \
        while (running && run_head != run_tail) {                                                  \
            uint32_t slot = run_ring[run_head++ & ((1 << 20) - 1)];                                \
            actor *a = slot_actor(slot);                                                           \
            uint64_t id = (a->gate >> 32 << 32) | slot;                                            \
            turn;                                                                                  \
            a->queued = 0;                                                                         \
            if (more) {                                                                            \
                schedule(a, id);                                                                   \
            }                                                                                      \
        }                                                                                          \
    }
MAKE_RUN(run_nodes, turn_nodes(a, id), a->tail != NULL)
MAKE_RUN(run_ring_free, turn_ring(a, id, 0), a->used != 0)
MAKE_RUN(run_ring_keep, turn_ring(a, id, 1), a->used != 0)

typedef int (*send_fn)(uint64_t to, uint64_t from, int64_t v, uint32_t tag);
typedef struct variant {
    const char *name;
    send_fn send;
    void (*run)(void);
} variant;

/* The workloads exist once per send function, so that the call is direct. */
typedef struct cell {
    uint64_t peer;
    int64_t n;
    uint32_t rng, pad;
} cell;
static uint64_t big_ids[BIG_ACTORS];

#define MAKE_WORKLOADS(suffix, send)                                                               \
    static void pingpong_##suffix(uint64_t self, void *state, const message *m)                    \
    {                                                                                              \
        (void)state;                                                                               \
        if (m->v == 0) {                                                                           \
            running = 0;                                                                           \
            return;                                                                                \
        }                                                                                          \
        if (send(m->sender, self, m->v - 1, 1) != 0) {                                             \
            fail("refused");                                                                       \
        }                                                                                          \
    }                                                                                              \
    static void counter_##suffix(uint64_t self, void *state, const message *m)                     \
    {                                                                                              \
        (void)self;                                                                                \
        if (m->v < 0) {                                                                            \
            running = 0;                                                                           \
            return;                                                                                \
        }                                                                                          \
        ((cell *)state)->n += m->v;                                                                \
    }                                                                                              \
    static void producer_##suffix(uint64_t self, void *state, const message *m)                    \
    {                                                                                              \
        cell *c = state;                                                                           \
        (void)m;                                                                                   \
        for (int i = 0; i < SENDS_PER_TURN && c->n > 0; i++) {                                     \
            /* With a budget of 128 the counter lags; what is refused goes out next time. */       \
            if (send(c->peer, self, 1, 1) != 0) {                                                  \
                break;                                                                             \
            }                                                                                      \
            c->n--;                                                                                \
        }                                                                                          \
        if (c->n > 0 || send(c->peer, self, -1, 1) != 0) {                                         \
            send(self, self, 0, 1);                                                                \
        }                                                                                          \
    }                                                                                              \
    static void big_##suffix(uint64_t self, void *state, const message *m)                         \
    {                                                                                              \
        cell *c = state;                                                                           \
        if (m->v >= 0) {                                                                           \
            if (send(m->sender, self, -1 - m->v, 1) != 0) {                                        \
                fail("refused");                                                                   \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        if (c->n == 0) {                                                                           \
            running = --big_left != 0;                                                             \
            return;                                                                                \
        }                                                                                          \
        c->n--;                                                                                    \
        if (send(big_ids[lcg(&c->rng) % BIG_ACTORS], self, c->n, 1) != 0) {                        \
            fail("refused");                                                                       \
        }                                                                                          \
    }
MAKE_WORKLOADS(nodes, send_nodes)
MAKE_WORKLOADS(ring, send_ring)

static void rt_pingpong(const variant *v, behavior fn)
{
    uint64_t a = spawn(fn, NULL), b = spawn(fn, NULL);
    v->send(a, b, ROUND_TRIPS * 2, 1);
    v->run();
    table_clear();
}

static void rt_counting(const variant *v, behavior counter, behavior producer)
{
    cell c = {0}, p = {.n = INCREMENTS};
    p.peer = spawn(counter, &c);
    uint64_t id = spawn(producer, &p);
    v->send(id, id, 0, 1);
    v->run();
    if (c.n != INCREMENTS) {
        fail("bad count");
    }
    table_clear();
}

static void rt_big(const variant *v, behavior fn)
{
    static cell cells[BIG_ACTORS];
    for (uint32_t i = 0; i < BIG_ACTORS; i++) {
        cells[i] = (cell){.n = BIG_PINGS, .rng = i + 1};
        big_ids[i] = spawn(fn, &cells[i]);
    }
    big_left = BIG_ACTORS;
    for (uint32_t i = 0; i < BIG_ACTORS; i++) {
        v->send(big_ids[i], big_ids[i], -1, 1);
    }
    v->run();
    table_clear();
}

static const variant nodes = {"nodes", send_nodes, run_nodes};
static const variant ring_free = {"ring_free", send_ring, run_ring_free};
static const variant ring_keep = {"ring_keep", send_ring, run_ring_keep};
static const variant *const variants[] = {NULL, &nodes, &ring_free, &ring_keep};
static const char *const workloads[] = {"pingpong", "counting", "big"};
static const double operations[] = {ROUND_TRIPS, INCREMENTS, (double)BIG_ACTORS *BIG_PINGS};

static void run_one(int workload, const variant *v)
{
    int is_nodes = v == &nodes;
    if (v == NULL) {
        workload == 0 ? raw_pingpong() : workload == 1 ? raw_counting() : raw_big_run();
    } else if (workload == 0) {
        rt_pingpong(v, is_nodes ? pingpong_nodes : pingpong_ring);
    } else if (workload == 1) {
        rt_counting(v, is_nodes ? counter_nodes : counter_ring,
                    is_nodes ? producer_nodes : producer_ring);
    } else {
        rt_big(v, is_nodes ? big_nodes : big_ring);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Bytes per actor once each of 100,000 has handled a burst of 8 messages and is idle again. */
static void sink(uint64_t self, void *state, const message *m)
{
    (void)self;
    (void)state;
    (void)m;
}

static void memory(void)
{
    enum { N = 100000 };
    static uint64_t ids[N];
    for (int k = 1; k < 4; k++) {
        const variant *v = variants[k];
        for (int i = 0; i < N; i++) {
            ids[i] = spawn(sink, NULL);
        }
        ring_bytes = 0;
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < 8; j++) {
                v->send(ids[i], 0, 1, 1);
            }
            v->run();
        }
        printf("idle %-9s %6.1f bytes of mailbox storage per actor (actor itself: 128)\n", v->name,
               (double)ring_bytes / N);
        table_clear();
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    static double ns[3][4][ROUNDS_MAX];
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fail("rounds: 1 to 999");
    }
    for (int r = 0; r < rounds; r++) {
        for (int w = 0; w < 3; w++) {
            for (int k = 0; k < 4; k++) {
                int turn = (k + r) % 4;
                uint64_t t = clock_ns();
                run_one(w, variants[turn]);
                ns[w][turn][r] = (double)(clock_ns() - t) / operations[w];
            }
        }
    }
    for (int w = 0; w < 3; w++) {
        double raw = 0;
        for (int k = 0; k < 4; k++) {
            qsort(ns[w][k], (size_t)rounds, sizeof(double), compare);
            double median = ns[w][k][rounds / 2];
            raw = k == 0 ? median : raw;
            printf("%-9s %-9s median %6.2f min %6.2f max %6.2f ns/op, %.2fx raw\n", workloads[w],
                   k == 0 ? "raw" : variants[k]->name, median, ns[w][k][0], ns[w][k][rounds - 1],
                   median / raw);
        }
    }
    memory();
    return 0;
}
