#include "old.h"

#include "bytes.h"
#include "codec.h"
#include "key.h"
#include "report.h"
#include "row.h"
#include "world.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define OLD_NAME "an old one"

static void must(int rc)
{
    if (rc) {
        _exit(3);
    }
}

static void put(MDB_txn *txn, const jzx_mf_key *key, const mfi_buf *buf)
{
    MDB_dbi dbi;
    jzx_mf_key copy = *key;
    mfi_row_seal(key->table, jzx_mf_blob(key->bytes, key->len), buf->bytes, buf->len);
    MDB_val at = {copy.len, copy.bytes}, value = {buf->len, buf->bytes};
    must(mdb_dbi_open(txn, jzx_mf_table_name(key->table), 0, &dbi));
    must(mdb_put(txn, dbi, &at, &value, 0));
}

static void put_chunk(MDB_txn *txn, mfi_buf *buf, uint32_t number, bool old)
{
    mfi_chunk_v0 before = {.file_name = jzx_mf_text("old"), .wal_begin = number, .wal_count = 50};
    jzx_mf_chunk after = {
        .file_name = jzx_mf_text("old"), .wal_begin = number, .wal_end = number + 50};
    must(old ? mfi_encode_chunk_v0(&before, NULL, buf) : mfi_encode_chunk(&after, NULL, buf));
    jzx_mf_key key = jzx_mf_key_chunk(CL_OLD_DB, number);
    put(txn, &key, buf);
}

/* A row of an index, from before they had checksums. */
static void put_name(MDB_txn *txn, const char *name)
{
    MDB_dbi dbi;
    uint8_t id[8];
    jzx_mf_key key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text(name));
    MDB_val at = {key.len, key.bytes}, value = {sizeof id, id};
    mfi_put_be64(id, CL_OLD_DB);
    must(mdb_dbi_open(txn, jzx_mf_table_name(key.table), 0, &dbi));
    must(mdb_put(txn, dbi, &at, &value, 0));
}

/* Meta as it is, but of the old schema and with the place where its migration stands. */
static void put_meta(MDB_txn *txn, mfi_buf *buf, const cl_old *old)
{
    MDB_dbi dbi;
    mfi_meta meta;
    jzx_mf_key key = mfi_key_meta();
    MDB_val at = {key.len, key.bytes}, value;
    must(mdb_dbi_open(txn, CL_COUNTERS, 0, &dbi));
    must(mdb_get(txn, dbi, &at, &value));
    must(mfi_decode_meta(jzx_mf_blob(value.mv_data, value.mv_size), &meta, NULL));
    jzx_mf_key cursor = jzx_mf_key_chunk(CL_OLD_DB, old->rows / 2 - 1);
    meta.schema = 0;
    if (old->interrupted) {
        meta.migrate_table = JZX_MF_TABLE_CHUNK + 1;
        meta.migrate_key = jzx_mf_blob(cursor.bytes, cursor.len);
    }
    must(mfi_encode_meta(&meta, NULL, buf));
    put(txn, &key, buf);
}

static void make_new(const cl_old *old)
{
    jzx_mf *mf = NULL;
    jzx_mf_txn *txn = NULL;
    jzx_mf_recovery report;
    jzx_mf_db db = {.name = jzx_mf_text(OLD_NAME)};
    must(cl_world_open(old->path, 0, &mf, &report));
    must(jzx_mf_begin(mf, &txn));
    must(jzx_mf_db_put(txn, CL_OLD_DB, &db));
    must(cl_world_commit(txn, NULL, NULL));
    must(cl_world_close(mf));
}

static void make_old(const cl_old *old)
{
    MDB_env *env;
    MDB_txn *txn;
    mfi_buf buf = {.bytes = NULL};
    must(mdb_env_create(&env));
    must(mdb_env_set_maxdbs(env, 64));
    must(mdb_env_open(env, old->path, MDB_NOSUBDIR | MDB_NOLOCK, 0600));
    must(mdb_txn_begin(env, NULL, 0, &txn));
    for (uint32_t i = 0; i < old->rows; i++) {
        put_chunk(txn, &buf, i, !old->interrupted || i >= old->rows / 2);
    }
    if (!old->interrupted) {
        put_name(txn, OLD_NAME);
    }
    put_meta(txn, &buf, old);
    must(mdb_txn_commit(txn));
    mdb_env_close(env);
    mfi_buf_free(&buf);
}

void cl_old_make(const cl_old *old)
{
    pid_t pid = fork();
    if (pid == 0) {
        make_new(old);
        make_old(old);
        _exit(0);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        cl_give_up("an old file cannot be made");
    }
}
