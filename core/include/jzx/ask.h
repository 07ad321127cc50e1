/* Ask: a request that is answered exactly once.
 *
 * The asker gets one message of kind JZX_KIND_REPLY, whatever happens: the reply, or the tag
 * JZX_TAG_ASK_FAILED and why there is none. The callee finds out with jzx_is_ask() that an asker
 * waits, and answers with jzx_reply(): in the same behavior, or later with the jzx_request that
 * jzx_request_keep() gave it. jzx_forward() (jzx/behavior.h) and jzx_delegate() hand the duty to
 * another actor. A behavior that returns without doing any of this has forgotten the ask, and the
 * asker is told so at once; if the callee fails, ends or restarts, it is told that.
 *
 * A reply needs no room in the asker's mailbox and no memory, and keeps its place behind what the
 * callee sent before (R6, R8). An ask belongs to the incarnation that made it. */
#ifndef JZX_ASK_H
#define JZX_ASK_H

#include <jzx/actor.h>
#include <jzx/sender.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum jzx_outcome {
    JZX_OUTCOME_REPLIED = 0,
    JZX_OUTCOME_TIMED_OUT = 1,
    JZX_OUTCOME_EXPIRED = 2,     /* its time passed while it was still queued at the callee */
    JZX_OUTCOME_CALLEE_DIED = 3, /* `reason` says how */
    JZX_OUTCOME_CALLEE_RESTARTED = 4,
    JZX_OUTCOME_NO_SUCH_ACTOR = 5, /* it was gone, or stopping, when it was asked */
    JZX_OUTCOME_MAILBOX_FULL = 6,  /* when it was asked, or it dropped the request for room */
    JZX_OUTCOME_CANCELLED = 7,     /* by jzx_ask_cancel(), or the system was destroyed */
    JZX_OUTCOME_FORGOTTEN = 8,     /* the callee's behavior returned without an answer */
    JZX_OUTCOME_REFUSED = 9        /* any other error of the send: `err` */
} jzx_outcome;
/* "replied", "timed out", ... Never NULL. Thread: any. */
JZX_API const char *jzx_outcome_name(uint32_t outcome);

/* How an ask ended. */
typedef struct jzx_reply {
    jzx_ask_ref ask;
    void *arg;            /* jzx_ask_opts.arg */
    jzx_actor_id target;  /* the actor that was asked */
    jzx_actor_id callee;  /* the actor that answered, or owed the answer last */
    uint64_t age_ns;      /* from the ask to this outcome */
    uint32_t outcome;     /* jzx_outcome */
    uint32_t tag;         /* of the request */
    uint32_t queue_depth; /* messages that waited at the callee at this moment */
    int32_t err;          /* jzx_err with the same meaning: JZX_OK, JZX_ERR_TIMED_OUT, ... */
    jzx_reason reason;    /* CALLEE_DIED, CALLEE_RESTARTED; else NORMAL */
    char target_name[JZX_NAME_MAX + 1]; /* "" if it has none, or it could not be told any more */
    uint64_t correlation;               /* of the ask; see jzx_correlation() */
} jzx_reply;
/* One line for people, such as "ask 'db' (1000000a) tag 7: timed out after 5000.0 ms, 17 queued".
 * As snprintf(3). Thread: any. */
JZX_API int jzx_reply_format(const jzx_reply *reply, char *buf, size_t cap);

#define JZX_ASK_NO_TIMEOUT UINT32_MAX

/* Zero is the default everywhere. */
typedef struct jzx_ask_opts {
    union {
        void *data;
        uint64_t u64;
    };
    size_t len;
    void (*drop)(void *data);
    uint32_t tag;
    uint32_t flags;      /* JZX_SEND_* */
    uint32_t timeout_ms; /* 0: 5,000; JZX_ASK_NO_TIMEOUT */
    uint32_t reserved;
    /* Called in the actor instead of its behavior when the answer comes; NULL: the behavior is. */
    jzx_behavior_fn on_reply;
    void *arg;          /* comes back in the jzx_reply; never looked at */
    jzx_reply *failure; /* NULL, or filled in when jzx_ask() itself returns an error of the send */
    uint64_t correlation; /* 0: that of the message in hand; if that has none, the ask's own ref */
} jzx_ask_opts;

/* Asks an actor, from an actor. JZX_OK: data is transferred, and exactly one message of kind REPLY
 * follows, unless the ask is cancelled or the asker ends or restarts first. The time, if there is
 * one, travels with the request (msg->deadline_ns): a callee does not get a request whose asker has
 * given up. An error: nothing was sent, data stays the caller's (but for JZX_SEND_CONSUME), and no
 * message follows. Thread: loop, inside an actor. Errors: as jzx_send_with(), INVALID_ARG (called
 * outside of an actor), STOPPING (the target or the asker is stopping), NO_MEMORY, NEWER_STRUCT. */
JZX_API JZX_NODISCARD jzx_err jzx_ask_sized(jzx_loop *loop, jzx_actor_id to,
                                            const jzx_ask_opts *opts, size_t opts_size,
                                            jzx_ask_ref *out_ref);
static inline JZX_NODISCARD jzx_err jzx_ask(jzx_loop *loop, jzx_actor_id to,
                                            const jzx_ask_opts *opts, jzx_ask_ref *out_ref)
{
    return jzx_ask_sized(loop, to, opts, sizeof *opts, out_ref);
}
/* Final when it returns: no answer is handed over any more, not even one that was queued already.
 * The callee does not get the request if it still waits there (it becomes a dead letter), and is
 * told by jzx_request_is_wanted(). Thread: loop, inside the asker. Errors: NO_SUCH_REF (not an ask
 * of this incarnation, or the ask is over). */
JZX_API jzx_err jzx_ask_cancel(jzx_loop *loop, jzx_ask_ref ref);

/* How the ask ended whose answer is in hand; borrowed for the call. NULL: it is not an answer.
 * Thread: loop, inside a behavior. */
JZX_API const jzx_reply *jzx_reply_of(const jzx_context *ctx);

/* The duty to answer one ask; 0 is none. */
typedef uint64_t jzx_request;
#define JZX_REQUEST_IN_HAND ((jzx_request)0) /* in calls: the one of the message in hand */

/* 1: the message in hand is an ask that is not answered yet. Thread: loop, inside a behavior. */
JZX_API int jzx_is_ask(const jzx_context *ctx);
/* Keeps the duty beyond this behavior; the actor must answer, delegate or drop it eventually. 0:
 * there is none, or no memory to keep it (then answer now). Asking again gives the same one.
 * Thread: loop, inside a behavior. */
JZX_API jzx_request jzx_request_keep(jzx_context *ctx);
/* 1 while the asker waits for the answer; 0: the ask timed out or was cancelled, or the asker is
 * gone, and the work can be spared. Thread: loop, inside the actor that keeps it. */
JZX_API int jzx_request_is_wanted(jzx_context *ctx, jzx_request request);
/* When the time of the asker is up, on the loop's clock; 0: never, or there is no such request. */
JZX_API uint64_t jzx_request_deadline(jzx_context *ctx, jzx_request request);
/* Ends the duty without an answer: the asker is told FORGOTTEN. Errors: NO_SUCH_REF (no request is
 * in hand, or another actor has it). */
JZX_API jzx_err jzx_request_drop(jzx_context *ctx, jzx_request request);

/* The number that a chain of requests and replies shares: that of the request or the reply in hand;
 * 0 for every other message, and outside of a behavior. It goes with an ask from its asker to the
 * actor that answers, also when the request is forwarded or delegated, and back with the reply; an
 * ask that is made with either in hand has the same one. So one number follows a request through
 * actors and dispatchers: failures (jzx_failed_on), traces and the control plane show it. Plain
 * sends and jzx_send_as() do not carry it. Thread: loop, inside a behavior. */
JZX_API uint64_t jzx_correlation(const jzx_context *ctx);
/* The same of a request that was kept: for asks that are made for it later. 0: there is no such
 * request. Thread: loop, inside the actor that keeps it. */
JZX_API uint64_t jzx_request_correlation(jzx_context *ctx, jzx_request request);

/* Answers. On JZX_OK the data is transferred, on an error it stays the caller's. Thread: loop,
 * inside the actor that has the request. Errors: NOT_WANTED (the asker timed out, cancelled or
 * ended; the duty is over, and the reply counts as late), NO_SUCH_REF (no request is in hand, or it
 * is not one of this actor: it was answered, passed on or dropped before, or another actor keeps
 * it), RESERVED_TAG, NO_MEMORY (there is no memory for the copy; the duty to answer remains),
 * INVALID_ARG, TOO_BIG (the copy is longer than JZX_COPY_MAX). */
JZX_API jzx_err jzx_reply_u64(jzx_context *ctx, jzx_request request, uint64_t value, uint32_t tag);
JZX_API jzx_err jzx_reply_copy(jzx_context *ctx, jzx_request request, const void *bytes, size_t len,
                               uint32_t tag);
/* The full form: JZX_SEND_COPY, JZX_SEND_VALUE, JZX_SEND_CONSUME and drop; no deadline, no margin.
 * Errors: as jzx_reply_u64(), NEWER_STRUCT. */
JZX_API jzx_err jzx_reply_with_sized(jzx_context *ctx, jzx_request request,
                                     const jzx_send_opts *opts, size_t opts_size);
static inline jzx_err jzx_reply_with(jzx_context *ctx, jzx_request request,
                                     const jzx_send_opts *opts)
{
    return jzx_reply_with_sized(ctx, request, opts, sizeof *opts);
}

/* Sends another message to another actor, which from now on has the duty to answer. Errors: as
 * jzx_send_with(), NO_SUCH_REF (no request is in hand, or it is not one of this actor),
 * NOT_WANTED. */
JZX_API JZX_NODISCARD jzx_err jzx_delegate_sized(jzx_context *ctx, jzx_request request,
                                                 jzx_actor_id to, const jzx_send_opts *opts,
                                                 size_t opts_size);
static inline JZX_NODISCARD jzx_err jzx_delegate(jzx_context *ctx, jzx_request request,
                                                 jzx_actor_id to, const jzx_send_opts *opts)
{
    return jzx_delegate_sized(ctx, request, to, opts, sizeof *opts);
}

/* Asks from a thread that runs no actor, and waits. *out says how it ended; on REPLIED the message
 * is in *msg (NULL: it is released) and its data the caller's: release it with jzx_reply_release().
 * opts->on_reply, arg and failure are not used. Returns out->err. Thread: any but one inside an
 * actor's code. Errors: as jzx_send_async_with(), DEADLOCK (called inside an actor's code, which
 * would wait for itself), TIMED_OUT (the outcome is TIMED_OUT or EXPIRED), NO_SUCH_ACTOR (the
 * outcome is NO_SUCH_ACTOR or CALLEE_DIED), AGAIN (the outcome is CALLEE_RESTARTED or FORGOTTEN),
 * MAILBOX_FULL, LOOP_CLOSED (the outcome is CANCELLED: the system was destroyed). */
JZX_API JZX_NODISCARD jzx_err jzx_ask_wait_sized(jzx_sender *sender, jzx_actor_id to,
                                                 const jzx_ask_opts *opts, size_t opts_size,
                                                 jzx_reply *out, size_t out_size, jzx_message *msg);
static inline JZX_NODISCARD jzx_err jzx_ask_wait(jzx_sender *sender, jzx_actor_id to,
                                                 const jzx_ask_opts *opts, jzx_reply *out,
                                                 jzx_message *msg)
{
    return jzx_ask_wait_sized(sender, to, opts, sizeof *opts, out, sizeof *out, msg);
}
/* Releases what jzx_ask_wait() gave: the copy, or by the message's `drop`. Data without either is
 * the caller's to free. Thread: any. */
JZX_API void jzx_reply_release(jzx_sender *sender, jzx_message *msg);

#ifdef __cplusplus
}
#endif
#endif
