/* What the sources of the store share: the struct, and the steps of opening it. */
#ifndef MFI_STORE_STEPS_H
#define MFI_STORE_STEPS_H

#include "store.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>

#define MFI_DBS_MAX 32u /* named tables; there is room for more than there are */

/* A file that this process has open, or is about to open. */
typedef struct mfi_claim {
    struct mfi_claim *next;
    const char *path; /* canonical */
    dev_t dev;        /* both 0 until the file was seen */
    ino_t ino;
    int owner_fd; /* of FILE-owner, locked; -1: it only reads */
    atomic_bool forked;
} mfi_claim;

/* Readers by slot. A slot belongs to the thread that changed `busy` from 0 to 1; its transaction is
 * made when it is first used, and reset in between, which keeps its slot in LMDB's table. */
struct mfi_reader {
    _Alignas(64) atomic_uint busy;
    _Atomic uint64_t since_ms; /* + 1; 0: the slot is free */
    MDB_txn *txn;
};

struct mfi_store {
    MDB_env *env;
    mfi_reader *readers;
    uint32_t readers_cap;
    bool readonly;
    MDB_dbi dbis[JZX_MF_TABLES];
    uint64_t (*clock_ms)(void *arg);
    void *clock_arg;
    uint64_t reserve_bytes;
    uint64_t sure_bytes; /* of the file, from its start on: allocated, without a hole */
    uint64_t map_bytes;  /* LMDB writes no further */
    uint64_t page_bytes;
    dev_t lock_dev; /* of FILE-lock, as it was looked at; inode 0: it was not */
    ino_t lock_ino;
    bool sees_pages; /* LMDB's transactions are as store_space.c knows them */
    char *path;      /* canonical */
    mfi_claim claim;
};

/* Writes a sentence about a file: "PATH: ...". A long path loses its beginning. Returns err. */
jzx_err mfi_say(mfi_store_facts *facts, jzx_err err, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for a system call that failed: errno's code and text. `what` names the call's purpose:
 * "cannot be opened". */
jzx_err mfi_say_errno(mfi_store_facts *facts, const char *path, const char *what);

/* store_file.c: names, directories and file systems. */

/* The name of a companion, PATH and a suffix, to be freed; NULL: no memory. */
char *mfi_path_with(const char *path, const char *suffix);
/* The path without links, also when its last part is not there yet; to be freed. NOT_FOUND (no
 * such directory), NO_ACCESS, NO_MEMORY, INVALID_ARG (a directory). */
jzx_err mfi_path_canonical(const char *path, char **out, mfi_store_facts *facts);
/* Whether a file system of this type (f_type of statfs) lies on another machine; its name, or NULL.
 */
const char *mfi_remote_fs(uint64_t f_type);
jzx_err mfi_refuse_remote(const char *path, mfi_store_facts *facts);
/* Writes the directory of a path to the disk. */
jzx_err mfi_sync_dir(const char *path);
/* A new empty file beside PATH, locked as long as its descriptor is open so that no process takes
 * it for one that was left behind. */
typedef struct mfi_temp {
    char *path;
    int fd;
} mfi_temp;
jzx_err mfi_temp_make(const char *path, mfi_temp *out, mfi_store_facts *facts);
/* Syncs it, gives it its name unless there is one already (ALREADY), and syncs the directory. */
jzx_err mfi_temp_publish(mfi_temp *temp, const char *path, mfi_store_facts *facts);
/* Removes what was not published, and frees. */
void mfi_temp_drop(mfi_temp *temp);
/* Removes the temporary files of PATH that died with their process. */
void mfi_temps_clean(const char *path);

/* store_owner.c: one process writes, and opens a file only once. */

/* ALREADY: this process has it, or is opening it. */
jzx_err mfi_claim_begin(mfi_claim *claim, const char *path, mfi_store_facts *facts);
/* The file behind the path is known now: ALREADY if it is open under another name. */
jzx_err mfi_claim_file(mfi_claim *claim, dev_t dev, ino_t ino, mfi_store_facts *facts);
/* Takes FILE-owner: OWNED, NO_ACCESS, NO_SPACE, IO. */
jzx_err mfi_claim_own(mfi_claim *claim, mfi_store_facts *facts);
/* `undo`: the open failed; FILE-owner goes away again. */
void mfi_claim_end(mfi_claim *claim, bool undo);

/* store_create.c */

/* 0x01020304 as this machine stores it, read as a little-endian number. */
uint32_t mfi_byte_order(void);

/* A new manifest at PATH, whole or not at all. ALREADY: there is one now. */
jzx_err mfi_create(const char *path, uint64_t now_ms, mfi_store_facts *facts);

/* store_lock.c: companions that others may have planted. */

/* Makes FILE-lock for LMDB, or looks at the one that is there: NO_ACCESS with a sentence when it is
 * a link, is no file, has other names or belongs to another user; NO_SPACE. */
jzx_err mfi_lock_prepare(mfi_store *store, mfi_store_facts *facts);
/* After LMDB opened it: NO_ACCESS when it is another one by now. */
jzx_err mfi_lock_compare(mfi_store *store, mfi_store_facts *facts);
/* The rules for any companion, open as fd; and what errno says when it could not be. */
jzx_err mfi_refuse_strange(const char *path, const char *name, int fd, struct stat *out,
                           mfi_store_facts *facts);
jzx_err mfi_say_no_companion(const char *name, mfi_store_facts *facts);

/* store_space.c */

/* Whether a transaction that has just begun is as we know them. */
void mfi_space_learn(mfi_store *store, const MDB_txn *fresh);
/* The file as it is, and the reserve. */
void mfi_space_begin(mfi_store *store);
/* Blocks for these bytes of a file, which is that long then. Returns errno. */
int mfi_allocate(int fd, uint64_t from, uint64_t to);

/* store_readers.c */
jzx_err mfi_readers_init(mfi_store *store, uint32_t cap);
void mfi_readers_deinit(mfi_store *store);

#endif
