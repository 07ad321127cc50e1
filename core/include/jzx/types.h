/* Ids, errors, messages, reasons and the allocator: what every other header speaks in.
 *
 * Threads are named the same way everywhere. "Thread: loop" means the thread that is inside
 * jzx_loop_run() or jzx_loop_step(), or, while no thread is, any one thread at a time. "Thread:
 * any" means any thread at any time. Debug builds abort with a sentence when the rule is broken.
 *
 * A NULL loop, sender or required pointer gives JZX_ERR_INVALID_ARG; functions without an error
 * result then do nothing and return 0, NULL, "" or -1. out_id and out_ref may be NULL. */
#ifndef JZX_TYPES_H
#define JZX_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define JZX_API __attribute__((visibility("default")))
#define JZX_NODISCARD __attribute__((warn_unused_result))
#define JZX_NORETURN __attribute__((noreturn))
#else
#define JZX_API
#define JZX_NODISCARD
#define JZX_NORETURN
#endif

#define JZX_VERSION_MAJOR 0
#define JZX_VERSION_MINOR 1
#define JZX_VERSION_PATCH 0
#define JZX_VERSION_STRING "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_loop jzx_loop;

/* Zero or negative; a value is never given a second meaning. jzx_strerror() has the sentences. */
typedef enum jzx_err {
    JZX_OK = 0,
    JZX_ERR_INVALID_ARG = -1,
    JZX_ERR_NO_MEMORY = -2,
    JZX_ERR_NO_SUCH_ACTOR = -3,
    JZX_ERR_STOPPING = -4,
    JZX_ERR_MAILBOX_FULL = -5,
    JZX_ERR_MAX_ACTORS = -6,
    JZX_ERR_RESERVED_TAG = -7,
    JZX_ERR_LOOP_CLOSED = -8,
    JZX_ERR_BUSY = -9,
    JZX_ERR_ALREADY = -10,
    JZX_ERR_NO_SUCH_TIMER = -11,
    JZX_ERR_NO_SUCH_REF = -12,
    JZX_ERR_NEWER_STRUCT = -13,
    JZX_ERR_TOO_BIG = -14,
    JZX_ERR_NOT_SUPPORTED = -15,
    JZX_ERR_BAD_FD = -16,
    JZX_ERR_FD_WATCHED = -17,
    JZX_ERR_BUFFER_FULL = -18,
    JZX_ERR_CLOSED = -19,
    JZX_ERR_AGAIN = -20,
    JZX_ERR_TIMED_OUT = -21,
    JZX_ERR_BAD_ADDRESS = -22,
    JZX_ERR_ADDRESS_IN_USE = -23,
    JZX_ERR_CONN_REFUSED = -24,
    JZX_ERR_CONN_RESET = -25,
    JZX_ERR_UNREACHABLE = -26,
    JZX_ERR_NO_ACCESS = -27,
    JZX_ERR_NO_FDS = -28,
    JZX_ERR_NOT_FOUND = -29,
    JZX_ERR_IO = -30,
    JZX_ERR_BAD_SPEC = -31,
    JZX_ERR_DUPLICATE_CHILD = -32,
    JZX_ERR_NOT_RESTARTABLE = -33,
    JZX_ERR_NO_SUCH_CHILD = -34,
    JZX_ERR_CHILD_PRESENT = -35,
    JZX_ERR_CHILD_RUNNING = -36,
    JZX_ERR_CHILD_RESTARTING = -37,
    JZX_ERR_WRONG_SUPERVISOR = -38,
    JZX_ERR_START_FAILED = -39,
    JZX_ERR_STUCK = -40,
    JZX_ERR_NO_SUCH_DISPATCHER = -41,
    JZX_ERR_MAX_DISPATCHERS = -42,
    JZX_ERR_WRONG_DISPATCHER = -43,
    JZX_ERR_QUEUE_FULL = -44,
    JZX_ERR_NO_THREADS = -45,
    JZX_ERR_NO_SPACE = -46,
    JZX_ERR_DEADLOCK = -47,
    JZX_ERR_NOT_WANTED = -48,
    JZX_ERR_STASH_FULL = -49,
    JZX_ERR_STASH_EMPTY = -50,
    JZX_ERR_NAME_TAKEN = -51,
    JZX_ERR_NO_SUCH_NAME = -52,
    JZX_ERR_NO_SUCH_GROUP = -53,
    JZX_ERR_NO_SUCH_TOPIC = -54,
    JZX_ERR_WRONG_TYPE = -55,
    JZX_ERR_NO_TRANSITION = -56,
    JZX_ERR_BAD_DEMAND = -57,
    JZX_ERR_CIRCUIT_OPEN = -58,
    JZX_ERR_NO_BUDGET = -59,
    JZX_ERR_NO_WORKERS = -60,
    JZX_ERR_FENCED = -61,
    JZX_ERR_CONFLICT = -62,
    JZX_ERR_IN_DOUBT = -63,
    JZX_ERR_CORRUPT = -64,
    JZX_ERR_NEWER_SCHEMA = -65,
    JZX_ERR_MAP_FULL = -66,
    JZX_ERR_OWNED = -67,
    JZX_ERR_FORKED = -68,
    JZX_ERR_REMOTE_FS = -69,
    JZX_ERR_FOREIGN_PAGES = -70,
    JZX_ERR_READ_ONLY = -71,
    JZX_ERR_NOT_A_MANIFEST = -72,
    JZX_ERR_WRONG_STATE = -73
} jzx_err;

/* A sentence a user can act on, never NULL, also for values that are no jzx_err. Thread: any. */
JZX_API const char *jzx_strerror(int err);
/* The constant's own name, "JZX_ERR_MAILBOX_FULL", or "JZX_ERR_UNKNOWN". Thread: any. */
JZX_API const char *jzx_err_name(int err);
/* The version of the library that is loaded, for comparison with JZX_VERSION_STRING. */
JZX_API const char *jzx_version(void);

/* An actor id (R1): generation in the high half; dispatcher and slot in the low half. An id never
 * means another actor than the one it was given to. 0 is no actor. */
typedef uint64_t jzx_actor_id;
#define JZX_NOBODY ((jzx_actor_id)0)

/* The id of two halves, as jzx_id_generation() and jzx_id_index() give them: for ids that were
 * stored or sent in parts. A made-up id finds no actor; no actor has generation 0. */
static inline jzx_actor_id jzx_make_id(uint32_t generation, uint32_t index)
{
    return ((jzx_actor_id)generation << 32) | index;
}
static inline uint32_t jzx_id_generation(jzx_actor_id id)
{
    return (uint32_t)(id >> 32);
}
static inline uint32_t jzx_id_index(jzx_actor_id id)
{
    return (uint32_t)id;
}
static inline uint32_t jzx_id_slot(jzx_actor_id id)
{
    return (uint32_t)id & 0xFFFFFFu;
}
static inline uint32_t jzx_id_dispatcher(jzx_actor_id id)
{
    return ((uint32_t)id >> 24) & 0xFFu;
}

typedef uint64_t jzx_timer_id;  /* 0 is no timer */
typedef uint64_t jzx_watch_ref; /* one jzx_watch(); 0 is none */
typedef uint64_t jzx_ask_ref;   /* one jzx_ask(); 0 is none */
typedef uint64_t
    jzx_io_ref; /* an fd watch, listener, connection, signal, child or path; 0 is none */

/* What a descriptor can be ready for. READ and WRITE are asked for; HANGUP and ERROR always come.
 */
#define JZX_IO_READ 0x01u
#define JZX_IO_WRITE 0x02u
#define JZX_IO_HANGUP 0x04u
#define JZX_IO_ERROR 0x08u

/* The longest wait, and the absence of a deadline. */
#define JZX_TIMEOUT_INFINITE UINT64_MAX

/* Tags from here up are the system's; sends that use them are refused. */
#define JZX_TAG_SYSTEM_FIRST 0xFF000000u
/* Tag of a room notice; see jzx_notify_room(). */
#define JZX_TAG_ROOM 0xFF000001u
/* Tags of lifecycle notices to an actor without on_signal; data points to a jzx_signal. */
#define JZX_TAG_TERMINATED 0xFF000010u
#define JZX_TAG_EXIT 0xFF000011u
#define JZX_TAG_CHILD_FAILED 0xFF000012u
#define JZX_TAG_CHILD_ENDED 0xFF000013u
#define JZX_TAG_RESTARTED 0xFF000014u
/* There are dead letters to read; see jzx_dead_letters_subscribe(). */
#define JZX_TAG_DEAD_LETTERS 0xFF000015u
/* A child is RUNNING; data points to a jzx_signal, as for the lifecycle notices above. */
#define JZX_TAG_CHILD_STARTED 0xFF000016u
/* An ask ended without a reply; data points to a jzx_reply. See jzx/ask.h. */
#define JZX_TAG_ASK_FAILED 0xFF000020u
/* A name was registered, or was not in time; data points to a jzx_name_notice. See jzx/registry.h.
 */
#define JZX_TAG_NAME 0xFF000021u
/* A watched group changed; data points to a jzx_group_notice. */
#define JZX_TAG_GROUP 0xFF000022u
/* A subscriber of a bus missed events; data points to a jzx_lag_notice. See jzx/bus.h. */
#define JZX_TAG_LAGGED 0xFF000023u
/* Tags from here up to JZX_TAG_SYSTEM_FIRST are used by the patterns of this library in messages
 * between their own actors. Nothing refuses them; leave them alone. */
#define JZX_TAG_PATTERN_FIRST 0xFE000000u

/* What made a message. Only the runtime sets it, so it cannot be forged (R7). */
typedef enum jzx_kind {
    JZX_KIND_USER = 0,   /* sent by an actor or by the program */
    JZX_KIND_TIMER = 1,  /* jzx_send_after(), jzx_timer_start() */
    JZX_KIND_IO = 2,     /* data points to a jzx_io_event, borrowed for the call */
    JZX_KIND_NOTICE = 3, /* data points to a notice that the tag names, borrowed for the call */
    JZX_KIND_REPLY = 4,  /* the answer to jzx_ask() */
    JZX_KIND_JOB = 5,    /* the result of jzx_run_blocking() */
    JZX_KIND_FILE = 6,   /* data points to a jzx_file_event, borrowed for the call */
    JZX_KIND_EVENT = 7   /* published on a bus; data is shared and borrowed for the call */
} jzx_kind;

/* Bits of jzx_message.flags. */
#define JZX_MSG_VALUE 0x01u    /* u64 holds the value; there is nothing to free */
#define JZX_MSG_COPY 0x02u     /* data is the runtime's copy, borrowed for the call */
#define JZX_MSG_URGENT 0x04u   /* came by the urgent lane */
#define JZX_MSG_BORROWED 0x08u /* data is borrowed for the call: I/O, notices, periodic */

/* What a behavior receives. Frozen: 48 bytes.
 *
 * With `drop` set, data stays the runtime's during the call and is dropped after the behavior
 * returned, failed or panicked, unless jzx_message_take() moved it to the actor. Without `drop`,
 * data belongs to the behavior from here on (R4). With data NULL there is nothing to release: no
 * drop is called and nothing counts as abandoned. */
typedef struct jzx_message {
    union {
        void *data;
        uint64_t u64; /* with JZX_MSG_VALUE */
    };
    size_t len;
    uint32_t tag;
    uint8_t kind;        /* jzx_kind */
    uint8_t flags;       /* JZX_MSG_* */
    uint16_t reserved;   /* the runtime's own */
    jzx_actor_id sender; /* 0: not sent by an actor */
    void (*drop)(void *data);
    uint64_t deadline_ns; /* on the loop's clock; 0: none. Of a timer message: when it was due */
} jzx_message;

/* Whose the data of a message is (R4). */
typedef enum jzx_owner {
    JZX_OWNER_NOBODY = 0,   /* there is none to release: a value, or data is NULL */
    JZX_OWNER_BORROWED = 1, /* the runtime's, for the call: copies, I/O, notices, periodic timers */
    JZX_OWNER_RUNTIME = 2,  /* the runtime's, which drops it; jzx_message_take() moves it */
    JZX_OWNER_ACTOR = 3     /* the receiver's, which releases it */
} jzx_owner;

/* The owner of a message as a behavior gets it, found by a look at the message alone. After
 * jzx_message_take() what was the runtime's is the actor's. NULL has no owner. Thread: any. */
static inline jzx_owner jzx_message_owner(const jzx_message *msg)
{
    if (msg == NULL || (msg->flags & JZX_MSG_VALUE) != 0 || msg->data == NULL) {
        return JZX_OWNER_NOBODY;
    }
    if ((msg->flags & (JZX_MSG_COPY | JZX_MSG_BORROWED)) != 0) {
        return JZX_OWNER_BORROWED;
    }
    return msg->drop != NULL ? JZX_OWNER_RUNTIME : JZX_OWNER_ACTOR;
}

/* How an actor, or one incarnation of it, ended. NORMAL and SHUTDOWN are normal ends; everything
 * else is a failure. */
typedef enum jzx_reason_kind {
    JZX_REASON_NORMAL = 0,   /* returned JZX_BEHAVIOR_STOP */
    JZX_REASON_SHUTDOWN = 1, /* was asked to: jzx_stop(), its supervisor, the system */
    JZX_REASON_KILLED = 2,   /* jzx_kill(), a brutal shutdown, jzx_loop_destroy() */
    JZX_REASON_FAILED = 3,   /* returned JZX_BEHAVIOR_FAIL; code and text of jzx_fail() */
    JZX_REASON_PANIC = 4,    /* jzx_panic() */
    JZX_REASON_CRASH = 5,    /* crash guard: code is the signal's number */
    JZX_REASON_START_FAILED =
        6, /* init, PRE_START or POST_START failed; code and text are theirs */
    JZX_REASON_STOP_TIMEOUT = 7, /* was asked to stop and did not in time */
    JZX_REASON_GAVE_UP = 8,      /* a supervisor over its restart limit; from: the child */
    JZX_REASON_ESCALATED = 9,    /* a child's failure was handed up; from: the child */
    JZX_REASON_LINKED = 10,      /* a linked actor ended; from: that actor */
    JZX_REASON_STUCK = 11,       /* it does not return from its behavior */
    JZX_REASON_NOPROC = 12,      /* there was no such actor when the watch or link was placed */
    JZX_REASON_NOCONNECTION = 13 /* the way to it was lost */
} jzx_reason_kind;

#define JZX_REASON_TEXT_MAX 95
typedef struct jzx_reason {
    uint32_t kind; /* jzx_reason_kind */
    int32_t code;
    jzx_actor_id from; /* 0, or the actor that caused it */
    char text[JZX_REASON_TEXT_MAX + 1];
} jzx_reason;

/* The message that an actor had in hand when it failed. */
typedef struct jzx_failed_on {
    uint64_t correlation; /* jzx_correlation() of it; 0: none */
    jzx_actor_id sender;
    uint32_t tag;
    uint8_t kind; /* jzx_kind */
    uint8_t
        there; /* 1; 0: it failed without one (in a hook, by a link, killed), and all else is 0 */
    uint16_t reserved;
} jzx_failed_on;

/* The constant's name in lower case: "normal", "panic". Never NULL. Thread: any. */
JZX_API const char *jzx_reason_name(uint32_t kind);
/* 1 for NORMAL and SHUTDOWN, else 0. Thread: any. */
JZX_API int jzx_reason_is_normal(uint32_t kind);
/* "panic 7: disk full", as snprintf(3): returns the length it wanted. Thread: any. */
JZX_API int jzx_reason_format(const jzx_reason *reason, char *buf, size_t cap);

/* Frozen. ptr NULL allocates, new_size 0 frees and returns NULL, and a NULL result for a new_size
 * above 0 means that nothing changed. Results are aligned for any type. Must be callable from
 * every thread that sends, and must live until the loop and all of its senders are gone. */
typedef struct jzx_allocator {
    void *(*realloc)(void *ctx, void *ptr, size_t old_size, size_t new_size);
    void *ctx;
} jzx_allocator;

#ifdef __cplusplus
}
#endif
#endif
