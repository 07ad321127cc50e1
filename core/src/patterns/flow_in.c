/* Flows, the consumer's side: subscribing, asking, and what becomes of a producer. */
#include "patterns/flow_priv.h"

#include "base/array.h"

#include <string.h>

enum { DEFAULT_DEMAND = 256 };

static flow_in *flow_in_find(const jzi_flow *flow, jzx_actor_id producer)
{
    for (uint32_t i = 0; i < flow->in_count; i++) {
        if (flow->ins[i].producer == producer) {
            return &flow->ins[i];
        }
    }
    return NULL;
}

static flow_in *find_watched(const jzi_flow *flow, jzx_watch_ref watch)
{
    for (uint32_t i = 0; i < flow->in_count; i++) {
        if (flow->ins[i].watch == watch) {
            return &flow->ins[i];
        }
    }
    return NULL;
}

/* What the producer was asked for will not come. */
static void forget_asked(jzi_flow *flow, flow_in *in)
{
    flow->asked -= in->asked;
    in->asked = 0;
}

static void forget_watch(jzi_flow *flow, flow_in *in)
{
    if (in->watch != 0) {
        (void)jzx_unwatch(flow_loop(flow), in->watch);
        in->watch = 0;
    }
}

static void remove_in(jzi_flow *flow, flow_in *in)
{
    forget_asked(flow, in);
    forget_watch(flow, in);
    flow_in *last = &flow->ins[--flow->in_count];
    memmove(in, in + 1, (size_t)(last - in) * sizeof *in);
}

static jzx_flow_link completed(const jzi_flow *flow, jzx_flow_link link)
{
    if (link.max_demand == 0) {
        link.max_demand = DEFAULT_DEMAND;
    }
    if (link.max_demand > flow->cap) {
        link.max_demand = flow->cap;
    }
    if (link.min_demand == 0 || link.min_demand >= link.max_demand) {
        link.min_demand = link.max_demand / 2;
    }
    return link;
}

static void subscribe(flow_in *in)
{
    in->state = IN_ASKED;
    in->say = SAY_SUBSCRIBE;
    in->waits = false;
}

/* The record of a producer, a new one if need be; watched. */
static jzx_err find_or_add(jzi_flow *flow, jzx_actor_id producer, flow_in **out_in)
{
    flow_in *in = flow_in_find(flow, producer);
    jzx_watch_ref watch = in == NULL ? 0 : in->watch;
    jzx_err err =
        watch != 0 ? JZX_OK : jzx_watch(flow_loop(flow), producer, JZX_WATCH_RESTARTS, &watch);
    if (err == JZX_OK && in == NULL) {
        flow_in *ins = jzi_array_grow(&flow->alloc, flow->ins, &flow->in_cap, 1,
                                      flow->in_count + 1u, sizeof *ins);
        if (ins == NULL) {
            return JZX_ERR_NO_MEMORY;
        }
        flow->ins = ins;
        in = &ins[flow->in_count++];
        *in = (flow_in){0};
    }
    if (err == JZX_OK) {
        in->producer = producer;
        in->watch = watch;
        *out_in = in;
    }
    return err;
}

jzx_err jzi_flow_in_connect(jzi_flow *flow, const flow_wish *wish, jzx_actor_id sender)
{
    flow_in *in = flow_in_find(flow, wish->peer);
    bool ending = flow->finishing && (flow->opts->flags & JZX_FLOW_STAY) == 0;
    if (flow->opts->kind == JZX_FLOW_SOURCE || ending) {
        flow_count(&flow->stats->ignored, 1);
        return JZX_OK;
    }
    /* In a new life the mailbox may hold DONE before the wish that the old life left behind it. */
    if (in != NULL && (in->state == IN_DONE ? flow->recovering : in->state != IN_LEAVING)) {
        return JZX_OK;
    }
    jzx_err err = find_or_add(flow, wish->peer, &in);
    if (err != JZX_OK) {
        return err;
    }
    in->link = completed(flow, wish->link);
    in->invited = sender == wish->peer;
    subscribe(in);
    if (flow->missing > 0) {
        flow->missing--;
    }
    return JZX_OK;
}

/* Whether there is an end of it still to come: one that is leaving may have a goodbye to say. */
static bool is_open(const flow_in *in)
{
    return in->state == IN_ASKED || in->state == IN_ON;
}

static void flow_in_leave(jzi_flow *flow, flow_in *in)
{
    forget_asked(flow, in);
    in->state = IN_LEAVING;
    in->say = SAY_CANCEL;
}

void jzi_flow_in_disconnect(jzi_flow *flow, jzx_actor_id producer)
{
    flow_in *in = flow_in_find(flow, producer);
    if (in != NULL && is_open(in)) {
        flow_in_leave(flow, in);
    }
}

void jzi_flow_in_leave_all(jzi_flow *flow)
{
    for (uint32_t i = 0; i < flow->in_count; i++) {
        if (is_open(&flow->ins[i])) {
            flow_in_leave(flow, &flow->ins[i]);
        }
    }
}

void jzi_flow_in_farewell(jzi_flow *flow, bool all)
{
    for (uint32_t i = 0; i < flow->in_count; i++) {
        if (flow->ins[i].state == IN_DONE || all) {
            flow_in_leave(flow, &flow->ins[i]);
            flow->ins[i].say = SAY_GOODBYE;
        }
    }
}

bool jzi_flow_in_hello(jzi_flow *flow, jzx_actor_id producer, uint64_t cookie)
{
    flow_in *in = flow_in_find(flow, producer);
    if (in == NULL || in->state != IN_ASKED || in->cookie != cookie) {
        return false;
    }
    in->state = IN_ON;
    return true;
}

bool jzi_flow_in_arrived(jzi_flow *flow, jzx_actor_id producer)
{
    flow_in *in = flow_in_find(flow, producer);
    flow_count(&flow->stats->received, 1);
    if (in == NULL || in->state != IN_ON || in->asked == 0) {
        flow_count(&flow->stats->unasked, 1);
        return true;
    }
    in->asked--;
    flow->asked--;
    return in->asked <= in->link.min_demand || in->wish > 0;
}

jzx_err jzi_flow_in_done(jzi_flow *flow, jzx_actor_id producer)
{
    flow_in *in = flow_in_find(flow, producer);
    if (in == NULL && (!flow->recovering || producer == JZX_NOBODY)) {
        flow_count(&flow->stats->ignored, 1);
        return JZX_OK;
    }
    if (in != NULL && in->state == IN_LEAVING) {
        return JZX_OK;
    }
    jzx_err err = find_or_add(flow, producer, &in); /* perhaps one that an earlier life knew */
    if (err != JZX_OK) {
        return err;
    }
    forget_asked(flow, in);
    in->state = IN_DONE;
    in->say = 0;
    flow->some_done = true;
    return JZX_OK;
}

bool jzi_flow_in_restarted(jzi_flow *flow, jzx_watch_ref watch)
{
    flow_in *in = find_watched(flow, watch);
    if (in == NULL) {
        return false;
    }
    if (in->state == IN_LEAVING || in->state == IN_DONE) {
        in->waits = false; /* the producer will be told what its earlier life was to be told */
        return true;
    }
    if ((in->link.flags & JZX_FLOW_MANUAL) != 0) {
        in->wish += in->asked; /* was asked for, and still is wanted */
    }
    forget_asked(flow, in);
    subscribe(in);
    return true;
}

/* Whether a producer that ended still owed us something. If it had invited us after a restart of
 * ours, and our answer to its DONE crossed that, it has ended in good order. */
static bool owed(const flow_in *in, const jzx_signal *news)
{
    bool crossed = in->invited && (news->reason->kind == JZX_REASON_NORMAL ||
                                   news->reason->kind == JZX_REASON_NOPROC);
    return in->state == IN_ON || (in->state == IN_ASKED && !crossed);
}

bool jzi_flow_in_ended(jzi_flow *flow, const jzx_signal *news, bool as_done, bool *out_lost)
{
    flow_in *in = find_watched(flow, news->ref);
    if (in == NULL) {
        return false;
    }
    *out_lost = owed(in, news);
    in->watch = 0; /* its notice was handed over */
    forget_asked(flow, in);
    in->say = 0;
    in->waits = false; /* this was the news */
    if (*out_lost && as_done) {
        in->state = IN_DONE;
        flow->some_done = true;
    } else if (in->state != IN_DONE) {
        flow->missing += *out_lost ? 1 : 0;
        remove_in(flow, in);
    }
    return true;
}

bool jzi_flow_in_room(jzi_flow *flow, jzx_actor_id producer)
{
    flow_in *in = flow_in_find(flow, producer);
    if (in == NULL || !in->waits) {
        return false;
    }
    in->waits = false;
    return true;
}

/* A verdict about a message to a producer: JZX_OK means it was said. */
static jzx_err said(flow_in *in, jzx_err err)
{
    switch (err) {
    case JZX_OK:
        in->say = 0;
        return JZX_OK;
    case JZX_ERR_AGAIN:
        in->waits = true;
        return JZX_OK;
    case JZX_ERR_NO_SUCH_ACTOR:
    case JZX_ERR_STOPPING:
        in->say = in->watch == 0 ? 0 : in->say;
        in->waits = true; /* for the news of its end or its restart, which is on the way */
        return JZX_OK;
    default:
        return err;
    }
}

static jzx_err flow_in_say(jzi_flow *flow, flow_in *in)
{
    if (in->state == IN_LEAVING) {
        uint64_t was_done = in->say == SAY_GOODBYE ? 1 : 0;
        return said(in, jzi_flow_tell(flow, in->producer, FLOW_CANCEL, was_done));
    }
    in->cookie = (uint64_t)flow->incarnation << 32 | ++flow->last_cookie;
    flow_wish wish = {.cookie = in->cookie, .link = in->link};
    return said(in, jzi_flow_tell_wish(flow, in->producer, FLOW_SUBSCRIBE, &wish));
}

/* How much one producer may have on its way to us: a stage asks for what it can hand on. With
 * several producers each may use all of it, so that an idle one keeps no other waiting. */
static uint64_t allowance(const jzi_flow *flow, const flow_in *in)
{
    if (flow->opts->kind == JZX_FLOW_SINK) {
        return in->link.max_demand;
    }
    uint64_t weight = flow->opts->batch_max == 0 ? 1 : flow->opts->batch_max;
    uint64_t open = jzi_flow_out_open(flow) * weight;
    uint64_t batched = jzi_flow_batch_count(flow);
    open = open > batched ? open - batched : 0;
    return open < in->link.max_demand ? open : in->link.max_demand;
}

static uint64_t wanted(const jzi_flow *flow, const flow_in *in)
{
    if (in->state != IN_ON || in->waits || flow->finishing) {
        return 0;
    }
    if ((in->link.flags & JZX_FLOW_MANUAL) != 0) {
        return in->wish;
    }
    if (in->asked > in->link.min_demand) {
        return 0;
    }
    uint64_t most = allowance(flow, in);
    return most > in->asked ? most - in->asked : 0;
}

static jzx_err ask(jzi_flow *flow, flow_in *in)
{
    uint64_t n = wanted(flow, in);
    if (n == 0) {
        return JZX_OK;
    }
    jzx_err err = jzi_flow_rate_limit(flow, n, &n);
    if (err != JZX_OK || n == 0) {
        return err;
    }
    err = jzi_flow_tell(flow, in->producer, FLOW_DEMAND, n);
    if (err == JZX_OK) {
        in->asked += (uint32_t)n;
        flow->asked += n;
        in->wish -= (in->link.flags & JZX_FLOW_MANUAL) != 0 ? n : 0;
    }
    return said(in, err);
}

jzx_err jzi_flow_in_pump(jzi_flow *flow, bool ask_only)
{
    for (uint32_t i = flow->in_count; i-- > 0;) {
        flow_in *in = &flow->ins[i];
        bool speak = in->say != 0 && !in->waits && !ask_only;
        jzx_err err = speak ? flow_in_say(flow, in) : ask(flow, in);
        if (err != JZX_OK) {
            return err;
        }
        if (in->state == IN_LEAVING && in->say == 0) {
            remove_in(flow, in);
        }
    }
    return JZX_OK;
}

bool jzi_flow_in_all_done(const jzi_flow *flow)
{
    for (uint32_t i = 0; i < flow->in_count; i++) {
        if (is_open(&flow->ins[i])) {
            return false;
        }
    }
    return flow->some_done && flow->missing == 0;
}

jzx_err jzi_flow_in_ask(jzi_flow *flow, jzx_actor_id producer, int64_t n)
{
    flow_in *in = flow_in_find(flow, producer);
    if (in == NULL || in->state == IN_DONE || in->state == IN_LEAVING) {
        return JZX_ERR_NO_SUCH_REF;
    }
    if (n < 1 || n > (int64_t)(JZX_FLOW_DEMAND_MAX - in->asked - in->wish) ||
        (in->link.flags & JZX_FLOW_MANUAL) == 0) {
        return JZX_ERR_BAD_DEMAND;
    }
    in->wish += (uint64_t)n;
    flow->stirred = true;
    return JZX_OK;
}
