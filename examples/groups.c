/* Groups: actors that belong together without knowing each other. A dispatcher of calls keeps a
 * copy of the group "operators" and looks whether it is still current by one number; it waits for a
 * name no longer once it knows enough, and stops watching when it closes. Run: ./groups */
#include <jzx/jzx.h>
#include <jzx/registry.h>

#include <inttypes.h>
#include <stdio.h>

enum { CALL = 1, CLOSE = 2 };

typedef struct office {
    jzx_group_ref watch;
    jzx_name_ref boss;
    uint64_t version; /* of the copy below */
    jzx_actor_id operators[8];
    size_t count;
    uint64_t calls;
} office;

static jzx_behavior_result answer(jzx_context *ctx, const jzx_message *msg)
{
    printf("%s takes call %" PRIu64 "\n", (const char *)ctx->state, msg->u64);
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result join(jzx_context *ctx, void *arg)
{
    jzx_err err = jzx_group_join(ctx->loop, "operators", ctx->self);
    ctx->state = arg;
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result open_office(jzx_context *ctx, void *arg)
{
    office *me = ctx->state = arg;
    jzx_err err = jzx_group_watch(ctx->loop, "operators", &me->watch);
    err = err == JZX_OK ? jzx_await_name(ctx->loop, "boss", 60000, &me->boss) : err;
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

/* While the number is the same, so are the members. */
static void refresh(jzx_loop *loop, office *me)
{
    uint64_t version = jzx_group_version(loop, "operators");
    if (version != me->version) {
        me->count = jzx_group_members(loop, "operators", me->operators, 8);
        me->version = version;
        printf("office: a new list of %zu\n", me->count);
    }
}

static jzx_behavior_result run_office(jzx_context *ctx, const jzx_message *msg)
{
    office *me = ctx->state;
    jzx_err err = JZX_OK;
    if (msg->tag == CALL) {
        refresh(ctx->loop, me);
        jzx_actor_id to = me->count > 0 ? me->operators[me->calls % me->count] : JZX_NOBODY;
        err = jzx_send_u64(ctx->loop, to, ++me->calls, CALL);
    } else if (msg->tag == CLOSE) { /* no notice of either comes from now on */
        err = jzx_group_unwatch(ctx->loop, me->watch);
        err = err == JZX_OK ? jzx_await_cancel(ctx->loop, me->boss) : err;
        printf("office: closed\n");
    } else if (msg->tag == JZX_TAG_NAME || msg->tag == JZX_TAG_GROUP) {
        printf("office: %s\n", msg->tag == JZX_TAG_NAME ? "there is a boss" : "the group changed");
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

int main(void)
{
    office o = {0};
    jzx_spawn_opts anna = {.behavior = answer, .init = join, .state = "anna"};
    jzx_spawn_opts bert = {.behavior = answer, .init = join, .state = "bert"};
    jzx_spawn_opts opens = {.behavior = run_office, .init = open_office, .state = &o};
    jzx_actor_id a = JZX_NOBODY, b = JZX_NOBODY, id = JZX_NOBODY;
    jzx_group_info of[4];
    jzx_loop *loop = NULL;
    jzx_err err = jzx_loop_create(NULL, &loop);
    if (err != JZX_OK || (err = jzx_spawn(loop, &anna, &a)) != JZX_OK ||
        (err = jzx_spawn(loop, &bert, &b)) != JZX_OK ||
        (err = jzx_spawn(loop, &opens, &id)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, CALL)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, CALL)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK || (err = jzx_stop(loop, a)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, CALL)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, CLOSE)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK) {
        fprintf(stderr, "groups: %s\n", jzx_strerror(err));
    }
    printf("bert is in %zu group, %s\n", jzx_groups_of(loop, b, of, 4), of[0].group);
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
