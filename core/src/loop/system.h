/* A system: dispatchers, the threads that run them, and what they share. */
#ifndef JZI_SYSTEM_H
#define JZI_SYSTEM_H

#include <jzx/system.h>

#include "loop/loop.h"
#include "os/jobs.h"

typedef struct jzi_system_dispatcher {
    jzx_loop *loop; /* NULL: the index is free */
    uint32_t kind;
    bool anonymous;           /* made for one actor; goes when it is empty */
    _Atomic uint32_t retired; /* its thread has left it */
} jzi_system_dispatcher;

/* What one shutdown is about; see system_shutdown.c. */
typedef struct jzi_system_end {
    _Atomic uint32_t left;  /* dispatchers that are not yet down */
    _Atomic uint32_t epoch; /* counts shutdowns: being late for one does not count in the next */
    uint64_t deadline_ns;
    pthread_mutex_t lock;
    jzx_shutdown_report report; /* the sum so far, under this lock */
} jzi_system_end;

struct jzx_system {
    jzx_allocator alloc;
    const jzx_env *env;
    jzx_config config;               /* of every dispatcher */
    jzx_supervisor_spec root_policy; /* config.root_policy points to it, unless NULL */
    int32_t pid;                     /* of the process that made it */
    bool simulated;
    bool joined; /* inside jzx_system_run() or its like */
    uint32_t pool_workers;
    jzi_directory *directory;
    jzi_jobs *jobs;
    jzi_letter_office letters;
    struct jzi_registry *registry;
    jzi_board board;
    _Atomic uint32_t closing; /* being shut down or destroyed: nothing new at the root */
    pthread_mutex_t lock;     /* the table below, counters and report; never held over user code */
    jzi_system_dispatcher dispatchers[JZX_DISPATCHERS_MAX];
    _Atomic uint32_t retired; /* a dispatcher is to be reaped */
    uint32_t used;            /* indexes below this were used at least once */
    jzx_counters gone;        /* of dispatchers that are no more */
    jzi_histogram gone_times[JZI_TIME_KINDS];
    jzi_observer observer;         /* what a dispatcher gets: the user's, or one that passes on */
    struct jzi_log *log;           /* NULL: nothing is printed. With the lock */
    jzi_observer listener;         /* the user's. On the thread of "loop" only */
    _Atomic uint32_t listener_seq; /* counts them: what happened under another one is not told */
    _Atomic uint64_t unobserved;   /* callbacks that there was no memory for */
    jzi_system_end end;
};

static inline jzx_loop *jzi_system_main(const jzx_system *system)
{
    return system->dispatchers[0].loop;
}

/* With the lock: the loop at an index or NULL. */
static inline jzx_loop *jzi_system_loop_at(const jzx_system *system, uint32_t index)
{
    return index < system->used ? system->dispatchers[index].loop : NULL;
}

/* What is behind jzx_system_create() and jzx_system_destroy(); see create.c. */
jzx_err jzi_system_create_sized(const jzx_system_config *config, size_t config_size,
                                size_t loop_config_size, size_t dispatcher_size,
                                jzx_system **out_system);
/* Whether the system may be destroyed now. Errors: BUSY. */
jzx_err jzi_system_may_end(jzx_system *system);
jzx_err jzi_system_destroy(jzx_system *system);
/* See jzx_system_abandon(). */
void jzi_system_abandon(jzx_system *system);

/* The steps of an end. All of it is done on this thread: the others are parked. Ends all actors;
 * closes and frees the dispatchers; frees the rest. */
void jzi_system_end_all(jzx_system *system);
void jzi_system_free_loops(jzx_system *system);
void jzi_system_free(jzx_system *system);

/* What JZX_LOG asks for, for a loop or for the whole system it belongs to. */
void jzi_system_log_if_asked(jzx_loop *loop);

/* Finds a dispatcher by name, makes "pool" and "pinned". Thread: any. Errors: NO_SUCH_DISPATCHER,
 * MAX_DISPATCHERS, STOPPING, NO_THREADS, NO_MEMORY, NO_FDS. */
jzx_err jzi_system_find(jzx_system *system, const char *name, jzx_loop **out_loop);
/* A spawn failed after all: a dispatcher that was made for it goes. Thread: any. */
void jzi_system_unused(jzi_dispatcher *dispatcher, const jzi_inbox *inbox);
/* Frees anonymous dispatchers whose actor is gone. Thread: any. */
void jzi_system_reap(jzx_system *system);
/* No actor lives anywhere, and none is about to. Thread: any. */
bool jzi_system_nobody_left(jzx_system *system);

/* With the lock: a dispatcher goes in the middle of a shutdown; its report counts. */
void jzi_system_report(jzx_system *system, jzx_loop *loop);

/* The counters of a dispatcher without those of its inbox. */
void jzi_system_count_own(jzx_loop *loop, jzx_counters *out);

/* Runs "loop" on this thread while `more` says so. */
jzx_err jzi_system_run_while(jzx_system *system, bool (*more)(jzx_system *system));

#endif
