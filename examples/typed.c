/* Typed messages: the table below is all there is to say about what a till understands. The
 * compiler makes the functions that send, gives each message to its handler with its own type, and
 * refuses the program when a handler is missing or a payload is another message's.
 * Run: ./typed */
#include <jzx/jzx.h>
#include <jzx/protocol.h>

#include <stdio.h>

typedef struct item {
    char name[16];
    uint32_t cents;
} item;

typedef struct basket {
    size_t count;
    item items[3];
} basket;

#define TILL_MESSAGES(M, P)                                                                        \
    M(P, scan, item, copy)                                                                         \
    M(P, basket, basket, owned(free))                                                              \
    M(P, discount, uint32_t, value)                                                                \
    M(P, total, void, none)
JZX_PROTOCOL(till, 0x1000, TILL_MESSAGES);

typedef struct sum {
    uint32_t cents;
    uint32_t percent_off;
} sum;

static jzx_behavior_result on_scan(jzx_context *ctx, const jzx_message *msg, const item *one)
{
    ((sum *)ctx->state)->cents += one->cents;
    printf("%s: %s, %u cents\n", till_name(msg->tag), one->name, (unsigned)one->cents);
    return JZX_BEHAVIOR_OK;
}
/* The runtime frees the basket afterwards; till_take_basket() would make it ours to free. */
static jzx_behavior_result on_basket(jzx_context *ctx, const jzx_message *msg, basket *all)
{
    for (size_t i = 0; i < all->count; i++) {
        on_scan(ctx, msg, &all->items[i]);
    }
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result on_discount(jzx_context *ctx, const jzx_message *msg, uint32_t percent)
{
    ((sum *)ctx->state)->percent_off = percent;
    printf("%s: %u percent\n", till_name(msg->tag), (unsigned)percent);
    return JZX_BEHAVIOR_OK;
}
static jzx_behavior_result on_total(jzx_context *ctx, const jzx_message *msg)
{
    const sum *me = ctx->state;
    printf("%s: %u cents\n", till_name(msg->tag),
           (unsigned)(me->cents - me->cents * me->percent_off / 100));
    return JZX_BEHAVIOR_STOP;
}
/* Everything that is not the till's: other tags, notices, answers. */
static jzx_behavior_result on_other(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    printf("tag 0x%x is none of ours\n", (unsigned)msg->tag);
    return JZX_BEHAVIOR_OK;
}
JZX_PROTOCOL_DISPATCH(till_run, till, TILL_MESSAGES, on, on_other);

/* What is owned is ours again when the send was refused, as it is for NULL. */
static jzx_err send_basket(jzx_loop *loop, jzx_actor_id to)
{
    basket *bag = malloc(sizeof *bag);
    if (bag != NULL) {
        *bag = (basket){2, {{"bread", 310}, {"milk", 140}}};
    }
    jzx_err err = till_send_basket(loop, to, bag);
    if (err != JZX_OK) {
        free(bag);
    }
    return err;
}

int main(void)
{
    sum state = {0};
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = till_run, .state = &state, .name = "till"};
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = till_send_scan(loop, id, &(item){"tea", 550})) != JZX_OK ||
        (err = send_basket(loop, id)) != JZX_OK ||
        (err = till_send_discount(loop, id, 10)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 1, 7)) != JZX_OK ||
        (err = till_send_total(loop, id)) != JZX_OK || (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "typed: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
