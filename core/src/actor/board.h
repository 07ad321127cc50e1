/* The board: what tools that look from outside want of the workers. One for a loop that is alone,
 * one for all of a system. While no tool looks, the board costs each worker the reading of one word
 * per tick.
 *
 * Readers are threads that read the actor table without a lock. While a reader is in, nothing that
 * it may be reading is freed: the worker that frees a block publishes that the block is gone, then
 * looks for readers, and puts the block aside if there is one; a reader says that it is in, has
 * every thread pass a fence, and then looks. So at least one of them sees the other, and the
 * worker's side is a compiler's fence (as with the lock of a pool). The last reader that leaves
 * frees what was put aside. */
#ifndef JZI_BOARD_H
#define JZI_BOARD_H

#include <jzx/types.h>

#include "actor/observe.h"
#include "base/publish.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What is wanted. */
#define JZI_WANT_RECORD 0x1u   /* rare events go into each worker's ring */
#define JZI_WANT_MESSAGES 0x2u /* and messages that are handled, as the filter says */
#define JZI_WANT_SENDS 0x4u    /* and sends */
#define JZI_WANT_TIMES 0x8u    /* some turns, waits and asks are timed */
#define JZI_WANT_PROBES 0x10u  /* a tracer is attached to the probes of messages; a worker's own */

#define JZI_FAILURES_KEPT 64u
#define JZI_NAMES_KEPT 256u
#define JZI_FAILURE_FRAMES 32u

/* One failure, as `jzx actor` shows it. */
typedef struct jzi_failure {
    uint64_t seq; /* 1, 2, ...; 0: none */
    uint64_t time_ns;
    jzx_actor_id actor;
    uint32_t incarnation;
    uint32_t tag; /* of the message in hand; with kind JZI_FAILURE_HOOK there was none */
    uint32_t kind;
    uint32_t frame_count;
    /* Innermost first; of a behavior that returned FAIL: itself. */
    void *frames[JZI_FAILURE_FRAMES];
    jzx_reason reason;
    char name[48];
} jzi_failure;
#define JZI_FAILURE_HOOK UINT32_MAX
/* Whether the actor's own code failed without a message in hand; other actors without one were
 * killed, or fell with another actor. */
bool jzi_failure_was_in_hook(const jzi_failure *failure);

/* The name of an actor that has ended. */
typedef struct jzi_kept_name {
    jzx_actor_id id; /* JZX_NOBODY: a free place */
    char name[48];
} jzi_kept_name;

/* The beginning of a block that was put aside. */
typedef struct jzi_deferred_free {
    struct jzi_deferred_free *next;
    size_t bytes;
} jzi_deferred_free;

typedef struct jzi_board {
    _Atomic uint32_t wanted; /* JZI_WANT_* */
    _Atomic uint32_t readers;
    _Atomic uint32_t ring_events; /* how many events a ring keeps: a power of two */
    _Atomic uint32_t rate;        /* messages and sends recorded per second and worker at most */
    /* Which ones: with bit 32, those with this tag; and those of these actors, a bit per slot and
     * a set per dispatcher. NULL: of all. Sets are made once and stay as long as the board. */
    _Atomic uint64_t tag;
    _Atomic(_Atomic uint64_t *) marks[256];
    _Atomic uint32_t use_marks;
    uint32_t marks_words;

    jzx_allocator alloc;
    pthread_mutex_t lock; /* what follows; never held over user code */
    jzi_deferred_free *deferred_frees;
    jzi_failure *failures; /* a ring of JZI_FAILURES_KEPT; NULL: they were not asked for */
    uint64_t failure_count;
    jzi_kept_name *names; /* JZI_NAMES_KEPT, by id; as `failures` */
    /* A crash was turned into a failure. With the lock held: only to wake a thread. */
    void (*on_crash)(void *ctx);
    void *on_crash_ctx;
    struct jzx_control *control; /* serves this board; under no lock, set by the owner's thread */
} jzi_board;

void jzi_board_init(jzi_board *board, const jzx_allocator *alloc);
void jzi_board_deinit(jzi_board *board);

/* A worker is about to free something that it has just made unreachable. */
static inline bool jzi_board_has_readers(const jzi_board *board)
{
    atomic_signal_fence(memory_order_seq_cst); /* after what made it unreachable */
    return atomic_load_explicit(&board->readers, memory_order_acquire) != 0;
}
/* Frees a block that a reader may be reading: all but its first two words, which no reader looks
 * at. The block was made unreachable before. NULL is fine. */
void jzi_board_free_aside(jzi_board *board, void *block, size_t bytes);
static inline void jzi_board_free(jzi_board *board, void *block, size_t bytes)
{
    if (__builtin_expect(jzi_board_has_readers(board), 0)) {
        jzi_board_free_aside(board, block, bytes);
    } else if (block != NULL) {
        (void)board->alloc.realloc(board->alloc.ctx, block, bytes, 0);
    }
}
/* Around looking. Short: what is freed meanwhile waits. Thread: any. */
void jzi_board_enter(jzi_board *board);
void jzi_board_leave(jzi_board *board);

/* Sets and clears wishes. Thread: any. */
void jzi_board_want(jzi_board *board, uint32_t set, uint32_t clear);

/* Keeps failures, and the names of actors that ended, from now on. Errors: NO_MEMORY. */
jzx_err jzi_board_keep_failures(jzi_board *board);
/* Adds one; seq is filled in. Thread: any. */
void jzi_board_add_failure(jzi_board *board, const jzi_failure *failure);
/* The newest first, of this actor or (JZX_NOBODY) of all; returns how many. Thread: any. */
size_t jzi_board_failures(jzi_board *board, jzx_actor_id actor, jzi_failure *out, size_t cap);

/* An actor with a name ends: dead letters and traces go on to name it, until another takes its
 * place. Thread: any. */
void jzi_board_keep_name(jzi_board *board, jzx_actor_id id, const char *name);
/* False: the name is not known any more. Thread: any. */
bool jzi_board_name(jzi_board *board, jzx_actor_id id, char out[48]);

#endif
