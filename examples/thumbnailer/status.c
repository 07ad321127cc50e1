/* How far everything is, read beside a thumbnailer that runs, or after one that was killed. */
#include "thumbnailer.h"

#include <stdio.h>

typedef struct tally {
    uint64_t made;
    uint64_t waiting;
    uint64_t running;
    uint64_t dead;
} tally;

static jzx_err count_job(void *arg, const jzx_mf_job *job)
{
    tally *all = arg;
    if (job->state == JZX_MF_JOB_ACTIVE) {
        all->running++;
    } else if (job->state == JZX_MF_JOB_DEAD) {
        all->dead++;
        printf("dead: %.*s: %.*s\n", (int)job->payload.len, (const char *)job->payload.data,
               (int)job->error.len, (const char *)job->error.data);
    } else if (job->state < JZX_MF_JOB_DONE) {
        all->waiting++;
    }
    return JZX_OK;
}

static jzx_err count_material(void *arg, const jzx_mf_material *material)
{
    (void)material;
    ((tally *)arg)->made++;
    return JZX_OK;
}

static jzx_err count(jzx_mf_snap *snap, void *arg)
{
    jzx_err err = jzx_mf_job_each(snap, 0, count_job, arg);
    return err != JZX_OK ? err
                         : jzx_mf_material_each(snap, STATUS_MADE, UINT64_MAX, count_material, arg);
}

int print_status(const options *opts)
{
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    jzx_mf_opts how = {.flags = JZX_MF_READONLY | JZX_MF_MUST_EXIST};
    jzx_err err = jzx_mf_open(opts->manifest, &how, &mf, &report);
    if (err != JZX_OK) {
        (void)fprintf(stderr, "thumbnailer: %s\n", report.text);
        return 1;
    }
    tally all = {0};
    err = jzx_mf_read(mf, count, &all);
    (void)jzx_mf_close(mf, 0);
    if (err != JZX_OK) {
        (void)fprintf(stderr, "thumbnailer: %s: %s\n", opts->manifest, jzx_strerror(err));
        return 1;
    }
    printf("made %llu, waiting %llu, running %llu, dead %llu\n", (unsigned long long)all.made,
           (unsigned long long)all.waiting, (unsigned long long)all.running,
           (unsigned long long)all.dead);
    return all.waiting + all.running + all.dead == 0 ? 0 : 3;
}
