/* A file with its tables and one transaction, below writer and API. */
#ifndef MFT_TX_H
#define MFT_TX_H

#include "mf_fixture.h"
#include "snap.h"
#include "tx.h"

typedef struct mft_tx {
    mft_dir dir;
    mfi_store *store;
    mfi_tx tx;
} mft_tx;

static inline void mft_store_open(mft_tx *t)
{
    const mfi_store_opts opts = {.map_max = 64u << 20, .readers_max = 16, .now_ms = 1000};
    mfi_store_facts facts = {0};
    jzx_err err = mfi_store_open(t->dir.file, &opts, &t->store, &facts);
    if (err != JZX_OK) {
        (void)fprintf(stderr, "%s\n", facts.text);
    }
    REQUIRE_OK(err);
    t->tx.view.store = t->store;
}

/* A new commit, one second later than the last one. */
static inline mfi_tx *mft_tx_begin(mft_tx *t)
{
    mfi_tx *tx = &t->tx;
    REQUIRE_EQ(mdb_txn_begin(mfi_store_env(t->store), NULL, 0, &tx->view.txn), 0);
    REQUIRE_OK(mfi_meta_load(&tx->view, &tx->meta));
    if (tx->meta.migrate_key.len > 0) {
        memcpy(tx->migrate_at.bytes, tx->meta.migrate_key.data, tx->meta.migrate_key.len);
    }
    tx->meta.migrate_key.data = tx->migrate_at.bytes;
    tx->seq = ++tx->meta.commit_seq;
    tx->event_index = 0;
    tx->now_ms = 1000 * (tx->seq + 1);
    tx->meta.last_ms = tx->now_ms;
    return tx;
}

static inline void mft_tx_commit(mft_tx *t)
{
    REQUIRE_OK(mfi_meta_store(&t->tx));
    REQUIRE_EQ(mdb_txn_commit(t->tx.view.txn), 0);
    t->tx.view.txn = NULL;
}

static inline void mft_tx_abort(mft_tx *t)
{
    mdb_txn_abort(t->tx.view.txn);
    t->tx.view.txn = NULL;
}

/* A file of its own, with a transaction that has begun. */
static inline mfi_tx *mft_tx_make(mft_tx *t)
{
    memset(t, 0, sizeof *t);
    t->dir = mft_dir_make();
    mft_store_open(t);
    return mft_tx_begin(t);
}

static inline void mft_tx_remove(mft_tx *t)
{
    if (t->tx.view.txn != NULL) {
        mft_tx_abort(t);
    }
    mfi_buf_free(&t->tx.buf);
    mfi_store_close(t->store);
    mft_dir_remove(&t->dir);
}

/* All rows of all tables but META as one text. The caller frees it. */
typedef struct mft_text {
    char *bytes;
    size_t len;
    size_t cap;
} mft_text;

static inline jzx_err mft_add_line(void *arg, const char *line, size_t len)
{
    mft_text *text = (mft_text *)arg;
    if (text->len + len + 2 > text->cap) {
        text->cap = 2 * (text->cap + len + 2);
        text->bytes = (char *)realloc(text->bytes, text->cap);
        REQUIRE(text->bytes != NULL);
    }
    memcpy(text->bytes + text->len, line, len);
    memcpy(text->bytes + text->len + len, "\n", 2);
    text->len += len + 1;
    return JZX_OK;
}

static inline char *mft_dump_table(const mfi_view *view, uint32_t table)
{
    jzx_mf_snap snap = {.view = *view};
    mft_text text = {0};
    (void)mft_add_line(&text, jzx_mf_table_name(table), strlen(jzx_mf_table_name(table)));
    REQUIRE_OK(jzx_mf_dump(&snap, table, mft_add_line, &text));
    return text.bytes;
}

static inline char *mft_dump(const mfi_view *view)
{
    jzx_mf_snap snap = {.view = *view};
    mft_text text = {0};
    for (uint32_t table = 1; table < JZX_MF_TABLES; table++) {
        (void)mft_add_line(&text, jzx_mf_table_name(table), strlen(jzx_mf_table_name(table)));
        REQUIRE_OK(jzx_mf_dump(&snap, table, mft_add_line, &text));
    }
    return text.bytes;
}

#endif
