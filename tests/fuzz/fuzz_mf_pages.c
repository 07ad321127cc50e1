/* Goal: no bytes make the walk over pages read or write where it must not, hang or take memory
 * without end; and what it takes, LMDB can read to the last byte.
 * Method: an input is a whole file, or a list of changes to a real one: be32 where, u8 how much,
 * and a u64 that is written there. Most changes to random places of a file hit values, so `where`
 * is folded onto the heads of pages half of the time. */
#include "bytes.h"
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PAGE 4096u
#define CHANGE 13u

static uint8_t *original;
static size_t original_len;
static volatile unsigned sink; /* so that reading cannot be left out */

static void require(int fact)
{
    if (!fact) {
        abort();
    }
}

static void fill(mfi_store *store)
{
    static uint8_t value[9000];
    for (unsigned commit = 0; commit < 3; commit++) {
        MDB_txn *txn;
        require(mdb_txn_begin(mfi_store_env(store), NULL, 0, &txn) == 0);
        for (uint32_t i = 0; i < 150; i++) {
            uint8_t name[4];
            mfi_put_be32(name, i * 7919u + commit);
            MDB_val key = {sizeof name, name};
            MDB_val what = {i % 70 == 7 ? sizeof value : i % 90, value};
            require(mdb_put(txn, mfi_store_dbi(store, 1 + i % 3), &key, &what, 0) == 0);
        }
        require(mdb_txn_commit(txn) == 0);
    }
}

static void read_original(const char *path)
{
    FILE *file = fopen(path, "rb");
    require(file != NULL && fseek(file, 0, SEEK_END) == 0);
    original_len = (size_t)ftell(file);
    rewind(file);
    original = malloc(original_len);
    require(original != NULL && fread(original, 1, original_len, file) == original_len);
    (void)fclose(file);
}

static void make_original(void)
{
    static const char *const names[] = {"/m", "/m-lock", "/m-owner"};
    char dir[] = "/tmp/jzx-fuzz-XXXXXX";
    char path[64];
    mfi_store_opts opts = {.map_max = 64u << 20};
    mfi_store_facts facts;
    mfi_store *store;
    require(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof path, "%s/m", dir);
    require(mfi_store_open(path, &opts, &store, &facts) == JZX_OK);
    fill(store);
    mfi_store_close(store);
    read_original(path);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

static void write_all(int fd, const uint8_t *bytes, size_t len)
{
    require(write(fd, bytes, len) == (ssize_t)len);
}

static void write_changed(int fd, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(original_len + sizeof(uint64_t));
    require(copy != NULL);
    memcpy(copy, original, original_len);
    for (; size >= CHANGE; data += CHANGE, size -= CHANGE) {
        size_t where = mfi_get_be32(data) % original_len;
        if ((data[0] & 0x80) != 0) {
            where = where / PAGE * PAGE + where % 64;
        }
        memcpy(copy + where, data + 5, data[4] % 9);
    }
    write_all(fd, copy, original_len);
    free(copy);
}

/* Everything that the walk took can be read. */
static unsigned read_table(MDB_txn *txn, MDB_dbi dbi)
{
    MDB_cursor *cursor;
    MDB_val key;
    MDB_val value;
    unsigned sum = 0;
    if (mdb_cursor_open(txn, dbi, &cursor) != 0) {
        return 0;
    }
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        for (size_t i = 0; i < value.mv_size; i += PAGE) {
            sum += ((const uint8_t *)value.mv_data)[i];
        }
        sum += value.mv_size > 0 ? ((const uint8_t *)value.mv_data)[value.mv_size - 1] : 0u;
    }
    mdb_cursor_close(cursor);
    return sum;
}

static void read_by_lmdb(int fd)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    MDB_env *env;
    MDB_txn *txn;
    require(mdb_env_create(&env) == 0 && mdb_env_set_maxdbs(env, 32) == 0 &&
            mdb_env_set_mapsize(env, 64u << 20) == 0);
    require(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0) == 0);
    require(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        MDB_dbi dbi;
        if (mdb_dbi_open(txn, jzx_mf_table_name(table), 0, &dbi) == 0) {
            sink += read_table(txn, dbi);
        }
    }
    mdb_txn_abort(txn);
    mdb_env_close(env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (original == NULL) {
        make_original();
    }
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0);
    if (size > 2 * (size_t)PAGE) {
        write_all(fd, data, size);
    } else {
        write_changed(fd, data, size);
    }
    mfi_pages_meta meta;
    mfi_pages_report report;
    char text[MFI_PAGES_TEXT] = "";
    jzx_err err = mfi_pages_head(fd, &meta, text);
    if (err == JZX_OK) {
        err = mfi_pages_walk(fd, &meta, NULL, NULL, &report);
        memcpy(text, report.text, sizeof text);
    }
    if (err == JZX_OK) {
        read_by_lmdb(fd);
    } else {
        require(text[0] != '\0' && memchr(text, '\0', sizeof text) != NULL);
    }
    (void)close(fd);
    return 0;
}
