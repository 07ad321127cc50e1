#include "mistake.h"

#include "codec.h"
#include "key.h"
#include "row.h"
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(int rc)
{
    if (rc) {
        fprintf(stderr, "crashlab: making a mistake: %s\n", mdb_strerror(rc));
        abort();
    }
}

static MDB_env *env_open(const char *path, unsigned flags)
{
    MDB_env *env;
    must(mdb_env_create(&env));
    must(mdb_env_set_maxdbs(env, 64));
    must(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOTLS | flags, 0600));
    return env;
}

static MDB_txn *begin(MDB_env *env, unsigned flags)
{
    MDB_txn *txn;
    must(mdb_txn_begin(env, NULL, flags, &txn));
    return txn;
}

/* ---- the index in a second transaction */

static bool is_index(uint32_t table)
{
    switch (table) {
    case JZX_MF_TABLE_DB_NAME:
    case JZX_MF_TABLE_UNIQUE:
    case JZX_MF_TABLE_READY:
    case JZX_MF_TABLE_SCHEDULED:
    case JZX_MF_TABLE_LEASE:
    case JZX_MF_TABLE_ACTIVE:
    case JZX_MF_TABLE_BLOCKED:
    case JZX_MF_TABLE_FINISHED:
    case JZX_MF_TABLE_DEPENDENCY:
    case JZX_MF_TABLE_MATERIAL_STATUS:
        return true;
    default:
        return false;
    }
}

static void copy_table(MDB_txn *from, MDB_txn *to, const char *table)
{
    MDB_dbi from_dbi, to_dbi;
    MDB_cursor *cursor;
    must(mdb_dbi_open(from, table, 0, &from_dbi));
    must(mdb_dbi_open(to, table, 0, &to_dbi));
    must(mdb_drop(to, to_dbi, 0));
    must(mdb_cursor_open(from, from_dbi, &cursor));
    MDB_val key, value;
    while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        must(mdb_put(to, to_dbi, &key, &value, MDB_APPEND));
    }
    mdb_cursor_close(cursor);
}

static void write_meta(const char *path, const cl_item *item)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || pwrite(fd, item->data, item->len, (off_t)item->off) != (ssize_t)item->len) {
        abort();
    }
    (void)close(fd);
}

bool cl_mistake_index_later(const cl_case *c)
{
    const cl_disk *disk = c->state->disk;
    const cl_item *last = disk->item_count ? &disk->items[disk->item_count - 1] : NULL;
    if (!c->there || c->state->shape != CL_SHAPE_NONE || !last || last->op != CL_WRITE ||
        last->minor || last->len >= 512 || last->off >= 2 * (uint64_t)CL_PAGE) {
        return false;
    }
    char next[PATH_MAX];
    (void)snprintf(next, sizeof next, "%s-next", c->path);
    cl_file_copy(c->path, next);
    write_meta(next, last);
    MDB_env *from_env = env_open(next, MDB_RDONLY), *to_env = env_open(c->path, 0);
    MDB_txn *from = begin(from_env, MDB_RDONLY), *to = begin(to_env, 0);
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        if (!is_index(table)) {
            copy_table(from, to, jzx_mf_table_name(table));
        }
    }
    mdb_txn_abort(from);
    must(mdb_txn_commit(to));
    mdb_env_close(from_env);
    mdb_env_close(to_env);
    (void)unlink(next);
    return true;
}

/* ---- recovery without the attempt */

static void take_back(MDB_txn *txn, MDB_dbi dbi, uint64_t id)
{
    jzx_mf_key key = jzx_mf_key_job(id);
    MDB_val at = {key.len, key.bytes}, value;
    if (mdb_get(txn, dbi, &at, &value) != 0) {
        return;
    }
    jzx_mf_job job;
    mfi_buf buf = {.bytes = NULL};
    jzx_mf_span span = {value.mv_data, value.mv_size};
    if (mfi_decode_job(span, &job, NULL) != JZX_OK) {
        abort();
    }
    job.attempt--;
    if (mfi_encode_job(&job, NULL, &buf) != JZX_OK) {
        abort();
    }
    mfi_row_seal(key.table, jzx_mf_blob(key.bytes, key.len), buf.bytes, buf.len);
    MDB_val changed = {buf.len, buf.bytes};
    must(mdb_put(txn, dbi, &at, &changed, 0));
    mfi_buf_free(&buf);
}

void cl_mistake_no_attempts(const char *path, const cl_facts *before)
{
    MDB_env *env = env_open(path, 0);
    MDB_txn *txn = begin(env, 0);
    MDB_dbi dbi;
    must(mdb_dbi_open(txn, jzx_mf_table_name(JZX_MF_TABLE_JOB), 0, &dbi));
    for (uint32_t i = 0; i < before->job_count; i++) {
        if (before->jobs[i].state == JZX_MF_JOB_ACTIVE) {
            take_back(txn, dbi, before->jobs[i].id);
        }
    }
    must(mdb_txn_commit(txn));
    mdb_env_close(env);
}
