/* A program that forks with a loop in its hands. The child process forgets the loop and the system
 * it inherited, without running anybody's code, and goes its own way; the parent goes on unharmed,
 * and an actor hears how the child ended. Run: ./fork */
#define _POSIX_C_SOURCE 200809L
#include <jzx/jzx.h>
#include <jzx/system.h>

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

enum { CHILD = 1 };

static jzx_behavior_result on_child(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_io_event *ev = msg->data;
    (void)ctx;
    if (msg->kind == JZX_KIND_IO && ev->what == JZX_IO_CHILD) {
        printf("parent: the child ended with status %d\n", ev->code);
    }
    return JZX_BEHAVIOR_STOP;
}

/* In the child. A thread of the pool did not come along: nothing of the parent may be used. */
static int child(jzx_loop *loop, jzx_system *system)
{
    jzx_loop *own = NULL;
    jzx_loop_abandon(loop);
    jzx_system_abandon(system);
    if (jzx_loop_create(NULL, &own) != JZX_OK || jzx_loop_run(own) != JZX_OK) {
        return 1;
    }
    return jzx_loop_destroy(own) == JZX_OK ? 7 : 1;
}

int main(void)
{
    jzx_spawn_opts opts = {.behavior = on_child, .name = "parent"};
    jzx_loop *loop = NULL;
    jzx_system *system = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_system_create(NULL, &system)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_system_run_until_idle(system, 5000)) != JZX_OK) {
        fprintf(stderr, "fork: %s\n", jzx_strerror(err));
        return 1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        _exit(child(loop, system));
    }
    if (pid < 0 || (err = jzx_watch_child(loop, pid, id, CHILD, NULL)) != JZX_OK ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "fork: %s\n", jzx_strerror(err));
    }
    jzx_system_destroy(system);
    jzx_loop_destroy(loop);
    return err == JZX_OK ? 0 : 1;
}
