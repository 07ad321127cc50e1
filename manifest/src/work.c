/* Workers: their supervisor, its children and what they share. */
#include "work.h"

#include "memory.h"

#include <stdio.h>
#include <string.h>

#define WORKERS_MAX 4096u
/* A handler that panics fails its job, which waits for its backoff; that the worker is started
 * again is no sign of trouble. So its restarts are limited only by what no machine can do. */
#define WORKER_RESTARTS 16384u
#define WORKER_PERIOD_MS 1u

/* Counting. */

void mfi_workers_retain(mfi_workers *workers)
{
    (void)atomic_fetch_add_explicit(&workers->refs, 1, memory_order_relaxed);
}

static void destroy(mfi_workers *workers)
{
    for (uint32_t i = 0; workers->seats != NULL && i < workers->seat_count; i++) {
        mfi_run_free(workers->seats[i].run);
    }
    for (uint32_t i = 0; workers->gangs != NULL && i < workers->gang_count; i++) {
        mfi_free(workers->gangs[i].dispatcher);
    }
    jzx_sender_release(workers->sender);
    (void)pthread_mutex_destroy(&workers->lock);
    mfi_free(workers->beats);
    mfi_free(workers->seats);
    mfi_free(workers->gangs);
    mfi_free(workers);
}

void mfi_workers_release(mfi_workers *workers)
{
    /* Release what this owner wrote, acquire what the others did. */
    if (atomic_fetch_sub_explicit(&workers->refs, 1, memory_order_acq_rel) == 1) {
        destroy(workers);
    }
}

void mfi_workers_drop(void *workers)
{
    mfi_workers_release(workers);
}

void mfi_workers_poke(mfi_workers *workers)
{
    /* Partner: the producer's look, which takes the flag back before it reads the desk. */
    if (atomic_exchange_explicit(&workers->poked, true, memory_order_acq_rel)) {
        return;
    }
    jzx_actor_id producer = atomic_load_explicit(&workers->producer, memory_order_acquire);
    jzx_send_opts look = {.tag = MFI_WORK_LOOK, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    jzx_err err = producer == JZX_NOBODY    ? JZX_ERR_NO_SUCH_ACTOR
                  : workers->sender != NULL ? jzx_send_async_with(workers->sender, producer, &look)
                                            : jzx_send_with(workers->loop, producer, &look);
    if (err != JZX_OK) {
        atomic_store_explicit(&workers->poked, false, memory_order_release);
    }
}

/* Making one. */

/* Structs that grow: a shorter one is filled up with zeros; of a longer one the unknown part must
 * be zero. */
static jzx_err read_work(const unsigned char *from, size_t size, jzx_mf_work *out)
{
    for (size_t i = sizeof *out; i < size; i++) {
        if (from[i] != 0) {
            return JZX_ERR_NEWER_STRUCT;
        }
    }
    *out = (jzx_mf_work){0};
    memcpy(out, from, size < sizeof *out ? size : sizeof *out);
    if (out->handler == NULL || out->kind == 0 || (out->flags & ~JZX_SPAWN_CRASH_GUARD) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    out->concurrency = out->concurrency == 0 ? 1 : out->concurrency;
    return JZX_OK;
}

static jzx_err read_gang(mfi_workers *workers, const unsigned char *from, size_t size)
{
    mfi_gang *gang = &workers->gangs[workers->gang_count];
    jzx_err err = read_work(from, size, &gang->work);
    if (err != JZX_OK) {
        return err;
    }
    for (uint32_t i = 0; i < workers->gang_count; i++) {
        if (workers->gangs[i].work.kind == gang->work.kind) {
            return JZX_ERR_INVALID_ARG;
        }
    }
    if (gang->work.dispatcher != NULL) {
        gang->dispatcher = mfi_copy_text(gang->work.dispatcher, strlen(gang->work.dispatcher));
        if (gang->dispatcher == NULL) {
            return JZX_ERR_NO_MEMORY;
        }
        gang->work.dispatcher = gang->dispatcher;
    }
    gang->workers = workers;
    gang->seat_count = gang->work.concurrency;
    workers->gang_count++;
    if (gang->seat_count > WORKERS_MAX - workers->seat_count) {
        return JZX_ERR_TOO_BIG;
    }
    workers->seat_count += gang->seat_count;
    return JZX_OK;
}

static jzx_err make_seats(mfi_workers *workers)
{
    workers->seats = mfi_alloc_zeroed(workers->seat_count, sizeof *workers->seats);
    workers->beats = mfi_alloc_zeroed(workers->seat_count, sizeof *workers->beats);
    if (workers->seats == NULL || workers->beats == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    mfi_seat *seat = workers->seats;
    for (uint32_t i = 0; i < workers->gang_count; i++) {
        mfi_gang *gang = &workers->gangs[i];
        gang->seats = seat;
        for (uint32_t k = 0; k < gang->seat_count; k++, seat++) {
            *seat = (mfi_seat){.workers = workers, .gang = gang};
        }
    }
    return JZX_OK;
}

static jzx_err read_works(mfi_workers *workers, const void *works, size_t size, uint32_t count)
{
    workers->gangs = mfi_alloc_zeroed(count, sizeof *workers->gangs);
    if (workers->gangs == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    const unsigned char *from = works;
    jzx_err err = JZX_OK;
    for (uint32_t i = 0; i < count && err == JZX_OK; i++) {
        err = read_gang(workers, from + i * size, size);
    }
    return err != JZX_OK ? err : make_seats(workers);
}

static jzx_err open_sender(mfi_workers *workers)
{
    jzx_err err = jzx_sender_open(workers->loop, JZX_SENDER_SHARED, &workers->sender);
    return err == JZX_ERR_NOT_SUPPORTED ? JZX_OK : err;
}

/* The manifest that is gone for good is the business of the parent of the workers' supervisor. */
static jzx_action decide(void *arg, const jzx_failure *failure)
{
    (void)arg;
    return strcmp(failure->child_id, MFI_WORK_PRODUCER) == 0 &&
                   mfi_work_is_fatal(failure->reason->code)
               ? JZX_ACTION_ESCALATE
               : JZX_ACTION_RESTART;
}

typedef struct worker_name {
    char text[24];
} worker_name;

/* Producer, workers, bell. Stopped in reverse: the bell and the workers together, the producer when
 * the last handler has returned and the bell heard that all is reported. */
static jzx_err start(mfi_workers *workers, jzx_child_spec *specs, worker_name *names,
                     jzx_actor_id *out_id)
{
    uint32_t count = workers->seat_count + 2;
    mfi_producer_spec(workers, &specs[0]);
    for (uint32_t i = 0; i < workers->seat_count; i++) {
        jzx_child_spec *spec = &specs[1 + i];
        mfi_worker_spec(&workers->seats[i], spec);
        (void)snprintf(names[i].text, sizeof names[i].text, "worker %u", i + 1);
        spec->id = names[i].text;
        spec->stop_group = 1;
    }
    mfi_bell_spec(workers, &specs[count - 1]);
    specs[count - 1].stop_group = 1;
    jzx_supervisor_spec rules = {.intensity = WORKER_RESTARTS,
                                 .period_ms = WORKER_PERIOD_MS,
                                 .auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT,
                                 .decide = decide};
    jzx_supervisor_init init = {
        .name = "workers", .spec = &rules, .children = specs, .child_count = count};
    atomic_store_explicit(&workers->refs, count, memory_order_relaxed);
    return jzx_spawn_supervisor(workers->loop, &init, out_id);
}

static jzx_err start_all(mfi_workers *workers, jzx_actor_id *out_id)
{
    jzx_child_spec *specs = mfi_alloc_zeroed(workers->seat_count + 2, sizeof *specs);
    worker_name *names = mfi_alloc_zeroed(workers->seat_count, sizeof *names);
    jzx_err err =
        specs == NULL || names == NULL ? JZX_ERR_NO_MEMORY : start(workers, specs, names, out_id);
    mfi_free(names);
    mfi_free(specs);
    return err;
}

jzx_err jzx_mf_workers_spawn_sized(jzx_loop *loop, jzx_mf *mf, const jzx_mf_work *works,
                                   size_t work_size, uint32_t count, jzx_actor_id *out_id)
{
    if (loop == NULL || mf == NULL || works == NULL || work_size == 0 || count == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    mfi_workers *workers = mfi_alloc_zeroed(1, sizeof *workers);
    if (workers == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    workers->mf = mf;
    workers->loop = loop;
    (void)pthread_mutex_init(&workers->lock, NULL);
    jzx_err err = read_works(workers, works, work_size, count);
    if (err == JZX_OK) {
        err = open_sender(workers);
    }
    if (err == JZX_OK) {
        err = start_all(workers, out_id);
    }
    if (err != JZX_OK) {
        destroy(workers);
    }
    return err;
}
