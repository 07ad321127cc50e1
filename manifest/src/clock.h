/* Two clocks, in ms since 1970.
 *
 * The lease clock starts with the system's time when the manifest is opened, and then only follows
 * the monotonic clock: no jump of the system's time makes a lease longer or shorter. The manifest's
 * clock, which is stored and shown, follows the system's when that jumps ahead, and goes on at its
 * own pace when that is set back: it never goes back, also not over a restart. */
#ifndef MFI_CLOCK_H
#define MFI_CLOCK_H

#include <jzx/manifest_store.h>

#include <stdatomic.h>

typedef struct mfi_clock {
    uint64_t (*wall_ms)(void *arg);
    void *arg;
    jzx_loop *loop;
    uint64_t start_ms;         /* both clocks at the start */
    uint64_t start_ns;         /* the monotonic clock then */
    _Atomic uint64_t ahead_ms; /* how far the manifest's clock is ahead of the lease clock */
} mfi_clock;

/* last_ms: the manifest's clock when it was used last; it goes on from there however far the
 * system's time is behind. *out_back_ms: by how much it is. */
void mfi_clock_init(mfi_clock *clock, const jzx_mf_opts *opts, jzx_loop *loop, uint64_t last_ms,
                    uint64_t *out_back_ms);
uint64_t mfi_clock_lease_ms(const mfi_clock *clock);
/* Thread: any. */
uint64_t mfi_clock_now_ms(mfi_clock *clock);
/* The clocks of the system, which are read in clock.c only (ADR 0028): the wall clock of the
 * options or the system's, before there is a loop; how long something took; and one that is cheap
 * to read, for ages in seconds. Thread: any. */
uint64_t mfi_clock_wall_ms(const jzx_mf_opts *opts);
uint64_t mfi_clock_monotonic_ns(void);
uint64_t mfi_clock_coarse_ms(void *unused);
/* How far the system's time is behind now. */
uint64_t mfi_clock_behind_ms(mfi_clock *clock);

#endif
