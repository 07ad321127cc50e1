/* A system as a plain thread sees it: it finds dispatchers by name, spawns actors on them, and
 * stops, restarts and kills them from outside, with the same verdicts as an actor would get.
 * Nothing here runs on the thread of "loop" but jzx_system_run(). Run: ./any_thread */
#include <jzx/jzx.h>
#include <jzx/registry.h>
#include <jzx/system.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static jzx_behavior_result start(jzx_context *ctx, void *arg)
{
    char name[32]; /* each life registers under its number, so that a thread can wait for it */
    (void)snprintf(name, sizeof name, "%s, life %u", (const char *)arg,
                   (unsigned)jzx_actor_incarnation(ctx->loop, ctx->self));
    jzx_err err = jzx_register(ctx->loop, name, ctx->self);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx, (void)msg;
    return JZX_BEHAVIOR_OK;
}

static jzx_err spawn_on(jzx_system *system, const char *dispatcher, char *name,
                        jzx_actor_id *out_id)
{
    jzx_spawn_opts opts = {
        .behavior = idle, .init = start, .state = name, .dispatcher = dispatcher};
    opts.restart = name[0] == 'a' ? JZX_RESTART_TRANSIENT : JZX_RESTART_NEVER;
    return jzx_system_spawn(system, &opts, out_id);
}

static void wait_until_gone(jzx_system *system, jzx_actor_id id)
{
    while (jzx_system_actor_state(system, id) != JZX_STATE_TERMINATED) {
        (void)sched_yield();
    }
}

static jzx_err tour(jzx_system *system)
{
    jzx_actor_id a = JZX_NOBODY, b = JZX_NOBODY, c = JZX_NOBODY, found = JZX_NOBODY;
    jzx_loop *loop = jzx_system_loop(system);
    jzx_err err;
    if ((err = spawn_on(system, "io", "a", &a)) != JZX_OK ||
        (err = spawn_on(system, "crunch", "b", &b)) != JZX_OK ||
        (err = spawn_on(system, "crunch", "c", &c)) != JZX_OK ||
        (err = jzx_await_name_blocking(loop, "a, life 1", 5000, &found)) != JZX_OK) {
        return err;
    }
    jzx_loop *io = jzx_system_dispatcher(system, "io");
    printf("the first one is on %s: %s\n", jzx_loop_name(io), found == a ? "yes" : "no");
    printf("dispatcher %u of its id is %s\n", (unsigned)jzx_id_dispatcher(a),
           jzx_loop_name(jzx_system_at(system, jzx_id_dispatcher(a))));
    int same = jzx_make_id(jzx_id_generation(a), jzx_id_index(a)) == a; /* kept as two columns */
    printf("an id of its two halves is the same: %s\n", same ? "yes" : "no");
    do { /* OK is that it was asked for: its parent may not have heard yet that it runs */
        err = jzx_system_restart(system, a);
    } while (err == JZX_OK &&
             jzx_await_name_blocking(loop, "a, life 2", 100, &found) == JZX_ERR_TIMED_OUT);
    printf("the second life has the same id: %s\n", err == JZX_OK && found == a ? "yes" : "no");
    printf("stop: %s\n", jzx_err_name(jzx_system_stop(system, a)));
    printf("drained: %s\n", jzx_err_name(jzx_system_stop_drained(system, b)));
    printf("kill: %s\n", jzx_err_name(jzx_system_kill(system, c)));
    wait_until_gone(system, a);
    wait_until_gone(system, b);
    wait_until_gone(system, c);
    printf("stop one that is gone: %s\n", jzx_err_name(jzx_system_stop(system, a)));
    printf("a timer that never was: %s\n", jzx_err_name(jzx_system_cancel_timer(system, 1)));
    return err;
}

static void *run_tour(void *arg)
{
    jzx_err err = tour(arg);
    jzx_system_request_stop(arg);
    return err == JZX_OK ? NULL : arg;
}

int main(void)
{
    jzx_dispatcher_spec places[] = {{.name = "io", .kind = JZX_DISPATCHER_PINNED},
                                    {.name = "crunch", .kind = JZX_DISPATCHER_POOL, .workers = 2}};
    jzx_system_config config = {.dispatchers = places, .dispatcher_count = 2};
    jzx_system *system = NULL;
    pthread_t thread;
    void *failed = NULL;
    jzx_spawn_opts keeper = {.behavior = idle}; /* a run without any actor would be over at once */
    if (jzx_system_create(&config, &system) != JZX_OK ||
        jzx_spawn(jzx_system_loop(system), &keeper, NULL) != JZX_OK ||
        pthread_create(&thread, NULL, run_tour, system) != 0) {
        return 1;
    }
    jzx_err err = jzx_system_run(system);
    (void)pthread_join(thread, &failed);
    return jzx_system_destroy(system) == JZX_OK && err == JZX_OK && failed == NULL ? 0 : 1;
}
