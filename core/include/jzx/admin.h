/* Administration by message: what jzx/supervisor.h does to a supervisor on the caller's own
 * dispatcher, for callers anywhere.
 *
 * A request is an ask (jzx/ask.h) to the supervisor; it is answered exactly once. The supervisor
 * does what the call of the same name would do, when its turn comes: also one that is starting
 * answers as soon as it runs. Actors get the answer as a message of kind REPLY; threads that run no
 * actors wait for it.
 *
 * Routers and flows need nothing of their own: a router's orders (JZX_TAG_ROUTER_RESIZE, _STATS)
 * are messages that any dispatcher and any thread may send or ask, and so are the calls that
 * connect flows. */
#ifndef JZX_ADMIN_H
#define JZX_ADMIN_H

#include <jzx/ask.h>
#include <jzx/sender.h>
#include <jzx/supervisor.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The tag of requests and answers. */
#define JZX_TAG_ADMIN 0xFE060000u

/* What is asked for, and which fields of the request it takes. */
typedef enum jzx_admin_what {
    JZX_ADMIN_START_CHILD = 1,     /* spec */
    JZX_ADMIN_START_DYNAMIC = 2,   /* arg, drop_arg */
    JZX_ADMIN_TERMINATE_CHILD = 3, /* child_id */
    JZX_ADMIN_TERMINATE = 4,       /* child */
    JZX_ADMIN_RESTART_CHILD = 5,   /* child_id */
    JZX_ADMIN_DELETE_CHILD = 6,    /* child_id */
    JZX_ADMIN_RECONFIGURE = 7,     /* rules */
    JZX_ADMIN_RESTART = 8,         /* child: jzx_restart() */
    JZX_ADMIN_CHILDREN = 9,
    JZX_ADMIN_CHILD = 10, /* child_id */
    JZX_ADMIN_COUNT = 11,
    JZX_ADMIN_PLAN = 12 /* child */
} jzx_admin_what;

/* Zero is the default everywhere but in `what`. Everything is copied. */
typedef struct jzx_admin_request {
    uint32_t what;       /* jzx_admin_what */
    uint32_t timeout_ms; /* for the answer, as in jzx_ask_opts; 0: 5,000 */
    const char *child_id;
    jzx_actor_id child;
    const jzx_child_spec *spec; /* checked at once, but for what depends on the supervisor */
    const jzx_supervisor_spec *rules;
    void *arg; /* for init */
    /* Releases arg if no child gets it after all: the supervisor refused, or is gone. */
    void (*drop_arg)(void *arg);
    /* NULL, or set to 1 when the request was sent: from then on arguments with a drop_arg (of spec,
     * of those nested in it, and `arg`) are the runtime's, whatever the answer is; else to 0. */
    int *out_taken;
    jzx_behavior_fn on_reply; /* of jzx_admin_ask(), as in jzx_ask_opts */
    void *reply_arg;          /* likewise: comes back in the jzx_reply */
} jzx_admin_request;

/* What the supervisor says. Belongs to the message, or to the caller of jzx_admin_wait(). */
typedef struct jzx_admin_answer {
    int32_t err;   /* jzx_err of the call of the same name */
    uint32_t what; /* as in the request */
    jzx_actor_id supervisor;
    jzx_actor_id child;  /* START_CHILD, START_DYNAMIC, RESTART_CHILD: its actor */
    uint32_t count;      /* CHILDREN, CHILD: how many are in `children`; PLAN: in `steps` */
    uint32_t child_size; /* of each of `children`, in the library's version */
    const jzx_child_info *children; /* use jzx_admin_child_at(); strings go with the answer */
    const jzx_plan_step *steps;     /* likewise */
    jzx_child_counts counts;        /* COUNT */
} jzx_admin_answer;
static inline const jzx_child_info *jzx_admin_child_at(const jzx_admin_answer *answer, uint32_t at)
{
    const char *first = (const char *)answer->children;
    return (const jzx_child_info *)(const void *)(first + (size_t)at * answer->child_size);
}

/* Structs that grow: the sizes the caller was compiled with. */
typedef struct jzx_admin_sizes {
    size_t request;
    jzx_supervisor_sizes specs;
} jzx_admin_sizes;

/* Asks from an actor, on any dispatcher. JZX_OK: exactly one message of kind REPLY follows, as
 * jzx_ask() says. Thread: loop, inside an actor. Errors: INVALID_ARG (`what` is unknown, or a field
 * that it takes is missing), TOO_BIG (`child_id` is too long), NEWER_STRUCT, as
 * jzx_supervisor_start_child(), as jzx_ask(). */
JZX_API JZX_NODISCARD jzx_err jzx_admin_ask_sized(jzx_loop *loop, jzx_actor_id supervisor,
                                                  const jzx_admin_request *request,
                                                  jzx_admin_sizes sizes, jzx_ask_ref *out_ref);
static inline JZX_NODISCARD jzx_err jzx_admin_ask(jzx_loop *loop, jzx_actor_id supervisor,
                                                  const jzx_admin_request *request,
                                                  jzx_ask_ref *out_ref)
{
    jzx_admin_sizes sizes = {
        sizeof(jzx_admin_request),
        {sizeof(jzx_supervisor_init), sizeof(jzx_supervisor_spec), sizeof(jzx_child_spec)}};
    return jzx_admin_ask_sized(loop, supervisor, request, sizes, out_ref);
}
/* The answer in a message of kind REPLY, borrowed like the message; NULL: it is something else,
 * also JZX_TAG_ASK_FAILED, where a jzx_reply says why there is none. Thread: any. */
JZX_API const jzx_admin_answer *jzx_admin_answer_of(const jzx_message *msg);

/* Asks from a thread that runs no actor, and waits. Returns the answer's `err`, which is that of
 * the call of the same name, or why there is no answer. *out_answer (unless NULL) is the caller's
 * if there was one, to be released by jzx_admin_answer_free(), else NULL. Thread: any but one
 * inside an actor's code. Errors: as jzx_admin_ask(), as jzx_ask_wait(). */
JZX_API JZX_NODISCARD jzx_err jzx_admin_wait_sized(jzx_sender *sender, jzx_actor_id supervisor,
                                                   const jzx_admin_request *request,
                                                   jzx_admin_sizes sizes,
                                                   jzx_admin_answer **out_answer);
static inline JZX_NODISCARD jzx_err jzx_admin_wait(jzx_sender *sender, jzx_actor_id supervisor,
                                                   const jzx_admin_request *request,
                                                   jzx_admin_answer **out_answer)
{
    jzx_admin_sizes sizes = {
        sizeof(jzx_admin_request),
        {sizeof(jzx_supervisor_init), sizeof(jzx_supervisor_spec), sizeof(jzx_child_spec)}};
    return jzx_admin_wait_sized(sender, supervisor, request, sizes, out_answer);
}
/* NULL is fine. Thread: any. */
JZX_API void jzx_admin_answer_free(jzx_admin_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
