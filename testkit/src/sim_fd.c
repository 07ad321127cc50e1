/* The table of simulated descriptors, reads and writes on them, and the test's own side. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>

sim_fd *jzi_sim_get(const jzx_sim *sim, int fd)
{
    if (fd < SIM_FD_FIRST || (size_t)(fd - SIM_FD_FIRST) >= sim->table_len) {
        return NULL;
    }
    return sim->table[fd - SIM_FD_FIRST];
}

jzx_err jzi_sim_fd_new(jzx_sim *sim, sim_kind kind, bool loops, sim_fd **out)
{
    sim_fd **table = jzi_sim_reserve(sim->table, sim->table_len, &sim->table_cap, sizeof(sim_fd *));
    sim->table = table == NULL ? sim->table : table;
    sim_fd **live = jzi_sim_reserve(sim->live, sim->live_len, &sim->live_cap, sizeof(sim_fd *));
    sim->live = live == NULL ? sim->live : live;
    if (table == NULL || live == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    sim_fd *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    f->fd = SIM_FD_FIRST + (int)sim->table_len;
    f->kind = kind;
    f->loops = loops;
    f->live_index = sim->live_len;
    sim->table[sim->table_len++] = f;
    sim->live[sim->live_len++] = f;
    if (kind == SIM_CONNECTING) {
        sim->connecting++;
    }
    *out = f;
    return JZX_OK;
}

void jzi_sim_fd_free(jzx_sim *sim, sim_fd *f)
{
    if (f->conn != NULL) {
        jzi_sim_conn_drop(sim, f->conn, f->side);
    }
    if (f->kind == SIM_CONNECTING && f->connect_err == JZX_OK) {
        sim->connecting--;
    }
    if (f->kind == SIM_LISTENER) {
        jzi_sim_listener_end(sim, f);
    }
    jzi_sim_os_end(f);
    sim->table[f->fd - SIM_FD_FIRST] = NULL;
    sim_fd *last = sim->live[--sim->live_len];
    sim->live[f->live_index] = last;
    last->live_index = f->live_index;
    free(f);
}

uint32_t jzi_sim_ready(jzx_sim *sim, sim_fd *f)
{
    if (f->fail_next != JZX_OK) {
        return JZX_IO_READ | JZX_IO_WRITE | JZX_IO_ERROR;
    }
    switch (f->kind) {
    case SIM_STREAM:
        return jzi_sim_stream_ready(sim, f);
    case SIM_CONNECTING:
        return f->connect_err == JZX_OK ? 0
                                        : JZX_IO_READ | JZX_IO_WRITE | JZX_IO_HANGUP | JZX_IO_ERROR;
    case SIM_LISTENER:
        return f->waiting_count > 0 ? JZX_IO_READ : 0;
    case SIM_SIGNAL:
    case SIM_CHILD:
    case SIM_PATH:
        break;
    }
    return jzi_sim_os_ready(sim, f);
}

bool jzi_sim_take_failure(sim_fd *f, jzx_err *out_err)
{
    if (f->fail_next == JZX_OK) {
        return false;
    }
    *out_err = f->fail_next;
    f->fail_next = JZX_OK;
    return true;
}

/* How much of what a transfer could do the loop's own transfer does; 0 is "would block". */
static size_t shorten(jzx_sim *sim, size_t could)
{
    if (could == 0 || sim->short_io_permille == 0 ||
        jzi_sim_rng_below(&sim->io, 1000) >= sim->short_io_permille) {
        return could;
    }
    if (jzi_sim_rng_below(&sim->io, 8) == 0) {
        return 0;
    }
    return 1 + jzi_sim_rng_below(&sim->io, could);
}

static jzx_err transfer(jzx_sim *sim, int fd, void *in, const void *out, size_t len, bool loops,
                        size_t *out_n)
{
    sim_fd *f = jzi_sim_get(sim, fd);
    jzx_err err = JZX_OK;
    if (f == NULL) {
        return JZX_ERR_BAD_FD;
    }
    if (jzi_sim_take_failure(f, &err)) {
        return err;
    }
    jzi_sim_net_advance(sim);
    if (f->kind == SIM_CONNECTING) {
        return f->connect_err == JZX_OK ? JZX_ERR_AGAIN : f->connect_err;
    }
    if (f->kind != SIM_STREAM) {
        return JZX_ERR_INVALID_ARG;
    }
    if (loops) {
        size_t room = jzi_sim_stream_room(sim, f, in == NULL);
        size_t could = len < room ? len : room;
        size_t shorter = shorten(sim, could);
        if (could > 0 && shorter == 0) {
            return JZX_ERR_AGAIN;
        }
        len = could > 0 ? shorter : len;
    }
    return in != NULL ? jzi_sim_stream_read(sim, f, in, len, out_n)
                      : jzi_sim_stream_write(sim, f, out, len, out_n);
}

static jzx_err read_noted(jzx_sim *sim, int fd, void *buf, size_t len, bool loops, size_t *out_n)
{
    size_t n = 0;
    jzx_err err = transfer(sim, fd, buf, NULL, len, loops, &n);
    jzi_sim_note(sim, SIM_TRACE_READ, fd, n, err);
    if (err == JZX_OK) {
        *out_n = n;
    }
    return err;
}

static jzx_err write_noted(jzx_sim *sim, int fd, const void *buf, size_t len, bool loops,
                           size_t *out_n)
{
    size_t n = 0;
    jzx_err err = transfer(sim, fd, NULL, buf, len, loops, &n);
    jzi_sim_note(sim, SIM_TRACE_WRITE, fd, n, err);
    if (err == JZX_OK) {
        *out_n = n;
    }
    return err;
}

static jzx_err env_read(void *ctx, int fd, void *buf, size_t len, size_t *out_n)
{
    return read_noted(ctx, fd, buf, len, true, out_n);
}

static jzx_err env_write(void *ctx, int fd, const void *buf, size_t len, size_t *out_n)
{
    return write_noted(ctx, fd, buf, len, true, out_n);
}

static void misuse(jzx_sim *sim, int fd, const char *what)
{
    if (sim->misuse[0] == '\0') {
        (void)snprintf(sim->misuse, sizeof sim->misuse, "The loop closed descriptor %d, %s.", fd,
                       what);
    }
}

static void env_close(void *ctx, int fd)
{
    jzx_sim *sim = ctx;
    if (fd >= SIM_WAKE_FIRST && fd < SIM_WAKE_FIRST + SIM_WAKES) {
        if (!sim->wakes[fd - SIM_WAKE_FIRST].open) {
            misuse(sim, fd, "a wake descriptor that is not open");
        }
        sim->wakes[fd - SIM_WAKE_FIRST].open = false;
        atomic_store(&sim->wakes[fd - SIM_WAKE_FIRST].signalled, false);
        return;
    }
    sim_fd *f = jzi_sim_get(sim, fd);
    if (f == NULL) {
        misuse(sim, fd, "which is not open");
        return;
    }
    if (f->watchers > 0) {
        misuse(sim, fd, "which its poller still watches");
    }
    jzi_sim_note(sim, SIM_TRACE_CLOSE, fd, 0, JZX_OK);
    jzi_sim_fd_free(sim, f);
}

void jzi_sim_fd_env(jzx_env *env)
{
    env->fd_read = env_read;
    env->fd_write = env_write;
    env->fd_close = env_close;
}

size_t jzx_sim_open_fds(const jzx_sim *sim)
{
    size_t count = 0;
    for (size_t i = 0; i < SIM_WAKES; i++) {
        count += sim->wakes[i].open;
    }
    for (size_t i = 0; i < sim->live_len; i++) {
        count += sim->live[i]->loops;
    }
    return count;
}

jzx_err jzx_sim_pipe(jzx_sim *sim, int out_fd[2])
{
    sim_fd *end[2];
    sim_conn *conn = jzi_sim_conn_new("", "");
    if (conn == NULL || jzi_sim_fd_new(sim, SIM_STREAM, false, &end[0]) != JZX_OK) {
        free(conn);
        return JZX_ERR_NO_MEMORY;
    }
    if (jzi_sim_fd_new(sim, SIM_STREAM, false, &end[1]) != JZX_OK) {
        jzi_sim_fd_free(sim, end[0]);
        free(conn);
        return JZX_ERR_NO_MEMORY;
    }
    conn->refs = 2;
    for (int side = 0; side < 2; side++) {
        end[side]->conn = conn;
        end[side]->side = side;
        conn->fd[side] = end[side]->fd;
        out_fd[side] = end[side]->fd;
    }
    return JZX_OK;
}

jzx_err jzx_sim_read(jzx_sim *sim, int fd, void *buf, size_t cap, size_t *out_n)
{
    return read_noted(sim, fd, buf, cap, false, out_n);
}

jzx_err jzx_sim_write(jzx_sim *sim, int fd, const void *buf, size_t len, size_t *out_n)
{
    return write_noted(sim, fd, buf, len, false, out_n);
}

jzx_err jzx_sim_shutdown(jzx_sim *sim, int fd)
{
    sim_fd *f = jzi_sim_get(sim, fd);
    if (f == NULL || f->kind != SIM_STREAM) {
        return JZX_ERR_BAD_FD;
    }
    jzi_sim_stream_shutdown(sim, f);
    jzi_sim_note(sim, SIM_TRACE_SHUTDOWN, fd, 0, JZX_OK);
    return JZX_OK;
}

void jzx_sim_close(jzx_sim *sim, int fd)
{
    sim_fd *f = jzi_sim_get(sim, fd);
    if (f != NULL) {
        jzi_sim_note(sim, SIM_TRACE_CLOSE, fd, 0, JZX_OK);
        jzi_sim_fd_free(sim, f);
    }
}

int jzx_sim_peer(const jzx_sim *sim, int fd)
{
    const sim_fd *f = jzi_sim_get(sim, fd);
    return f == NULL || f->conn == NULL ? -1 : f->conn->fd[!f->side];
}

jzx_err jzx_sim_fail_fd(jzx_sim *sim, int fd, jzx_err err)
{
    sim_fd *f = jzi_sim_get(sim, fd);
    if (f == NULL) {
        return JZX_ERR_BAD_FD;
    }
    f->fail_next = err;
    return JZX_OK;
}

jzx_err jzx_sim_reset_conn(jzx_sim *sim, int fd)
{
    sim_fd *f = jzi_sim_get(sim, fd);
    if (f == NULL || f->kind != SIM_STREAM) {
        return JZX_ERR_BAD_FD;
    }
    f->conn->reset = true;
    return JZX_OK;
}
