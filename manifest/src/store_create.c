/* A new manifest: made under another name, complete and on the disk before it gets its own. */
#include "store_steps.h"

#include "bytes.h"
#include "codec.h"
#include "key.h"
#include "row.h"

#include <string.h>

/* A new environment is small; the process that opens it next chooses the size of the map. */
#define CREATE_MAP ((size_t)4 << 20)
/* And so is its file: a disk without room for it is found full before LMDB writes. */
#define CREATE_BYTES ((uint64_t)512 << 10)

uint32_t mfi_byte_order(void)
{
    uint32_t native = 0x01020304u;
    uint8_t bytes[sizeof native];
    memcpy(bytes, &native, sizeof native);
    return mfi_get_le32(bytes);
}

static mfi_meta first_meta(uint64_t now_ms)
{
    return (mfi_meta){
        .created_ms = now_ms,
        .last_ms = now_ms,
        .job_ids = 1,
        .schema = MFI_SCHEMA,
        .page_size = mfi_pages_size_here(),
        .byte_order = mfi_byte_order(),
        .clean = 1,
    };
}

static jzx_err put_meta(MDB_txn *txn, MDB_dbi dbi, uint64_t now_ms)
{
    mfi_meta meta = first_meta(now_ms);
    mfi_buf buf = {0};
    jzx_err err = mfi_encode_meta(&meta, NULL, &buf);
    if (err == JZX_OK) {
        jzx_mf_key key = mfi_key_meta();
        mfi_row_seal(key.table, jzx_mf_blob(key.bytes, key.len), buf.bytes, buf.len);
        MDB_val at = {key.len, key.bytes};
        MDB_val value = {buf.len, buf.bytes};
        err = mfi_err_of(mdb_put(txn, dbi, &at, &value, 0));
    }
    mfi_buf_free(&buf);
    return err;
}

static jzx_err fill(MDB_txn *txn, uint64_t now_ms)
{
    MDB_dbi meta = 0;
    for (uint32_t table = JZX_MF_TABLES; table-- > 0;) {
        int rc = mdb_dbi_open(txn, jzx_mf_table_name(table), MDB_CREATE, &meta);
        if (rc != 0) {
            return mfi_err_of(rc);
        }
    }
    return put_meta(txn, meta, now_ms); /* table 0 was the last */
}

static jzx_err fill_env(MDB_env *env, const char *path, uint64_t now_ms)
{
    int rc = mdb_env_set_maxdbs(env, MFI_DBS_MAX);
    rc = rc != 0 ? rc : mdb_env_set_mapsize(env, CREATE_MAP);
    /* No other process knows of the file: no lock file, whose name others could take first. */
    rc = rc != 0 ? rc : mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOTLS | MDB_NOLOCK, 0660);
    int fd;
    rc = rc != 0 ? rc : mdb_env_get_fd(env, &fd);
    rc = rc != 0 ? rc : mfi_allocate(fd, 0, CREATE_BYTES);
    MDB_txn *txn = NULL;
    rc = rc != 0 ? rc : mdb_txn_begin(env, NULL, 0, &txn);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    jzx_err err = fill(txn, now_ms);
    if (err != JZX_OK) {
        mdb_txn_abort(txn);
        return err;
    }
    return mfi_err_of(mdb_txn_commit(txn));
}

static jzx_err fill_file(const char *path, uint64_t now_ms)
{
    MDB_env *env = NULL;
    int rc = mdb_env_create(&env);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    jzx_err err = fill_env(env, path, now_ms);
    mdb_env_close(env);
    return err;
}

jzx_err mfi_create(const char *path, uint64_t now_ms, mfi_store_facts *facts)
{
    mfi_temp temp;
    jzx_err err = mfi_temp_make(path, &temp, facts);
    if (err != JZX_OK) {
        return err;
    }
    err = fill_file(temp.path, now_ms);
    if (err != JZX_OK) {
        (void)mfi_say(facts, err, path, "cannot be created: %s", jzx_strerror(err));
    } else {
        err = mfi_temp_publish(&temp, path, facts);
    }
    mfi_temp_drop(&temp);
    return err;
}
