/* Shared by the sources of control: the server, its clients and the operations. All of it is the
 * control thread's, unless said otherwise. */
#ifndef JZI_CONTROL_STEPS_H
#define JZI_CONTROL_STEPS_H

#include <jzx/control.h>

#include "control/dispatcher_call.h"
#include "control/json.h"

#include <pthread.h>

typedef struct jzi_client jzi_client;
struct jzi_probe;
struct jzi_question;

/* A trace that goes on after its answer; see op_trace.c. */
typedef struct jzi_trace_stream {
    uint64_t id; /* of the request */
    /* Called every 20 ms or so: writes lines to client->out while there is room. */
    void (*pump)(jzi_client *client);
    /* Called once: by `end`, or because the client is gone. */
    void (*end)(jzi_client *client);
    void *state;
} jzi_trace_stream;

/* What an operation has of a client. The server has more; it begins with this. */
struct jzi_client {
    jzx_control *control;
    jzi_json out;            /* lines that wait to be written */
    jzi_trace_stream stream; /* pump NULL: none */
    const char *error;       /* set by jzi_refuse() */
    char error_text[240];
};
/* Bytes that wait to be read by the client. */
size_t jzi_client_waiting(const jzi_client *client);

/* The parts of a control that operations use. The server's part is in control.c. */
struct jzx_control {
    jzi_view view;
    jzx_control_opts opts; /* texts are copies, owned; path and dump_path are never NULL */
    char *name;
    uint64_t started_ns;
    struct jzi_question *question; /* what the probe asks */
    struct jzi_probe *probe;       /* interrupts workers for a look; see op_stuck.c. NULL: cannot */
    uint64_t metrics_until_ns;     /* times are measured until then; 0: they are not */
    struct jzi_server *server;
    struct jzi_recorder *recorder; /* see flight.h. NULL: not open */
    struct jzi_trace *traces;      /* all that run, of all clients; see op_trace.c */
    uint32_t trace_events;         /* how many more they may read until jzi_traces_refill() */
};

/* An operation: writes members of the answer to client->out and returns true, or false after
 * jzi_refuse(). It may look for some 100 ms; longer makes other clients wait. */
typedef bool (*jzi_op)(jzi_client *client, jzi_request *request);

/* Says why not; returns false. `error` is static. */
bool jzi_refuse(jzi_client *client, const char *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an error of the library. */
bool jzi_refuse_err(jzi_client *client, jzx_err err);
/* The actor that member `name` of the request means, by id or name. False: refused. */
bool jzi_request_actor(jzi_client *client, jzi_request *request, const char *name,
                       jzx_actor_id *out_id);
/* The same for any text. */
bool jzi_find_actor(jzi_client *client, const char *text, jzx_actor_id *out_id);

/* Now, on the program's clock; and on that of the world. */
uint64_t jzi_control_now_ns(const jzx_control *control);
/* Not 0 as soon as a thread waits for the control's end: then nothing is waited for any more. */
const _Atomic uint32_t *jzi_control_over(const jzx_control *control);
static inline bool jzi_control_is_over(const jzx_control *control)
{
    return atomic_load_explicit(jzi_control_over(control), memory_order_relaxed) != 0;
}
/* An object as in `actors`; the members that need two looks are null. */
void jzi_write_snapshot(jzi_client *client, const char *member, const jzi_actor_snapshot *snapshot,
                        uint64_t now_ns);
/* The name of an actor, also of one that ended not long ago, or null; "" is null too. */
void jzi_write_actor_name(jzi_client *client, const char *member, jzx_actor_id id);
/* Name of a dispatcher into a buffer; "" if it is gone. */
void jzi_dispatcher_name(const jzx_control *control, uint32_t index,
                         char out[JZX_DISPATCHER_NAME_MAX + 1]);
/* "frames":[{"pc":..,"text":..}] */
void jzi_write_frames(jzi_client *client, const char *member, void *const *frames, size_t count);
const char *jzi_kind_name(uint32_t kind); /* of a jzx_kind: "user", "timer", ... */
/* "counters":{..},"dead_by":{..},"refused":{..} */
void jzi_write_counters(jzi_json *out, const jzx_counters *all);

/* The operations, by file. */
bool jzi_op_program(jzi_client *client, jzi_request *request); /* op_program.c */
bool jzi_op_actors(jzi_client *client, jzi_request *request);  /* op_actors.c */
bool jzi_op_dead(jzi_client *client, jzi_request *request);    /* op_dead.c */
bool jzi_op_stop(jzi_client *client, jzi_request *request);    /* op_act.c */
bool jzi_op_kill(jzi_client *client, jzi_request *request);
bool jzi_op_restart(jzi_client *client, jzi_request *request);
bool jzi_op_send(jzi_client *client, jzi_request *request);
bool jzi_op_actor(jzi_client *client, jzi_request *request);    /* op_actor.c */
bool jzi_op_failures(jzi_client *client, jzi_request *request); /* op_failures.c */
bool jzi_op_stuck(jzi_client *client, jzi_request *request);    /* op_stuck.c */
bool jzi_op_facts(jzi_client *client, jzi_request *request);    /* op_facts.c */
bool jzi_op_trace(jzi_client *client, jzi_request *request);    /* op_trace.c */
bool jzi_op_record(jzi_client *client, jzi_request *request);   /* op_record.c */
bool jzi_op_dump(jzi_client *client, jzi_request *request);
bool jzi_op_metrics(jzi_client *client, jzi_request *request); /* op_metrics.c */

/* Called by the server before it pumps all streams: what traces may do together until the next
 * time. */
void jzi_traces_refill(jzx_control *control);
/* Called by the server about once per second, and when the control starts and stops. */
void jzi_metrics_tick(jzx_control *control);
/* The probe for stuck workers: opened when the control starts, so that threads let the signal
 * through. Errors are not the control's: it goes on without. */
void jzi_stuck_open(jzx_control *control);
void jzi_stuck_close(jzx_control *control);
/* What a worker's thread is doing just now, asked by a signal. */
typedef struct jzi_doing {
    bool answered;      /* false: blocked signals, or asleep in the kernel */
    jzx_actor_id actor; /* JZX_NOBODY: no actor's code */
    uint32_t tag;
    uint32_t kind;
    bool hook;
    uint32_t frame_count;
    void *frames[32];
} jzi_doing;
void jzi_worker_sample(jzx_control *control, const jzi_worker_snapshot *worker, jzi_doing *out);
/* Writes the flight recorder where the options say. Thread: the control's. Errors: IO, NO_MEMORY.
 */
jzx_err jzi_record_dump(jzx_control *control, const char *why);

#endif
