/* The system's environment. Everything here is constant: a jzx_env of the system
 * has no state of its own, so any number of loops can share one. */
#include <jzx/env.h>

#include "os/clock.h"
#include "os/poller.h"
#include "os/socket.h"
#include "os/sysevent.h"
#include "os/wakeup.h"

static const jzx_env env_epoll = {
    .size = sizeof(jzx_env),
    .now_ns = jzi_clock_now_ns,
    .entropy = jzi_entropy_fill,
    .wake_open = jzi_wake_open,
    .wake_signal = jzi_wake_signal,
    .poller_open = jzi_epoll_open,
    .poller_close = jzi_epoll_close,
    .poller_set = jzi_epoll_set,
    .poller_wait = jzi_epoll_wait,
    .poller_fd = jzi_epoll_fd,
    .fd_read = jzi_fd_read,
    .fd_write = jzi_fd_write,
    .fd_close = jzi_fd_close,
    .sock_listen = jzi_sock_listen,
    .sock_accept = jzi_sock_accept,
    .sock_connect = jzi_sock_connect,
    .sock_connected = jzi_sock_connected,
    .sock_shutdown = jzi_sock_shutdown,
    .sock_address = jzi_sock_address,
    .signal_open = jzi_signal_open,
    .signal_read = jzi_signal_read,
    .signal_close = jzi_signal_close,
    .child_open = jzi_child_open,
    .child_read = jzi_child_read,
    .path_open = jzi_path_open,
    .path_read = jzi_path_read,
};

const jzx_env *jzx_env_epoll(void)
{
    return &env_epoll;
}
