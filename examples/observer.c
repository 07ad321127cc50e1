/* An observer that logs what happens inside a loop: which actors start, which end and why, and
 * which messages died with them. The library itself never prints. Run: ./observer */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

enum { WORK = 1, QUIT = 2, BREAK = 3, PANIC = 4 };

static void on_start(void *ctx, jzx_actor_id id, const char *name)
{
    (void)id;
    fprintf(ctx, "start  %s\n", name);
}

static void on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    (void)id;
    fprintf(ctx, "end    %s: %s", name, jzx_reason_name(reason->kind));
    if (reason->kind == JZX_REASON_PANIC) {
        fprintf(ctx, " %" PRId32 " \"%s\"", reason->code, reason->text);
    }
    fputc('\n', ctx);
}

static void on_dead(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    (void)msg; /* still valid here, and released right after */
    fprintf(ctx, "dead   tag %" PRIu32 ": %s\n", letter->tag, jzx_dead_reason_name(letter->reason));
}

static jzx_behavior_result worker(jzx_context *ctx, const jzx_message *msg)
{
    switch (msg->tag) {
    case QUIT:
        return JZX_BEHAVIOR_STOP;
    case BREAK:
        return JZX_BEHAVIOR_FAIL;
    case PANIC:
        jzx_panic(ctx, 42, "disk on fire");
    default:
        return JZX_BEHAVIOR_OK;
    }
}

int main(void)
{
    static const char *const names[] = {"quitter", "breaker", "panicker"};
    static const jzx_observer log = {
        .on_actor_start = on_start, .on_actor_stop = on_stop, .on_dead_letter = on_dead};
    jzx_loop *loop = NULL;
    jzx_err err = jzx_loop_create(NULL, &loop);
    if (err == JZX_OK) {
        err = jzx_loop_set_observer(loop, &log, stdout);
    }
    for (uint32_t i = 0; err == JZX_OK && i < 3; i++) {
        jzx_spawn_opts opts = {.behavior = worker, .name = names[i]};
        jzx_actor_id id = JZX_NOBODY;
        if ((err = jzx_spawn(loop, &opts, &id)) == JZX_OK &&
            (err = jzx_send_u64(loop, id, 0, QUIT + i)) == JZX_OK) {
            err = jzx_send_u64(loop, id, 0, WORK); /* never handled: the first one ends the actor */
        }
    }
    if (err == JZX_OK && (err = jzx_loop_run(loop)) == JZX_OK) {
        jzx_counters c;
        jzx_loop_counters(loop, &c);
        printf("accepted %" PRIu64 " = handled %" PRIu64 " + dead %" PRIu64 "\n", c.accepted,
               c.handled, c.dead);
    } else {
        fprintf(stderr, "observer: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
