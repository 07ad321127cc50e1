/* Shared by the sources of the operation `facts`. All of it is the control thread's. */
#ifndef JZI_CONTROL_FACTS_STEPS_H
#define JZI_CONTROL_FACTS_STEPS_H

#include "control/detail.h"

enum { JZI_FACTS_PER_KIND = 16 }; /* so that one kind leaves room for the others */

/* What the client thinks is worth telling. 0: everything is. */
typedef struct jzi_limits {
    uint64_t running_ms;      /* a turn that takes so long */
    uint64_t ask_ms;          /* an ask without a deadline that is so old */
    uint64_t slow_ms;         /* a past turn that took so long */
    uint64_t mailbox_percent; /* how full a mailbox is */
    uint64_t cap_max;         /* a mailbox for no more messages than that */
    uint64_t dead_min;        /* dead letters of an actor, */
    uint64_t dead_share;      /* if they are at least one in so many of its messages */
    uint64_t children_min;    /* of an actor that does not supervise */
    uint64_t window_min;      /* restarts of children that count against their supervisor's limit */
    uint64_t attempts_min;    /* failures of a child in a row */
    uint64_t restarts_min;    /* restarts that a child caused, */
    uint64_t lately_ms;       /* if the last one is not older than that */
} jzi_limits;

/* One look at the program. */
typedef struct jzi_facts {
    jzi_client *client;
    jzx_control *control;
    jzi_limits limits;
    uint64_t now_ns; /* of all ages in the answer */
    jzi_silence silence;
    bool watchdog; /* a dispatcher has one */
    bool cut;      /* there is more than the answer has room for */
} jzi_facts;

/* Parents and their children, as their dispatchers see them: op_facts_children.c. */
void jzi_facts_children(jzi_facts *facts);
/* One actor after the other, as each thread can see them: op_facts_actor.c. */
void jzi_facts_running(jzi_facts *facts);
void jzi_facts_asks(jzi_facts *facts);
void jzi_facts_actors(jzi_facts *facts);
void jzi_facts_slow(jzi_facts *facts);

/* Opens an object that begins with the actor and its name. */
void jzi_facts_open(jzi_facts *facts, jzx_actor_id actor);

#endif
