/* As jobs_model.c, where nearly all jobs want the same gate or the same slot: whoever is put aside
 * must be found again, whatever happens to those before it. */
#include "model_run.h"

static void test_a_crowd_at_one_gate_is_served_as_the_model_says(void)
{
    run_all(true);
}

static const jzt_test tests[] = {{"a_crowd_at_one_gate_is_served_as_the_model_says",
                                  test_a_crowd_at_one_gate_is_served_as_the_model_says}};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
