#include "clock.h"

#include <time.h>

/* Below this the two clocks may disagree: an ordinary correction is not a jump. */
#define JUMP_MS 1000u

static uint64_t read_ns(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t system_wall_ms(void *arg)
{
    (void)arg;
    return read_ns(CLOCK_REALTIME) / 1000000u;
}

uint64_t mfi_clock_wall_ms(const jzx_mf_opts *opts)
{
    return opts->wall_ms == NULL ? system_wall_ms(NULL) : opts->wall_ms(opts->wall_arg);
}

uint64_t mfi_clock_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t mfi_clock_coarse_ms(void *arg)
{
    (void)arg;
    return read_ns(CLOCK_MONOTONIC_COARSE) / 1000000u;
}

void mfi_clock_init(mfi_clock *clock, const jzx_mf_opts *opts, jzx_loop *loop, uint64_t last_ms,
                    uint64_t *out_back_ms)
{
    clock->wall_ms = opts->wall_ms == NULL ? system_wall_ms : opts->wall_ms;
    clock->arg = opts->wall_arg;
    clock->loop = loop;
    uint64_t wall = clock->wall_ms(clock->arg);
    uint64_t back = last_ms > wall ? last_ms - wall : 0;
    clock->start_ms = wall + back;
    clock->start_ns = jzx_loop_now(loop);
    atomic_init(&clock->ahead_ms, 0);
    *out_back_ms = back;
}

uint64_t mfi_clock_lease_ms(const mfi_clock *clock)
{
    return clock->start_ms + (jzx_loop_now(clock->loop) - clock->start_ns) / 1000000u;
}

uint64_t mfi_clock_now_ms(mfi_clock *clock)
{
    uint64_t ahead = atomic_load_explicit(&clock->ahead_ms, memory_order_relaxed);
    for (;;) {
        uint64_t now = mfi_clock_lease_ms(clock) + ahead;
        uint64_t wall = clock->wall_ms(clock->arg);
        if (wall <= now + JUMP_MS) {
            return now;
        }
        /* Two threads may see a jump at once: the second one takes the first one's correction, and
         * tells no time that is later than what others are told after it. */
        if (atomic_compare_exchange_strong_explicit(&clock->ahead_ms, &ahead, ahead + (wall - now),
                                                    memory_order_relaxed, memory_order_relaxed)) {
            return wall;
        }
    }
}

uint64_t mfi_clock_behind_ms(mfi_clock *clock)
{
    uint64_t now = mfi_clock_now_ms(clock);
    uint64_t wall = clock->wall_ms(clock->arg);
    return now > wall + JUMP_MS ? now - wall : 0;
}
