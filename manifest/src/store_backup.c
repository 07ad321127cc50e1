/* Copies of a manifest. */
#include "store_steps.h"

#include "memory.h"

#include <errno.h>
#include <unistd.h>

/* Compacting refuses a file in which pages were lost (which does no harm): such a file is copied as
 * it is. */
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
        mfi_free(canonical);
    }
    return err;
}
