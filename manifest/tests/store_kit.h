/* What the tests of the store share: a directory of their own, opening, and some content. */
#ifndef STORE_KIT_H
#define STORE_KIT_H

#include "check.h"
#include "store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct kit {
    char dir[64];
    char path[96]; /* of the manifest, in dir */
} kit;

static inline kit kit_make(void)
{
    kit k;
    bool has_shm = access("/dev/shm", W_OK) == 0;
    (void)snprintf(k.dir, sizeof k.dir, "%s/jzx-store-XXXXXX", has_shm ? "/dev/shm" : "/tmp");
    REQUIRE(mkdtemp(k.dir) != NULL);
    (void)snprintf(k.path, sizeof k.path, "%s/m", k.dir);
    return k;
}

/* How many files are in the directory; removes them if asked. */
static inline unsigned kit_files(const kit *k, bool remove)
{
    unsigned count = 0;
    DIR *list = opendir(k->dir);
    REQUIRE(list != NULL);
    for (struct dirent *e = readdir(list); e != NULL; e = readdir(list)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            count++;
            if (remove && unlinkat(dirfd(list), e->d_name, 0) != 0) {
                (void)unlinkat(dirfd(list), e->d_name, AT_REMOVEDIR);
            }
        }
    }
    (void)closedir(list);
    return count;
}

static inline void kit_drop(kit *k)
{
    (void)kit_files(k, true);
    (void)rmdir(k->dir);
}

static inline mfi_store_opts kit_opts(void)
{
    return (mfi_store_opts){
        .map_max = (uint64_t)256 << 20, .readers_max = 64, .verify = true, .now_ms = 1000};
}

static inline mfi_store *kit_open(const kit *k)
{
    mfi_store_opts opts = kit_opts();
    mfi_store_facts facts;
    mfi_store *store = NULL;
    jzx_err err = mfi_store_open(k->path, &opts, &store, &facts);
    if (err != JZX_OK) {
        (void)fprintf(stderr, "%s\n", facts.text);
    }
    REQUIRE_OK(err);
    return store;
}

/* Opening must fail like this, with a sentence that has these words in it. */
static inline void kit_refused_with(const char *path, const mfi_store_opts *opts, jzx_err want,
                                    const char *words)
{
    mfi_store_facts facts;
    mfi_store *store = NULL;
    jzx_err err = mfi_store_open(path, opts, &store, &facts);
    CHECK_EQ(err, want);
    CHECK(store == NULL);
    if (err == JZX_OK) {
        mfi_store_close(store);
        return;
    }
    if (strstr(facts.text, words) == NULL) {
        (void)fprintf(stderr, "it says: %s\n", facts.text);
    }
    CHECK(strstr(facts.text, words) != NULL);
}

static inline void kit_refused(const kit *k, jzx_err want, const char *words)
{
    mfi_store_opts opts = kit_opts();
    kit_refused_with(k->path, &opts, want, words);
}

static inline MDB_txn *kit_txn(mfi_store *store)
{
    MDB_txn *txn = NULL;
    REQUIRE_EQ(mdb_txn_begin(mfi_store_env(store), NULL, 0, &txn), 0);
    return txn;
}

/* Random records in random tables, but not in meta; long values now and then. */
static inline void kit_put_some(mfi_store *store, MDB_txn *txn, jzt_rng *rng, unsigned count)
{
    static uint8_t value[9000];
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%06u", (unsigned)jzt_rng_below(rng, 2000));
        uint32_t table = 1 + (uint32_t)jzt_rng_below(rng, 4);
        MDB_val key = {strlen(name), name};
        size_t len = jzt_rng_below(rng, jzt_rng_below(rng, 40) == 0 ? sizeof value : 300);
        MDB_val data = {len, value};
        memset(value, (int)(i & 255), len);
        REQUIRE_EQ(mdb_put(txn, mfi_store_dbi(store, table), &key, &data, 0), 0);
    }
}

static inline void kit_fill(mfi_store *store, jzt_rng *rng, unsigned commits, unsigned per_commit)
{
    for (unsigned i = 0; i < commits; i++) {
        MDB_txn *txn = kit_txn(store);
        kit_put_some(store, txn, rng, per_commit);
        REQUIRE_EQ(mdb_txn_commit(txn), 0);
    }
}

#endif
