/* Goal: items of a pipeline arrive once, in order, and never more of them than were asked for; the
 * end of the stream reaches everybody; bad demand changes nothing. Method: pipelines of counting
 * stages in every world. */
#include "flow_fixture.h"

static void test_a_pipeline_hands_on_every_item_once_and_in_order(void)
{
    enum { ITEMS = 1000 };
    rig r = rig_open(NULL);
    line l = line_new(ITEMS);
    line_spawn(&r, &l, 10);
    rig_idle(&r);
    CHECK_EQ(l.sink->seen, ITEMS);
    CHECK_EQ(l.sink->sum, sum_to(ITEMS));
    CHECK_EQ(l.sink->unordered + l.stage->unordered, 0);
    CHECK_EQ(l.sink->done, 1);
    CHECK_EQ(l.stage->done, 1);
    CHECK(is_gone(&r, l.source) && is_gone(&r, l.stage) && is_gone(&r, l.sink));
    CHECK_EQ(rig_counters(&r).dead, 0);
    CHECK_EQ(l.source->losses + l.stage->losses + l.sink->losses, 0);
    CHECK_EQ(l.sink->stats.unasked + l.stage->stats.unasked, 0);
    rig_close(&r);
    line_free(&l);
}

static const jzt_test tests[] = {
    {"a_pipeline_hands_on_every_item_once_and_in_order",
     test_a_pipeline_hands_on_every_item_once_and_in_order},
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
