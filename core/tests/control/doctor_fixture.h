/* What the suites of the doctor share: an actor that makes every mistake it is told to make, a
 * supervisor, and a look at what the facts of the program mean. Define _GNU_SOURCE. */
#ifndef JZT_DOCTOR_FIXTURE_H
#define JZT_DOCTOR_FIXTURE_H

#include "look_fixture.h"

#include <doctor.h>

enum {
    NOTHING = 1,
    ASK_A_WHILE,
    END,
    STAY,
    SLEEP,
    BURST,
    FAIL,
    KEEP,
    ASK_FOR_EVER,
    FORGET,
    BREED,
    ASK_OFTEN,
    KEEP_ALL,
    ANSWER_ALL,
    BURST_AND_KILL
};

enum { OFTEN = 30 };

typedef struct one {
    jzx_actor_id id;
    jzx_actor_id peer;
    atomic_bool released;
    atomic_uint handled;
    uint32_t children;
    uint32_t child_stop_ms;
    uint32_t kept_count;
    jzx_request kept[OFTEN];
} one;

static inline jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static inline void breed(jzx_context *ctx, const one *self)
{
    for (uint32_t i = 0; i < self->children; i++) {
        CHECK_OK(jzx_spawn(
            ctx->loop, &(jzx_spawn_opts){.behavior = idle, .stop_timeout_ms = self->child_stop_ms},
            NULL));
    }
}

static inline void ask_often(jzx_context *ctx, const one *self)
{
    for (int i = 0; i < OFTEN; i++) {
        CHECK_OK(jzx_ask(ctx->loop, self->peer,
                         &(jzx_ask_opts){.tag = KEEP_ALL,
                                         .flags = JZX_SEND_VALUE,
                                         .timeout_ms = JZX_ASK_NO_TIMEOUT},
                         NULL));
    }
}

static inline void answer_all(jzx_context *ctx, one *self)
{
    for (uint32_t i = 0; i < self->kept_count; i++) {
        (void)jzx_reply_u64(ctx, self->kept[i], 1, NOTHING);
    }
    self->kept_count = 0;
}

static inline jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    one *self = ctx->state;
    switch (msg->tag) {
    case STAY:
        while (!atomic_load(&self->released)) {
        }
        break;
    case SLEEP:
        nanosleep(&(struct timespec){.tv_nsec = 110000000}, NULL);
        break;
    case BURST: /* more than it can take */
    case BURST_AND_KILL:
        for (int i = 0; i < 400; i++) {
            jzx_err err = jzx_send_u64(ctx->loop, self->peer, 0, NOTHING);
            CHECK(err == JZX_OK || err == JZX_ERR_MAILBOX_FULL);
        }
        if (msg->tag == BURST_AND_KILL) {
            CHECK_OK(jzx_kill(ctx->loop, self->peer));
        }
        break;
    case FAIL:
        atomic_fetch_add(&self->handled, 1);
        return JZX_BEHAVIOR_FAIL;
    case KEEP:
        CHECK(jzx_request_keep(ctx) != 0);
        break;
    case ASK_FOR_EVER:
    case ASK_A_WHILE:
        CHECK_OK(jzx_ask(
            ctx->loop, self->peer,
            &(jzx_ask_opts){.tag = KEEP,
                            .flags = JZX_SEND_VALUE,
                            .timeout_ms = msg->tag == ASK_A_WHILE ? 60000 : JZX_ASK_NO_TIMEOUT},
            NULL));
        break;
    case END:
        return JZX_BEHAVIOR_STOP;
    case BREED:
        breed(ctx, self);
        break;
    case FORGET: /* data that nobody can release, to one who is not there to take it */
        CHECK_OK(jzx_send(ctx->loop, self->peer, self, 1, NOTHING));
        CHECK_OK(jzx_kill(ctx->loop, self->peer));
        break;
    case ASK_OFTEN:
        ask_often(ctx, self);
        break;
    case KEEP_ALL:
        self->kept[self->kept_count++] = jzx_request_keep(ctx);
        break;
    case ANSWER_ALL:
        answer_all(ctx, self);
        break;
    default:
        break;
    }
    if (msg->kind != JZX_KIND_REPLY) {
        atomic_fetch_add(&self->handled, 1);
    }
    return JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static inline void spawn(program *p, one *self, jzx_spawn_opts opts)
{
    opts.behavior = behave;
    opts.state = self;
    REQUIRE_OK(jzx_spawn(p->loop, &opts, &self->id));
}

static inline void tell(program *p, jzx_actor_id id, uint32_t tag)
{
    REQUIRE_OK(jzx_send_async_u64(p->sender, id, 0, tag));
}

static inline void wait_handled(const one *self, unsigned count)
{
    uint64_t end = now_ms() + 20000;
    while (atomic_load(&self->handled) < count && now_ms() < end) {
        nap();
    }
    REQUIRE(atomic_load(&self->handled) >= count);
}

/* Asks for the facts, and puts what they mean into p->answer. */
static inline void examine(program *p)
{
    json_t *facts = json_loads(ask(p, JZD_QUESTION "}"), 0, NULL);
    REQUIRE(json_is_object(facts));
    REQUIRE(json_is_true(json_object_get(facts, "ok")));
    json_t *findings = jzd_findings(facts);
    char *text = json_dumps(findings, JSON_COMPACT);
    REQUIRE(text != NULL);
    free(p->answer);
    p->answer = text;
    p->cap = strlen(text) + 1;
    json_decref(findings);
    json_decref(facts);
}

/* Examines again until it is as it should be, which is soon. */
#define EXAMINE_UNTIL(condition, p)                                                                \
    do {                                                                                           \
        uint64_t until_ms = now_ms() + 120000;                                                     \
        examine(p);                                                                                \
        while (!(condition) && now_ms() < until_ms) {                                              \
            nap();                                                                                 \
            examine(p);                                                                            \
        }                                                                                          \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s\n", (p)->answer);                                                  \
        }                                                                                          \
        REQUIRE(condition);                                                                        \
    } while (0)

/* Where a rule is among the findings; -1: it is not. */
static inline int index_of(const char *answer, const char *rule)
{
    size_t count = count_at(answer, "findings");
    for (size_t i = 0; i < count; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "findings.%zu.rule", i);
        if (strcmp(text_at(answer, path), rule) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Asks until the rule is found, and checks what is said of it. Only it is found, and `besides`. */
static inline void check_found(program *p, const char *rule, const char *severity,
                               jzx_actor_id actor, const char *word, const char *besides)
{
    EXAMINE_UNTIL(index_of(p->answer, rule) >= 0, p);
    char path[64];
    int at = index_of(p->answer, rule);
    (void)snprintf(path, sizeof path, "findings.%d.severity", at);
    CHECK_STR(text_at(p->answer, path), severity);
    (void)snprintf(path, sizeof path, "findings.%d.actor", at);
    CHECK_EQ(actor_at(p->answer, path), actor);
    (void)snprintf(path, sizeof path, "findings.%d.text", at);
    if (strstr(text_at(p->answer, path), word) == NULL) {
        CHECK_STR(text_at(p->answer, path), word);
    }
    const char *text = text_at(p->answer, path);
    CHECK_EQ(text[strlen(text) - 1], '.');
    (void)snprintf(path, sizeof path, "findings.%d.advice", at);
    text = text_at(p->answer, path);
    CHECK(strlen(text) > 10 && text[strlen(text) - 1] == '.');
    for (size_t i = 0; i < count_at(p->answer, "findings"); i++) {
        (void)snprintf(path, sizeof path, "findings.%zu.rule", i);
        text = text_at(p->answer, path);
        if (strcmp(text, rule) != 0 && strcmp(text, besides) != 0) {
            CHECK_STR(text, rule);
        }
    }
}

static inline jzx_actor_id supervise(program *p, const jzx_supervisor_spec *spec,
                                     const jzx_child_spec *children, size_t count)
{
    jzx_actor_id sup = JZX_NOBODY;
    REQUIRE_OK(jzx_spawn_supervisor(
        p->loop,
        &(jzx_supervisor_init){
            .name = "sup", .spec = spec, .children = children, .child_count = count},
        &sup));
    return sup;
}

static one shared;
static const jzx_child_spec steady = {
    .id = "steady", .behavior = behave, .init = begin, .arg = &shared};

#endif
