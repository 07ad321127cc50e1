/* What the supervisor suites share: a simulated world with a supervisor in it, children that do
 * what the test tells them, and an observer that writes everything down as words.
 *
 * A `kid` is the puppet of one child spec and outlives its actor: it counts what happened in all of
 * its lives. A state that was not built anew, or not released, shows. */
#ifndef JZT_SUP_FIXTURE_H
#define JZT_SUP_FIXTURE_H

#include "puppet.h"

enum { WORDS_SIZE = 4096, KID_TIMES = 32 };

/* Words with blanks between them. What does not fit is left out, and the test will notice. */
typedef struct words {
    char text[WORDS_SIZE];
    char taken[WORDS_SIZE];
} words;

void words_add(words *w, const char *word);
/* Everything since the last look. */
const char *words_take(words *w);
/* Whether these words come in this order, with others between them or not. */
bool words_in_order(const char *text, const char *wanted);
/* How often a word is there. */
unsigned words_count(const char *text, const char *word);
typedef struct kid kid;

typedef struct tree {
    rig r;
    jzx_loop *loop;
    jzx_actor_id sup;
    kid *kids;
    words life;           /* +a started, !a failed to, ~a declined to, -a released its state */
    words asked;          /* a: it got PRE_STOP */
    words ends;           /* a:shutdown: it is gone, and why */
    words fails;          /* a:failed: an incarnation failed */
    words restarts;       /* a#2: its second incarnation begins */
    words escalations;    /* sup:gave_up:a: a supervisor failed because of a child */
    jzx_reason sup_end;   /* how `sup` ended */
    jzx_reason cause;     /* of the first escalation: the child's */
    jzx_reason last_fail; /* the latest failure of anybody */
} tree;

/* The letters of `plan`, one for each coming start; the last one stays in force. */
#define KID_STARTS 'o'
#define KID_FAILS 'f'
#define KID_PANICS 'p'
#define KID_DECLINES 'i'
#define KID_ODD '?' /* returns what is no result */

struct kid {
    puppet me; /* first: it is the actor's state */
    const char *id;
    tree *t;
    kid *next;
    /* What it does. */
    const char *plan; /* of its init; NULL: starts */
    char at_stop; /* of PRE_STOP: 0 agrees, d defers for ever, f fails, p panics, k kills itself */
    void (*on_init)(jzx_context *ctx, kid *k);
    void (*on_deinit)(jzx_context *ctx, kid *k);
    void *arg; /* for these two */
    /* What happened. */
    uint32_t seen;             /* messages of its present life */
    uint32_t drops;            /* kid_drop_arg() */
    uint64_t at_ns[KID_TIMES]; /* when the first tries were */
    uint64_t down_ns;          /* when it was last released */
    bool lingers;              /* has work until a timer comes */
    bool deferred;             /* and was asked to stop meanwhile */
};

/* Besides orders. */
enum {
    KID_NOTE = 1, /* do nothing but count */
    KID_LINGER,   /* be busy for u64 ms: a stop is deferred until then */
    KID_FINISH
};

enum { KID_FAIL_CODE = 7, KID_PANIC_CODE = 8, KID_INIT_CODE = 9, KID_STOP_CODE = 10 };

void kid_drop_arg(void *arg);

extern const jzx_observer tree_observer;

/* The tree stays where it is: the observer writes into it. The seed decides who runs next. */
void tree_open_seeded(tree *t, uint64_t seed);
void tree_open(tree *t);
/* Destroys what is left, and checks that every state that was built has been released. */
void tree_close(tree *t);
kid *kid_new(tree *t, const char *id);
jzx_child_spec kid_spec(kid *k, uint32_t mode);
/* Until nothing is ready; hardly any time passes. */
void tree_idle(tree *t);
void tree_pass(tree *t, uint64_t ms);
uint64_t tree_ms(const tree *t);
/* Makes the supervisor "sup" without waiting for it. */
void tree_spawn(tree *t, const jzx_supervisor_spec *spec, const jzx_child_spec *children,
                size_t count);
/* And runs until it and its children are up. */
void tree_start(tree *t, const jzx_supervisor_spec *spec, const jzx_child_spec *children,
                size_t count);
/* Children a, b, c, ... of one mode, made and started. */
void tree_start_kids(tree *t, const jzx_supervisor_spec *spec, kid **kids, const uint32_t *modes,
                     size_t count);
/* A dynamic supervisor whose children are kids; none yet. The first kid only lends its id. */
void tree_start_dynamic(tree *t, const jzx_supervisor_spec *given, uint32_t mode,
                        uint32_t shutdown_ms);
kid *tree_add_dynamic(tree *t, const char *plan);
void kid_tell(const kid *k, uint32_t tag, uint64_t value);
/* Begins an end of the child that is not its supervisor's doing. */
void kid_begin_end(const kid *k, uint32_t reason);
void kid_end(kid *k, uint32_t reason);
jzx_state kid_state_of(const kid *k);
uint32_t kid_incarnation(const kid *k);
/* It runs, in this incarnation of the id it always had, and nothing is left of its former lives. */
void kid_check_life(int line, kid *k, jzx_actor_id id, uint32_t incarnation);
#define KID_CHECK_LIFE(k, id, incarnation) kid_check_life(__LINE__, (k), (id), (incarnation))

#define NO_CHILD UINT32_MAX

/* jzx_child_status of a child of `sup`, or NO_CHILD. */
uint32_t tree_status(const tree *t, const char *id);
jzx_child_info tree_child(const tree *t, const char *id);
void tree_check_counts(int line, const tree *t, uint32_t specs, uint32_t active,
                       uint32_t supervisors, uint32_t workers);
#define CHECK_COUNTS(t, specs, active, supervisors, workers)                                       \
    tree_check_counts(__LINE__, (t), (specs), (active), (supervisors), (workers))

/* The supervisor is gone for this reason, and with it everybody. */
void tree_check_gone(int line, tree *t, uint32_t reason);
#define CHECK_GONE(t, reason) tree_check_gone(__LINE__, (t), (reason))

/* Stops the supervisor at once, within no more time than it needs when nobody is slow. */
void tree_stop_now(tree *t);
#endif
