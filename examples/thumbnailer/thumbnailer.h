/* What the parts of the thumbnailer share. README.md says what to read first. */
#ifndef THUMBNAILER_H
#define THUMBNAILER_H

#include <jzx/jzx.h>
#include <jzx/manifest.h>

#include <limits.h>
#include <stdint.h>

enum { KIND_THUMBNAIL = 1 }; /* the one kind of jobs */
enum { STATUS_MADE = 1, PATH_SIZE = PATH_MAX };

typedef struct options {
    const char *manifest;
    const char *source;
    const char *target;
    uint32_t concurrency;
    uint32_t size;    /* of the longer side */
    uint32_t slow_ms; /* a pause per picture, so that tests can kill us in the middle */
    int once;
    int status;
} options;

/* A picture in memory: 1 or 3 bytes per pixel. */
typedef struct picture {
    uint32_t width;
    uint32_t height;
    uint32_t depth;
    unsigned char *pixels; /* owned */
} picture;

/* Both return NULL, or a sentence that says what is wrong. */
const char *picture_read(const char *path, picture *out);
const char *picture_shrink(const picture *from, uint32_t size, picture *out);
/* All or nothing: a temporary file that is synced, then renamed. Returns 0 or an errno. */
int picture_write(const picture *from, const char *dir, const char *name);
void picture_free(picture *it);

/* Makes the thumbnail of one file: the handler of KIND_THUMBNAIL. arg: the options. */
jzx_mf_verdict thumbnail_make(jzx_context *ctx, jzx_mf_run *run, void *arg);

/* What the source looked like: its size and time. Returns 0, or -1 if it is not there. */
int stamp_of(const char *path, char *out, size_t cap);

/* Puts a job into the queue for every picture in the folder that has no thumbnail yet, or was
 * changed since. Does not wait for the commit; *pending counts those on their way. */
jzx_err scan(jzx_mf *mf, const options *opts, _Atomic int *pending);

/* The actor that does all this. */
typedef struct clerk {
    const options *opts;
    jzx_mf *mf;
    _Atomic int pending;
    jzx_err err;
} clerk;
jzx_err clerk_spawn(jzx_loop *loop, clerk *self, jzx_actor_id *out_id);

/* Prints how far everything is. Returns the exit code: 0 when all is done. */
int print_status(const options *opts);

#endif
