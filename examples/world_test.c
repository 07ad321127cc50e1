/* A test of an actor that lives off its surroundings: a pipe, a signal, a child process, a file. In
 * the kit's world all of them are the test's to make. Build with libjzx_testkit. Run: ./world_test
 */
#include <jzx/jzx.h>
#include <jzx/testkit.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIPE = 1, SIGNAL = 2, CHILD = 3, PATH = 4, REPORT = 5 };

static void check(int holds, const char *fact)
{
    if (!holds) {
        fprintf(stderr, "failed: %s\n", fact);
        exit(1);
    }
    printf("ok: %s\n", fact);
}

/* The actor under test: reports everything as one number, tag and detail. */
static jzx_behavior_result watch(jzx_context *ctx, const jzx_message *msg)
{
    jzx_actor_id to = *(const jzx_actor_id *)ctx->state;
    const jzx_io_event *ev = msg->data;
    char byte = 0;
    size_t n = 0;
    uint64_t detail = 0;
    if (msg->tag == PIPE) {
        if (jzx_fd_read(ctx->loop, ev->fd, &byte, 1, &n) != JZX_OK) {
            return JZX_BEHAVIOR_OK; /* readiness is a hint */
        }
        detail = (uint64_t)byte;
    } else {
        detail = msg->tag == SIGNAL  ? (uint64_t)ev->signal
                 : msg->tag == CHILD ? (uint64_t)ev->code
                                     : ev->changes;
    }
    return jzx_send_u64(ctx->loop, to, msg->tag * 1000 + detail, REPORT) == JZX_OK
               ? JZX_BEHAVIOR_OK
               : JZX_BEHAVIOR_FAIL;
}

static int reported(jzx_probe *probe, uint64_t what)
{
    const jzx_probe_record *got = NULL;
    return jzx_probe_expect(probe, REPORT, 1000, &got) == JZX_OK && got->u64 == what;
}

int main(void)
{
    jzx_kit *kit = NULL;
    jzx_probe *probe = NULL;
    jzx_actor_id to = JZX_NOBODY, id = JZX_NOBODY;
    int fds[2];
    int32_t pid = 0;
    size_t n = 0;
    jzx_io_ref ref = 0;
    jzx_kit_opts opts = {.sim = &(jzx_sim_opts){.seed = 1}};
    jzx_spawn_opts watches = {.behavior = watch, .state = &to};
    check(jzx_kit_open(&opts, &kit) == JZX_OK && jzx_probe_spawn(kit->loop, &probe) == JZX_OK &&
              jzx_spawn(kit->loop, &watches, &id) == JZX_OK,
          "the watcher starts");
    to = jzx_probe_id(probe);

    check(jzx_sim_pipe(kit->sim, fds) == JZX_OK &&
              jzx_watch_fd(kit->loop, fds[0], id, JZX_IO_READ, PIPE, &ref) == JZX_OK &&
              jzx_sim_write(kit->sim, fds[1], "*", 1, &n) == JZX_OK && reported(probe, 1042),
          "a byte comes through a pipe");
    check(jzx_watch_signal(kit->loop, SIGHUP, id, SIGNAL, NULL) == JZX_OK &&
              jzx_sim_raise(kit->sim, SIGHUP) == JZX_OK && reported(probe, 2000 + SIGHUP),
          "a signal is raised");
    check(jzx_sim_child_start(kit->sim, &pid) == JZX_OK &&
              jzx_watch_child(kit->loop, pid, id, CHILD, NULL) == JZX_OK &&
              jzx_sim_child_exit(kit->sim, pid, 3, 0) == JZX_OK && reported(probe, 3003),
          "a child process ends with status 3");
    check(jzx_watch_path(kit->loop, "/etc/app.conf", JZX_PATH_CHANGED, id, PATH, NULL) == JZX_OK &&
              jzx_sim_path_change(kit->sim, "/etc/app.conf", JZX_PATH_CHANGED, NULL) == JZX_OK &&
              reported(probe, 4000 + JZX_PATH_CHANGED),
          "a file changes");

    check(jzx_kit_settle(kit) == JZX_OK && jzx_probe_count(probe) == 4 &&
              jzx_probe_at(probe, 0)->u64 == 1042 && jzx_probe_at(probe, 4) == NULL,
          "the record has the four of them, in order");
    check(jzx_unwatch_fd(kit->loop, ref) == JZX_OK, "the pipe is not watched any more");
    jzx_sim_close(kit->sim, fds[0]);
    jzx_sim_close(kit->sim, fds[1]);
    check(jzx_testkit_check(kit->loop) == NULL, "nothing was lost so far");
    jzx_probe_free(probe);
    check(jzx_kit_close(kit) == NULL, "and nothing leaked");
    return 0;
}
