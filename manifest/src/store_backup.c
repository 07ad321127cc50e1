/* Copies of a manifest, and the space that is kept for a bad day. */
#include "store_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Compacting refuses a file in which pages were lost (which harms nobody): such a file is copied
 * as it is. */
static int copy_to(MDB_env *env, int fd)
{
    int rc = mdb_env_copyfd2(env, fd, MDB_CP_COMPACT);
    if (rc != MDB_INCOMPATIBLE) {
        return rc;
    }
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
        return errno;
    }
    return mdb_env_copyfd2(env, fd, 0);
}

static jzx_err backup_to(mfi_store *store, const char *path, mfi_store_facts *facts)
{
    if (access(path, F_OK) == 0) {
        return JZX_ERR_ALREADY;
    }
    mfi_temps_clean(path);
    mfi_temp temp;
    jzx_err err = mfi_temp_make(path, &temp, facts);
    if (err != JZX_OK) {
        return err;
    }
    err = mfi_err_of(copy_to(store->env, temp.fd));
    if (err == JZX_OK) {
        err = mfi_temp_publish(&temp, path, facts);
    }
    mfi_temp_drop(&temp);
    return err;
}

jzx_err mfi_store_backup(mfi_store *store, const char *path)
{
    if (mfi_store_forked(store)) {
        return JZX_ERR_FORKED;
    }
    mfi_store_facts facts;
    char *canonical;
    jzx_err err = mfi_path_canonical(path, &canonical, &facts);
    if (err == JZX_OK) {
        err = backup_to(store, canonical, &facts);
        free(canonical);
    }
    return err;
}

static jzx_err allocate(const char *name, uint64_t bytes)
{
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660);
    if (fd < 0) {
        return mfi_err_of(errno);
    }
    int rc;
    do {
        rc = posix_fallocate(fd, 0, (off_t)bytes);
    } while (rc == EINTR);
    if (rc == 0 && ftruncate(fd, (off_t)bytes) != 0) { /* it was larger once */
        rc = errno;
    }
    (void)close(fd);
    if (rc != 0) {
        (void)unlink(name);
    }
    return mfi_err_of(rc);
}

jzx_err mfi_store_make_reserve(mfi_store *store)
{
    if (store->reserve_bytes == 0 || mfi_store_forked(store)) {
        return JZX_OK;
    }
    char *name = mfi_path_with(store->path, "-reserve");
    if (name == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    jzx_err err = allocate(name, store->reserve_bytes);
    free(name);
    return err;
}

bool mfi_store_give_reserve(mfi_store *store)
{
    if (store->readonly || mfi_store_forked(store)) {
        return false;
    }
    char *name = mfi_path_with(store->path, "-reserve");
    bool given = name != NULL && unlink(name) == 0;
    free(name);
    return given;
}
