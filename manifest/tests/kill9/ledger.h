/* What the clients know for certain, written down so that it survives them.
 *
 * Every client appends facts to a file of its own with one write(2) each. SIGKILL does not take
 * from the page cache what was written, and a fact is 64 bytes at a multiple of 64, so it never
 * crosses a page: it is there whole or not at all. */
#ifndef KILL9_LEDGER_H
#define KILL9_LEDGER_H

#include <stdint.h>

typedef enum fact_kind {
    FACT_ASKED_ENQUEUE = 1, /* ticket: before the commit */
    FACT_ENQUEUED = 2,      /* ticket, id: the receipt came */
    FACT_CLAIMED = 3,       /* id, boot, attempt, lease_ms */
    FACT_BEAT = 4,          /* a heartbeat was acknowledged */
    FACT_ASKED_COMPLETE = 5,
    FACT_COMPLETED = 6, /* ticket: of the job enqueued in the same transaction, or 0 */
    FACT_ASKED_FAIL = 7,
    FACT_FAILED = 8,
    FACT_FENCED = 9,
    FACT_BROKEN = 10 /* an error that must not be: in attempt */
} fact_kind;

typedef struct fact {
    uint32_t kind; /* fact_kind */
    uint32_t attempt;
    uint64_t id;
    uint64_t boot;
    uint64_t ticket;   /* what a client calls a job before it has an id */
    uint64_t asked_ns; /* before the commit and after it, on CLOCK_MONOTONIC */
    uint64_t at_ns;
    uint32_t lease_ms;
    uint32_t client;
    uint64_t reserved;
} fact;
_Static_assert(sizeof(fact) == 64, "a fact must not cross a page");

uint64_t ledger_now_ns(void);
/* Opens the file of a client for appending; ends the process when it cannot. */
int ledger_open(const char *dir, uint32_t client);
void ledger_write(int fd, const fact *one);
/* Hands over the facts from *offset on and moves it. */
typedef void (*ledger_fn)(void *arg, const fact *one);
void ledger_read(const char *dir, uint32_t client, uint64_t *offset, ledger_fn fn, void *arg);

#endif
