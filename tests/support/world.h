/* A world: a system with dispatchers of every kind in which puppets are put (puppet.h), that checks
 * threads, descriptors, memory and conservation when it is closed.
 *
 * On real threads the test's own thread is the one of "loop" and steps it while it waits;
 * WAIT_STILL() waits without stepping, so that nobody on "loop" moves meanwhile. In virtual time
 * (world_open_sim()) nothing moves but by WAIT(), and nobody can be held in its behavior.
 *
 * A rule that holds wherever its actors are is written once, as a body for one place or for two,
 * and run by for_all_places(), for_all_pairs() and their _too variants, which play it in virtual
 * time as well. */
#ifndef JZT_WORLD_H
#define JZT_WORLD_H

#include "puppet.h"

enum { POOL_WORKERS = 3, CREW_WORKERS = 2 };

/* The places where actors live: the three names, a named pinned loop and a second pool. */
enum { AT_LOOP, AT_PINNED, AT_POOL, AT_DESK, AT_CREW, PLACES };
extern const char *const places[PLACES];

typedef struct world {
    jzx_system *system;
    jzx_loop *loop;
    jzx_sender *sender; /* NULL in virtual time */
    jzx_fault *fault;   /* NULL: malloc */
    jzx_sim *sim;       /* NULL: real threads */
    size_t threads;     /* before it was opened */
    size_t fds;
    cast cast;
} world;

/* Entries of /proc/self/fd, and of /proc/self/task. */
size_t count_fds(void);
size_t count_threads(void);

world *world_open(void);
world *world_open_with(const jzx_config *given, bool watch_memory);
world *world_open_sim(void);
/* Settled, destroyed, and nothing is left: no thread, no descriptor, no byte, no state. */
void world_close(world *w);

/* One step of "loop", or a millisecond of virtual time. */
void world_step(world *w);
/* As a thread that runs no actors; in virtual time there are no threads, and it is the root. */
jzx_err world_send(world *w, jzx_actor_id to, const jzx_send_opts *opts);
jzx_counters world_counters(world *w);
/* Everything came to rest, and every term of R5 was counted. */
void world_settle(world *w);

/* A body for one place or for two, in each place or each pair of places; a failure says which. */
void for_all_places(void (*body)(world *w, size_t at));
void for_all_pairs(void (*body)(world *w, size_t from, size_t to));
/* The same in virtual time first. */
void for_all_places_too(void (*body)(world *w, size_t at));
void for_all_pairs_too(void (*body)(world *w, size_t from, size_t to));

/* Waits until it holds, stepping meanwhile; leaves the test if that takes too long. */
#define WAIT(w_, cond)                                                                             \
    do {                                                                                           \
        uint64_t end_ = now_ns() + WAIT_LIMIT_MS * MS;                                             \
        bool holds_ = (cond);                                                                      \
        while (!holds_ && now_ns() < end_) {                                                       \
            world_step(w_);                                                                        \
            holds_ = (cond);                                                                       \
        }                                                                                          \
        jzt_check_true(JZT_REQUIRE, __FILE__, __LINE__, #cond, holds_);                            \
    } while (0)

#define WAIT_STILL(cond)                                                                           \
    do {                                                                                           \
        uint64_t end_ = now_ns() + WAIT_LIMIT_MS * MS;                                             \
        bool holds_ = (cond);                                                                      \
        while (!holds_ && now_ns() < end_) {                                                       \
            pause_us(200);                                                                         \
            holds_ = (cond);                                                                       \
        }                                                                                          \
        jzt_check_true(JZT_REQUIRE, __FILE__, __LINE__, #cond, holds_);                            \
    } while (0)

/* Puppets in a world. */

#define ID_OF(puppet_) atomic_load(&(puppet_)->id)

/* On the heap, known by its name, not spawned yet; change opts and answers first. */
puppet *puppet_at(world *w, const char *name, const char *place);
/* By the running actor, or by the root; it may be on its way already when this returns. */
jzx_err puppet_spawn_at(jzx_loop *loop, puppet *self);
/* Spawned by the root and RUNNING. */
puppet *puppet_up(puppet *self);
bool puppet_on_loop(const puppet *self);
/* Both on "loop", or both on the named pinned loop: while one runs the other cannot. */
bool share_thread(const puppet *a, const puppet *b);

/* Past everything that waits in its mailbox, and beyond its cap; a mailbox that is full even so is
 * waited for. */
void puppet_order(puppet *self, uint32_t tag);
/* Runs a function of the test inside the puppet and waits for it; "loop" stands still unless the
 * puppet lives there or time is virtual. */
void puppet_call(puppet *self, puppet_fn fn, void *arg);
/* Keeps a puppet in its behavior, with nothing of others in hand. On "loop" standing still does. */
void puppet_hold(puppet *self);
/* Keeps b from running while a does something: nothing has to be done if they share a thread. */
void puppet_hold_from(puppet *b, const puppet *a);
/* Stops it, or kills it, and waits for its end. */
void puppet_end(puppet *self);
void puppet_kill(puppet *self);

/* It ended once, for this reason, and its id is gone. */
#define CHECK_PUPPET_ENDED(self_, kind_)                                                           \
    do {                                                                                           \
        WAIT((self_)->w, atomic_load(&(self_)->ends) > 0);                                         \
        CHECK_EQ(atomic_load(&(self_)->ends), 1);                                                  \
        CHECK_STR(jzx_reason_name(puppet_reason(self_).kind), jzx_reason_name(kind_));             \
        CHECK_EQ(jzx_send_u64((self_)->w->loop, ID_OF(self_), 0, 1), JZX_ERR_NO_SUCH_ACTOR);       \
    } while (0)

/* a does something to b. */
typedef struct couple {
    world *w;
    puppet *a;
    puppet *b;
    jzx_err err;
    uint64_t ref; /* of what a has: a watch, a timer, ... */
} couple;

/* Both up; valid until the next one is opened. */
couple *couple_open(world *w, size_t a, size_t b);
/* Both are ended, if they are not, and nothing is left of what they had with each other. */
void couple_close(couple *p);

#endif
