/* Copies a file by messages: read a piece, write it, read the next, and sync at the end. read(2),
 * write(2) and fsync(2) block on files; these happen on other threads, and the other
 * actors of the loop go on. Without arguments it copies a file of its own making.
 * Run: ./file_copy [FROM TO] */
#define _POSIX_C_SOURCE 200809L
#include <jzx/blocking.h>
#include <jzx/jzx.h>

#include <inttypes.h>
#include <stdio.h>

enum { PIECE = 65536, SAMPLE = 300000 };

typedef struct copy {
    int from;
    int to;
    uint64_t done;
    uint32_t pieces;
    uint32_t synced;
} copy;

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    const copy *me = ctx->state = arg;
    jzx_err err = jzx_file_read(ctx, me->from, 0, PIECE, 0, NULL);
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

/* One operation at a time: the next depends on what the last one did. */
static jzx_behavior_result on_event(jzx_context *ctx, const jzx_message *msg)
{
    copy *me = ctx->state;
    const jzx_file_event *ev = msg->data; /* borrowed for the call, and ev->data with it */
    jzx_err err;
    if (ev->err != JZX_OK) {
        return jzx_fail(ctx, ev->os_error, jzx_strerror(ev->err));
    }
    if (ev->op == JZX_FILE_READ && ev->n > 0) {
        err = jzx_file_write(ctx, me->to, me->done, ev->data, ev->n, 0, NULL);
    } else if (ev->op == JZX_FILE_READ) { /* the end of the file */
        err = jzx_file_sync(ctx, me->to, JZX_FILE_SYNC, 0, NULL);
    } else if (ev->op == JZX_FILE_WRITE) { /* all of it is written */
        me->done += ev->n;
        me->pieces++;
        err = jzx_file_read(ctx, me->from, me->done, PIECE, 0, NULL);
    } else {
        me->synced = 1;
        return JZX_BEHAVIOR_STOP;
    }
    return err == JZX_OK ? JZX_BEHAVIOR_OK : jzx_fail(ctx, err, jzx_strerror(err));
}

static void fill(FILE *file)
{
    for (uint32_t i = 0; file != NULL && i < SAMPLE; i++) {
        (void)fputc((int)(i * i % 251), file);
    }
    if (file != NULL) {
        (void)fflush(file);
    }
}

static int same(FILE *a, FILE *b)
{
    int left;
    rewind(a);
    rewind(b);
    while ((left = getc(a)) == getc(b)) {
        if (left == EOF) {
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    FILE *from = argc > 2 ? fopen(argv[1], "rb") : tmpfile();
    FILE *to = argc > 2 ? fopen(argv[2], "wb+") : tmpfile();
    jzx_loop *loop = NULL;
    jzx_err err = from != NULL && to != NULL ? JZX_OK : JZX_ERR_NO_ACCESS;
    fill(argc > 2 ? NULL : from);
    copy job = {.from = from != NULL ? fileno(from) : -1, .to = to != NULL ? fileno(to) : -1};
    jzx_spawn_opts opts = {.behavior = on_event, .init = begin, .state = &job, .name = "copy"};
    if (err != JZX_OK || (err = jzx_loop_create(NULL, &loop)) != JZX_OK ||
        (err = jzx_spawn(loop, &opts, NULL)) != JZX_OK || (err = jzx_loop_run(loop)) != JZX_OK) {
        fprintf(stderr, "file_copy: %s\n", jzx_strerror(err));
    } else {
        printf("%" PRIu64 " bytes in %" PRIu32 " pieces, synced: %s\n", job.done, job.pieces,
               job.synced != 0 ? "yes" : "no");
        printf("the copy is the same: %s\n", same(from, to) ? "yes" : "no");
    }
    jzx_loop_destroy(loop);
    return err == JZX_OK && job.synced != 0 ? 0 : 1;
}
