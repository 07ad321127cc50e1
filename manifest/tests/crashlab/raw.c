#include "raw.h"

#include <errno.h>
#include <string.h>

enum { TABLES_MAX = 64, TABLE_NAME_MAX = 64 };

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    return hash ^ (hash >> 32);
}

static uint64_t mix_bytes(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    hash = mix(hash, len);
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = mix(hash, word);
    }
    uint64_t last = 0;
    memcpy(&last, at, len);
    return mix(hash, last);
}

void cl_digest_row(cl_digest *digest, const char *table, const char *counters, MDB_val key,
                   MDB_val value)
{
    uint64_t row = mix_bytes(1, table, strlen(table));
    row = mix_bytes(row, key.mv_data, key.mv_size);
    row = mix_bytes(row, value.mv_data, value.mv_size);
    digest->all = mix(digest->all, row);
    if (strcmp(table, counters) != 0) {
        digest->body = mix(digest->body, row);
        digest->rows++;
    }
}

static int walk_table(MDB_txn *txn, const char *table, const char *counters, cl_row_fn fn,
                      void *arg, cl_digest *out)
{
    MDB_dbi dbi;
    MDB_cursor *cursor;
    int rc = mdb_dbi_open(txn, table, 0, &dbi);
    if (rc == 0) {
        rc = mdb_cursor_open(txn, dbi, &cursor);
    }
    if (rc) {
        return rc;
    }
    MDB_val key, value;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        cl_digest_row(out, table, counters, key, value);
        if (fn) {
            fn(arg, table, key, value);
        }
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* The names first: tables cannot be opened while the cursor over them is used. */
static int table_names(MDB_txn *txn, char names[TABLES_MAX][TABLE_NAME_MAX], unsigned *out_count)
{
    MDB_dbi dbi;
    MDB_cursor *cursor;
    int rc = mdb_dbi_open(txn, NULL, 0, &dbi);
    if (rc == 0) {
        rc = mdb_cursor_open(txn, dbi, &cursor);
    }
    if (rc) {
        return rc;
    }
    MDB_val key, value;
    *out_count = 0;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        if (*out_count == TABLES_MAX || key.mv_size >= TABLE_NAME_MAX) {
            rc = MDB_CORRUPTED;
            break;
        }
        memcpy(names[*out_count], key.mv_data, key.mv_size);
        names[(*out_count)++][key.mv_size] = 0;
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int walk_env(MDB_env *env, const char *counters, cl_row_fn fn, void *arg, cl_digest *out)
{
    MDB_txn *txn;
    int rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (rc) {
        return rc;
    }
    char names[TABLES_MAX][TABLE_NAME_MAX];
    unsigned count = 0;
    rc = table_names(txn, names, &count);
    for (unsigned i = 0; rc == 0 && i < count; i++) {
        rc = walk_table(txn, names[i], counters, fn, arg, out);
    }
    mdb_txn_abort(txn);
    return rc;
}

int cl_raw_walk(const char *path, const char *counters, cl_row_fn fn, void *arg, cl_digest *out)
{
    memset(out, 0, sizeof *out);
    MDB_env *env;
    int rc = mdb_env_create(&env);
    if (rc) {
        return rc;
    }
    rc = mdb_env_set_maxdbs(env, TABLES_MAX);
    if (rc == 0) {
        rc = mdb_env_open(env, path, MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0600);
    }
    if (rc == 0) {
        rc = walk_env(env, counters, fn, arg, out);
    }
    mdb_env_close(env);
    return rc;
}
