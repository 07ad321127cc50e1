/* One allocator for all: the loop's memory and that of its actors come from a pool of the program's
 * own, which counts. An actor asks the loop for the allocator, so it needs to know no global. Each
 * has its place in a table beside the actors, by the index of its id. Run: ./memory */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1, ACTORS = 3 };

typedef struct pool {
    size_t bytes;
} pool;

static void *pool_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    pool *p = ctx;
    void *block = NULL;
    if (new_size == 0) {
        free(ptr);
    } else if ((block = realloc(ptr, new_size)) == NULL) {
        return NULL;
    }
    p->bytes += new_size - old_size;
    return block;
}

typedef struct counter {
    uint64_t sum;
} counter;

static jzx_behavior_result start(jzx_context *ctx, void *arg)
{
    jzx_allocator memory = jzx_loop_allocator(ctx->loop);
    counter *me = memory.realloc(memory.ctx, NULL, 0, sizeof *me);
    (void)arg;
    if (me == NULL) {
        return jzx_fail(ctx, JZX_ERR_NO_MEMORY, "no memory");
    }
    *me = (counter){0};
    ctx->state = me;
    return JZX_BEHAVIOR_OK;
}

static void end(jzx_context *ctx)
{
    jzx_allocator memory = jzx_loop_allocator(ctx->loop);
    (void)memory.realloc(memory.ctx, ctx->state, sizeof(counter), 0);
}

static uint64_t seen[16]; /* by index: dense, and used again when an actor is gone */

static jzx_behavior_result add(jzx_context *ctx, const jzx_message *msg)
{
    counter *me = ctx->state;
    me->sum += msg->u64;
    seen[jzx_id_index(ctx->self) % 16] = me->sum;
    return JZX_BEHAVIOR_OK;
}

int main(void)
{
    pool memory = {0};
    jzx_config config = {.allocator = {.realloc = pool_realloc, .ctx = &memory}};
    jzx_spawn_opts opts = {.behavior = add, .init = start, .deinit = end};
    jzx_actor_id id[ACTORS] = {0};
    jzx_loop *loop = NULL;
    jzx_err err = jzx_loop_create(&config, &loop);
    for (uint64_t i = 0; i < ACTORS && err == JZX_OK; i++) {
        if ((err = jzx_spawn(loop, &opts, &id[i])) == JZX_OK) {
            err = jzx_send_u64(loop, id[i], 10 * (i + 1), ADD);
        }
    }
    if (err != JZX_OK || (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "memory: %s\n", jzx_strerror(err));
        return 1;
    }
    for (uint64_t i = 0; i < ACTORS; i++) {
        printf("actor %" PRIu64 ": %" PRIu64 "\n", i, seen[jzx_id_index(id[i]) % 16]);
    }
    printf("the pool has bytes out: %s\n", memory.bytes > 0 ? "yes" : "no");
    jzx_loop_destroy(loop);
    printf("and all of them back: %s\n", memory.bytes == 0 ? "yes" : "no");
    return memory.bytes == 0 ? 0 : 1;
}
