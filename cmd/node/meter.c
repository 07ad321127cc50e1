/* The meter: a line that says how things are, and at the end whether anything was lost. */
#include "node.h"

#include <jzx/breaker.h>
#include <jzx/registry.h>
#include <jzx/system.h>

#include <inttypes.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { SECOND_MS = 1000 };

typedef struct meter {
    node *n;
    uint64_t seconds;
    uint64_t orders; /* these as they were a second ago */
    uint64_t paid;
    uint64_t handled;
    const char *circuit; /* the breaker's state */
} meter;

jzx_behavior_result meter_init(jzx_context *ctx, void *arg)
{
    if (node_state(ctx, arg, sizeof(meter)) != JZX_BEHAVIOR_OK) {
        return JZX_BEHAVIOR_FAIL;
    }
    meter *me = ctx->state;
    me->orders = atomic_load(&me->n->orders);
    me->paid = atomic_load(&me->n->paid);
    me->circuit = "?";
    return node_tick_every(ctx, SECOND_MS);
}

/* A line over the one before. One that is too long for the terminal could not be written over, and
 * the ^C that the terminal shows goes behind it. */
static void put_line(const char *line)
{
    struct winsize window;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 3;
    printf("\r\033[K%.*s", known ? window.ws_col - 3 : 77, line);
    fflush(stdout);
}

static void show(meter *me)
{
    jzx_counters now;
    jzx_system_counters(me->n->system, &now);
    uint64_t orders = atomic_load(&me->n->orders);
    uint64_t paid = atomic_load(&me->n->paid);
    if (me->n->terminal && me->handled > 0) {
        char line[256];
        (void)snprintf(line, sizeof line,
                       "%02" PRIu32 ":00  %" PRIu64 " orders/s, %" PRIu64 " paid, %" PRIu64
                       " messages/s | %" PRIu64 " actors, %" PRIu64 " restarts, %" PRIu64
                       " dead | circuit %s ",
                       atomic_load(&me->n->hour), orders - me->orders, paid - me->paid,
                       now.handled - me->handled, now.live, now.restarts, now.dead, me->circuit);
        put_line(line);
    }
    me->orders = orders;
    me->paid = paid;
    me->handled = now.handled;
}

jzx_behavior_result meter_work(jzx_context *ctx, const jzx_message *msg)
{
    meter *me = ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        if (!jzx_call_failed(msg, NULL)) {
            const jzx_breaker_facts *facts = msg->data;
            me->circuit = jzx_breaker_state_name(facts->state);
        }
        return JZX_BEHAVIOR_OK;
    }
    if (msg->tag != TAG_TICK) {
        return JZX_BEHAVIOR_OK;
    }
    show(me);
    jzx_ask_opts opts = {.tag = JZX_TAG_BREAKER_FACTS, .timeout_ms = SECOND_MS};
    if (jzx_ask(ctx->loop, jzx_whereis(ctx->loop, "pay"), &opts, NULL) != JZX_OK) {
        me->circuit = "?";
    }
    if (++me->seconds == me->n->options.seconds) {
        jzx_system_request_stop(me->n->system);
    }
    return JZX_BEHAVIOR_OK;
}

int meter_sum_up(node *n, jzx_err err, const jzx_shutdown_report *report)
{
    jzx_counters c;
    jzx_system_counters(n->system, &c);
    uint64_t known = c.handled + c.dead + c.redirected + c.revoked + c.queued + c.in_hand;
    printf("%sStopped in %.3f s: %" PRIu64 " actors stopped, %" PRIu64 " killed.\n",
           n->terminal ? "\r\033[K" : "", (double)report->duration_ns / 1e9, report->stopped,
           report->killed);
    for (uint32_t i = 0; i < report->named; i++) {
        printf("  killed: %s (%" PRIx64 ")\n", report->who[i].name, report->who[i].id);
    }
    printf("%" PRIu64 " orders, %" PRIu64 " paid, %" PRIu64 " not; %" PRIu64 " failures, %" PRIu64
           " restarts.\n",
           atomic_load(&n->orders), atomic_load(&n->paid), atomic_load(&n->failed), c.failures,
           c.restarts);
    printf("%" PRIu64 " messages: %" PRIu64 " handled, %" PRIu64 " dead letters, %" PRIu64
           " passed on, %" PRIu64 " taken back.\n%s\n",
           c.accepted, c.handled, c.dead, c.redirected, c.revoked,
           known == c.accepted && c.queued == 0 && c.live == 0 ? "None was lost."
                                                               : "SOME ARE MISSING.");
    if (err != JZX_OK) {
        fprintf(stderr, "jzx-node: the shutdown: %s\n", jzx_strerror(err));
    }
    return err == JZX_OK && known == c.accepted && c.queued == 0 && c.live == 0 ? 0 : 1;
}
