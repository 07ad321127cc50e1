/* Goal: the sizes in the table "Numbers" of docs/reference/SPEC.md are those of the structs (R10).
 * Method: a line there per struct; when one of these fails, the table has to follow. */
#include "io/job.h"
#include "lifecycle/monitor_priv.h"
#include "sched/room_priv.h"
#include "supervision/children.h"
#include "supervision/supervisor_spec.h"

#include "support/check.h"

static void test_an_idle_actor_is_128_bytes_R10(void)
{
    CHECK_EQ(sizeof(jzi_actor), 128);
}

static void test_what_an_actor_may_have_besides_is_as_the_spec_says(void)
{
    CHECK_EQ(sizeof(jzi_cold), 152);
    CHECK_EQ(sizeof(jzi_life), 400);
    CHECK_EQ(sizeof(jzi_child), 392);
    CHECK_EQ(sizeof(jzi_children), 360);
    CHECK_EQ(sizeof(jzi_child_plan), 264);
}

static void test_what_it_asks_for_is_as_the_spec_says(void)
{
    CHECK_EQ(sizeof(jzi_watch), 296);
    CHECK_EQ(sizeof(jzi_room_far), 368);
    CHECK_EQ(sizeof(jzi_job), 248);
}

static const jzt_test tests[] = {
    {"an_idle_actor_is_128_bytes_R10", test_an_idle_actor_is_128_bytes_R10},
    {"what_an_actor_may_have_besides_is_as_the_spec_says",
     test_what_an_actor_may_have_besides_is_as_the_spec_says},
    {"what_it_asks_for_is_as_the_spec_says", test_what_it_asks_for_is_as_the_spec_says},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
