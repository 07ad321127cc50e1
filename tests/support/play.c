#include "puppet.h"

uint64_t rig_seed;

void play_open(rig *r, const jzx_config *config)
{
    jzx_sim_opts sim = {.seed = rig_seed != 0 ? rig_seed : jzt_seed() | 1,
                        .flags = rig_seed != 0 ? 0 : JZX_SIM_FIFO};
    *r = rig_open_with(config, &sim);
    cast_open(&the_cast, CAST_JOURNAL, r->sim);
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &cast_observer, &the_cast));
}

void play_close(rig *r)
{
    rig_close(r);
    cast_close(&the_cast);
}

void puppet_name(puppet *self, const char *name)
{
    cast_add(&the_cast, self, name);
}

void puppet_spawn(rig *r, puppet *self, const char *name)
{
    puppet_name(self, name);
    jzx_spawn_opts opts = puppet_opts(self);
    puppet_spawn_with(r->loop, self, &opts);
}

void puppet_start_as(rig *r, puppet *self, const jzx_spawn_opts *given)
{
    if (given != NULL) {
        self->opts = *given;
    }
    jzx_spawn_opts opts = puppet_opts(self);
    puppet_spawn_with(r->loop, self, &opts);
}

puppet *puppet_start(rig *r, puppet_on on, const jzx_spawn_opts *opts)
{
    puppet *self = puppet_new(on);
    puppet_start_as(r, self, opts);
    return self;
}

void tell(rig *r, const puppet *to, uint32_t tag)
{
    REQUIRE_OK(jzx_send_u64(r->loop, to->id, tag, tag));
}

void inside(rig *r, puppet *self, void (*call)(jzx_context *ctx, puppet *self))
{
    self->call = call;
    tell(r, self, T_CALL);
    rig_idle(r);
}

jzx_timer_id after(rig *r, const puppet *to, uint32_t ms, uint32_t tag)
{
    jzx_timer_id id = 0;
    REQUIRE_OK(jzx_send_after(r->loop, to->id, ms, NULL, 0, tag, &id));
    return id;
}

bool is_gone(rig *r, const puppet *self)
{
    return jzx_actor_state(r->loop, self->id) == JZX_STATE_TERMINATED;
}
