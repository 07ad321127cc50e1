/* A breaker between a client and a scripted service. */
#ifndef JZT_BREAKER_KIT_H
#define JZT_BREAKER_KIT_H

#include "call_fixture.h"

#include <jzx/dead_letter.h>

/* A service, a breaker before it, and a client that also listens. */
typedef struct bench {
    rig r;
    service *service;
    client *client;
    jzx_actor_id breaker;
} bench;

/* Two failures open it for 100 ms, unless the options say otherwise. */
static inline bench bench_open_on(rig r, service *callee, const jzx_breaker_opts *given)
{
    bench b = {.r = r, .service = callee};
    b.client = client_start(&b.r);
    jzx_breaker_opts opts = *given;
    if (opts.find == NULL) {
        opts.callee = b.service->id;
    }
    opts.listener = b.client->id;
    opts.drop_msg = drop_string_msg;
    opts.window_calls = opts.window_calls != 0 ? opts.window_calls : 2;
    opts.open_ms = opts.open_ms != 0 ? opts.open_ms : 100;
    b.breaker = breaker_start(&b.r, &opts);
    return b;
}

static inline bench bench_open(act then, const jzx_breaker_opts *given)
{
    rig r = rig_open(NULL);
    data_drops = 0;
    return bench_open_on(r, service_start(&r, then, NULL), given);
}

static inline void bench_close(bench *b)
{
    rig_close(&b->r);
    free(b->service);
    free(b->client);
}

static inline void ask(bench *b, uint32_t tag)
{
    call_and_run(&b->r, b->client, b->breaker, tag);
}

static inline const jzx_breaker_facts *facts(bench *b)
{
    return breaker_facts(&b->r, b->client, b->breaker);
}

/* Two calls that nobody answers. */
static inline void open_circuit(bench *b)
{
    act before = b->service->then;
    b->service->then = FORGET;
    ask(b, 1);
    ask(b, 1);
    b->service->then = before;
    REQUIRE_EQ(facts(b)->state, JZX_BREAKER_OPEN);
}

#endif
