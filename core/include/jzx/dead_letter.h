/* Following dead letters: subscriptions and readable lines (R21). What they are is said in
 * jzx/observe.h, and jzx_dead_letters_read() reads them. */
#ifndef JZX_DEAD_LETTER_H
#define JZX_DEAD_LETTER_H

#include <jzx/observe.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The running actor gets a notice (kind NOTICE, tag JZX_TAG_DEAD_LETTERS, u64 the number of letters
 * ever made) when there are dead letters it has not been told of: one at a time, so however many
 * there are, one notice waits at most. It then reads them with its own cursor. In a system they are
 * those of all dispatchers. The subscription ends with the actor's incarnation. Subscribing again
 * is OK and changes nothing. Thread: loop, inside an actor. Errors: INVALID_ARG (called outside of
 * an actor), STOPPING (the running actor is ending), NO_MEMORY. */
JZX_API JZX_NODISCARD jzx_err jzx_dead_letters_subscribe(jzx_loop *loop);
/* No notice comes any more, not even one that is queued. OK if there was no subscription. Thread:
 * loop, inside an actor. Errors: INVALID_ARG (called outside of an actor). */
JZX_API jzx_err jzx_dead_letters_unsubscribe(jzx_loop *loop);

/* One line, without a newline, as snprintf(3): "dead letter 17: tag 3, 8 bytes, from 5.1 to 9.2:
 * stopped". Actors as slot.generation. Thread: any. */
JZX_API int jzx_dead_letter_format(const jzx_dead_letter *letter, char *buf, size_t cap);

/* Keeps a log readable when letters come by the thousand: at most `burst` lines at once and
 * `per_second` of them in the long run. Zero is the default everywhere. */
typedef struct jzx_letter_limit {
    uint32_t per_second; /* 0: 10 */
    uint32_t burst;      /* 0: 20 */
    uint64_t last_ns;    /* the rest belongs to jzx_letter_limit_pass() */
    uint64_t tokens;
    uint64_t suppressed;
} jzx_letter_limit;
/* 1: print this one; *out_suppressed then says how many were not printed since the last one that
 * was. 0: do not. Time is the letter's own, so a replay prints the same. Thread: any, one at a
 * time.
 */
JZX_API int jzx_letter_limit_pass(jzx_letter_limit *limit, const jzx_dead_letter *letter,
                                  uint64_t *out_suppressed);

#ifdef __cplusplus
}
#endif
#endif
