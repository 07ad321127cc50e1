/* The puppet: the one obedient actor of the tests. It writes down what happens to it, answers every
 * hook as the test said, and runs functions of the test inside itself; in simulation and on
 * threads, wherever it is put.
 *
 * Told: a message whose tag is one of T_* is an order: fail, panic, stop, hold still, run a
 * function (T_CALL). Every other tag is work, and goes to `on` if the test gave one.
 *
 * Answers: answer[hook] and panics[hook], where a hook is IN_INIT, a signal kind or IN_DEINIT.
 * `during` runs in every hook before the answer, with what is in hand (`msg`, `signal`). A bare
 * puppet has no init and no on_signal, as the simplest actor of a program.
 *
 * Counts: inits are tried starts, ups those that went well; deinits; handled (orders too), worked
 * (orders not); ends, fails and restarts are the observer's, with the reasons. They are atomic, so
 * that a test may wait for them. `turns` is plain on purpose and comes first in a turn: a thread
 * sanitizer sees by it whether the turns of one actor really follow each other (R34).
 *
 * Writes: its log has a `sight` per message and signal, under a lock of its own. `seq` in it is one
 * clock for all puppets of a cast, so that what happened on different dispatchers can be put in
 * order. The journal (`said`) is text, for tests in which the order is the fact: "a.init
 * a.post_start a:1 b<terminated a failed 7>". It belongs to the test that runs, and is written
 * while the cast has CAST_JOURNAL.
 *
 * Place: the name of a dispatcher, or NULL for that of its spawner. "loop" is the test's own
 * thread, which steps it; "pinned" a thread of its own; "desk" a named pinned loop; "pool" and
 * "crew" are pools of workers. world.h has the system with these places, on threads and in virtual
 * time, and runs a test for each place or each pair of them. In a rig (rig.h) there is one loop,
 * and JZX_DISPATCHER says what it is.
 *
 * A cast is the list of puppets that an observer knows by id or name, with its totals. Puppets are
 * on the stack of a test that has one loop; cast_close() gives back their logs and checks that
 * every state that was built was released. In a world they are on the heap, where they stay when a
 * test is left early: other threads may use them.
 *
 * Made of it: family.h (a parent with a policy), desk.h (become, stash), crash.h, nest.h
 * (supervisors over dispatchers), and in rooms ask_fixture.h, reg_fixture.h, bus_fixture.h and
 * sup_fixture.h. */
#ifndef JZT_PUPPET_H
#define JZT_PUPPET_H

#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>

/* Orders. */
enum {
    T_FAIL = 0x10000, /* with code 7 */
    T_PANIC,          /* with code 8 */
    T_STOP,
    T_ODD,   /* return what is no result */
    T_DEFER, /* return what only PRE_STOP may */
    T_SELF_STOP,
    T_SELF_DRAIN,
    T_SELF_KILL,
    T_CALL,      /* run `call` */
    T_HOLD_SOON, /* arm a timer for T_HOLD: in its turn no message of others is in hand */
    T_HOLD,      /* stay in the behavior until puppet_release() */
    T_ORDERS
};

enum { IN_INIT = 0, IN_DEINIT = 15, HOOKS = 16 };

typedef struct puppet puppet;
typedef struct cast cast;

/* One thing that a puppet saw. */
typedef struct sight {
    uint64_t seq;
    uint64_t at_ns;  /* of the system's clock */
    uint32_t signal; /* jzx_signal_kind; 0: a message */
    uint32_t tag;
    uint32_t kind; /* jzx_kind */
    uint32_t flags;
    uint64_t u64;
    uint64_t len;
    uint64_t sum;        /* of the bytes of a copy, or of data with drop */
    jzx_actor_id sender; /* of a message; the actor a signal is about */
    jzx_watch_ref ref;
    uint32_t incarnation; /* of the actor a signal is about */
    uint32_t life;        /* of the puppet: 1, 2, ... */
    int32_t err;          /* of a room sight */
    jzx_reason reason;
} sight;

typedef void (*puppet_fn)(jzx_context *ctx, puppet *self, void *arg);
typedef jzx_behavior_result (*puppet_on)(jzx_context *ctx, const jzx_message *msg, puppet *self);

struct puppet {
    /* What the test says. */
    char name[64];
    const char *place;
    jzx_spawn_opts opts; /* what puppet_opts() does not say; changed before the spawn */
    bool bare;           /* no init, no on_signal; news of others is not for it */
    bool plain;          /* no on_signal: notices reach the behavior */
    bool mute;           /* says nothing and keeps no log */
    jzx_behavior_result answer[HOOKS]; /* by hook; 0 is OK */
    bool panics[HOOKS];
    puppet_on on;
    void (*during)(jzx_context *ctx, puppet *self, uint32_t what);
    void (*call)(jzx_context *ctx, puppet *self); /* what T_CALL runs, or */
    puppet_fn call_with;
    void *call_arg;
    void *arg;
    _Atomic uint64_t number; /* for the test's own counting */
    jzx_watch_ref ref;
    size_t log_max; /* sights that are kept; 0: all */
    /* What happened. */
    uint64_t turns;
    const jzx_message *msg;   /* in hand */
    const jzx_signal *signal; /* in hand */
    _Atomic jzx_actor_id id;
    _Atomic bool up; /* between init and deinit */
    _Atomic uint32_t inits, ups, deinits;
    _Atomic uint64_t handled, worked;
    _Atomic uint64_t ends, fails, restarts;
    _Atomic uint64_t init_seq, deinit_seq, end_seq; /* the latest */
    _Atomic uint64_t end_ns;                        /* virtual, if time is */
    _Atomic int call_done, held, released;
    _Atomic int busy;     /* inside its code */
    pthread_mutex_t lock; /* of what follows */
    jzx_reason failed;    /* the last failure */
    jzx_reason ended;
    jzx_restart_event restart; /* the last; its pointers are gone */
    sight *log;
    size_t log_len, log_cap;
    cast *cast; /* NULL: no observer knows it */
    puppet *next;
    struct world *w; /* NULL: it lives in a rig */
};

enum { CAST_JOURNAL = 1, CAST_THREADS = 2 };

struct cast {
    uint32_t flags;
    jzx_sim *sim; /* NULL: ends are told by the system's clock */
    pthread_mutex_t lock;
    puppet *first;
    _Atomic uint64_t seq; /* a clock of what happens, over all puppets */
    _Atomic uint64_t starts, ends, fails, restarts, letters, escalations;
    uint32_t escalated_as; /* the last */
    jzx_actor_id escalated_for;
};

/* The cast of tests with one loop. */
extern cast the_cast;
extern const jzx_observer cast_observer; /* its context is the cast */

void cast_open(cast *c, uint32_t flags, jzx_sim *sim);
/* Every life that was begun has ended, and every state that was built was released. */
void cast_close(cast *c);
puppet *cast_find(cast *c, const char *name);
/* "?" if it is no puppet's. */
const char *cast_name_of(cast *c, jzx_actor_id id);

/* The journal. */
enum { SAID_MAX = 16384 };
extern char said[SAID_MAX];
void said_clear(void);
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
/* One entry comes before another, and both are there. */
bool said_before(const char *first, const char *second);
size_t said_times(const char *text);
/* "panic 8", "shutdown"; valid until the next call on this thread. */
const char *reason_text(const jzx_reason *reason);

/* The journal since the last look is exactly this. */
#define CHECK_SAID(text)                                                                           \
    do {                                                                                           \
        CHECK_STR(said, text);                                                                     \
        said_clear();                                                                              \
    } while (0)

/* Zeroed and known by this name, not spawned; the second one is in the_cast. */
void cast_add(cast *c, puppet *self, const char *name);
void puppet_name(puppet *self, const char *name);
/* On the heap, in no cast, bare; the caller frees it. */
puppet *puppet_new(puppet_on on);
void puppet_free(puppet *self);
/* Gives back its log; for one that is no cast's to close. */
void puppet_forget(puppet *self);

/* All hooks, or none for a bare one; change what the test needs. */
jzx_spawn_opts puppet_opts(puppet *self);
jzx_child_spec puppet_spec(puppet *self, uint32_t mode);
jzx_err puppet_try_spawn(jzx_loop *loop, puppet *self, const jzx_spawn_opts *opts);
void puppet_spawn_with(jzx_loop *loop, puppet *self, const jzx_spawn_opts *opts);

/* Its code, for behaviors that do something of their own first. */
jzx_behavior_result puppet_init(jzx_context *ctx, void *arg);
void puppet_deinit(jzx_context *ctx);
jzx_behavior_result puppet_signal(jzx_context *ctx, const jzx_signal *signal);
jzx_behavior_result puppet_behavior(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result puppet_obey(jzx_context *ctx, uint32_t tag, puppet *self);

/* The log. */
uint64_t sum_of(const void *bytes, size_t len);
size_t puppet_log_len(puppet *self);
/* Zeroed when there is none. */
sight puppet_sight(puppet *self, size_t index);
void puppet_log_clear(puppet *self);
/* How often a signal, or (with signal 0) a message with this tag, was seen; the last one too. */
size_t puppet_count(puppet *self, uint32_t signal, uint32_t tag, sight *last);
size_t puppet_saw(puppet *self, uint32_t tag);
size_t puppet_signals(puppet *self, uint32_t signal);
jzx_reason puppet_reason(puppet *self);

/* The puppet saw exactly these tags, in this order. */
void check_log(int line, puppet *self, const uint32_t *want, size_t want_len);
#define CHECK_LOG(puppet_, ...)                                                                    \
    do {                                                                                           \
        static const uint32_t want_[] = {__VA_ARGS__};                                             \
        check_log(__LINE__, (puppet_), want_, COUNT_OF(want_));                                    \
    } while (0)

bool puppet_is_up(const puppet *self);
/* Inside its code: stays there until it is released, or panics. */
void puppet_stay(puppet *self);
_Noreturn void puppet_panic(jzx_context *ctx, puppet *self, int32_t code);
/* Whether it writes into the journal. */
bool puppet_speaks(const puppet *self);
/* The next moment of its cast's clock. */
uint64_t puppet_tick(puppet *self);
void puppet_release(puppet *self);

uint64_t now_ns(void);
void pause_us(uint64_t us);
enum { WAIT_LIMIT_MS = 120000 };

/* In a rig. */

/* With an observer and a journal; FIFO turns, so that journals come out the same with every seed,
 * unless rig_seed is not 0: then that seed says who runs next, for tests that look at invariants
 * only. The rig must stay where it is. */
extern uint64_t rig_seed;
void play_open(rig *r, const jzx_config *config);
void play_close(rig *r);

/* Named, spawned by the root, not yet started. */
void puppet_spawn(rig *r, puppet *self, const char *name);
/* A bare one; the options say everything but the behavior, the state and the deinit. */
puppet *puppet_start(rig *r, puppet_on on, const jzx_spawn_opts *opts);
void puppet_start_as(rig *r, puppet *self, const jzx_spawn_opts *opts);
void tell(rig *r, const puppet *to, uint32_t tag);
/* Runs a function of the test inside a puppet, and whatever follows from it. */
void inside(rig *r, puppet *self, void (*call)(jzx_context *ctx, puppet *self));
jzx_timer_id after(rig *r, const puppet *to, uint32_t ms, uint32_t tag);
bool is_gone(rig *r, const puppet *self);

/* It ended once, for this reason, and its id is gone. */
#define CHECK_ENDED(rig_, self_, kind_)                                                            \
    do {                                                                                           \
        CHECK_EQ((self_)->ends, 1);                                                                \
        CHECK_STR(jzx_reason_name((self_)->ended.kind), jzx_reason_name(kind_));                   \
        CHECK(is_gone((rig_), (self_)));                                                           \
        CHECK_EQ(jzx_send_u64((rig_)->loop, (self_)->id, 0, 1), JZX_ERR_NO_SUCH_ACTOR);            \
    } while (0)

#define CHECK_STATE(rig_, self_, state_)                                                           \
    CHECK_STR(jzx_state_name(jzx_actor_state((rig_)->loop, (self_)->id)), jzx_state_name(state_))

#endif
