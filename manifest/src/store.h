/* The file: how it is created, found fit to be used, owned, read by many and copied.
 *
 * Nothing above this knows LMDB's environment; everything above uses its transactions. */
#ifndef MFI_STORE_H
#define MFI_STORE_H

#include "pages.h"

#include <jzx/manifest_record.h>
#include <jzx/types.h>

#include <lmdb.h>
#include <stdbool.h>

typedef struct mfi_store mfi_store;

typedef struct mfi_store_opts {
    uint64_t map_max;
    uint64_t reserve_bytes; /* allocated, for what ends or deletes on a full disk; 0: none */
    uint32_t readers_max;
    bool readonly;
    bool must_exist;
    bool verify; /* walk all pages before LMDB follows any */
    /* With verify: told every problem, and how far it got; NULL: the first problem is enough. */
    jzx_mf_check_fn check_fn;
    void *check_arg;
    mfi_pages_report *pages; /* filled in by verify, also when it finds problems; may be NULL */
    uint64_t now_ms;         /* created_ms of a new file */
    /* For the age of readers; NULL: the system's monotonic clock. Called on any thread. */
    uint64_t (*clock_ms)(void *arg);
    void *clock_arg;
} mfi_store_opts;

typedef struct mfi_store_facts {
    bool created;
    uint32_t readers_reaped;
    char text[256]; /* after an error: a sentence with the facts */
} mfi_store_facts;

/* Errors: those of jzx_mf_open(), and CLOSED when check_fn had enough. facts is filled in either
 * way. A process opens a file once, for reading or writing: the second time is ALREADY, because
 * LMDB would lose the first one's locks. Beside an owner, a walk looks at the commit of a read
 * transaction, and may take its time. */
jzx_err mfi_store_open(const char *path, const mfi_store_opts *opts, mfi_store **out,
                       mfi_store_facts *facts);
/* No transaction is open any more. In a forked child mfi_store_close() frees what is ours and
 * leaves LMDB's part alone, which is shared with the parent. */
void mfi_store_close(mfi_store *store);

MDB_env *mfi_store_env(mfi_store *store);
MDB_dbi mfi_store_dbi(const mfi_store *store, uint32_t table);
const char *mfi_store_path(const mfi_store *store);
/* True in a child of the process that opened it. Thread: any. */
bool mfi_store_forked(const mfi_store *store);

/* LMDB's and errno's numbers as ours. MDB_NOTFOUND is NOT_FOUND, MDB_MAP_FULL MAP_FULL, ENOSPC
 * NO_SPACE, MDB_READERS_FULL BUSY, MDB_PANIC IN_DOUBT, MDB_CORRUPTED CORRUPT, ... */
jzx_err mfi_err_of(int rc);
/* Of this machine, in bytes: LMDB takes it for its own. */
uint32_t mfi_store_page_size(void);
/* Whether that number says that the disk, the map or the transaction was full. */
bool mfi_lacks_room(int rc);

/* A read transaction from the pool, for one thread at a time; any number at once.
 * Errors: FORKED, BUSY (all readers in use), NO_MEMORY, IO. */
typedef struct mfi_reader mfi_reader;
jzx_err mfi_reader_begin(mfi_store *store, mfi_reader **out);
MDB_txn *mfi_reader_txn(mfi_reader *reader);
void mfi_reader_end(mfi_store *store, mfi_reader *reader);
/* How many there are now, and for how long the oldest has been there. Thread: any. */
void mfi_store_readers(mfi_store *store, uint64_t *out_count, uint64_t *out_oldest_ms);
/* Slots in LMDB's table, of all processes; and the reaping of those whose process died. */
uint64_t mfi_store_reader_slots(mfi_store *store);
uint32_t mfi_store_reap(mfi_store *store);

/* Bytes of the file in use, and of these on the free list. */
jzx_err mfi_store_size(mfi_store *store, MDB_txn *txn, uint64_t *out_used, uint64_t *out_free);

/* What a transaction wrote so far: rows, and bytes of their values. */
typedef struct mfi_writes {
    uint64_t count;
    uint64_t bytes;
} mfi_writes;
/* Allocates what the commit of this transaction may touch, so that a full disk shows here:
 * NO_SPACE, nothing was changed, and the transaction can be aborted. `grows`: it adds records, and
 * leaves the reserve to what ends or deletes. Thread: the writer's. (store_space.c) */
jzx_err mfi_store_make_room(mfi_store *store, MDB_txn *txn, const mfi_writes *writes, bool grows);
/* Bytes that are allocated behind the last page. */
uint64_t mfi_store_spare(mfi_store *store);

/* A compacted copy of the last commit at a new path. ALREADY: there is something; FORKED, NOT_FOUND
 * (no such directory), NO_ACCESS, NO_SPACE, NO_MEMORY, IO. */
jzx_err mfi_store_backup(mfi_store *store, const char *path);

#endif
