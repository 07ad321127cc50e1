/* Goal: a manifest has one owner: processes, forks, threads and programs that are started. */
#include "store_meta_kit.h"

static const char *beside(const kit *k, const char *suffix)
{
    static char name[160];
    (void)snprintf(name, sizeof name, "%s%s", k->path, suffix);
    return name;
}

static void test_a_process_opens_a_file_once(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    mfi_store_opts opts = kit_opts();
    kit_refused(&k, JZX_ERR_ALREADY, "this process has it open");
    opts.readonly = true;
    kit_refused_with(k.path, &opts, JZX_ERR_ALREADY, "this process has it open");
    /* Also by another name. */
    char name[200];
    (void)snprintf(name, sizeof name, "%s/link", k.dir);
    REQUIRE_EQ(symlink(k.path, name), 0);
    kit_refused_with(name, &opts, JZX_ERR_ALREADY, "this process has it open");
    (void)snprintf(name, sizeof name, "%s/../%s/m", k.dir, strrchr(k.dir, '/') + 1);
    kit_refused_with(name, &opts, JZX_ERR_ALREADY, "this process has it open");
    mfi_store_close(store);
    store = kit_open(&k);
    mfi_store_close(store);
    kit_drop(&k);
}

static void test_a_file_with_two_names_is_refused(void)
{
    kit k = kit_make();
    mfi_store_close(kit_open(&k));
    char name[200];
    (void)snprintf(name, sizeof name, "%s/other", k.dir);
    REQUIRE_EQ(link(k.path, name), 0);
    kit_refused(&k, JZX_ERR_INVALID_ARG, "has 2 names");
    kit_drop(&k);
}

/* A child that has it open until it is killed. */
static pid_t start_owner(const kit *k)
{
    int ready[2];
    REQUIRE_EQ(pipe(ready), 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)alarm(600); /* it must not outlive a test that failed */
        mfi_store *store = kit_open(k);
        (void)!write(ready[1], "x", 1);
        for (;;) {
            (void)pause();
        }
        mfi_store_close(store);
    }
    char byte;
    REQUIRE_EQ(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return pid;
}

static void end_owner(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

static void test_the_owner_is_named_and_its_death_frees_the_file(void)
{
    kit k = kit_make();
    pid_t owner = start_owner(&k);
    char words[64];
    (void)snprintf(words, sizeof words, "process %ld owns it", (long)owner);
    kit_refused(&k, JZX_ERR_OWNED, words);
    /* Readers do not mind, and look at all pages meanwhile. */
    mfi_store_opts opts = kit_opts();
    opts.readonly = true;
    mfi_store_facts facts;
    mfi_store *store;
    mfi_pages_report report = {0};
    opts.pages = &report;
    REQUIRE_OK(mfi_store_open(k.path, &opts, &store, &facts));
    CHECK_EQ(read_meta(store).schema, MFI_SCHEMA);
    CHECK_EQ(report.total, 4);
    mfi_store_close(store);
    end_owner(owner);
    mfi_store_close(kit_open(&k));
    kit_drop(&k);
}

static void test_an_owner_file_that_lies_is_no_owner(void)
{
    kit k = kit_make();
    write_text(beside(&k, "-owner"), "1\n");
    mfi_store_close(kit_open(&k));
    /* And one that says nothing is one, if it is locked. */
    int fd = open(beside(&k, "-owner"), O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(flock(fd, LOCK_EX), 0);
    kit_refused(&k, JZX_ERR_OWNED, "another process owns it");
    (void)close(fd);
    kit_drop(&k);
}

static int use_after_fork(void *arg)
{
    mfi_store *store = arg;
    mfi_reader *reader;
    bool holds = mfi_store_forked(store) && mfi_reader_begin(store, &reader) == JZX_ERR_FORKED &&
                 mfi_store_backup(store, "/dev/shm/never") == JZX_ERR_FORKED &&
                 mfi_store_reader_slots(store) == 0 && mfi_store_reap(store) == 0;
    mfi_store_close(store);
    return holds ? 0 : 1;
}

static void test_a_forked_child_can_only_close(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    mfi_reader *reader;
    REQUIRE_OK(mfi_reader_begin(store, &reader));
    CHECK_EQ(in_child(use_after_fork, store), 0);
    CHECK(!mfi_store_forked(store));
    /* The parent's reader and lock are as they were. */
    CHECK_EQ(mfi_store_reader_slots(store), 1);
    MDB_stat stat;
    CHECK_EQ(mdb_stat(mfi_reader_txn(reader), mfi_store_dbi(store, 0), &stat), 0);
    CHECK_EQ(stat.ms_entries, 1);
    mfi_reader_end(store, reader);
    jzt_rng rng = {1};
    kit_fill(store, &rng, 1, 10);
    mfi_store_close(store);
    kit_drop(&k);
}

/* The owner has a child that outlives it. */
static int fork_and_die(void *arg)
{
    kit *k = arg;
    (void)kit_open(k);
    int begun[2]; /* a child that has not run yet has the lock still */
    if (pipe(begun) != 0) {
        return 1;
    }
    pid_t pid = fork();
    char byte = 'x';
    if (pid == 0) {
        (void)alarm(600);
        (void)!write(begun[1], &byte, 1);
        for (;;) {
            (void)pause();
        }
    }
    FILE *file = fopen(beside(k, ".pid"), "w");
    if (file != NULL) {
        (void)fprintf(file, "%ld", (long)pid);
        (void)fclose(file);
    }
    return pid > 0 && read(begun[0], &byte, 1) == 1 ? 0 : 1;
}

static void test_a_child_does_not_keep_the_lock_of_a_dead_owner(void)
{
    kit k = kit_make();
    CHECK_EQ(in_child(fork_and_die, &k), 0);
    mfi_store *store = kit_open(&k);
    mfi_store_close(store);
    long pid = 0;
    FILE *file = fopen(beside(&k, ".pid"), "r");
    REQUIRE(file != NULL);
    CHECK_EQ(fscanf(file, "%ld", &pid), 1);
    (void)fclose(file);
    REQUIRE(pid > 1);
    (void)kill((pid_t)pid, SIGKILL);
    kit_drop(&k);
}

static void test_a_program_that_is_started_does_not_inherit_the_lock(void)
{
    kit k = kit_make();
    mfi_store *store = kit_open(&k);
    CHECK((fcntl(store->claim.owner_fd, F_GETFD) & FD_CLOEXEC) != 0);
    mfi_store_close(store);
    kit_drop(&k);
}

typedef struct racer {
    kit *k;
    mfi_store *store;
    jzx_err err;
} racer;

static void *race(void *arg)
{
    racer *r = arg;
    mfi_store_opts opts = kit_opts();
    mfi_store_facts facts;
    r->err = mfi_store_open(r->k->path, &opts, &r->store, &facts);
    return NULL;
}

static void test_of_threads_that_create_a_file_one_wins(void)
{
    for (unsigned round = 0; round < 20; round++) {
        kit k = kit_make();
        enum { RACERS = 4 };
        racer racers[RACERS] = {0};
        pthread_t threads[RACERS];
        unsigned won = 0;
        for (unsigned i = 0; i < RACERS; i++) {
            racers[i].k = &k;
            REQUIRE_EQ(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
        }
        for (unsigned i = 0; i < RACERS; i++) {
            (void)pthread_join(threads[i], NULL);
            won += racers[i].err == JZX_OK;
            CHECK(racers[i].err == JZX_OK || racers[i].err == JZX_ERR_ALREADY);
        }
        CHECK_EQ(won, 1);
        for (unsigned i = 0; i < RACERS; i++) {
            mfi_store_close(racers[i].store);
        }
        CHECK_EQ(kit_files(&k, false), 3);
        kit_drop(&k);
    }
}

static const jzt_test tests[] = {
    {"a_process_opens_a_file_once", test_a_process_opens_a_file_once},
    {"a_file_with_two_names_is_refused", test_a_file_with_two_names_is_refused},
    {"the_owner_is_named_and_its_death_frees_the_file",
     test_the_owner_is_named_and_its_death_frees_the_file},
    {"an_owner_file_that_lies_is_no_owner", test_an_owner_file_that_lies_is_no_owner},
    {"a_forked_child_can_only_close", test_a_forked_child_can_only_close},
    {"a_child_does_not_keep_the_lock_of_a_dead_owner",
     test_a_child_does_not_keep_the_lock_of_a_dead_owner},
    {"a_program_that_is_started_does_not_inherit_the_lock",
     test_a_program_that_is_started_does_not_inherit_the_lock},
    {"of_threads_that_create_a_file_one_wins", test_of_threads_that_create_a_file_one_wins},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
