/* Entry points for jobs: thin checks over job. */
#include "io/blocking.h"

#include "base/alloc.h"

bool jzi_blocking_is_inside(jzx_context *ctx)
{
    const jzi_worker *worker = ctx == NULL ? NULL : jzi_container_of(ctx, jzi_worker, ctx);
    return worker != NULL && worker->phase != JZI_PHASE_NONE &&
           (worker->phase != JZI_PHASE_BEHAVIOR || worker->in_hand != NULL);
}

jzx_err jzi_blocking_begin(jzi_worker *worker, jzi_actor **out_actor, jzi_jobs **out_jobs)
{
    if (worker->phase == JZI_PHASE_DEINIT) {
        return JZX_ERR_STOPPING;
    }
    jzx_err err = jzi_worker_find_owner(worker, worker->ctx.self, out_actor);
    if (err != JZX_OK) {
        return err;
    }
    if (worker->dispatcher->jobs == NULL) {
        jzi_jobs_limits limits = {.threads = JZI_BLOCKING_THREADS, .queue = JZI_BLOCKING_QUEUE};
        err = jzi_jobs_create(&worker->alloc, &limits, &worker->dispatcher->jobs);
    }
    *out_jobs = worker->dispatcher->jobs;
    return err;
}

static jzx_err blocking_check_opts(const jzx_blocking_opts *opts)
{
    if (opts->fn == NULL || opts->reserved != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    return opts->tag >= JZX_TAG_SYSTEM_FIRST ? JZX_ERR_RESERVED_TAG : JZX_OK;
}

static jzx_err run_blocking(jzx_context *ctx, const jzx_blocking_opts *opts, jzx_job_ref *out_job)
{
    if (!jzi_blocking_is_inside(ctx)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = blocking_check_opts(opts);
    if (err != JZX_OK) {
        return err;
    }
    JZI_ENTER(ctx->loop, "jzx_run_blocking");
    jzi_actor *actor = NULL;
    jzi_jobs *jobs = NULL;
    err = jzi_blocking_begin(worker, &actor, &jobs);
    if (err != JZX_OK) {
        return err;
    }
    jzi_job *job = jzi_job_new(worker, actor, sizeof *job);
    if (job == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    job->fn = opts->fn;
    job->arg = opts->arg;
    job->drop_arg = opts->drop_arg;
    job->drop_result = opts->drop_result;
    job->tag = opts->tag;
    job->kind = JZX_KIND_JOB;
    job->flags = JZI_MSG_EVENT | (opts->drop_result == NULL ? 0 : JZI_MSG_DROP);
    err = jzi_job_start(worker, actor, jobs, job);
    if (err != JZX_OK) {
        jzi_job_free(worker, job);
    } else if (out_job != NULL) {
        *out_job = job->ref;
    }
    return err;
}

jzx_err jzx_run_blocking(jzx_context *ctx, jzx_blocking_fn fn, void *arg, uint32_t tag)
{
    jzx_blocking_opts opts = {.fn = fn, .arg = arg, .tag = tag};
    return run_blocking(ctx, &opts, NULL);
}

jzx_err jzx_run_blocking_with_sized(jzx_context *ctx, const jzx_blocking_opts *opts,
                                    size_t opts_size, jzx_job_ref *out_job)
{
    jzx_blocking_opts known;
    if (opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    return err != JZX_OK ? err : run_blocking(ctx, &known, out_job);
}

jzx_err jzx_cancel_blocking(jzx_context *ctx, jzx_job_ref job)
{
    if (!jzi_blocking_is_inside(ctx)) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(ctx->loop, "jzx_cancel_blocking");
    jzi_jobs *jobs = worker->dispatcher->jobs;
    jzi_actor *actor = jobs == NULL ? NULL : jzi_worker_find(worker, worker->ctx.self);
    return actor == NULL ? JZX_ERR_NO_SUCH_REF : jzi_job_cancel(worker, actor, jobs, job);
}

jzx_job_ref jzx_message_job(const jzx_message *msg)
{
    if (msg == NULL) {
        return 0;
    }
    switch (msg->kind) {
    case JZX_KIND_JOB:
        return msg->len;
    case JZX_KIND_FILE:
        return ((const jzx_file_event *)msg->data)->job;
    default:
        return 0;
    }
}
