/* Goal: new files appear whole or not at all, whatever fails and whenever the process dies; copies
 * are manifests; the reserve is there when it is needed.
 * Method: the calls that matter are replaced by ones that count, and fail or kill at the nth. */
/* program of its own: fsync(), link() and others are replaced. */
#include "store_kit.h"

#include "store_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int fail_with; /* errno, or -1: the process dies */
static int fail_at;   /* 0: never */
static int calls;
static bool no_rename; /* as on a file system that knows no RENAME_NOREPLACE */

static bool fails_now(void)
{
    if (fail_at == 0 || ++calls != fail_at) {
        return false;
    }
    if (fail_with < 0) {
        (void)raise(SIGKILL);
    }
    errno = fail_with;
    return true;
}

int fsync(int fd)
{
    return fails_now() ? -1 : (int)syscall(SYS_fsync, fd);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    if (no_rename) {
        errno = EINVAL;
        return -1;
    }
    return fails_now() ? -1 : (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

int link(const char *from, const char *to)
{
    return fails_now() ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int dir, const char *name, int flags)
{
    return fails_now() ? -1 : (int)syscall(SYS_unlinkat, dir, name, flags);
}

int flock(int fd, int how)
{
    return fails_now() ? -1 : (int)syscall(SYS_flock, fd, how);
}

static void arm(int with, int at)
{
    calls = 0;
    fail_with = with;
    fail_at = at;
}

static char *name_in(const kit *k, const char *name)
{
    static char names[4][160];
    static unsigned next;
    char *out = names[next++ % 4];
    (void)snprintf(out, sizeof names[0], "%s/%s", k->dir, name);
    return out;
}

static void touch(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    (void)close(fd);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void test_a_death_while_creating_leaves_all_or_nothing(void)
{
    for (unsigned fallback = 0; fallback < 2; fallback++) {
        bool finished = false;
        for (int at = 1; !finished && at < 50; at++) {
            kit k = kit_make();
            pid_t pid = fork();
            REQUIRE(pid >= 0);
            if (pid == 0) {
                no_rename = fallback == 1;
                arm(-1, at);
                mfi_store *store = kit_open(&k);
                mfi_store_close(store);
                _exit(0);
            }
            int status = 0;
            REQUIRE_EQ(waitpid(pid, &status, 0), pid);
            finished = WIFEXITED(status);
            CHECK(finished || WTERMSIG(status) == SIGKILL);
            mfi_store_close(kit_open(&k));
            CHECK_EQ(kit_files(&k, false), 3);
            kit_drop(&k);
        }
        CHECK(finished);
    }
}

static void test_an_error_while_creating_leaves_nothing(void)
{
    static const int errors[] = {EIO, ENOSPC};
    for (unsigned e = 0; e < 2; e++) {
        bool finished = false;
        for (int at = 1; !finished && at < 50; at++) {
            kit k = kit_make();
            mfi_store_opts opts = kit_opts();
            mfi_store_facts facts;
            mfi_store *store = NULL;
            arm(errors[e], at);
            jzx_err err = mfi_store_open(k.path, &opts, &store, &facts);
            finished = calls < at;
            arm(0, 0);
            mfi_store_close(store);
            if (err != JZX_OK) {
                CHECK(strstr(facts.text, k.path) != NULL);
                CHECK_EQ(err, errors[e] == EIO ? JZX_ERR_IO : JZX_ERR_NO_SPACE);
            }
            /* The next one finds no trouble, and no rubbish. */
            mfi_store_close(kit_open(&k));
            CHECK_EQ(kit_files(&k, false), 3);
            kit_drop(&k);
        }
        CHECK(finished);
    }
}

static void test_leftovers_of_the_dead_are_removed_and_nothing_else(void)
{
    kit k = kit_make();
    touch(name_in(&k, "m.tmp-1.0"));
    touch(name_in(&k, "m.tmp-1.0-lock"));
    touch(name_in(&k, "m.tmp-99999.17"));
    touch(name_in(&k, "m.tmp-mine"));
    touch(name_in(&k, "m.tmp-"));
    touch(name_in(&k, "other.tmp-1.0"));
    touch(name_in(&k, "m.tmp-5.5"));
    int fd = open(name_in(&k, "m.tmp-5.5"), O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(flock(fd, LOCK_EX), 0);
    mfi_store_close(kit_open(&k));
    CHECK(!is_there(name_in(&k, "m.tmp-1.0")));
    CHECK(!is_there(name_in(&k, "m.tmp-1.0-lock")));
    CHECK(!is_there(name_in(&k, "m.tmp-99999.17")));
    CHECK(is_there(name_in(&k, "m.tmp-mine")));
    CHECK(is_there(name_in(&k, "m.tmp-")));
    CHECK(is_there(name_in(&k, "other.tmp-1.0")));
    CHECK(is_there(name_in(&k, "m.tmp-5.5"))); /* somebody is at it */
    (void)close(fd);
    mfi_store_close(kit_open(&k));
    CHECK(!is_there(name_in(&k, "m.tmp-5.5")));
    kit_drop(&k);
}

static void test_a_new_file_replaces_nothing(void)
{
    for (unsigned fallback = 0; fallback < 2; fallback++) {
        kit k = kit_make();
        mfi_store_facts facts;
        mfi_temp temp;
        no_rename = fallback == 1;
        REQUIRE_OK(mfi_temp_make(k.path, &temp, &facts));
        REQUIRE_EQ(write(temp.fd, "new", 3), 3);
        touch(k.path); /* somebody was faster */
        CHECK_EQ(mfi_temp_publish(&temp, k.path, &facts), JZX_ERR_ALREADY);
        mfi_temp_drop(&temp);
        no_rename = false;
        struct stat st;
        REQUIRE_EQ(stat(k.path, &st), 0);
        CHECK_EQ(st.st_size, 0);
        CHECK_EQ(kit_files(&k, false), 1);
        kit_drop(&k);
    }
}

static uint64_t entries(mfi_store *store)
{
    mfi_reader *reader;
    uint64_t sum = 0;
    REQUIRE_OK(mfi_reader_begin(store, &reader));
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        MDB_stat stat;
        REQUIRE_EQ(mdb_stat(mfi_reader_txn(reader), mfi_store_dbi(store, table), &stat), 0);
        sum += stat.ms_entries;
    }
    mfi_reader_end(store, reader);
    return sum;
}

static void test_a_copy_is_a_manifest_and_smaller(void)
{
    kit k = kit_make();
    jzt_rng rng = {1};
    mfi_store *store = kit_open(&k);
    kit_fill(store, &rng, 10, 200);
    char *copy = name_in(&k, "copy");
    REQUIRE_OK(mfi_store_backup(store, copy));
    uint64_t want = entries(store);
    CHECK_EQ(mfi_store_backup(store, copy), JZX_ERR_ALREADY);
    CHECK_EQ(mfi_store_backup(store, k.path), JZX_ERR_ALREADY);
    mfi_store_close(store);
    struct stat source;
    struct stat target;
    REQUIRE_EQ(stat(k.path, &source), 0);
    REQUIRE_EQ(stat(copy, &target), 0);
    CHECK(target.st_size < source.st_size);
    CHECK_EQ(kit_files(&k, false), 4); /* the copy came without companions */
    mfi_store_opts opts = kit_opts();
    mfi_store_facts facts;
    REQUIRE_OK(mfi_store_open(copy, &opts, &store, &facts));
    CHECK(!facts.created);
    CHECK_EQ(entries(store), want);
    kit_fill(store, &rng, 2, 50);
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_a_copy_that_cannot_be_leaves_nothing(void)
{
    kit k = kit_make();
    jzt_rng rng = {1};
    mfi_store *store = kit_open(&k);
    kit_fill(store, &rng, 2, 50);
    CHECK_EQ(mfi_store_backup(store, name_in(&k, "none/copy")), JZX_ERR_NOT_FOUND);
    bool finished = false;
    for (int at = 1; !finished && at < 50; at++) {
        char *copy = name_in(&k, "copy");
        arm(EIO, at);
        jzx_err err = mfi_store_backup(store, copy);
        finished = calls < at;
        arm(0, 0);
        CHECK(err == JZX_ERR_IO || err == JZX_OK);
        mfi_temps_clean(copy); /* when removing it was what failed */
        (void)unlink(copy);    /* when it was there, but perhaps not for ever */
        CHECK_EQ(kit_files(&k, false), 3);
    }
    CHECK(finished);
    mfi_store_close(store);
    kit_drop(&k);
}

/* A disk that is full: no file may become longer than this. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    (void)signal(SIGXFSZ, SIG_IGN);
    REQUIRE_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_a_full_disk_ends_a_copy_without_rubbish(void)
{
    kit k = kit_make();
    jzt_rng rng = {1};
    mfi_store *store = kit_open(&k);
    kit_fill(store, &rng, 5, 200);
    limit_files(100000);
    CHECK_EQ(mfi_store_backup(store, name_in(&k, "copy")), JZX_ERR_NO_SPACE);
    limit_files(RLIM_INFINITY);
    CHECK_EQ(kit_files(&k, false), 3);
    CHECK_OK(mfi_store_backup(store, name_in(&k, "copy")));
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_a_full_disk_creates_nothing(void)
{
    kit k = kit_make();
    mfi_store_opts opts = kit_opts();
    limit_files(8192); /* a write that is cut short would be EIO to LMDB */
    kit_refused_with(k.path, &opts, JZX_ERR_NO_SPACE, "cannot be created");
    limit_files(RLIM_INFINITY);
    CHECK_EQ(kit_files(&k, false), 0);
    mfi_store_close(kit_open(&k));
    kit_drop(&k);
}

typedef struct writing {
    mfi_store *store;
    atomic_bool is_over;
} writing;

static void *write_on(void *arg)
{
    writing *w = arg;
    jzt_rng rng = {4};
    while (!atomic_load(&w->is_over)) {
        kit_fill(w->store, &rng, 1, 20);
    }
    return NULL;
}

static void test_copies_beside_a_writer_are_whole(void)
{
    kit k = kit_make();
    jzt_rng rng = {1};
    writing w = {.store = kit_open(&k)};
    kit_fill(w.store, &rng, 5, 100);
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, write_on, &w), 0);
    for (unsigned i = 0; i < 20; i++) {
        char *copy = name_in(&k, "copy");
        CHECK_OK(mfi_store_backup(w.store, copy));
        mfi_store_opts opts = kit_opts();
        mfi_store_facts facts;
        mfi_store *store;
        opts.readonly = i % 2 == 0;
        REQUIRE_OK(mfi_store_open(copy, &opts, &store, &facts));
        CHECK(entries(store) > 100);
        mfi_store_close(store);
        (void)unlink(copy);
    }
    atomic_store(&w.is_over, true);
    (void)pthread_join(thread, NULL);
    mfi_store_close(w.store);
    kit_drop(&k);
}

static struct stat stat_of(const kit *k)
{
    struct stat st;
    REQUIRE_EQ(stat(k->path, &st), 0);
    return st;
}

/* One commit of about so many bytes, if there is room for it. */
static jzx_err put_bytes(mfi_store *store, uint32_t number, size_t bytes, bool grows)
{
    static uint8_t value[1 << 20];
    MDB_txn *txn = kit_txn(store);
    MDB_val key = {sizeof number, &number};
    MDB_val data = {bytes, value};
    REQUIRE_EQ(mdb_put(txn, mfi_store_dbi(store, 1), &key, &data, 0), 0);
    const mfi_writes writes = {1, bytes};
    jzx_err err = mfi_store_make_room(store, txn, &writes, grows);
    if (err != JZX_OK) {
        mdb_txn_abort(txn);
        return err;
    }
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
    return JZX_OK;
}

static void test_the_reserve_is_allocated_in_the_file(void)
{
    enum { RESERVE = 2 << 20 };
    kit k = kit_make();
    mfi_store_opts opts = kit_opts();
    opts.reserve_bytes = RESERVE;
    mfi_store_facts facts;
    mfi_store *store;
    char *old = name_in(&k, "m-reserve"); /* which earlier versions had for it */
    int fd = open(old, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0);
    (void)close(fd);
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    CHECK(!is_there(old));
    CHECK(stat_of(&k).st_blocks * 512 >= RESERVE); /* not a hole */
    CHECK(mfi_store_spare(store) >= RESERVE);
    mfi_store_close(store);
    kit_drop(&k);
}

/* Whatever a commit writes lies where blocks are already, before it is committed. */
static void test_a_file_is_always_allocated_beyond_its_pages(bool counts)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    CHECK(store->sees_pages); /* with this LMDB */
    store->sees_pages = !counts;
    for (uint32_t i = 0; i < 200; i++) {
        CHECK_OK(put_bytes(store, i * 7 % 150, (size_t)i * 997 % 300000, true));
        MDB_envinfo info;
        REQUIRE_EQ(mdb_env_info(mfi_store_env(store), &info), 0);
        struct stat st = stat_of(&k);
        CHECK((uint64_t)st.st_size >= (info.me_last_pgno + 1) * store->page_bytes);
        CHECK((uint64_t)st.st_size == store->sure_bytes);
        CHECK(st.st_blocks * 512 >= st.st_size);
    }
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_a_commit_writes_only_where_blocks_are(void)
{
    test_a_file_is_always_allocated_beyond_its_pages(false);
}

static void test_what_a_commit_may_need_can_be_counted_too(void)
{
    test_a_file_is_always_allocated_beyond_its_pages(true);
}

static void test_a_full_disk_leaves_the_reserve_to_what_ends(void)
{
    enum { RESERVE = 1 << 20, PIECE = 100000 };
    kit k = kit_make();
    mfi_store_opts opts = kit_opts();
    opts.reserve_bytes = RESERVE;
    mfi_store_facts facts;
    mfi_store *store;
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    limit_files((rlim_t)stat_of(&k).st_size);
    jzx_err err = JZX_OK;
    uint32_t added = 0;
    for (; err == JZX_OK; added++) {
        err = put_bytes(store, added, PIECE, true);
    }
    CHECK_EQ(err, JZX_ERR_NO_SPACE);
    CHECK(mfi_store_spare(store) >= RESERVE);
    CHECK_EQ(put_bytes(store, added, PIECE, true), JZX_ERR_NO_SPACE);
    CHECK_OK(put_bytes(store, added, PIECE, false));
    limit_files(RLIM_INFINITY); /* and there is room again */
    CHECK_OK(put_bytes(store, added + 1, PIECE, true));
    CHECK(mfi_store_spare(store) >= RESERVE);
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_a_disk_too_full_for_the_reserve_can_be_opened(void)
{
    kit k = kit_make();
    mfi_store_close(kit_open(&k));
    mfi_store_opts opts = kit_opts();
    opts.reserve_bytes = 8 << 20;
    mfi_store_facts facts;
    mfi_store *store;
    limit_files((rlim_t)stat_of(&k).st_size);
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    CHECK_OK(put_bytes(store, 1, 1000, false));
    CHECK_EQ(put_bytes(store, 2, 1000, true), JZX_ERR_NO_SPACE);
    limit_files(RLIM_INFINITY);
    CHECK_OK(put_bytes(store, 2, 1000, true));
    mfi_store_close(store);
    kit_drop(&k);
}

/* A name that is not the manifest's own file is neither followed nor written through. */
static void check_planted(const char *suffix, bool hard, bool readonly)
{
    kit k = kit_make();
    char *victim = name_in(&k, "victim");
    FILE *file = fopen(victim, "w");
    REQUIRE(file != NULL);
    (void)fputs("precious", file);
    (void)fclose(file);
    mfi_store_close(kit_open(&k));
    char name[128];
    (void)snprintf(name, sizeof name, "%s%s", k.path, suffix);
    (void)unlink(name);
    REQUIRE_EQ(hard ? link(victim, name) : symlink("victim", name), 0);
    mfi_store_opts opts = kit_opts();
    opts.readonly = readonly;
    kit_refused_with(k.path, &opts, JZX_ERR_NO_ACCESS, hard ? "hard links" : "symbolic link");
    char text[16] = {0};
    file = fopen(victim, "r");
    REQUIRE(file != NULL);
    CHECK(fread(text, 1, sizeof text - 1, file) == 8 && strcmp(text, "precious") == 0);
    (void)fclose(file);
    (void)unlink(name);
    mfi_store_close(kit_open(&k));
    kit_drop(&k);
}

static void test_a_planted_companion_is_refused_and_its_target_left_alone(void)
{
    check_planted("-lock", false, false);
    check_planted("-lock", false, true);
    check_planted("-lock", true, false);
    check_planted("-owner", false, false);
    check_planted("-owner", true, false);
}

static void test_a_companion_that_is_no_file_is_refused(void)
{
    kit k = kit_make();
    mfi_store_close(kit_open(&k));
    char name[128];
    (void)snprintf(name, sizeof name, "%s-lock", k.path);
    REQUIRE_EQ(unlink(name), 0);
    REQUIRE_EQ(mkfifo(name, 0600), 0);
    kit_refused(&k, JZX_ERR_NO_ACCESS, "no regular file");
    (void)unlink(name);
    mfi_store_close(kit_open(&k));
    if (geteuid() == 0) {
        REQUIRE_EQ(chown(name, 12345, 12345), 0);
        kit_refused(&k, JZX_ERR_NO_ACCESS, "belongs to another user");
    }
    kit_drop(&k);
}

/* LMDB maps it: a hole there is a SIGBUS on a full disk. */
static void test_the_lock_file_has_its_blocks(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    char name[128];
    struct stat st;
    (void)snprintf(name, sizeof name, "%s-lock", k.path);
    REQUIRE_EQ(stat(name, &st), 0);
    CHECK(st.st_size >= 64 * 64);
    CHECK(st.st_blocks * 512 >= st.st_size);
    mfi_store_close(store);
    kit_drop(&k);
}

/* A new file is made without one: its name could be guessed. */
static void test_a_new_file_has_no_lock_file_until_it_has_its_name(void)
{
    kit k = kit_make();
    char name[128];
    char *victim = name_in(&k, "victim");
    for (unsigned i = 0; i < 500; i++) {
        (void)snprintf(name, sizeof name, "%s.tmp-%ld.%u-lock", k.path, (long)getpid(), i);
        REQUIRE_EQ(symlink("victim", name), 0);
    }
    mfi_store_close(kit_open(&k));
    CHECK(!is_there(victim));
    kit_drop(&k);
}

static const jzt_test tests[] = {
    {"a_planted_companion_is_refused_and_its_target_left_alone",
     test_a_planted_companion_is_refused_and_its_target_left_alone},
    {"a_companion_that_is_no_file_is_refused", test_a_companion_that_is_no_file_is_refused},
    {"the_lock_file_has_its_blocks", test_the_lock_file_has_its_blocks},
    {"a_new_file_has_no_lock_file_until_it_has_its_name",
     test_a_new_file_has_no_lock_file_until_it_has_its_name},
    {"a_death_while_creating_leaves_all_or_nothing",
     test_a_death_while_creating_leaves_all_or_nothing},
    {"an_error_while_creating_leaves_nothing", test_an_error_while_creating_leaves_nothing},
    {"leftovers_of_the_dead_are_removed_and_nothing_else",
     test_leftovers_of_the_dead_are_removed_and_nothing_else},
    {"a_new_file_replaces_nothing", test_a_new_file_replaces_nothing},
    {"a_copy_is_a_manifest_and_smaller", test_a_copy_is_a_manifest_and_smaller},
    {"a_copy_that_cannot_be_leaves_nothing", test_a_copy_that_cannot_be_leaves_nothing},
    {"a_full_disk_ends_a_copy_without_rubbish", test_a_full_disk_ends_a_copy_without_rubbish},
    {"a_full_disk_creates_nothing", test_a_full_disk_creates_nothing},
    {"copies_beside_a_writer_are_whole", test_copies_beside_a_writer_are_whole},
    {"the_reserve_is_allocated_in_the_file", test_the_reserve_is_allocated_in_the_file},
    {"a_commit_writes_only_where_blocks_are", test_a_commit_writes_only_where_blocks_are},
    {"what_a_commit_may_need_can_be_counted_too", test_what_a_commit_may_need_can_be_counted_too},
    {"a_full_disk_leaves_the_reserve_to_what_ends",
     test_a_full_disk_leaves_the_reserve_to_what_ends},
    {"a_disk_too_full_for_the_reserve_can_be_opened",
     test_a_disk_too_full_for_the_reserve_can_be_opened},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
