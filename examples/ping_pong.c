/* Two actors play ball: each answers msg->sender, so neither needs to know the other beforehand.
 * The ball is an integer that travels by value; nothing is allocated and nothing is freed.
 * Run: ./ping_pong [rounds] */
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { BALL = 1, SERVE = 2 };

typedef struct player {
    const char *name;
    jzx_actor_id opponent; /* where to serve to; 0 for the player that only answers */
    uint64_t rounds;
    uint64_t hits;
} player;

static jzx_behavior_result play(jzx_context *ctx, const jzx_message *msg)
{
    player *me = ctx->state;
    if (msg->tag == SERVE) {
        /* A refused send is this actor's failure: it ends with a reason instead of guessing. */
        jzx_err err = jzx_send_u64(ctx->loop, me->opponent, 1, BALL);
        return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    }
    me->hits++;
    if (msg->u64 <= 4) {
        printf("%s got ball %" PRIu64 "\n", me->name, msg->u64);
    }
    if (msg->u64 == 2 * me->rounds) {
        jzx_err err = jzx_stop(ctx->loop, msg->sender);
        return err == JZX_OK ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
    }
    jzx_err err = jzx_send_u64(ctx->loop, msg->sender, msg->u64 + 1, BALL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    if (rounds == 0) {
        fprintf(stderr, "usage: ping_pong [rounds, at least 1]\n");
        return 2;
    }
    player ping = {.name = "ping", .rounds = rounds};
    player pong = {.name = "pong", .rounds = rounds};
    jzx_loop *loop = NULL;
    jzx_actor_id ping_id = JZX_NOBODY;
    jzx_spawn_opts ping_opts = {.behavior = play, .state = &ping, .name = "ping"};
    jzx_spawn_opts pong_opts = {.behavior = play, .state = &pong, .name = "pong"};
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &pong_opts, &ping.opponent)) != JZX_OK ||
        (err = jzx_spawn(loop, &ping_opts, &ping_id)) != JZX_OK ||
        (err = jzx_send_u64(loop, ping_id, 0, SERVE)) != JZX_OK ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "ping_pong: %s\n", jzx_strerror(err));
    } else {
        printf("ping hit %" PRIu64 " times, pong %" PRIu64 "\n", ping.hits, pong.hits);
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK && ping.hits == rounds && pong.hits == rounds ? 0 : 1;
}
