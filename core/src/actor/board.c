#include "actor/board.h"

#include "base/alloc.h"
#include "os/asym.h"
#include "os/thread.h"

#include <string.h>

void jzi_board_init(jzi_board *board, const jzx_allocator *alloc)
{
    *board = (jzi_board){.ring_events = 4096, .alloc = *alloc};
    jzi_mutex_init(&board->lock);
}

static void free_all(jzi_board *board, jzi_deferred_free *deferred_frees)
{
    while (deferred_frees != NULL) {
        jzi_deferred_free *next = deferred_frees->next;
        jzi_free(&board->alloc, deferred_frees, deferred_frees->bytes);
        deferred_frees = next;
    }
}

void jzi_board_deinit(jzi_board *board)
{
    const jzx_allocator *alloc = &board->alloc;
    free_all(board, board->deferred_frees);
    for (size_t i = 0; i < sizeof board->marks / sizeof board->marks[0]; i++) {
        _Atomic uint64_t *marks = atomic_load_explicit(&board->marks[i], memory_order_relaxed);
        jzi_free(alloc, (void *)marks, marks == NULL ? 0 : board->marks_words * sizeof(uint64_t));
    }
    jzi_free(alloc, board->failures,
             board->failures == NULL ? 0 : JZI_FAILURES_KEPT * sizeof *board->failures);
    jzi_free(alloc, board->names, board->names == NULL ? 0 : JZI_NAMES_KEPT * sizeof *board->names);
    (void)pthread_mutex_destroy(&board->lock);
}

void jzi_board_enter(jzi_board *board)
{
    atomic_fetch_add_explicit(&board->readers, 1, memory_order_seq_cst);
    jzi_asym_fence();
}

void jzi_board_leave(jzi_board *board)
{
    jzi_deferred_free *deferred_frees = NULL;
    (void)pthread_mutex_lock(&board->lock);
    /* release: what was read was read before. A reader that comes from now on cannot find what
     * is aside. */
    if (atomic_fetch_sub_explicit(&board->readers, 1, memory_order_acq_rel) == 1) {
        deferred_frees = board->deferred_frees;
        board->deferred_frees = NULL;
    }
    (void)pthread_mutex_unlock(&board->lock);
    free_all(board, deferred_frees);
}

void jzi_board_free_aside(jzi_board *board, void *block, size_t bytes)
{
    jzi_deferred_free *deferred_frees = block;
    if (deferred_frees == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&board->lock);
    *deferred_frees = (jzi_deferred_free){.next = board->deferred_frees, .bytes = bytes};
    board->deferred_frees = deferred_frees;
    (void)pthread_mutex_unlock(&board->lock);
}

void jzi_board_want(jzi_board *board, uint32_t set, uint32_t clear)
{
    uint32_t was = atomic_load_explicit(&board->wanted, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&board->wanted, &was, (was & ~clear) | set,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

jzx_err jzi_board_keep_failures(jzi_board *board)
{
    if (board->failures != NULL) {
        return JZX_OK;
    }
    jzi_failure *ring = jzi_alloc_zeroed(&board->alloc, JZI_FAILURES_KEPT * sizeof *ring);
    jzi_kept_name *names = jzi_alloc_zeroed(&board->alloc, JZI_NAMES_KEPT * sizeof *names);
    if (ring == NULL || names == NULL) {
        jzi_free(&board->alloc, ring, ring == NULL ? 0 : JZI_FAILURES_KEPT * sizeof *ring);
        jzi_free(&board->alloc, names, names == NULL ? 0 : JZI_NAMES_KEPT * sizeof *names);
        return JZX_ERR_NO_MEMORY;
    }
    (void)pthread_mutex_lock(&board->lock);
    board->names = names;
    JZI_PUBLISH_READY(board->failures, ring); /* lifecycle_failure.c looks at it without the lock */
    (void)pthread_mutex_unlock(&board->lock);
    return JZX_OK;
}

void jzi_board_add_failure(jzi_board *board, const jzi_failure *failure)
{
    (void)pthread_mutex_lock(&board->lock);
    if (board->failures != NULL) {
        uint64_t seq = ++board->failure_count;
        jzi_failure *at = &board->failures[seq % JZI_FAILURES_KEPT];
        *at = *failure;
        at->seq = seq;
        if (failure->reason.kind == JZX_REASON_CRASH && board->on_crash != NULL) {
            board->on_crash(board->on_crash_ctx);
        }
    }
    (void)pthread_mutex_unlock(&board->lock);
}

size_t jzi_board_failures(jzi_board *board, jzx_actor_id actor, jzi_failure *out, size_t cap)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&board->lock);
    uint64_t newest = board->failures == NULL ? 0 : board->failure_count;
    for (uint64_t i = 0; i < newest && i < JZI_FAILURES_KEPT && count < cap; i++) {
        const jzi_failure *at = &board->failures[(newest - i) % JZI_FAILURES_KEPT];
        if (actor == JZX_NOBODY || at->actor == actor) {
            out[count++] = *at;
        }
    }
    (void)pthread_mutex_unlock(&board->lock);
    return count;
}

/* Neighbours end together, and have neighbouring slots. */
static jzi_kept_name *board_place_of(const jzi_board *board, jzx_actor_id id)
{
    uint32_t at = jzx_id_slot(id) + jzx_id_dispatcher(id) * 31u + jzx_id_generation(id) * 7u;
    return &board->names[at % JZI_NAMES_KEPT];
}

void jzi_board_keep_name(jzi_board *board, jzx_actor_id id, const char *name)
{
    (void)pthread_mutex_lock(&board->lock);
    jzi_kept_name *at = board->names == NULL ? NULL : board_place_of(board, id);
    if (at != NULL && at->id != id) {
        size_t length = strlen(name);
        length = length < sizeof at->name ? length : sizeof at->name - 1;
        memcpy(at->name, name, length);
        at->name[length] = '\0';
        at->id = id;
    }
    (void)pthread_mutex_unlock(&board->lock);
}

bool jzi_board_name(jzi_board *board, jzx_actor_id id, char out[48])
{
    (void)pthread_mutex_lock(&board->lock);
    const jzi_kept_name *at = board->names == NULL ? NULL : board_place_of(board, id);
    bool known = at != NULL && at->id == id && id != JZX_NOBODY;
    if (known) {
        memcpy(out, at->name, sizeof at->name);
    }
    (void)pthread_mutex_unlock(&board->lock);
    return known;
}

bool jzi_failure_was_in_hook(const jzi_failure *failure)
{
    uint32_t reason = failure->reason.kind;
    return failure->kind == JZI_FAILURE_HOOK &&
           (reason == JZX_REASON_FAILED || reason == JZX_REASON_PANIC ||
            reason == JZX_REASON_CRASH || reason == JZX_REASON_START_FAILED);
}
