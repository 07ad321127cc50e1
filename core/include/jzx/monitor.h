/* Death watch and links: how an actor hears that another one ended (R20). */
#ifndef JZX_MONITOR_H
#define JZX_MONITOR_H

#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Also a RESTARTED notice when the target was restarted. Restarts that follow each other before it
 * is read share one; its incarnation is the latest. */
#define JZX_WATCH_RESTARTS 0x1u

/* Asks for exactly one TERMINATED notice to the running actor, however the target ends: with its
 * reason, or with NOPROC if it is gone already (as a notice too, never as a return value). Watches
 * stack: two of them bring two notices. A restart is no end; the watch survives it. The watch is
 * gone when the watcher ends or restarts. out_ref may be NULL. Thread: loop, inside an actor.
 * Errors: INVALID_ARG (called outside of an actor, the target is the actor itself or JZX_NOBODY, or
 * a flag is unknown), STOPPING (the running actor is ending), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_watch(jzx_loop *loop, jzx_actor_id target, uint32_t flags,
                                        jzx_watch_ref *out_ref);
/* Final when it returns: no notice of this watch is handed over any more, not even one that was
 * queued already (it is counted as revoked). Thread: loop, inside the actor that watches. Errors:
 * NO_SUCH_REF (not a watch of this actor, or its notice was handed over). */
JZX_API jzx_err jzx_unwatch(jzx_loop *loop, jzx_watch_ref ref);

/* Links the running actor and the target: when one ends or fails for another reason than NORMAL,
 * the other fails with LINKED, unless it traps exits: then it gets an EXIT notice for every end,
 * NORMAL included. Links do not stack and belong to the incarnations they join: a restart of either
 * side ends them. If the target is gone, the EXIT carries NOPROC. A SHUTDOWN is not NORMAL. Thread:
 * loop, inside an actor. Errors: INVALID_ARG (called outside of an actor, or the target is the
 * actor itself or JZX_NOBODY), STOPPING (the running actor is ending), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_link(jzx_loop *loop, jzx_actor_id target);
/* Ends the link; an EXIT that is queued already is revoked, and so is a failure by this link that
 * has not taken place yet. OK also if there was none. Thread: loop, inside an actor. Errors:
 * INVALID_ARG (called outside of an actor). */
JZX_API jzx_err jzx_unlink(jzx_loop *loop, jzx_actor_id target);

#ifdef __cplusplus
}
#endif
#endif
