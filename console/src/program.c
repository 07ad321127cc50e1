/* What the console's wires know in common of the program. */
#include "program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void process_close(jzc_program *program)
{
    if (program->process >= 0) {
        (void)close(program->process);
    }
    program->process = -1;
}

void jzc_program_met(jzc_program *program, uint64_t pid)
{
    program->lost_ns = 0;
    if (pid == program->pid && program->process >= 0) {
        return;
    }
    process_close(program);
    program->pid = pid;
#ifdef SYS_pidfd_open
    /* A number may be given to another process one day; the descriptor stays with this one. */
    if (pid > 0 && pid <= INT32_MAX) {
        program->process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0u);
    }
#endif
}

void jzc_program_lost(jzc_program *program, uint64_t now_ns)
{
    if (program->lost_ns == 0) {
        program->lost_ns = now_ns;
    }
}

static bool process_ended(const jzc_program *program)
{
    struct pollfd ready = {.fd = program->process, .events = POLLIN};
    if (program->process >= 0) {
        return poll(&ready, 1, 0) > 0;
    }
    return program->pid > 0 && program->pid <= INT32_MAX && kill((pid_t)program->pid, 0) != 0 &&
           errno == ESRCH;
}

static bool socket_is_there(const jzc_program *program)
{
    static const char prefix[] = "unix:";
    const char *path = program->address;
    if (strncmp(path, prefix, sizeof prefix - 1) == 0) {
        path += sizeof prefix - 1;
    }
    return access(path, F_OK) == 0;
}

jzc_end jzc_program_end(const jzc_program *program)
{
    if (program->pid == 0) {
        return JZC_END_UNKNOWN;
    }
    bool there = socket_is_there(program);
    if (process_ended(program)) {
        return there ? JZC_END_DIED : JZC_END_CLOSED;
    }
    return there ? JZC_END_LOST : JZC_END_CLOSING;
}

static const struct {
    const char *name;
    const char *text;
} ends[] = {
    [JZC_END_UNKNOWN] = {NULL, "The program cannot be reached: it has ended, or its control plane "
                               "is off."},
    [JZC_END_CLOSED] = {"closed", "The program has ended: it shut down properly."},
    [JZC_END_DIED] = {"died",
                      "The program has ended without shutting down: it crashed, was killed, "
                      "or left by exit()."},
    [JZC_END_CLOSING] = {"closing", "The program has closed its control plane: it is shutting "
                                    "down, or cannot be looked into any more."},
    [JZC_END_LOST] = {"lost", "The connection to the program was lost; its process is still "
                              "there."},
};

const char *jzc_end_name(jzc_end end)
{
    return ends[end].name;
}

const char *jzc_end_text(jzc_end end)
{
    return ends[end].text;
}

void jzc_program_deinit(jzc_program *program)
{
    process_close(program);
}
