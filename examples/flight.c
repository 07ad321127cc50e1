/* The flight recorder: when something odd happens, a program writes down what its actors did last,
 * for somebody to read later. The control plane keeps the events; the actor that notices finds it
 * by its loop, whether the program started it or JZX_CONTROL did. Run: ./flight */
#define _POSIX_C_SOURCE 200809L
#include <jzx/control.h>
#include <jzx/jzx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MEASURE = 7, ODD = 13 };

static jzx_behavior_result measure(jzx_context *ctx, const jzx_message *msg)
{
    FILE *out = ctx->state;
    if (msg->u64 != ODD) {
        return JZX_BEHAVIOR_OK;
    }
    jzx_control *control = jzx_control_of(ctx->loop);
    jzx_err err = control == NULL ? JZX_ERR_NOT_FOUND : jzx_control_dump(control, fileno(out));
    return err == JZX_OK ? JZX_BEHAVIOR_STOP : jzx_fail(ctx, err, jzx_strerror(err));
}

/* What a reader of the dump would look for. */
static int has(FILE *dump, const char *what)
{
    char line[512];
    rewind(dump);
    while (fgets(line, sizeof line, dump) != NULL) {
        if (strstr(line, what) != NULL) {
            return 1;
        }
    }
    return 0;
}

int main(void)
{
    char dir[] = "/tmp/jzx-flight-XXXXXX", path[64] = "";
    FILE *dump = tmpfile();
    jzx_control_opts look = {.path = path, .name = "flight"};
    jzx_spawn_opts opts = {.behavior = measure, .state = dump, .name = "gauge"};
    jzx_control *control = NULL;
    jzx_loop *loop = NULL;
    jzx_actor_id id = JZX_NOBODY;
    jzx_err err;
    if (dump == NULL || mkdtemp(dir) == NULL) {
        return 1;
    }
    (void)snprintf(path, sizeof path, "%s/control", dir);
    if ((err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_control_start(loop, &look, &control)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, &id)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, 12, MEASURE)) != JZX_OK ||
        (err = jzx_send_u64(loop, id, ODD, MEASURE)) != JZX_OK ||
        (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "flight: %s\n", jzx_strerror(err));
    }
    printf("the dump knows that the gauge was spawned: %s\n", has(dump, "spawn") ? "yes" : "no");
    jzx_control_stop(control);
    jzx_loop_destroy(loop);
    (void)fclose(dump);
    return rmdir(dir) == 0 && err == JZX_OK ? 0 : 1;
}
