/* Goal: files are read, written and synced without blocking the loop (R27): nothing is lost
 * whatever happens to the actor, its descriptor or its buffers meanwhile. Method: files without
 * names; random sizes from the seed; descriptors and memory are counted. */
#define _GNU_SOURCE
#include <time.h>

#include "job_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, PIECE_MAX = 4096 };

/* What a file event said, and its bytes. */
typedef struct heard {
    jzx_file_event event;
    uint32_t tag;
    unsigned char bytes[PIECE_MAX];
} heard;

static heard events[EVENTS_MAX];
static uint32_t event_count;
static int file_fd;

static void keep_event(jzx_context *ctx, const jzx_message *msg, asker *self)
{
    (void)self;
    CHECK_EQ(msg->kind, JZX_KIND_FILE);
    CHECK_EQ(msg->flags & JZX_MSG_BORROWED, JZX_MSG_BORROWED);
    CHECK(jzx_message_take(ctx) == NULL);
    if (event_count == EVENTS_MAX) {
        return;
    }
    heard *to = &events[event_count++];
    to->event = *(const jzx_file_event *)msg->data;
    to->tag = msg->tag;
    CHECK_EQ(jzx_message_job(msg), to->event.job);
    CHECK_EQ(jzx_cancel_blocking(ctx, to->event.job), JZX_ERR_ALREADY);
    CHECK_EQ(to->event.data != NULL, to->event.op == JZX_FILE_READ);
    if (to->event.data != NULL) {
        memcpy(to->bytes, to->event.data, to->event.n < PIECE_MAX ? to->event.n : PIECE_MAX);
    }
}

static size_t open_fds(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    REQUIRE(dir != NULL);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

static int anonymous(void)
{
    char path[] = "/tmp/jzx-file-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    REQUIRE(fd >= 0);
    (void)unlink(path);
    return fd;
}

/* An actor that keeps events, and a file. */
typedef struct desk {
    rig r;
    asker a;
    size_t fds;
} desk;

static void desk_open(desk *d)
{
    need_threads();
    d->fds = open_fds();
    d->r = rig_open(NULL);
    d->a = (asker){.on_result = keep_event};
    event_count = 0;
    asker_spawn(&d->r, &d->a);
    file_fd = anonymous();
}

static void desk_close(desk *d)
{
    rig_close(&d->r);
    if (file_fd >= 0) {
        (void)close(file_fd);
    }
    CHECK_EQ(open_fds(), d->fds);
}

static void desk_do(desk *d, void (*act)(jzx_context *ctx, asker *self), uint32_t more)
{
    uint32_t wanted = event_count + more;
    asker_do(&d->r, &d->a, act);
    AWAIT(&d->r, event_count >= wanted);
}

static const char words[] = "the quick brown fox";
enum { WORDS = sizeof words - 1 };

static void write_words(jzx_context *ctx, asker *self)
{
    (void)self;
    char copy[sizeof words];
    memcpy(copy, words, sizeof words);
    REQUIRE_OK(jzx_file_write(ctx, file_fd, 100, copy, WORDS, 7, NULL));
    memset(copy, 'x', sizeof copy); /* it was copied */
}

static void read_words(jzx_context *ctx, asker *self)
{
    (void)self;
    jzx_job_ref ref = 0;
    REQUIRE_OK(jzx_file_read(ctx, file_fd, 104, 5, 8, &ref));
    CHECK(ref != 0);
}

static void sync_twice(jzx_context *ctx, asker *self)
{
    (void)self;
    REQUIRE_OK(jzx_file_sync(ctx, file_fd, JZX_FILE_SYNC, 9, NULL));
    REQUIRE_OK(jzx_file_sync(ctx, file_fd, JZX_FILE_DATASYNC, 10, NULL));
}

static void test_a_file_is_written_read_and_synced_R27(void)
{
    desk d;
    desk_open(&d);
    desk_do(&d, write_words, 1);
    const jzx_file_event *ev = &events[0].event;
    CHECK_EQ(ev->err, JZX_OK);
    CHECK_EQ(ev->os_error, 0);
    CHECK_EQ(ev->op, JZX_FILE_WRITE);
    CHECK_EQ(ev->offset, 100);
    CHECK_EQ(ev->len, WORDS);
    CHECK_EQ(ev->n, WORDS);
    CHECK_EQ(ev->fd, file_fd);
    CHECK_EQ(events[0].tag, 7);
    char back[sizeof words] = {0};
    CHECK_EQ(pread(file_fd, back, WORDS, 100), WORDS);
    CHECK_STR(back, words);
    desk_do(&d, read_words, 1);
    CHECK_EQ(events[1].event.n, 5);
    CHECK_EQ(events[1].event.op, JZX_FILE_READ);
    CHECK(memcmp(events[1].bytes, "quick", 5) == 0);
    desk_do(&d, sync_twice, 2);
    for (int i = 2; i < 4; i++) {
        CHECK_EQ(events[i].event.err, JZX_OK);
        CHECK_EQ(events[i].event.n, 0);
        CHECK_EQ(events[i].event.op, events[i].tag == 9 ? JZX_FILE_SYNC : JZX_FILE_DATASYNC);
    }
    desk_close(&d);
}

static void read_past_end(jzx_context *ctx, asker *self)
{
    (void)self;
    REQUIRE_OK(jzx_file_read(ctx, file_fd, 110, PIECE_MAX, 1, NULL));
    REQUIRE_OK(jzx_file_read(ctx, file_fd, 100 + WORDS, PIECE_MAX, 2, NULL));
    REQUIRE_OK(jzx_file_read(ctx, file_fd, (uint64_t)1 << 40, 1, 3, NULL));
    REQUIRE_OK(jzx_file_read(ctx, file_fd, 0, 0, 4, NULL));
    REQUIRE_OK(jzx_file_write(ctx, file_fd, 0, NULL, 0, 5, NULL));
}

static void test_the_end_of_the_file_ends_a_read_R27(void)
{
    desk d;
    desk_open(&d);
    desk_do(&d, write_words, 1);
    desk_do(&d, read_past_end, 5);
    for (int i = 1; i < 6; i++) {
        CHECK_EQ(events[i].event.err, JZX_OK);
        CHECK_EQ(events[i].event.n, events[i].tag == 1 ? WORDS - 10 : 0);
    }
    desk_close(&d);
}

/* One after the other: each moves the position on. */
static void next_current(jzx_context *ctx, asker *self)
{
    self->noise++;
    if (self->noise <= 2) {
        REQUIRE_OK(jzx_file_write(ctx, file_fd, JZX_FILE_CURRENT, self->noise == 1 ? "abc" : "def",
                                  3, 1, NULL));
    } else {
        REQUIRE_OK(jzx_file_read(ctx, file_fd, JZX_FILE_CURRENT, 4, 1, NULL));
    }
}

static void test_the_files_own_position_moves_R27(void)
{
    desk d;
    desk_open(&d);
    desk_do(&d, next_current, 1);
    desk_do(&d, next_current, 1);
    CHECK_EQ(lseek(file_fd, 0, SEEK_CUR), 6);
    CHECK_EQ(lseek(file_fd, 1, SEEK_SET), 1);
    desk_do(&d, next_current, 1);
    desk_do(&d, next_current, 1);
    CHECK(memcmp(events[2].bytes, "bcde", 4) == 0);
    CHECK_EQ(events[3].event.n, 1);
    CHECK_EQ(events[3].bytes[0], 'f');
    CHECK_EQ(events[3].event.offset, JZX_FILE_CURRENT);
    desk_close(&d);
}

static int odd_fd[4];

static void use_odd_files(jzx_context *ctx, asker *self)
{
    (void)self;
    REQUIRE_OK(jzx_file_write(ctx, odd_fd[0], 0, words, WORDS, 0, NULL)); /* full */
    REQUIRE_OK(jzx_file_write(ctx, odd_fd[1], 0, words, WORDS, 1, NULL)); /* for reading only */
    REQUIRE_OK(jzx_file_read(ctx, odd_fd[2], 0, 10, 2, NULL));            /* a directory */
    REQUIRE_OK(jzx_file_sync(ctx, odd_fd[3], JZX_FILE_SYNC, 3, NULL));    /* a pipe */
    CHECK_EQ(jzx_file_read(ctx, odd_fd[3], 0, 1, 4, NULL), JZX_ERR_INVALID_ARG);
}

static void test_what_the_kernel_says_is_in_the_event_R27(void)
{
    static const struct {
        int32_t err;
        int32_t os_error;
    } want[] = {{JZX_ERR_NO_SPACE, ENOSPC},
                {JZX_ERR_BAD_FD, EBADF},
                {JZX_ERR_INVALID_ARG, EISDIR},
                {JZX_ERR_INVALID_ARG, EINVAL}};
    desk d;
    int pair[2];
    desk_open(&d);
    REQUIRE(pipe2(pair, O_CLOEXEC) == 0);
    odd_fd[0] = open("/dev/full", O_WRONLY | O_CLOEXEC);
    odd_fd[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    odd_fd[2] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    odd_fd[3] = pair[0];
    REQUIRE(odd_fd[0] >= 0 && odd_fd[1] >= 0 && odd_fd[2] >= 0);
    desk_do(&d, use_odd_files, 4);
    for (int i = 0; i < 4; i++) {
        uint32_t which = events[i].tag;
        CHECK_EQ(events[i].event.err, want[which].err);
        CHECK_EQ(events[i].event.os_error, want[which].os_error);
        CHECK_EQ(events[i].event.n, 0);
    }
    for (int i = 0; i < 4; i++) {
        (void)close(odd_fd[i]);
    }
    (void)close(pair[1]);
    desk_close(&d);
}

static void use_wrongly(jzx_context *ctx, asker *self)
{
    (void)self;
    jzx_job_ref ref = 5;
    CHECK_EQ(jzx_file_read(NULL, file_fd, 0, 1, 1, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_file_read(ctx, -1, 0, 1, 1, &ref), JZX_ERR_BAD_FD);
    CHECK_EQ(jzx_file_read(ctx, 1 << 20, 0, 1, 1, &ref), JZX_ERR_BAD_FD);
    CHECK_EQ(jzx_file_sync(ctx, -1, JZX_FILE_SYNC, 1, &ref), JZX_ERR_BAD_FD);
    CHECK_EQ(jzx_file_read(ctx, file_fd, 0, JZX_FILE_LEN_MAX + 1, 1, &ref), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_file_write(ctx, file_fd, 0, words, JZX_FILE_LEN_MAX + 1, 1, &ref),
             JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_file_read(ctx, file_fd, (uint64_t)INT64_MAX + 1, 1, 1, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_file_write(ctx, file_fd, 0, NULL, 1, 1, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_file_read(ctx, file_fd, 0, 1, JZX_TAG_SYSTEM_FIRST, &ref), JZX_ERR_RESERVED_TAG);
    CHECK_EQ(jzx_file_sync(ctx, file_fd, JZX_FILE_READ, 1, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_file_sync(ctx, file_fd, JZX_FILE_OPS, 1, &ref), JZX_ERR_INVALID_ARG);
    CHECK_EQ(ref, 5);
}

static void try_at_end(jzx_context *ctx, asker *self)
{
    (void)self;
    CHECK_EQ(jzx_file_read(ctx, file_fd, 0, 1, 1, NULL), JZX_ERR_STOPPING);
}

static void test_what_is_wrong_is_refused_at_once_R36(void)
{
    desk d;
    desk_open(&d);
    d.a.at_end = try_at_end;
    asker_do(&d.r, &d.a, use_wrongly);
    asker_tell(&d.r, &d.a, QUIT);
    AWAIT(&d.r, d.a.deinits == 1);
    CHECK_EQ(event_count, 0);
    desk_close(&d);
}

static void try_simulated(jzx_context *ctx, asker *self)
{
    self->noise++;
    CHECK_EQ(jzx_file_read(ctx, 0, 0, 1, 1, NULL), JZX_ERR_NOT_SUPPORTED);
}

static void test_a_simulated_world_has_no_files_R30(void)
{
    if (rig_current->env != NULL) {
        jzt_skip("This one is real.");
    }
    rig r = rig_open(NULL);
    asker a = {0};
    asker_spawn(&r, &a);
    asker_do(&r, &a, try_simulated);
    CHECK_EQ(a.noise, 1);
    rig_close(&r);
}

static void write_and_close(jzx_context *ctx, asker *self)
{
    write_words(ctx, self);
    self->noise = (uint64_t)dup(file_fd);
    (void)close(file_fd);
    /* Whoever gets the number now is not written to. */
    int other = anonymous();
    CHECK_EQ(other, file_fd);
}

static void test_a_descriptor_may_be_closed_at_once_R27(void)
{
    desk d;
    desk_open(&d);
    desk_do(&d, read_words, 1); /* the engine has its own descriptors now */
    desk_do(&d, write_and_close, 1);
    CHECK_EQ(events[1].event.err, JZX_OK);
    CHECK_EQ(events[1].event.n, WORDS);
    struct stat now;
    REQUIRE(fstat(file_fd, &now) == 0);
    CHECK_EQ(now.st_size, 0);
    REQUIRE(fstat((int)d.a.noise, &now) == 0);
    CHECK_EQ(now.st_size, 100 + WORDS);
    (void)close((int)d.a.noise);
    desk_close(&d);
}

/* A copy of a few megabytes, in pieces of random size, several at a time. */
enum { COPY_LEN = 3000000, AT_ONCE = 8 };
typedef struct copy {
    int from;
    int to;
    uint64_t next; /* to be read */
    uint64_t written;
    uint32_t writes;
    bool synced;
    jzt_rng rng;
} copy;
static copy copying;

static void read_next(jzx_context *ctx)
{
    copy *c = &copying;
    if (c->next < COPY_LEN) {
        size_t len = 1 + (size_t)jzt_rng_below(&c->rng, 200000);
        len = jzt_rng_below(&c->rng, 3) == 0 ? 1 + len % 100 : len;
        REQUIRE_OK(jzx_file_read(ctx, c->from, c->next, len, 1, NULL));
        c->next += len;
    }
}

static void begin_copy(jzx_context *ctx, asker *self)
{
    (void)self;
    for (int i = 0; i < AT_ONCE; i++) {
        read_next(ctx);
    }
}

static void go_on_copying(jzx_context *ctx, const jzx_message *msg, asker *self)
{
    (void)self;
    copy *c = &copying;
    const jzx_file_event *ev = msg->data;
    CHECK_EQ(ev->err, JZX_OK);
    if (ev->op == JZX_FILE_READ) {
        CHECK_EQ(ev->n, ev->offset + ev->len > COPY_LEN ? COPY_LEN - ev->offset : ev->len);
        REQUIRE_OK(jzx_file_write(ctx, c->to, ev->offset, ev->data, ev->n, 1, NULL));
        c->writes++;
        read_next(ctx);
    } else if (ev->op == JZX_FILE_WRITE) {
        CHECK_EQ(ev->n, ev->len);
        c->written += ev->n;
        c->writes--;
        if (c->written == COPY_LEN) {
            REQUIRE_OK(jzx_file_sync(ctx, c->to, JZX_FILE_DATASYNC, 1, NULL));
        }
    } else {
        c->synced = true;
    }
}

static void test_a_copy_in_random_pieces_is_equal_R27(void)
{
    static unsigned char bytes[COPY_LEN];
    static unsigned char back[COPY_LEN];
    desk d;
    desk_open(&d);
    d.a.on_result = go_on_copying;
    copying = (copy){.from = anonymous(), .to = file_fd, .rng = jzt_rng_seeded()};
    for (size_t i = 0; i < COPY_LEN; i++) {
        bytes[i] = (unsigned char)jzt_rng_next(&copying.rng);
    }
    REQUIRE_EQ(write(copying.from, bytes, COPY_LEN), COPY_LEN);
    asker_do(&d.r, &d.a, begin_copy);
    AWAIT(&d.r, copying.synced);
    REQUIRE_EQ(pread(file_fd, back, COPY_LEN, 0), COPY_LEN);
    CHECK(memcmp(bytes, back, COPY_LEN) == 0);
    (void)close(copying.from);
    desk_close(&d);
}

enum { STORM = 300 };

static void storm(jzx_context *ctx, asker *self)
{
    static unsigned char page[PIECE_MAX];
    (void)self;
    for (int i = 0; i < STORM; i++) {
        jzx_job_ref ref = 0;
        if (i % 3 == 0) {
            REQUIRE_OK(
                jzx_file_write(ctx, file_fd, (uint64_t)i * 1000, page, sizeof page, 1, &ref));
        } else {
            REQUIRE_OK(jzx_file_read(ctx, file_fd, (uint64_t)i * 500, 100000, 1, &ref));
        }
        if (i % 5 == 0) {
            (void)jzx_cancel_blocking(ctx, ref);
        }
    }
}

static void test_an_actor_may_die_with_operations_in_flight_R27(void)
{
    for (uint32_t how = 0; how < 4; how++) {
        desk d;
        desk_open(&d);
        d.a.act = storm;
        asker_tell(&d.r, &d.a, DO);
        REQUIRE_OK(jzx_loop_step(d.r.loop, 0));
        if (how == 1) {
            REQUIRE_OK(jzx_kill(d.r.loop, d.a.id));
            AWAIT(&d.r, d.a.deinits == 1);
        } else if (how == 2) {
            asker_tell(&d.r, &d.a, FAIL);
            AWAIT(&d.r, d.a.deinits == 1);
        } else if (how == 3) {
            AWAIT(&d.r, event_count > 10);
        }
        desk_close(&d); /* and the loop goes in any case */
    }
}

/* A pipe that nobody writes to: operations that would never end. */
static int pipe_fds[2];
static jzx_job_ref pipe_ref[600];

static void read_pipe(jzx_context *ctx, asker *self)
{
    (void)self;
    for (int i = 0; i < 600; i++) {
        REQUIRE_OK(jzx_file_read(ctx, pipe_fds[0], JZX_FILE_CURRENT, 1, (uint32_t)i, &pipe_ref[i]));
    }
}

static void cancel_late_ones(jzx_context *ctx, asker *self)
{
    for (int i = 300; i < 600; i++) {
        CHECK_OK(jzx_cancel_blocking(ctx, pipe_ref[i]));
        CHECK_EQ(jzx_cancel_blocking(ctx, pipe_ref[i]), JZX_ERR_ALREADY);
    }
    self->noise++;
}

static void test_an_operation_that_waits_can_be_called_off_R27(void)
{
    desk d;
    desk_open(&d);
    REQUIRE(pipe2(pipe_fds, O_CLOEXEC) == 0);
    d.a.act = read_pipe;
    asker_tell(&d.r, &d.a, DO);
    REQUIRE_OK(jzx_loop_step(d.r.loop, 0));
    asker_do(&d.r, &d.a, cancel_late_ones);
    CHECK_EQ(d.a.noise, 1);
    char some[300];
    memset(some, 'x', sizeof some);
    CHECK_EQ(write(pipe_fds[1], some, sizeof some), sizeof some);
    AWAIT(&d.r, d.a.results == 300);
    rig_idle(&d.r);
    CHECK_EQ(d.a.results, 300);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    desk_close(&d);
}

/* R29: the child's copies of the descriptors are closed, the parent's work goes on. */
static void test_a_forked_child_closes_its_copies_R29(void)
{
    desk d;
    desk_open(&d);
    REQUIRE(pipe2(pipe_fds, O_CLOEXEC) == 0);
    d.a.act = read_pipe;
    asker_tell(&d.r, &d.a, DO);
    REQUIRE_OK(jzx_loop_step(d.r.loop, 0));
    CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
    AWAIT(&d.r, d.a.results == 1);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        jzx_loop_abandon(d.r.loop);
        _exit(open_fds() > d.fds + 3 + 4 ? 1 : 0); /* the file, the pipe, and what was closing */
    }
    int status = 0;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    char some[599];
    memset(some, 'x', sizeof some);
    CHECK_EQ(write(pipe_fds[1], some, sizeof some), sizeof some);
    AWAIT(&d.r, d.a.results == 600);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    desk_close(&d);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }

static const jzt_test tests[] = {
    TEST(a_file_is_written_read_and_synced_R27),
    TEST(the_end_of_the_file_ends_a_read_R27),
    TEST(the_files_own_position_moves_R27),
    TEST(what_the_kernel_says_is_in_the_event_R27),
    TEST(what_is_wrong_is_refused_at_once_R36),
    TEST(a_simulated_world_has_no_files_R30),
    TEST(a_descriptor_may_be_closed_at_once_R27),
    TEST(a_copy_in_random_pieces_is_equal_R27),
    TEST(an_actor_may_die_with_operations_in_flight_R27),
    TEST(an_operation_that_waits_can_be_called_off_R27),
    TEST(a_forked_child_closes_its_copies_R29),
};

int main(int argc, char **argv)
{
    return run_worlds(tests, COUNT_OF(tests), argc, argv);
}
