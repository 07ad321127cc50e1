/* Goal: read transactions are pooled: any number of threads, each with a view of one commit, an age
 * that can be seen, and slots of dead processes that are freed. */
/* program of its own: mdb_txn_begin() and mdb_txn_renew() are replaced. */
#include "store_kit.h"

#include "bytes.h"
#include "store_steps.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static _Atomic uint64_t fake_ms;

static uint64_t fake_clock(void *arg)
{
    (void)arg;
    return atomic_load(&fake_ms);
}

static mfi_store *open_with(const kit *k, uint32_t readers, bool readonly, mfi_store_facts *facts)
{
    mfi_store_opts opts = kit_opts();
    opts.readers_max = readers;
    opts.readonly = readonly;
    opts.clock_ms = fake_clock;
    mfi_store *store = NULL;
    REQUIRE_OK(mfi_store_open(k->path, &opts, &store, facts));
    return store;
}

static void test_readers_are_counted_and_have_an_age(void)
{
    kit k = kit_make();
    mfi_store_facts facts;
    mfi_store *store = open_with(&k, 8, false, &facts);
    uint64_t count;
    uint64_t age;
    atomic_store(&fake_ms, 0);
    mfi_store_readers(store, &count, &age);
    CHECK_EQ(count, 0);
    CHECK_EQ(age, 0);
    mfi_reader *first;
    mfi_reader *second;
    REQUIRE_OK(mfi_reader_begin(store, &first));
    atomic_store(&fake_ms, 700);
    REQUIRE_OK(mfi_reader_begin(store, &second));
    atomic_store(&fake_ms, 1000);
    mfi_store_readers(store, &count, &age);
    CHECK_EQ(count, 2);
    CHECK_EQ(age, 1000);
    mfi_reader_end(store, first);
    mfi_store_readers(store, &count, &age);
    CHECK_EQ(count, 1);
    CHECK_EQ(age, 300);
    mfi_reader_end(store, second);
    mfi_store_readers(store, &count, &age);
    CHECK_EQ(count, 0);
    CHECK_EQ(age, 0);
    mfi_store_close(store);
    kit_drop(&k);
}

/* A reader that is interrupted after it was told the number of the last commit: others commit
 * meanwhile. LMDB's calls go through here, and so do these commits. */
static mfi_store *late_store;
static _Atomic uint32_t late_commits; /* readers of other threads look too */

static void commit_one(mfi_store *store)
{
    static uint32_t number;
    number++;
    MDB_txn *txn = kit_txn(store);
    MDB_val key = {4, (void *)(uintptr_t) "late"};
    MDB_val data = {sizeof number, &number};
    REQUIRE_EQ(mdb_put(txn, mfi_store_dbi(store, 1), &key, &data, 0), 0);
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
}

static void be_late(void)
{
    uint32_t commits = late_commits;
    late_commits = 0;
    for (; commits > 0; commits--) {
        commit_one(late_store);
    }
}

typedef int (*renew_fn)(MDB_txn *txn);
typedef int (*begin_fn)(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **out);

int mdb_txn_renew(MDB_txn *txn)
{
    static renew_fn next;
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "mdb_txn_renew");
    }
    int rc = next(txn);
    be_late();
    return rc;
}

int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned flags, MDB_txn **out)
{
    static begin_fn next;
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "mdb_txn_begin");
    }
    int rc = next(env, parent, flags, out);
    if ((flags & MDB_RDONLY) != 0) {
        be_late();
    }
    return rc;
}

/* Two commits later the root that it was about to read is being written to. */
static void test_a_reader_that_began_late_begins_again(void)
{
    kit k = kit_make();
    mfi_store_facts facts;
    late_store = open_with(&k, 8, false, &facts);
    for (uint32_t i = 0; i < 2; i++) { /* a new transaction, then one that is used again */
        for (uint32_t commits = 0; commits < 5; commits++) {
            late_commits = commits;
            mfi_reader *reader;
            MDB_envinfo info;
            REQUIRE_OK(mfi_reader_begin(late_store, &reader));
            CHECK_EQ(late_commits, 0);
            REQUIRE_EQ(mdb_env_info(mfi_store_env(late_store), &info), 0);
            CHECK(mdb_txn_id(mfi_reader_txn(reader)) + 1 >= info.me_last_txnid);
            mfi_reader_end(late_store, reader);
        }
    }
    mfi_store_close(late_store);
    kit_drop(&k);
}

static void test_a_reader_keeps_its_commit(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    jzt_rng rng = {1};
    mfi_reader *reader;
    REQUIRE_OK(mfi_reader_begin(store, &reader));
    uint64_t before = mdb_txn_id(mfi_reader_txn(reader));
    kit_fill(store, &rng, 3, 20);
    CHECK_EQ(mdb_txn_id(mfi_reader_txn(reader)), before);
    MDB_stat stat;
    CHECK_EQ(mdb_stat(mfi_reader_txn(reader), mfi_store_dbi(store, 1), &stat), 0);
    CHECK_EQ(stat.ms_entries, 0);
    mfi_reader_end(store, reader);
    REQUIRE_OK(mfi_reader_begin(store, &reader));
    CHECK_EQ(mdb_txn_id(mfi_reader_txn(reader)), before + 3);
    mfi_reader_end(store, reader);
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_too_many_readers_are_told_so(void)
{
    enum { MANY = 8 };
    kit k = kit_make();
    mfi_store_facts facts;
    mfi_store *store = open_with(&k, MANY, false, &facts);
    mfi_reader *readers[MANY];
    mfi_reader *more;
    for (unsigned i = 0; i < MANY; i++) {
        REQUIRE_OK(mfi_reader_begin(store, &readers[i]));
    }
    CHECK_EQ(mfi_reader_begin(store, &more), JZX_ERR_BUSY);
    mfi_reader_end(store, readers[3]);
    REQUIRE_OK(mfi_reader_begin(store, &readers[3]));
    CHECK_EQ(mfi_store_reader_slots(store), MANY);
    for (unsigned i = 0; i < MANY; i++) {
        mfi_reader_end(store, readers[i]);
    }
    mfi_store_close(store);
    kit_drop(&k);
}

static void *read_once(void *arg)
{
    mfi_reader *reader;
    if (mfi_reader_begin(arg, &reader) == JZX_OK) {
        mfi_reader_end(arg, reader);
    }
    return NULL;
}

static void test_threads_that_come_and_go_share_a_slot(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    for (unsigned i = 0; i < 100; i++) {
        pthread_t thread;
        REQUIRE_EQ(pthread_create(&thread, NULL, read_once, store), 0);
        (void)pthread_join(thread, NULL);
    }
    CHECK_EQ(mfi_store_reader_slots(store), 1);
    mfi_store_close(store);
    kit_drop(&k);
}

/* Two records that every commit changes together. */
static void put_pair(mfi_store *store, uint64_t number)
{
    uint8_t bytes[8];
    mfi_put_be64(bytes, number);
    MDB_txn *txn = kit_txn(store);
    MDB_val value = {sizeof bytes, bytes};
    MDB_val left = {1, "l"};
    MDB_val right = {1, "r"};
    REQUIRE_EQ(mdb_put(txn, mfi_store_dbi(store, 1), &left, &value, 0), 0);
    REQUIRE_EQ(mdb_put(txn, mfi_store_dbi(store, 2), &right, &value, 0), 0);
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
}

static uint64_t get_one(mfi_store *store, MDB_txn *txn, uint32_t table, char *name)
{
    MDB_val key = {1, name};
    MDB_val value;
    return mdb_get(txn, mfi_store_dbi(store, table), &key, &value) == 0
               ? mfi_get_be64(value.mv_data)
               : UINT64_MAX;
}

typedef struct crowd {
    mfi_store *store;
    atomic_bool is_over;
    atomic_uint torn;
    atomic_uint errors;
    atomic_uint reads;
} crowd;

static void *read_pairs(void *arg)
{
    crowd *c = arg;
    uint64_t last = 0;
    while (!atomic_load(&c->is_over)) {
        mfi_reader *reader;
        if (mfi_reader_begin(c->store, &reader) != JZX_OK) {
            atomic_fetch_add(&c->errors, 1);
            continue;
        }
        char left[] = "l";
        char right[] = "r";
        uint64_t a = get_one(c->store, mfi_reader_txn(reader), 1, left);
        uint64_t b = get_one(c->store, mfi_reader_txn(reader), 2, right);
        if (a != b || a < last) {
            atomic_fetch_add(&c->torn, 1);
        }
        last = a;
        atomic_fetch_add(&c->reads, 1);
        mfi_reader_end(c->store, reader);
    }
    return NULL;
}

static void test_many_threads_read_beside_a_writer(void)
{
    enum { THREADS = 6 };
    kit k = kit_make();
    crowd c = {.store = kit_open(&k)};
    pthread_t threads[THREADS];
    put_pair(c.store, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, read_pairs, &c), 0);
    }
    for (uint64_t i = 2; i < 1500 || atomic_load(&c.reads) < 1000; i++) {
        put_pair(c.store, i);
        if (i % 50 == 0) {
            uint64_t count;
            uint64_t age;
            mfi_store_readers(c.store, &count, &age);
            CHECK(count <= THREADS);
            (void)mfi_store_reap(c.store);
        }
    }
    atomic_store(&c.is_over, true);
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CHECK_EQ(atomic_load(&c.torn), 0);
    CHECK_EQ(atomic_load(&c.errors), 0);
    CHECK(mfi_store_reader_slots(c.store) <= THREADS);
    mfi_store_close(c.store);
    kit_drop(&k);
}

typedef struct contest {
    mfi_store *store;
    atomic_uint held[2]; /* per reader: by how many */
    atomic_uint clashes;
} contest;

static void *hold_often(void *arg)
{
    contest *c = arg;
    for (unsigned i = 0; i < (JZT_SANITIZED ? 20000 : 100000); i++) {
        mfi_reader *reader;
        if (mfi_reader_begin(c->store, &reader) == JZX_OK) {
            atomic_uint *held = &c->held[reader - c->store->readers];
            if (atomic_fetch_add(held, 1) != 0) {
                atomic_fetch_add(&c->clashes, 1);
            }
            atomic_fetch_sub(held, 1);
            mfi_reader_end(c->store, reader);
        }
    }
    return NULL;
}

static void test_no_two_threads_have_one_reader(void)
{
    enum { THREADS = 4 };
    kit k = kit_make();
    mfi_store_facts facts;
    contest c = {.store = open_with(&k, 2, false, &facts)}; /* they meet all the time */
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, hold_often, &c), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    CHECK_EQ(atomic_load(&c.clashes), 0);
    mfi_store_close(c.store);
    kit_drop(&k);
}

/* A process that opens for reading, begins a reader if asked, and waits to be killed. */
static pid_t start_reader(const kit *k, bool begins)
{
    int ready[2];
    REQUIRE_EQ(pipe(ready), 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)alarm(600); /* it must not outlive a test that failed */
        mfi_store_facts facts;
        mfi_store *store = open_with(k, 64, true, &facts);
        mfi_reader *reader;
        if (begins) {
            REQUIRE_OK(mfi_reader_begin(store, &reader));
        }
        (void)!write(ready[1], "x", 1);
        for (;;) {
            (void)pause();
        }
    }
    char byte;
    REQUIRE_EQ(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void end_process(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void test_the_slot_of_a_dead_reader_is_reaped(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    pid_t pid = start_reader(&k, true);
    CHECK_EQ(mfi_store_reader_slots(store), 1);
    CHECK_EQ(mfi_store_reap(store), 0);
    end_process(pid);
    CHECK_EQ(mfi_store_reap(store), 1);
    CHECK_EQ(mfi_store_reader_slots(store), 0);
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_opening_reaps_dead_readers(void)
{
    kit k = kit_make();
    mfi_store_close(kit_open(&k));
    pid_t alive = start_reader(&k, false); /* or LMDB would begin with an empty table */
    pid_t dead = start_reader(&k, true);
    end_process(dead);
    mfi_store_facts facts;
    mfi_store *store = open_with(&k, 64, false, &facts);
    CHECK_EQ(facts.readers_reaped, 1);
    mfi_store_close(store);
    end_process(alive);
    kit_drop(&k);
}

static void test_the_size_and_its_free_part_are_known(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    jzt_rng rng = {1};
    kit_fill(store, &rng, 3, 500);
    MDB_txn *txn = kit_txn(store);
    REQUIRE_EQ(mdb_drop(txn, mfi_store_dbi(store, 1), 0), 0);
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
    mfi_reader *reader;
    REQUIRE_OK(mfi_reader_begin(store, &reader));
    uint64_t used;
    uint64_t reusable;
    REQUIRE_OK(mfi_store_size(store, mfi_reader_txn(reader), &used, &reusable));
    mfi_reader_end(store, reader);
    mfi_store_close(store);
    /* The walk says the same. */
    mfi_store_opts opts = kit_opts();
    mfi_store_facts facts;
    mfi_pages_report report;
    opts.pages = &report;
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    CHECK_EQ(used, report.total * mfi_pages_size_here());
    CHECK_EQ(reusable, report.reusable * mfi_pages_size_here());
    CHECK(reusable > 0);
    mfi_store_close(store);
    kit_drop(&k);
}

/* A reader of pages beside a writer must never see a problem: what it walks is one commit. */
static void test_a_walk_beside_a_writer_finds_no_problems(void)
{
    kit k = kit_make();
    int ready[2];
    REQUIRE_EQ(pipe(ready), 0);
    mfi_store_close(kit_open(&k));
    pid_t writer = fork();
    REQUIRE(writer >= 0);
    if (writer == 0) {
        (void)alarm(600); /* it must not outlive a test that failed */
        mfi_store *store = kit_open(&k);
        jzt_rng rng = jzt_rng_seeded();
        kit_fill(store, &rng, 5, 100);
        (void)!write(ready[1], "x", 1);
        for (;;) {
            kit_fill(store, &rng, 1, 20);
        }
    }
    char byte;
    REQUIRE_EQ(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    for (unsigned i = 0; i < (JZT_SANITIZED ? 20 : 100); i++) {
        mfi_store_facts facts;
        mfi_store *store = open_with(&k, 64, true, &facts);
        mfi_store_close(store);
    }
    end_process(writer);
    kit_drop(&k);
}

static const jzt_test tests[] = {
    {"readers_are_counted_and_have_an_age", test_readers_are_counted_and_have_an_age},
    {"a_reader_that_began_late_begins_again", test_a_reader_that_began_late_begins_again},
    {"a_reader_keeps_its_commit", test_a_reader_keeps_its_commit},
    {"too_many_readers_are_told_so", test_too_many_readers_are_told_so},
    {"threads_that_come_and_go_share_a_slot", test_threads_that_come_and_go_share_a_slot},
    {"many_threads_read_beside_a_writer", test_many_threads_read_beside_a_writer},
    {"no_two_threads_have_one_reader", test_no_two_threads_have_one_reader},
    {"the_slot_of_a_dead_reader_is_reaped", test_the_slot_of_a_dead_reader_is_reaped},
    {"opening_reaps_dead_readers", test_opening_reaps_dead_readers},
    {"the_size_and_its_free_part_are_known", test_the_size_and_its_free_part_are_known},
    {"a_walk_beside_a_writer_finds_no_problems", test_a_walk_beside_a_writer_finds_no_problems},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
