/* Asks that have no answer yet, of all dispatchers, and those of them that may form circles. */
#include "base/alloc.h"
#include "base/array.h"
#include "control/detail.h"
#include "messaging/ask.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_PER_CALL = 4096, /* so that no dispatcher is kept for long */
    WAITS_PER_CALL = 1024,
    WAITS_MAX = 524288,
    ROUNDS_MAX = 8 /* links that chains of asks lose at either end */
};
#define CALL_ALL_NS UINT64_C(150000000)
#define ALL_CALLS_NS UINT64_C(2000000000) /* a client waits for the answer */

typedef struct ask_call {
    uint64_t now_ns; /* the same for all dispatchers */
    uint64_t min_age_ns;
    uint32_t from; /* slots; on the way back: where to go on */
    bool more;
    uint32_t count;
    jzi_wait waits[WAITS_PER_CALL];
} ask_call;

/* Of a slot whose ask is an actor's and not over. While the asker's side has its bit, and we are in
 * its dispatcher, it stays so. */
static void look_at_slot(ask_call *call, const jzi_ask *ask)
{
    uint64_t word = jzi_ask_word(ask);
    if ((word & (JZI_ASK_ASKER | JZI_ASK_DECIDED | JZI_ASK_THREAD)) != JZI_ASK_ASKER ||
        ask->asker == JZX_NOBODY) {
        return;
    }
    uint64_t age_ns = call->now_ns > ask->asked_ns ? call->now_ns - ask->asked_ns : 0;
    if (age_ns >= call->min_age_ns) {
        call->waits[call->count++] = (jzi_wait){
            .asker = ask->asker,
            .callee = jzi_ask_callee(ask),
            .age_ns = age_ns,
            .endless = ask->deadline_ns == 0,
        };
    }
}

static void call_asks(jzi_worker *worker, void *payload)
{
    ask_call *call = payload;
    uint32_t slot = call->from;
    uint32_t end = slot + SLOTS_PER_CALL;
    const jzi_ask *ask = jzi_ask_slot(worker->inbox, slot);
    while (ask != NULL && slot < end && call->count < WAITS_PER_CALL) {
        look_at_slot(call, ask);
        ask = jzi_ask_slot(worker->inbox, ++slot);
    }
    call->from = slot;
    call->more = ask != NULL;
}

/* How far each dispatcher has been looked at. */
typedef struct ask_calls {
    jzx_control *control;
    jzi_waits *waits;
    uint64_t now_ns;
    uint64_t min_age_ns;
    uint32_t from[JZX_DISPATCHERS_MAX];
    bool is_done[JZX_DISPATCHERS_MAX];
    bool more;
} ask_calls;

static bool waits_prepare(void *ctx, uint32_t dispatcher, void *payload)
{
    const ask_calls *calls = ctx;
    ask_call *call = payload;
    call->now_ns = calls->now_ns;
    call->min_age_ns = calls->min_age_ns;
    call->from = calls->from[dispatcher];
    return !calls->is_done[dispatcher];
}

static bool waits_make_room(jzx_control *control, jzi_waits *waits, size_t count)
{
    size_t need = waits->count + count;
    if (jzi_array_cap(waits->cap, WAITS_PER_CALL, need, sizeof *waits->list) > WAITS_MAX) {
        return false;
    }
    jzi_wait *list = jzi_array_grow(&control->view.alloc, waits->list, &waits->cap, WAITS_PER_CALL,
                                    need, sizeof *list);
    if (list == NULL) {
        return false;
    }
    waits->list = list;
    return true;
}

static void waits_take(void *ctx, uint32_t dispatcher, const void *payload)
{
    ask_calls *calls = ctx;
    const ask_call *call = payload;
    jzi_waits *waits = calls->waits;
    if (call->count > 0 && !waits_make_room(calls->control, waits, call->count)) {
        waits->cut = true;
        return;
    }
    if (call->count > 0) {
        memcpy(waits->list + waits->count, call->waits, call->count * sizeof(jzi_wait));
        waits->count += call->count;
    }
    calls->from[dispatcher] = call->from;
    calls->is_done[dispatcher] = !call->more;
    calls->more = calls->more || call->more;
}

static int by_age(const void *a, const void *b)
{
    const jzi_wait *left = a;
    const jzi_wait *right = b;
    return (left->age_ns < right->age_ns) - (left->age_ns > right->age_ns);
}

void jzi_waits_gather(jzx_control *control, uint64_t now_ns, uint64_t min_age_ns, jzi_waits *out,
                      jzi_silence *silence)
{
    ask_calls state = {
        .control = control, .waits = out, .now_ns = now_ns, .min_age_ns = min_age_ns, .more = true};
    const jzi_call_all calls = {.payload_bytes = sizeof(ask_call),
                                .timeout_ns = CALL_ALL_NS,
                                .run = call_asks,
                                .prepare = waits_prepare,
                                .take = waits_take,
                                .ctx = &state};
    uint64_t end_ns = jzi_control_now_ns(control) + ALL_CALLS_NS;
    while (state.more && !out->cut) {
        state.more = false;
        out->cut = !jzi_call_all_run(control, &calls, silence) || out->cut ||
                   (state.more && jzi_control_now_ns(control) >= end_ns);
    }
    if (out->count > 1) {
        qsort(out->list, out->count, sizeof *out->list, by_age);
    }
}

void jzi_waits_free(jzx_control *control, jzi_waits *waits)
{
    jzi_free(&control->view.alloc, waits->list, waits->cap * sizeof *waits->list);
    *waits = (jzi_waits){0};
}

/* Pairs, by asker and callee. */
static int by_asker(const void *a, const void *b)
{
    const jzi_pair *left = a;
    const jzi_pair *right = b;
    if (left->asker != right->asker) {
        return left->asker < right->asker ? -1 : 1;
    }
    return (left->callee > right->callee) - (left->callee < right->callee);
}

static int by_id(const void *a, const void *b)
{
    jzx_actor_id left = *(const jzx_actor_id *)a;
    jzx_actor_id right = *(const jzx_actor_id *)b;
    return (left > right) - (left < right);
}

/* Each once: an actor asks another one more than once. */
static size_t make_pairs(const jzi_waits *waits, jzi_pair *pairs)
{
    size_t count = 0;
    for (size_t i = 0; i < waits->count; i++) {
        pairs[i] = (jzi_pair){.asker = waits->list[i].asker, .callee = waits->list[i].callee};
    }
    qsort(pairs, waits->count, sizeof *pairs, by_asker);
    for (size_t i = 0; i < waits->count; i++) {
        if (count == 0 || by_asker(&pairs[count - 1], &pairs[i]) != 0) {
            pairs[count++] = pairs[i];
        }
    }
    return count;
}

/* Leaves out pairs at the ends of chains: what is left is sorted as before. */
static size_t cut_ends(jzi_pair *pairs, size_t count, jzx_actor_id *askers, jzx_actor_id *callees)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        askers[i] = pairs[i].asker;
        callees[i] = pairs[i].callee;
    }
    qsort(callees, count, sizeof *callees, by_id);
    for (size_t i = 0; i < count; i++) {
        if (bsearch(&pairs[i].callee, askers, count, sizeof *askers, by_id) != NULL &&
            bsearch(&pairs[i].asker, callees, count, sizeof *callees, by_id) != NULL) {
            pairs[left++] = pairs[i];
        }
    }
    return left;
}

size_t jzi_waits_pairs(const jzx_control *control, jzi_waits *waits, jzi_pair **out_pairs)
{
    const jzx_allocator *alloc = &control->view.alloc;
    size_t most = waits->count;
    jzi_pair *pairs = most == 0 ? NULL : jzi_alloc(alloc, most * sizeof *pairs);
    jzx_actor_id *ids = most == 0 ? NULL : jzi_alloc(alloc, 2 * most * sizeof *ids);
    size_t count = 0;
    if (pairs != NULL && ids != NULL) {
        count = make_pairs(waits, pairs);
        size_t before = count + 1;
        for (int round = 0; round < ROUNDS_MAX && count < before && count > 0; round++) {
            before = count;
            count = cut_ends(pairs, count, ids, ids + most);
        }
    }
    waits->cut = waits->cut || (most > 0 && (pairs == NULL || ids == NULL));
    jzi_free(alloc, ids, 2 * most * sizeof *ids);
    *out_pairs = pairs;
    return count;
}
