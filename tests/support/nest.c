#define _GNU_SOURCE
#include "nest.h"

void nest_spawn(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    jzx_supervisor_init init = {
        .name = "sup", .spec = &n->spec, .children = n->children, .child_count = n->count};
    n->err = jzx_spawn_supervisor(ctx->loop, &init, &n->sup);
}

nest *nest_new(world *w, size_t at, uint32_t mode)
{
    static const char *const names[KIDS] = {"k0", "k1", "k2", "k3", "k4"};
    nest *n = calloc(1, sizeof *n);
    REQUIRE(n != NULL);
    n->w = w;
    n->boss = puppet_up(puppet_at(w, "boss", places[at]));
    n->count = KIDS;
    for (size_t i = 0; i < KIDS; i++) {
        n->kid[i] = puppet_at(w, names[i], places[(at + i) % PLACES]);
        n->children[i] = puppet_spec(n->kid[i], mode);
    }
    return n;
}

void nest_begin(nest *n)
{
    puppet_call(n->boss, nest_spawn, n);
    REQUIRE_OK(n->err);
}

void nest_start(nest *n)
{
    nest_begin(n);
    for (size_t i = 0; i < KIDS; i++) {
        WAIT(n->w, puppet_signals(n->kid[i], JZX_SIGNAL_POST_START) == 1);
    }
    world_settle(n->w);
}

void nest_close(nest *n)
{
    (void)jzx_system_stop(n->w->system, atomic_load(&n->boss->id));
    WAIT(n->w, atomic_load(&n->boss->ends) == 1);
    world_settle(n->w);
    for (size_t i = 0; i < KIDS; i++) {
        CHECK_EQ(atomic_load(&n->kid[i]->ups), atomic_load(&n->kid[i]->deinits));
        if (atomic_load(&n->kid[i]->ends) > 0) {
            CHECK(atomic_load(&n->kid[i]->end_seq) < atomic_load(&n->boss->end_seq));
        }
    }
    CHECK_EQ(world_counters(n->w).live, 0);
    free(n);
}

sight nest_wait_end(nest *n, uint32_t signal, uint32_t reason)
{
    sight e = {0};
    WAIT(n->w, puppet_signals(n->boss, signal) == 1);
    (void)puppet_count(n->boss, signal, 0, &e);
    CHECK_EQ(e.sender, n->sup);
    CHECK_STR(jzx_reason_name(e.reason.kind), jzx_reason_name(reason));
    return e;
}

void puppet_end_by(puppet *kid, int way)
{
    jzx_loop *loop = kid->w->loop;
    jzx_actor_id id = atomic_load(&kid->id);
    switch (way) {
    case BY_KILL:
        CHECK_OK(jzx_kill(loop, id));
        break;
    case BY_STOP:
        CHECK_OK(jzx_stop(loop, id));
        break;
    case BY_RETURN:
        puppet_order(kid, T_STOP);
        break;
    default:
        puppet_order(kid, way == BY_FAIL ? T_FAIL : T_PANIC);
        break;
    }
}

void nest_ids(const nest *n, jzx_actor_id *out)
{
    for (size_t i = 0; i < KIDS; i++) {
        out[i] = atomic_load(&n->kid[i]->id);
    }
}

void ask_child(jzx_context *ctx, puppet *self, void *arg)
{
    nest *n = arg;
    (void)self;
    n->err = jzx_supervisor_child(ctx->loop, n->sup, n->name, &n->info);
}

jzx_child_info nest_child(nest *n, const char *name)
{
    n->name = name;
    puppet_call(n->boss, ask_child, n);
    CHECK_OK(n->err);
    return n->info;
}
