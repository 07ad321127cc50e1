/* What one actor after the other suffers from: time, asks, mailboxes, dead letters. */
#include "doctor_priv.h"
#include "field.h"

enum {
    STUCK_MS = 1000,
    ENDLESS_MS = 1000,
    WIDE = 1000,     /* children of an actor that does not supervise */
    DEAD_MANY = 100, /* dead letters that are worth a word, */
    DEAD_SHARE = 10, /* if they are at least one in so many messages */
    SLOW_MANY = 3,
    VERY_SLOW_MS = 1000
};

void jzd_examine_running(jzd_exam *exam)
{
    size_t i;
    json_t *fact;
    json_array_foreach(field_list(exam->facts, "running"), i, fact)
    {
        if (field_u64(fact, "for_ms") < STUCK_MS) {
            continue;
        }
        exam->any_overrun = true;
        jzd_find(exam, JZD_ERROR, "stuck", fact,
                 "`jzx stuck` shows where it is. Behaviors must return: long work belongs to "
                 "jzx_run_blocking() or into pieces.",
                 "It has not returned from its code for %llu ms, and keeps dispatcher %s, worker "
                 "%llu.",
                 (unsigned long long)field_u64(fact, "for_ms"), field_text(fact, "dispatcher"),
                 (unsigned long long)field_u64(fact, "worker"));
    }
}

void jzd_examine_asks(jzd_exam *exam)
{
    size_t i;
    json_t *fact;
    json_array_foreach(field_list(exam->facts, "asks"), i, fact)
    {
        const char *name = field_text(fact, "callee_name");
        if (field_u64(fact, "age_ms") < ENDLESS_MS) {
            continue;
        }
        jzd_find(exam, JZD_WARNING, "ask-without-deadline", fact,
                 "Give the ask a timeout_ms, so that the asker hears when there is no answer.",
                 "It asked actor %s%s%s%s %llu ms ago, without a deadline, and has no answer.",
                 name, *name == '\0' ? "" : " (", field_text(fact, "callee"),
                 *name == '\0' ? "" : ")", (unsigned long long)field_u64(fact, "age_ms"));
    }
}

static void examine_actor(jzd_exam *exam, const json_t *fact)
{
    uint64_t mailbox = field_u64(fact, "mailbox");
    uint64_t cap = field_u64(fact, "cap");
    uint64_t accepted = field_u64(fact, "accepted");
    uint64_t dead = field_u64(fact, "dead");
    uint64_t children = field_u64(fact, "children");
    if (cap > 1 && mailbox >= cap - cap / 10) {
        jzd_find(exam, JZD_WARNING, "full-mailbox", fact,
                 "Make it faster, spread its work over a router, slow its senders down with "
                 "jzx_notify_room(), or raise mailbox_cap.",
                 "Its mailbox stays full: %llu of %llu messages wait.", (unsigned long long)mailbox,
                 (unsigned long long)cap);
    }
    if (cap == 1) {
        jzd_find(exam, JZD_NOTE, "tiny-mailbox", fact,
                 "Give it a larger mailbox_cap, unless one at a time is what you mean.",
                 "Its mailbox holds one message: while that waits, all others are refused.");
    }
    if (dead >= DEAD_MANY && dead >= accepted / DEAD_SHARE) {
        jzd_find(exam, JZD_WARNING, "dead-letters", fact,
                 "See `jzx dead` for the reasons; a larger mailbox_cap, a slower sender or "
                 "jzx_notify_room() help against a full one.",
                 "%llu of the %llu messages that it accepted became dead letters.",
                 (unsigned long long)dead, (unsigned long long)accepted);
    }
    if (children >= WIDE && !field_bool(fact, "supervisor")) {
        jzd_find(exam, JZD_NOTE, "wide-parent", fact,
                 "Put them under a dynamic supervisor, which restarts them and stops them "
                 "together.",
                 "It is the plain parent of %llu actors: if one of them fails it is gone, and when "
                 "this one ends it waits for all of them.",
                 (unsigned long long)children);
    }
}

void jzd_examine_actors(jzd_exam *exam)
{
    size_t i;
    json_t *fact;
    json_array_foreach(field_list(exam->facts, "actors"), i, fact)
    {
        examine_actor(exam, fact);
    }
}

void jzd_examine_slow(jzd_exam *exam)
{
    size_t i;
    json_t *fact;
    json_array_foreach(field_list(exam->facts, "slow"), i, fact)
    {
        uint64_t times = field_u64(fact, "times");
        uint64_t longest_ms = field_u64(fact, "longest_ms");
        if (times < SLOW_MANY && longest_ms < VERY_SLOW_MS) {
            continue;
        }
        exam->any_overrun = true;
        jzd_find(exam, JZD_WARNING, "blocking-behavior", fact,
                 "Behaviors must not wait: use jzx_run_blocking(), timers or asks, or give it a "
                 "dispatcher of its own (\"pinned\").",
                 "It kept its dispatcher for over 100 ms %llu times of late, once for %llu ms.",
                 (unsigned long long)times, (unsigned long long)longest_ms);
    }
}
