/* jzx manifest FILE backup TARGET. */
#include "manifest.h"
#include "record.h"

#include <jzx/manifest_store.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* The copy is made on a thread of its own, so that this one can tell how far it is. */
typedef struct copying {
    jzx_mf *mf;
    const char *target;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    bool done; /* under the lock, as err */
    jzx_err err;
} copying;

static void *copy(void *arg)
{
    copying *job = arg;
    jzx_err err = jzx_mf_backup(job->mf, job->target);
    (void)pthread_mutex_lock(&job->lock);
    job->err = err;
    job->done = true;
    (void)pthread_cond_signal(&job->finished);
    (void)pthread_mutex_unlock(&job->lock);
    return NULL;
}

/* The bytes of the file that becomes the target: its name begins as the target's does. */
static uint64_t bytes_so_far(const char *target)
{
    const char *slash = strrchr(target, '/');
    const char *base = slash == NULL ? target : slash + 1;
    char folder[4096] = ".";
    if (slash != NULL) {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - target) + 1, target);
    }
    DIR *dir = opendir(folder);
    uint64_t most = 0;
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat facts;
        if (strncmp(entry->d_name, base, strlen(base)) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            (uint64_t)facts.st_size > most) {
            most = (uint64_t)facts.st_size;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return most;
}

static void wait_and_tell(copying *job, uint64_t expected)
{
    (void)pthread_mutex_lock(&job->lock);
    while (!job->done) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += until.tv_nsec >= 800000000;
        until.tv_nsec = (until.tv_nsec + 200000000) % 1000000000;
        (void)pthread_cond_timedwait(&job->finished, &job->lock, &until);
        if (!job->done) {
            (void)pthread_mutex_unlock(&job->lock);
            ui_progress("bytes", bytes_so_far(job->target), expected);
            (void)pthread_mutex_lock(&job->lock);
        }
    }
    (void)pthread_mutex_unlock(&job->lock);
    ui_progress_end();
}

static jzx_err copy_and_tell(jzx_mf *mf, const char *target)
{
    jzx_mf_stats stats = {0};
    jzx_err err = jzx_mf_stats_read(mf, &stats);
    if (err != JZX_OK) {
        return err;
    }
    copying job = {.mf = mf,
                   .target = target,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .finished = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    if (pthread_create(&thread, NULL, copy, &job) != 0) {
        return JZX_ERR_NO_THREADS;
    }
    wait_and_tell(&job, stats.file_bytes - stats.free_bytes);
    (void)pthread_join(thread, NULL);
    return job.err;
}

static int backup_tell(const call *c, const char *target)
{
    struct stat facts;
    uint64_t bytes = stat(target, &facts) == 0 ? (uint64_t)facts.st_size : 0;
    if (c->json) {
        ui_record r = ui_begin(stdout, true);
        ui_string(&r, "file", c->file);
        ui_string(&r, "target", target);
        ui_u64(&r, "size_bytes", bytes);
        ui_end(&r);
    } else {
        printf("%s: copied to %s, %s\n", c->file, target, ui_bytes(bytes).text);
    }
    return EXIT_FINE;
}

int cmd_backup(const call *c)
{
    int status = EXIT_FAILED;
    jzx_mf *mf = file_open_reading(c, &status);
    if (mf == NULL) {
        return status;
    }
    const char *target = c->operands[0];
    jzx_err err = copy_and_tell(mf, target);
    file_close(mf);
    if (err == JZX_ERR_ALREADY) {
        return ui_fail("%s is there already; give the name of a new file.", target);
    }
    return err == JZX_OK ? backup_tell(c, target)
                         : ui_error(err, "%s cannot be copied to %s", c->file, target);
}
