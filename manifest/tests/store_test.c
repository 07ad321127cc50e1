/* Goal: a manifest is created whole, and whatever cannot be one is refused with a sentence that
 * says why, leaving everything as it was. */
#include "store_meta_kit.h"

static void write_meta(mfi_store *store, const mfi_meta *meta)
{
    mfi_buf buf = {0};
    REQUIRE_OK(mfi_encode_meta(meta, NULL, &buf));
    jzx_mf_key key = mfi_key_meta();
    mfi_row_seal(key.table, jzx_mf_blob(key.bytes, key.len), buf.bytes, buf.len);
    MDB_val at = {key.len, key.bytes};
    MDB_val value = {buf.len, buf.bytes};
    MDB_txn *txn = kit_txn(store);
    REQUIRE_EQ(mdb_put(txn, mfi_store_dbi(store, JZX_MF_TABLE_META), &at, &value, 0), 0);
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
    mfi_buf_free(&buf);
}

static void test_a_new_file_has_all_tables_and_the_first_record(void)
{
    kit k = kit_make();
    mfi_store_opts opts = kit_opts();
    mfi_store_facts facts;
    mfi_store *store;
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    CHECK(facts.created);
    mfi_meta meta = read_meta(store);
    CHECK_EQ(meta.schema, MFI_SCHEMA);
    CHECK_EQ(meta.created_ms, 1000);
    CHECK_EQ(meta.job_ids, 1);
    CHECK_EQ(meta.commit_seq, 0);
    CHECK_EQ(meta.boot, 0);
    CHECK_EQ(meta.clean, 1);
    CHECK_EQ(meta.page_size, mfi_pages_size_here());
    for (uint32_t i = 0; i < JZX_MF_TABLES; i++) {
        for (uint32_t j = 0; j < i; j++) {
            CHECK(mfi_store_dbi(store, i) != mfi_store_dbi(store, j));
        }
    }
    unsigned flags = 0;
    CHECK_EQ(mdb_env_get_flags(mfi_store_env(store), &flags), 0);
    CHECK_EQ(flags & (MDB_NOSUBDIR | MDB_NOTLS), MDB_NOSUBDIR | MDB_NOTLS);
    CHECK_EQ(flags & (MDB_NOSYNC | MDB_NOMETASYNC | MDB_WRITEMAP | MDB_MAPASYNC), 0);
    MDB_envinfo info;
    CHECK_EQ(mdb_env_info(mfi_store_env(store), &info), 0);
    CHECK_EQ(info.me_mapsize, opts.map_max);
    mfi_store_close(store);
    CHECK_EQ(kit_files(&k, false), 3); /* with -lock and -owner */
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    CHECK(!facts.created);
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_must_exist_and_readonly_create_nothing(void)
{
    kit k = kit_make();
    mfi_store_opts opts = kit_opts();
    opts.must_exist = true;
    kit_refused_with(k.path, &opts, JZX_ERR_NOT_FOUND, "no such file");
    opts.must_exist = false;
    opts.readonly = true;
    kit_refused_with(k.path, &opts, JZX_ERR_NOT_FOUND, "no such file");
    CHECK_EQ(kit_files(&k, false), 0);
    kit_drop(&k);
}

static void test_paths_that_cannot_be_are_refused(void)
{
    kit k = kit_make();
    mfi_store_opts opts = kit_opts();
    kit_refused_with("/no/such/directory/m", &opts, JZX_ERR_NOT_FOUND, "/no/such/directory");
    kit_refused_with(k.dir, &opts, JZX_ERR_INVALID_ARG, "is a directory");
    kit_refused_with("", &opts, JZX_ERR_INVALID_ARG, "");
    char name[200];
    (void)snprintf(name, sizeof name, "%s/", k.path);
    kit_refused_with(name, &opts, JZX_ERR_INVALID_ARG, "directory");
    REQUIRE_EQ(mkfifo(k.path, 0600), 0);
    kit_refused(&k, JZX_ERR_NOT_A_MANIFEST, "no regular file");
    (void)unlink(k.path);
    REQUIRE_EQ(symlink("nowhere", k.path), 0);
    kit_refused(&k, JZX_ERR_NOT_FOUND, "link to a file that is not there");
    char longer[5000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    kit_refused_with(longer, &opts, JZX_ERR_INVALID_ARG, "...");
    CHECK_EQ(kit_files(&k, false), 1);
    kit_drop(&k);
}

static void test_files_that_are_no_manifests_are_left_alone(void)
{
    kit k = kit_make();
    write_text(k.path, "");
    kit_refused(&k, JZX_ERR_NOT_A_MANIFEST, "is empty");
    write_text(k.path, "root:x:0:0:root:/root:/bin/sh\n");
    kit_refused(&k, JZX_ERR_NOT_A_MANIFEST, "too short");
    FILE *file = fopen(k.path, "w");
    REQUIRE(file != NULL);
    for (int i = 0; i < 2000; i++) {
        (void)fputs("not a manifest ", file);
    }
    (void)fclose(file);
    kit_refused(&k, JZX_ERR_NOT_A_MANIFEST, "no LMDB file");
    CHECK_EQ(kit_files(&k, false), 1);
    kit_drop(&k);
}

/* Another program's LMDB file: with tables, plain, or with kinds of tables we do not have. */
static void make_foreign(const kit *k, const char *table, unsigned flags)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val key = {1, "k"};
    REQUIRE_EQ(mdb_env_create(&env), 0);
    REQUIRE_EQ(mdb_env_set_maxdbs(env, 4), 0);
    REQUIRE_EQ(mdb_env_open(env, k->path, MDB_NOSUBDIR, 0600), 0);
    REQUIRE_EQ(mdb_txn_begin(env, NULL, 0, &txn), 0);
    REQUIRE_EQ(mdb_dbi_open(txn, table, flags | MDB_CREATE, &dbi), 0);
    REQUIRE_EQ(mdb_put(txn, dbi, &key, &key, 0), 0);
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void test_lmdb_files_of_others_are_refused(void)
{
    static const struct {
        const char *table;
        unsigned flags;
    } foreign[] = {{NULL, 0}, {"theirs", 0}, {"theirs", MDB_DUPSORT}, {NULL, MDB_INTEGERKEY}};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        for (unsigned how = 0; how < 4; how++) {
            kit k = kit_make();
            make_foreign(&k, foreign[i].table, foreign[i].flags);
            mfi_store_opts opts = kit_opts();
            opts.verify = (how & 1) != 0;
            opts.readonly = (how & 2) != 0;
            kit_refused_with(k.path, &opts, JZX_ERR_NOT_A_MANIFEST, "no table meta");
            kit_drop(&k);
        }
    }
}

static void test_no_access_is_said(void)
{
    if (geteuid() == 0) {
        jzt_skip("root may open everything");
    }
    kit k = kit_make();
    mfi_store_close(kit_open(&k));
    REQUIRE_EQ(chmod(k.path, 0400), 0);
    kit_refused(&k, JZX_ERR_NO_ACCESS, "cannot be opened");
    kit_drop(&k);
}

static int open_as_nobody(void *arg)
{
    kit *k = arg;
    if (setuid(65534) != 0) {
        return 77;
    }
    mfi_store_opts opts = kit_opts();
    mfi_store_facts facts;
    mfi_store *store;
    jzx_err err = mfi_store_open(k->path, &opts, &store, &facts);
    return err == JZX_ERR_NO_ACCESS && strstr(facts.text, k->path) != NULL ? 0 : 1;
}

static void test_another_user_is_told_that_it_has_no_access(void)
{
    if (geteuid() != 0) {
        jzt_skip("only root can become another user");
    }
    kit k = kit_make();
    mfi_store_close(kit_open(&k));
    CHECK_EQ(in_child(open_as_nobody, &k), 0);
    REQUIRE_EQ(chmod(k.dir, 0755), 0);
    CHECK_EQ(in_child(open_as_nobody, &k), 0);
    kit_drop(&k);
}

static int open_without_stderr(void *arg)
{
    kit *k = arg;
    mfi_store_opts opts = kit_opts();
    mfi_store_facts facts;
    mfi_store *store;
    (void)close(2);
    jzx_err err = mfi_store_open(k->path, &opts, &store, &facts);
    return err == JZX_ERR_BAD_FD && strstr(facts.text, "descriptor 2") != NULL ? 0 : 1;
}

static void test_a_closed_standard_descriptor_is_refused(void)
{
    kit k = kit_make();
    CHECK_EQ(in_child(open_without_stderr, &k), 0);
    CHECK_EQ(kit_files(&k, false), 0);
    kit_drop(&k);
}

static void test_network_file_systems_are_known(void)
{
    CHECK_STR(mfi_remote_fs(0x6969), "NFS");
    CHECK_STR(mfi_remote_fs(0xFF534D42), "CIFS");
    CHECK_STR(mfi_remote_fs(0xFFFFFFFFFF534D42u), "CIFS"); /* as a long of 32 bits extends it */
    CHECK_STR(mfi_remote_fs(0xFE534D42), "SMB");
    CHECK_STR(mfi_remote_fs(0x00C36400), "Ceph");
    CHECK_STR(mfi_remote_fs(0x01021997), "9p");
    CHECK_STR(mfi_remote_fs(0x5346414F), "AFS");
    CHECK(mfi_remote_fs(0xEF53) == NULL);     /* ext4 */
    CHECK(mfi_remote_fs(0x58465342) == NULL); /* XFS */
    CHECK(mfi_remote_fs(0x9123683E) == NULL); /* btrfs */
    CHECK(mfi_remote_fs(0x01021994) == NULL); /* tmpfs */
    CHECK(mfi_remote_fs(0x794C7630) == NULL); /* overlayfs */
    CHECK(mfi_remote_fs(0x65735546) == NULL); /* FUSE */
    CHECK(mfi_remote_fs(0) == NULL);
}

static void test_a_newer_schema_can_only_be_read(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    mfi_meta meta = read_meta(store);
    meta.schema = MFI_SCHEMA + 1;
    write_meta(store, &meta);
    mfi_store_close(store);
    char words[32];
    (void)snprintf(words, sizeof words, "has schema %u", MFI_SCHEMA + 1);
    kit_refused(&k, JZX_ERR_NEWER_SCHEMA, words);
    mfi_store_opts opts = kit_opts();
    opts.readonly = true;
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    CHECK_EQ(read_meta(store).schema, MFI_SCHEMA + 1);
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_a_record_from_another_machine_is_refused(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    mfi_meta meta = read_meta(store);
    mfi_meta foreign = meta;
    foreign.page_size = 16384;
    write_meta(store, &foreign);
    mfi_store_close(store);
    kit_refused(&k, JZX_ERR_FOREIGN_PAGES, "pages of 16384 bytes");
    kit_drop(&k);
    k = kit_make();
    store = kit_open(&k);
    meta.byte_order = 0x04030201;
    write_meta(store, &meta);
    mfi_store_close(store);
    kit_refused(&k, JZX_ERR_FOREIGN_PAGES, "byte order 04030201");
    kit_drop(&k);
}

static void test_a_missing_table_is_corrupt_or_made_by_migration(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    mfi_meta meta = read_meta(store);
    MDB_txn *txn = kit_txn(store);
    REQUIRE_EQ(mdb_drop(txn, mfi_store_dbi(store, JZX_MF_TABLE_CRON), 1), 0);
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
    mfi_store_close(store);
    kit_refused(&k, JZX_ERR_CORRUPT, "has no table cron");
    mfi_store_opts opts = kit_opts();
    opts.readonly = true;
    kit_refused_with(k.path, &opts, JZX_ERR_CORRUPT, "has no table cron");
    /* The first schema may have had fewer tables. */
    MDB_env *env;
    REQUIRE_EQ(mdb_env_create(&env), 0);
    REQUIRE_EQ(mdb_env_set_maxdbs(env, 4), 0);
    REQUIRE_EQ(mdb_env_open(env, k.path, MDB_NOSUBDIR, 0600), 0);
    MDB_dbi dbi;
    mfi_buf buf = {0};
    meta.schema = 0;
    REQUIRE_OK(mfi_encode_meta(&meta, NULL, &buf));
    jzx_mf_key key = mfi_key_meta();
    mfi_row_seal(key.table, jzx_mf_blob(key.bytes, key.len), buf.bytes, buf.len);
    MDB_val at = {key.len, key.bytes};
    MDB_val value = {buf.len, buf.bytes};
    REQUIRE_EQ(mdb_txn_begin(env, NULL, 0, &txn), 0);
    REQUIRE_EQ(mdb_dbi_open(txn, "meta", 0, &dbi), 0);
    REQUIRE_EQ(mdb_put(txn, dbi, &at, &value, 0), 0);
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    mfi_buf_free(&buf);
    mfi_store_close(kit_open(&k));
    kit_drop(&k);
}

static void test_a_damaged_meta_record_is_said(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    jzx_mf_key key = mfi_key_meta();
    MDB_val at = {key.len, key.bytes};
    MDB_val value = {9, "not a rec"};
    MDB_txn *txn = kit_txn(store);
    REQUIRE_EQ(mdb_put(txn, mfi_store_dbi(store, 0), &at, &value, 0), 0);
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
    mfi_store_close(store);
    kit_refused(&k, JZX_ERR_CORRUPT, "table meta is damaged");
    kit_drop(&k);
}

static void test_sizes_that_cannot_be_are_refused(void)
{
    kit k = kit_make();
    mfi_store_close(kit_open(&k));
    mfi_store_opts opts = kit_opts();
    opts.map_max = (uint64_t)1 << 62;
    kit_refused_with(k.path, &opts, JZX_ERR_NO_MEMORY, "map_max may be more");
    opts = kit_opts();
    opts.readers_max = UINT32_MAX;
    kit_refused_with(k.path, &opts, JZX_ERR_INVALID_ARG, "readers are too many");
    mfi_store_close(kit_open(&k));
    kit_drop(&k);
}

static void test_a_map_smaller_than_the_file_can_still_read_it(void)
{
    kit k = kit_make();
    jzt_rng rng = {1};
    mfi_store *store = kit_open(&k);
    kit_fill(store, &rng, 5, 200);
    mfi_store_close(store);
    mfi_store_opts opts = kit_opts();
    opts.map_max = 65536;
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    CHECK_EQ(read_meta(store).schema, MFI_SCHEMA);
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_numbers_of_lmdb_and_errno_have_errors(void)
{
    CHECK_EQ(mfi_err_of(0), JZX_OK);
    CHECK_EQ(mfi_err_of(MDB_NOTFOUND), JZX_ERR_NOT_FOUND);
    CHECK_EQ(mfi_err_of(MDB_MAP_FULL), JZX_ERR_MAP_FULL);
    CHECK_EQ(mfi_err_of(MDB_READERS_FULL), JZX_ERR_BUSY);
    CHECK_EQ(mfi_err_of(MDB_PANIC), JZX_ERR_IN_DOUBT);
    CHECK_EQ(mfi_err_of(MDB_CORRUPTED), JZX_ERR_CORRUPT);
    CHECK_EQ(mfi_err_of(ENOSPC), JZX_ERR_NO_SPACE);
    CHECK_EQ(mfi_err_of(EDQUOT), JZX_ERR_NO_SPACE);
    CHECK_EQ(mfi_err_of(ENOMEM), JZX_ERR_NO_MEMORY);
    CHECK_EQ(mfi_err_of(EACCES), JZX_ERR_NO_ACCESS);
    CHECK_EQ(mfi_err_of(EIO), JZX_ERR_IO);
    CHECK_EQ(mfi_err_of(12345), JZX_ERR_IO);
}

static const jzt_test tests[] = {
    {"a_new_file_has_all_tables_and_the_first_record",
     test_a_new_file_has_all_tables_and_the_first_record},
    {"must_exist_and_readonly_create_nothing", test_must_exist_and_readonly_create_nothing},
    {"paths_that_cannot_be_are_refused", test_paths_that_cannot_be_are_refused},
    {"files_that_are_no_manifests_are_left_alone", test_files_that_are_no_manifests_are_left_alone},
    {"lmdb_files_of_others_are_refused", test_lmdb_files_of_others_are_refused},
    {"no_access_is_said", test_no_access_is_said},
    {"another_user_is_told_that_it_has_no_access", test_another_user_is_told_that_it_has_no_access},
    {"a_closed_standard_descriptor_is_refused", test_a_closed_standard_descriptor_is_refused},
    {"network_file_systems_are_known", test_network_file_systems_are_known},
    {"a_newer_schema_can_only_be_read", test_a_newer_schema_can_only_be_read},
    {"a_record_from_another_machine_is_refused", test_a_record_from_another_machine_is_refused},
    {"a_missing_table_is_corrupt_or_made_by_migration",
     test_a_missing_table_is_corrupt_or_made_by_migration},
    {"a_damaged_meta_record_is_said", test_a_damaged_meta_record_is_said},
    {"sizes_that_cannot_be_are_refused", test_sizes_that_cannot_be_are_refused},
    {"a_map_smaller_than_the_file_can_still_read_it",
     test_a_map_smaller_than_the_file_can_still_read_it},
    {"numbers_of_lmdb_and_errno_have_errors", test_numbers_of_lmdb_and_errno_have_errors},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
