/* The reference model of supervision: places in trees of actors, and the rules by which they live
 * (R14-R22). Plain arrays and loops, nothing shared with the code under test but the public header.
 *
 * A place (an index, here called a cell) is where a spec or a spawn puts one actor after the other.
 * The model is told what happens from outside, works out everything that follows until nothing
 * moves any more, and writes down what each place must see: its hooks, messages, ends. Where the
 * rules leave the runtime a choice the model says that it does not know (sm_vague), and the run
 * goes on without it. This file has the data; sup_model_rules.h has the rules. */
#ifndef JZT_SUP_MODEL_H
#define JZT_SUP_MODEL_H

#include <jzx/all.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SM_CELLS = 96, SM_ROOT = SM_CELLS, SM_KIDS = 24, SM_EVENTS = 2048 };
enum { SM_QUEUE = 16, SM_STAMPS = 128, SM_MARKS = 2048, SM_LINKS = 8, SM_NOBODY = -1 };

/* What sits in a place. A parent is a plain actor that spawns children in init. */
typedef enum sm_type { SM_WORKER, SM_SUPERVISOR, SM_PARENT } sm_type;

/* How a start goes. */
typedef enum sm_how {
    SM_FINE,
    SM_INIT_FAILS,
    SM_INIT_PANICS,
    SM_PRE_START_FAILS,
    SM_POST_START_PANICS,
    SM_POST_RESTART_FAILS,
    SM_INIT_DECLINES, /* returns STOP */
    SM_HOWS
} sm_how;

#define SM_BAD_DEINIT 100u /* besides the kinds of signals */

/* What a place is like. Fixed when it is made. */
typedef struct sm_plan {
    sm_type type;
    int parent; /* a cell, or SM_ROOT */
    char name[16];
    uint32_t mode, shutdown_ms, significant, flags, intensity, period_ms;
    bool hooks;                                                /* has on_signal */
    bool stateless;                                            /* no init */
    bool policy;                                               /* a parent: restarts its children */
    uint32_t backoff_min_ms, backoff_max_ms, backoff_reset_ms; /* its own; 0: its parent's */
    double backoff_factor;
    uint32_t defer_ms;        /* PRE_STOP puts a stop off for so long */
    bool defer_stops;         /* ... and then calls jzx_stop() instead of returning STOP */
    uint32_t bad_hook;        /* the signal that fails, or SM_BAD_DEINIT; 0: none */
    jzx_supervisor_spec spec; /* of supervisors and of parents with a policy */
    int kids[SM_KIDS];        /* what it starts with */
    int kid_count;
} sm_plan;

/* What a place sees, in its order. */
typedef enum sm_what {
    SM_SPAWNED, /* a new id */
    SM_INIT,
    SM_PRE_START,
    SM_POST_START,
    SM_POST_RESTART, /* reason */
    SM_MESSAGE,      /* a: serial */
    SM_EXIT,         /* reason */
    SM_PRE_STOP,
    SM_PRE_RESTART, /* reason */
    SM_POST_STOP,
    SM_DEINIT,
    SM_ENDED,     /* reason */
    SM_RESTARTED, /* a: incarnation, b: attempt, c: delay */
    SM_ESCALATED, /* reason */
    SM_WHATS
} sm_what;

typedef struct sm_event {
    int cell;
    sm_what what;
    uint32_t reasons; /* bits of the kinds that are right; 0: any */
    uint32_t a, b, c;
} sm_event;

/* Messages are known by serial numbers and do what their order says. */
typedef enum sm_order { SM_POKE, SM_FAIL, SM_PANIC, SM_STOP, SM_STOP_SELF, SM_ORDERS } sm_order;
typedef struct sm_msg {
    uint32_t serial;
    sm_order order;
    bool again; /* redelivered: does no harm this time */
} sm_msg;

typedef enum sm_life {
    SM_NONE,  /* there is no actor */
    SM_START, /* starts, or is about to */
    SM_ABORT, /* a supervisor that could not start stops what it started */
    SM_RUN,
    SM_DEFER,   /* runs, but a stop waits */
    SM_STUNNED, /* failed, and its parent with it: ends when its turn comes */
    SM_LEAVE,   /* stops its children, then itself */
    SM_CLEAN,   /* the same, to be started again after a failure */
    SM_HALT     /* is clean, and waits to be started */
} sm_life;

/* What comes after LEAVE and CLEAN. */
typedef enum sm_then {
    SM_THEN_END,
    SM_THEN_DECIDE, /* it ended by itself: the parent decides now */
    SM_THEN_HALT    /* it will be started again */
} sm_then;

/* Why it starts. */
typedef enum sm_why { SM_FIRST, SM_ADDED, SM_ASKED, SM_AGAIN, SM_GROUP } sm_why;

typedef enum sm_phase { SM_QUIET, SM_STOPPING, SM_WAITING, SM_STARTING } sm_phase;

typedef struct sm_history {
    uint64_t at[SM_STAMPS];
    uint32_t count;
} sm_history;

typedef struct sm_cell {
    bool used;
    sm_life life;
    sm_then then;
    sm_why why;
    uint32_t lives;       /* ids it has had */
    uint32_t incarnation; /* of the present one */
    uint32_t reason;      /* why it stops, failed or halted */
    uint32_t also;        /* reasons that are as good, as bits */
    bool asked;           /* its parent wants it to stop: no decision follows */
    bool killed;          /* no more hooks but deinit, also below it */
    bool inited;
    bool sibling; /* starts for another one's sake */
    bool parked;  /* halted after a stop, not after a failure */
    bool own_end; /* ends by itself, as far as significance goes */
    bool forget;  /* the spec goes with it */
    bool tried;   /* had its turn in the present group start */
    bool single;  /* starts again by itself when due */
    bool state_vague;
    bool mail_vague; /* whether it takes messages before its next start is not certain */
    uint64_t started_at, due, defer_due, deadline; /* ms; 0: none */
    uint32_t delay, attempt, restarts;
    uint32_t asked_step, begun_step, took_step; /* when it was asked to stop, began, had mail */
    uint32_t last;                              /* reasons as bits; 0: unknown */
    sm_history budget;
    uint32_t fail_next; /* so many starts go as `how` says */
    sm_how how;
    sm_msg queue[SM_QUEUE];
    uint32_t queued;
    /* As a parent. */
    int list[SM_KIDS];
    int count, next;
    jzx_supervisor_spec spec;
    sm_history history;
    bool history_cut; /* new rules may have forgotten some of it */
    uint32_t all_restarts;
    sm_phase phase; /* of a group restart */
    int who, base;
    bool all_end; /* the group is not started again */
    uint64_t group_at, group_due;
} sm_cell;

/* A supervisor asked this child to stop or start, after those before. */
typedef struct sm_mark {
    int parent, kid;
    bool start;
    bool own; /* it did so by itself: no order with others */
} sm_mark;

typedef struct sm_link {
    int a, b; /* SM_NOBODY: free */
} sm_link;

typedef struct sm_model {
    sm_cell cell[SM_CELLS + 1]; /* the last one is the root */
    uint64_t now;
    uint32_t step;
    uint32_t changes;
    sm_event events[SM_EVENTS];
    uint32_t event_count;
    sm_mark marks[SM_MARKS];
    uint32_t mark_count;
    sm_link links[SM_LINKS];
    const char *vague; /* why the model cannot go on */
} sm_model;

static sm_plan plans[SM_CELLS + 1];
static int plan_count;
static sm_model M;

static inline void sm_vague(const char *why)
{
    if (M.vague == NULL) {
        M.vague = why;
    }
}

static inline uint32_t sm_bit(uint32_t kind)
{
    return UINT32_C(1) << kind;
}

static inline bool sm_normal(uint32_t kind)
{
    return kind == JZX_REASON_NORMAL || kind == JZX_REASON_SHUTDOWN;
}

static inline bool sm_dynamic(int c)
{
    return c != SM_ROOT && plans[c].type == SM_SUPERVISOR && plans[c].spec.strategy == JZX_DYNAMIC;
}

static bool sm_root_in_order; /* jzx_config.root_stop */

/* Children of these stop at the same time; of the others one after the other. */
static inline bool sm_parallel(int c)
{
    return c == SM_ROOT ? !sm_root_in_order : (plans[c].type == SM_PARENT || sm_dynamic(c));
}

/* Whether c is below, or is, the cell `top`. */
static inline bool sm_below(int c, int top)
{
    while (c != top && c != SM_ROOT) {
        c = plans[c].parent;
    }
    return c == top;
}

static inline int sm_tree(int c)
{
    while (plans[c].parent != SM_ROOT) {
        c = plans[c].parent;
    }
    return c;
}

static inline void sm_emit(int c, sm_what what, uint32_t reasons, uint32_t a, uint32_t b,
                           uint32_t d)
{
    M.changes++;
    if (M.event_count == SM_EVENTS) {
        sm_vague("too much happens at once");
        return;
    }
    M.events[M.event_count++] =
        (sm_event){.cell = c, .what = what, .reasons = reasons, .a = a, .b = b, .c = d};
}

static inline void sm_note(int c, sm_what what)
{
    sm_emit(c, what, 0, 0, 0, 0);
}

static inline void sm_mark_order(int parent, int kid, bool start)
{
    if (M.mark_count < SM_MARKS) {
        M.marks[M.mark_count++] = (sm_mark){.parent = parent, .kid = kid, .start = start};
    }
}

/* Something below these children stops or starts by itself: the record cannot tell it from what
 * their supervisors ask for in the same step. */
static inline void sm_mark_own(int kid, bool start)
{
    for (; kid != SM_ROOT; kid = plans[kid].parent) {
        sm_mark_order(plans[kid].parent, kid, start);
        M.marks[M.mark_count - 1].own = true;
    }
}

static inline void sm_to(int c, sm_life life)
{
    M.cell[c].life = life;
    M.changes++;
}

/* The children a parent knows, in start order. */

static inline int sm_index(int p, int c)
{
    for (int i = 0; i < M.cell[p].count; i++) {
        if (M.cell[p].list[i] == c) {
            return i;
        }
    }
    return -1;
}

static inline void sm_list_add(int p, int c)
{
    sm_cell *x = &M.cell[p];
    if (x->count == SM_KIDS) {
        sm_vague("a parent has too many children for the model");
        return;
    }
    x->list[x->count++] = c;
    M.changes++;
}

static inline void sm_list_remove(int p, int c)
{
    sm_cell *x = &M.cell[p];
    int i = sm_index(p, c);
    if (i < 0) {
        return;
    }
    x->count--;
    memmove(&x->list[i], &x->list[i + 1], (size_t)(x->count - i) * sizeof x->list[0]);
    if (i < x->next) {
        x->next--;
    }
    if (i < x->base) {
        x->base--;
    }
    M.changes++;
}

/* Defaults. */

/* 0: for ever. */
static inline uint64_t sm_shutdown_ms(int c)
{
    uint32_t given = plans[c].shutdown_ms;
    if (given == 0) {
        return plans[c].type == SM_SUPERVISOR ? 0 : 5000;
    }
    return given == JZX_SHUTDOWN_INFINITE ? 0 : given;
}

static inline uint32_t sm_period(const jzx_supervisor_spec *spec)
{
    return spec->period_ms == 0 ? 5000 : spec->period_ms;
}

static inline uint32_t sm_intensity(uint32_t given)
{
    return given == 0 ? 1 : given == JZX_INTENSITY_NEVER ? 0 : given;
}

static inline uint32_t sm_backoff_max(const jzx_supervisor_spec *spec)
{
    return spec->backoff_max_ms == 0 ? 30000 : spec->backoff_max_ms;
}

static inline uint32_t sm_backoff_reset(const jzx_supervisor_spec *spec)
{
    uint32_t period = sm_period(spec);
    uint32_t max = sm_backoff_max(spec);
    return spec->backoff_reset_ms != 0 ? spec->backoff_reset_ms : period > max ? period : max;
}

/* The delay before a restart of c: min, min * factor, ..., at most max; its own where it says so.
 */
static inline uint32_t sm_backoff(const jzx_supervisor_spec *spec, int c, uint32_t attempt)
{
    const sm_plan *own = &plans[c];
    double factor = own->backoff_factor != 0    ? own->backoff_factor
                    : spec->backoff_factor != 0 ? spec->backoff_factor
                                                : 2.0;
    double delay = own->backoff_min_ms != 0 ? own->backoff_min_ms : spec->backoff_min_ms;
    double max = sm_backoff_max(spec);
    if (own->backoff_min_ms == JZX_BACKOFF_NONE) {
        delay = 0;
    }
    if (own->backoff_max_ms != 0) {
        max = own->backoff_max_ms;
    } else if (max < delay) {
        max = delay;
    }
    for (uint32_t i = 1; i < attempt && delay < max; i++) {
        delay *= factor;
    }
    return (uint32_t)(delay > max ? max : delay);
}

/* Whether one more restart fits into the window. */
static inline bool sm_fits(const sm_history *history, uint32_t limit, uint32_t period)
{
    uint32_t recent = 0;
    for (uint32_t i = 0; i < history->count; i++) {
        if (history->at[i] + period == M.now) {
            sm_vague("a restart is on the edge of the window");
        }
        recent += history->at[i] + period > M.now;
    }
    return recent < limit;
}

static inline void sm_record(sm_history *history)
{
    if (history->count == SM_STAMPS) {
        sm_vague("too many restarts for the model");
        return;
    }
    history->at[history->count++] = M.now;
}

#endif
