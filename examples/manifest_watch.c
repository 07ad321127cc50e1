/* Waiting for what others commit: an actor follows every change, waits for a generation by an ask
 * and commits by one; a plain thread waits for the same generation. Run: ./manifest_watch */
#define _POSIX_C_SOURCE 200809L /* mkdtemp() */
#include <jzx/jzx.h>
#include <jzx/manifest.h>
#include <jzx/system.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHANGE = 1, REACHED = 2, COMMITTED = 3, LAKE = 5 };

typedef struct reader {
    jzx_mf *mf;
    uint64_t follow; /* what jzx_mf_follow() gave */
    int reached, changes;
} reader;

static jzx_err begin_bump(jzx_mf *mf, jzx_mf_txn **txn)
{
    jzx_err err = jzx_mf_begin(mf, txn);
    return err != JZX_OK ? err : jzx_mf_generation_bump(*txn, LAKE, 1);
}

/* The first of two bumps is the actor's; the thread makes the second. */
static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    reader *me = ctx->state = arg;
    jzx_mf_txn *txn = NULL;
    jzx_err err;
    if ((err = jzx_mf_follow(me->mf, ctx->self, CHANGE, 0, &me->follow)) != JZX_OK ||
        (err = jzx_mf_generation_ask(ctx->loop, me->mf, LAKE, 2, REACHED, 60000, NULL, NULL)) !=
            JZX_OK ||
        (err = begin_bump(me->mf, &txn)) != JZX_OK ||
        (err = jzx_mf_commit_ask(ctx->loop, txn, COMMITTED, 60000, NULL, NULL)) != JZX_OK) {
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result hear(jzx_context *ctx, const jzx_message *msg)
{
    reader *me = ctx->state;
    me->changes += msg->tag == CHANGE ? 1 : 0;
    me->reached += msg->tag == REACHED && msg->u64 >= 2 ? 1 : 0;
    if (me->reached == 0 || me->changes < 2) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_err err = jzx_mf_unfollow(me->mf, me->follow);
    jzx_system_request_stop(jzx_loop_system(ctx->loop)); /* the manifest's writer stays */
    return err == JZX_OK ? JZX_BEHAVIOR_STOP : jzx_fail(ctx, err, jzx_strerror(err));
}

static void *follow_up(void *arg)
{
    reader *me = arg;
    jzx_mf_txn *txn = NULL;
    jzx_err err = jzx_mf_generation_wait(me->mf, LAKE, 1, 60000, NULL);
    err = err == JZX_OK ? begin_bump(me->mf, &txn) : err;
    err = err == JZX_OK ? jzx_mf_commit(txn, 0, NULL) : err;
    return err == JZX_OK ? NULL : arg;
}

static jzx_err print_event(void *arg, const jzx_mf_event *event)
{
    (void)arg;
    printf("%s of a %s\n", event->change == JZX_MF_PUT ? "put" : "del",
           jzx_mf_table_name(event->key.table));
    return JZX_OK;
}

static jzx_err print_events(jzx_mf_snap *snap, void *arg)
{
    return jzx_mf_event_each(snap, 0, print_event, arg); /* what is kept of all commits */
}

int main(void)
{
    char dir[] = "/tmp/jzx-XXXXXX";
    reader me = {0};
    pthread_t thread;
    void *failed = NULL;
    jzx_system *system = NULL;
    jzx_spawn_opts opts = {.behavior = hear, .init = begin, .state = &me};
    if (mkdtemp(dir) == NULL || chdir(dir) != 0 || jzx_system_create(NULL, &system) != JZX_OK ||
        jzx_mf_open("w", &(jzx_mf_opts){.system = system}, &me.mf, NULL) != JZX_OK ||
        jzx_spawn(jzx_system_loop(system), &opts, NULL) != JZX_OK ||
        pthread_create(&thread, NULL, follow_up, &me) != 0) {
        return 1;
    }
    jzx_err err = jzx_system_run(system);
    (void)pthread_join(thread, &failed);
    err = err == JZX_OK ? jzx_mf_read(me.mf, print_events, NULL) : err;
    printf("%d changes, generation 2 reached: %s\n", me.changes, me.reached == 1 ? "yes" : "no");
    (void)(jzx_mf_close(me.mf, 0) + jzx_system_destroy(system));
    (void)(remove("w") + remove("w-lock") + remove("w-owner"));
    return rmdir(dir) == 0 && err == JZX_OK && failed == NULL ? 0 : 1;
}
