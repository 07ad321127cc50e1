/* Goal: no bytes make the control's decoder read or write where it must not, and whatever a client
 * sends to a live program is answered with lines of JSON.
 * Method: the input is given to the decoder, in a block that ends with it, and everything that was
 * read is asked for; then the same bytes go over a socket to a loop that runs, and all that comes
 * back is checked. The first byte says in how big pieces. */
#define _GNU_SOURCE
#include <jzx/all.h>
#include <jzx/control.h>

#include "../support/json_check.h"
#include "control/json.h"

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[108];

static void require(bool fact, const char *sentence)
{
    if (!fact) {
        (void)fprintf(stderr, "%s\n", sentence);
        abort();
    }
}

/* The decoder. */

static void read_back(jzi_request *request)
{
    size_t sum = 0;
    for (uint32_t i = 0; i < request->count; i++) {
        const char *name = request->values[i].name;
        const char *const *list = NULL;
        const char *text = jzi_request_text(request, name);
        sum += text == NULL ? 0 : strlen(text);
        sum += (size_t)jzi_request_u64(request, name, 1, 1000);
        sum += jzi_request_bool(request, name, true) ? 1 : 0;
        size_t count = jzi_request_list(request, name, &list);
        for (size_t j = 0; j < count; j++) {
            sum += strlen(list[j]);
        }
        require(jzi_json_is_utf8(name, strlen(name)), "A name is not UTF-8.");
    }
    require(sum < 100000000, "More was read than can be there.");
}

static void decode(const uint8_t *data, size_t size)
{
    static jzi_request request;
    char *line = malloc(size + 1);
    require(line != NULL, "There is no memory.");
    memcpy(line, data, size);
    line = realloc(line, size == 0 ? 1 : size);
    const char *why = jzi_request_read(&request, line, size);
    if (why == NULL) {
        require(request.op != NULL, "A request has no op.");
        read_back(&request);
    } else {
        require(strlen(why) > 5, "A refusal says nothing.");
    }
    free(line);
}

/* The live program. */

static jzx_behavior_result idle(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static void *run_loop(void *loop)
{
    (void)!jzx_loop_run(loop);
    return NULL;
}

static void remove_socket(void)
{
    (void)unlink(path);
}

static void start_program(void)
{
    static const char *const names[] = {"a", "b", "sup"};
    jzx_loop *loop = NULL;
    pthread_t thread;
    require(jzx_loop_create(NULL, &loop) == JZX_OK, "There is no loop.");
    for (int i = 0; i < 3; i++) {
        jzx_spawn_opts opts = {.behavior = idle, .name = names[i]};
        require(jzx_spawn(loop, &opts, NULL) == JZX_OK, "There is no actor.");
    }
    (void)snprintf(path, sizeof path, "/tmp/jzx-fuzz-%d.sock", (int)getpid());
    jzx_control_opts opts = {
        .path = path, .allow = JZX_CONTROL_SEND | JZX_CONTROL_RESTART, .dump_path = "/dev/null"};
    require(jzx_control_start(loop, &opts, NULL) == JZX_OK, "There is no control.");
    require(pthread_create(&thread, NULL, run_loop, loop) == 0, "There is no thread.");
    (void)atexit(remove_socket);
}

/* The last line may be cut, if the connection was. */
static void check_lines(const char *bytes, size_t len)
{
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        require(end != NULL, "An answer has no end.");
        size_t line = (size_t)(end - bytes);
        if (!jzt_json_is_line(bytes, line)) {
            (void)fprintf(stderr, "%.*s\n", (int)line, bytes);
            require(false, "An answer is not JSON.");
        }
        bytes += line + 1;
        len -= line + 1;
    }
}

/* A trace that was asked for never ends: then we do, after a few looks. */
static void listen_to(int fd)
{
    static char bytes[1u << 22];
    size_t len = 0;
    int silences = 0;
    while (len < sizeof bytes && silences < 2) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, 1000) == 0) {
            silences++;
            continue;
        }
        ssize_t n = recv(fd, bytes + len, sizeof bytes - len, 0);
        if (n <= 0) {
            check_lines(bytes, len);
            return;
        }
        len += (size_t)n;
        if (memmem(bytes, len, "\"skipped\":", 10) != NULL) {
            return;
        }
    }
}

static void talk(const uint8_t *data, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, sizeof path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(fd >= 0, "There is no socket.");
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0) {
        size_t step = size == 0 ? 1 : 1u + data[0] % 64u * 16u;
        for (size_t at = 0; at < size; at += step) {
            (void)!send(fd, data + at, at + step < size ? step : size - at,
                        MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        (void)shutdown(fd, SHUT_WR);
        listen_to(fd);
    }
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    if (!started) {
        started = true;
        start_program();
    }
    decode(data, size);
    talk(data, size);
    return 0;
}
