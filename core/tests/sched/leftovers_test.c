/* Goal: a message that is over leaves nothing in the node that carried it (R4; I3 of node.h): the
 * plain message that gets the node next has no drop, no deadline and no flag of another. Method:
 * every kind of message ends in every way, each payload with a destructor that knows it; then plain
 * messages are sent and looked at, and the audit looks at the free nodes. */
#define _GNU_SOURCE
#include "crash.h"

enum { PLAIN = 1, PARCEL, SEND_PARCEL, SEND_PLAIN, ROUNDS = 4, EACH = 48, PARCELS_MAX = 64 };

/* What is sent, and how the behavior ends with it in hand. */
typedef enum form {
    WITH_DROP,
    WITH_DROP_AND_DEADLINE,
    URGENT_WITH_DROP,
    VALUE_WITH_DEADLINE,
    COPY_WITH_DEADLINE,
    LONG_COPY_WITH_DEADLINE,
    ASKED,
    ASKED_WITH_DROP,
    FORMS
} form;
typedef enum ending { RETURNS, FAILS, PANICS, CRASHES, STOPS, ENDINGS } ending;
/* What it did before that. */
typedef enum deed {
    NOTHING,
    TAKES,
    STASHES,
    FORWARDS,
    DISCARDS,
    REPLIES,
    REPLIES_STASHES,
    REPLIES_FORWARDS,
    DEEDS
} deed;

typedef struct parcel {
    int drops;
    bool taken;
} parcel;
static parcel parcels[PARCELS_MAX];
static size_t parcel_count;

static void drop_parcel(void *data)
{
    parcel *self = data;
    REQUIRE(self >= parcels && self < parcels + PARCELS_MAX);
    self->drops++;
}

typedef struct episode {
    form how;
    ending end;
    deed first;
    bool inside;   /* the clerk sends, else the program does */
    puppet *clerk; /* asks, in any case */
    puppet *victim;
    puppet *next; /* takes what is forwarded, and the plain ones */
    uint64_t plain_seen;
} episode;

static void check_plain(const jzx_message *msg, episode *at)
{
    CHECK(msg->drop == NULL);
    CHECK_EQ(msg->deadline_ns, 0);
    CHECK_EQ(msg->flags, msg->u64 == 1 ? JZX_MSG_VALUE : 0);
    at->plain_seen++;
}

static void do_first(jzx_context *ctx, episode *at)
{
    switch (at->first) {
    case TAKES: {
        parcel *mine = jzx_message_take(ctx);
        if (mine != NULL) {
            mine->taken = true;
        }
        break;
    }
    case STASHES:
        CHECK_OK(jzx_stash(ctx));
        break;
    case FORWARDS:
        CHECK_OK(jzx_forward(ctx, at->next->id));
        break;
    case DISCARDS:
        CHECK_OK(jzx_discard(ctx));
        break;
    case REPLIES:
    case REPLIES_STASHES:
    case REPLIES_FORWARDS:
        if (jzx_is_ask(ctx)) {
            CHECK_OK(jzx_reply_u64(ctx, JZX_REQUEST_IN_HAND, 1, PLAIN));
        }
        if (at->first == REPLIES_STASHES) {
            CHECK_OK(jzx_stash(ctx));
        } else if (at->first == REPLIES_FORWARDS) {
            CHECK_OK(jzx_forward(ctx, at->next->id));
        }
        break;
    default:
        break;
    }
}

static jzx_behavior_result end_in_some_way(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    episode *at = self->arg;
    if (msg->tag == PLAIN) {
        check_plain(msg, at);
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag != PARCEL) {
        return JZX_BEHAVIOR_OK;
    }
    static const uint8_t flags[FORMS] = {[URGENT_WITH_DROP] = JZX_MSG_URGENT,
                                         [VALUE_WITH_DEADLINE] = JZX_MSG_VALUE,
                                         [COPY_WITH_DEADLINE] = JZX_MSG_COPY,
                                         [LONG_COPY_WITH_DEADLINE] = JZX_MSG_COPY,
                                         [ASKED] = JZX_MSG_VALUE};
    CHECK_EQ(msg->flags, flags[at->how]); /* and none of the runtime's own */
    do_first(ctx, at);
    switch (at->end) {
    case FAILS:
        return JZX_BEHAVIOR_FAIL;
    case STOPS:
        return JZX_BEHAVIOR_STOP;
    case PANICS:
        jzx_panic(ctx, 1, "as asked");
    case CRASHES:
        usual_crash()();
        break;
    default:
        break;
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result only_plain(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    if (msg->tag == PLAIN) {
        check_plain(msg, self->arg);
    }
    return JZX_BEHAVIOR_OK;
}

static void send_parcel(jzx_loop *loop, const episode *at)
{
    static char text[200];
    jzx_send_opts opts = {.tag = PARCEL};
    uint64_t soon = jzx_loop_now(loop) + 1000 * MS;
    switch (at->how) {
    case VALUE_WITH_DEADLINE:
        opts.u64 = 7;
        opts.flags = JZX_SEND_VALUE;
        opts.deadline_ns = soon;
        break;
    case COPY_WITH_DEADLINE:
    case LONG_COPY_WITH_DEADLINE:
        opts.data = text;
        opts.len = at->how == COPY_WITH_DEADLINE ? 20 : sizeof text;
        opts.flags = JZX_SEND_COPY;
        opts.deadline_ns = soon;
        break;
    default:
        opts.data = &parcels[parcel_count++];
        opts.len = 1;
        opts.drop = drop_parcel;
        opts.flags = at->how == URGENT_WITH_DROP ? JZX_SEND_URGENT : 0;
        opts.deadline_ns = at->how == WITH_DROP_AND_DEADLINE ? soon : 0;
        break;
    }
    REQUIRE_OK(jzx_send_with(loop, at->victim->id, &opts));
}

static void ask_with_parcel(jzx_loop *loop, const episode *at)
{
    jzx_ask_opts opts = {.tag = PARCEL, .timeout_ms = 1000};
    if (at->how == ASKED_WITH_DROP) {
        opts.data = &parcels[parcel_count++];
        opts.len = 1;
        opts.drop = drop_parcel;
    } else {
        opts.flags = JZX_SEND_VALUE;
    }
    REQUIRE_OK(jzx_ask(loop, at->victim->id, &opts, NULL));
}

/* Some plain messages, so that whatever node came back is used again. */
static void send_plain_ones(jzx_loop *loop, const episode *at)
{
    for (int i = 0; i < EACH / 2; i++) {
        REQUIRE_OK(jzx_send(loop, at->next->id, NULL, 0, PLAIN));
        REQUIRE_OK(jzx_send_u64(loop, at->next->id, 1, PLAIN));
    }
}

static jzx_behavior_result clerk(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    if (msg->tag == SEND_PLAIN) {
        send_plain_ones(ctx->loop, self->arg);
    } else if (msg->tag == SEND_PARCEL) {
        const episode *at = self->arg;
        (at->how >= ASKED ? ask_with_parcel : send_parcel)(ctx->loop, at);
    }
    return JZX_BEHAVIOR_OK;
}

static void play_round(rig *r, episode *at)
{
    jzx_spawn_opts guarded = {.flags = at->end == CRASHES ? JZX_SPAWN_CRASH_GUARD : 0};
    at->victim = puppet_start(r, end_in_some_way, &guarded);
    at->victim->arg = at;
    rig_idle(r); /* nodes of the start are back */
    if (at->inside || at->how >= ASKED) {
        tell(r, at->clerk, SEND_PARCEL);
    } else {
        send_parcel(r->loop, at);
    }
    rig_idle(r);
    if (at->inside) {
        tell(r, at->clerk, SEND_PLAIN);
    } else {
        send_plain_ones(r->loop, at);
    }
    rig_idle(r);
    (void)jzx_kill(r->loop, at->victim->id);
    rig_idle(r);
    puppet_free(at->victim);
}

static void play(episode at)
{
    memset(parcels, 0, sizeof parcels);
    parcel_count = 0;
    rig r = rig_open(NULL);
    at.clerk = puppet_start(&r, clerk, NULL);
    at.next = puppet_start(&r, only_plain, NULL);
    at.clerk->arg = at.next->arg = &at;
    for (int round = 0; round < ROUNDS; round++) {
        play_round(&r, &at);
    }
    CHECK_EQ(at.plain_seen, ROUNDS * EACH);
    rig_close(&r);
    for (size_t i = 0; i < parcel_count; i++) {
        CHECK_EQ(parcels[i].drops, parcels[i].taken ? 0 : 1);
    }
    puppet_free(at.clerk);
    puppet_free(at.next);
}

static void play_all(ending end)
{
    for (int how = 0; how < FORMS; how++) {
        for (int first = 0; first < DEEDS; first++) {
            for (int inside = 0; inside < 2; inside++) {
                play((episode){
                    .how = (form)how, .end = end, .first = (deed)first, .inside = inside != 0});
                if (jzt_failures() > 0) {
                    fprintf(stderr, "  form %d, deed %d, ending %d, inside %d\n", how, first,
                            (int)end, inside);
                    return;
                }
            }
        }
    }
}

static void test_after_a_return_the_next_message_is_clean_R4(void)
{
    play_all(RETURNS);
}

static void test_after_a_failure_the_next_message_is_clean_R4(void)
{
    play_all(FAILS);
}

static void test_after_a_panic_the_next_message_is_clean_R4(void)
{
    play_all(PANICS);
}

static void test_after_a_stop_the_next_message_is_clean_R4(void)
{
    play_all(STOPS);
}

static void test_after_a_crash_the_next_message_is_clean_R4(void)
{
    REQUIRE_OK(jzx_crash_guard_install());
    play_all(CRASHES);
    jzx_crash_guard_remove();
}

static const jzt_test tests[] = {
    {"after_a_return_the_next_message_is_clean_R4",
     test_after_a_return_the_next_message_is_clean_R4},
    {"after_a_failure_the_next_message_is_clean_R4",
     test_after_a_failure_the_next_message_is_clean_R4},
    {"after_a_panic_the_next_message_is_clean_R4", test_after_a_panic_the_next_message_is_clean_R4},
    {"after_a_stop_the_next_message_is_clean_R4", test_after_a_stop_the_next_message_is_clean_R4},
    {"after_a_crash_the_next_message_is_clean_R4", test_after_a_crash_the_next_message_is_clean_R4},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
