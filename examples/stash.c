/* A store that is not ready when the first requests arrive: it sets them aside, and once it has
 * opened it becomes another behavior and serves them in the order in which they came. A message
 * that is urgent overtakes the others, and one that nobody understands becomes a dead letter. Run:
 * ./stash */
#include <jzx/behavior.h>
#include <jzx/jzx.h>

#include <stdio.h>

enum { OPENED = 1, READ, STATUS, NONSENSE, CLOSE };

static jzx_behavior_result serving(jzx_context *ctx, const jzx_message *msg)
{
    switch (msg->tag) {
    case READ:
        printf("serving: read key %u%s\n", (unsigned)msg->u64,
               jzx_was_stashed(ctx) ? ", which had waited" : "");
        return JZX_BEHAVIOR_OK;
    case CLOSE:
        return JZX_BEHAVIOR_STOP;
    default:
        return jzx_discard(ctx) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    }
}

static jzx_behavior_result opening(jzx_context *ctx, const jzx_message *msg)
{
    if (msg->tag == STATUS) {
        printf("opening: not ready, %u waiting\n", jzx_stash_count(ctx));
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag == OPENED) {
        printf("opening: ready, and %u have waited\n", jzx_stash_count(ctx));
        if (jzx_become(ctx, serving) != JZX_OK) {
            return JZX_BEHAVIOR_FAIL;
        }
        jzx_err err = jzx_unstash(ctx, JZX_UNSTASH_ALL);
        if (err == JZX_OK || err == JZX_ERR_STASH_EMPTY) { /* behind those that have waited */
            err = jzx_send(ctx->loop, ctx->self, NULL, 0, CLOSE);
        }
        return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    }
    jzx_err err = jzx_stash(ctx);
    if (err == JZX_ERR_STASH_FULL) { /* whoever sent it has to be told, or it has to go */
        printf("opening: no room for key %u\n", (unsigned)msg->u64);
        err = jzx_discard(ctx);
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

/* Opening takes a message's way; a real store would start a job here. */
static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    (void)arg;
    jzx_err err = jzx_send(ctx->loop, ctx->self, NULL, 0, OPENED);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

static void on_dead_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    printf("dead letter: tag %u, %s\n", letter->tag, jzx_dead_reason_name(letter->reason));
}

int main(void)
{
    jzx_loop *loop = NULL;
    jzx_actor_id store = JZX_NOBODY;
    jzx_observer observer = {.on_dead_letter = on_dead_letter};
    jzx_spawn_opts opts = {.behavior = opening, .init = begin, .name = "store", .mailbox_cap = 8};
    jzx_send_opts status = {.tag = STATUS, .flags = JZX_SEND_VALUE | JZX_SEND_URGENT};
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_loop_set_observer(loop, &observer, NULL)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &store)) != JZX_OK) {
        goto done;
    }
    static const uint32_t tags[] = {READ, READ, NONSENSE, READ, READ};
    for (uint64_t i = 0; i < sizeof tags / sizeof tags[0] && err == JZX_OK; i++) {
        err = jzx_send_u64(loop, store, i, tags[i]); /* the stash holds half of eight */
    }
    if (err == JZX_OK && (err = jzx_send_with(loop, store, &status)) == JZX_OK) { /* is first */
        err = jzx_loop_run(loop);
    }
done:
    if (err != JZX_OK) {
        fprintf(stderr, "stash: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
