#include "family.h"

static void family_begin(jzx_context *ctx, puppet *self, uint32_t what)
{
    family *f = self->arg;
    if (what != IN_INIT) {
        return;
    }
    REQUIRE_OK(jzx_set_child_policy(ctx, &f->policy));
    for (size_t i = 0; i < f->count; i++) {
        jzx_spawn_opts opts = puppet_opts(&f->child[i]);
        opts.flags = f->flags;
        puppet_spawn_with(ctx->loop, &f->child[i], &opts);
    }
}

void family_open(rig *r, family *f, const jzx_config *config, const jzx_supervisor_spec *policy,
                 size_t count, uint32_t flags)
{
    static const char *const names[FAMILY_MAX] = {"a", "b", "c", "d", "e", "f"};
    play_open(r, config);
    REQUIRE(count <= FAMILY_MAX);
    f->policy = *policy;
    f->count = count;
    f->flags = flags;
    for (size_t i = 0; i < count; i++) {
        puppet_name(&f->child[i], names[i]);
    }
    puppet_name(&f->p, "p");
    f->p.arg = f;
    f->p.during = family_begin;
    jzx_spawn_opts opts = puppet_opts(&f->p);
    puppet_spawn_with(r->loop, &f->p, &opts);
    rig_idle(r);
    CHECK_STATE(r, &f->p, JZX_STATE_RUNNING);
    said_clear();
}
