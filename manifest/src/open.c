/* A manifest is opened, closed and looked at. */
#include "mf.h"

#include "codec.h"
#include "memory.h"
#include "op.h"
#include "recover.h"
#include "snap.h"

#include <stdio.h>
#include <string.h>

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)
#define DAY_MS ((uint64_t)24 * 3600 * 1000)
#define MAP_MIN MIB
/* A client that goes on after its answer is back within this; waking the writer costs as much. */
#define SPIN_US 100u

static void set_default(uint64_t *field, uint64_t value)
{
    *field = *field == 0 ? value : *field;
}

static void set_default32(uint32_t *field, uint32_t value)
{
    *field = *field == 0 ? value : *field;
}

static void fill_in(jzx_mf_opts *opts)
{
    set_default(&opts->map_max, 16 * GIB);
    set_default(&opts->reserve_bytes, 4 * MIB);
    set_default32(&opts->queue_cap, 4096);
    set_default32(&opts->batch_bytes, 32 * MIB);
    set_default32(&opts->readers_max, 1024);
    set_default32(&opts->snapshot_alarm_ms, 10000);
    set_default32(&opts->events_kept, 65536);
    set_default(&opts->retention.done_ms, DAY_MS);
    set_default(&opts->retention.dead_ms, 180 * DAY_MS);
    set_default(&opts->retention.cancelled_ms, 7 * DAY_MS);
    set_default32(&opts->retention.prune_max, 256);
    uint64_t slack = MFI_SLACK(opts->map_max);
    opts->batch_bytes = opts->batch_bytes > slack / 4 ? (uint32_t)(slack / 4) : opts->batch_bytes;
}

static jzx_err check_opts(const jzx_mf_opts *opts)
{
    const uint32_t known = JZX_MF_READONLY | JZX_MF_MUST_EXIST | JZX_MF_NO_VERIFY |
                           JZX_MF_NO_RESERVE | JZX_MF_ALL_EVENTS;
    if ((opts->flags & ~known) != 0 || (opts->loop != NULL && opts->system != NULL) ||
        (opts->dispatcher != NULL && opts->system == NULL) || opts->map_max < MAP_MIN) {
        return JZX_ERR_INVALID_ARG;
    }
    return opts->queue_cap > JZX_MAILBOX_CAP_MAX ? JZX_ERR_TOO_BIG : JZX_OK;
}

/* Where the writer will run, when the caller does not say: a thread of its own. */
static jzx_err open_system(jzx_mf *mf)
{
    mf->system = mf->opts.system;
    mf->loop = mf->opts.loop;
    if (mf->loop == NULL && mf->system == NULL) {
        const jzx_dispatcher_spec spec = {
            .name = "manifest", .kind = JZX_DISPATCHER_PINNED, .idle_spin_us = SPIN_US};
        const jzx_system_config config = {.dispatchers = &spec, .dispatcher_count = 1};
        jzx_err err = jzx_system_create(&config, &mf->system);
        if (err != JZX_OK) {
            return err;
        }
        mf->own_system = true;
    }
    if (mf->loop == NULL) {
        mf->loop = jzx_system_loop(mf->system);
    }
    return JZX_OK;
}

static jzx_err open_sender(jzx_mf *mf)
{
    jzx_err err = mf->system != NULL ? jzx_system_sender(mf->system, JZX_SENDER_SHARED, &mf->sender)
                                     : jzx_sender_open(mf->loop, JZX_SENDER_SHARED, &mf->sender);
    /* In simulation there is one thread, which needs none. */
    return err == JZX_ERR_NOT_SUPPORTED ? JZX_OK : err;
}

static jzx_err spawn_writer(jzx_mf *mf, mfi_writer *writer)
{
    jzx_spawn_opts opts;
    mfi_writer_spec(mf, writer, &opts);
    if (mf->system == NULL) {
        return jzx_spawn(mf->loop, &opts, &mf->writer);
    }
    if (mf->own_system) {
        opts.dispatcher = "manifest";
    } else {
        opts.dispatcher = mf->opts.dispatcher == NULL ? "pinned" : mf->opts.dispatcher;
    }
    return jzx_system_spawn(mf->system, &opts, &mf->writer);
}

/* The callers that waited were told that the manifest is closed, and are on their way out. */
static void wait_for_leavers(jzx_mf *mf)
{
    (void)pthread_mutex_lock(&mf->lock);
    while (mf->inside != 0) {
        (void)pthread_cond_wait(&mf->ended_cond, &mf->lock);
    }
    (void)pthread_mutex_unlock(&mf->lock);
}

static void mf_free(jzx_mf *mf)
{
    wait_for_leavers(mf);
    jzx_sender_release(mf->sender);
    if (mf->own_system) {
        (void)jzx_system_destroy(mf->system);
    }
    mfi_store_close(mf->store);
    (void)pthread_cond_destroy(&mf->ended_cond);
    (void)pthread_mutex_destroy(&mf->lock);
    mfi_free(mf);
}

static jzx_mf *mf_new(const jzx_mf_opts *opts)
{
    jzx_mf *mf = mfi_alloc_zeroed(1, sizeof *mf);
    if (mf != NULL) {
        mf->opts = *opts;
        mf->readonly = (opts->flags & JZX_MF_READONLY) != 0;
        (void)pthread_mutex_init(&mf->lock, NULL);
        pthread_condattr_t attr;
        (void)pthread_condattr_init(&attr);
        (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&mf->ended_cond, &attr);
        (void)pthread_condattr_destroy(&attr);
    }
    return mf;
}

static jzx_err open_store(jzx_mf *mf, const char *path, jzx_mf_recovery *report)
{
    const jzx_mf_opts *opts = &mf->opts;
    const mfi_store_opts store_opts = {
        .map_max = opts->map_max + MFI_SLACK(opts->map_max),
        .reserve_bytes = (opts->flags & JZX_MF_NO_RESERVE) != 0 ? 0 : opts->reserve_bytes,
        .readers_max = opts->readers_max,
        .readonly = mf->readonly,
        .must_exist = (opts->flags & JZX_MF_MUST_EXIST) != 0,
        .verify = (opts->flags & JZX_MF_NO_VERIFY) == 0,
        .now_ms = mfi_clock_wall_ms(opts),
    };
    mfi_store_facts facts = {0};
    jzx_err err = mfi_store_open(path, &store_opts, &mf->store, &facts);
    report->created = facts.created;
    report->readers_reaped = facts.readers_reaped;
    memcpy(report->text, facts.text, sizeof report->text);
    return err;
}

/* Everything a writing manifest needs beside its file. */
static jzx_err start_writer(jzx_mf *mf, jzx_mf_recovery *report)
{
    mfi_writer *writer = mfi_alloc_zeroed(1, sizeof *writer);
    if (writer == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    writer->mf = mf;
    writer->timer_ms = UINT64_MAX;
    writer->due.claim_ms = UINT64_MAX;
    jzx_err err = open_system(mf);
    if (err == JZX_OK) {
        err = mfi_recover(writer, report);
    }
    if (err == JZX_OK) {
        err = open_sender(mf);
    }
    if (err == JZX_OK) {
        err = spawn_writer(mf, writer);
    }
    if (err != JZX_OK) {
        mfi_buf_free(&writer->tx.buf);
        mfi_free(writer);
    }
    return err;
}

static jzx_err start_reader(jzx_mf *mf, jzx_mf_recovery *report)
{
    mfi_reader *reader;
    jzx_err err = mfi_reader_begin(mf->store, &reader);
    if (err != JZX_OK) {
        return err;
    }
    const mfi_view view = {mf->store, mfi_reader_txn(reader)};
    mfi_meta meta;
    err = mfi_meta_load(&view, &meta);
    if (err == JZX_OK) {
        report->boot = mf->boot = meta.boot;
        report->commit_seq = meta.commit_seq;
        report->clean = meta.clean;
        mfi_describe(&view, report);
    }
    mfi_reader_end(mf->store, reader);
    return err;
}

static jzx_err mf_open(const char *path, const jzx_mf_opts *opts, jzx_mf **out_mf,
                       jzx_mf_recovery *report)
{
    jzx_err err = check_opts(opts);
    if (err != JZX_OK) {
        return err;
    }
    uint64_t start_ms = mfi_clock_wall_ms(opts);
    jzx_mf *mf = mf_new(opts);
    if (mf == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    err = open_store(mf, path, report);
    if (err == JZX_OK) {
        err = mf->readonly ? start_reader(mf, report) : start_writer(mf, report);
    }
    if (err != JZX_OK) {
        mf_free(mf);
        return err;
    }
    uint64_t end_ms = mfi_clock_wall_ms(opts);
    report->duration_ms = end_ms > start_ms ? end_ms - start_ms : 0;
    *out_mf = mf;
    return JZX_OK;
}

jzx_err jzx_mf_open_sized(const char *path, const jzx_mf_opts *opts, size_t opts_size,
                          jzx_mf **out_mf, jzx_mf_recovery *out_report, size_t report_size)
{
    jzx_mf_opts known = {0};
    if (path == NULL || path[0] == '\0' || out_mf == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = opts == NULL ? JZX_OK : mfi_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    fill_in(&known);
    jzx_mf_recovery report = {0};
    err = mf_open(path, &known, out_mf, &report);
    if (err != JZX_OK && report.text[0] == '\0') {
        const char *hint = err == JZX_ERR_CORRUPT ? "; `jzx manifest FILE check` says where" : "";
        (void)snprintf(report.text, sizeof report.text, "%.150s: %s%s", path, jzx_strerror(err),
                       hint);
    }
    if (out_report != NULL) {
        memset(out_report, 0, report_size);
        memcpy(out_report, &report, report_size < sizeof report ? report_size : sizeof report);
    }
    return err;
}

static bool has_ended(jzx_mf *mf)
{
    (void)pthread_mutex_lock(&mf->lock);
    bool ended = mf->ended;
    (void)pthread_mutex_unlock(&mf->lock);
    return ended;
}

static uint64_t monotonic_ms(void)
{
    return mfi_clock_monotonic_ns() / 1000000u;
}

static void wait_on_thread(jzx_mf *mf, uint64_t until_ms)
{
    const struct timespec until = {(time_t)(until_ms / 1000), (long)(until_ms % 1000 * 1000000)};
    (void)pthread_mutex_lock(&mf->lock);
    int rc = 0;
    while (!mf->ended && rc == 0) {
        rc = pthread_cond_timedwait(&mf->ended_cond, &mf->lock, &until);
    }
    (void)pthread_mutex_unlock(&mf->lock);
}

/* On a loop of the caller, which does not run it now, the writer needs turns. */
static jzx_err wait_on_loop(jzx_mf *mf, uint64_t until_ms)
{
    jzx_err err = JZX_OK;
    while (err == JZX_OK && !has_ended(mf) && monotonic_ms() < until_ms) {
        err = jzx_loop_step(mf->loop, mf->sender == NULL ? 0 : 1000000);
    }
    return err;
}

/* An actor that waited for the writer could wait for itself. The runtime knows, and says so before
 * it looks for the actor that is asked. */
static bool is_inside_actor(jzx_mf *mf)
{
    if (mf->sender == NULL) {
        return jzx_loop_step(mf->loop, 0) == JZX_ERR_BUSY;
    }
    const jzx_ask_opts opts = {.tag = 1};
    jzx_reply reply;
    return jzx_ask_wait(mf->sender, JZX_NOBODY, &opts, &reply, NULL) == JZX_ERR_DEADLOCK;
}

static jzx_err order_close(jzx_mf *mf)
{
    const jzx_send_opts opts = {.tag = MFI_TAG_CLOSE, .flags = JZX_SEND_URGENT};
    jzx_err err;
    do {
        err = mf->sender != NULL ? jzx_send_async_with(mf->sender, mf->writer, &opts)
                                 : jzx_send_with(mf->loop, mf->writer, &opts);
    } while (err == JZX_ERR_NO_MEMORY && mf->sender != NULL);
    return err;
}

static jzx_err end_writer(jzx_mf *mf, uint32_t drain_ms)
{
    atomic_store(&mf->closing, true);
    (void)order_close(mf);
    uint64_t until_ms = monotonic_ms() + (drain_ms == 0 ? 30000u : drain_ms);
    jzx_err err = JZX_OK;
    if (mf->system == NULL) {
        err = wait_on_loop(mf, until_ms);
    } else {
        wait_on_thread(mf, until_ms);
    }
    if (err != JZX_OK || has_ended(mf)) {
        return err;
    }
    /* The commit that is under way ends; the rest is refused. */
    atomic_store(&mf->hurry, true);
    if (mf->system == NULL) {
        err = wait_on_loop(mf, UINT64_MAX);
    } else {
        wait_on_thread(mf, UINT64_MAX / 2);
    }
    return err == JZX_OK ? JZX_ERR_TIMED_OUT : err;
}

jzx_err jzx_mf_close(jzx_mf *mf, uint32_t drain_ms)
{
    if (mf == NULL) {
        return JZX_OK;
    }
    if (mfi_store_forked(mf->store)) {
        /* The writer's thread is the parent's; what belongs to it stays as it is. */
        mfi_store_close(mf->store);
        mfi_free(mf);
        return JZX_OK;
    }
    if (!mf->readonly && is_inside_actor(mf)) {
        return JZX_ERR_DEADLOCK;
    }
    jzx_err err = mf->readonly ? JZX_OK : end_writer(mf, drain_ms);
    if (err != JZX_OK && err != JZX_ERR_TIMED_OUT) {
        return err;
    }
    mf_free(mf);
    return err;
}

jzx_err jzx_mf_read(jzx_mf *mf, jzx_mf_read_fn fn, void *arg)
{
    if (mf == NULL || fn == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    mfi_reader *reader;
    jzx_err err = mfi_reader_begin(mf->store, &reader);
    if (err != JZX_OK) {
        return err;
    }
    jzx_mf_snap snap = {.view = {mf->store, mfi_reader_txn(reader)}};
    err = fn(&snap, arg);
    mfi_reader_end(mf->store, reader);
    return err;
}

jzx_err jzx_mf_backup(jzx_mf *mf, const char *path)
{
    if (mf == NULL || path == NULL || path[0] == '\0') {
        return JZX_ERR_INVALID_ARG;
    }
    return mfi_store_forked(mf->store) ? JZX_ERR_FORKED : mfi_store_backup(mf->store, path);
}
