/* Opening a manifest: every reason to refuse it, in the order in which they can be told. */
#include "store_steps.h"

#include "codec.h"
#include "key.h"
#include "memory.h"
#include "row.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READERS_DEFAULT 1024u
#define READERS_MOST (1u << 20)
#define MAP_DEFAULT ((uint64_t)16 << 30)

uint32_t mfi_store_page_size(void)
{
    return (uint32_t)sysconf(_SC_PAGESIZE);
}

bool mfi_lacks_room(int rc)
{
    return rc == ENOSPC || rc == EDQUOT || rc == MDB_MAP_FULL || rc == MDB_TXN_FULL;
}

jzx_err mfi_err_of(int rc)
{
    switch (rc) {
    case 0:
        return JZX_OK;
    case MDB_NOTFOUND:
        return JZX_ERR_NOT_FOUND;
    case MDB_KEYEXIST:
        return JZX_ERR_ALREADY;
    case MDB_MAP_FULL:
    case MDB_MAP_RESIZED: /* the file grew beyond our map_max in another process */
    case MDB_TXN_FULL:
        return JZX_ERR_MAP_FULL;
    case MDB_READERS_FULL:
        return JZX_ERR_BUSY;
    case MDB_PANIC:
        return JZX_ERR_IN_DOUBT;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PAGE_FULL:
    case MDB_CURSOR_FULL:
        return JZX_ERR_CORRUPT;
    case MDB_INVALID:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
        return JZX_ERR_NOT_A_MANIFEST;
    case MDB_BAD_VALSIZE:
        return JZX_ERR_TOO_BIG;
    case ENOMEM:
        return JZX_ERR_NO_MEMORY;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return JZX_ERR_NO_SPACE;
    case ENOENT:
    case ENOTDIR:
        return JZX_ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return JZX_ERR_NO_ACCESS;
    case EMFILE:
    case ENFILE:
        return JZX_ERR_NO_FDS;
    case EEXIST:
        return JZX_ERR_ALREADY;
    case EINVAL:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return JZX_ERR_INVALID_ARG;
    default:
        return JZX_ERR_IO;
    }
}

/* The file would get one of these numbers, and code that prints would write into it. */
static jzx_err refuse_closed_fds(const char *path, mfi_store_facts *facts)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            return mfi_say(facts, JZX_ERR_BAD_FD, path,
                           "not opened while descriptor %d is closed: what is printed would go "
                           "into the file; open /dev/null there",
                           fd);
        }
    }
    return JZX_OK;
}

static jzx_err refuse_kind(const mfi_store *store, const struct stat *st, mfi_store_facts *facts)
{
    if (S_ISDIR(st->st_mode)) {
        return mfi_say(facts, JZX_ERR_INVALID_ARG, store->path,
                       "is a directory; a manifest is a file");
    }
    if (!S_ISREG(st->st_mode)) {
        return mfi_say(facts, JZX_ERR_NOT_A_MANIFEST, store->path, "is no regular file");
    }
    if (st->st_nlink > 1) {
        return mfi_say(facts, JZX_ERR_INVALID_ARG, store->path,
                       "has %lu names (hard links), and the locks would lie beside one of them: "
                       "copy it",
                       (unsigned long)st->st_nlink);
    }
    return JZX_OK;
}

/* Creates the file if that is wanted and it is not there. */
static jzx_err find_or_create(mfi_store *store, const mfi_store_opts *opts, mfi_store_facts *facts)
{
    struct stat st;
    if (stat(store->path, &st) == 0) {
        return refuse_kind(store, &st, facts);
    }
    if (errno != ENOENT) {
        return mfi_say_errno(facts, store->path, "cannot be reached");
    }
    if (opts->readonly || opts->must_exist) {
        return mfi_say(facts, JZX_ERR_NOT_FOUND, store->path, "there is no such file");
    }
    jzx_err err = mfi_create(store->path, opts->now_ms, facts);
    facts->created = err == JZX_OK;
    return err;
}

static jzx_err open_env(mfi_store *store, const mfi_store_opts *opts, mfi_store_facts *facts)
{
    uint64_t map = opts->map_max != 0 ? opts->map_max : MAP_DEFAULT;
    jzx_err err = mfi_lock_prepare(store, facts);
    if (err != JZX_OK) {
        return err;
    }
    int rc = mdb_env_create(&store->env);
    rc = rc != 0 ? rc : mdb_env_set_maxdbs(store->env, MFI_DBS_MAX);
    rc = rc != 0 ? rc : mdb_env_set_mapsize(store->env, (size_t)map);
    rc = rc != 0 ? rc : mdb_env_set_maxreaders(store->env, store->readers_cap);
    store->map_bytes = map;
    unsigned flags = MDB_NOSUBDIR | MDB_NOTLS | (store->readonly ? MDB_RDONLY : 0u);
    rc = rc != 0 ? rc : mdb_env_open(store->env, store->path, flags, 0660);
    if (rc == 0) {
        facts->readers_reaped = mfi_store_reap(store);
        return mfi_lock_compare(store, facts);
    }
    const char *hint = rc == EACCES   ? "; readers too must be able to write its -lock file"
                       : rc == ENOMEM ? "; map_max may be more than the address space has"
                                      : "";
    return mfi_say(facts, mfi_err_of(rc), store->path, "LMDB cannot open it: %s%s",
                   mdb_strerror(rc), hint);
}

static jzx_err look_at_meta(const mfi_store *store, MDB_txn *txn, uint32_t *out_schema,
                            mfi_store_facts *facts)
{
    jzx_mf_key key = mfi_key_meta();
    MDB_val at = {key.len, key.bytes};
    MDB_val value;
    int rc = mdb_get(txn, store->dbis[JZX_MF_TABLE_META], &at, &value);
    if (rc != 0) {
        return mfi_say(facts, JZX_ERR_NOT_A_MANIFEST, store->path,
                       "has a table meta without a manifest's record");
    }
    mfi_meta meta;
    jzx_mf_span span = jzx_mf_blob(value.mv_data, value.mv_size);
    jzx_err err = mfi_row_check(key.table, jzx_mf_blob(key.bytes, key.len), span);
    if (err == JZX_OK) {
        err = mfi_decode_meta(span, &meta, NULL);
    }
    if (err == JZX_ERR_NEWER_SCHEMA) {
        return mfi_say(facts, err, store->path, "was written by a newer version of this library");
    }
    if (err != JZX_OK) {
        return mfi_say(facts, err, store->path, "the record in table meta is damaged");
    }
    if (meta.byte_order != mfi_byte_order() || meta.page_size != mfi_pages_size_here()) {
        return mfi_say(facts, JZX_ERR_FOREIGN_PAGES, store->path,
                       "was created with pages of %u bytes and byte order %08x; here it is %u and "
                       "%08x: move it with mdb_dump and mdb_load",
                       meta.page_size, meta.byte_order, mfi_pages_size_here(), mfi_byte_order());
    }
    if (meta.schema > MFI_SCHEMA && !store->readonly) {
        return mfi_say(facts, JZX_ERR_NEWER_SCHEMA, store->path,
                       "has schema %u, this library knows %u: it can only be read", meta.schema,
                       MFI_SCHEMA);
    }
    *out_schema = meta.schema;
    return JZX_OK;
}

static jzx_err open_table(mfi_store *store, MDB_txn *txn, uint32_t table, unsigned flags,
                          mfi_store_facts *facts)
{
    const char *name = jzx_mf_table_name(table);
    int rc = mdb_dbi_open(txn, name, flags, &store->dbis[table]);
    if (rc == 0) {
        return JZX_OK;
    }
    if (table == JZX_MF_TABLE_META && (rc == MDB_NOTFOUND || rc == MDB_INCOMPATIBLE)) {
        return mfi_say(facts, JZX_ERR_NOT_A_MANIFEST, store->path,
                       "is an LMDB file, but has no table meta");
    }
    if (rc == MDB_NOTFOUND) {
        return mfi_say(facts, JZX_ERR_CORRUPT, store->path, "has no table %s", name);
    }
    return mfi_say(facts, mfi_err_of(rc), store->path, "table %s cannot be opened: %s", name,
                   mdb_strerror(rc));
}

/* Before schema 1 there may have been fewer tables. Since then one that is missing was lost, and to
 * make an empty one of it would hide that. */
static jzx_err open_tables(mfi_store *store, MDB_txn *txn, mfi_store_facts *facts)
{
    uint32_t schema = 0;
    jzx_err err = open_table(store, txn, JZX_MF_TABLE_META, 0, facts);
    if (err == JZX_OK) {
        err = look_at_meta(store, txn, &schema, facts);
    }
    unsigned flags = schema == 0 && !store->readonly ? MDB_CREATE : 0;
    for (uint32_t table = JZX_MF_TABLE_META + 1; err == JZX_OK && table < JZX_MF_TABLES; table++) {
        err = open_table(store, txn, table, flags, facts);
    }
    return err;
}

static jzx_err open_in_txn(mfi_store *store, mfi_store_facts *facts)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(store->env, NULL, store->readonly ? MDB_RDONLY : 0, &txn);
    if (rc != 0) {
        return mfi_say(facts, mfi_err_of(rc), store->path, "cannot be read: %s", mdb_strerror(rc));
    }
    if (!store->readonly) {
        mfi_space_begin(store);
        mfi_space_learn(store, txn);
    }
    jzx_err err = open_tables(store, txn, facts);
    if (err == JZX_OK && !store->readonly) {
        const mfi_writes tables = {JZX_MF_TABLES, 0};
        err = mfi_store_make_room(store, txn, &tables, false);
        if (err != JZX_OK) {
            (void)mfi_say(facts, err, store->path, "has no room on its disk to be opened: %s",
                          jzx_strerror(err));
        }
    }
    if (err != JZX_OK) {
        mdb_txn_abort(txn);
        return err;
    }
    rc = mdb_txn_commit(txn); /* keeps the handles; writes nothing unless a table was created */
    return rc == 0 ? JZX_OK
                   : mfi_say(facts, mfi_err_of(rc), store->path, "cannot be written: %s",
                             mdb_strerror(rc));
}

static jzx_err walk_pages(const mfi_store *store, int fd, const mfi_pages_meta *meta,
                          const mfi_store_opts *opts, mfi_store_facts *facts)
{
    mfi_pages_report report;
    jzx_err err = mfi_pages_walk(fd, meta, opts->check_fn, opts->check_arg, &report);
    if (opts->pages != NULL) {
        *opts->pages = report;
    }
    if (err == JZX_OK) {
        return JZX_OK;
    }
    if (err != JZX_ERR_CORRUPT) {
        return mfi_say(facts, err, store->path, "its pages were not looked at to the end: %s",
                       jzx_strerror(err));
    }
    bool is_ours = report.has_meta || !report.is_foreign;
    return is_ours ? mfi_say(facts, JZX_ERR_CORRUPT, store->path, "damaged: %s", report.text)
                   : mfi_say(facts, JZX_ERR_NOT_A_MANIFEST, store->path,
                             "is an LMDB file, but has no table meta");
}

/* Beside an owner only the pages of a read transaction keep still. */
static jzx_err walk_snapshot(const mfi_store *store, MDB_txn *txn, const mfi_store_opts *opts,
                             mfi_store_facts *facts)
{
    enum { TRIES = 1000 };
    int fd;
    char text[MFI_PAGES_TEXT];
    mfi_pages_meta meta;
    int rc = mdb_env_get_fd(store->env, &fd);
    jzx_err err = rc == 0 ? JZX_ERR_AGAIN : mfi_err_of(rc);
    for (int i = 0; err == JZX_ERR_AGAIN && rc == 0 && i < TRIES; i++) {
        err = mfi_pages_head_of(fd, mdb_txn_id(txn), &meta, text);
        if (err == JZX_ERR_AGAIN) {
            mdb_txn_reset(txn);
            rc = mdb_txn_renew(txn);
        }
    }
    if (rc != 0 || err == JZX_ERR_AGAIN) {
        return mfi_say(facts, JZX_ERR_BUSY, store->path, "its owner commits too fast to be read");
    }
    return err == JZX_OK ? walk_pages(store, fd, &meta, opts, facts)
                         : mfi_say(facts, err, store->path, "%s", text);
}

static jzx_err verify_beside(mfi_store *store, const mfi_store_opts *opts, mfi_store_facts *facts)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &txn);
    if (rc != 0) {
        return mfi_say(facts, mfi_err_of(rc), store->path, "cannot be read: %s", mdb_strerror(rc));
    }
    jzx_err err = walk_snapshot(store, txn, opts, facts);
    mdb_txn_abort(txn);
    return err;
}

/* Before LMDB sees the file: its meta pages, and if we own it, all pages. */
static jzx_err look_at_pages(mfi_store *store, int fd, const mfi_store_opts *opts,
                             mfi_store_facts *facts)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return mfi_say_errno(facts, store->path, "cannot be looked at");
    }
    jzx_err err = mfi_claim_file(&store->claim, st.st_dev, st.st_ino, facts);
    if (err != JZX_OK) {
        return err;
    }
    mfi_pages_meta meta;
    char text[MFI_PAGES_TEXT];
    err = mfi_pages_head(fd, &meta, text);
    if (err != JZX_OK) {
        return mfi_say(facts, err, store->path, "%s", text);
    }
    return opts->verify && !opts->readonly ? walk_pages(store, fd, &meta, opts, facts) : JZX_OK;
}

static jzx_err open_file(mfi_store *store, const mfi_store_opts *opts, mfi_store_facts *facts)
{
    jzx_err err = find_or_create(store, opts, facts);
    if (err != JZX_OK) {
        return err;
    }
    /* Not blocking: it might be a pipe by now. */
    int fd = open(store->path, (store->readonly ? O_RDONLY : O_RDWR) | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return mfi_say_errno(facts, store->path, "cannot be opened");
    }
    err = look_at_pages(store, fd, opts, facts);
    (void)close(fd);
    if (err == JZX_OK) {
        err = open_env(store, opts, facts);
    }
    if (err == JZX_OK && opts->verify && opts->readonly) {
        err = verify_beside(store, opts, facts);
    }
    return err == JZX_OK ? open_in_txn(store, facts) : err;
}

/* Earlier versions had a file for the space that is in the manifest itself now. */
static void drop_old_reserve(const char *path)
{
    char *name = mfi_path_with(path, "-reserve");
    if (name != NULL) {
        (void)unlink(name);
        mfi_free(name);
    }
}

static jzx_err open_claimed(mfi_store *store, const mfi_store_opts *opts, mfi_store_facts *facts)
{
    if (!opts->readonly) {
        jzx_err err = mfi_claim_own(&store->claim, facts);
        if (err != JZX_OK) {
            return err;
        }
        mfi_temps_clean(store->path);
        drop_old_reserve(store->path);
    }
    return open_file(store, opts, facts);
}

/* In a forked child what LMDB has stays as it is: to close it would end the parent's readers. */
static void close_env(mfi_store *store)
{
    mfi_readers_deinit(store);
    if (store->env != NULL && !mfi_store_forked(store)) {
        mdb_env_close(store->env);
    }
    store->env = NULL;
}

static jzx_err open_at(mfi_store *store, const mfi_store_opts *opts, mfi_store_facts *facts)
{
    jzx_err err = mfi_refuse_remote(store->path, facts);
    if (err == JZX_OK) {
        err = mfi_claim_begin(&store->claim, store->path, facts);
    }
    if (err != JZX_OK) {
        return err;
    }
    err = open_claimed(store, opts, facts);
    if (err != JZX_OK) {
        close_env(store);
        mfi_claim_end(&store->claim, true);
    }
    return err;
}

jzx_err mfi_store_open(const char *path, const mfi_store_opts *opts, mfi_store **out,
                       mfi_store_facts *facts)
{
    *facts = (mfi_store_facts){0};
    if (opts->readers_max > READERS_MOST) {
        return mfi_say(facts, JZX_ERR_INVALID_ARG, path, "%u readers are too many; %u is the most",
                       opts->readers_max, READERS_MOST);
    }
    jzx_err err = refuse_closed_fds(path, facts);
    if (err != JZX_OK) {
        return err;
    }
    mfi_store *store = mfi_alloc_zeroed(1, sizeof *store);
    if (store == NULL) {
        return mfi_say(facts, JZX_ERR_NO_MEMORY, path, "no memory to open it");
    }
    store->readonly = opts->readonly;
    store->reserve_bytes = opts->readonly ? 0 : opts->reserve_bytes;
    store->clock_ms = opts->clock_ms;
    store->clock_arg = opts->clock_arg;
    err = mfi_readers_init(store, opts->readers_max != 0 ? opts->readers_max : READERS_DEFAULT);
    if (err != JZX_OK) {
        (void)mfi_say(facts, err, path, "no memory for its readers");
    } else {
        err = mfi_path_canonical(path, &store->path, facts);
    }
    if (err == JZX_OK) {
        err = open_at(store, opts, facts);
    }
    if (err != JZX_OK) {
        mfi_readers_deinit(store);
        mfi_free(store->path);
        mfi_free(store);
        return err;
    }
    *out = store;
    return JZX_OK;
}

void mfi_store_close(mfi_store *store)
{
    if (store == NULL) {
        return;
    }
    close_env(store);
    mfi_claim_end(&store->claim, false);
    mfi_free(store->path);
    mfi_free(store);
}

MDB_env *mfi_store_env(mfi_store *store)
{
    return store->env;
}

MDB_dbi mfi_store_dbi(const mfi_store *store, uint32_t table)
{
    return store->dbis[table];
}

const char *mfi_store_path(const mfi_store *store)
{
    return store->path;
}

bool mfi_store_forked(const mfi_store *store)
{
    return atomic_load_explicit(&store->claim.forked, memory_order_relaxed);
}

/* A record of the free list starts with the number of its pages. */
static jzx_err count_free(MDB_txn *txn, uint64_t *out_pages)
{
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(txn, 0, &cursor);
    if (rc != 0) {
        return mfi_err_of(rc);
    }
    uint64_t pages = 0;
    MDB_val key;
    MDB_val value;
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        size_t count;
        memcpy(&count, value.mv_data, sizeof count);
        pages += count;
    }
    mdb_cursor_close(cursor);
    *out_pages = pages;
    return rc == MDB_NOTFOUND ? JZX_OK : mfi_err_of(rc);
}

jzx_err mfi_store_size(mfi_store *store, MDB_txn *txn, uint64_t *out_used, uint64_t *out_free)
{
    MDB_envinfo info;
    MDB_stat stat;
    uint64_t free_pages = 0;
    int rc = mdb_env_info(store->env, &info);
    rc = rc != 0 ? rc : mdb_env_stat(store->env, &stat);
    jzx_err err = rc != 0 ? mfi_err_of(rc) : count_free(txn, &free_pages);
    if (err == JZX_OK) {
        *out_used = ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize;
        *out_free = free_pages * stat.ms_psize;
    }
    return err;
}
