/* Goal: signals, children and paths reach actors as messages (R27), also in simulation.
 * Method: a probe owns the watches; the test plays the world. */
#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <signal.h>

enum { TAG = 1 };

typedef struct fixture {
    jzx_kit *kit;
    jzx_probe *probe;
    jzx_actor_id id;
    jzx_io_ref ref;
} fixture;

static fixture fixture_open(void)
{
    fixture f = {0};
    jzx_kit_opts opts = {.sim = &(jzx_sim_opts){.seed = jzt_seed()}};
    REQUIRE_OK(jzx_kit_open(&opts, &f.kit));
    REQUIRE_OK(jzx_probe_spawn(f.kit->loop, &f.probe));
    f.id = jzx_probe_id(f.probe);
    return f;
}

static void fixture_close(fixture *f)
{
    jzx_probe_free(f->probe);
    CHECK_STR(jzx_kit_close(f->kit), NULL);
}

static const jzx_probe_record *event_expect(fixture *f, uint32_t what)
{
    const jzx_probe_record *record = NULL;
    REQUIRE_OK(jzx_probe_expect(f->probe, TAG, 10, &record));
    CHECK_EQ(record->io.what, what);
    CHECK_EQ(record->io.ref, f->ref);
    return record;
}

static void test_a_signal_is_a_message_until_it_is_unwatched(void)
{
    fixture f = fixture_open();
    jzx_io_ref again;
    REQUIRE_OK(jzx_watch_signal(f.kit->loop, SIGHUP, f.id, TAG, &f.ref));
    CHECK_EQ(jzx_watch_signal(f.kit->loop, SIGHUP, f.id, TAG, &again), JZX_ERR_ALREADY);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(jzx_sim_raise(f.kit->sim, SIGHUP));
        const jzx_probe_record *record = event_expect(&f, JZX_IO_SIGNAL);
        CHECK_EQ(record->io.signal, SIGHUP);
        CHECK_EQ(record->io.pid, 1);
    }
    CHECK_OK(jzx_unwatch_fd(f.kit->loop, f.ref));
    CHECK_EQ(jzx_sim_raise(f.kit->sim, SIGHUP), JZX_ERR_NOT_FOUND);
    CHECK_OK(jzx_probe_expect_none(f.probe, 100));
    fixture_close(&f);
}

static void test_the_end_of_a_child_is_one_message(void)
{
    fixture f = fixture_open();
    int32_t pid;
    REQUIRE_OK(jzx_sim_child_start(f.kit->sim, &pid));
    CHECK_EQ(jzx_watch_child(f.kit->loop, pid + 1, f.id, TAG, &f.ref), JZX_ERR_NOT_FOUND);
    REQUIRE_OK(jzx_watch_child(f.kit->loop, pid, f.id, TAG, &f.ref));
    CHECK_OK(jzx_probe_expect_none(f.probe, 1000));
    CHECK_OK(jzx_sim_child_exit(f.kit->sim, pid, 0, SIGKILL));
    const jzx_probe_record *record = event_expect(&f, JZX_IO_CHILD);
    CHECK_EQ(record->io.pid, pid);
    CHECK_EQ(record->io.signal, SIGKILL);
    CHECK_OK(jzx_probe_expect_none(f.probe, 1000));
    CHECK_EQ(jzx_unwatch_fd(f.kit->loop, f.ref), JZX_ERR_NO_SUCH_REF);
    CHECK_EQ(jzx_sim_child_exit(f.kit->sim, pid, 0, 0), JZX_ERR_NOT_FOUND);
    fixture_close(&f);
}

static void test_path_changes_are_messages_with_their_names(void)
{
    fixture f = fixture_open();
    uint32_t both = JZX_PATH_CREATED | JZX_PATH_REMOVED;
    REQUIRE_OK(jzx_watch_path(f.kit->loop, "/srv", both, f.id, TAG, &f.ref));
    CHECK_OK(jzx_sim_path_change(f.kit->sim, "/srv", JZX_PATH_CREATED, "new.txt"));
    const jzx_probe_record *record = event_expect(&f, JZX_IO_PATH);
    CHECK_EQ(record->io.changes, JZX_PATH_CREATED);
    CHECK_STR((const char *)record->bytes, "new.txt");
    CHECK_OK(jzx_sim_path_change(f.kit->sim, "/srv", JZX_PATH_REMOVED, NULL));
    CHECK_EQ(event_expect(&f, JZX_IO_PATH)->io.changes, JZX_PATH_REMOVED);
    CHECK_EQ(jzx_sim_path_change(f.kit->sim, "/srv", JZX_PATH_CHANGED, "x"), JZX_ERR_NOT_FOUND);
    fixture_close(&f);
}

static const jzt_test tests[] = {
    {"a_signal_is_a_message_until_it_is_unwatched",
     test_a_signal_is_a_message_until_it_is_unwatched},
    {"the_end_of_a_child_is_one_message", test_the_end_of_a_child_is_one_message},
    {"path_changes_are_messages_with_their_names", test_path_changes_are_messages_with_their_names},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
