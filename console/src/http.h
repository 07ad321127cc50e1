/* The HTTP side: an actor that drives libmicrohttpd.
 *
 * The library has no thread here. The actor watches its epoll descriptor, lets it run when that is
 * readable or a time is up, and its callbacks run inside of the actor. A request that needs the
 * program is suspended, a wire is asked (jzx_ask), and the answer resumes it.
 *
 *   console (rest_for_one) -+- keeper    looks once per second, and knows the past
 *                           +- steady    a wire, for the keeper
 *                           +- quick     a wire, for what a program answers from its counters
 *                           +- patient   a wire, for what a dispatcher may have to answer
 *                           +- traces    a dynamic supervisor of tracers
 *                           `- http
 */
#ifndef JZC_HTTP_H
#define JZC_HTTP_H

#include "answer.h"
#include "keeper.h"
#include "place.h"
#include "program.h"
#include "route.h"
#include "wire.h"

#include <jzx/actor.h>

#include <microhttpd.h>

/* What does not change while the console runs. */
typedef struct jzc_setup {
    jzc_place place;
    char token[129];
    jzc_program program; /* the wires' */
    jzc_keeper_setup keeper;
    unsigned max_clients;
    bool own; /* the program is this one */
} jzc_setup;

/* An answer that several requests may share. */
typedef struct jzc_cell {
    struct MHD_Response *response;
    unsigned refs;
    unsigned status;
} jzc_cell;

struct jzc_question;

/* A connection, and until when it has to get on: a slow one is cut off. */
typedef struct jzc_client {
    struct jzc_client *next;
    struct jzc_client **link;
    uint64_t deadline_ns;
    uint64_t since_ns; /* when its time began to count */
    int fd;
    bool active;    /* a request of it is being answered, */
    bool receiving; /* or its body is still to come */
    bool gone;      /* the client will send nothing more */
} jzc_client;

/* A request of HTTP from its headers to the end of its answer. */
typedef struct jzc_request {
    struct MHD_Connection *connection;
    jzc_client *client;
    const jzc_route *route;
    jzc_text body;
    bool too_big;
    bool settled;                  /* it was asked, and will not be again */
    jzc_cell *cell;                /* the answer, once there is one */
    struct jzc_question *question; /* that it waits for, suspended */
    struct jzc_request *next;      /* of the requests that wait for the same */
} jzc_request;

/* What the program was asked, the requests that wait for it, and what it said a moment ago. */
typedef struct jzc_question {
    jzc_text text; /* empty: this place is free */
    const jzc_route *route;
    jzc_request *waiters;
    jzc_cell *cell;
    uint64_t stale_ns; /* from then on it has to be asked again; of a farewell: it is told that
                          there is none yet */
    bool asked;        /* the answer is on its way */
} jzc_question;

typedef struct jzc_http {
    jzc_setup *setup;
    jzx_loop *loop;
    jzx_actor_id self;
    jzx_actor_id keeper;
    jzx_actor_id quick;
    jzx_actor_id patient;
    jzx_actor_id traces;
    struct MHD_Daemon *daemon;
    jzx_io_ref watch;
    int hangups; /* an epoll descriptor: which clients have closed; see client.c */
    jzx_io_ref hangup_watch;
    uint64_t timer_ns; /* when the timer is due; 0: there is none */
    bool again;        /* a message to go on is in the mailbox */
    unsigned tracers;
    size_t held; /* bytes of answers that are on their way */
    jzc_client *clients;
    unsigned client_count;
    bool full; /* the library does not accept just now */
    jzc_question *questions;
    size_t question_cap;
} jzc_http;

/* The argument of init is a jzc_setup that outlives the actor. */
jzx_behavior_result jzc_http_init(jzx_context *ctx, void *arg);
jzx_behavior_result jzc_http_behave(jzx_context *ctx, const jzx_message *msg);
void jzc_http_deinit(jzx_context *ctx);

/* client.c */
void jzc_client_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
                       enum MHD_ConnectionNotificationCode code);
jzc_client *jzc_client_of(struct MHD_Connection *connection);
void jzc_client_allow(jzc_http *http, jzc_client *client, unsigned ms);
/* Cuts off clients that are too slow. */
void jzc_clients_look(jzc_http *http, uint64_t now);
/* Notes which clients have closed. */
void jzc_clients_hear(jzc_http *http);
/* Cuts off closed clients that wait for nothing. To be called when the library has nothing to
 * do. */
void jzc_clients_part(jzc_http *http);

/* request.c: what libmicrohttpd calls. */
enum MHD_Result jzc_request_handle(void *cls, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_size, void **request);
void jzc_request_completed(void *cls, struct MHD_Connection *connection, void **request,
                           enum MHD_RequestTerminationCode code);

/* respond.c. Cells are counted: code that keeps one takes it, and gives it back. */
jzc_cell *jzc_cell_of_answer(jzc_http *http, jzc_answer *answer, const char *type); /* transfers */
jzc_cell *jzc_cell_error(jzc_http *http, unsigned status, const char *error, const char *text);
jzc_cell *jzc_cell_of_page(const char *path);
void jzc_cell_give(jzc_cell *cell);

/* question.c */
/* Suspends the request until the program has answered, or takes an answer of a moment ago: then, or
 * if nothing can be asked, request->cell is set. */
void jzc_question_put(jzc_http *http, jzc_request *request, jzc_asked *asked);
/* The behavior for answers: messages of kind REPLY. */
void jzc_question_answered(jzx_context *ctx, jzc_http *http);
/* The request is over, whatever it waited for. */
void jzc_question_forget(jzc_request *request);
void jzc_questions_look(jzc_http *http, uint64_t now);
/* Resumes all requests with an answer that says why: libmicrohttpd stops with none suspended. A
 * request that waited for the farewell gets it. */
void jzc_questions_close(jzc_http *http);

#endif
