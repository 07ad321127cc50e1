/* The workers of a router over a group: its members. */
#include "patterns/router_priv.h"

#include <jzx/registry.h>

#include "base/alloc.h"
#include "base/hash.h"

/* Makes room for `wanted` ids. Without memory there is as much room as before. */
static void router_group_make_room(jzi_router *r, size_t wanted)
{
    if (wanted <= r->members_cap) {
        return;
    }
    jzx_actor_id *more =
        jzi_realloc(&r->plan->alloc, r->members, r->members_cap * sizeof(jzx_actor_id),
                    wanted * sizeof(jzx_actor_id));
    if (more != NULL) {
        r->members = more;
        r->members_cap = wanted;
    }
}

static size_t read_members(jzx_context *ctx, jzi_router *r)
{
    const char *group = r->plan->opts.group;
    size_t count = jzx_group_count(ctx->loop, group);
    size_t most = JZX_ROUTER_WORKERS_MAX;
    router_group_make_room(r, count < most ? count : most);
    count = jzx_group_members(ctx->loop, group, r->members, r->members_cap);
    r->stale = count > r->members_cap && r->members_cap < most;
    return count < r->members_cap ? count : r->members_cap;
}

static void remove_others(jzi_router *r)
{
    for (uint32_t at = r->routes.count; at > 0; at--) {
        if (!r->routes.at[at - 1].kept) {
            jzi_router_forget(r, at - 1);
        }
    }
}

void jzi_router_read_group(jzx_context *ctx, jzi_router *r)
{
    size_t count = read_members(ctx, r);
    for (uint32_t at = 0; at < r->routes.count; at++) {
        r->routes.at[at].kept = false;
    }
    for (size_t i = 0; i < count; i++) {
        jzx_actor_id id = r->members[i];
        uint32_t at = jzi_routes_find(&r->routes, id);
        if (at != JZI_ROUTE_NONE) {
            r->routes.at[at].kept = true;
        } else if (id != ctx->self) {
            jzi_route route = {.id = id, .place = jzi_hash_mix(id), .kept = true};
            r->stale |= jzi_router_add(r, r->routes.count, &route) != JZX_OK;
        }
    }
    remove_others(r);
}

jzx_err jzi_router_start_group(jzx_context *ctx, jzi_router *r)
{
    return jzx_group_watch(ctx->loop, r->plan->opts.group, NULL);
}

void jzi_router_close_group(jzi_router *r)
{
    jzi_free(&r->plan->alloc, r->members, r->members_cap * sizeof(jzx_actor_id));
}
