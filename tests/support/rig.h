/* A rig: one loop for a test, simulated or real, that checks conservation, leaks and descriptors
 * when it is closed; what died in it; and a suite that runs in every world. */
#ifndef JZT_RIG_H
#define JZT_RIG_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef struct rig_world {
    const char *name;
    const jzx_env *(*env)(void); /* NULL: simulated */
} rig_world;

enum { RIG_SIM, RIG_EPOLL, RIG_WORLDS };
extern const rig_world rig_worlds[RIG_WORLDS];
/* The world whose tests run now; the runner's tests take no argument. At first it is simulated. */
extern const rig_world *rig_current;

typedef struct rig {
    jzx_kit *kit;
    jzx_loop *loop;
    jzx_sim *sim;     /* NULL on a real environment */
    jzx_fault *fault; /* all of the loop's memory goes through it */
} rig;

rig rig_open_with(const jzx_config *config, const jzx_sim_opts *sim);
/* The seed decides who runs next. */
rig rig_open(const jzx_config *config);
/* Actors take turns in the order in which they became ready, as on a real loop. */
rig rig_open_fifo(const jzx_config *config);
void rig_close(rig *r);

/* Runs until nothing is ready, or for some time, and says if anything is out of order. */
void rig_idle(rig *r);
void run_ms(rig *r, uint64_t ms);

/* One turn of one actor at a time, until the actor is in that state; for rigs that were opened with
 * one_turn. */
extern const jzx_config one_turn;
bool step_until(rig *r, jzx_actor_id id, jzx_state state);

jzx_counters rig_counters(rig *r);
size_t rig_bytes(const rig *r);

/* Lets virtual time pass inside a behavior: looking at the clock costs some. */
void spend(jzx_loop *loop, uint64_t ns);

jzx_err try_urgent(jzx_loop *loop, jzx_actor_id to, uint32_t tag);

void check_tags(int line, const uint32_t *got, size_t got_len, const uint32_t *want,
                size_t want_len);

/* What the dead letters say, as reason << 24 | tag. */
size_t dead_facts(rig *r, uint32_t *out, size_t cap);

#define DEAD(reason, tag) ((uint32_t)(reason) << 24 | (tag))
#define CHECK_DEAD(rig_, ...)                                                                      \
    do {                                                                                           \
        static const uint32_t want_[] = {__VA_ARGS__};                                             \
        uint32_t got_[64];                                                                         \
        size_t len_ = dead_facts((rig_), got_, COUNT_OF(got_));                                    \
        check_tags(__LINE__, got_, len_, want_, COUNT_OF(want_));                                  \
    } while (0)

/* Runs a suite in every world. 77 only when all were skipped. Names on the command line may carry
 * the world's name or not. */
int run_worlds(const jzt_test *suite, size_t count, int argc, char **argv);

#endif
