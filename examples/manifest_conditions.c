/* Changes that must not overlook each other: a record is read with its stamp, and the transaction
 * that writes it expects that stamp. If another one was quicker nothing of it is done, and it is
 * tried again on what is there now. Run: ./manifest_conditions */
#define _POSIX_C_SOURCE 200809L /* mkdtemp() */
#include <jzx/manifest.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHOP = 1, STOCK = 2, KIND = 3 };

typedef struct look {
    jzx_mf_db db;
    uint64_t stamp, seq;
    uint64_t retention_ms;
} look;

static jzx_err read_shop(jzx_mf_snap *snap, void *arg)
{
    look *l = arg;
    jzx_mf_key key = jzx_mf_key_db(SHOP);
    jzx_err err = jzx_mf_db_get(snap, SHOP, &l->db);
    l->seq = jzx_mf_snap_seq(snap);
    l->retention_ms = l->db.retention_ms;
    return err == JZX_OK ? jzx_mf_stamp(snap, &key, &l->stamp) : err;
}

/* A longer retention, if the record is what it was. */
static jzx_err extend(jzx_mf *mf, const look *seen)
{
    jzx_mf_txn *txn;
    jzx_mf_key key = jzx_mf_key_db(SHOP);
    jzx_mf_db db = {.name = jzx_mf_text("shop"), .retention_ms = seen->retention_ms + 1000};
    jzx_err err = jzx_mf_begin(mf, &txn);
    if (err != JZX_OK) {
        return err;
    }
    if ((err = jzx_mf_expect(txn, &key, seen->stamp)) != JZX_OK ||
        (err = jzx_mf_db_put(txn, SHOP, &db)) != JZX_OK) {
        jzx_mf_abort(txn);
        return err;
    }
    return jzx_mf_commit(txn, 0, NULL);
}

/* Nothing of any other kind is there yet: a whole set of conditions, one key for each table. */
static jzx_err create(jzx_mf *mf)
{
    jzx_mf_txn *txn;
    jzx_mf_db db = {.name = jzx_mf_text("shop")};
    jzx_mf_key none[] = {jzx_mf_key_db(SHOP),          jzx_mf_key_wal(SHOP, 0),
                         jzx_mf_key_chunk(SHOP, 1),    jzx_mf_key_job(1),
                         jzx_mf_key_gate(SHOP, 1),     jzx_mf_key_metric(SHOP, 1),
                         jzx_mf_key_generation(STOCK), jzx_mf_key_material(jzx_mf_text("apple")),
                         jzx_mf_key_kind(KIND),        jzx_mf_key_cron(jzx_mf_text("nightly"))};
    jzx_err err = jzx_mf_begin(mf, &txn);
    for (size_t i = 0; i < sizeof none / sizeof none[0] && err == JZX_OK; i++) {
        err = jzx_mf_expect(txn, &none[i], JZX_MF_ABSENT);
    }
    if (err == JZX_OK && (err = jzx_mf_db_put(txn, SHOP, &db)) == JZX_OK) {
        return jzx_mf_commit(txn, 0, NULL);
    }
    jzx_mf_abort(txn);
    return err;
}

int main(void)
{
    char dir[] = "/tmp/jzx-XXXXXX";
    jzx_mf *mf = NULL;
    look mine = {0}, yours = {0};
    jzx_err err = JZX_ERR_NO_ACCESS;
    if (mkdtemp(dir) == NULL || chdir(dir) != 0 ||
        (err = jzx_mf_open("shop", NULL, &mf, NULL)) != JZX_OK || (err = create(mf)) != JZX_OK ||
        (err = jzx_mf_read(mf, read_shop, &mine)) != JZX_OK ||
        (err = jzx_mf_read(mf, read_shop, &yours)) != JZX_OK) {
        fprintf(stderr, "manifest_conditions: %s\n", jzx_strerror(err));
        return 1;
    }
    printf("created again: %s\n", jzx_err_name(create(mf)));
    printf("you: %s\n", jzx_err_name(extend(mf, &yours)));
    while ((err = extend(mf, &mine)) == JZX_ERR_CONFLICT) {
        printf("I: %s, so once more\n", jzx_err_name(err));
        err = jzx_mf_read(mf, read_shop, &mine);
    }
    printf("I: %s, from %" PRIu64 " ms on\n", jzx_err_name(err), mine.retention_ms);
    printf("commits between the two looks: %" PRIu64 "\n", mine.seq - yours.seq);
    err = jzx_mf_close(mf, 0);
    (void)(remove("shop") + remove("shop-lock") + remove("shop-owner"));
    return rmdir(dir) == 0 && err == JZX_OK ? 0 : 1;
}
