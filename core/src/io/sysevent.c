#include "io/sysevent.h"

#include "sched/entry.h"

#include <string.h>

#define SIGNAL_MAX 64
/* How many changes of a path one message may merge. */
#define PATH_MERGE_MAX 64u
#define PATH_NAME_BYTES 256u
#define PATH_ALL (JZX_PATH_CHANGED | JZX_PATH_CREATED | JZX_PATH_REMOVED)

/* What signals, children and paths have in common. */
typedef struct sysevent {
    jzi_source source;
    int32_t which;   /* signal number or process id */
    bool failed;     /* the last read failed, and the owner knows */
    uint64_t thread; /* whose mask a signal changed */
} sysevent;

/* One change is read ahead to see whether it can be merged into the message in hand. */
typedef struct path_watch {
    sysevent base;
    bool ahead;
    uint32_t ahead_changes;
    char name[PATH_NAME_BYTES];
    char ahead_name[PATH_NAME_BYTES];
} path_watch;

/* A failed read is told once. If the next one fails too the descriptor is left alone, because it
 * stays readable and the loop would never sleep again. */
static bool read_failed(jzi_io *io, sysevent *self, jzx_err err, jzx_io_event *event)
{
    if (err == JZX_ERR_AGAIN) {
        return false;
    }
    if (self->failed) {
        (void)jzi_source_set_interest(io, &self->source, 0);
        return false;
    }
    self->failed = true;
    event->what = JZX_IO_ERROR;
    event->err = err;
    return true;
}

static void fd_release(jzi_io *io, jzi_source *source)
{
    if (source->fd >= 0) {
        (void)jzi_source_set_interest(io, source, 0);
        io->env->fd_close(io->env->ctx, source->fd);
        source->fd = -1;
    }
}

static bool signal_claim(jzi_io *io, jzi_source *source, jzx_io_event *event)
{
    sysevent *self = (sysevent *)source;
    source->ready = 0;
    jzx_err err = io->env->signal_read(io->env->ctx, source->fd, &event->pid);
    if (err != JZX_OK) {
        return read_failed(io, self, err, event);
    }
    self->failed = false;
    event->what = JZX_IO_SIGNAL;
    event->signal = self->which;
    return true;
}

/* Also after fork: a program that the child becomes must not start with the signal blocked. */
static void signal_discard(jzi_io *io, jzi_source *source)
{
    const sysevent *self = (sysevent *)source;
    if (source->fd >= 0) {
        if (self->thread == jzi_thread_self()) {
            io->env->signal_close(io->env->ctx, source->fd, self->which);
        } else { /* signal_close() would change the mask of this thread instead */
            io->env->fd_close(io->env->ctx, source->fd);
        }
        source->fd = -1;
    }
    jzi_io_disclaim(io, -self->which);
}

static bool signal_close(jzi_io *io, jzi_source *source, bool owner_ended)
{
    (void)owner_ended;
    if (source->fd >= 0) {
        (void)jzi_source_set_interest(io, source, 0);
    }
    signal_discard(io, source);
    return true;
}

static bool child_claim(jzi_io *io, jzi_source *source, jzx_io_event *event)
{
    sysevent *self = (sysevent *)source;
    source->ready = 0;
    jzx_err err = io->env->child_read(io->env->ctx, source->fd, &event->code, &event->signal);
    if (err != JZX_OK) {
        return read_failed(io, self, err, event);
    }
    fd_release(io, source);
    event->what = JZX_IO_CHILD;
    event->pid = self->which;
    return true;
}

static void child_done(jzi_io *io, jzi_source *source)
{
    if (source->fd < 0) {
        jzi_source_close(io, source);
    }
}

static bool plain_close(jzi_io *io, jzi_source *source, bool owner_ended)
{
    (void)owner_ended;
    fd_release(io, source);
    return true;
}

static jzx_err path_read(jzi_io *io, path_watch *self, uint32_t *out_changes, char *name)
{
    return io->env->path_read(io->env->ctx, self->base.source.fd, out_changes, name,
                              PATH_NAME_BYTES);
}

/* Adds what follows and has the same name; what has another one waits for the next message. */
static void path_merge(jzi_io *io, path_watch *self, uint32_t *changes)
{
    for (uint32_t n = 0; n < PATH_MERGE_MAX && !self->ahead; n++) {
        if (path_read(io, self, &self->ahead_changes, self->ahead_name) != JZX_OK) {
            return;
        }
        if (strcmp(self->ahead_name, self->name) == 0) {
            *changes |= self->ahead_changes;
        } else {
            self->ahead = true;
        }
    }
}

static bool path_claim(jzi_io *io, jzi_source *source, jzx_io_event *event)
{
    path_watch *self = (path_watch *)source;
    source->ready = 0;
    if (self->ahead) {
        self->ahead = false;
        event->changes = self->ahead_changes;
        memcpy(self->name, self->ahead_name, PATH_NAME_BYTES);
    } else {
        jzx_err err = path_read(io, self, &event->changes, self->name);
        if (err != JZX_OK) {
            return read_failed(io, &self->base, err, event);
        }
    }
    self->base.failed = false;
    path_merge(io, self, &event->changes);
    event->what = JZX_IO_PATH;
    event->len = strlen(self->name);
    event->data = event->len == 0 ? NULL : self->name;
    return true;
}

static void path_done(jzi_io *io, jzi_source *source)
{
    if (((path_watch *)source)->ahead) {
        jzi_source_notify(io, source);
    }
}

static const jzi_source_ops signal_ops = {
    .claim = signal_claim,
    .close = signal_close,
    .discard = signal_discard,
    .bytes = sizeof(sysevent),
    .type = JZI_SOURCE_SIGNAL,
};
static const jzi_source_ops child_ops = {
    .claim = child_claim,
    .done = child_done,
    .close = plain_close,
    .bytes = sizeof(sysevent),
    .type = JZI_SOURCE_CHILD,
};
static const jzi_source_ops path_ops = {
    .claim = path_claim,
    .done = path_done,
    .close = plain_close,
    .bytes = sizeof(path_watch),
    .type = JZI_SOURCE_PATH,
};

/* The second half of opening: the source exists, the environment said whether it has a descriptor
 * for it. The source came first because opening a descriptor has effects that closing it again does
 * not undo: a signal may arrive in between. */
static jzx_err sysevent_start(jzi_io *io, jzi_source *source, jzx_err err, int fd,
                              jzx_io_ref *out_ref)
{
    if (err == JZX_OK) {
        source->fd = fd;
        err = jzi_source_set_interest(io, source, JZX_IO_READ);
    }
    if (err != JZX_OK) {
        jzi_source_close(io, source);
        return err;
    }
    if (out_ref != NULL) {
        *out_ref = source->ref;
    }
    return JZX_OK;
}

jzx_err jzi_signal_watch(jzi_io *io, int signo, jzx_actor_id owner, uint32_t tag,
                         jzx_io_ref *out_ref)
{
    if (signo <= 0 || signo > SIGNAL_MAX) {
        return JZX_ERR_INVALID_ARG;
    }
    /* Signals share the set of what is watched with descriptors, as negative numbers. */
    jzx_err err = jzi_io_claim(io, -signo);
    if (err != JZX_OK) {
        return err;
    }
    jzi_source *source;
    err = jzi_source_open(io, &signal_ops, -1, owner, 0, tag, &source);
    if (err != JZX_OK) {
        jzi_io_disclaim(io, -signo);
        return err;
    }
    ((sysevent *)source)->which = signo;
    ((sysevent *)source)->thread = jzi_thread_self();
    int fd = -1;
    err = io->env->signal_open(io->env->ctx, signo, &fd);
    return sysevent_start(io, source, err, fd, out_ref);
}

jzx_err jzi_child_watch(jzi_io *io, int32_t pid, jzx_actor_id owner, uint32_t tag,
                        jzx_io_ref *out_ref)
{
    if (pid <= 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_source *source;
    jzx_err err = jzi_source_open(io, &child_ops, -1, owner, 0, tag, &source);
    if (err != JZX_OK) {
        return err;
    }
    ((sysevent *)source)->which = pid;
    int fd = -1;
    err = io->env->child_open(io->env->ctx, pid, &fd);
    return sysevent_start(io, source, err, fd, out_ref);
}

jzx_err jzi_path_watch(jzi_io *io, const char *path, uint32_t changes, jzx_actor_id owner,
                       uint32_t tag, jzx_io_ref *out_ref)
{
    if (path == NULL || (changes & PATH_ALL) == 0 || (changes & ~(PATH_ALL | JZX_PATH_LOST)) != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_source *source;
    jzx_err err = jzi_source_open(io, &path_ops, -1, owner, 0, tag, &source);
    if (err != JZX_OK) {
        return err;
    }
    int fd = -1;
    err = io->env->path_open(io->env->ctx, path, changes, &fd);
    return sysevent_start(io, source, err, fd, out_ref);
}

jzx_err jzx_watch_signal(jzx_loop *loop, int signo, jzx_actor_id owner, uint32_t tag,
                         jzx_io_ref *out_ref)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_watch_signal");
    return jzi_signal_watch(worker->io, signo, owner, tag, out_ref);
}

jzx_err jzx_watch_child(jzx_loop *loop, int32_t pid, jzx_actor_id owner, uint32_t tag,
                        jzx_io_ref *out_ref)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_watch_child");
    return jzi_child_watch(worker->io, pid, owner, tag, out_ref);
}

jzx_err jzx_watch_path(jzx_loop *loop, const char *path, uint32_t changes, jzx_actor_id owner,
                       uint32_t tag, jzx_io_ref *out_ref)
{
    if (loop == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    JZI_ENTER(loop, "jzx_watch_path");
    return jzi_path_watch(worker->io, path, changes, owner, tag, out_ref);
}
