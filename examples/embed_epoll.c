/* A Jazz loop inside a program that has an epoll loop of its own: the host waits on its descriptors
 * and on jzx_loop_fd(), at most as long as jzx_loop_timeout_ms() allows, and then steps the loop.
 * Run: ./embed_epoll */
#define _POSIX_C_SOURCE 200809L
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { BEAT = 1, ANSWER = 2, BEATS = 3 };

/* Answers each beat of the host five milliseconds later, so that timers are at work too. */
static jzx_behavior_result beat(jzx_context *ctx, const jzx_message *msg)
{
    uint64_t *answered = ctx->state;
    if (msg->tag == BEAT) {
        printf("actor: beat %" PRIu64 "\n", msg->u64);
        jzx_err err = jzx_send_after(ctx->loop, ctx->self, 5, NULL, 0, ANSWER, NULL);
        return err == JZX_OK ? JZX_BEHAVIOR_OK : JZX_BEHAVIOR_FAIL;
    }
    printf("actor: answer %" PRIu64 "\n", ++*answered);
    return *answered == BEATS ? JZX_BEHAVIOR_STOP : JZX_BEHAVIOR_OK;
}

/* The host's own loop. It knows Jazz as one descriptor and one timeout. */
static bool host_run(int epfd, int timer_fd, jzx_loop *loop, jzx_actor_id actor,
                     const uint64_t *answered)
{
    uint64_t beats = 0;
    while (!jzx_loop_done(loop)) {
        struct epoll_event events[8];
        /* Asked for last thing before the wait: sends from outside a step count as well. */
        int n = epoll_wait(epfd, events, 8, jzx_loop_timeout_ms(loop));
        for (int i = 0; i < n; i++) {
            uint64_t expired = 0;
            if (events[i].data.fd != timer_fd ||
                read(timer_fd, &expired, sizeof expired) != (ssize_t)sizeof expired) {
                continue;
            }
            bool due = beats < BEATS && beats == *answered; /* one at a time */
            if (due && jzx_send_u64(loop, actor, ++beats, BEAT) != JZX_OK) {
                return false;
            }
        }
        if (jzx_loop_step(loop, 0) != JZX_OK) {
            return false;
        }
    }
    return true;
}

int main(void)
{
    uint64_t answered = 0;
    jzx_loop *loop = NULL;
    jzx_actor_id actor = JZX_NOBODY;
    jzx_spawn_opts opts = {.behavior = beat, .state = &answered};
    if (jzx_loop_create(NULL, &loop) != JZX_OK || jzx_spawn(loop, &opts, &actor) != JZX_OK) {
        fprintf(stderr, "embed_epoll: cannot start the loop\n");
        jzx_loop_destroy(loop);
        return 1;
    }
    int epfd = epoll_create1(EPOLL_CLOEXEC);
    int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int jazz_fd = jzx_loop_fd(loop);
    struct itimerspec every = {.it_interval = {.tv_nsec = 20000000},
                               .it_value = {.tv_nsec = 20000000}};
    struct epoll_event on_timer = {.events = EPOLLIN, .data.fd = timer_fd};
    struct epoll_event on_jazz = {.events = EPOLLIN, .data.fd = jazz_fd};
    bool ok = epfd >= 0 && timer_fd >= 0 && jazz_fd >= 0 &&
              timerfd_settime(timer_fd, 0, &every, NULL) == 0 &&
              epoll_ctl(epfd, EPOLL_CTL_ADD, timer_fd, &on_timer) == 0 &&
              epoll_ctl(epfd, EPOLL_CTL_ADD, jazz_fd, &on_jazz) == 0 &&
              host_run(epfd, timer_fd, loop, actor, &answered) && answered == BEATS;
    if (!ok) {
        fprintf(stderr, "embed_epoll: failed\n");
    }
    close(timer_fd);
    close(epfd);
    jzx_loop_destroy(loop);
    return ok ? 0 : 1;
}
