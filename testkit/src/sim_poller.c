/* The poller of the simulated world: a wait that finds nothing jumps to when there is something. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

typedef struct sim_watch {
    int fd;
    uint32_t interest;
    uint64_t cookie; /* may hold an address: reported, never compared, never traced */
    bool quiet;      /* JZX_IO_ONCE, and the descriptor was reported */
} sim_watch;

typedef struct sim_poller {
    jzx_allocator alloc;
    int wake; /* its place in sim->wakes */
    sim_watch *watches;
    sim_watch *found; /* room for as many: what the last look found ready */
    uint32_t *ready;
    size_t len;
    size_t cap;
    size_t turn; /* where a look in order begins, so that the first ones leave room for others */
} sim_poller;

static jzx_err env_wake_open(void *ctx, int *out_fd)
{
    jzx_sim *sim = ctx;
    for (int i = 0; i < SIM_WAKES; i++) {
        if (!sim->wakes[i].open) {
            sim->wakes[i].open = true;
            *out_fd = SIM_WAKE_FIRST + i;
            return JZX_OK;
        }
    }
    return JZX_ERR_NO_FDS;
}

/* Runs in signal handlers and on any thread. */
static void env_wake_signal(void *ctx, int wake_fd)
{
    jzx_sim *sim = ctx;
    atomic_store(&sim->wakes[wake_fd - SIM_WAKE_FIRST].signalled, true);
}

static jzx_err env_poller_open(void *ctx, const jzx_allocator *alloc, int wake_fd,
                               void **out_poller)
{
    (void)ctx;
    if (wake_fd < SIM_WAKE_FIRST || wake_fd >= SIM_WAKE_FIRST + SIM_WAKES) {
        return JZX_ERR_BAD_FD;
    }
    sim_poller *poller = alloc->realloc(alloc->ctx, NULL, 0, sizeof *poller);
    if (poller == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    *poller = (sim_poller){.alloc = *alloc, .wake = wake_fd - SIM_WAKE_FIRST};
    *out_poller = poller;
    return JZX_OK;
}

static void array_free(const jzx_allocator *alloc, void *array, size_t size)
{
    if (array != NULL) {
        alloc->realloc(alloc->ctx, array, size, 0);
    }
}

static void env_poller_close(void *ctx, void *opaque)
{
    sim_poller *poller = opaque;
    jzx_allocator alloc = poller->alloc;
    for (size_t i = 0; i < poller->len; i++) {
        sim_fd *f = jzi_sim_get(ctx, poller->watches[i].fd);
        if (f != NULL) {
            f->watchers--;
        }
    }
    array_free(&alloc, poller->watches, poller->cap * sizeof *poller->watches);
    array_free(&alloc, poller->found, poller->cap * sizeof *poller->found);
    array_free(&alloc, poller->ready, poller->cap * sizeof *poller->ready);
    array_free(&alloc, poller, sizeof *poller);
}

/* The three arrays share one capacity, so either all of them get bigger or none: the scratch ones
 * are made anew, and given back if the last step fails. */
static jzx_err poller_reserve(sim_poller *poller)
{
    if (poller->len < poller->cap) {
        return JZX_OK;
    }
    const jzx_allocator *alloc = &poller->alloc;
    size_t old = poller->cap;
    size_t cap = old == 0 ? 16 : old * 2;
    sim_watch *watches = NULL;
    sim_watch *found = alloc->realloc(alloc->ctx, NULL, 0, cap * sizeof *found);
    uint32_t *ready = alloc->realloc(alloc->ctx, NULL, 0, cap * sizeof *ready);
    if (found != NULL && ready != NULL) {
        watches = alloc->realloc(alloc->ctx, poller->watches, old * sizeof *watches,
                                 cap * sizeof *watches);
    }
    if (watches == NULL) {
        array_free(alloc, found, cap * sizeof *found);
        array_free(alloc, ready, cap * sizeof *ready);
        return JZX_ERR_NO_MEMORY;
    }
    array_free(alloc, poller->found, old * sizeof *found);
    array_free(alloc, poller->ready, old * sizeof *ready);
    poller->watches = watches;
    poller->found = found;
    poller->ready = ready;
    poller->cap = cap;
    return JZX_OK;
}

static void check_before(jzx_sim *sim, int fd, uint32_t told, uint32_t known)
{
    if (((told ^ known) & ~JZX_IO_ONCE) != 0 && sim->misuse[0] == '\0') {
        (void)snprintf(sim->misuse, sizeof sim->misuse,
                       "The loop said that descriptor %d was watched for %u, but it was for %u.",
                       fd, (unsigned)told, (unsigned)known);
    }
}

/* The place of a descriptor among the watches; len: it is not watched. */
static size_t watch_find(const sim_poller *poller, int fd)
{
    size_t at = 0;
    while (at < poller->len && poller->watches[at].fd != fd) {
        at++;
    }
    return at;
}

static jzx_err env_poller_set(void *ctx, void *opaque, int fd, uint32_t before, uint32_t interest,
                              uint64_t cookie)
{
    jzx_sim *sim = ctx;
    sim_poller *poller = opaque;
    sim_fd *f = jzi_sim_get(sim, fd);
    size_t at = watch_find(poller, fd);
    check_before(sim, fd, before, at < poller->len ? poller->watches[at].interest : 0);
    if (interest == 0) {
        if (at < poller->len) {
            poller->len--;
            memmove(&poller->watches[at], &poller->watches[at + 1],
                    (poller->len - at) * sizeof *poller->watches);
            if (f != NULL) {
                f->watchers--;
            }
        }
        return JZX_OK;
    }
    if (f == NULL) {
        return JZX_ERR_BAD_FD;
    }
    if (at == poller->len) {
        jzx_err err = poller_reserve(poller);
        if (err != JZX_OK) {
            return err;
        }
        poller->len++;
        f->watchers++;
    }
    poller->watches[at] = (sim_watch){.fd = fd, .interest = interest, .cookie = cookie};
    return JZX_OK;
}

static size_t poller_look(jzx_sim *sim, sim_poller *poller)
{
    size_t count = 0;
    jzi_sim_net_advance(sim);
    for (size_t i = 0; i < poller->len; i++) {
        size_t at = (poller->turn + i) % poller->len;
        const sim_watch *watch = &poller->watches[at];
        sim_fd *f = jzi_sim_get(sim, watch->fd);
        uint32_t ready = f == NULL || watch->quiet ? 0 : jzi_sim_ready(sim, f);
        ready &= watch->interest | JZX_IO_HANGUP | JZX_IO_ERROR;
        if (ready != 0) {
            poller->found[count] = *watch;
            poller->ready[count] = ready;
            count++;
        }
    }
    return count;
}

static size_t poller_report(jzx_sim *sim, sim_poller *poller, size_t found, jzx_poll_event *out,
                            size_t cap)
{
    size_t count = found < cap ? found : cap;
    /* Which descriptors are reported goes round, as the contract of a poller wants; the seed says
     * in which order. */
    int last_fd = poller->found[count - 1].fd;
    for (size_t i = 0; i < count; i++) {
        size_t at = sim->fifo ? i : i + (size_t)jzi_sim_rng_below(&sim->order, count - i);
        sim_watch watch = poller->found[at];
        uint32_t ready = poller->ready[at];
        poller->found[at] = poller->found[i];
        poller->ready[at] = poller->ready[i];
        if ((watch.interest & JZX_IO_ONCE) != 0) {
            poller->watches[watch_find(poller, watch.fd)].quiet = true;
        }
        out[i] = (jzx_poll_event){.cookie = watch.cookie, .ready = ready};
        jzi_sim_note(sim, SIM_TRACE_READY, watch.fd, ready, JZX_OK);
    }
    poller->turn = (watch_find(poller, last_fd) + 1) % poller->len;
    return count;
}

static jzx_err env_poller_wait(void *ctx, void *opaque, uint64_t timeout_ns, jzx_poll_event *out,
                               size_t cap, size_t *out_count)
{
    jzx_sim *sim = ctx;
    sim_poller *poller = opaque;
    uint64_t deadline = timeout_ns < SIM_NEVER - sim->now ? sim->now + timeout_ns : SIM_NEVER;
    for (;;) {
        size_t found = poller_look(sim, poller);
        bool woken = atomic_exchange(&sim->wakes[poller->wake].signalled, false);
        if (found > 0 || woken || sim->now >= deadline) {
            *out_count = found == 0 ? 0 : poller_report(sim, poller, found, out, cap);
            return JZX_OK;
        }
        uint64_t next = jzi_sim_next_event(sim);
        if (next > deadline) {
            next = deadline;
        }
        if (next == SIM_NEVER) {
            return JZX_ERR_TIMED_OUT;
        }
        sim->now = next;
    }
}

static int env_poller_fd(void *ctx, void *poller)
{
    (void)ctx;
    (void)poller;
    return -1;
}

void jzi_sim_poller_env(jzx_env *env)
{
    env->wake_open = env_wake_open;
    env->wake_signal = env_wake_signal;
    env->poller_open = env_poller_open;
    env->poller_close = env_poller_close;
    env->poller_set = env_poller_set;
    env->poller_wait = env_poller_wait;
    env->poller_fd = env_poller_fd;
}
