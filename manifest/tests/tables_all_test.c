/* Goal: what holds for all plain tables: conditions, fields of newer libraries, indexes that follow
 * their records, changes that are told. Method: as in tables_test.c, and a random walk. */
#include "tables_kit.h"

/* Changes the bytes of a record as a newer library would have: a longer fixed part and a TLV. */
static const uint8_t newer_fields[] = {7, 7, 7};
static const uint8_t newer_tlv[] = {99, 0, 2, 0, 0, 0, 'o', 'k'};

static void make_newer(mfi_tx *tx, const jzx_mf_key *key)
{
    uint8_t bytes[4096];
    jzx_mf_span value;
    REQUIRE_OK(mfi_get(&tx->view, key, &value));
    size_t fixed = mfi_get_le16((const uint8_t *)value.data + 12);
    size_t head = 14 + fixed;
    memcpy(bytes, value.data, head);
    memcpy(bytes + head, newer_fields, sizeof newer_fields);
    memcpy(bytes + head + sizeof newer_fields, (const uint8_t *)value.data + head,
           value.len - head);
    size_t len = value.len + sizeof newer_fields;
    memcpy(bytes + len, newer_tlv, sizeof newer_tlv);
    len += sizeof newer_tlv;
    mfi_put_le16(bytes + 12, (uint16_t)(fixed + sizeof newer_fields));
    mfi_put_le32(bytes + 4, mfi_crc32c_more(mfi_crc32c(bytes, 4), bytes + 12, len - 12));
    REQUIRE_OK(mfi_put(tx, key, bytes, len));
}

static void check_newer_is_kept(const mfi_tx *tx, const jzx_mf_key *key)
{
    jzx_mf_span value;
    mfi_rest rest;
    REQUIRE_OK(mfi_get(&tx->view, key, &value));
    REQUIRE_OK(mfi_value_rest(key->table, value, &rest));
    CHECK(rest.fixed.len == sizeof newer_fields &&
          memcmp(rest.fixed.data, newer_fields, sizeof newer_fields) == 0);
    CHECK(memcmp((const uint8_t *)value.data + value.len - sizeof newer_tlv, newer_tlv,
                 sizeof newer_tlv) == 0);
}

static void flip_a_bit(mfi_tx *tx, const jzx_mf_key *key)
{
    uint8_t bytes[4096];
    jzx_mf_span value;
    REQUIRE_OK(mfi_get(&tx->view, key, &value));
    memcpy(bytes, value.data, value.len);
    bytes[14] ^= 1;
    REQUIRE_OK(mfi_put(tx, key, bytes, value.len));
}

/* ---- All of them. */

static void test_a_condition_holds_for_the_bytes_that_were_read(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    jzx_mf_key key = jzx_mf_key_generation(1);
    uint64_t now;
    CHECK_OK(mfi_expect(tx, &key, JZX_MF_ABSENT));
    CHECK_EQ(mfi_expect(tx, &key, JZX_MF_PRESENT), JZX_ERR_CONFLICT);
    CHECK_EQ(mfi_expect(tx, &key, 0), JZX_ERR_CONFLICT);
    CHECK_OK(mfi_generation_bump(tx, 1, 1, &now));
    jzx_mf_snap snap = {.view = tx->view};
    uint64_t stamp;
    CHECK_OK(jzx_mf_stamp(&snap, &key, &stamp));
    CHECK_OK(mfi_expect(tx, &key, stamp));
    CHECK_OK(mfi_expect(tx, &key, JZX_MF_PRESENT));
    CHECK_EQ(mfi_expect(tx, &key, JZX_MF_ABSENT), JZX_ERR_CONFLICT);
    CHECK_EQ(mfi_expect(tx, &key, stamp ^ 1), JZX_ERR_CONFLICT);
    CHECK_EQ(mfi_expect(tx, &key, stamp | 1ull << 32), JZX_ERR_CONFLICT);
    CHECK_OK(mfi_generation_bump(tx, 1, 1, &now));
    CHECK_EQ(mfi_expect(tx, &key, stamp), JZX_ERR_CONFLICT);
    key.table = JZX_MF_TABLES;
    CHECK_EQ(mfi_expect(tx, &key, stamp), JZX_ERR_INVALID_ARG);
    key = mfi_key_first(JZX_MF_TABLE_DB);
    CHECK_EQ(mfi_expect(tx, &key, JZX_MF_ABSENT), JZX_ERR_INVALID_ARG);
    key.len = JZX_MF_KEY_BYTES + 1;
    CHECK_EQ(mfi_expect(tx, &key, JZX_MF_ABSENT), JZX_ERR_INVALID_ARG);
    mft_tx_remove(&t);
}

static void put_one_of_each(mfi_tx *tx)
{
    jzx_mf_db db = db_named("d");
    jzx_mf_wal wal = {.last_applied_lsn = 1};
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("c")};
    jzx_mf_material material = {.id = jzx_mf_text("m")};
    jzx_mf_metric metric = {.sum = 1, .min = 1, .max = 1, .count = 1};
    uint64_t now;
    CHECK_OK(mfi_db_put(tx, 1, &db));
    CHECK_OK(mfi_wal_put(tx, 1, 2, &wal));
    CHECK_OK(mfi_chunk_put(tx, 1, 3, &chunk));
    CHECK_OK(mfi_material_put(tx, &material));
    CHECK_OK(mfi_metric_merge(tx, 4, 5, &metric));
    CHECK_OK(mfi_generation_bump(tx, 6, 1, &now));
}

static void test_fields_of_a_newer_library_survive_every_write(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    put_one_of_each(tx);
    jzx_mf_key keys[] = {jzx_mf_key_db(1),        jzx_mf_key_wal(1, 2),
                         jzx_mf_key_chunk(1, 3),  jzx_mf_key_material(jzx_mf_text("m")),
                         jzx_mf_key_metric(4, 5), jzx_mf_key_generation(6)};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        make_newer(tx, &keys[i]);
    }
    put_one_of_each(tx);
    CHECK_OK(mfi_material_move(tx, jzx_mf_text("m"), 0, 1, 1));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        check_newer_is_kept(tx, &keys[i]);
    }
    mft_tx_remove(&t);
}

static void test_what_does_not_decode_is_not_written_over(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    put_one_of_each(tx);
    jzx_mf_db db = db_named("d");
    jzx_mf_wal wal = {0};
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("c")};
    jzx_mf_material material = {.id = jzx_mf_text("m")};
    jzx_mf_metric metric = {.count = 1};
    jzx_mf_key keys[] = {jzx_mf_key_db(1),        jzx_mf_key_wal(1, 2),
                         jzx_mf_key_chunk(1, 3),  jzx_mf_key_material(jzx_mf_text("m")),
                         jzx_mf_key_metric(4, 5), jzx_mf_key_generation(6)};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        flip_a_bit(tx, &keys[i]);
    }
    uint64_t now;
    CHECK_REFUSED(tx, mfi_db_put(tx, 1, &db), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_db_del(tx, 1), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_wal_put(tx, 1, 2, &wal), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_chunk_put(tx, 1, 3, &chunk), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_material_put(tx, &material), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_material_move(tx, material.id, 0, 1, 0), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_material_del(tx, material.id), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_metric_merge(tx, 4, 5, &metric), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_generation_bump(tx, 6, 1, &now), JZX_ERR_CORRUPT);
    mft_tx_remove(&t);
}

static void test_an_index_that_misses_a_row_is_corrupt(void)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    put_one_of_each(tx);
    jzx_mf_key material = jzx_mf_key_material(jzx_mf_text("m"));
    jzx_mf_key rows[] = {mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("d")),
                         mfi_key_material_status(0, tx->now_ms, &material)};
    REQUIRE_OK(mfi_del(tx, &rows[0]));
    REQUIRE_OK(mfi_del(tx, &rows[1]));
    jzx_mf_db db = db_named("e");
    jzx_mf_material record = {.id = jzx_mf_text("m")};
    CHECK_REFUSED(tx, mfi_db_put(tx, 1, &db), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_db_del(tx, 1), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_material_put(tx, &record), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_material_move(tx, record.id, 0, 1, 0), JZX_ERR_CORRUPT);
    CHECK_REFUSED(tx, mfi_material_del(tx, record.id), JZX_ERR_CORRUPT);
    mft_tx_remove(&t);
}

/* ---- A walk: what is in the records must be in the indexes, whatever was done or refused. */

enum { WALK_DBS = 4, WALK_NAMES = 5, WALK_STEPS = 3000 };
static const char *const walk_names[WALK_NAMES] = {"a", "ab", "b", "ba", "c"};

typedef struct walk {
    int name_of[WALK_DBS];     /* -1: no such database */
    int status_of[WALK_NAMES]; /* of the material with this name; -1: there is none */
    bool has_chunk[WALK_DBS][2];
} walk;

static int owner_of(const walk *w, int name)
{
    for (int db = 0; db < WALK_DBS; db++) {
        if (w->name_of[db] == name) {
            return db;
        }
    }
    return -1;
}

static void walk_db(mfi_tx *tx, walk *w, jzt_rng *rng)
{
    int db = (int)jzt_rng_below(rng, WALK_DBS), name = (int)jzt_rng_below(rng, WALK_NAMES);
    jzx_mf_db record = db_named(walk_names[name]);
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("f")};
    size_t number = (size_t)jzt_rng_below(rng, 2);
    switch (jzt_rng_below(rng, 5)) {
    case 0:
        CHECK_OK(mfi_db_del(tx, 255 + (uint64_t)db));
        w->name_of[db] = -1;
        w->has_chunk[db][0] = w->has_chunk[db][1] = false;
        break;
    case 1:
    case 2: {
        int owner = owner_of(w, name);
        bool taken = owner >= 0 && owner != db;
        CHECK_EQ(mfi_db_put(tx, 255 + (uint64_t)db, &record), taken ? JZX_ERR_NAME_TAKEN : JZX_OK);
        w->name_of[db] = taken ? w->name_of[db] : name;
        break;
    }
    case 3: {
        bool there = w->name_of[db] >= 0;
        CHECK_EQ(mfi_chunk_put(tx, 255 + (uint64_t)db, number, &chunk),
                 there ? JZX_OK : JZX_ERR_NOT_FOUND);
        w->has_chunk[db][number] = w->has_chunk[db][number] || there;
        break;
    }
    default:
        CHECK_OK(mfi_chunk_del(tx, 255 + (uint64_t)db, number));
        w->has_chunk[db][number] = false;
        break;
    }
}

static void walk_material(mfi_tx *tx, walk *w, jzt_rng *rng)
{
    int name = (int)jzt_rng_below(rng, WALK_NAMES);
    int *status = &w->status_of[name];
    uint8_t from = (uint8_t)jzt_rng_below(rng, 3), to = (uint8_t)jzt_rng_below(rng, 3);
    jzx_mf_material record = {.id = jzx_mf_text(walk_names[name]), .status = to};
    switch (jzt_rng_below(rng, 4)) {
    case 0:
        CHECK_OK(mfi_material_del(tx, record.id));
        *status = -1;
        break;
    case 1:
        CHECK_OK(mfi_material_put(tx, &record));
        *status = to;
        break;
    default: {
        jzx_err want = *status < 0       ? JZX_ERR_NOT_FOUND
                       : *status != from ? JZX_ERR_CONFLICT
                                         : JZX_OK;
        CHECK_EQ(mfi_material_move(tx, record.id, from, to, 1), want);
        *status = want == JZX_OK ? to : *status;
        break;
    }
    }
}

static void walk_check(const mfi_tx *tx, const walk *w)
{
    uint64_t dbs = 0, chunks = 0, materials = 0;
    for (int name = 0; name < WALK_NAMES; name++) {
        int owner = owner_of(w, name);
        CHECK_EQ(db_by_name(tx, walk_names[name]), owner < 0 ? 0 : 255 + owner);
        materials += w->status_of[name] >= 0;
        if (w->status_of[name] >= 0) {
            jzx_mf_material record = material_stored(tx, walk_names[name]);
            CHECK_EQ(record.status, w->status_of[name]);
            check_material_index(tx, walk_names[name], record.status, record.updated_ms);
        }
    }
    for (int db = 0; db < WALK_DBS; db++) {
        dbs += w->name_of[db] >= 0;
        chunks += (uint64_t)w->has_chunk[db][0] + w->has_chunk[db][1];
    }
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_DB), dbs);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_DB_NAME), dbs);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_CHUNK), chunks);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_MATERIAL), materials);
    CHECK_EQ(mfi_entries(&tx->view, JZX_MF_TABLE_MATERIAL_STATUS), materials);
}

static void test_indexes_follow_their_records_on_a_random_walk(void)
{
    jzt_rng rng = jzt_rng_seeded();
    walk w;
    memset(&w, 0xFF, sizeof w); /* no database, no material */
    memset(w.has_chunk, 0, sizeof w.has_chunk);
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    for (int step = 0; step < WALK_STEPS && jzt_failures() == 0; step++) {
        if (jzt_rng_below(&rng, 2) == 0) {
            walk_db(tx, &w, &rng);
        } else {
            walk_material(tx, &w, &rng);
        }
        walk_check(tx, &w);
        if (jzt_rng_below(&rng, 50) == 0) {
            mft_tx_commit(&t);
            tx = mft_tx_begin(&t);
        }
    }
    mft_tx_remove(&t);
}

/* ---- Events. */

static void check_events(bool all, const char *want)
{
    mft_tx t;
    mfi_tx *tx = mft_tx_make(&t);
    tx->all_events = all;
    put_one_of_each(tx);
    CHECK_OK(mfi_material_move(tx, jzx_mf_text("m"), 0, 1, 1));
    CHECK_OK(mfi_material_del(tx, jzx_mf_text("m")));
    CHECK_OK(mfi_db_del(tx, 1));
    char *events = mft_dump_table(&tx->view, JZX_MF_TABLE_EVENT);
    /* Only what they are about. */
    char shown[4096] = "";
    for (char *line = strtok(events, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *change = strstr(line, "change="), *of = strstr(line, " of ");
        if (of != NULL) {
            (void)snprintf(shown + strlen(shown), sizeof shown - strlen(shown), "%c %s\n",
                           change[7], of + 4);
        }
    }
    CHECK_STR(shown, want);
    CHECK(tx->news.event);
    free(events);
    mft_tx_remove(&t);
}

static void test_changes_are_told_in_their_order(void)
{
    check_events(false, "1 db db=1\n"
                        "1 chunk db=1 chunk=3\n"
                        "1 material hash=25ee4a05c339424604bfc268f854dafa\n"
                        "1 generation component=6\n"
                        "1 material hash=25ee4a05c339424604bfc268f854dafa\n"
                        "2 material hash=25ee4a05c339424604bfc268f854dafa\n"
                        "2 chunk db=1 chunk=3\n"
                        "2 db db=1\n");
    check_events(true, "1 db db=1\n"
                       "1 wal db=1 shard=2\n"
                       "1 chunk db=1 chunk=3\n"
                       "1 material hash=25ee4a05c339424604bfc268f854dafa\n"
                       "1 metric scope=4 metric=5\n"
                       "1 generation component=6\n"
                       "1 material hash=25ee4a05c339424604bfc268f854dafa\n"
                       "2 material hash=25ee4a05c339424604bfc268f854dafa\n"
                       "2 wal db=1 shard=2\n"
                       "2 chunk db=1 chunk=3\n"
                       "2 db db=1\n");
}

#define T(name)                                                                                    \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    T(a_condition_holds_for_the_bytes_that_were_read),
    T(fields_of_a_newer_library_survive_every_write),
    T(what_does_not_decode_is_not_written_over),
    T(an_index_that_misses_a_row_is_corrupt),
    T(indexes_follow_their_records_on_a_random_walk),
    T(changes_are_told_in_their_order),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
