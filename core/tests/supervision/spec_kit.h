/* Parts of supervisor specs, and an allocator that checks sizes, counts blocks and fails on demand.
 */
#ifndef JZT_SPEC_KIT_H
#define JZT_SPEC_KIT_H

#include "supervision/supervisor_spec.h"
#include "support/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY_MAX = 256 };

/* --- the allocator --- */

static size_t blocks, bytes, asked;
static size_t fail_at; /* the nth allocation from start() fails; 0: none */

static inline void *counted_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (new_size == 0) {
        REQUIRE(blocks > 0 && bytes >= old_size);
        blocks--;
        bytes -= old_size;
        free(ptr);
        return NULL;
    }
    REQUIRE(ptr == NULL && old_size == 0);
    if (++asked == fail_at) {
        return NULL;
    }
    blocks++;
    bytes += new_size;
    ptr = malloc(new_size);
    REQUIRE(ptr != NULL);
    memset(ptr, 0xA5, new_size);
    return ptr;
}

static const jzx_allocator alloc = {counted_realloc, NULL};

static unsigned drops;

static inline void start(void)
{
    blocks = bytes = asked = fail_at = 0;
    drops = 0;
}

/* --- parts of specs --- */

static inline jzx_behavior_result behave(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result init_state(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static inline jzx_behavior_result hear(jzx_context *ctx, const struct jzx_signal *signal)
{
    (void)ctx;
    (void)signal;
    return JZX_BEHAVIOR_OK;
}

static inline void deinit_state(jzx_context *ctx)
{
    (void)ctx;
}

static inline void drop_msg(const jzx_message *msg)
{
    (void)msg;
}

/* Arguments count how often they were dropped. */
static inline void drop_arg(void *arg)
{
    drops++;
    if (arg != NULL) {
        ++*(int *)arg;
    }
}

#define WORKER(name) .id = (name), .behavior = behave, .init = init_state

static const jzx_child_spec worker_a = {WORKER("a")};
static const jzx_supervisor_init inner = {.children = &worker_a, .child_count = 1};
static const jzx_supervisor_sizes sizes = {sizeof(jzx_supervisor_init), sizeof(jzx_supervisor_spec),
                                           sizeof(jzx_child_spec)};

/* Makes a plan and checks that jzx_supervisor_check() says the same; releases the plan. */
static inline void expect(const jzx_supervisor_init *init, jzx_err err, const char *sentence)
{
    char made[WHY_MAX] = "unset", checked[WHY_MAX] = "unset";
    jzi_supervisor_plan *plan = NULL;
    start();
    CHECK_EQ(jzi_supervisor_plan_make(&alloc, init, &sizes, made, sizeof made, &plan), err);
    CHECK_STR(made, sentence);
    CHECK_EQ(plan != NULL, err == JZX_OK);
    jzi_supervisor_plan_release(&alloc, plan);
    CHECK_EQ(blocks, 0);
    CHECK_EQ(bytes, 0);
    CHECK_EQ(jzx_supervisor_check(init, checked, sizeof checked), err);
    CHECK_STR(checked, sentence);
}

#endif
