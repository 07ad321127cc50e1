/* Goal: a record is what was stored, or an error; never something else, and nothing is read that is
 * not there. Method: everything comes from schema.def, so a new record or field is tested at once:
 * random records go there and back, bytes are cut, flipped, doubled and extended with a right
 * checksum. */
#include "codec_kit.h"

static void test_records_come_back_as_they_were(void)
{
    jzt_rng rng = jzt_rng_seeded();
    draw_bytes(&rng, pool, 4096);
    for (int i = 0; i < SAMPLES * ROUNDS; i++) {
        samples[i % SAMPLES].trip(&rng);
    }
}

static void test_a_cut_value_is_corrupt_wherever_it_is_cut(void)
{
    jzt_rng rng = jzt_rng_seeded();
    mfi_buf buf = {0};
    for (int i = 0; i < SAMPLES * 3; i++) {
        const sample *s = &samples[i % SAMPLES];
        REQUIRE_OK(s->make(&rng, NULL, &buf));
        for (size_t len = 0; len < buf.len; len++) {
            CHECK_EQ(check_copy(s->table, buf.bytes, len), JZX_ERR_CORRUPT);
        }
    }
    mfi_buf_free(&buf);
}

static void test_no_flipped_bit_goes_unseen(void)
{
    jzt_rng rng = jzt_rng_seeded();
    mfi_buf buf = {0};
    for (int i = 0; i < SAMPLES; i++) {
        REQUIRE_OK(samples[i].make(&rng, NULL, &buf));
        for (size_t bit = 0; bit < buf.len * 8; bit++) {
            buf.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            jzx_err err = mfi_value_check(samples[i].table, span_of(&buf));
            bool is_version = bit >= 16 && bit < 32;
            bool is_of_key = bit >= 64 && bit < 96; /* looked at by whoever knows the key */
            CHECK(is_of_key
                      ? err == JZX_OK
                      : err == JZX_ERR_CORRUPT || (is_version && err == JZX_ERR_NEWER_SCHEMA));
            buf.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        CHECK_OK(mfi_value_check(samples[i].table, span_of(&buf)));
    }
    mfi_buf_free(&buf);
}

static void test_random_bytes_with_a_right_checksum_never_crash(void)
{
    jzt_rng rng = jzt_rng_seeded();
    mfi_buf buf = {0};
    for (int i = 0; i < SAMPLES * ROUNDS; i++) {
        const sample *s = &samples[i % SAMPLES];
        REQUIRE_OK(s->make(&rng, NULL, &buf));
        for (int k = 0; k < 3; k++) {
            buf.bytes[12 + jzt_rng_below(&rng, buf.len - 12)] = (uint8_t)jzt_rng_next(&rng);
        }
        buf.len -= (size_t)jzt_rng_below(&rng, buf.len - HEAD + 1);
        stamp(&buf);
        (void)check_copy(s->table, buf.bytes, buf.len);
    }
    mfi_buf_free(&buf);
}

static void test_versions_types_and_old_records_without_a_past_are_told_apart(void)
{
    jzt_rng rng = jzt_rng_seeded();
    mfi_buf buf = {0};
    for (int i = 0; i < SAMPLES; i++) {
        const sample *s = &samples[i];
        REQUIRE_OK(s->make(&rng, NULL, &buf));
        CHECK_EQ(mfi_get_le16(buf.bytes), s->table + 1);
        CHECK_EQ(mfi_get_le16(buf.bytes + 2), s->version);
        mfi_put_le16(buf.bytes + 2, (uint16_t)(s->version + 1));
        stamp(&buf);
        CHECK_EQ(mfi_value_check(s->table, span_of(&buf)), JZX_ERR_NEWER_SCHEMA);
        buf.bytes[buf.len - 1] ^= 1; /* a newer value must be whole too */
        CHECK_EQ(mfi_value_check(s->table, span_of(&buf)), JZX_ERR_CORRUPT);
        REQUIRE_OK(s->make(&rng, NULL, &buf));
        mfi_put_le16(buf.bytes, (uint16_t)s->table);
        CHECK_EQ(mfi_value_check(s->table, span_of(&buf)), JZX_ERR_CORRUPT);
        REQUIRE_OK(s->make(&rng, NULL, &buf));
        mfi_put_le16(buf.bytes + 2, 0);
        CHECK_EQ(mfi_value_check(s->table, span_of(&buf)), JZX_ERR_CORRUPT);
    }
    mfi_buf_free(&buf);
}

/* ---- Other lengths of the fixed part. */

static void test_a_short_fixed_part_ends_between_fields_and_the_rest_is_zero(void)
{
    jzx_mf_wal record = {.last_sealed_segment = 1,
                         .last_applied_lsn = 2,
                         .last_checkpoint_generation = 3,
                         .last_success_ms = 4,
                         .errored_since_ms = 5,
                         .restart_epoch = 6};
    mfi_buf buf = {0};
    REQUIRE_OK(mfi_encode_wal(&record, NULL, &buf));
    REQUIRE_EQ(fixed_of(&buf), 44);
    for (size_t fixed = 0; fixed < 44; fixed++) {
        uint8_t *block = malloc(HEAD + fixed);
        REQUIRE(block != NULL);
        mfi_buf cut = {block, HEAD + fixed, HEAD + fixed};
        memcpy(block, buf.bytes, cut.len);
        mfi_put_le16(block + HEAD - 2, (uint16_t)fixed);
        stamp(&cut);
        jzx_mf_wal back = {.reserved = 77};
        jzx_err err = mfi_decode_wal(span_of(&cut), &back, NULL);
        CHECK_EQ(err, fixed % 8 == 0 ? JZX_OK : JZX_ERR_CORRUPT);
        CHECK_EQ(back.reserved, err == JZX_OK ? 0 : 77); /* an error leaves it as it was */
        if (err == JZX_OK) {
            CHECK_EQ(back.last_sealed_segment, fixed >= 8 ? 1 : 0);
            CHECK_EQ(back.last_success_ms, fixed >= 32 ? 4 : 0);
            CHECK_EQ(back.errored_since_ms, fixed >= 40 ? 5 : 0);
            CHECK_EQ(back.restart_epoch, 0);
        }
        free(block);
    }
    mfi_buf_free(&buf);
}

static void test_what_a_newer_library_wrote_survives_a_rewrite(void)
{
    static const uint8_t fields[] = {0xA1, 0xA2, 0xA3};
    static const uint8_t tlv[] = {200, 0, 3, 0, 0, 0, 'n', 'e', 'w'};
    static const uint8_t empty[] = {201, 7, 0, 0, 0, 0};
    jzt_rng rng = jzt_rng_seeded();
    mfi_buf buf = {0}, again = {0};
    for (int i = 0; i < SAMPLES * 20; i++) {
        const sample *s = &samples[i % SAMPLES];
        REQUIRE_OK(s->make(&rng, NULL, &buf));
        size_t fixed = fixed_of(&buf);
        insert(&buf, HEAD + fixed, fields, sizeof fields);
        mfi_put_le16(buf.bytes + HEAD - 2, (uint16_t)(fixed + sizeof fields));
        insert(&buf, buf.len, tlv, sizeof tlv);
        insert(&buf, buf.len, empty, sizeof empty);
        stamp(&buf);
        REQUIRE_OK(mfi_value_renew(s->table, span_of(&buf), &again));
        CHECK(same_span(span_of(&buf), span_of(&again)));
        /* A put with other fields keeps them as well. */
        mfi_rest rest;
        REQUIRE_OK(mfi_value_rest(s->table, span_of(&buf), &rest));
        REQUIRE_OK(s->make(&rng, &rest, &again));
        CHECK(memcmp(again.bytes + HEAD + fixed, fields, sizeof fields) == 0);
        CHECK(memcmp(again.bytes + again.len - sizeof empty - sizeof tlv, tlv, sizeof tlv) == 0);
        CHECK(memcmp(again.bytes + again.len - sizeof empty, empty, sizeof empty) == 0);
        CHECK_OK(mfi_value_check(s->table, span_of(&again)));
    }
    mfi_buf_free(&buf);
    mfi_buf_free(&again);
}

/* ---- TLVs. */

static jzx_err kind_with(const void *tlvs, size_t len, jzx_mf_kind *out)
{
    jzx_mf_kind record = {.limit = 9};
    mfi_buf buf = {0};
    REQUIRE_OK(mfi_encode_kind(&record, NULL, &buf));
    insert(&buf, buf.len, tlvs, len);
    stamp(&buf);
    jzx_err err = check_copy(JZX_MF_TABLE_KIND, buf.bytes, buf.len);
    jzx_mf_kind ignored;
    CHECK_EQ(mfi_decode_kind(span_of(&buf), out != NULL ? out : &ignored, NULL), err);
    mfi_buf_free(&buf);
    return err;
}

static void test_tlvs_that_do_not_add_up_are_corrupt(void)
{
    static const uint8_t name[] = {1, 0, 2, 0, 0, 0, 'a', 'b'};
    static const uint8_t twice[] = {1, 0, 1, 0, 0, 0, 'a', 1, 0, 1, 0, 0, 0, 'b'};
    static const uint8_t twice_empty[] = {1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 'b'};
    static const uint8_t unknown_twice[] = {9, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0};
    static const uint8_t huge[] = {1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 'a'};
    uint8_t longest[6 + JZX_MF_NAME_MAX + 1] = {1, 0, JZX_MF_NAME_MAX, 0, 0, 0};
    CHECK_OK(kind_with(name, sizeof name, NULL));
    for (size_t len = 1; len < sizeof name; len++) {
        CHECK_EQ(kind_with(name, len, NULL), JZX_ERR_CORRUPT);
    }
    CHECK_EQ(kind_with(twice, sizeof twice, NULL), JZX_ERR_CORRUPT);
    CHECK_EQ(kind_with(twice_empty, sizeof twice_empty, NULL), JZX_ERR_CORRUPT);
    CHECK_OK(kind_with(unknown_twice, sizeof unknown_twice, NULL));
    CHECK_EQ(kind_with(huge, sizeof huge, NULL), JZX_ERR_CORRUPT);
    CHECK_OK(kind_with(longest, sizeof longest - 1, NULL));
    longest[2]++;
    CHECK_EQ(kind_with(longest, sizeof longest, NULL), JZX_ERR_CORRUPT);
}

/* A field that somebody adds to a struct and forgets here would be lost without a word. */
static void test_every_field_of_every_struct_is_stored(void)
{
    static const struct {
        const char *name;
        size_t bytes;
    } not_stored[] = {
        /* `reserved`, padding, and the id of a job, which is its key. */
        {"meta", 4}, {"wal", 4},  {"chunk", 4}, {"job", 8 + 1},
        {"gate", 4}, {"kind", 5}, {"cron", 1},  {"material", 3},
    };
    static const struct {
        const char *name;
        size_t size, stored;
    } sizes[] = {
#define NO_OLD
#define RECORD(name, type, table, version, older) {#name, sizeof(type), 0
#define FIXED(field, size) +(size)
#define TLV(tag, field, max) +sizeof(jzx_mf_span)
#define END(name)                                                                                  \
    }                                                                                              \
    ,
#include "schema.def"
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t stored = sizes[i].stored;
        for (size_t k = 0; k < sizeof not_stored / sizeof not_stored[0]; k++) {
            stored += strcmp(sizes[i].name, not_stored[k].name) == 0 ? not_stored[k].bytes : 0;
        }
        if (stored != sizes[i].size) {
            printf("    %s\n", sizes[i].name);
        }
        CHECK_EQ(stored, sizes[i].size);
    }
}

static void test_a_text_over_its_limit_is_not_encoded(void)
{
    mfi_buf buf = {0};
    jzx_mf_job job = {.key = jzx_mf_blob(pool, JZX_MF_KEY_MAX),
                      .payload = jzx_mf_blob(pool, JZX_MF_PAYLOAD_MAX),
                      .error = jzx_mf_blob(pool, JZX_MF_TEXT_MAX)};
    REQUIRE_OK(mfi_encode_job(&job, NULL, &buf));
    CHECK_OK(mfi_value_check(JZX_MF_TABLE_JOB, span_of(&buf)));
    size_t before = buf.len;
    job.payload.len++;
    CHECK_EQ(mfi_encode_job(&job, NULL, &buf), JZX_ERR_TOO_BIG);
    job.payload.len--;
    job.key.len++;
    CHECK_EQ(mfi_encode_job(&job, NULL, &buf), JZX_ERR_TOO_BIG);
    job.key.len--;
    job.error.len++;
    CHECK_EQ(mfi_encode_job(&job, NULL, &buf), JZX_ERR_TOO_BIG);
    CHECK_EQ(buf.len, before);
    mfi_buf_free(&buf);
}

static void test_empty_texts_and_the_id_of_a_job_take_no_room(void)
{
    mfi_buf buf = {0};
    jzx_mf_job job = {.id = 77, .key = jzx_mf_text("")};
    REQUIRE_OK(mfi_encode_job(&job, NULL, &buf));
    CHECK_EQ(buf.len, HEAD + fixed_of(&buf));
    jzx_mf_job back = {.id = 1};
    CHECK_OK(mfi_decode_job(span_of(&buf), &back, NULL));
    CHECK_EQ(back.id, 0);
    mfi_buf_free(&buf);
}

#define T(name)                                                                                    \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    T(records_come_back_as_they_were),
    T(a_cut_value_is_corrupt_wherever_it_is_cut),
    T(no_flipped_bit_goes_unseen),
    T(random_bytes_with_a_right_checksum_never_crash),
    T(versions_types_and_old_records_without_a_past_are_told_apart),
    T(a_short_fixed_part_ends_between_fields_and_the_rest_is_zero),
    T(what_a_newer_library_wrote_survives_a_rewrite),
    T(tlvs_that_do_not_add_up_are_corrupt),
    T(every_field_of_every_struct_is_stored),
    T(a_text_over_its_limit_is_not_encoded),
    T(empty_texts_and_the_id_of_a_job_take_no_room),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
