/* What the workers and their producer share: the desk, with a seat for each worker.
 *
 *          writer        producer      worker         worker        producer       writer
 *   FREE --------> CLAIMED -----> GIVEN -----> RUNNING -----> ENDED -------> TOLD --------> FREE
 *                    |              |                           ^              |
 *                    +--------------+-- the worker is gone -----+--- try again +
 *
 * "Writer" are the callbacks of commits, which run on the writer's thread. Nothing of this dies
 * with the producer: one that is restarted finds the jobs in hand, and the commits on their way.
 *
 * Invariants:
 *   I1  A seat's state changes under `lock`, and each arrow has the one owner named above.
 *   I2  A seat has a run unless it is FREE.
 *   I3  While RUNNING the run belongs to its worker, but for its atomics and its progress (under
 *       `lock`); while TOLD to the callback; else to the producer.
 *   I4  A gang has one claim on its way at most, which asks for no more jobs than it had free
 *       seats; seats become free meanwhile but are filled by nobody else.
 *   I5  No call into the manifest is made with `lock` held: its callbacks take it. */
#ifndef MFI_WORK_H
#define MFI_WORK_H

#include <jzx/ask.h>
#include <jzx/manifest_work.h>
#include <jzx/sender.h>
#include <jzx/supervisor.h>
#include <jzx/timer.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Of messages between the parts: look at the desk. */
#define MFI_WORK_LOOK 0xFE060001u
#define MFI_WORK_WAKE 0xFE060002u  /* the producer's timer */
#define MFI_WORK_CLEAR 0xFE060003u /* the bell asks: answer when the desk is clear */

#define MFI_WORK_PRODUCER "producer"

typedef enum mfi_seat_state {
    MFI_SEAT_FREE = 0,
    MFI_SEAT_CLAIMED = 1,
    MFI_SEAT_GIVEN = 2,
    MFI_SEAT_RUNNING = 3,
    MFI_SEAT_ENDED = 4,
    MFI_SEAT_TOLD = 5
} mfi_seat_state;

typedef struct mfi_workers mfi_workers;

/* How a run ended: done, or a failure to report. */
typedef struct mfi_ending {
    uint64_t delay_ms;
    int32_t code;
    uint32_t flags; /* JZX_MF_FAIL_* */
    bool done;
    uint16_t text_len;
    char text[JZX_MF_TEXT_MAX];
} mfi_ending;

struct jzx_mf_run {
    mfi_workers *workers;
    jzx_mf_job job; /* its spans point into `bytes` */
    jzx_mf_lease lease;
    uint32_t lease_ms;
    atomic_bool cancelled; /* somebody wants it to stop, or its lease was lost */
    atomic_bool lost;      /* its lease was: nothing is left to report */
    atomic_uint_fast64_t
        until_ns;           /* when its lease ends unless it is kept, on the workers' clock */
    uint64_t timeout_ns;    /* it is not kept beyond */
    uint64_t next_beat_ns;  /* under `lock` */
    uint64_t progress_done; /* the three of them under `lock` */
    uint64_t progress_total;
    uint16_t progress_len;
    char progress[JZX_MF_TEXT_MAX];
    jzx_mf_txn *txn; /* of the handler's operations, or NULL */
    bool had_ops;    /* TOLD: operations of the handler went along, and are gone */
    uint32_t ops;    /* TOLD: how many in all; the last one is the report itself */
    void *result;    /* owned */
    size_t result_len;
    bool explained; /* its handler did not return, and `ending` says why */
    mfi_ending ending;
    unsigned char bytes[];
};

typedef struct mfi_gang mfi_gang;

typedef struct mfi_seat {
    mfi_workers *workers;
    mfi_gang *gang;
    jzx_mf_run *run;     /* owned */
    jzx_actor_id worker; /* 0: it is not there */
    uint32_t state;      /* mfi_seat_state */
    bool rung;           /* GIVEN: the worker was told */
} mfi_seat;

/* One kind of jobs and its seats. */
struct mfi_gang {
    mfi_workers *workers;
    jzx_mf_work work;
    char *dispatcher; /* owned; or NULL */
    mfi_seat *seats;
    uint32_t seat_count;
    bool claiming; /* under `lock` */
};

/* What the heartbeat on its way is about, an entry for each operation. */
typedef struct mfi_beat {
    uint32_t seat;
    jzx_mf_lease lease;
} mfi_beat;

struct mfi_workers {
    atomic_uint refs; /* one for each child spec, one for each commit on its way */
    jzx_mf *mf;
    jzx_loop *loop;     /* of the supervisor and the producer */
    jzx_sender *sender; /* to the producer; NULL in simulation, where all is one thread */
    atomic_uint_fast64_t producer; /* 0: it is not there */
    atomic_bool poked;             /* a LOOK is on its way to it */
    atomic_bool open; /* from the start of the last child until the workers are stopped */
    mfi_gang *gangs;
    mfi_seat *seats;
    mfi_beat *beats;
    uint32_t gang_count;
    uint32_t seat_count;
    pthread_mutex_t lock;
    /* Under `lock`: news from the writer. */
    int32_t fatal; /* the manifest takes nothing any more: why */
    bool trouble;  /* something was refused that may work later */
    bool well;     /* something was done */
    bool beating;  /* a heartbeat is on its way, and `beats` and the two below are its own */
    uint32_t beat_count;
    uint64_t beat_ns; /* when it was sent */
    /* The producer's own; its init starts them anew. */
    jzx_timer_id timer;
    uint64_t wake_ns;
    uint64_t not_before_ns; /* nothing is asked of the writer until then */
    uint32_t backoff_ms;
    jzx_request bell;    /* waits to hear that the desk is clear; or 0 */
    uint64_t give_up_ns; /* when it is told in any case; 0: not known yet */
};

/* The workers, and their jobs. work.c, work_run.c */
void mfi_workers_retain(mfi_workers *workers);
void mfi_workers_release(mfi_workers *workers);
void mfi_workers_drop(void *workers); /* the same */
/* Makes the producer look at the desk. Thread: any that runs these actors, or the writer. */
void mfi_workers_poke(mfi_workers *workers);
/* A copy of a job that was claimed. NULL: no memory. */
jzx_mf_run *mfi_run_make(mfi_workers *workers, const jzx_mf_job *job, uint32_t lease_ms);
/* Also the operations of its handler. NULL is fine. */
void mfi_run_free(jzx_mf_run *run);
/* Its lease was granted or kept at `from_ns`. */
void mfi_run_keep(jzx_mf_run *run, uint64_t from_ns);
void mfi_run_lose(jzx_mf_run *run);
bool mfi_run_same(const jzx_mf_run *run, const jzx_mf_lease *lease);
void mfi_run_end_failed(jzx_mf_run *run, int32_t code, uint32_t flags, const char *text);
/* Back to the queue as if nothing had happened. */
void mfi_run_end_unbegun(jzx_mf_run *run);
/* What the handler said. */
void mfi_run_end(jzx_mf_run *run, int verdict);

/* The actors: what the supervisor needs to know. work_producer.c, work_worker.c, work_bell.c */
void mfi_producer_spec(mfi_workers *workers, jzx_child_spec *spec);
void mfi_bell_spec(mfi_workers *workers, jzx_child_spec *spec);
void mfi_worker_spec(mfi_seat *seat, jzx_child_spec *spec);

/* Commits of the producer, each with its callback. work_desk.c */
bool mfi_work_is_fatal(int32_t err);
void mfi_desk_claim(mfi_gang *gang, jzx_actor_id worker);
void mfi_desk_report(mfi_seat *seat);
/* Keeps the leases that are due. Returns when the next one is, UINT64_MAX: never. */
uint64_t mfi_desk_beat(mfi_workers *workers, uint64_t now_ns, bool send);

#endif
