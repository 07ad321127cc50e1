/* Goal: the post office hands over everything once and in order, wakes a sleeper once, refuses
 * after its close, and outlives the loop for as long as somebody holds it (R25, R33). Method: one
 * thread and a small environment that counts; tests/models/inbound.pml and tests/thread have the
 * races. */
#include "actor/post.h"

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

static jzi_post *start(void)
{
    jzi_post *post = NULL;
    now = (world){.budget = SIZE_MAX};
    REQUIRE_OK(jzi_post_create(&alloc, &env, 8, &post));
    return post;
}

static void finish(jzi_post *post)
{
    jzi_post_release(post);
    CHECK_EQ(now.closed, now.opened);
    CHECK_EQ(now.blocks, 0);
}

static void test_what_is_pushed_is_taken_once_and_oldest_first_R6(void)
{
    enum { N = 5 };
    jzi_node nodes[N] = {0};
    jzi_post *post = start();
    CHECK(!jzi_post_has_mail(post));
    CHECK(jzi_post_take(post) == NULL);
    for (size_t i = 0; i < N; i++) {
        CHECK(jzi_post_push(post, &nodes[i]));
        CHECK(jzi_post_has_mail(post));
    }
    jzi_node *node = jzi_post_take(post);
    for (size_t i = 0; i < N; i++) {
        REQUIRE(node == &nodes[i]);
        node = node->next;
    }
    CHECK(node == NULL);
    CHECK(!jzi_post_has_mail(post));
    CHECK(jzi_post_take(post) == NULL);
    finish(post);
}

static void test_a_close_takes_the_rest_and_then_refuses_everything_R33(void)
{
    jzi_node first = {0}, second = {0}, late = {0};
    jzi_post *post = start();
    CHECK(jzi_post_push(post, &first) && jzi_post_push(post, &second));
    const jzi_node *rest = jzi_post_close(post);
    REQUIRE(rest == &first);
    CHECK(rest->next == &second && second.next == NULL);
    late.stamp = 77;
    CHECK(!jzi_post_push(post, &late));
    CHECK(late.stamp == 77 && late.next == NULL);
    CHECK(jzi_post_close(post) == NULL);
    CHECK(!jzi_post_push(post, &late));
    finish(post);
}

static void test_only_a_sleeper_is_woken_and_only_once_R25(void)
{
    jzi_post *post = start();
    jzi_post_wake(post);
    CHECK_EQ(now.signalled, 0);
    atomic_store(&post->asleep, 1);
    jzi_post_wake(post);
    CHECK_EQ(now.signalled, 1);
    CHECK_EQ(atomic_load(&post->asleep), 0);
    jzi_post_wake(post);
    CHECK_EQ(now.signalled, 1);
    CHECK_EQ(atomic_load(&post->wakes), 1);
    finish(post);
}

static void test_returned_chains_are_kept_by_size_and_joined(void)
{
    jzi_node a = {0}, b = {0}, c = {0};
    jzi_wide_node wide = {0};
    jzi_post *post = start();
    a.next = &b;
    jzi_post_return(post, false, &a, &b);
    jzi_post_return(post, false, &c, &c);
    jzi_post_return(post, true, &wide.node, &wide.node);
    CHECK(atomic_load(&post->returned[0]) == &c);
    CHECK(c.next == &a && a.next == &b && b.next == NULL);
    CHECK(atomic_load(&post->returned[1]) == &wide.node);
    CHECK(wide.node.next == NULL);
    finish(post);
}

static void test_the_last_owner_frees_it_R33(void)
{
    jzi_post *post = start();
    jzi_post_retain(post);
    jzi_post_retain(post);
    jzi_post_release(post);
    jzi_post_release(post);
    CHECK_EQ(now.closed, 0);
    finish(post);
    CHECK_EQ(now.closed, 1);
}

static void test_pages_of_the_senders_go_with_the_last_owner(void)
{
    jzi_post *post = start();
    for (int i = 0; i < 3; i++) {
        size_t bytes = sizeof(jzi_node_page) + 64;
        jzi_node_page *page = alloc.realloc(alloc.ctx, NULL, 0, bytes);
        REQUIRE(page != NULL);
        *page = (jzi_node_page){.next = atomic_load(&post->pages), .bytes = bytes};
        atomic_store(&post->pages, page);
    }
    finish(post);
}

static void test_a_failed_create_leaves_nothing_behind(void)
{
    jzi_post *post = NULL;
    now = (world){.budget = SIZE_MAX, .entropy_err = JZX_ERR_IO};
    CHECK_EQ(jzi_post_create(&alloc, &env, 8, &post), JZX_ERR_IO);
    CHECK(post == NULL && now.blocks == 0 && now.opened == now.closed);
    now = (world){.budget = SIZE_MAX, .wake_err = JZX_ERR_NO_FDS};
    CHECK_EQ(jzi_post_create(&alloc, &env, 8, &post), JZX_ERR_NO_FDS);
    CHECK(post == NULL && now.blocks == 0 && now.opened == now.closed);
    for (size_t budget = 0; budget < 2; budget++) {
        now = (world){.budget = budget};
        CHECK_EQ(jzi_post_create(&alloc, &env, 8, &post), JZX_ERR_NO_MEMORY);
        CHECK(post == NULL && now.blocks == 0 && now.opened == now.closed);
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
