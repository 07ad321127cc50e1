/* Random lives of a job queue: workers that are late, die and come back, administrators, clocks
 * that jump, processes that crash; and the plain model of model_queue.h, which predicts every
 * receipt and, after every step, every record. The laws of model_law.h are checked beside it. How
 * to repeat a run is in model_run.h; jobs_crowd_model.c has the same in a narrow place. */
#include "model_run.h"

static void test_the_queue_does_what_the_model_says(void)
{
    run_all(false);
}

static const jzt_test tests[] = {
    {"the_queue_does_what_the_model_says", test_the_queue_does_what_the_model_says}};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
