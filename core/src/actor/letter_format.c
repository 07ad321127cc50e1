/* Dead letters as text: one line each, and not too many of them (R21). Pure. */
#include <jzx/dead_letter.h>

#include <stdio.h>

enum { DEFAULT_PER_SECOND = 10, DEFAULT_BURST = 20, NAME_SIZE = 24 };
#define SECOND_NS UINT64_C(1000000000)

static const char *name_actor(jzx_actor_id id, char buf[NAME_SIZE])
{
    if (id == JZX_NOBODY) {
        return "nobody";
    }
    (void)snprintf(buf, NAME_SIZE, "%u.%u", (unsigned)jzx_id_slot(id),
                   (unsigned)jzx_id_generation(id));
    return buf;
}

int jzx_dead_letter_format(const jzx_dead_letter *letter, char *buf, size_t cap)
{
    char from[NAME_SIZE];
    char to[NAME_SIZE];
    if (letter == NULL || (buf == NULL && cap > 0)) {
        return -1;
    }
    return snprintf(buf, cap, "dead letter %llu: tag %u, %llu byte%s, from %s to %s: %s",
                    (unsigned long long)letter->seq, (unsigned)letter->tag,
                    (unsigned long long)letter->len, letter->len == 1 ? "" : "s",
                    name_actor(letter->sender, from), name_actor(letter->target, to),
                    jzx_dead_reason_name(letter->reason));
}

/* A bucket that counts what was taken out of it, in billionths of a line: so all zeros is a full
 * one, and what time puts back is a product without a remainder. */
int jzx_letter_limit_pass(jzx_letter_limit *limit, const jzx_dead_letter *letter,
                          uint64_t *out_suppressed)
{
    if (limit == NULL || letter == NULL) {
        return 0;
    }
    uint64_t per_second = limit->per_second == 0 ? DEFAULT_PER_SECOND : limit->per_second;
    uint64_t burst = (limit->burst == 0 ? DEFAULT_BURST : limit->burst) * SECOND_NS;
    if (letter->time_ns > limit->last_ns) {
        uint64_t passed = letter->time_ns - limit->last_ns;
        limit->last_ns = letter->time_ns;
        /* Divided first: the product of a long pause does not fit. */
        limit->tokens =
            passed > limit->tokens / per_second ? 0 : limit->tokens - passed * per_second;
    }
    if (limit->tokens > burst - SECOND_NS) {
        limit->suppressed++;
        return 0;
    }
    limit->tokens += SECOND_NS;
    if (out_suppressed != NULL) {
        *out_suppressed = limit->suppressed;
    }
    limit->suppressed = 0;
    return 1;
}
