/* The workloads that libuv can run: timers and TCP echo.
 *
 *   peer_uv timers|timers100k 1
 *   peer_uv echo 1 PORT
 *
 * prints RESULT workload ops wall_ns cpu_ns peak_rss_kb extra, or, as echo, READY and serves.
 * BENCH_DIVIDE=n divides the amounts of work. */
#define _GNU_SOURCE 1
#include <uv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BATCH = 1000 };

typedef struct timer {
    uv_timer_t handle;
    uint64_t due_ns;
} timer;

static uv_loop_t *loop;
static const char *workload;
static timer *timers;
static int64_t *late_ns;
static size_t timer_count, armed, fired;
static uint32_t spread_ms, random_state = 42;
static uint64_t wall_start, cpu_start;

static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void finish(void)
{
    unsigned long long cpu = cpu_ns() - cpu_start;
    unsigned long long wall = uv_hrtime() - wall_start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    qsort(late_ns, timer_count, sizeof *late_ns, compare);
    printf("RESULT %s %zu %llu %llu %ld wall_ms=%llu;p50_us=%.1f;p99_us=%.1f\n", workload,
           timer_count, cpu, cpu, usage.ru_maxrss, wall / 1000000,
           (double)late_ns[timer_count / 2] / 1e3, (double)late_ns[timer_count * 99 / 100] / 1e3);
}

static void on_timer(uv_timer_t *handle)
{
    const timer *self = (const timer *)handle;
    late_ns[fired++] = (int64_t)(uv_hrtime() - self->due_ns);
    if (fired == timer_count) {
        finish();
        uv_stop(loop);
    }
}

/* Runs once per turn of the loop until all are armed. libuv counts a delay from the start of the
 * turn, so that time is read anew first: otherwise timers would fire early. */
static void arm_batch(uv_idle_t *handle)
{
    uv_update_time(loop);
    for (int i = 0; i < BATCH && armed < timer_count; i++, armed++) {
        timer *each = &timers[armed];
        random_state = (uint32_t)((uint64_t)random_state * 48271u % 2147483647u);
        uint64_t delay_ms = random_state % spread_ms;
        each->due_ns = uv_hrtime() + delay_ms * 1000000u;
        uv_timer_init(loop, &each->handle);
        uv_timer_start(&each->handle, on_timer, delay_ms, 0);
    }
    if (armed == timer_count) {
        uv_idle_stop(handle);
    }
}

static void run_timers(size_t count, uint32_t divide)
{
    uv_idle_t arming;
    timer_count = count / divide;
    spread_ms = 2000 / divide;
    timers = calloc(timer_count, sizeof *timers);
    late_ns = malloc(timer_count * sizeof *late_ns);
    cpu_start = cpu_ns();
    wall_start = uv_hrtime();
    uv_idle_init(loop, &arming);
    uv_idle_start(&arming, arm_batch);
    uv_run(loop, UV_RUN_DEFAULT);
}

static void give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
    static char buffer[65536];
    (void)handle;
    (void)wanted;
    *out = uv_buf_init(buffer, sizeof buffer);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

typedef struct late_write {
    uv_write_t request;
    char bytes[];
} late_write;

static void free_write(uv_write_t *request, int status)
{
    (void)status;
    free(request);
}

/* The socket nearly always takes the reply at once; what it does not take is copied and queued. */
static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    if (got < 0) {
        uv_close((uv_handle_t *)stream, free_handle);
        return;
    }
    uv_buf_t rest = uv_buf_init(buffer->base, (unsigned)got);
    int taken = got == 0 ? 0 : uv_try_write(stream, &rest, 1);
    if (taken == got) {
        return;
    }
    size_t skip = taken > 0 ? (size_t)taken : 0;
    late_write *later = malloc(sizeof *later + (size_t)got - skip);
    memcpy(later->bytes, buffer->base + skip, (size_t)got - skip);
    rest = uv_buf_init(later->bytes, (unsigned)((size_t)got - skip));
    uv_write(&later->request, stream, &rest, 1, free_write);
}

static void on_connection(uv_stream_t *listener, int status)
{
    if (status < 0) {
        return;
    }
    uv_tcp_t *conn = malloc(sizeof *conn);
    uv_tcp_init(loop, conn);
    if (uv_accept(listener, (uv_stream_t *)conn) != 0) {
        uv_close((uv_handle_t *)conn, free_handle);
        return;
    }
    uv_tcp_nodelay(conn, 1);
    uv_read_start((uv_stream_t *)conn, give_buffer, on_read);
}

static int run_echo(int port)
{
    uv_tcp_t listener;
    struct sockaddr_in address;
    uv_tcp_init(loop, &listener);
    uv_ip4_addr("127.0.0.1", port, &address);
    int err = uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0);
    if (err == 0) {
        err = uv_listen((uv_stream_t *)&listener, 256, on_connection);
    }
    if (err != 0) {
        fprintf(stderr, "peer_uv: cannot listen: %s\n", uv_strerror(err));
        return 1;
    }
    puts("READY");
    fflush(stdout);
    return uv_run(loop, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    const char *text = getenv("BENCH_DIVIDE");
    uint32_t divide = text != NULL && atoi(text) > 0 ? (uint32_t)atoi(text) : 1;
    loop = uv_default_loop();
    workload = argc > 1 ? argv[1] : "";
    if (strcmp(workload, "timers") == 0) {
        run_timers(1000000, divide);
    } else if (strcmp(workload, "timers100k") == 0) {
        run_timers(100000, divide);
    } else if (strcmp(workload, "echo") == 0 && argc > 3) {
        return run_echo(atoi(argv[3]));
    } else {
        fputs("usage: peer_uv timers|timers100k 1, or peer_uv echo 1 PORT\n", stderr);
        return 2;
    }
    return 0;
}
