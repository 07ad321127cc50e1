/* Entry points for files. An operation is a job whose record also holds the event and the bytes. */
#include "io/blocking.h"

#include "os/file.h"

#include <string.h>

_Static_assert((int)JZI_FILE_READ == (int)JZX_FILE_READ &&
                   (int)JZI_FILE_WRITE == (int)JZX_FILE_WRITE &&
                   (int)JZI_FILE_SYNC == (int)JZX_FILE_SYNC &&
                   (int)JZI_FILE_DATASYNC == (int)JZX_FILE_DATASYNC &&
                   JZI_FILE_CURRENT == JZX_FILE_CURRENT,
               "the operations have the same numbers below");

typedef struct file_job {
    jzi_job job; /* first: it is allocated as one */
    jzi_file file;
    jzx_file_event event; /* filled in when the operation is over */
    unsigned char bytes[];
} file_job;

/* What an operation is asked to do. */
typedef struct file_wish {
    int fd;
    uint32_t op;
    uint64_t offset;
    const void *bytes; /* to be written */
    size_t len;
    uint32_t tag;
} file_wish;

static void *run_file(void *arg)
{
    file_job *self = arg;
    jzi_file_run(&self->file);
    return &self->event;
}

static void close_file(void *arg)
{
    file_job *self = arg;
    jzi_file_close(&self->file);
}

/* On whichever thread it ended: the descriptor goes at once, not when the owner finds the time. */
static void end_file(jzi_job *job)
{
    file_job *self = (file_job *)job;
    jzi_file_close(&self->file);
    self->event.job = job->ref;
    self->event.n = self->file.done;
    self->event.os_error = self->file.os_error;
    self->event.err = jzi_file_error(self->file.os_error);
    job->result = &self->event;
}

static file_job *new_file_job(jzi_worker *worker, jzi_actor *actor, const file_wish *wish)
{
    size_t patterns = wish->op == JZX_FILE_READ || wish->op == JZX_FILE_WRITE ? wish->len : 0;
    file_job *self = (file_job *)jzi_job_new(worker, actor, sizeof *self + patterns);
    if (self == NULL) {
        return NULL;
    }
    self->job.fn = run_file;
    self->job.arg = self;
    self->job.drop_arg = close_file;
    self->job.finish = end_file;
    self->job.tag = wish->tag;
    self->job.kind = JZX_KIND_FILE;
    self->job.flags = JZI_MSG_EVENT | JZX_MSG_BORROWED;
    self->file = (jzi_file){
        .fd = -1,
        .op = wish->op,
        .offset = wish->offset,
        .bytes = self->bytes,
        .len = wish->len,
    };
    self->event = (jzx_file_event){
        .offset = wish->offset,
        .len = wish->len,
        .data = wish->op == JZX_FILE_READ ? self->bytes : NULL,
        .fd = wish->fd,
        .op = wish->op,
    };
    if (wish->op == JZX_FILE_WRITE && wish->len > 0) {
        memcpy(self->bytes, wish->bytes, wish->len);
    }
    return self;
}

static jzx_err check_wish(const file_wish *wish)
{
    if (wish->op == JZX_FILE_WRITE && wish->bytes == NULL && wish->len > 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (wish->offset > INT64_MAX && wish->offset != JZX_FILE_CURRENT) {
        return JZX_ERR_INVALID_ARG;
    }
    if (wish->tag >= JZX_TAG_SYSTEM_FIRST) {
        return JZX_ERR_RESERVED_TAG;
    }
    return wish->len > JZX_FILE_LEN_MAX ? JZX_ERR_TOO_BIG : JZX_OK;
}

static jzx_err start_file(jzx_context *ctx, const file_wish *wish, jzx_job_ref *out_job)
{
    if (!jzi_blocking_is_inside(ctx)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = check_wish(wish);
    if (err != JZX_OK) {
        return err;
    }
    JZI_ENTER(ctx->loop, "jzx_file_read, _write or _sync");
    jzi_actor *actor = NULL;
    jzi_jobs *jobs = NULL;
    err = jzi_blocking_begin(worker, &actor, &jobs);
    if (err == JZX_OK && !jzi_job_has_threads(worker)) {
        err = JZX_ERR_NOT_SUPPORTED;
    }
    if (err != JZX_OK) {
        return err;
    }
    file_job *self = new_file_job(worker, actor, wish);
    if (self == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    err = jzi_file_open(&self->file, wish->fd);
    if (err == JZX_OK) {
        err = jzi_job_start(worker, actor, jobs, &self->job);
    }
    if (err != JZX_OK) {
        jzi_file_close(&self->file);
        jzi_job_free(worker, &self->job);
    } else if (out_job != NULL) {
        *out_job = self->job.ref;
    }
    return err;
}

jzx_err jzx_file_read(jzx_context *ctx, int fd, uint64_t offset, size_t len, uint32_t tag,
                      jzx_job_ref *out_job)
{
    file_wish wish = {.fd = fd, .op = JZX_FILE_READ, .offset = offset, .len = len, .tag = tag};
    return start_file(ctx, &wish, out_job);
}

jzx_err jzx_file_write(jzx_context *ctx, int fd, uint64_t offset, const void *bytes, size_t len,
                       uint32_t tag, jzx_job_ref *out_job)
{
    file_wish wish = {
        .fd = fd, .op = JZX_FILE_WRITE, .offset = offset, .bytes = bytes, .len = len, .tag = tag};
    return start_file(ctx, &wish, out_job);
}

jzx_err jzx_file_sync(jzx_context *ctx, int fd, jzx_file_op op, uint32_t tag, jzx_job_ref *out_job)
{
    if (op != JZX_FILE_SYNC && op != JZX_FILE_DATASYNC) {
        return JZX_ERR_INVALID_ARG;
    }
    file_wish wish = {.fd = fd, .op = (uint32_t)op, .tag = tag};
    return start_file(ctx, &wish, out_job);
}
