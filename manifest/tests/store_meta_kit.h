/* Meta records of a file. */
#ifndef JZT_STORE_META_KIT_H
#define JZT_STORE_META_KIT_H

#include "bytes.h"
#include "codec.h"
#include "key.h"
#include "row.h"
#include "store_kit.h"
#include "store_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

static inline void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    (void)fputs(text, file);
    (void)fclose(file);
}

/* Runs a function in a child; returns what it returned. */
static inline int in_child(int (*fn)(void *arg), void *arg)
{
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        _exit(fn(arg));
    }
    int status = 0;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline mfi_meta read_meta(mfi_store *store)
{
    mfi_reader *reader;
    REQUIRE_OK(mfi_reader_begin(store, &reader));
    jzx_mf_key key = mfi_key_meta();
    MDB_val at = {key.len, key.bytes};
    MDB_val value;
    REQUIRE_EQ(
        mdb_get(mfi_reader_txn(reader), mfi_store_dbi(store, JZX_MF_TABLE_META), &at, &value), 0);
    mfi_meta meta;
    REQUIRE_OK(mfi_decode_meta(jzx_mf_blob(value.mv_data, value.mv_size), &meta, NULL));
    mfi_reader_end(store, reader);
    return meta;
}

#endif
