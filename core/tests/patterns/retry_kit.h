/* Retries between a client and a scripted service. */
#ifndef JZT_RETRY_KIT_H
#define JZT_RETRY_KIT_H

#include "call_fixture.h"

typedef struct bench {
    rig r;
    service *service;
    client *client;
    jzx_actor_id retry;
} bench;

/* Attempts of 20 ms that follow each other by 10, 20, 40 ms, unless the options say otherwise. */
static inline bench bench_open_on(rig r, service *callee, const jzx_retry_opts *given)
{
    bench b = {.r = r, .service = callee};
    b.client = client_start(&b.r);
    jzx_retry_opts opts = *given;
    if (opts.find == NULL && opts.callee == JZX_NOBODY) {
        opts.callee = b.service->id;
    }
    opts.drop_msg = drop_string_msg;
    opts.timeout_ms = opts.timeout_ms != 0 ? opts.timeout_ms : 20;
    opts.backoff_min_ms = opts.backoff_min_ms != 0 ? opts.backoff_min_ms : 10;
    b.retry = retry_start(&b.r, &opts);
    return b;
}

static inline bench bench_open(act then, const jzx_retry_opts *given)
{
    rig r = rig_open(NULL);
    data_drops = 0;
    return bench_open_on(r, service_start_supervised(&r, then), given);
}

static inline void bench_close(bench *b)
{
    rig_close(&b->r);
    free(b->service);
    free(b->client);
}

static inline uint64_t ask(bench *b, uint32_t tag, uint64_t ms)
{
    uint64_t which = call(&b->r, b->client, b->retry, tag);
    run_ms(&b->r, ms);
    return which;
}

static inline const jzx_retry_facts *facts(bench *b)
{
    return retry_facts(&b->r, b->client, b->retry);
}

#endif
