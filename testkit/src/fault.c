/* An environment that fails when it is told to. Each call that can fail is counted first. */
#include "fault.h"

#include <stdlib.h>

static const struct {
    const char *name;
    jzx_err plausible;
} calls[JZX_FAULT_CALLS] = {
    [JZX_FAULT_ANY] = {"any", JZX_ERR_IO},
    [JZX_FAULT_ENTROPY] = {"entropy", JZX_ERR_IO},
    [JZX_FAULT_WAKE_OPEN] = {"wake_open", JZX_ERR_NO_FDS},
    [JZX_FAULT_POLLER_OPEN] = {"poller_open", JZX_ERR_NO_FDS},
    [JZX_FAULT_POLLER_SET] = {"poller_set", JZX_ERR_NO_MEMORY},
    [JZX_FAULT_POLLER_WAIT] = {"poller_wait", JZX_ERR_IO},
    [JZX_FAULT_FD_READ] = {"fd_read", JZX_ERR_CONN_RESET},
    [JZX_FAULT_FD_WRITE] = {"fd_write", JZX_ERR_CONN_RESET},
    [JZX_FAULT_SOCK_LISTEN] = {"sock_listen", JZX_ERR_ADDRESS_IN_USE},
    [JZX_FAULT_SOCK_ACCEPT] = {"sock_accept", JZX_ERR_NO_FDS},
    [JZX_FAULT_SOCK_CONNECT] = {"sock_connect", JZX_ERR_UNREACHABLE},
    [JZX_FAULT_SOCK_CONNECTED] = {"sock_connected", JZX_ERR_CONN_REFUSED},
    [JZX_FAULT_SOCK_SHUTDOWN] = {"sock_shutdown", JZX_ERR_CONN_RESET},
    [JZX_FAULT_SOCK_ADDRESS] = {"sock_address", JZX_ERR_IO},
    [JZX_FAULT_SIGNAL_OPEN] = {"signal_open", JZX_ERR_NO_FDS},
    [JZX_FAULT_SIGNAL_READ] = {"signal_read", JZX_ERR_IO},
    [JZX_FAULT_CHILD_OPEN] = {"child_open", JZX_ERR_NO_FDS},
    [JZX_FAULT_CHILD_READ] = {"child_read", JZX_ERR_IO},
    [JZX_FAULT_PATH_OPEN] = {"path_open", JZX_ERR_NO_FDS},
    [JZX_FAULT_PATH_READ] = {"path_read", JZX_ERR_IO},
};

const char *jzx_fault_call_name(uint32_t call)
{
    return call < JZX_FAULT_CALLS ? calls[call].name : "unknown";
}

/* JZX_OK: let the call through. */
static jzx_err check_in(jzx_fault *fault, jzx_fault_call call)
{
    atomic_fetch_add(&fault->calls[JZX_FAULT_ANY], 1);
    atomic_fetch_add(&fault->calls[call], 1);
    uint64_t at = atomic_load(&fault->call_at);
    int which = atomic_load(&fault->call_which);
    if (at == 0 || (which != JZX_FAULT_ANY && which != (int)call)) {
        return JZX_OK;
    }
    uint64_t seen = atomic_fetch_add(&fault->call_seen, 1) + 1;
    if (atomic_load(&fault->call_forever) ? seen < at : seen != at) {
        return JZX_OK;
    }
    atomic_fetch_add(&fault->injected, 1);
    jzx_err err = (jzx_err)atomic_load(&fault->call_err);
    return err != JZX_OK ? err : calls[call].plausible;
}

static uint64_t env_now(void *ctx)
{
    jzx_fault *fault = ctx;
    return fault->inner->now_ns(fault->inner->ctx);
}

static jzx_err env_entropy(void *ctx, void *buf, size_t len)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_ENTROPY);
    return err != JZX_OK ? err : fault->inner->entropy(fault->inner->ctx, buf, len);
}

static jzx_err env_wake_open(void *ctx, int *out_fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_WAKE_OPEN);
    return err != JZX_OK ? err : fault->inner->wake_open(fault->inner->ctx, out_fd);
}

static void env_wake_signal(void *ctx, int wake_fd)
{
    jzx_fault *fault = ctx;
    fault->inner->wake_signal(fault->inner->ctx, wake_fd);
}

static jzx_err env_poller_open(void *ctx, const jzx_allocator *alloc, int wake_fd,
                               void **out_poller)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_POLLER_OPEN);
    return err != JZX_OK ? err
                         : fault->inner->poller_open(fault->inner->ctx, alloc, wake_fd, out_poller);
}

static void env_poller_close(void *ctx, void *poller)
{
    jzx_fault *fault = ctx;
    fault->inner->poller_close(fault->inner->ctx, poller);
}

/* Forgetting a descriptor cannot fail in any kernel, so it does not here. */
static jzx_err env_poller_set(void *ctx, void *poller, int fd, uint32_t before, uint32_t interest,
                              uint64_t cookie)
{
    jzx_fault *fault = ctx;
    jzx_err err = interest == 0 ? JZX_OK : check_in(fault, JZX_FAULT_POLLER_SET);
    return err != JZX_OK
               ? err
               : fault->inner->poller_set(fault->inner->ctx, poller, fd, before, interest, cookie);
}

static jzx_err env_poller_wait(void *ctx, void *poller, uint64_t timeout_ns, jzx_poll_event *out,
                               size_t cap, size_t *out_count)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_POLLER_WAIT);
    return err != JZX_OK ? err
                         : fault->inner->poller_wait(fault->inner->ctx, poller, timeout_ns, out,
                                                     cap, out_count);
}

static int env_poller_fd(void *ctx, void *poller)
{
    jzx_fault *fault = ctx;
    return fault->inner->poller_fd(fault->inner->ctx, poller);
}

static jzx_err env_fd_read(void *ctx, int fd, void *buf, size_t len, size_t *out_n)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_FD_READ);
    return err != JZX_OK ? err : fault->inner->fd_read(fault->inner->ctx, fd, buf, len, out_n);
}

static jzx_err env_fd_write(void *ctx, int fd, const void *buf, size_t len, size_t *out_n)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_FD_WRITE);
    return err != JZX_OK ? err : fault->inner->fd_write(fault->inner->ctx, fd, buf, len, out_n);
}

static void env_fd_close(void *ctx, int fd)
{
    jzx_fault *fault = ctx;
    fault->inner->fd_close(fault->inner->ctx, fd);
}

static jzx_err env_sock_listen(void *ctx, const char *address, uint32_t backlog, int *out_fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_SOCK_LISTEN);
    return err != JZX_OK ? err
                         : fault->inner->sock_listen(fault->inner->ctx, address, backlog, out_fd);
}

static jzx_err env_sock_accept(void *ctx, int fd, int *out_fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_SOCK_ACCEPT);
    return err != JZX_OK ? err : fault->inner->sock_accept(fault->inner->ctx, fd, out_fd);
}

static jzx_err env_sock_connect(void *ctx, const char *address, int *out_fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_SOCK_CONNECT);
    return err != JZX_OK ? err : fault->inner->sock_connect(fault->inner->ctx, address, out_fd);
}

static jzx_err env_sock_connected(void *ctx, int fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_SOCK_CONNECTED);
    return err != JZX_OK ? err : fault->inner->sock_connected(fault->inner->ctx, fd);
}

static jzx_err env_sock_shutdown(void *ctx, int fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_SOCK_SHUTDOWN);
    return err != JZX_OK ? err : fault->inner->sock_shutdown(fault->inner->ctx, fd);
}

static jzx_err env_sock_address(void *ctx, int fd, int peer, char *out, size_t cap)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_SOCK_ADDRESS);
    return err != JZX_OK ? err : fault->inner->sock_address(fault->inner->ctx, fd, peer, out, cap);
}

static jzx_err env_signal_open(void *ctx, int signo, int *out_fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_SIGNAL_OPEN);
    return err != JZX_OK ? err : fault->inner->signal_open(fault->inner->ctx, signo, out_fd);
}

static jzx_err env_signal_read(void *ctx, int fd, int32_t *out_sender_pid)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_SIGNAL_READ);
    return err != JZX_OK ? err : fault->inner->signal_read(fault->inner->ctx, fd, out_sender_pid);
}

static void env_signal_close(void *ctx, int fd, int signo)
{
    jzx_fault *fault = ctx;
    fault->inner->signal_close(fault->inner->ctx, fd, signo);
}

static jzx_err env_child_open(void *ctx, int32_t pid, int *out_fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_CHILD_OPEN);
    return err != JZX_OK ? err : fault->inner->child_open(fault->inner->ctx, pid, out_fd);
}

static jzx_err env_child_read(void *ctx, int fd, int32_t *out_code, int32_t *out_signal)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_CHILD_READ);
    return err != JZX_OK ? err
                         : fault->inner->child_read(fault->inner->ctx, fd, out_code, out_signal);
}

static jzx_err env_path_open(void *ctx, const char *path, uint32_t changes, int *out_fd)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_PATH_OPEN);
    return err != JZX_OK ? err : fault->inner->path_open(fault->inner->ctx, path, changes, out_fd);
}

static jzx_err env_path_read(void *ctx, int fd, uint32_t *out_changes, char *name, size_t cap)
{
    jzx_fault *fault = ctx;
    jzx_err err = check_in(fault, JZX_FAULT_PATH_READ);
    return err != JZX_OK ? err
                         : fault->inner->path_read(fault->inner->ctx, fd, out_changes, name, cap);
}

static uint32_t env_pick(void *ctx, uint32_t n)
{
    jzx_fault *fault = ctx;
    return fault->inner->pick(fault->inner->ctx, n);
}

static void env_trace(void *ctx, const jzx_trace_event *event)
{
    jzx_fault *fault = ctx;
    fault->inner->trace(fault->inner->ctx, event);
}

static const jzx_env wrapper = {
    .size = sizeof(jzx_env),
    .now_ns = env_now,
    .entropy = env_entropy,
    .wake_open = env_wake_open,
    .wake_signal = env_wake_signal,
    .poller_open = env_poller_open,
    .poller_close = env_poller_close,
    .poller_set = env_poller_set,
    .poller_wait = env_poller_wait,
    .poller_fd = env_poller_fd,
    .fd_read = env_fd_read,
    .fd_write = env_fd_write,
    .fd_close = env_fd_close,
    .sock_listen = env_sock_listen,
    .sock_accept = env_sock_accept,
    .sock_connect = env_sock_connect,
    .sock_connected = env_sock_connected,
    .sock_shutdown = env_sock_shutdown,
    .sock_address = env_sock_address,
    .signal_open = env_signal_open,
    .signal_read = env_signal_read,
    .signal_close = env_signal_close,
    .child_open = env_child_open,
    .child_read = env_child_read,
    .path_open = env_path_open,
    .path_read = env_path_read,
};

jzx_err jzx_fault_create(const jzx_env *inner, jzx_fault **out_fault)
{
    if (inner == NULL) {
        inner = jzx_env_epoll();
    }
    if (out_fault == NULL || inner->size != sizeof(jzx_env)) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_fault *fault = calloc(1, sizeof *fault);
    if (fault == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    fault->inner = inner;
    fault->env = wrapper;
    fault->env.ctx = fault;
    fault->env.flags = inner->flags;
    fault->env.pick = inner->pick == NULL ? NULL : env_pick;
    fault->env.trace = inner->trace == NULL ? NULL : env_trace;
    jzi_fault_alloc_init(fault);
    *out_fault = fault;
    return JZX_OK;
}

void jzx_fault_destroy(jzx_fault *fault)
{
    free(fault);
}

const jzx_env *jzx_fault_env(jzx_fault *fault)
{
    return &fault->env;
}

void jzx_fault_arm_call(jzx_fault *fault, jzx_fault_call call, uint64_t n, int forever, jzx_err err)
{
    atomic_store(&fault->call_at, 0);
    atomic_store(&fault->call_which, (int)call);
    atomic_store(&fault->call_seen, 0);
    atomic_store(&fault->call_forever, forever != 0);
    atomic_store(&fault->call_err, (int)err);
    atomic_store(&fault->call_at, n);
}

uint64_t jzx_fault_calls(const jzx_fault *fault, jzx_fault_call call)
{
    return (uint32_t)call < JZX_FAULT_CALLS ? atomic_load(&fault->calls[call]) : 0;
}

uint64_t jzx_fault_injected(const jzx_fault *fault)
{
    return atomic_load(&fault->injected);
}
