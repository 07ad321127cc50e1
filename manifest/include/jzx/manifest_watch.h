/* Waiting for others: generations, and the events of commits. */
#ifndef JZX_MANIFEST_WATCH_H
#define JZX_MANIFEST_WATCH_H

#include <jzx/ask.h>
#include <jzx/manifest_read.h>
#include <jzx/manifest_record.h>
#include <jzx/manifest_store.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits until a component has reached a generation. *out_reached (may be NULL): where it is then.
 * timeout_ms 0: as long as it takes. Thread: any but inside an actor's code. Errors: TIMED_OUT (the
 * generation was not reached in time), DEADLOCK (called inside an actor), CLOSED (the manifest is
 * being closed), MAILBOX_FULL (as many requests wait for the writer as may), READ_ONLY, FORKED,
 * IN_DOUBT, NO_MEMORY, INVALID_ARG. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_generation_wait(jzx_mf *mf, uint32_t component,
                                                     uint64_t target, uint32_t timeout_ms,
                                                     uint64_t *out_reached);
/* The same from an actor, as an ask: the reply with `tag` has the generation as its value (u64).
 * Thread: loop, inside an actor. Errors: as jzx_ask() but INVALID_ARG and MAILBOX_FULL and TOO_BIG
 * and NEWER_STRUCT, INVALID_ARG (called outside of an actor), MAILBOX_FULL (as many requests wait
 * for the writer as may), CLOSED (the manifest is being closed), READ_ONLY, FORKED, IN_DOUBT,
 * NOT_SUPPORTED (the actor is not of the loop or system that the manifest was opened with). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_generation_ask(jzx_loop *loop, jzx_mf *mf, uint32_t component,
                                                    uint64_t target, uint32_t tag,
                                                    uint32_t timeout_ms, void *arg,
                                                    jzx_ask_ref *out_ref);

typedef enum jzx_mf_change {
    JZX_MF_PUT = 1,
    JZX_MF_DEL = 2,
    JZX_MF_LOST = 3 /* `seq` to the next event's: they were not kept as long as this one slept */
} jzx_mf_change;

/* One change of one record. Databases, chunks, materials and generations are told, with
 * JZX_MF_ALL_EVENTS jobs, logs and metrics too. */
typedef struct jzx_mf_event {
    uint64_t seq;    /* of the commit */
    uint32_t index;  /* within the commit, from 0 */
    uint32_t change; /* jzx_mf_change */
    jzx_mf_key key;
} jzx_mf_event;

/* Events after commit `after`, in order. Returning anything but JZX_OK ends the walk. */
typedef jzx_err (*jzx_mf_event_fn)(void *arg, const jzx_mf_event *event);
/* Errors: as jzx_mf_db_each(). */
JZX_API JZX_NODISCARD jzx_err jzx_mf_event_each(jzx_mf_snap *snap, uint64_t after,
                                                jzx_mf_event_fn fn, void *arg);

/* Sends every event after commit `after` to an actor, as copies of jzx_mf_event with this tag:
 * first those that are kept, then each when its commit is durable. None is lost, doubled or out of
 * order, however slow the actor is, while they are kept (events_kept). It ends with
 * jzx_mf_unfollow(), with the actor, or with the manifest. After a restart of the program an actor
 * goes on with the last seq it has finished. The actor is one of the loop or system that the
 * manifest was opened with. *out_id (may be NULL) names it. Thread: any. Errors: INVALID_ARG,
 * RESERVED_TAG, MAILBOX_FULL (as many requests wait for the writer as may), CLOSED (the manifest is
 * being closed), READ_ONLY, FORKED, NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_follow(jzx_mf *mf, jzx_actor_id to, uint32_t tag,
                                            uint64_t after, uint64_t *out_id);
/* Events that are on their way may still come. Errors: as jzx_mf_follow() but RESERVED_TAG. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_unfollow(jzx_mf *mf, uint64_t id);

#ifdef __cplusplus
}
#endif
#endif
