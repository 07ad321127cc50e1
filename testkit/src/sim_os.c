/* Signals, child processes and paths of the simulated world. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_SIGNALS 64
#define SIM_NEWS_MAX 256u

enum { SIM_SIGKILL = 9, SIM_SIGSTOP = 19 };

static sim_child *child_find(const jzx_sim *sim, int32_t pid)
{
    if (pid < SIM_PID_FIRST || (size_t)(pid - SIM_PID_FIRST) >= sim->children_len) {
        return NULL;
    }
    sim_child *child = &sim->children[pid - SIM_PID_FIRST];
    return child->reaped ? NULL : child;
}

uint32_t jzi_sim_os_ready(const jzx_sim *sim, const sim_fd *f)
{
    if (f->kind == SIM_CHILD) {
        const sim_child *child = child_find(sim, f->pid);
        return child == NULL || child->ended ? JZX_IO_READ : 0;
    }
    return f->signal_pending || f->news != NULL ? JZX_IO_READ : 0;
}

void jzi_sim_os_end(sim_fd *f)
{
    while (f->news != NULL) {
        sim_news *next = f->news->next;
        free(f->news);
        f->news = next;
    }
    free(f->path);
    f->path = NULL;
}

static jzx_err env_signal_open(void *ctx, int signo, int *out_fd)
{
    sim_fd *f;
    if (signo <= 0 || signo > SIM_SIGNALS || signo == SIM_SIGKILL || signo == SIM_SIGSTOP) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_sim_fd_new(ctx, SIM_SIGNAL, true, &f);
    if (err != JZX_OK) {
        return err;
    }
    f->signo = signo;
    jzi_sim_note(ctx, SIM_TRACE_OPEN, f->fd, (uint64_t)signo, JZX_OK);
    *out_fd = f->fd;
    return JZX_OK;
}

static jzx_err env_signal_read(void *ctx, int fd, int32_t *out_sender_pid)
{
    sim_fd *f = jzi_sim_get(ctx, fd);
    jzx_err err = JZX_OK;
    if (f == NULL || f->kind != SIM_SIGNAL) {
        return JZX_ERR_BAD_FD;
    }
    if (jzi_sim_take_failure(f, &err)) {
        return err;
    }
    if (!f->signal_pending) {
        return JZX_ERR_AGAIN;
    }
    f->signal_pending = false;
    jzi_sim_note(ctx, SIM_TRACE_READ, fd, (uint64_t)f->signo, JZX_OK);
    *out_sender_pid = 1;
    return JZX_OK;
}

static void env_signal_close(void *ctx, int fd, int signo)
{
    jzx_sim *sim = ctx;
    (void)signo;
    sim->env.fd_close(sim, fd);
}

jzx_err jzx_sim_raise(jzx_sim *sim, int signo)
{
    bool heard = false;
    for (size_t i = 0; i < sim->live_len; i++) {
        sim_fd *f = sim->live[i];
        if (f->kind == SIM_SIGNAL && f->signo == signo) {
            f->signal_pending = true;
            heard = true;
        }
    }
    return heard ? JZX_OK : JZX_ERR_NOT_FOUND;
}

jzx_err jzx_sim_child_start(jzx_sim *sim, int32_t *out_pid)
{
    sim_child *children = jzi_sim_reserve(sim->children, sim->children_len, &sim->children_cap,
                                          sizeof *sim->children);
    if (children == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sim->children = children;
    sim->children[sim->children_len] = (sim_child){0};
    *out_pid = SIM_PID_FIRST + (int32_t)sim->children_len;
    sim->children_len++;
    return JZX_OK;
}

jzx_err jzx_sim_child_exit(jzx_sim *sim, int32_t pid, int32_t code, int32_t signo)
{
    sim_child *child = child_find(sim, pid);
    if (child == NULL) {
        return JZX_ERR_NOT_FOUND;
    }
    if (child->ended) {
        return JZX_ERR_ALREADY;
    }
    child->code = code;
    child->signo = signo;
    child->ended = true;
    return JZX_OK;
}

static jzx_err env_child_open(void *ctx, int32_t pid, int *out_fd)
{
    sim_fd *f;
    if (child_find(ctx, pid) == NULL) {
        return JZX_ERR_NOT_FOUND;
    }
    jzx_err err = jzi_sim_fd_new(ctx, SIM_CHILD, true, &f);
    if (err != JZX_OK) {
        return err;
    }
    f->pid = pid;
    jzi_sim_note(ctx, SIM_TRACE_OPEN, f->fd, (uint64_t)pid, JZX_OK);
    *out_fd = f->fd;
    return JZX_OK;
}

static jzx_err env_child_read(void *ctx, int fd, int32_t *out_code, int32_t *out_signal)
{
    sim_fd *f = jzi_sim_get(ctx, fd);
    jzx_err err = JZX_OK;
    if (f == NULL || f->kind != SIM_CHILD) {
        return JZX_ERR_BAD_FD;
    }
    if (jzi_sim_take_failure(f, &err)) {
        return err;
    }
    sim_child *child = child_find(ctx, f->pid);
    if (child == NULL) {
        return JZX_ERR_NOT_FOUND;
    }
    if (!child->ended) {
        return JZX_ERR_AGAIN;
    }
    child->reaped = true;
    jzi_sim_note(ctx, SIM_TRACE_READ, fd, (uint64_t)f->pid, JZX_OK);
    *out_code = child->code;
    *out_signal = child->signo;
    return JZX_OK;
}

static jzx_err env_path_open(void *ctx, const char *path, uint32_t changes, int *out_fd)
{
    sim_fd *f;
    if (path == NULL || path[0] == '\0') {
        return JZX_ERR_NOT_FOUND;
    }
    jzx_err err = jzi_sim_fd_new(ctx, SIM_PATH, true, &f);
    if (err != JZX_OK) {
        return err;
    }
    size_t size = strlen(path) + 1;
    f->path = malloc(size);
    if (f->path == NULL) {
        jzi_sim_fd_free(ctx, f);
        return JZX_ERR_NO_MEMORY;
    }
    memcpy(f->path, path, size);
    f->path_mask = changes;
    jzi_sim_note(ctx, SIM_TRACE_OPEN, f->fd, changes, JZX_OK);
    *out_fd = f->fd;
    return JZX_OK;
}

static jzx_err env_path_read(void *ctx, int fd, uint32_t *out_changes, char *name, size_t cap)
{
    sim_fd *f = jzi_sim_get(ctx, fd);
    jzx_err err = JZX_OK;
    if (f == NULL || f->kind != SIM_PATH) {
        return JZX_ERR_BAD_FD;
    }
    if (jzi_sim_take_failure(f, &err)) {
        return err;
    }
    sim_news *news = f->news;
    if (news == NULL) {
        return JZX_ERR_AGAIN;
    }
    f->news = news->next;
    f->news_count--;
    *out_changes = news->changes;
    if (cap > 0) {
        (void)snprintf(name, cap, "%s", news->name);
    }
    jzi_sim_note(ctx, SIM_TRACE_READ, fd, news->changes, JZX_OK);
    free(news);
    return JZX_OK;
}

/* Past the limit the last entry turns into "some were lost", as a full kernel queue does. */
static jzx_err news_add(sim_fd *f, uint32_t changes, const char *name)
{
    sim_news **at = &f->news;
    while (*at != NULL && ((*at)->next != NULL || f->news_count < SIM_NEWS_MAX)) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        (*at)->changes = JZX_PATH_LOST;
        (*at)->name[0] = '\0';
        return JZX_OK;
    }
    sim_news *news = calloc(1, sizeof *news);
    if (news == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    news->changes = changes;
    (void)snprintf(news->name, sizeof news->name, "%s", name == NULL ? "" : name);
    *at = news;
    f->news_count++;
    return JZX_OK;
}

jzx_err jzx_sim_path_change(jzx_sim *sim, const char *path, uint32_t changes, const char *name)
{
    bool heard = false;
    for (size_t i = 0; i < sim->live_len; i++) {
        sim_fd *f = sim->live[i];
        uint32_t wanted = changes & (f->path_mask | JZX_PATH_LOST);
        if (f->kind != SIM_PATH || wanted == 0 || strcmp(f->path, path) != 0) {
            continue;
        }
        jzx_err err = news_add(f, wanted, name);
        if (err != JZX_OK) {
            return err;
        }
        heard = true;
    }
    return heard ? JZX_OK : JZX_ERR_NOT_FOUND;
}

void jzi_sim_os_env(jzx_env *env)
{
    env->signal_open = env_signal_open;
    env->signal_read = env_signal_read;
    env->signal_close = env_signal_close;
    env->child_open = env_child_open;
    env->child_read = env_child_read;
    env->path_open = env_path_open;
    env->path_read = env_path_read;
}
