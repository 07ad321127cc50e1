/* Sweeps: a scenario in which each allocation fails in turn, once and then for good, in a kit or
 * between the dispatchers of a simulated system. */
#ifndef JZT_SWEEP_H
#define JZT_SWEEP_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <stdbool.h>

enum { SWEEP_SEED = 7 };

typedef struct sweep {
    jzx_scenario_fn scenario; /* in a kit; see jzx_fault_sweep() */
    void *arg;
    uint64_t faults_max; /* more is a scenario that never comes through */
    uint64_t at_least;   /* allocations that it has to make, or it tests nothing */
} sweep;

/* Plays the scenario and says how many allocations it had. */
void sweep_kit(const sweep *what);

/* A simulated system with a pinned loop "desk" and a pool, whose memory can run out. */
typedef struct town {
    jzx_sim *sim;
    jzx_fault *fault;
    jzx_system *system;
} town;

void town_open(town *t);
/* Nothing is lost. */
void town_close(town *t);

/* The same there: play(t) is the scenario, and rest(t) lets the town come to rest when there is
 * memory again. */
typedef struct town_sweep {
    void (*play)(town *t);
    void (*rest)(town *t);
    void (*check)(void); /* after the town is gone */
    uint64_t faults_max;
    uint64_t at_least;
} town_sweep;

void sweep_town(const town_sweep *what);

#endif
