/* What the suites of breaker and retry share: a service that does with each request what a script
 * says, and a client that asks what the test tells it to and remembers every answer. Both live in
 * one rig, in virtual time. */
#ifndef JZT_CALL_FIXTURE_H
#define JZT_CALL_FIXTURE_H

#include "puppet.h"

#include <jzx/ask.h>
#include <jzx/behavior.h>
#include <jzx/breaker.h>
#include <jzx/retry.h>

/* What the service does with a request. */
typedef enum act {
    ANSWER, /* its value plus one, tag plus 100 */
    COPY,   /* bytes, more than fit into a message */
    DATA,   /* a string with drop */
    RAW,    /* a string without */
    BAD,    /* an answer that is a failure to those who look */
    LATE,   /* 7, or as late_as says, after late_ms */
    SILENT, /* keeps it and never answers */
    FORGET,
    FAIL,
    STOP
} act;

enum { BAD_TAG = 666, SCRIPT_MAX = 64, SEEN_MAX = 64, ANSWERS_MAX = 256 };
enum { ASK_NOW = 1, CANCEL_NOW, STOP_NOW, LATE_NOW };

extern uint64_t data_drops; /* of all strings, by whatever hook */

void drop_string(void *data);
void drop_string_msg(const jzx_message *msg);
char *new_string(const char *text);
typedef struct seen {
    jzx_message msg; /* data only as bytes */
    char bytes[16];
    uint64_t at_ns;
} seen;

typedef struct service {
    jzx_actor_id id;
    jzx_actor_id supervisor; /* 0: it has none */
    act script[SCRIPT_MAX];  /* for the first requests */
    size_t script_len;
    act then; /* for those after them */
    uint32_t late_ms;
    act late_as; /* ANSWER, DATA or RAW */
    size_t count;
    seen seen[SEEN_MAX];
    uint64_t plain; /* messages that were no asks */
} service;

/* A copy of this needs memory of its own. */
extern const char big[300];

jzx_behavior_result service_behavior(jzx_context *ctx, const jzx_message *msg);
/* Zeroed otherwise; the caller frees it after the rig was closed. */
service *service_start(rig *r, act then, const jzx_spawn_opts *given);
/* The only child of a supervisor that never gives up. */
jzx_actor_id start_supervised(rig *r, const jzx_child_spec *spec, jzx_actor_id *out_supervisor);
service *service_start_supervised(rig *r, act then);
void service_script(service *self, const act *script, size_t len);
#define SCRIPT(service_, ...)                                                                      \
    do {                                                                                           \
        const act script_[] = {__VA_ARGS__};                                                       \
        service_script((service_), script_, COUNT_OF(script_));                                    \
    } while (0)

/* An answer, or the lack of one. */
typedef struct answer {
    uint64_t order;   /* which call it belongs to, from 0 */
    uint32_t outcome; /* of the client's own ask */
    uint32_t tag;
    uint16_t flags;
    bool failed; /* what jzx_call_failed() said, and */
    jzx_call_failure failure;
    uint64_t u64;
    char bytes[16];
    uint64_t at_ns;
} answer;

typedef struct client {
    jzx_actor_id id;
    jzx_ask_opts orders[ANSWERS_MAX];
    jzx_actor_id to[ANSWERS_MAX];
    jzx_ask_ref refs[ANSWERS_MAX];
    jzx_err errs[ANSWERS_MAX]; /* what jzx_ask() said */
    size_t asked;
    answer got[ANSWERS_MAX];
    size_t count;
    uint32_t changes[32]; /* states that breakers told it of */
    size_t change_count;
    jzx_breaker_facts breaker;
    jzx_retry_facts retry;
} client;

jzx_behavior_result client_behavior(jzx_context *ctx, const jzx_message *msg);
client *client_start(rig *r);
/* Tells the client to ask; returns which call it is. Nothing runs yet. */
uint64_t call_with(rig *r, client *c, jzx_actor_id to, const jzx_ask_opts *opts);
uint64_t call(rig *r, client *c, jzx_actor_id to, uint32_t tag);
void call_and_run(rig *r, client *c, jzx_actor_id to, uint32_t tag);
/* The answer to a call that has exactly one. */
const answer *answer_to(const client *c, uint64_t which);
void check_good_at(int line, const client *c, uint64_t which, uint64_t value);
#define CHECK_GOOD(client_, which_, value_) check_good_at(__LINE__, (client_), (which_), (value_))

void check_failed_at(int line, const client *c, uint64_t which, jzx_err err, uint32_t outcome,
                     uint32_t attempts);
#define CHECK_FAILED(client_, which_, err_, outcome_, attempts_)                                   \
    check_failed_at(__LINE__, (client_), (which_), (err_), (outcome_), (attempts_))

/* Asks for the facts and runs until they are there. */
const jzx_breaker_facts *breaker_facts(rig *r, client *c, jzx_actor_id breaker);
const jzx_retry_facts *retry_facts(rig *r, client *c, jzx_actor_id retry);
jzx_actor_id breaker_start(rig *r, const jzx_breaker_opts *opts);
jzx_actor_id retry_start(rig *r, const jzx_retry_opts *opts);
int is_bad(void *arg, const jzx_message *reply);
/* A crowd: clients that ask again and again, on real threads where the dispatcher has them. Every
 * third request is forgotten. */
enum { CROWD = 8, EACH = 200 };

typedef struct walker {
    jzx_actor_id door;
    jzx_actor_id collector;
    uint32_t left;
    uint32_t good, bad, refused;
} walker;

typedef struct crowd {
    jzx_kit *kit;
    jzx_actor_id service, collector;
    walker walkers[CROWD];
    uint64_t served;
    uint32_t waiting; /* walkers that are not done */
    uint64_t good, bad, refused;
} crowd;

void crowd_open(crowd *c);
/* Each of them asks at the door, one call after the other, and hears of each once. */
void crowd_run(crowd *c, jzx_actor_id door);
void crowd_close(crowd *c);
#endif
