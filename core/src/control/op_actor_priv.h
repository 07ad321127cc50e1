/* What a call to an actor's dispatcher brings back. */
#ifndef JZI_CONTROL_ACTOR_STEPS_H
#define JZI_CONTROL_ACTOR_STEPS_H

#include "control/detail.h"

typedef struct jzi_timer_detail {
    uint64_t due_ns;
    uint32_t tag;
    uint32_t period_ms;
} jzi_timer_detail;

typedef struct jzi_ask_detail {
    jzx_actor_id who;
    uint64_t asked_ns;
    uint64_t deadline_ns; /* 0: none */
} jzi_ask_detail;

typedef struct jzi_child_detail {
    jzx_actor_id id; /* JZX_NOBODY: there is no actor */
    uint64_t due_ns; /* 0: nothing is due */
    uint32_t state;  /* jzi_child_state */
    uint32_t mode;
    uint32_t restarts;
    uint32_t attempt;
    char name[48];
} jzi_child_detail;

enum { JZI_RELATION_KINDS = 3 }; /* as jzi_relation */

typedef struct jzi_detail {
    jzx_actor_id id; /* the actor that is asked for */
    bool found;
    bool supervises;
    uint64_t now_ns; /* of the question: what ages and waits are counted from */
    uint32_t stashed;
    uint32_t revoked;
    uint32_t redirected;
    uint32_t full_policy;
    uint32_t max_messages;
    uint32_t stop_timeout_ms;
    uint32_t behaviors;
    uint32_t sources;
    uint32_t jobs;
    uint32_t subscriptions;
    uint32_t strategy;
    uint32_t intensity;
    uint32_t restarts; /* within the period */
    uint64_t period_ns;
    uint32_t timer_count;
    uint32_t ask_count;
    uint32_t owed_count;
    uint32_t child_count;
    uint32_t relation_count[JZI_RELATION_KINDS];
    jzx_actor_id relations[JZI_RELATION_KINDS][JZI_LISTED];
    jzi_timer_detail timers[JZI_LISTED];
    jzi_ask_detail asks[JZI_LISTED];
    jzi_ask_detail owed[JZI_LISTED];
    jzi_child_detail children[JZI_LISTED];
} jzi_detail;

/* On the dispatcher: fills in a jzi_detail of which `id` and `now_ns` are set. */
void jzi_detail_look(jzi_worker *worker, void *payload);

#endif
