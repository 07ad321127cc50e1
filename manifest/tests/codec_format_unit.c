/* Goal: the format of every version is what it always was, its rows have their checksums, and
 * people can read it. Method: the vectors in golden/ hold the format of every version (UPDATE=1
 * writes them); flipped bits of keys; lines for people. */
#include "codec_kit.h"

/* ---- Old versions. */

static void test_records_of_schema_0_are_read_as_new_ones(void)
{
    mfi_buf buf = {0}, again = {0};
    mfi_chunk_v0 old = {.file_name = jzx_mf_text("c1"),
                        .generation = 1,
                        .size_bytes = 2,
                        .wal_begin = 10,
                        .wal_count = 5,
                        .compression = 2,
                        .encrypted = 1};
    jzx_mf_chunk chunk;
    REQUIRE_OK(mfi_encode_chunk_v0(&old, NULL, &buf));
    CHECK(mfi_value_is_old(JZX_MF_TABLE_CHUNK, span_of(&buf)));
    REQUIRE_OK(mfi_decode_chunk(span_of(&buf), &chunk, NULL));
    CHECK(same_span(chunk.file_name, old.file_name));
    CHECK(chunk.generation == 1 && chunk.size_bytes == 2 && chunk.wal_begin == 10);
    CHECK(chunk.wal_end == 15 && chunk.compression == 2 && chunk.encrypted == 1);
    CHECK(chunk.residency == JZX_MF_LOCAL && chunk.uploaded_ms == 0);
    REQUIRE_OK(mfi_value_renew(JZX_MF_TABLE_CHUNK, span_of(&buf), &again));
    CHECK(!mfi_value_is_old(JZX_MF_TABLE_CHUNK, span_of(&again)));
    old.wal_begin = UINT64_MAX - 4; /* the end would not fit */
    REQUIRE_OK(mfi_encode_chunk_v0(&old, NULL, &buf));
    CHECK_EQ(mfi_decode_chunk(span_of(&buf), &chunk, NULL), JZX_ERR_CORRUPT);

    mfi_generation_v0 short_one = {.current = 7};
    jzx_mf_generation generation;
    REQUIRE_OK(mfi_encode_generation_v0(&short_one, NULL, &buf));
    REQUIRE_OK(mfi_decode_generation(span_of(&buf), &generation, NULL));
    CHECK(generation.current == 7 && generation.updated_ms == 0);
    /* A closed version does not grow. */
    static const uint8_t more[] = {1, 2, 3, 4};
    insert(&buf, OLD_HEAD + 4, more, sizeof more);
    mfi_put_le16(buf.bytes + OLD_HEAD - 2, 8);
    mfi_put_le32(buf.bytes + 4, mfi_crc32c(buf.bytes + 8, buf.len - 8));
    CHECK_EQ(mfi_decode_generation(span_of(&buf), &generation, NULL), JZX_ERR_CORRUPT);
    mfi_buf_free(&buf);
    mfi_buf_free(&again);
}

static const vector vectors[] = {
#define RECORD(name, type, table, version, older) {#name, table, version, make_##name},
#include "schema.def"
};

static void golden_path(const vector *v, char *path, size_t cap)
{
    static const char here[] = __FILE__;
    int folder = (int)(strrchr(here, '/') - here);
    int base = (int)strcspn(v->name, "_"); /* chunk_v0 is a version of chunk */
    snprintf(path, cap, "%.*s/golden/%.*s.v%" PRIu32 ".hex", folder, here, base, v->name,
             v->version);
}

static void golden_write(const char *path, const mfi_buf *buf)
{
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    for (size_t i = 0; i < buf->len; i++) {
        fprintf(file, "%02x%s", buf->bytes[i], i % 32 == 31 || i + 1 == buf->len ? "\n" : "");
    }
    REQUIRE_EQ(fclose(file), 0);
}

static void golden_read(const char *path, mfi_buf *buf)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        printf("    %s is missing; UPDATE=1 makes it\n", path);
    }
    REQUIRE(file != NULL);
    unsigned byte;
    buf->len = 0;
    while (fscanf(file, "%2x", &byte) == 1) {
        REQUIRE(mfi_buf_reserve(buf, buf->len + 1));
        buf->bytes[buf->len++] = (uint8_t)byte;
    }
    fclose(file);
}

static void test_the_bytes_of_every_version_are_what_they_always_were(void)
{
    mfi_buf made = {0}, kept = {0}, renewed = {0};
    for (size_t i = 0; i < 4096; i++) {
        pool[i] = (uint8_t)('a' + i % 26);
    }
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const vector *v = &vectors[i];
        jzt_rng rng = {.state = v->table * 1000 + v->version};
        char path[1024];
        golden_path(v, path, sizeof path);
        REQUIRE_OK(v->make(&rng, NULL, &made));
        if (getenv("UPDATE") != NULL) {
            golden_write(path, &made);
        }
        golden_read(path, &kept);
        bool same = same_span(span_of(&made), span_of(&kept));
        if (!same) {
            printf("    %s\n", path);
        }
        CHECK(same);
        jzx_err err = mfi_value_renew(v->table, span_of(&kept), &renewed);
        CHECK_OK(err);
        bool is_old = mfi_value_is_old(v->table, span_of(&kept));
        CHECK_EQ(is_old, v->version < 2);
        CHECK(is_old || same_span(span_of(&kept), span_of(&renewed)));
    }
    mfi_buf_free(&made);
    mfi_buf_free(&kept);
    mfi_buf_free(&renewed);
}

/* What files of schema 1 have: the same fields behind a shorter head, without a checksum of the
 * key. */
static void test_records_of_schema_1_are_read_and_become_new_ones(void)
{
    mfi_buf kept = {0}, renewed = {0};
    for (size_t i = 0; i < SAMPLES; i++) {
        const vector v = {samples[i].name, samples[i].table, 1, NULL};
        char path[1024];
        golden_path(&v, path, sizeof path);
        golden_read(path, &kept);
        jzx_mf_span value = span_of(&kept);
        CHECK_OK(mfi_value_check(v.table, value));
        CHECK(mfi_value_is_old(v.table, value) && mfi_row_is_old(v.table, value));
        CHECK_OK(mfi_row_check(v.table, jzx_mf_text("any key"), value));
        REQUIRE_OK(mfi_value_renew(v.table, value, &renewed));
        CHECK(!mfi_value_is_old(v.table, span_of(&renewed)));
        CHECK(same_span(jzx_mf_blob(kept.bytes + OLD_HEAD, kept.len - OLD_HEAD),
                        jzx_mf_blob(renewed.bytes + HEAD, renewed.len - HEAD)));
    }
    mfi_buf_free(&kept);
    mfi_buf_free(&renewed);
}

/* ---- Rows: the checksum of a key. */

/* Every bit of every key, and of every value that an index has, of rows of every table. */
static void test_no_flipped_bit_of_a_key_goes_unseen(void)
{
    jzt_rng rng = jzt_rng_seeded();
    mfi_buf buf = {0};
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        uint32_t plain = 0;
        uint8_t key[JZX_MF_KEY_BYTES];
        size_t key_len = 1 + (size_t)jzt_rng_below(&rng, sizeof key);
        draw_bytes(&rng, key, key_len);
        if (mfi_row_is_index(table, &plain)) {
            REQUIRE(mfi_buf_reserve(&buf, mfi_row_room(table, plain)));
            draw_bytes(&rng, buf.bytes, plain);
            buf.len = mfi_row_room(table, plain);
        } else {
            for (int i = 0; i < SAMPLES; i++) {
                if (samples[i].table == table) {
                    REQUIRE_OK(samples[i].make(&rng, NULL, &buf));
                }
            }
            plain = (uint32_t)buf.len;
            CHECK_EQ(mfi_row_room(table, buf.len), buf.len);
        }
        jzx_mf_span at = jzx_mf_blob(key, key_len);
        mfi_row_seal(table, at, buf.bytes, plain);
        REQUIRE_OK(mfi_row_check(table, at, span_of(&buf)));
        REQUIRE_OK(mfi_value_check(table, span_of(&buf)));
        CHECK(!mfi_row_is_old(table, span_of(&buf)));
        for (size_t bit = 0; bit < key_len * 8; bit++) {
            key[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK_EQ(mfi_row_check(table, at, span_of(&buf)), JZX_ERR_CORRUPT);
            key[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        for (size_t bit = 0; bit < buf.len * 8; bit++) {
            buf.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK(mfi_row_check(table, at, span_of(&buf)) != JZX_OK ||
                  mfi_value_check(table, span_of(&buf)) != JZX_OK);
            buf.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        /* Another table, a shorter key: other rows. */
        CHECK(mfi_row_check((table + 1) % JZX_MF_TABLES, at, span_of(&buf)) != JZX_OK);
        CHECK_EQ(mfi_row_check(table, jzx_mf_blob(key, key_len - 1), span_of(&buf)),
                 JZX_ERR_CORRUPT);
    }
    mfi_buf_free(&buf);
}

/* ---- Checksums. */

static void test_the_checksum_is_crc32c_with_and_without_the_instruction(void)
{
    uint8_t bytes[64];
    CHECK_EQ(mfi_crc32c("123456789", 9), 0xE3069283);
    memset(bytes, 0, 32);
    CHECK_EQ(mfi_crc32c(bytes, 32), 0x8A9136AA);
    memset(bytes, 0xFF, 32);
    CHECK_EQ(mfi_crc32c(bytes, 32), 0x62A8AB43);
    for (uint8_t i = 0; i < 32; i++) {
        bytes[i] = i;
    }
    CHECK_EQ(mfi_crc32c(bytes, 32), 0x46DD794E);
    CHECK_EQ(mfi_crc32c(NULL, 0), 0);
    jzt_rng rng = jzt_rng_seeded();
    draw_bytes(&rng, pool, 4096);
    for (int i = 0; i < 2000; i++) {
        const uint8_t *at = pool + jzt_rng_below(&rng, 16);
        size_t len = (size_t)jzt_rng_below(&rng, 300);
        CHECK_EQ(mfi_crc32c(at, len), mfi_crc32c_table(at, len));
        size_t part = (size_t)jzt_rng_below(&rng, len + 1);
        CHECK_EQ(mfi_crc32c_more(mfi_crc32c(at, part), at + part, len - part), mfi_crc32c(at, len));
    }
}

static void test_a_stamp_is_the_checksum_of_the_body(void)
{
    jzt_rng rng = jzt_rng_seeded();
    mfi_buf buf = {0};
    for (int i = 0; i < SAMPLES; i++) {
        REQUIRE_OK(samples[i].make(&rng, NULL, &buf));
        uint32_t want = sum_of(&buf);
        CHECK_EQ(mfi_value_stamp(samples[i].table, span_of(&buf)), want);
    }
    mfi_buf_free(&buf);
    CHECK_EQ(mfi_value_stamp(JZX_MF_TABLE_UNIQUE, jzx_mf_text("12345678")),
             mfi_crc32c("12345678", 8));
    CHECK_EQ(mfi_value_stamp(JZX_MF_TABLE_JOB, jzx_mf_text("short")), mfi_crc32c("short", 5));
}

static void test_rows_of_indexes_have_their_length(void)
{
    for (uint32_t table = 0; table < JZX_MF_TABLES + 2; table++) {
        bool is_record = false;
        for (int i = 0; i < SAMPLES; i++) {
            is_record = is_record || samples[i].table == table;
        }
        bool is_id = table == JZX_MF_TABLE_UNIQUE || table == JZX_MF_TABLE_DB_NAME;
        bool is_empty = !is_record && !is_id && table < JZX_MF_TABLES;
        CHECK_EQ(mfi_value_check(table, jzx_mf_text("12345678")) == JZX_OK, is_id);
        CHECK_EQ(mfi_value_check(table, jzx_mf_text("")) == JZX_OK, is_empty);
        CHECK(mfi_value_check(table, jzx_mf_text("1234567")) != JZX_OK);
    }
}

/* ---- Lines for people. */

static void check_line(const jzx_mf_key *key, jzx_mf_span value, const char *line)
{
    mfi_buf out = {0};
    uint8_t sealed[4096];
    jzx_mf_span at = jzx_mf_blob(key->bytes, key->len);
    size_t len = mfi_row_room(key->table, value.len);
    REQUIRE(len <= sizeof sealed);
    if (value.len > 0) {
        memcpy(sealed, value.data, value.len);
    }
    mfi_row_seal(key->table, at, sealed, value.len);
    CHECK_OK(mfi_value_dump(key->table, at, jzx_mf_blob(sealed, len), &out));
    CHECK_STR((const char *)out.bytes, line);
    CHECK_EQ(strlen((const char *)out.bytes), out.len);
    mfi_buf_free(&out);
}

static void test_records_are_shown_with_all_their_fields(void)
{
    mfi_buf buf = {0};
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("a \"b\"\n"), .size_bytes = 5, .verified = 1};
    REQUIRE_OK(mfi_encode_chunk(&chunk, NULL, &buf));
    jzx_mf_key key = jzx_mf_key_chunk(1, 2);
    check_line(&key, span_of(&buf),
               "chunk db=1 chunk=2 generation=0 size_bytes=5 wal_begin=0 wal_end=0 uploaded_ms=0 "
               "purge_after_ms=0 compression=0 encrypted=0 residency=0 verified=1 "
               "file_name=\"a \\x22b\\x22\\x0a\"");
    jzx_mf_metric metric = {.sum = 0.5,
                            .min = (double)INFINITY,
                            .max = -(double)INFINITY,
                            .buckets = {1, 0, 0, 0, 0, 0, 0, 8}};
    REQUIRE_OK(mfi_encode_metric(&metric, NULL, &buf));
    key = jzx_mf_key_metric(3, 4);
    check_line(&key, span_of(&buf),
               "metric scope=3 metric=4 sum=0.5 min=inf max=-inf count=0 "
               "buckets=1,0,0,0,0,0,0,8 updated_ms=0");
    jzx_mf_key subject = jzx_mf_key_wal(7, 8);
    mfi_event event = {jzx_mf_blob(subject.bytes, subject.len), JZX_MF_TABLE_WAL, 1};
    REQUIRE_OK(mfi_encode_event(&event, NULL, &buf));
    key = mfi_key_event(5, 6);
    check_line(&key, span_of(&buf),
               "event seq=5 index=6 table=3 change=1 key=00000000000000070008 of wal db=7 shard=8");
    mfi_buf_free(&buf);
}

static void test_rows_of_indexes_are_shown_by_their_keys(void)
{
    jzx_mf_job job = {.id = 9,
                      .db = 1,
                      .kind = 2,
                      .gate_class = 3,
                      .scope = 1,
                      .priority = 200,
                      .run_at_ms = 300,
                      .key = jzx_mf_text("k1")};
    jzx_mf_span none = {0};
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_ACTIVE);
    check_line(&key, jzx_mf_blob("\0\0\0\0\0\0\0\x09", 8),
               "unique scope=1 db=1 kind=2 slot=1 key=\"k1\" -> 9");
    key = mfi_key_ready(&job);
    check_line(&key, none, "ready kind=2 priority=200 run_at=300 id=9");
    key = mfi_key_active(&job);
    check_line(&key, none, "active kind=2 scope=1 db=1 key=\"k1\" id=9");
    mfi_resource resource = mfi_resource_gate(&job);
    key = mfi_key_blocked(jzx_mf_blob(resource.bytes, resource.len), &job);
    check_line(&key, none,
               "blocked resource=g{ db=1 class=3 kind=2 } priority=200 run_at=300 id=9");
    resource = mfi_resource_unique(&job);
    key = mfi_key_blocked(jzx_mf_blob(resource.bytes, resource.len), &job);
    check_line(&key, none,
               "blocked resource=u{ scope=1 db=1 kind=2 slot=1 key=\"k1\" } priority=200 "
               "run_at=300 id=9");
    resource = mfi_resource_key_limit(&job);
    key = mfi_key_blocked(jzx_mf_blob(resource.bytes, resource.len), &job);
    check_line(&key, none,
               "blocked resource=k{ kind=2 scope=1 db=1 key=\"k1\" } priority=200 run_at=300 id=9");
    key = mfi_key_finished(JZX_MF_JOB_DEAD, 4, 5);
    check_line(&key, none, "finished state=dead finished=4 id=5");
    key.len -= 3;
    check_line(&key, none, "finished state=dead finished=4 ?=0000000000");
    key = mfi_key_name(JZX_MF_TABLE_DB_NAME, jzx_mf_text("main"));
    check_line(&key, jzx_mf_text("x"), "db_name name=\"main\" !JZX_ERR_CORRUPT 78c32991a3");
}

static void test_any_bytes_can_be_shown(void)
{
    jzt_rng rng = jzt_rng_seeded();
    mfi_buf out = {0};
    draw_bytes(&rng, pool, 4096);
    for (uint32_t i = 0; i < 30000; i++) {
        uint32_t table = i % (JZX_MF_TABLES + 1);
        jzx_mf_span key = jzx_mf_blob(pool + jzt_rng_below(&rng, 4000), jzt_rng_below(&rng, 90));
        jzx_mf_span value = jzx_mf_blob(pool, jzt_rng_below(&rng, 20));
        REQUIRE_OK(mfi_value_dump(table, key, value, &out));
        for (size_t at = 0; at < out.len; at++) {
            CHECK(out.bytes[at] >= ' ' && out.bytes[at] < 0x7F);
        }
    }
    jzx_mf_span nothing = {0};
    CHECK_OK(mfi_value_dump(JZX_MF_TABLE_BLOCKED, nothing, nothing, &out));
    mfi_buf_free(&out);
}

static void test_names_are_never_null(void)
{
    for (uint32_t i = 0; i < 300; i++) {
        CHECK(jzx_mf_table_name(i) != NULL && jzx_mf_job_state_name(i) != NULL);
    }
    CHECK_STR(jzx_mf_table_name(JZX_MF_TABLE_EVENT), "event");
    CHECK_STR(jzx_mf_table_name(JZX_MF_TABLES), "unknown");
    CHECK_STR(jzx_mf_job_state_name(JZX_MF_JOB_SUPERSEDED), "superseded");
    CHECK_STR(jzx_mf_job_state_name(0), "unknown");
    CHECK_EQ(jzx_mf_text(NULL).len, 0);
    CHECK_EQ(jzx_mf_text("abc").len, 3);
}

#define T(name)                                                                                    \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    T(records_of_schema_0_are_read_as_new_ones),
    T(the_bytes_of_every_version_are_what_they_always_were),
    T(records_of_schema_1_are_read_and_become_new_ones),
    T(no_flipped_bit_of_a_key_goes_unseen),
    T(the_checksum_is_crc32c_with_and_without_the_instruction),
    T(a_stamp_is_the_checksum_of_the_body),
    T(rows_of_indexes_have_their_length),
    T(records_are_shown_with_all_their_fields),
    T(rows_of_indexes_are_shown_by_their_keys),
    T(any_bytes_can_be_shown),
    T(names_are_never_null),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
