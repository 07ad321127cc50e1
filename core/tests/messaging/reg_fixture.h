/* What the suites on names and groups share: lives whose behavior keeps the notices of both. */
#ifndef JZT_REG_FIXTURE_H
#define JZT_REG_FIXTURE_H

#include "puppet.h"

#include <jzx/registry.h>

enum { NOTICES_MAX = 64 };
#define FOREVER JZX_TIMEOUT_INFINITE

/* A notice as its receiver saw it. */
typedef struct seen {
    jzx_actor_id by;
    bool of_group;
    jzx_name_notice name;
    jzx_group_notice group;
} seen;

/* Of the test that runs. */
extern seen notices[NOTICES_MAX];
extern size_t notice_count;
extern void (*on_notice)(jzx_context *ctx, const seen *notice); /* NULL: nothing more */

/* What the test has an actor do, and what came of it. */
extern jzx_err called_err;
extern const char *called_text;
extern uint64_t called_ms;
extern uint64_t called_ref;
extern jzx_actor_id called_id;

jzx_behavior_result reg_behavior(jzx_context *ctx, const jzx_message *msg);
void reg_open(rig *r, const jzx_config *config);
jzx_spawn_opts reg_opts(puppet *self);
/* Known, spawned with these flags, and up. */
puppet *born_with(rig *r, puppet *self, const char *name, uint32_t flags);
puppet *born(rig *r, puppet *self, const char *name);
jzx_child_spec reg_child(puppet *self, uint32_t flags);
/* A supervisor of these children, up. */
jzx_actor_id sup_of(rig *r, const jzx_supervisor_spec *spec, const jzx_child_spec *children,
                    size_t count);
void call_await(jzx_context *ctx, puppet *self);
void call_cancel(jzx_context *ctx, puppet *self);
void call_watch(jzx_context *ctx, puppet *self);
void call_unwatch(jzx_context *ctx, puppet *self);
/* Has an actor wait; returns the reference. */
jzx_name_ref await_by(rig *r, puppet *self, const char *name, uint64_t ms);
jzx_err cancel_by(rig *r, puppet *self, jzx_name_ref ref);
jzx_group_ref watch_by(rig *r, puppet *self, const char *group);
void stop_life(rig *r, const puppet *self);
#endif
