/* Payloads that know what they are: each is on the list of all, has one destructor out of several,
 * and must be released once, by that one. Counters can agree while a payload is lost and another is
 * freed twice, or by the wrong hand; a list cannot (R4). Safe on any thread. */
#ifndef JZT_CARGO_H
#define JZT_CARGO_H

#include "support/check.h"

#include <jzx/all.h>

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { CARGO_MAX = 1 << 20, CARGO_BYTES = 24 };
enum { CARGO_NEVER, CARGO_OUT, CARGO_BACK };

/* How it is to be released. The last one has no `drop`: it is its receiver's. */
typedef enum cargo_kind { CARGO_RED, CARGO_GREEN, CARGO_BLUE, CARGO_OWNED, CARGO_KINDS } cargo_kind;

typedef struct cargo {
    uint32_t number;
    uint32_t kind;
    uint64_t seal; /* number and kind again, so that foreign memory is noticed */
} cargo;
_Static_assert(sizeof(cargo) <= CARGO_BYTES, "it fits into what is sent");

static _Atomic unsigned char cargo_list[CARGO_MAX];
static _Atomic uint32_t cargo_made;
static _Atomic uint64_t cargo_double, cargo_wrong; /* released twice; by the wrong hand */

#define CARGO_SEAL UINT64_C(0x6361726761200000)

static inline void cargo_reset(void)
{
    for (uint32_t i = 0; i < atomic_load(&cargo_made); i++) {
        atomic_store_explicit(&cargo_list[i], CARGO_NEVER, memory_order_relaxed);
    }
    atomic_store(&cargo_made, 0);
}

static inline cargo *cargo_new(cargo_kind kind)
{
    cargo *c = calloc(1, CARGO_BYTES);
    REQUIRE(c != NULL);
    c->number = atomic_fetch_add(&cargo_made, 1);
    REQUIRE(c->number < CARGO_MAX);
    c->kind = kind;
    c->seal = CARGO_SEAL ^ ((uint64_t)kind << 32 | c->number);
    atomic_store(&cargo_list[c->number], CARGO_OUT);
    return c;
}

static inline void cargo_release(cargo *c, cargo_kind by)
{
    if (c->seal != (CARGO_SEAL ^ ((uint64_t)c->kind << 32 | c->number)) || c->kind != by) {
        atomic_fetch_add(&cargo_wrong, 1);
    }
    if (c->number >= CARGO_MAX ||
        atomic_exchange(&cargo_list[c->number], CARGO_BACK) != CARGO_OUT) {
        atomic_fetch_add(&cargo_double, 1);
        return;
    }
    c->seal = 0;
    free(c);
}

static inline void cargo_drop_red(void *data)
{
    cargo_release(data, CARGO_RED);
}
static inline void cargo_drop_green(void *data)
{
    cargo_release(data, CARGO_GREEN);
}
static inline void cargo_drop_blue(void *data)
{
    cargo_release(data, CARGO_BLUE);
}
static inline void cargo_drop_msg(const jzx_message *msg)
{
    cargo_release(msg->data, CARGO_OWNED);
}
static inline void (*cargo_drop_of(const cargo *c))(void *)
{
    static void (*const drops[CARGO_KINDS])(void *) = {cargo_drop_red, cargo_drop_green,
                                                       cargo_drop_blue, NULL};
    return drops[c->kind];
}

/* Whether the message brings what it should, and says rightly whose it is. */
static inline cargo *cargo_check(const jzx_message *msg)
{
    if (msg->data == NULL || msg->len != CARGO_BYTES ||
        (msg->flags & (JZX_MSG_VALUE | JZX_MSG_COPY)) != 0) {
        CHECK(msg->drop == NULL); /* another message's */
        return NULL;
    }
    cargo *c = msg->data;
    CHECK(msg->drop == cargo_drop_of(c));
    CHECK_EQ(atomic_load(&cargo_list[c->number]), CARGO_OUT);
    return c;
}

/* At rest: everything came back. */
static inline uint64_t cargo_lost(void)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < atomic_load(&cargo_made); i++) {
        lost += atomic_load(&cargo_list[i]) == CARGO_OUT;
    }
    return lost;
}

#endif
