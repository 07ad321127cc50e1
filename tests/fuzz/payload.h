/* Payloads that know how often they were released, for fuzz_api.c. */
#ifndef JZT_PAYLOAD_H
#define JZT_PAYLOAD_H

#include <jzx/types.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAYLOADS = 4096, PAYLOAD_MAGIC = 0x6A7A7821 };

typedef struct payload {
    uint32_t magic;
    bool must_go; /* somebody is there to release it, whatever happens */
    uint32_t released;
} payload;

static payload *payloads[PAYLOADS];
static size_t payload_count;

static void require(bool fact, const char *sentence)
{
    if (!fact) {
        (void)fprintf(stderr, "fuzz_api: %s\n", sentence);
        abort();
    }
}

static void release(void *data)
{
    payload *p = data;
    require(p->magic == PAYLOAD_MAGIC, "A payload is not one of ours.");
    require(p->released == 0, "A payload was released twice.");
    p->released++;
}

static void release_message(const jzx_message *msg)
{
    require(msg->drop == NULL, "drop_msg was called for a message with a drop of its own.");
    release(msg->data);
}

static payload *payload_new(bool must_go)
{
    if (payload_count == PAYLOADS) {
        return NULL;
    }
    payload *p = calloc(1, sizeof *p);
    require(p != NULL, "No memory for the test itself.");
    *p = (payload){.magic = PAYLOAD_MAGIC, .must_go = must_go};
    payloads[payload_count++] = p;
    return p;
}

/* The caller's duty after a refused send. */
static void payload_refused(payload *p, bool consumed)
{
    if (p != NULL) {
        require(p->released == (consumed ? 1u : 0u), "A refused payload has the wrong owner.");
        p->released = 1;
    }
}

static void fill_pattern(unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (unsigned char)(len + i);
    }
}

static void check_pattern(const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        require(bytes[i] == (unsigned char)(len + i), "A copy is not what was sent.");
    }
}

/* At the end of a run: each was released once, and now its memory goes. */
static void payloads_settle(bool exactly_once)
{
    for (size_t i = 0; i < payload_count; i++) {
        const payload *p = payloads[i];
        require(p->released == 1 || !p->must_go || !exactly_once, "A payload was never released.");
        free(payloads[i]);
    }
    payload_count = 0;
}

#endif
