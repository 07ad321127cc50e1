/* What the scenario of the sweeps stands on: its state, its way to complain, and the stimuli that
 * differ between the simulated world and the real one. */
#ifndef JZT_SCENARIO_WORLD_H
#define JZT_SCENARIO_WORLD_H

#include "check.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SC_PAYLOADS = 256, SC_CROWD = 70, SC_BIG = 100000 };

typedef struct sc_payload {
    bool runtimes; /* the runtime has to release it */
    bool plain;    /* without drop: a behavior or drop_msg gets it */
    uint32_t gone; /* how often it was released */
} sc_payload;

typedef struct scenario {
    bool real;
    jzx_sim *sim;
    jzx_fault *fault;
    jzx_loop *loop;
    char wrong[256]; /* the first thing that was not allowed */
    sc_payload payloads[SC_PAYLOADS];
    uint32_t payload_count;
    jzx_actor_id hub, oldest, newest, client, server, watcher, panicker;
    jzx_io_ref pipe_ref;
    int pipe[2];
    int32_t child;
    char dir[64];
    uint32_t letters, echoed;
    bool asked;
    bool patient; /* nothing is to fail: a busy machine gets the time it needs */
} scenario;

static scenario sc;
static volatile sig_atomic_t sc_stray_signals;

static void sc_wrong(const char *what, const char *detail)
{
    if (sc.wrong[0] == '\0') {
        (void)snprintf(sc.wrong, sizeof sc.wrong, "%s %s", what, detail);
    }
}

/* JZX_OK, or one of at most six documented errors (0 fills up). */
static jzx_err sc_allow(const char *call, jzx_err err, const jzx_err allowed[6])
{
    bool fine = err == JZX_OK;
    for (int i = 0; i < 6; i++) {
        fine |= err == allowed[i];
    }
    if (!fine) {
        sc_wrong(call, jzx_err_name(err));
    }
    return err;
}
#define SC_ALLOW(call, err, ...) sc_allow(call, err, (const jzx_err[6]){__VA_ARGS__})
/* Without a target because its own spawn failed, or stopped by an earlier step. */
#define SC_TARGET JZX_ERR_NO_SUCH_ACTOR, JZX_ERR_STOPPING
#define SC_SEND(call, err)                                                                         \
    SC_ALLOW(call, err, SC_TARGET, JZX_ERR_NO_MEMORY, JZX_ERR_MAILBOX_FULL, JZX_ERR_LOOP_CLOSED)

/* Stimuli. */

static void sc_signal_handler(int signo)
{
    (void)signo;
    sc_stray_signals++;
}

static void sc_raise(void)
{
    if (sc.real) {
        (void)kill(getpid(), SIGUSR1);
    } else {
        (void)jzx_sim_raise(sc.sim, SIGUSR1);
    }
}

static void sc_child_start(void)
{
    sc.child = 0;
    if (!sc.real) {
        if (jzx_sim_child_start(sc.sim, &sc.child) != JZX_OK) {
            sc_wrong("jzx_sim_child_start", "failed");
        }
        return;
    }
    /* Not fork(): copying the address space of a sanitized program takes long. It has ended before
     * the scenario begins, so that no run depends on its pace. */
    char name[] = "true";
    char *const argv[] = {name, NULL};
    pid_t pid = 0;
    siginfo_t info;
    if (posix_spawnp(&pid, name, NULL, NULL, argv, environ) != 0) {
        sc_wrong("posix_spawnp", "failed");
        return;
    }
    sc.child = pid;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
}

static void sc_child_end(void)
{
    if (sc.real) {
        while (waitpid(sc.child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
}

static void sc_pipe_open(void)
{
    bool made = sc.real ? pipe(sc.pipe) == 0 : jzx_sim_pipe(sc.sim, sc.pipe) == JZX_OK;
    if (!made) {
        sc_wrong("pipe", "failed");
    } else if (sc.real) {
        (void)fcntl(sc.pipe[0], F_SETFL, O_NONBLOCK);
    }
}

static void sc_pipe_write(void)
{
    size_t n = 0;
    if (sc.real) {
        if (write(sc.pipe[1], "x", 1) != 1) {
            sc_wrong("write", "failed");
        }
    } else if (jzx_sim_write(sc.sim, sc.pipe[1], "x", 1, &n) != JZX_OK) {
        sc_wrong("jzx_sim_write", "failed");
    }
}

static void sc_pipe_close(void)
{
    for (int i = 0; i < 2; i++) {
        if (sc.real) {
            (void)close(sc.pipe[i]);
        } else {
            jzx_sim_close(sc.sim, sc.pipe[i]);
        }
    }
}

static void sc_path_touch(void)
{
    if (!sc.real) {
        (void)jzx_sim_path_change(sc.sim, sc.dir, JZX_PATH_CREATED, "file");
        return;
    }
    char path[96];
    (void)snprintf(path, sizeof path, "%s/file", sc.dir);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        (void)fclose(file);
    }
}

static void sc_path_remove(void)
{
    if (sc.real) {
        char path[96];
        (void)snprintf(path, sizeof path, "%s/file", sc.dir);
        (void)unlink(path);
        (void)rmdir(sc.dir);
    }
}

#endif
