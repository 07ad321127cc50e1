/* The features that leave something with an actor, and in which order it goes (R16, R18): what may
 * still make messages first, then what waiting actors are told of, then what the next incarnation
 * begins with, and last what only lists know. Watches and links are lifecycle's own; so are the
 * children and the deadline, which go after all of this. */
#include "loop/loop_priv.h"

#include "io/job.h"
#include "messaging/ask.h"
#include "messaging/behavior.h"
#include "messaging/bus.h"
#include "messaging/registry.h"
#include "sched/letters.h"
#include "sched/room.h"
#include "sched/stash.h"

#define IN_EXT(member) .at = offsetof(jzi_cold, member)

const jzi_feature jzi_features[] = {
    /* R16: "fd watches, timers, subscriptions released" */
    {IN_EXT(sources), .leave_incarnation = jzi_source_leave},
    {IN_EXT(timers), .leave_incarnation = jzi_timers_leave},
    {IN_EXT(requests), .init = jzi_room_init, .leave_incarnation = jzi_room_leave},
    {IN_EXT(feed), .init = jzi_letters_init, .leave_incarnation = jzi_letters_leave},
    {IN_EXT(jobs), .init = jzi_job_init, .leave_incarnation = jzi_job_leave},
    /* R18: "asks it made or owes" */
    {IN_EXT(patterns), .init = jzi_ask_init, .leave_incarnation = jzi_ask_release,
     .resume = jzi_ask_resume},
    /* "become stack" */
    {IN_EXT(patterns), .leave_incarnation = jzi_behavior_leave},
    /* "stash back to the front of the mailbox" */
    {IN_EXT(patterns), .leave_incarnation = jzi_stash_leave},
    {IN_EXT(patterns), .init = jzi_bus_init, .leave_incarnation = jzi_bus_subs_leave},
    /* waits for names and groups; R16: "id no longer resolves; names released" */
    {IN_EXT(patterns), .init = jzi_registry_init, .leave_incarnation = jzi_registry_leave,
     .leave_identity = jzi_registry_release},
    {0},
};
