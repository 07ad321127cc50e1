/* What concerns the program as a whole: the crash guard, counters, names, dispatchers. */
#include "doctor_priv.h"
#include "field.h"

enum {
    MANY = 100, /* below, a share says nothing */
    SHARE = 20, /* one in so many */
    LATE_MANY = 20,
    LATE_SHARE = 10
};

void jzd_examine_guard(jzd_exam *exam)
{
    if (field_bool(exam->facts, "guard_wanted") && !field_bool(exam->facts, "guard_installed")) {
        jzd_find(exam, JZD_WARNING, "no-crash-guard", NULL,
                 "Call jzx_crash_guard_install() on each thread that runs a loop.",
                 "Actors ask for the crash guard (JZX_SPAWN_CRASH_GUARD), but it is not installed: "
                 "a crash of theirs ends the process.");
    }
}

static bool is_share(uint64_t part, uint64_t whole, uint64_t many, uint64_t share)
{
    return part >= many && part >= whole / share;
}

static void examine_asks_of_all(jzd_exam *exam, const json_t *counters)
{
    uint64_t late = field_u64(counters, "late_replies");
    uint64_t replies = field_u64(counters, "replies");
    if (is_share(late, replies, LATE_MANY, LATE_SHARE)) {
        jzd_find(exam, JZD_WARNING, "late-replies", NULL,
                 "Give asks a longer timeout_ms, or have the actors that answer look at "
                 "jzx_request_is_wanted() first.",
                 "%llu answers came when nobody waited for them any more; %llu came in time.",
                 (unsigned long long)late, (unsigned long long)replies);
    }
}

void jzd_examine_counters(jzd_exam *exam)
{
    const json_t *counters = field_object(exam->facts, "counters");
    const json_t *dead_by = field_object(exam->facts, "dead_by");
    uint64_t accepted = field_u64(counters, "accepted");
    uint64_t dropped = field_u64(dead_by, "dropped_newest") + field_u64(dead_by, "dropped_oldest");
    uint64_t dead = field_u64(counters, "dead");
    uint64_t other = dead > dropped ? dead - dropped : 0;
    uint64_t full = field_u64(field_object(exam->facts, "refused"), "full");
    uint64_t abandoned = field_u64(counters, "abandoned");
    uint64_t escalations = field_u64(counters, "escalations");
    if (is_share(dropped, accepted, MANY, SHARE)) {
        jzd_find(exam, JZD_WARNING, "drops", NULL,
                 "If these messages matter, use JZX_FULL_REJECT and have senders wait for room; "
                 "`jzx dead` says whose they are.",
                 "%llu messages, more than one in %d, were dropped because a mailbox was full.",
                 (unsigned long long)dropped, (int)SHARE);
    }
    if (is_share(other, accepted, MANY, SHARE)) {
        jzd_find(exam, JZD_WARNING, "dead-letter-rate", NULL,
                 "`jzx dead` shows the last ones with their reasons.",
                 "%llu messages, more than one in %d, were never handled.",
                 (unsigned long long)other, (int)SHARE);
    }
    if (is_share(full, accepted, MANY, SHARE)) {
        jzd_find(exam, JZD_WARNING, "refused-sends", NULL,
                 "Ask for room with jzx_notify_room() instead of trying again, or raise "
                 "mailbox_cap; `jzx top` sorts by mailbox.",
                 "%llu sends were refused because a mailbox was full; %llu were accepted.",
                 (unsigned long long)full, (unsigned long long)accepted);
    }
    if (abandoned > 0) {
        jzd_find(exam, JZD_WARNING, "lost-data", NULL,
                 "Send with `drop`, or give the receiver a drop_msg: then it is released.",
                 "The data of %llu dead messages could not be released: it is lost memory.",
                 (unsigned long long)abandoned);
    }
    examine_asks_of_all(exam, counters);
    if (escalations > 0) {
        jzd_find(exam, JZD_WARNING, "gave-up", NULL,
                 "See `jzx record` for which; a backoff gives what is broken the time to recover.",
                 "Supervisors gave up or escalated %llu times.", (unsigned long long)escalations);
    }
}

void jzd_examine_names(jzd_exam *exam)
{
    size_t i;
    json_t *fact;
    json_array_foreach(field_list(exam->facts, "names"), i, fact)
    {
        jzd_find(exam, JZD_NOTE, "similar-names", fact,
                 "Rename one: a lookup of the wrong one is no error.",
                 "The registered names \"%s\" and \"%s\" differ in case only.",
                 field_text(fact, "similar"), field_text(fact, "registered"));
    }
}

/* A dispatcher that is kept by an actor was told of already. */
static bool has_stuck_actor(const jzd_exam *exam, uint64_t index)
{
    size_t i;
    json_t *fact;
    json_array_foreach(field_list(exam->facts, "running"), i, fact)
    {
        if (field_u64(fact, "index") == index) {
            return true;
        }
    }
    return false;
}

static void examine_silent(jzd_exam *exam, const json_t *fact)
{
    if (!field_bool(fact, "run")) {
        jzd_find(exam, JZD_NOTE, "not-run", NULL,
                 "Call jzx_loop_run(), jzx_loop_step() or jzx_system_run(), or do so more often.",
                 "No thread runs dispatcher %s: its %llu actors wait.", field_text(fact, "name"),
                 (unsigned long long)field_u64(fact, "actors"));
    } else if (!has_stuck_actor(exam, field_u64(fact, "index"))) {
        jzd_find(exam, JZD_ERROR, "not-answering", NULL,
                 "`jzx stuck` and `jzx top` show what it does; behaviors that take long keep all "
                 "others on it waiting.",
                 "Dispatcher %s did not answer within 150 ms.", field_text(fact, "name"));
    }
}

void jzd_examine_dispatchers(jzd_exam *exam)
{
    size_t i;
    json_t *fact;
    json_array_foreach(field_list(exam->facts, "dispatchers"), i, fact)
    {
        if (json_is_false(json_object_get(fact, "answering"))) {
            examine_silent(exam, fact);
        }
        if (field_bool(fact, "pool") && field_u64(fact, "workers") == 1 &&
            field_u64(exam->facts, "processors") > 1) {
            jzd_find(exam, JZD_NOTE, "pool-of-one", NULL,
                     "Give it more workers, or JZX_WORKERS_PER_CPU.",
                     "Pool %s has one worker: one actor that takes long keeps all others waiting.",
                     field_text(fact, "name"));
        }
    }
    if (exam->any_overrun && !field_bool(exam->facts, "watchdog")) {
        jzd_find(exam, JZD_NOTE, "no-watchdog", NULL,
                 "Start one with jzx_watchdog_start(): it reports which actor does not return, "
                 "and where.",
                 "Actors keep their dispatchers for too long, and no watchdog reports it.");
    }
}
