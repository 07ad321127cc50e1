/* A loop with something alive in it, and a check that a bad call gave its error and nothing else.
 */
#ifndef JZT_API_REFUSED_H
#define JZT_API_REFUSED_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <string.h>

enum { TAG = 1 };

typedef struct fixture {
    jzx_kit *kit;
    jzx_loop *loop;
    jzx_actor_id id;     /* alive, with one message queued and one timer armed */
    jzx_actor_id gone;   /* was alive */
    jzx_counters before; /* what the next bad call must leave as it is */
} fixture;

static inline jzx_behavior_result ignore(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static const jzx_spawn_opts plain = {.behavior = ignore};

static inline void fixture_open(fixture *f)
{
    *f = (fixture){0};
    REQUIRE_OK(jzx_kit_open(&(jzx_kit_opts){.env = jzx_env_epoll()}, &f->kit));
    f->loop = f->kit->loop;
    REQUIRE_OK(jzx_spawn(f->loop, &plain, &f->gone));
    REQUIRE_OK(jzx_stop(f->loop, f->gone));
    REQUIRE_OK(jzx_loop_run_until_idle(f->loop));
    REQUIRE_OK(jzx_spawn(f->loop, &plain, &f->id)); /* very likely in the slot of `gone` */
    REQUIRE_OK(jzx_send_u64(f->loop, f->id, 1, TAG));
    REQUIRE_OK(jzx_send_after(f->loop, f->id, 1000, NULL, 0, TAG, NULL));
    jzx_loop_counters(f->loop, &f->before);
}

static inline void fixture_close(fixture *f)
{
    CHECK_STR(jzx_kit_close(f->kit), NULL);
}

/* After good calls in between. */
static inline void fixture_settled(fixture *f)
{
    CHECK_STR(jzx_loop_audit(f->loop), NULL);
    jzx_loop_counters(f->loop, &f->before);
}

/* Nothing but `refused` may have changed: by one in `counted`, or not at all with NOT_COUNTED. */
enum { NOT_COUNTED = -1 };

static inline void refused_at(fixture *f, const char *file, int line, const char *call, jzx_err got,
                              jzx_err want, int counted)
{
    jzx_counters now;
    jzt_check_str(JZT_CHECK, file, line, call, jzx_err_name(got), jzx_err_name(want));
    jzx_loop_counters(f->loop, &now);
    for (int i = 0; i < JZX_REFUSED_REASONS; i++) {
        uint64_t expected = f->before.refused[i] + (i == counted ? 1 : 0);
        jzt_check_eq(JZT_CHECK, file, line, call, "refused, by reason", (intmax_t)now.refused[i],
                     (intmax_t)expected);
        f->before.refused[i] = now.refused[i];
    }
    jzt_check_true(JZT_CHECK, file, line, "the counters did not change",
                   memcmp(&now, &f->before, sizeof now) == 0);
    jzt_check_str(JZT_CHECK, file, line, "jzx_loop_audit(loop)", jzx_loop_audit(f->loop), NULL);
    f->before = now;
}

#define REFUSED(f, call, want) refused_at(f, __FILE__, __LINE__, #call, call, want, NOT_COUNTED)
#define REFUSED_SEND(f, call, want, counted)                                                       \
    refused_at(f, __FILE__, __LINE__, #call, call, want, counted)

#endif
