/* From the folder to the queue. Doing it again puts nothing twice: a picture that waits or is
 * worked on is found by its key, one that is made by its record. */
#include "thumbnailer.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 1000 };

typedef struct look {
    const char *name;
    const char *stamp;
    int made; /* with just this stamp */
} look;

static jzx_err look_up(jzx_mf_snap *snap, void *arg)
{
    look *it = arg;
    jzx_mf_material material;
    jzx_err err = jzx_mf_material_get(snap, jzx_mf_text(it->name), &material);
    it->made = err == JZX_OK && material.status == STATUS_MADE &&
               material.payload.len == strlen(it->stamp) &&
               memcmp(material.payload.data, it->stamp, material.payload.len) == 0;
    return err == JZX_ERR_NOT_FOUND ? JZX_OK : err;
}

static int is_picture(const char *name)
{
    const char *end = strrchr(name, '.');
    return name[0] != '.' && end != NULL &&
           (strcmp(end, ".pgm") == 0 || strcmp(end, ".ppm") == 0 || strcmp(end, ".pnm") == 0);
}

/* Keys of jobs are short: of a long name the end, and a number made of all of it. */
static jzx_mf_span key_of(const char *name, char out[JZX_MF_KEY_MAX + 1])
{
    size_t len = strlen(name);
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    }
    if (len <= JZX_MF_KEY_MAX) {
        (void)snprintf(out, JZX_MF_KEY_MAX + 1, "%s", name);
    } else {
        (void)snprintf(out, JZX_MF_KEY_MAX + 1, "%08x %s", hash, name + len - 48);
    }
    return jzx_mf_text(out);
}

/* One job, unless the picture is made already. */
static jzx_err add(jzx_mf *mf, const options *opts, jzx_mf_txn *txn, const char *name)
{
    char path[PATH_SIZE];
    char stamp[96];
    char key[JZX_MF_KEY_MAX + 1];
    (void)snprintf(path, sizeof path, "%s/%s", opts->source, name);
    if (stamp_of(path, stamp, sizeof stamp) != 0) {
        return JZX_OK; /* the file went away just now */
    }
    look it = {name, stamp, 0};
    jzx_err err = jzx_mf_read(mf, look_up, &it);
    if (err != JZX_OK || it.made) {
        return err;
    }
    jzx_mf_job_spec spec = {.kind = KIND_THUMBNAIL,
                            .unique = JZX_MF_EXCLUSIVE,
                            .key = key_of(name, key),
                            .payload = jzx_mf_text(name)};
    return jzx_mf_job_enqueue(txn, &spec, NULL);
}

static void on_committed(void *arg, const jzx_mf_receipt *receipt)
{
    if (receipt->err != JZX_OK) {
        (void)fprintf(stderr, "thumbnailer: %s\n", jzx_strerror(receipt->err));
    }
    atomic_fetch_sub((_Atomic int *)arg, 1);
}

static jzx_err commit(jzx_mf_txn *txn, _Atomic int *pending)
{
    if (jzx_mf_txn_count(txn) == 0) {
        jzx_mf_abort(txn);
        return JZX_OK;
    }
    atomic_fetch_add(pending, 1);
    jzx_err err = jzx_mf_commit_async(txn, on_committed, pending);
    if (err != JZX_OK) {
        atomic_fetch_sub(pending, 1);
    }
    return err;
}

jzx_err scan(jzx_mf *mf, const options *opts, _Atomic int *pending)
{
    DIR *dir = opendir(opts->source);
    if (dir == NULL) {
        return errno == EACCES ? JZX_ERR_NO_ACCESS : JZX_ERR_NOT_FOUND;
    }
    jzx_mf_txn *txn = NULL;
    jzx_err err = JZX_OK;
    for (struct dirent *entry; err == JZX_OK && (entry = readdir(dir)) != NULL;) {
        if (!is_picture(entry->d_name)) {
            continue;
        }
        err = txn == NULL ? jzx_mf_begin(mf, &txn) : JZX_OK;
        err = err == JZX_OK ? add(mf, opts, txn, entry->d_name) : err;
        if (err == JZX_OK && jzx_mf_txn_count(txn) == BATCH) {
            err = commit(txn, pending);
            txn = NULL;
        }
    }
    (void)closedir(dir);
    if (err != JZX_OK || txn == NULL) {
        jzx_mf_abort(txn);
        return err;
    }
    return commit(txn, pending);
}
