/* A directory of a test's own for its manifests, in memory where that is possible: what is tested
 * is not the disk. */
#ifndef MFT_FIXTURE_H
#define MFT_FIXTURE_H

#include "check.h"

#include <jzx/manifest.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct mft_dir {
    char path[64];
    char file[96]; /* of the one manifest that most tests need */
} mft_dir;

static inline mft_dir mft_dir_make(void)
{
    mft_dir dir;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(dir.path, sizeof dir.path, "%s/jzx-mf-XXXXXX", base);
    REQUIRE(mkdtemp(dir.path) != NULL);
    (void)snprintf(dir.file, sizeof dir.file, "%s/m.mf", dir.path);
    return dir;
}

static inline void mft_dir_remove(const mft_dir *dir)
{
    DIR *entries = opendir(dir->path);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        char name[512];
        (void)snprintf(name, sizeof name, "%s/%s", dir->path, entry->d_name);
        if (entry->d_name[0] != '.') {
            (void)unlink(name);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    (void)rmdir(dir->path);
}

/* With a thread of its own for the writer. */
static inline jzx_mf *mft_open(const mft_dir *dir, const jzx_mf_opts *opts)
{
    jzx_mf *mf = NULL;
    jzx_mf_recovery report;
    jzx_err err = jzx_mf_open(dir->file, opts, &mf, &report);
    if (err != JZX_OK) {
        (void)fprintf(stderr, "%s\n", report.text);
    }
    REQUIRE_OK(err);
    return mf;
}

static inline jzx_mf_txn *mft_begin(jzx_mf *mf)
{
    jzx_mf_txn *txn = NULL;
    REQUIRE_OK(jzx_mf_begin(mf, &txn));
    return txn;
}

/* One job, in a commit of its own. */
static inline uint64_t mft_enqueue(jzx_mf *mf, const jzx_mf_job_spec *spec)
{
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_receipt *receipt = NULL;
    CHECK_OK(jzx_mf_job_enqueue(txn, spec, NULL));
    REQUIRE_OK(jzx_mf_commit(txn, 0, &receipt));
    uint64_t id = receipt->slots[0].id;
    jzx_mf_receipt_free(receipt);
    return id;
}

#endif
