/* The HTTP side: the actor. */
#include "http.h"

#include <jzx/io.h>
#include <jzx/lifecycle.h>
#include <jzx/loop.h>
#include <jzx/supervisor.h>
#include <jzx/timer.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    TAG_READY = 10,
    TAG_TIME = 11,
    TAG_AGAIN = 12,
    TAG_HANGUP = 13,
    LOOK_MS = 500,
    IDLE_S = 10,
    LAST_RUNS = 4,
    MEMORY_PER_CONNECTION = 16384,
    MEMORY_STEP = 4096,
};
static const uint64_t ms_ns = 1000000;

/* A path with a %00 in it would end there, and be taken for a shorter one: that byte becomes one
 * which no path has. What a query says has its length, and keeps it. */
static size_t unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    size_t len = MHD_http_unescape(text);
    size_t seen = strlen(text);
    if (text[0] == '/' && seen < len) {
        text[seen] = '\xff';
    }
    return len;
}

static struct MHD_Daemon *daemon_start(jzc_http *http)
{
    /* The port outlives this actor: the library gets, and closes, a descriptor of its own. */
    unsigned max = http->setup->max_clients;
    int fd = fcntl(http->setup->place.fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return NULL;
    }
    unsigned per_ip = http->setup->place.loopback || max < 16 ? max : max / 4;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, jzc_request_handle, http,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, max,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, per_ip, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_PER_CONNECTION,
        MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)MEMORY_STEP, MHD_OPTION_NOTIFY_CONNECTION,
        jzc_client_notify, http, MHD_OPTION_NOTIFY_COMPLETED, jzc_request_completed, http,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_END);
    if (daemon == NULL) {
        (void)close(fd);
    }
    return daemon;
}

static jzx_err find_siblings(jzx_context *ctx, jzc_http *http)
{
    jzx_actor_id console = jzx_actor_parent(ctx->loop, ctx->self);
    const struct {
        const char *id;
        jzx_actor_id *out;
    } wanted[] = {{"keeper", &http->keeper},
                  {"quick", &http->quick},
                  {"patient", &http->patient},
                  {"traces", &http->traces}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        jzx_child_info info;
        jzx_err err = jzx_supervisor_child(ctx->loop, console, wanted[i].id, &info);
        if (err != JZX_OK) {
            return err;
        }
        *wanted[i].out = info.actor;
    }
    return JZX_OK;
}

/* Also of one that was opened halfway. Descriptors are unwatched before they are closed. */
static void http_close(jzx_context *ctx, jzc_http *http)
{
    if (http->watch != 0) {
        (void)jzx_unwatch_fd(ctx->loop, http->watch);
    }
    if (http->hangup_watch != 0) {
        (void)jzx_unwatch_fd(ctx->loop, http->hangup_watch);
    }
    if (http->daemon != NULL) {
        jzc_questions_close(http);
        /* Stopping cuts connections off: what they were told now has to be written before. */
        for (int i = 0; i < LAST_RUNS; i++) {
            (void)MHD_run(http->daemon);
        }
        MHD_stop_daemon(http->daemon);
    }
    if (http->hangups >= 0) {
        (void)close(http->hangups);
    }
    free(http->questions);
    free(http);
}

static jzx_err http_open(jzx_context *ctx, jzc_http *http, jzc_setup *setup)
{
    http->setup = setup;
    http->hangups = -1;
    http->loop = ctx->loop;
    http->self = ctx->self;
    /* Each connection waits for one question at most; the others are what was said just now. */
    http->question_cap = (size_t)setup->max_clients + 16;
    http->questions = calloc(http->question_cap, sizeof *http->questions);
    http->hangups = epoll_create1(EPOLL_CLOEXEC);
    if (http->questions == NULL || http->hangups < 0) {
        return http->questions == NULL ? JZX_ERR_NO_MEMORY : JZX_ERR_NO_FDS;
    }
    jzx_err err = find_siblings(ctx, http);
    if (err != JZX_OK) {
        return err;
    }
    http->daemon = daemon_start(http);
    if (http->daemon == NULL) {
        return JZX_ERR_IO;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL || info->epoll_fd < 0) {
        return JZX_ERR_NOT_SUPPORTED;
    }
    err = jzx_watch_fd(ctx->loop, http->hangups, ctx->self, JZX_IO_READ, TAG_HANGUP,
                       &http->hangup_watch);
    return err != JZX_OK ? err
                         : jzx_watch_fd(ctx->loop, info->epoll_fd, ctx->self, JZX_IO_READ,
                                        TAG_READY, &http->watch);
}

jzx_behavior_result jzc_http_init(jzx_context *ctx, void *arg)
{
    jzc_http *http = calloc(1, sizeof *http);
    jzx_err err = http == NULL ? JZX_ERR_NO_MEMORY : http_open(ctx, http, arg);
    if (err != JZX_OK) {
        if (http != NULL) {
            http_close(ctx, http);
        }
        return jzx_fail(ctx, err, jzx_strerror(err));
    }
    ctx->state = http;
    return JZX_BEHAVIOR_OK;
}

/* When the library wants to run again without anything being readable. */
static void http_arm(jzc_http *http, uint64_t now)
{
    MHD_UNSIGNED_LONG_LONG wanted = 0;
    uint64_t ms = UINT64_MAX;
    if (MHD_get_timeout(http->daemon, &wanted) == MHD_YES) {
        ms = wanted;
    }
    if (ms != 0) {
        jzc_clients_part(http);
    }
    /* libmicrohttpd begins to accept again when it runs, and nothing but us makes it run. */
    bool full = http->client_count >= http->setup->max_clients;
    ms = http->full && !full ? 0 : ms;
    http->full = full;
    if (ms == 0) {
        /* By way of the mailbox, so that others get a turn. */
        if (!http->again && jzx_send_u64(http->loop, http->self, 0, TAG_AGAIN) == JZX_OK) {
            http->again = true;
        }
        return;
    }
    if (http->clients == NULL) {
        return;
    }
    ms = ms < LOOK_MS ? ms : LOOK_MS;
    if (http->timer_ns == 0 || http->timer_ns > now + ms * ms_ns + ms_ns) {
        if (jzx_send_after(http->loop, http->self, (uint32_t)ms, NULL, 0, TAG_TIME, NULL) ==
            JZX_OK) {
            http->timer_ns = now + ms * ms_ns;
        }
    }
}

jzx_behavior_result jzc_http_behave(jzx_context *ctx, const jzx_message *msg)
{
    jzc_http *http = ctx->state;
    if (msg->kind == JZX_KIND_REPLY) {
        jzc_question_answered(ctx, http);
    } else if (msg->kind == JZX_KIND_TIMER) {
        http->timer_ns = 0;
    } else if (msg->kind == JZX_KIND_USER) {
        http->again = false;
    } else if (msg->tag == TAG_HANGUP) {
        jzc_clients_hear(http);
    }
    uint64_t now = jzx_loop_now(ctx->loop);
    jzc_clients_look(http, now);
    jzc_questions_look(http, now);
    (void)MHD_run(http->daemon);
    http_arm(http, jzx_loop_now(ctx->loop));
    return JZX_BEHAVIOR_OK;
}

void jzc_http_deinit(jzx_context *ctx)
{
    http_close(ctx, ctx->state);
}
