/* Goal: the inbox hands over everything once and in order, wakes a sleeper once, refuses
 * after its close, and outlives the loop for as long as somebody holds it (R25, R33). Method: one
 * thread and a small environment that counts; tests/models/inbound.pml and sender_threads.c have
 * the races. */
#include "actor/inbox.h"

#include "support/check.h"

#include <stdlib.h>
#include <string.h>

typedef struct world {
    int opened, closed, signalled;
    jzx_err entropy_err, wake_err;
    size_t blocks, budget;
} world;

static world now;

static jzx_err fake_entropy(void *ctx, void *buf, size_t len)
{
    world *w = ctx;
    memset(buf, 0x5A, len);
    return w->entropy_err;
}

static jzx_err fake_wake_open(void *ctx, int *out_fd)
{
    world *w = ctx;
    if (w->wake_err != JZX_OK) {
        return w->wake_err;
    }
    w->opened++;
    *out_fd = 40;
    return JZX_OK;
}

static void fake_wake_signal(void *ctx, int wake_fd)
{
    world *w = ctx;
    CHECK_EQ(wake_fd, 40);
    w->signalled++;
}

static void fake_fd_close(void *ctx, int fd)
{
    world *w = ctx;
    CHECK_EQ(fd, 40);
    w->closed++;
}

static void *counted_realloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    world *w = ctx;
    (void)old_size;
    if (new_size == 0) {
        w->blocks--;
        free(ptr);
        return NULL;
    }
    if (w->budget == 0) {
        return NULL;
    }
    w->budget--;
    w->blocks++;
    return malloc(new_size);
}

static const jzx_allocator alloc = {counted_realloc, &now};
static const jzx_env env = {
    .size = sizeof(jzx_env),
    .ctx = &now,
    .entropy = fake_entropy,
    .wake_open = fake_wake_open,
    .wake_signal = fake_wake_signal,
    .fd_close = fake_fd_close,
};

static jzi_inbox *start(void)
{
    jzi_inbox *inbox = NULL;
    now = (world){.budget = SIZE_MAX};
    REQUIRE_OK(jzi_inbox_create(&alloc, &env, 8, &inbox));
    return inbox;
}

static void finish(jzi_inbox *inbox)
{
    jzi_inbox_release(inbox);
    CHECK_EQ(now.closed, now.opened);
    CHECK_EQ(now.blocks, 0);
}

static void test_what_is_pushed_is_taken_once_and_oldest_first_R6(void)
{
    enum { N = 5 };
    jzi_node nodes[N] = {0};
    jzi_inbox *inbox = start();
    CHECK(!jzi_inbox_has_mail(inbox));
    CHECK(jzi_inbox_take(inbox) == NULL);
    for (size_t i = 0; i < N; i++) {
        CHECK(jzi_inbox_push(inbox, &nodes[i]));
        CHECK(jzi_inbox_has_mail(inbox));
    }
    jzi_node *node = jzi_inbox_take(inbox);
    for (size_t i = 0; i < N; i++) {
        REQUIRE(node == &nodes[i]);
        node = node->next;
    }
    CHECK(node == NULL);
    CHECK(!jzi_inbox_has_mail(inbox));
    CHECK(jzi_inbox_take(inbox) == NULL);
    finish(inbox);
}

static void test_a_close_takes_the_rest_and_then_refuses_everything_R33(void)
{
    jzi_node first = {0}, second = {0}, late = {0};
    jzi_inbox *inbox = start();
    CHECK(jzi_inbox_push(inbox, &first) && jzi_inbox_push(inbox, &second));
    const jzi_node *rest = jzi_inbox_close(inbox);
    REQUIRE(rest == &first);
    CHECK(rest->next == &second && second.next == NULL);
    late.stamp = 77;
    CHECK(!jzi_inbox_push(inbox, &late));
    CHECK(late.stamp == 77 && late.next == NULL);
    CHECK(jzi_inbox_close(inbox) == NULL);
    CHECK(!jzi_inbox_push(inbox, &late));
    finish(inbox);
}

static void test_only_a_sleeper_is_woken_and_only_once_R25(void)
{
    jzi_inbox *inbox = start();
    jzi_inbox_wake(inbox);
    CHECK_EQ(now.signalled, 0);
    atomic_store(&inbox->asleep, 1);
    jzi_inbox_wake(inbox);
    CHECK_EQ(now.signalled, 1);
    CHECK_EQ(atomic_load(&inbox->asleep), 0);
    jzi_inbox_wake(inbox);
    CHECK_EQ(now.signalled, 1);
    CHECK_EQ(atomic_load(&inbox->wakes), 1);
    finish(inbox);
}

static void test_returned_chains_are_kept_by_size_and_joined(void)
{
    jzi_node a = {0}, b = {0}, c = {0};
    jzi_wide_node wide = {0};
    jzi_inbox *inbox = start();
    a.next = &b;
    jzi_inbox_return(inbox, false, &a, &b);
    jzi_inbox_return(inbox, false, &c, &c);
    jzi_inbox_return(inbox, true, &wide.node, &wide.node);
    CHECK(atomic_load(&inbox->returned[0]) == &c);
    CHECK(c.next == &a && a.next == &b && b.next == NULL);
    CHECK(atomic_load(&inbox->returned[1]) == &wide.node);
    CHECK(wide.node.next == NULL);
    finish(inbox);
}

static void test_the_last_owner_frees_it_R33(void)
{
    jzi_inbox *inbox = start();
    jzi_inbox_retain(inbox);
    jzi_inbox_retain(inbox);
    jzi_inbox_release(inbox);
    jzi_inbox_release(inbox);
    CHECK_EQ(now.closed, 0);
    finish(inbox);
    CHECK_EQ(now.closed, 1);
}

static void test_pages_of_the_senders_go_with_the_last_owner(void)
{
    jzi_inbox *inbox = start();
    for (int i = 0; i < 3; i++) {
        size_t bytes = sizeof(jzi_node_page) + 64;
        jzi_node_page *page = alloc.realloc(alloc.ctx, NULL, 0, bytes);
        REQUIRE(page != NULL);
        *page = (jzi_node_page){.next = atomic_load(&inbox->pages), .bytes = bytes};
        atomic_store(&inbox->pages, page);
    }
    finish(inbox);
}

static void test_a_failed_create_leaves_nothing_behind(void)
{
    jzi_inbox *inbox = NULL;
    now = (world){.budget = SIZE_MAX, .entropy_err = JZX_ERR_IO};
    CHECK_EQ(jzi_inbox_create(&alloc, &env, 8, &inbox), JZX_ERR_IO);
    CHECK(inbox == NULL && now.blocks == 0 && now.opened == now.closed);
    now = (world){.budget = SIZE_MAX, .wake_err = JZX_ERR_NO_FDS};
    CHECK_EQ(jzi_inbox_create(&alloc, &env, 8, &inbox), JZX_ERR_NO_FDS);
    CHECK(inbox == NULL && now.blocks == 0 && now.opened == now.closed);
    for (size_t budget = 0; budget < 2; budget++) {
        now = (world){.budget = budget};
        CHECK_EQ(jzi_inbox_create(&alloc, &env, 8, &inbox), JZX_ERR_NO_MEMORY);
        CHECK(inbox == NULL && now.blocks == 0 && now.opened == now.closed);
    }
}

static const jzt_test tests[] = {
    {"what_is_pushed_is_taken_once_and_oldest_first_R6",
     test_what_is_pushed_is_taken_once_and_oldest_first_R6},
    {"a_close_takes_the_rest_and_then_refuses_everything_R33",
     test_a_close_takes_the_rest_and_then_refuses_everything_R33},
    {"only_a_sleeper_is_woken_and_only_once_R25", test_only_a_sleeper_is_woken_and_only_once_R25},
    {"returned_chains_are_kept_by_size_and_joined",
     test_returned_chains_are_kept_by_size_and_joined},
    {"the_last_owner_frees_it_R33", test_the_last_owner_frees_it_R33},
    {"pages_of_the_senders_go_with_the_last_owner",
     test_pages_of_the_senders_go_with_the_last_owner},
    {"a_failed_create_leaves_nothing_behind", test_a_failed_create_leaves_nothing_behind},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
