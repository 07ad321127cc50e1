#define _GNU_SOURCE
#include "io_fixture.h"

const io_world io_worlds[] = {
    {"epoll", jzx_env_epoll},
    {"sim", NULL},
};

const io_world *io_current;

bench bench_open_sim(const jzx_sim_opts *sim_opts)
{
    bench b = {0};
    jzx_kit_opts opts = {.env = io_current->env == NULL ? NULL : io_current->env(),
                         .sim = sim_opts};
    REQUIRE_OK(jzx_kit_open(&opts, &b.kit));
    b.loop = b.kit->loop;
    b.sim = b.kit->sim;
    return b;
}

void admit_signal(int signo)
{
    sigset_t set;
    REQUIRE_EQ(sigemptyset(&set), 0);
    REQUIRE_EQ(sigaddset(&set, signo), 0);
    REQUIRE_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
}

bench bench_open(void)
{
    jzx_sim_opts opts = {.seed = jzt_seed() | 1, .short_io_permille = 200};
    return bench_open_sim(&opts);
}

void bench_close(bench *b)
{
    const char *wrong = jzx_kit_close(b->kit);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    *b = (bench){0};
}

void settle(bench *b)
{
    for (int i = 0; i < 5; i++) {
        REQUIRE_OK(jzx_loop_run_until_idle(b->loop));
        REQUIRE_OK(jzx_loop_step(b->loop, 1 * MS));
    }
}

const jzx_env *own_env(void)
{
    return jzx_env_epoll();
}

jzx_err own_connect(bench *b, const char *address, int *out_fd)
{
    jzx_err err = b->sim != NULL ? jzx_sim_connect(b->sim, address, out_fd)
                                 : own_env()->sock_connect(NULL, address, out_fd);
    return err == JZX_ERR_AGAIN && b->sim == NULL ? JZX_OK : err;
}

jzx_err own_listen(bench *b, const char *address, int *out_fd)
{
    return b->sim != NULL ? jzx_sim_listen(b->sim, address, out_fd)
                          : own_env()->sock_listen(NULL, address, 16, out_fd);
}

jzx_err own_accept(bench *b, int listener, int *out_fd)
{
    return b->sim != NULL ? jzx_sim_accept(b->sim, listener, out_fd)
                          : own_env()->sock_accept(NULL, listener, out_fd);
}

jzx_err own_read(bench *b, int fd, void *buf, size_t cap, size_t *out_n)
{
    return b->sim != NULL ? jzx_sim_read(b->sim, fd, buf, cap, out_n)
                          : own_env()->fd_read(NULL, fd, buf, cap, out_n);
}

jzx_err own_write(bench *b, int fd, const void *buf, size_t len, size_t *out_n)
{
    return b->sim != NULL ? jzx_sim_write(b->sim, fd, buf, len, out_n)
                          : own_env()->fd_write(NULL, fd, buf, len, out_n);
}

void own_shutdown(bench *b, int fd)
{
    CHECK_OK(b->sim != NULL ? jzx_sim_shutdown(b->sim, fd) : own_env()->sock_shutdown(NULL, fd));
}

void own_close(bench *b, int fd)
{
    if (b->sim != NULL) {
        jzx_sim_close(b->sim, fd);
    } else {
        own_env()->fd_close(NULL, fd);
    }
}

void own_reset(bench *b, int fd)
{
    if (b->sim != NULL) {
        CHECK_OK(jzx_sim_reset_conn(b->sim, fd));
    } else {
        struct linger none = {.l_onoff = 1};
        CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    }
    own_close(b, fd);
}

void own_pair(bench *b, int fd[2])
{
    if (b->sim != NULL) {
        REQUIRE_OK(jzx_sim_pipe(b->sim, fd));
    } else {
        REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
    }
}

void own_write_all(bench *b, int fd, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        size_t n = 0;
        jzx_err err = own_write(b, fd, (const char *)bytes + done, len - done, &n);
        REQUIRE(err == JZX_OK || err == JZX_ERR_AGAIN);
        done += n;
        REQUIRE_OK(jzx_loop_step(b->loop, 0));
    }
}

size_t own_read_all(bench *b, int fd, void *buf, size_t len)
{
    size_t done = 0;
    for (int tries = 0; tries < 100000 && done < len; tries++) {
        size_t n = 0;
        jzx_err err = own_read(b, fd, (char *)buf + done, len - done, &n);
        if (err == JZX_OK && n == 0) {
            return done;
        }
        REQUIRE(err == JZX_OK || err == JZX_ERR_AGAIN);
        done += n;
        if (err == JZX_ERR_AGAIN) {
            REQUIRE_OK(jzx_loop_step(b->loop, 1 * MS));
        }
    }
    return done;
}

bool own_at_eof(bench *b, int fd)
{
    char byte;
    size_t n = 1;
    for (int tries = 0; tries < 5000; tries++) {
        jzx_err err = own_read(b, fd, &byte, 1, &n);
        if (err != JZX_ERR_AGAIN) {
            return err == JZX_OK && n == 0;
        }
        REQUIRE_OK(jzx_loop_step(b->loop, 1 * MS));
    }
    return false;
}

void ear_note(ear *self, char letter)
{
    if (letter == 'D' && self->log_len > 0 && self->log[self->log_len - 1] == 'D') {
        return;
    }
    if (self->log_len + 1 < sizeof self->log) {
        self->log[self->log_len++] = letter;
        self->log[self->log_len] = '\0';
    }
}

void ear_forget(ear *self)
{
    self->log_len = 0;
    self->log[0] = '\0';
    self->got_len = 0;
}

void ear_take(ear *self, const jzx_io_event *event)
{
    if (self->got_len + event->len > self->got_cap) {
        self->got_cap = (self->got_len + event->len) * 2;
        self->got = realloc(self->got, self->got_cap);
        REQUIRE(self->got != NULL);
    }
    memcpy(self->got + self->got_len, event->data, event->len);
    self->got_len += event->len;
}

char ear_letter(uint32_t what)
{
    switch (what) {
    case JZX_IO_ACCEPTED:
        return 'A';
    case JZX_IO_CONNECTED:
        return 'C';
    case JZX_IO_DATA:
        return 'D';
    case JZX_IO_DRAINED:
        return 'R';
    case JZX_IO_EOF:
        return 'E';
    case JZX_IO_CLOSED:
        return 'X';
    case JZX_IO_SIGNAL:
        return 'S';
    case JZX_IO_CHILD:
        return 'K';
    case JZX_IO_PATH:
        return 'P';
    default:
        break;
    }
    if ((what & JZX_IO_HANGUP) != 0) {
        return 'h';
    }
    if ((what & JZX_IO_READ) != 0) {
        return 'r';
    }
    return (what & JZX_IO_WRITE) != 0 ? 'w' : '!';
}

jzx_behavior_result ear_behavior(jzx_context *ctx, const jzx_message *msg)
{
    ear *self = ctx->state;
    jzx_behavior_result result = self->next;
    self->next = JZX_BEHAVIOR_OK;
    if (msg->kind != JZX_KIND_IO) {
        ear_note(self, 'm');
        return result;
    }
    const jzx_io_event *event = msg->data;
    CHECK_EQ(msg->len, sizeof *event);
    ear_note(self, ear_letter(event->what));
    self->last = *event;
    if (event->what == JZX_IO_ACCEPTED) {
        self->accepted++;
        self->conn = event->conn;
    } else if (event->what == JZX_IO_DATA) {
        ear_take(self, event);
    } else if (event->what == JZX_IO_CLOSED) {
        self->closed++;
    } else if (event->what == JZX_IO_PATH) {
        snprintf(self->name, sizeof self->name, "%s",
                 event->data == NULL ? "" : (const char *)event->data);
    }
    if (self->on != NULL) {
        self->on(ctx, event, self);
    }
    return result;
}

ear *ear_new(bench *b)
{
    ear *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    jzx_spawn_opts opts = {.behavior = ear_behavior, .state = self};
    REQUIRE_OK(jzx_spawn(b->loop, &opts, &self->id));
    return self;
}

void ear_free(ear *self)
{
    free(self->got);
    free(self);
}

int io_run_world(const io_world *world, const jzt_test *suite, size_t count, int argc, char **argv)
{
    enum { NAME_SIZE = 120, TESTS_MAX = 64, ARGS_MAX = 64 };
    static char names[TESTS_MAX][NAME_SIZE];
    static jzt_test tests[TESTS_MAX];
    char *args[ARGS_MAX + 1] = {argv[0]};
    int args_len = 1;
    size_t prefix = strlen(world->name);
    for (int i = 1; i < argc && args_len < ARGS_MAX; i++) {
        if (strncmp(argv[i], world->name, prefix) == 0 && argv[i][prefix] == '/') {
            args[args_len++] = argv[i];
        }
    }
    if (argc > 1 && args_len == 1) {
        return 77;
    }
    for (size_t i = 0; i < count && i < TESTS_MAX; i++) {
        snprintf(names[i], NAME_SIZE, "%s/%s", world->name, suite[i].name);
        tests[i] = (jzt_test){.name = names[i], .run = suite[i].run};
    }
    io_current = world;
    return jzt_main(args_len, args, tests, count < TESTS_MAX ? count : TESTS_MAX);
}

int io_run_worlds(const jzt_test *suite, size_t count, int argc, char **argv)
{
    int result = 77;
    for (size_t i = 0; i < COUNT_OF(io_worlds); i++) {
        int one = io_run_world(&io_worlds[i], suite, count, argc, argv);
        if (one == 1 || one == 2) {
            result = one;
        } else if (one == 0 && result == 77) {
            result = 0;
        }
    }
    return result;
}
