/* What concerns the program as a whole: counters, names, dispatchers. */
#include "control_doctor_steps.h"

#include "base/alloc.h"
#include "os/thread.h"
#include "registry.h"

#include <stdlib.h>
#include <string.h>

enum {
    MANY = 100, /* below, a share says nothing */
    SHARE = 20, /* one in so many */
    LATE_MANY = 20,
    LATE_SHARE = 10,
    NAMES_MAX = 16384
};

static bool is_share(uint64_t part, uint64_t whole, uint64_t many, uint64_t share)
{
    return part >= many && part >= whole / share;
}

void jzi_doctor_counters(jzi_doctor *doctor)
{
    jzx_counters now;
    jzi_peek_counters(&doctor->control->view, &now);
    uint64_t dropped = now.dead_by[JZX_DEAD_DROPPED_NEWEST] + now.dead_by[JZX_DEAD_DROPPED_OLDEST];
    uint64_t full = now.refused[JZX_REFUSED_FULL];
    if (is_share(dropped, now.accepted, MANY, SHARE)) {
        jzi_find(doctor, JZI_WARNING, "drops", JZX_NOBODY,
                 "If these messages matter, use JZX_FULL_REJECT and have senders wait for room; "
                 "`jzx dead` says whose they are.",
                 "%llu messages, more than one in %u, were dropped because a mailbox was full.",
                 (unsigned long long)dropped, (unsigned)SHARE);
    }
    if (is_share(now.dead - dropped, now.accepted, MANY, SHARE)) {
        jzi_find(doctor, JZI_WARNING, "dead-letter-rate", JZX_NOBODY,
                 "`jzx dead` shows the last ones with their reasons.",
                 "%llu messages, more than one in %u, were never handled.",
                 (unsigned long long)(now.dead - dropped), (unsigned)SHARE);
    }
    if (is_share(full, now.accepted, MANY, SHARE)) {
        jzi_find(doctor, JZI_WARNING, "refused-sends", JZX_NOBODY,
                 "Ask for room with jzx_notify_room() instead of trying again, or raise "
                 "mailbox_cap; `jzx top` sorts by mailbox.",
                 "%llu sends were refused because a mailbox was full; %llu were accepted.",
                 (unsigned long long)full, (unsigned long long)now.accepted);
    }
    if (now.abandoned > 0) {
        jzi_find(doctor, JZI_WARNING, "lost-data", JZX_NOBODY,
                 "Send with `drop`, or give the receiver a drop_msg: then it is released.",
                 "The data of %llu dead messages could not be released: it is lost memory.",
                 (unsigned long long)now.abandoned);
    }
    if (is_share(now.late_replies, now.replies, LATE_MANY, LATE_SHARE)) {
        jzi_find(doctor, JZI_WARNING, "late-replies", JZX_NOBODY,
                 "Give asks a longer timeout_ms, or have those who answer look at "
                 "jzx_request_is_wanted() first.",
                 "%llu answers came when nobody waited for them any more; %llu came in time.",
                 (unsigned long long)now.late_replies, (unsigned long long)now.replies);
    }
    if (now.escalations > 0) {
        jzi_find(doctor, JZI_WARNING, "gave-up", JZX_NOBODY,
                 "See `jzx record` for which; a backoff gives what is broken the time to recover.",
                 "Supervisors gave up or escalated %llu times.",
                 (unsigned long long)now.escalations);
    }
}

/* Names as people read them. */
static int compare_names(const char *a, const char *b)
{
    for (;; a++, b++) {
        int left = *a >= 'A' && *a <= 'Z' ? *a + ('a' - 'A') : *a;
        int right = *b >= 'A' && *b <= 'Z' ? *b + ('a' - 'A') : *b;
        if (left != right || left == '\0') {
            return left - right;
        }
    }
}

static int by_name(const void *a, const void *b)
{
    const jzx_name_info *left = a;
    const jzx_name_info *right = b;
    int order = compare_names(left->name, right->name);
    return order != 0 ? order : strcmp(left->name, right->name);
}

void jzi_doctor_names(jzi_doctor *doctor)
{
    const jzi_view *view = &doctor->control->view;
    jzi_registry *registry = view->loop->domain.registry;
    size_t cap = jzi_names_all(registry, NULL, sizeof(jzx_name_info), 0);
    cap = cap < NAMES_MAX ? cap : NAMES_MAX;
    jzx_name_info *names = cap == 0 ? NULL : jzi_alloc(&view->alloc, cap * sizeof *names);
    if (names == NULL) {
        return;
    }
    size_t count = jzi_names_all(registry, names, sizeof *names, cap);
    count = count < cap ? count : cap;
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 1; i < count; i++) {
        if (compare_names(names[i - 1].name, names[i].name) == 0) {
            jzi_find(doctor, JZI_NOTE, "similar-names", names[i].id,
                     "Rename one: who looks up the wrong one gets no error.",
                     "The registered names \"%s\" and \"%s\" differ in case only.",
                     names[i - 1].name, names[i].name);
        }
    }
    jzi_free(&view->alloc, names, cap * sizeof *names);
}

static bool is_run(const jzi_worker_sight *workers, size_t count, uint32_t dispatcher)
{
    for (size_t i = 0; i < count; i++) {
        if (workers[i].dispatcher == dispatcher && workers[i].inside) {
            return true;
        }
    }
    return false;
}

/* One that is kept by an actor was told of already. */
static bool has_stuck_actor(const jzi_doctor *doctor, uint32_t dispatcher)
{
    for (uint32_t i = 0; i < doctor->count; i++) {
        const jzi_finding *finding = &doctor->findings[i];
        if (strcmp(finding->rule, "stuck") == 0 &&
            jzx_id_dispatcher(finding->actor) == dispatcher) {
            return true;
        }
    }
    return false;
}

static void examine_silent(jzi_doctor *doctor, const jzi_dispatcher_sight *one,
                           const jzi_worker_sight *workers, size_t count)
{
    if (!is_run(workers, count, one->index)) {
        jzi_find(doctor, JZI_NOTE, "not-run", JZX_NOBODY,
                 "Call jzx_loop_run(), jzx_loop_step() or jzx_system_run(), or do so more often.",
                 "Nobody runs dispatcher %s: its %llu actors wait.", one->name,
                 (unsigned long long)one->live);
    } else if (!has_stuck_actor(doctor, one->index)) {
        jzi_find(doctor, JZI_ERROR, "not-answering", JZX_NOBODY,
                 "`jzx stuck` and `jzx top` show what it does; behaviors that take long keep "
                 "everybody else on it waiting.",
                 "Dispatcher %s did not answer within 150 ms.", one->name);
    }
}

void jzi_doctor_dispatchers(jzi_doctor *doctor)
{
    const jzi_view *view = &doctor->control->view;
    jzi_dispatcher_sight sights[JZX_DISPATCHERS_MAX];
    size_t workers_count = 0;
    jzi_worker_sight *workers = jzi_workers_now(doctor->control, &workers_count);
    size_t count = jzi_peek_dispatchers(view, sights, JZX_DISPATCHERS_MAX);
    for (size_t i = 0; i < count && i < JZX_DISPATCHERS_MAX; i++) {
        if (doctor->silence.is_silent[sights[i].index]) {
            examine_silent(doctor, &sights[i], workers, workers_count);
        }
        if (sights[i].kind == JZX_DISPATCHER_POOL && sights[i].workers == 1 &&
            jzi_cpu_count() > 1) {
            jzi_find(doctor, JZI_NOTE, "pool-of-one", JZX_NOBODY,
                     "Give it more workers, or JZX_WORKERS_PER_CPU.",
                     "Pool %s has one worker: one actor that takes long keeps all others waiting.",
                     sights[i].name);
        }
    }
    jzi_free(&view->alloc, workers, workers_count * sizeof *workers);
    /* Read here as well: one that is stuck does not answer. */
    bool watched = doctor->any_watchdog ||
                   atomic_load_explicit(&view->loop->watchdog, memory_order_relaxed) != NULL;
    if (doctor->any_overrun && !watched) {
        jzi_find(doctor, JZI_NOTE, "no-watchdog", JZX_NOBODY,
                 "Start one with jzx_watchdog_start(): it reports who does not return, and where.",
                 "Actors keep their dispatchers for too long, and no watchdog reports it.");
    }
}
