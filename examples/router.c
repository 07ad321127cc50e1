/* A pool of workers behind one id. Three workers take jobs in turn; one of them fails and is back
 * for the next round; the pool grows by one; and an asker gets the answer of whichever worker the
 * router chose, without knowing that there is one. Run: ./router */
#include <jzx/ask.h>
#include <jzx/jzx.h>
#include <jzx/router.h>

#include <stdio.h>

enum { JOB = 1, SQUARE = 2, NEXT = 3, BAD_JOB = 13 };

typedef struct desk {
    char name[16];
    int starts;
} desk;

static desk desks[4];

/* Each worker gets its own state; the router calls this before it spawns one. */
static void furnish(void *arg, uint32_t index, jzx_spawn_opts *worker)
{
    (void)arg;
    snprintf(desks[index].name, sizeof desks[index].name, "worker %u", (unsigned)index);
    worker->state = &desks[index];
    worker->name = desks[index].name;
}

static jzx_behavior_result work_start(jzx_context *ctx, void *arg)
{
    desk *me = ctx->state = arg;
    printf("%s starts%s\n", me->name, me->starts++ == 0 ? "" : " again");
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result work(jzx_context *ctx, const jzx_message *msg)
{
    const desk *me = ctx->state;
    if (msg->tag == SQUARE) {
        printf("%s is asked for the square of %u\n", me->name, (unsigned)msg->u64);
        (void)jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, msg->u64 * msg->u64, SQUARE);
    } else if (msg->u64 == BAD_JOB) {
        printf("%s cannot do job %u\n", me->name, (unsigned)msg->u64);
        return JZX_BEHAVIOR_FAIL; /* restarted by the router, with the same id */
    } else {
        printf("%s does job %u\n", me->name, (unsigned)msg->u64);
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result ask(jzx_context *ctx, const jzx_message *msg)
{
    jzx_actor_id router = *(jzx_actor_id *)ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        printf("the answer is %u\n", (unsigned)msg->u64);
        return JZX_BEHAVIOR_STOP;
    }
    jzx_ask_opts opts = {.u64 = 12, .tag = SQUARE, .flags = JZX_SEND_VALUE};
    return jzx_ask(ctx->loop, router, &opts, NULL) == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

int main(void)
{
    jzx_loop *loop = NULL;
    jzx_actor_id router = JZX_NOBODY;
    jzx_actor_id asker = JZX_NOBODY;
    jzx_spawn_opts worker = {.behavior = work, .init = work_start};
    jzx_supervisor_spec restart = {.intensity = 10, .period_ms = 1000};
    jzx_router_opts opts = {
        .worker = &worker, .workers = 3, .restart = &restart, .prepare = furnish};
    jzx_spawn_opts asking = {.behavior = ask, .state = &router};
    jzx_err err = jzx_loop_create(NULL, &loop);
    if (err != JZX_OK || (err = jzx_router_spawn(loop, &opts, &router)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "router: %s\n", jzx_strerror(err));
        return 1;
    }
    for (uint64_t job = 11; job <= 16 && err == JZX_OK; job++) {
        err = jzx_send_u64(loop, router, job, JOB);
        err = err == JZX_OK ? jzx_loop_run_until_idle(loop) : err;
    }
    if (err != JZX_OK || (err = jzx_router_resize(loop, router, 4)) != JZX_OK ||
        (err = jzx_spawn(loop, &asking, &asker)) != JZX_OK ||
        (err = jzx_send_u64(loop, asker, 0, NEXT)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "router: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
