/* Goal: a debug build stops at the message that is not as declared, with a sentence that names it.
 * Method: each such message in a child process; the parent reads its stderr and how it ended. */
#define _GNU_SOURCE
#define JZX_PROTOCOL_CHECKS 1
#include <jzx/protocol.h>

#include "support/check.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct pair {
    uint64_t a;
    uint64_t b;
} pair;

#define TOY_MESSAGES(M, P)                                                                         \
    M(P, copied, pair, copy)                                                                       \
    M(P, number, uint32_t, value, uint64_t, value)
JZX_PROTOCOL(toy, 0x100, TOY_MESSAGES);

static jzx_behavior_result on_copied(jzx_context *ctx, const jzx_message *msg, const pair *payload)
{
    return ctx != NULL && payload == msg->data ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result on_number(jzx_context *ctx, const jzx_message *msg, uint32_t payload)
{
    return ctx != NULL && payload == msg->u64 ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
}
static jzx_behavior_result otherwise(jzx_context *ctx, const jzx_message *msg)
{
    return ctx != NULL && msg != NULL ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_FAIL;
}
JZX_PROTOCOL_DISPATCH(run, toy, TOY_MESSAGES, on, otherwise);

static pair bytes;

/* What the child said on stderr; aborted says how it ended. */
static void dispatch_in_child(jzx_message msg, char *said, size_t cap, bool *aborted)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        struct rlimit none = {0, 0};
        jzx_context ctx = {0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(ends[1], STDERR_FILENO);
        _exit(run(&ctx, &msg) == JZX_BEHAVIOR_STOP ? 0 : 9);
    }
    close(ends[1]);
    size_t len = 0;
    ssize_t n;
    while (len < cap - 1 && (n = read(ends[0], said + len, cap - 1 - len)) > 0) {
        len += (size_t)n;
    }
    said[len] = '\0';
    close(ends[0]);
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    /* Sanitizers turn the signal into an exit status of their own. */
    *aborted = (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) ||
               (WIFEXITED(status) && WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 9);
}

static bool aborts_saying(jzx_message msg, const char *words)
{
    char said[4096];
    bool aborted = false;
    dispatch_in_child(msg, said, sizeof said, &aborted);
    return aborted && strstr(said, words) != NULL;
}

static void test_a_wrong_length_is_named(void)
{
    jzx_message msg = {.data = &bytes, .len = 12, .tag = toy_tag_copied, .flags = JZX_MSG_COPY};
    CHECK(aborts_saying(msg, "jzx: toy.copied is declared by_copy with 16 bytes, but this one has "
                             "12 bytes, tag 0x100, kind 0, flags 0x2, sender 0\n"));
}

static void test_wrong_flags_are_named(void)
{
    jzx_message msg = {.data = &bytes, .len = 16, .tag = toy_tag_number, .sender = 0xAB};
    CHECK(aborts_saying(msg, "toy.number is declared by_value with 4 bytes, but this one has 16 "
                             "bytes, tag 0x101, kind 0, flags 0x0, sender ab\n"));
}

static void test_a_wrong_kind_is_named(void)
{
    jzx_message msg = {
        .u64 = 1, .tag = toy_tag_number, .kind = JZX_KIND_JOB, .flags = JZX_MSG_VALUE};
    CHECK(aborts_saying(msg, "kind 5"));
}

static void test_answers_and_other_tags_are_nobodys_fault(void)
{
    char said[256];
    bool aborted = true;
    jzx_message answer = {.tag = toy_tag_number, .kind = JZX_KIND_REPLY};
    dispatch_in_child(answer, said, sizeof said, &aborted);
    CHECK(!aborted);
    CHECK_STR(said, "");
    dispatch_in_child((jzx_message){.tag = 1}, said, sizeof said, &aborted);
    CHECK(!aborted);
    CHECK_STR(said, "");
}

static void test_who_speaks_for_the_callee_is_no_mistake(void)
{
    jzx_message msg = {.tag = JZX_TAG_PATTERN_FIRST, .kind = JZX_KIND_REPLY};
    CHECK_EQ(toy_judge_number(&msg), JZX_ERR_WRONG_TYPE);
}

static void test_the_check_itself_only_answers(void)
{
    jzx_message msg = {.data = &bytes, .len = 12, .tag = toy_tag_copied, .flags = JZX_MSG_COPY};
    CHECK_EQ(toy_check(&msg), JZX_ERR_WRONG_TYPE);
}

static const jzt_test tests[] = {
    {"a_wrong_length_is_named", test_a_wrong_length_is_named},
    {"wrong_flags_are_named", test_wrong_flags_are_named},
    {"a_wrong_kind_is_named", test_a_wrong_kind_is_named},
    {"answers_and_other_tags_are_nobodys_fault", test_answers_and_other_tags_are_nobodys_fault},
    {"who_speaks_for_the_callee_is_no_mistake", test_who_speaks_for_the_callee_is_no_mistake},
    {"the_check_itself_only_answers", test_the_check_itself_only_answers},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
