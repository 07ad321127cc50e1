/* Group commit, as one would write it by hand around LMDB or SQLite: clients put requests into a
 * list, one thread takes all that are there, does them in one transaction and wakes the clients. */
#ifndef JZX_BENCH_GROUP_H
#define JZX_BENCH_GROUP_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct mfb_request {
    struct mfb_request *next;
    sem_t done;
    uint32_t what; /* the engine's own */
    uint32_t attempt;
    uint64_t id;
    const void *key;
    bool found;
} mfb_request;

typedef struct mfb_engine {
    void (*begin)(void *arg);
    void (*apply)(void *arg, mfb_request *request);
    void (*commit)(void *arg);
    void *arg;
} mfb_engine;

typedef struct mfb_group {
    mfb_engine engine;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    mfb_request *first;
    mfb_request **last;
    bool stopping;
    uint64_t commits;
} mfb_group;

void mfb_group_start(mfb_group *group, const mfb_engine *engine);
/* Returns after the commit. The request's semaphore is initialised once, by the caller. */
void mfb_group_do(mfb_group *group, mfb_request *request);
void mfb_group_stop(mfb_group *group);

#endif
