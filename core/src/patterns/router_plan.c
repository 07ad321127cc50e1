/* A router's options: checked once, then copied. */
#include "patterns/router_priv.h"

#include "base/alloc.h"

#include <string.h>

/* Makes a string of the options point into the plan. */
static jzx_err keep(char *to, size_t cap, const char **field)
{
    if (*field == NULL) {
        return JZX_OK;
    }
    size_t len = strlen(*field);
    if (len >= cap) {
        return JZX_ERR_TOO_BIG;
    }
    memcpy(to, *field, len + 1);
    *field = to;
    return JZX_OK;
}

static jzx_err router_plan_check_list(const jzx_router_opts *opts)
{
    for (uint32_t i = 0; i < opts->list_count; i++) {
        if (opts->list[i] == JZX_NOBODY) {
            return JZX_ERR_INVALID_ARG;
        }
        for (uint32_t j = 0; j < i; j++) {
            if (opts->list[j] == opts->list[i]) {
                return JZX_ERR_INVALID_ARG;
            }
        }
    }
    return JZX_OK;
}

static jzx_err router_plan_check(const jzx_router_opts *opts)
{
    int kinds = (opts->worker != NULL) + (opts->list != NULL) + (opts->group != NULL);
    bool odd = opts->strategy > JZX_ROUTE_GATHER_FIRST || opts->on_empty > JZX_EMPTY_FAIL ||
               opts->overflow > JZX_OVERFLOW_NEXT ||
               (opts->strategy == JZX_ROUTE_HASH && opts->key == NULL) ||
               (opts->list != NULL && opts->list_count == 0) ||
               (opts->group != NULL && opts->group[0] == '\0');
    if (kinds != 1 || odd) {
        return JZX_ERR_INVALID_ARG;
    }
    if (opts->workers > JZX_ROUTER_WORKERS_MAX || opts->list_count > JZX_ROUTER_WORKERS_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    return opts->list == NULL ? JZX_OK : router_plan_check_list(opts);
}

/* As a supervisor would judge it: the restart rules, and whether a worker can be restarted. */
static jzx_err check_pool(const jzx_spawn_opts *worker, const jzx_supervisor_spec *restart)
{
    if (restart->strategy == JZX_DYNAMIC || restart->auto_shutdown != JZX_AUTO_NEVER) {
        return JZX_ERR_BAD_SPEC;
    }
    if (worker->behavior == NULL || worker->supervisor != JZX_NOBODY) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_child_spec child = {.id = "worker",
                            .behavior = worker->behavior,
                            .init = worker->init,
                            .mode = JZX_TRANSIENT,
                            .flags = worker->flags & JZX_SPAWN_STATELESS};
    jzx_supervisor_init init = {.spec = restart, .children = &child, .child_count = 1};
    return jzx_supervisor_check(&init, NULL, 0);
}

static jzx_err adopt_pool(jzi_router_plan *plan, const jzx_router_sizes *sizes)
{
    jzx_router_opts *opts = &plan->opts;
    jzx_err err = jzi_struct_adopt(&plan->worker, sizeof plan->worker, opts->worker, sizes->worker);
    if (err == JZX_OK && opts->restart != NULL) {
        err = jzi_struct_adopt(&plan->restart, sizeof plan->restart, opts->restart, sizes->restart);
    }
    if (err == JZX_OK) {
        err = check_pool(&plan->worker, &plan->restart);
    }
    if (err == JZX_OK) {
        err = keep(plan->worker_name, sizeof plan->worker_name, &plan->worker.name);
    }
    if (err == JZX_OK) {
        err =
            keep(plan->worker_dispatcher, sizeof plan->worker_dispatcher, &plan->worker.dispatcher);
    }
    opts->worker = &plan->worker;
    opts->restart = &plan->restart;
    opts->workers = opts->workers == 0 ? 4 : opts->workers;
    plan->worker.flags &= ~JZX_SPAWN_QUIET; /* or the router would not be told */
    return err;
}

static jzx_err router_plan_adopt(jzi_router_plan *plan, const jzx_router_sizes *sizes)
{
    jzx_router_opts *opts = &plan->opts;
    jzx_err err = keep(plan->name, sizeof plan->name, &opts->name);
    if (err == JZX_OK) {
        err = keep(plan->dispatcher, sizeof plan->dispatcher, &opts->dispatcher);
    }
    if (err == JZX_OK) {
        err = keep(plan->group, sizeof plan->group, &opts->group);
    }
    if (err == JZX_OK && opts->worker != NULL) {
        err = adopt_pool(plan, sizes);
    }
    if (opts->list != NULL) {
        memcpy(plan->list, opts->list, opts->list_count * sizeof(jzx_actor_id));
        opts->list = plan->list;
    }
    if (opts->on_empty == JZX_EMPTY_DEFAULT) {
        opts->on_empty = opts->list != NULL ? JZX_EMPTY_FAIL : JZX_EMPTY_WAIT;
    }
    return err;
}

jzx_err jzi_router_plan_make(jzx_loop *loop, const jzx_router_opts *opts,
                             const jzx_router_sizes *sizes, jzi_router_plan **out_plan)
{
    if (loop == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_router_opts known;
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, sizes->opts);
    if (err == JZX_OK) {
        err = router_plan_check(&known);
    }
    if (err != JZX_OK) {
        return err;
    }
    jzx_allocator alloc = jzx_loop_allocator(loop);
    size_t size = sizeof(jzi_router_plan) +
                  (known.list == NULL ? 0 : known.list_count) * sizeof(jzx_actor_id);
    jzi_router_plan *plan = jzi_alloc_zeroed(&alloc, size);
    if (plan == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    plan->alloc = alloc;
    plan->size = size;
    plan->opts = known;
    err = router_plan_adopt(plan, sizes);
    if (err != JZX_OK) {
        jzi_router_plan_release(plan);
        return err;
    }
    *out_plan = plan;
    return JZX_OK;
}

void jzi_router_plan_release(void *plan)
{
    jzi_router_plan *whole = plan;
    jzx_allocator alloc = whole->alloc;
    jzi_free(&alloc, whole, whole->size);
}
