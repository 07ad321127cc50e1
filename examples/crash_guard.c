/* A parser that dies of bad input, under a supervisor. Its failed assertion would end the program;
 * with the crash guard it ends the parser, which starts again with the next line.
 * Build: cc -rdynamic crash_guard.c $(pkg-config --cflags --libs libjzx). Run: ./a.out */
#undef NDEBUG
#include <jzx/guard.h>
#include <jzx/jzx.h>

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 1, QUIT = 2 };

/* Somebody else's code, and we cannot change it. */
static size_t parse_line(const char *line)
{
    const char *colon = strchr(line, ':');
    assert(colon != NULL);
    return (size_t)(colon - line);
}

static jzx_behavior_result start_parser(jzx_context *ctx, void *arg)
{
    (void)arg;
    printf("parser %u starts\n", (unsigned)jzx_actor_incarnation(ctx->loop, ctx->self));
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result parser(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    if (msg->tag == QUIT) {
        return JZX_BEHAVIOR_STOP;
    }
    const char *line = msg->data;
    printf("key \"%.*s\"\n", (int)parse_line(line), line);
    return JZX_BEHAVIOR_OK;
}

static void on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    void *frames[64];
    (void)ctx;
    (void)id;
    /* reason->text says where, for instance "SIGABRT in parse_line+0x3f (crash_guard)". */
    printf("%s failed: %s%s\n", name, jzx_reason_name(reason->kind),
           reason->code == SIGABRT && reason->text[0] != '\0' ? " by abort" : "");
    printf("there is %s backtrace\n", jzx_crash_backtrace(frames, 64) > 0 ? "a" : "no");
}

static jzx_err say(jzx_loop *loop, jzx_actor_id to, const char *line)
{
    return jzx_send_copy(loop, to, line, strlen(line) + 1, LINE);
}

int main(void)
{
    static const jzx_observer observer = {.on_actor_fail = on_fail};
    static const jzx_child_spec child = {.id = "parser",
                                         .behavior = parser,
                                         .init = start_parser,
                                         .mode = JZX_TRANSIENT,
                                         .significant = 1,
                                         .flags = JZX_SPAWN_CRASH_GUARD};
    static const jzx_supervisor_spec spec = {.intensity = 3,
                                             .auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
    static const jzx_supervisor_init init = {
        .name = "input", .spec = &spec, .children = &child, .child_count = 1};
    jzx_loop *loop = NULL;
    jzx_actor_id sup = JZX_NOBODY;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((err = jzx_crash_guard_install()) != JZX_OK ||
        (err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_loop_set_observer(loop, &observer, NULL)) != JZX_OK ||
        (err = jzx_spawn_supervisor(loop, &init, &sup)) != JZX_OK ||
        (err = jzx_loop_run_until_started(loop, sup)) != JZX_OK ||
        jzx_actor_children(loop, sup, &id, 1) != 1 ||
        (err = say(loop, id, "name: jazz")) != JZX_OK || (err = say(loop, id, "oops")) != JZX_OK ||
        (err = say(loop, id, "year: 1917")) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 0, QUIT)) != JZX_OK || (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "crash_guard: %s\n", jzx_strerror(err));
    }
    jzx_loop_destroy(loop);
    jzx_crash_guard_remove();
    return err == JZX_OK ? 0 : 1;
}
