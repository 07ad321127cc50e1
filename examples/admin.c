/* Administration by message: a supervisor on "loop" is asked by actors of other dispatchers and by
 * plain threads, without a lock and without their waiting for the loop's thread to call something.
 * An operator on the pool adds a child; the program's main thread looks at it. Run: ./admin */
#include <jzx/admin.h>
#include <jzx/jzx.h>
#include <jzx/system.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

typedef struct site {
    jzx_system *system;
    jzx_actor_id app;
    jzx_sender *sender;
} site;

static jzx_behavior_result start(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx, (void)msg;
    return JZX_BEHAVIOR_OK;
}

/* The operator: an actor of the pool, which answers its own asker when it has the answer. */
static jzx_behavior_result started(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_admin_answer *answer = jzx_admin_answer_of(msg);
    if (answer == NULL) { /* a jzx_reply says why there is none */
        return jzx_fail(ctx, 1, "the supervisor did not answer");
    }
    printf("operator: cache was started: %s\n", jzx_err_name(answer->err));
    jzx_request asker = (jzx_request)(uintptr_t)jzx_reply_of(ctx)->arg;
    return jzx_reply_u64(ctx, asker, 0, 1) == JZX_OK ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
}

static jzx_behavior_result operate(jzx_context *ctx, const jzx_message *msg)
{
    const site *s = ctx->state;
    jzx_child_spec cache = {.id = "cache", .behavior = idle, .init = start};
    jzx_admin_request add = {.what = JZX_ADMIN_START_CHILD, .spec = &cache, .on_reply = started};
    (void)msg;
    add.reply_arg = (void *)(uintptr_t)jzx_request_keep(ctx);
    jzx_err err = jzx_admin_ask(ctx->loop, s->app, &add, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

/* A thread that runs no actor. */
static void *look(void *arg)
{
    const site *s = arg;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {
        .behavior = operate, .state = arg, .name = "operator", .dispatcher = "pool"};
    jzx_ask_opts please = {.tag = 1};
    jzx_reply how;
    jzx_admin_request list = {.what = JZX_ADMIN_CHILDREN};
    jzx_admin_request stop = {.what = JZX_ADMIN_TERMINATE_CHILD, .child_id = "cache"};
    jzx_admin_answer *answer = NULL;
    if (jzx_system_spawn(s->system, &opts, &id) == JZX_OK &&
        jzx_ask_wait(s->sender, id, &please, &how, NULL) == JZX_OK &&
        jzx_admin_wait(s->sender, s->app, &list, &answer) == JZX_OK) {
        for (uint32_t i = 0; i < answer->count; i++) {
            printf("thread: child %" PRIu32 " is %s\n", i, jzx_admin_child_at(answer, i)->id);
        }
    }
    jzx_admin_answer_free(answer);
    printf("thread: and down again: %s\n",
           jzx_err_name(jzx_admin_wait(s->sender, s->app, &stop, NULL)));
    jzx_sender_release(s->sender);
    jzx_system_request_stop(s->system);
    return NULL;
}

int main(void)
{
    site s = {0};
    pthread_t thread;
    jzx_child_spec index = {.id = "index", .behavior = idle, .init = start};
    jzx_supervisor_init init = {.name = "app", .children = &index, .child_count = 1};
    jzx_err err;
    if ((err = jzx_system_create(NULL, &s.system)) != JZX_OK ||
        (err = jzx_spawn_supervisor(jzx_system_loop(s.system), &init, &s.app)) != JZX_OK ||
        (err = jzx_system_sender(s.system, JZX_SENDER_SHARED, &s.sender)) != JZX_OK ||
        pthread_create(&thread, NULL, look, &s) != 0) {
        fprintf(stderr, "admin: %s\n", jzx_strerror(err));
        return 1;
    }
    err = jzx_system_run(s.system);
    (void)pthread_join(thread, NULL);
    return jzx_system_destroy(s.system) == JZX_OK && err == JZX_OK ? 0 : 1;
}
