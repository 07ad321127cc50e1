/* What the I/O contract suites share: the worlds they run in, a bench per test, the test's own side
 * of a connection, and an actor that writes down what it hears. To put another environment under
 * the contract, add a row to `worlds`. */
#ifndef JZT_IO_FIXTURE_H
#define JZT_IO_FIXTURE_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define TAG 7u

typedef struct io_world {
    const char *name;
    const jzx_env *(*env)(void); /* NULL: simulated */
} io_world;

extern const io_world io_worlds[];
/* The world whose tests run now; the runner's tests take no argument. */
extern const io_world *io_current;

typedef struct bench {
    jzx_kit *kit;
    jzx_loop *loop;
    jzx_sim *sim; /* NULL on a real environment */
} bench;

bench bench_open_sim(const jzx_sim_opts *sim_opts);
/* Lets a signal through to this thread. */
void admit_signal(int signo);
bench bench_open(void);
/* Conservation, leaks, descriptors: the kit checks them all. */
void bench_close(bench *b);
/* Steps the loop until the condition holds, and fails the test if it never does. A step waits for
 * something to happen, so nobody sleeps. */
#define UNTIL(b, condition)                                                                        \
    do {                                                                                           \
        int held_ = 0;                                                                             \
        for (int steps_ = 0; !(held_ = (condition) ? 1 : 0) && steps_ < 60000; steps_++) {         \
            REQUIRE_OK(jzx_loop_step((b)->loop, 2 * MS));                                          \
        }                                                                                          \
        jzt_check_true(JZT_REQUIRE, __FILE__, __LINE__, #condition, held_);                        \
    } while (0)

/* Everything that can happen without the test doing anything has happened. */
void settle(bench *b);
/* The test's own side. On a real environment it uses the same system calls as the loop, and its
 * descriptors are non-blocking as well. */
const jzx_env *own_env(void);
jzx_err own_connect(bench *b, const char *address, int *out_fd);
jzx_err own_listen(bench *b, const char *address, int *out_fd);
jzx_err own_accept(bench *b, int listener, int *out_fd);
jzx_err own_read(bench *b, int fd, void *buf, size_t cap, size_t *out_n);
jzx_err own_write(bench *b, int fd, const void *buf, size_t len, size_t *out_n);
void own_shutdown(bench *b, int fd);
void own_close(bench *b, int fd);
/* Ends the connection so that the other side gets a reset. */
void own_reset(bench *b, int fd);
/* Two connected descriptors for jzx_watch_fd(). */
void own_pair(bench *b, int fd[2]);
/* Writes all of it while the loop runs. */
void own_write_all(bench *b, int fd, const void *bytes, size_t len);
/* Reads until `len` bytes are there or the stream ended, while the loop runs. Returns how many. */
size_t own_read_all(bench *b, int fd, void *buf, size_t len);
/* True when the next thing to read is the end of the stream. */
bool own_at_eof(bench *b, int fd);
/* An actor that writes down what it hears: a letter per message, runs of data as one.
 *   A accepted, C connected, D data, R drained, E end of file, X closed, ! error
 *   r w h readiness, S signal, K child, P path, m a message from the test */
typedef struct ear ear;
struct ear {
    char log[2048];
    size_t log_len;
    jzx_io_event last;
    jzx_actor_id id;
    jzx_io_ref conn; /* of the last ACCEPTED */
    size_t accepted;
    size_t closed;
    unsigned char *got; /* all data so far */
    size_t got_len;
    size_t got_cap;
    char name[64]; /* of the last PATH event */
    void (*on)(jzx_context *ctx, const jzx_io_event *event, ear *self);
    void *arg;
    jzx_behavior_result next; /* what the next message returns */
};

void ear_note(ear *self, char letter);
void ear_forget(ear *self);
void ear_take(ear *self, const jzx_io_event *event);
char ear_letter(uint32_t what);
jzx_behavior_result ear_behavior(jzx_context *ctx, const jzx_message *msg);
ear *ear_new(bench *b);
/* After bench_close(). */
void ear_free(ear *self);
/* Runs the suite in one world, under names like "epoll/a_reset_is_told". Of the names on the
 * command line it passes on those that are its own. */
int io_run_world(const io_world *world, const jzt_test *suite, size_t count, int argc, char **argv);
int io_run_worlds(const jzt_test *suite, size_t count, int argc, char **argv);
#endif
