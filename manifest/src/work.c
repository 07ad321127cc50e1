/* A crew: the supervisor, its children and what they share. */
#include "work.h"

#include "memory.h"

#include <stdio.h>
#include <string.h>

#define HANDS_MAX 4096u
/* A handler that panics fails its job, which waits for its backoff; that the hand is started again
 * is no sign of trouble. So its restarts are limited only by what no machine can do. */
#define HAND_RESTARTS 16384u
#define HAND_PERIOD_MS 1u

/* Counting. */

void mfi_crew_retain(mfi_crew *crew)
{
    (void)atomic_fetch_add_explicit(&crew->refs, 1, memory_order_relaxed);
}

static void destroy(mfi_crew *crew)
{
    for (uint32_t i = 0; crew->seats != NULL && i < crew->seat_count; i++) {
        mfi_run_free(crew->seats[i].run);
    }
    for (uint32_t i = 0; crew->gangs != NULL && i < crew->gang_count; i++) {
        mfi_free(crew->gangs[i].dispatcher);
    }
    jzx_sender_release(crew->sender);
    (void)pthread_mutex_destroy(&crew->lock);
    mfi_free(crew->beats);
    mfi_free(crew->seats);
    mfi_free(crew->gangs);
    mfi_free(crew);
}

void mfi_crew_release(mfi_crew *crew)
{
    /* Release what this owner wrote, acquire what the others did. */
    if (atomic_fetch_sub_explicit(&crew->refs, 1, memory_order_acq_rel) == 1) {
        destroy(crew);
    }
}

void mfi_crew_drop(void *crew)
{
    mfi_crew_release(crew);
}

void mfi_crew_poke(mfi_crew *crew)
{
    /* Partner: the foreman's look, which takes the flag back before it reads the desk. */
    if (atomic_exchange_explicit(&crew->poked, true, memory_order_acq_rel)) {
        return;
    }
    jzx_actor_id foreman = atomic_load_explicit(&crew->foreman, memory_order_acquire);
    jzx_send_opts look = {.tag = MFI_WORK_LOOK, .flags = JZX_SEND_URGENT | JZX_SEND_VALUE};
    jzx_err err = foreman == JZX_NOBODY  ? JZX_ERR_NO_SUCH_ACTOR
                  : crew->sender != NULL ? jzx_send_async_with(crew->sender, foreman, &look)
                                         : jzx_send_with(crew->loop, foreman, &look);
    if (err != JZX_OK) {
        atomic_store_explicit(&crew->poked, false, memory_order_release);
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
    out->hands = out->hands == 0 ? 1 : out->hands;
    return JZX_OK;
}

static jzx_err read_gang(mfi_crew *crew, const unsigned char *from, size_t size)
{
    mfi_gang *gang = &crew->gangs[crew->gang_count];
    jzx_err err = read_work(from, size, &gang->work);
    if (err != JZX_OK) {
        return err;
    }
    for (uint32_t i = 0; i < crew->gang_count; i++) {
        if (crew->gangs[i].work.kind == gang->work.kind) {
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
    gang->crew = crew;
    gang->seat_count = gang->work.hands;
    crew->gang_count++;
    if (gang->seat_count > HANDS_MAX - crew->seat_count) {
        return JZX_ERR_TOO_BIG;
    }
    crew->seat_count += gang->seat_count;
    return JZX_OK;
}

static jzx_err make_seats(mfi_crew *crew)
{
    crew->seats = mfi_alloc_zeroed(crew->seat_count, sizeof *crew->seats);
    crew->beats = mfi_alloc_zeroed(crew->seat_count, sizeof *crew->beats);
    if (crew->seats == NULL || crew->beats == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    mfi_seat *seat = crew->seats;
    for (uint32_t i = 0; i < crew->gang_count; i++) {
        mfi_gang *gang = &crew->gangs[i];
        gang->seats = seat;
        for (uint32_t k = 0; k < gang->seat_count; k++, seat++) {
            *seat = (mfi_seat){.crew = crew, .gang = gang};
        }
    }
    return JZX_OK;
}

static jzx_err read_works(mfi_crew *crew, const void *works, size_t size, uint32_t count)
{
    crew->gangs = mfi_alloc_zeroed(count, sizeof *crew->gangs);
    if (crew->gangs == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    const unsigned char *from = works;
    jzx_err err = JZX_OK;
    for (uint32_t i = 0; i < count && err == JZX_OK; i++) {
        err = read_gang(crew, from + i * size, size);
    }
    return err != JZX_OK ? err : make_seats(crew);
}

static jzx_err open_sender(mfi_crew *crew)
{
    jzx_err err = jzx_sender_open(crew->loop, JZX_SENDER_SHARED, &crew->sender);
    return err == JZX_ERR_NOT_SUPPORTED ? JZX_OK : err;
}

/* The manifest that is gone for good is the business of whoever stands above the crew. */
static jzx_action decide(void *arg, const jzx_failure *failure)
{
    (void)arg;
    return strcmp(failure->child_id, MFI_WORK_FOREMAN) == 0 &&
                   mfi_work_is_fatal(failure->reason->code)
               ? JZX_ACTION_ESCALATE
               : JZX_ACTION_RESTART;
}

typedef struct hand_name {
    char text[24];
} hand_name;

/* Foreman, hands, bell. Stopped in reverse: the bell and the hands together, the foreman when the
 * last handler has returned and the bell heard that all is reported. */
static jzx_err start(mfi_crew *crew, jzx_child_spec *specs, hand_name *names, jzx_actor_id *out_id)
{
    uint32_t count = crew->seat_count + 2;
    mfi_foreman_spec(crew, &specs[0]);
    for (uint32_t i = 0; i < crew->seat_count; i++) {
        jzx_child_spec *spec = &specs[1 + i];
        mfi_hand_spec(&crew->seats[i], spec);
        (void)snprintf(names[i].text, sizeof names[i].text, "hand %u", i + 1);
        spec->id = names[i].text;
        spec->stop_group = 1;
    }
    mfi_bell_spec(crew, &specs[count - 1]);
    specs[count - 1].stop_group = 1;
    jzx_supervisor_spec rules = {.intensity = HAND_RESTARTS,
                                 .period_ms = HAND_PERIOD_MS,
                                 .auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT,
                                 .decide = decide};
    jzx_supervisor_init init = {
        .name = "crew", .spec = &rules, .children = specs, .child_count = count};
    atomic_store_explicit(&crew->refs, count, memory_order_relaxed);
    return jzx_spawn_supervisor(crew->loop, &init, out_id);
}

static jzx_err start_all(mfi_crew *crew, jzx_actor_id *out_id)
{
    jzx_child_spec *specs = mfi_alloc_zeroed(crew->seat_count + 2, sizeof *specs);
    hand_name *names = mfi_alloc_zeroed(crew->seat_count, sizeof *names);
    jzx_err err =
        specs == NULL || names == NULL ? JZX_ERR_NO_MEMORY : start(crew, specs, names, out_id);
    mfi_free(names);
    mfi_free(specs);
    return err;
}

jzx_err jzx_mf_crew_spawn_sized(jzx_loop *loop, jzx_mf *mf, const jzx_mf_work *works,
                                size_t work_size, uint32_t count, jzx_actor_id *out_id)
{
    if (loop == NULL || mf == NULL || works == NULL || work_size == 0 || count == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    mfi_crew *crew = mfi_alloc_zeroed(1, sizeof *crew);
    if (crew == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    crew->mf = mf;
    crew->loop = loop;
    (void)pthread_mutex_init(&crew->lock, NULL);
    jzx_err err = read_works(crew, works, work_size, count);
    if (err == JZX_OK) {
        err = open_sender(crew);
    }
    if (err == JZX_OK) {
        err = start_all(crew, out_id);
    }
    if (err != JZX_OK) {
        destroy(crew);
    }
    return err;
}
