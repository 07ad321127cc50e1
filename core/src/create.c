/* Loops and systems as their callers make and destroy them. The layers below do the work; here the
 * control plane comes in, which stands on all of them: the environment may ask for a control plane
 * (JZX_CONTROL), and the control plane ends before what it looks at. */
#include <jzx/control.h>
#include <jzx/system.h>

#include "base/publish.h"
#include "loop/system.h"
#include "os/debug/control_socket.h"
#include "os/debug/dump_signal.h"
#include "os/debug/process.h"

#include <stdio.h>
#include <string.h>

/* Requests in the environment. */

static void complain(const char *what, const char *about, const char *why)
{
    char sentence[400];
    (void)snprintf(sentence, sizeof sentence, "%s=%.150s: %.200s", what, about, why);
    jzi_process_complain(sentence);
}

/* JZX_CONTROL_ALLOW=stop,kill,restart,send or all. */
static uint32_t read_allow(const char *list)
{
    static const char *const names[] = {"stop", "kill", "restart", "send", "all"};
    static const uint32_t bits[] = {JZX_CONTROL_STOP, JZX_CONTROL_KILL, JZX_CONTROL_RESTART,
                                    JZX_CONTROL_SEND, JZX_CONTROL_ALL};
    uint32_t allow = 0;
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, ",");
        uint32_t found = 0;
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (strlen(names[i]) == len && strncmp(names[i], list, len) == 0) {
                found = bits[i];
            }
        }
        if (found == 0 && len > 0) {
            complain("JZX_CONTROL_ALLOW", list,
                     "the words are stop, kill, restart, send and all; others are ignored.");
        }
        allow |= found;
        list += len + (list[len] == ',');
    }
    return allow;
}

static int32_t read_signal(const char *name)
{
    int32_t signo = name == NULL || *name == '\0' ? 0 : jzi_signal_number(name);
    if (name != NULL && *name != '\0' && !jzi_dump_signal_is_usable(signo)) {
        complain("JZX_CONTROL_DUMP", name,
                 signo == 0 ? "there is no such signal; QUIT is customary."
                            : "this signal is not for dumps; QUIT is customary.");
        return 0;
    }
    return signo;
}

static void complain_of(jzx_err err, const char *place)
{
    char reason[120];
    char why[200];
    if (err == JZX_ERR_IO) {
        jzi_control_socket_explain(reason, sizeof reason);
    } else {
        (void)snprintf(reason, sizeof reason, "%s",
                       err == JZX_ERR_NOT_SUPPORTED ? "The kernel has no membarrier(2)."
                                                    : jzx_strerror(err));
    }
    (void)snprintf(why, sizeof why, "%s The program runs without a control.", reason);
    complain("JZX_CONTROL", place, why);
}

/* The first loop or system of the process that is not simulated is served; if that fails the
 * program runs on without. */
static void serve_if_asked(jzx_loop *loop)
{
    static _Atomic uint32_t served;
    const char *place = jzi_process_wish("JZX_CONTROL");
    const jzx_env *env = loop->worker.env;
    if (place == NULL || *place == '\0' || strcmp(place, "0") == 0 || env->pick != NULL ||
        (env->flags & JZX_ENV_EXACT_CLOCK) != 0 ||
        atomic_exchange_explicit(&served, 1, memory_order_relaxed) != 0) {
        return;
    }
    bool automatic = strcmp(place, "auto") == 0 || strcmp(place, "1") == 0;
    jzx_control_opts opts = {
        .path = automatic ? NULL : place,
        .allow = read_allow(jzi_process_wish("JZX_CONTROL_ALLOW")),
        .dump_signal = read_signal(jzi_process_wish("JZX_CONTROL_DUMP")),
    };
    jzx_err err = jzx_control_start(loop, &opts, NULL);
    if (err != JZX_OK) {
        complain_of(err, place);
    }
}

static void stop_control(jzx_loop *loop)
{
    jzx_control_stop(jzx_control_of(loop));
}

/* Loops. */

jzx_err jzx_loop_create_sized(const jzx_config *config, size_t config_size, jzx_loop **out_loop)
{
    jzx_err err = jzi_loop_create_sized(config, config_size, out_loop);
    if (err == JZX_OK) {
        jzi_system_log_if_asked(*out_loop);
        serve_if_asked(*out_loop);
    }
    return err;
}

/* The frame of the entry point stays on the stack, where the crash guard looks for it. */
static jzx_err not_last(jzx_err err)
{
    __asm__ volatile("" ::: "memory");
    return err;
}

jzx_err jzx_loop_destroy(jzx_loop *loop)
{
    jzx_err err = loop == NULL ? JZX_OK : jzi_loop_may_end(loop);
    if (loop == NULL || err != JZX_OK) {
        return err;
    }
    stop_control(loop);
    return not_last(jzi_loop_destroy(loop));
}

void jzx_loop_abandon(jzx_loop *loop)
{
    if (loop != NULL) {
        stop_control(loop);
        jzi_loop_abandon(loop);
    }
}

/* Systems. */

jzx_err jzx_system_create_sized(const jzx_system_config *config, size_t config_size,
                                size_t loop_config_size, size_t dispatcher_size,
                                jzx_system **out_system)
{
    jzx_err err =
        jzi_system_create_sized(config, config_size, loop_config_size, dispatcher_size, out_system);
    if (err == JZX_OK) {
        jzi_system_log_if_asked(jzx_system_loop(*out_system));
        serve_if_asked(jzx_system_loop(*out_system));
    }
    return err;
}

jzx_err jzx_system_destroy(jzx_system *system)
{
    jzx_err err = system == NULL ? JZX_OK : jzi_system_may_end(system);
    if (system == NULL || err != JZX_OK) {
        return err;
    }
    stop_control(jzx_system_loop(system));
    return not_last(jzi_system_destroy(system));
}

void jzx_system_abandon(jzx_system *system)
{
    if (system != NULL) {
        stop_control(jzx_system_loop(system));
        jzi_system_abandon(system);
    }
}
