/* What became of the messages that nobody handled? An undertaker subscribes to dead letters: it is
 * told when there are new ones, reads them with a cursor of its own, and prints them at a bearable
 * rate. A refused send is no dead letter: its sender knows. Run: ./dead_letters */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORK = 1, ENOUGH = 2 };

typedef struct undertaker {
    uint64_t cursor;
    jzx_letter_limit limit;
    uint64_t printed, left_out;
} undertaker;

static jzx_behavior_result open_shop(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    jzx_err err = jzx_dead_letters_subscribe(ctx->loop);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

/* Ids differ from run to run, so this prints what follows the last colon: the reason. */
static void print_letter(undertaker *me, const jzx_dead_letter *letter)
{
    char line[256];
    uint64_t suppressed = 0;
    if (!jzx_letter_limit_pass(&me->limit, letter, &suppressed)) {
        me->left_out++;
        return;
    }
    me->printed++;
    (void)jzx_dead_letter_format(letter, line, sizeof line);
    const char *reason = strrchr(line, ':');
    if (letter->seq <= 2) { /* how many of the others pass depends on how long this takes */
        printf("dead letter %" PRIu64 ", tag %" PRIu32 "%s\n", letter->seq, letter->tag,
               reason != NULL ? reason : "");
    }
}

static jzx_behavior_result on_notice(jzx_context *ctx, const jzx_message *msg)
{
    undertaker *me = ctx->state;
    jzx_dead_letter letters[4];
    size_t count;
    if (msg->tag == ENOUGH) {
        return jzx_dead_letters_unsubscribe(ctx->loop) == JZX_OK ? JZX_BEHAVIOR_OK
                                                                 : JZX_BEHAVIOR_FAIL;
    }
    while ((count = jzx_dead_letters_read(ctx->loop, &me->cursor, letters, 4, NULL)) > 0) {
        for (size_t i = 0; i < count; i++) {
            print_letter(me, &letters[i]);
        }
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result leave(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx, (void)msg;
    return JZX_BEHAVIOR_STOP; /* with everything else still in the mailbox */
}

static jzx_err quit_with(jzx_loop *loop, uint64_t messages)
{
    jzx_spawn_opts quitter = {.behavior = leave};
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err = jzx_spawn(loop, &quitter, &id);
    for (uint64_t i = 0; i <= messages && err == JZX_OK; i++) {
        err = jzx_send_u64(loop, id, i, WORK);
    }
    return err == JZX_OK ? jzx_loop_run_until_idle(loop) : err;
}

int main(void)
{
    undertaker me = {.limit = {.per_second = 1, .burst = 3}};
    jzx_spawn_opts opts = {.behavior = on_notice, .init = open_shop, .state = &me};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK || (err = quit_with(loop, 2)) != JZX_OK ||
        (err = quit_with(loop, 100)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, ENOUGH)) != JZX_OK ||
        (err = jzx_loop_run_until_idle(loop)) != JZX_OK || (err = quit_with(loop, 7)) != JZX_OK) {
        fprintf(stderr, "dead_letters: %s\n", jzx_strerror(err));
    }
    printf("%" PRIu64 " letters were read; most were left out: %s\n", me.printed + me.left_out,
           me.left_out > me.printed ? "yes" : "no");
    printf("a refused send: %s\n", jzx_err_name(jzx_send_u64(loop, id + 9, 0, WORK)));
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
