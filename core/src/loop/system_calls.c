/* What any thread may ask of a system: spawn, stop, kill, a sender. */
#include "loop/system.h"

#include "base/alloc.h"
#include "sched/sender.h"
#include "supervision/children.h"

jzx_err jzx_system_spawn_sized(jzx_system *system, const jzx_spawn_opts *opts, size_t opts_size,
                               jzx_actor_id *out_id)
{
    jzx_spawn_opts known;
    jzx_loop *loop = NULL;
    if (system == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err == JZX_OK && atomic_load_explicit(&system->closing, memory_order_relaxed) != 0) {
        err = JZX_ERR_STOPPING;
    }
    jzi_worker clerk = {
        .dispatcher = &jzi_system_main(system)->dispatcher,
        .alloc = system->alloc,
        .env = system->env,
        .default_cap = jzi_system_main(system)->inbox->default_cap,
    };
    jzi_child *child = NULL;
    if (err == JZX_OK && jzi_lifecycle_takes(&clerk, NULL, known.restart)) {
        err = jzi_root_child_make(&clerk, &known, &child);
    }
    jzi_birth birth = {.child_link = child == NULL ? NULL : &child->child_link, .asked = true};
    if (err == JZX_OK) {
        err = jzi_lifecycle_check(&clerk, &known, &birth);
    }
    if (err == JZX_OK) {
        err = jzi_system_find(system, known.dispatcher == NULL ? "loop" : known.dispatcher, &loop);
    }
    if (err != JZX_OK) {
        jzi_root_child_drop(&clerk, child);
        return err;
    }
    clerk.dispatcher = &loop->dispatcher;
    clerk.now_ns = system->env->now_ns(system->env->ctx);
    clerk.default_cap = loop->inbox->default_cap;
    clerk.default_max_msgs = loop->inbox->default_max_msgs;
    err = jzi_lifecycle_spawn_far(&clerk, loop->inbox, NULL, &known, &birth, out_id);
    if (err != JZX_OK) {
        jzi_root_child_drop(&clerk, child);
        jzi_system_unused(&loop->dispatcher, loop->inbox);
    }
    return err;
}

static jzx_err command(jzx_system *system, jzx_actor_id id, uint64_t order)
{
    if (system == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    return jzi_far_command(system->directory, id, order);
}

jzx_err jzx_system_stop(jzx_system *system, jzx_actor_id id)
{
    return command(system, id, JZI_GATE_STOP);
}

jzx_err jzx_system_stop_drained(jzx_system *system, jzx_actor_id id)
{
    return command(system, id, JZI_GATE_DRAIN);
}

jzx_err jzx_system_kill(jzx_system *system, jzx_actor_id id)
{
    return command(system, id, JZI_GATE_KILL);
}

jzx_err jzx_system_restart(jzx_system *system, jzx_actor_id id)
{
    return system == NULL ? JZX_ERR_INVALID_ARG
                          : jzi_restart_far(system->directory, &system->alloc, id);
}

jzx_err jzx_system_sender(jzx_system *system, uint32_t flags, jzx_sender **out_sender)
{
    if (system == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    return jzi_sender_open_all(jzi_system_main(system)->inbox, system->directory, flags,
                               out_sender);
}
