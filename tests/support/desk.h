/* What the suites on become, stash and forward share: a life that is closed at first and sets work
 * aside, opens when told, and checks what it is given; alone or under a parent with a policy. */
#ifndef JZT_DESK_H
#define JZT_DESK_H

#include "puppet.h"

/* Tags below PARCELS are work. What the others do: */
enum {
    S_OPEN = 0x200,    /* become open */
    S_CLOSE,           /* become closed */
    S_SERVE,           /* open, and unstash all */
    S_TWICE,           /* unstash one, and one more */
    S_BOTH,            /* stash this very message, then open and unstash all */
    S_UNSTASH = 0x300, /* + n: unstash n; + S_ALL: all */
    S_ALL = 0xFF
};

enum { PARCELS = 0x100 };

/* Data of a message, by its tag: who saw it and who released it. */
typedef struct parcel {
    uint32_t drops;
    uint32_t owned; /* times that the behavior was done with it, without a drop */
} parcel;
extern parcel parcels[PARCELS];

typedef enum form { F_VALUE, F_COPY, F_DROP, F_BARE, FORMS } form;

void parcel_drop(void *data);
unsigned char parcel_byte(uint32_t tag, size_t i);
enum { COPY_MAX = 10000 };

/* The options of a message with this tag; a copy's bytes are valid until the next call. */
jzx_send_opts parcel_opts(form what, uint32_t tag, size_t len);
/* It is what was sent. */
void parcel_check(const jzx_message *msg);
jzx_behavior_result desk_open(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result desk_closed(jzx_context *ctx, const jzx_message *msg);

/* "a!STASH_FULL" */
void say_error(const puppet *self, jzx_err err);
/* Sets all work aside. */
jzx_behavior_result desk_closed(jzx_context *ctx, const jzx_message *msg);
/* Does all work. */
jzx_behavior_result desk_open(jzx_context *ctx, const jzx_message *msg);
void desk_stash(jzx_context *ctx, const jzx_message *msg);
jzx_behavior_result desk_order(jzx_context *ctx, const jzx_message *msg);
/* Which messages are its own business and not the tests' work. */
bool desk_is_work(const jzx_message *msg);

/* A desk, under a parent with a policy if there is one. */
typedef struct desk {
    rig r;
    puppet p;
    puppet a;
    jzx_spawn_opts opts; /* what puppet_opts() does not say */
    const jzx_supervisor_spec *policy;
} desk;

void desk_begin(jzx_context *ctx, puppet *self, uint32_t what);
void desk_spawn(jzx_loop *loop, desk *d);
/* Opened, started and quiet. opts and policy may be NULL. */
void desk_start(desk *d, const jzx_config *config, const jzx_spawn_opts *opts,
                const jzx_supervisor_spec *policy);
void desk_close(desk *d);
/* Sends values with these tags, in this order, and runs until all is quiet. */
void desk_tell_all(desk *d, const uint32_t *tags, size_t count);
#define TELL(desk_, ...)                                                                           \
    do {                                                                                           \
        static const uint32_t tags_[] = {__VA_ARGS__};                                             \
        desk_tell_all((desk_), tags_, COUNT_OF(tags_));                                            \
    } while (0)
#define TELL_AND_RUN(desk_, ...)                                                                   \
    do {                                                                                           \
        TELL(desk_, __VA_ARGS__);                                                                  \
        rig_idle(&(desk_)->r);                                                                     \
    } while (0)

/* The journal without hooks and notices: only what was done with messages. */
const char *said_work(void);
#define CHECK_WORK(text)                                                                           \
    do {                                                                                           \
        CHECK_STR(said_work(), text);                                                              \
        said_clear();                                                                              \
    } while (0)

jzx_actor_facts desk_facts(desk *d);
#endif
