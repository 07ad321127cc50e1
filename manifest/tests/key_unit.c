/* Goal: memcmp orders keys as the numbers in them are ordered, keys fit, and what is looked for by
 * a prefix is found by it. Method: random tuples around the values where a byte overflows. */
#include "check.h"
#include "key.h"

#include <stdbool.h>
#include <string.h>

enum { ROUNDS = 20000 };

/* Around 0, 255, 256, 65536, 2^32 and the end, where a wrong byte order shows. */
static uint64_t draw(jzt_rng *rng, uint64_t max)
{
    static const uint64_t edges[] = {
        0,     1,     2,          254,        255,        256,        257,           65535,
        65536, 70000, UINT32_MAX, 1ull << 32, 1ull << 56, UINT64_MAX, UINT64_MAX - 1};
    uint64_t v = jzt_rng_below(rng, 4) == 0
                     ? jzt_rng_next(rng) >> jzt_rng_below(rng, 64)
                     : edges[jzt_rng_below(rng, sizeof edges / sizeof edges[0])];
    return max == UINT64_MAX ? v : v % (max + 1);
}

static int sign(long v)
{
    return (v > 0) - (v < 0);
}

/* As LMDB compares. */
static int order_of(const jzx_mf_key *a, const jzx_mf_key *b)
{
    uint32_t len = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->bytes, b->bytes, len);
    return order != 0 ? sign(order) : sign((long)a->len - (long)b->len);
}

static int compare(const uint64_t *a, const uint64_t *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

/* ---- Keys of a few numbers. */

typedef struct shape {
    uint32_t table;
    uint32_t len;
    size_t parts;
    uint64_t max[4];
    jzx_mf_key (*make)(const uint64_t *v);
} shape;

static jzx_mf_key make_db(const uint64_t *v)
{
    return jzx_mf_key_db(v[0]);
}
static jzx_mf_key make_wal(const uint64_t *v)
{
    return jzx_mf_key_wal(v[0], (uint16_t)v[1]);
}
static jzx_mf_key make_chunk(const uint64_t *v)
{
    return jzx_mf_key_chunk(v[0], v[1]);
}
static jzx_mf_key make_job(const uint64_t *v)
{
    return jzx_mf_key_job(v[0]);
}
static jzx_mf_key make_gate(const uint64_t *v)
{
    return jzx_mf_key_gate(v[0], (uint16_t)v[1]);
}
static jzx_mf_key make_metric(const uint64_t *v)
{
    return jzx_mf_key_metric(v[0], (uint32_t)v[1]);
}
static jzx_mf_key make_generation(const uint64_t *v)
{
    return jzx_mf_key_generation((uint32_t)v[0]);
}
static jzx_mf_key make_kind(const uint64_t *v)
{
    return jzx_mf_key_kind((uint16_t)v[0]);
}
static jzx_mf_key make_scheduled(const uint64_t *v)
{
    return mfi_key_scheduled(v[0], v[1]);
}
static jzx_mf_key make_lease(const uint64_t *v)
{
    return mfi_key_lease(v[0], v[1]);
}
static jzx_mf_key make_finished(const uint64_t *v)
{
    return mfi_key_finished((uint8_t)v[0], v[1], v[2]);
}
static jzx_mf_key make_dependency(const uint64_t *v)
{
    return mfi_key_dependency(v[0], v[1]);
}
static jzx_mf_key make_event(const uint64_t *v)
{
    return mfi_key_event(v[0], (uint32_t)v[1]);
}
static jzx_mf_key make_ready(const uint64_t *v)
{
    /* Larger priorities come first. */
    jzx_mf_job job = {
        .kind = (uint16_t)v[0], .priority = (uint8_t)(255 - v[1]), .run_at_ms = v[2], .id = v[3]};
    return mfi_key_ready(&job);
}

static const shape shapes[] = {
    {JZX_MF_TABLE_DB, 8, 1, {UINT64_MAX}, make_db},
    {JZX_MF_TABLE_WAL, 10, 2, {UINT64_MAX, UINT16_MAX}, make_wal},
    {JZX_MF_TABLE_CHUNK, 16, 2, {UINT64_MAX, UINT64_MAX}, make_chunk},
    {JZX_MF_TABLE_JOB, 8, 1, {UINT64_MAX}, make_job},
    {JZX_MF_TABLE_GATE, 10, 2, {UINT64_MAX, UINT16_MAX}, make_gate},
    {JZX_MF_TABLE_METRIC, 12, 2, {UINT64_MAX, UINT32_MAX}, make_metric},
    {JZX_MF_TABLE_GENERATION, 4, 1, {UINT32_MAX}, make_generation},
    {JZX_MF_TABLE_KIND, 2, 1, {UINT16_MAX}, make_kind},
    {JZX_MF_TABLE_SCHEDULED, 16, 2, {UINT64_MAX, UINT64_MAX}, make_scheduled},
    {JZX_MF_TABLE_LEASE, 16, 2, {UINT64_MAX, UINT64_MAX}, make_lease},
    {JZX_MF_TABLE_FINISHED, 17, 3, {UINT8_MAX, UINT64_MAX, UINT64_MAX}, make_finished},
    {JZX_MF_TABLE_DEPENDENCY, 16, 2, {UINT64_MAX, UINT64_MAX}, make_dependency},
    {JZX_MF_TABLE_EVENT, 12, 2, {UINT64_MAX, UINT32_MAX}, make_event},
    {JZX_MF_TABLE_READY, 19, 4, {UINT16_MAX, UINT8_MAX, UINT64_MAX, UINT64_MAX}, make_ready},
};

static void test_memcmp_orders_keys_as_their_numbers_are(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int i = 0; i < ROUNDS; i++) {
        const shape *s = &shapes[(size_t)i % (sizeof shapes / sizeof shapes[0])];
        uint64_t a[4] = {0}, b[4] = {0};
        for (size_t k = 0; k < s->parts; k++) {
            a[k] = draw(&rng, s->max[k]);
            b[k] = jzt_rng_below(&rng, 2) == 0 ? a[k] : draw(&rng, s->max[k]);
        }
        jzx_mf_key key_a = s->make(a), key_b = s->make(b);
        CHECK_EQ(key_a.len, s->len);
        CHECK_EQ(key_a.table, s->table);
        CHECK_EQ(order_of(&key_a, &key_b), compare(a, b, s->parts));
    }
}

/* ---- Keys of jobs, with a text in them. */

static char letters[256];

static jzx_mf_job draw_job(jzt_rng *rng)
{
    memset(letters, 'x', sizeof letters);
    jzx_mf_job job = {.id = draw(rng, UINT64_MAX),
                      .db = draw(rng, UINT64_MAX),
                      .run_at_ms = draw(rng, UINT64_MAX),
                      .kind = (uint16_t)draw(rng, UINT16_MAX),
                      .gate_class = (uint16_t)draw(rng, UINT16_MAX),
                      .priority = (uint8_t)draw(rng, UINT8_MAX),
                      .scope = (uint8_t)jzt_rng_below(rng, 2),
                      .key = jzx_mf_blob(letters, jzt_rng_below(rng, JZX_MF_KEY_MAX + 1))};
    return job;
}

static bool begins_with(const jzx_mf_key *key, const void *prefix, size_t len)
{
    return key->len >= len && memcmp(key->bytes, prefix, len) == 0;
}

static void test_the_longest_keys_fit_and_their_ends_name_the_job(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int i = 0; i < ROUNDS; i++) {
        jzx_mf_job job = draw_job(&rng);
        jzx_mf_key active = mfi_key_active(&job);
        jzx_mf_key prefix = mfi_key_active_prefix(&job);
        jzx_mf_key kind = mfi_key_active_kind(job.kind);
        CHECK_EQ(active.len, 20 + job.key.len);
        CHECK_EQ(prefix.len + 8, active.len);
        CHECK(begins_with(&active, prefix.bytes, prefix.len));
        CHECK(begins_with(&active, kind.bytes, kind.len));
        CHECK_EQ(mfi_key_tail_id(active.bytes, active.len), job.id);
        jzx_mf_key ready = mfi_key_ready(&job);
        kind = mfi_key_ready_kind(job.kind);
        CHECK(begins_with(&ready, kind.bytes, kind.len));
        CHECK_EQ(mfi_key_tail_id(ready.bytes, ready.len), job.id);
        mfi_resource resources[] = {mfi_resource_unique(&job), mfi_resource_key_limit(&job),
                                    mfi_resource_gate(&job)};
        jzx_mf_key gate = jzx_mf_key_gate(job.db, job.gate_class);
        jzx_mf_key of_kind = jzx_mf_key_kind(job.kind);
        CHECK(memcmp(resources[2].bytes + 2, gate.bytes, gate.len) == 0);
        CHECK(memcmp(resources[2].bytes + 2 + gate.len, of_kind.bytes, 2) == 0);
        for (int k = 0; k < 3; k++) {
            const mfi_resource *r = &resources[k];
            CHECK(r->len <= sizeof r->bytes && r->bytes[0] == r->len - 1);
            CHECK_EQ(r->bytes[1], "ukg"[k]);
            jzx_mf_key blocked = mfi_key_blocked(jzx_mf_blob(r->bytes, r->len), &job);
            CHECK_EQ(blocked.len, r->len + 17);
            jzx_mf_span back = mfi_resource_of(&blocked);
            CHECK(back.len == r->len && memcmp(back.data, r->bytes, r->len) == 0);
            CHECK_EQ(mfi_key_tail_id(blocked.bytes, blocked.len), job.id);
        }
    }
}

/* Who waits for one thing must not be found by somebody who looks for another. */
static void test_no_prefix_of_one_resource_is_a_prefix_of_another(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int i = 0; i < ROUNDS; i++) {
        jzx_mf_job a = draw_job(&rng), b = draw_job(&rng);
        b.scope = a.scope;
        b.db = a.db;
        b.kind = a.kind;
        mfi_resource of_a = mfi_resource_unique(&a), of_b = mfi_resource_unique(&b);
        jzx_mf_key blocked = mfi_key_blocked(jzx_mf_blob(of_b.bytes, of_b.len), &b);
        CHECK_EQ(begins_with(&blocked, of_a.bytes, of_a.len), a.key.len == b.key.len);
        jzx_mf_key prefix = mfi_key_active_prefix(&a);
        jzx_mf_key active = mfi_key_active(&b);
        CHECK_EQ(begins_with(&active, prefix.bytes, prefix.len), a.key.len == b.key.len);
    }
}

static void test_unique_keys_differ_in_each_of_their_parts(void)
{
    jzx_mf_job job = {.scope = 1, .db = 256, .kind = 7, .key = jzx_mf_text("k")};
    jzx_mf_key key = mfi_key_unique(&job, MFI_SLOT_QUEUED);
    CHECK_EQ(key.len, 13);
    CHECK_EQ(key.table, JZX_MF_TABLE_UNIQUE);
    jzx_mf_job others[5];
    for (int i = 0; i < 5; i++) {
        others[i] = job;
    }
    others[0].scope = 0;
    others[1].db = 1;
    others[2].kind = 8;
    others[3].key = jzx_mf_text("l");
    others[4].key = jzx_mf_text("");
    for (int i = 0; i < 5; i++) {
        jzx_mf_key other = mfi_key_unique(&others[i], MFI_SLOT_QUEUED);
        CHECK(order_of(&key, &other) != 0);
    }
    jzx_mf_key other = mfi_key_unique(&job, MFI_SLOT_ACTIVE);
    CHECK(order_of(&key, &other) < 0);
}

static void test_too_long_texts_do_not_overflow(void)
{
    memset(letters, 'x', sizeof letters);
    jzx_mf_span huge = jzx_mf_blob(letters, sizeof letters);
    jzx_mf_job job = {.key = huge};
    CHECK_EQ(mfi_key_name(JZX_MF_TABLE_CRON, huge).len, JZX_MF_KEY_BYTES);
    CHECK_EQ(mfi_key_active(&job).len, 20 + JZX_MF_KEY_MAX);
    CHECK(mfi_resource_key_limit(&job).len <= 96);
    CHECK_EQ(mfi_key_blocked(huge, &job).len, 96 + 17);
    jzx_mf_key broken = {.bytes = {200}, .len = 3};
    CHECK_EQ(mfi_resource_of(&broken).len, 3);
    broken.len = 0;
    CHECK_EQ(mfi_resource_of(&broken).len, 0);
    CHECK_EQ(mfi_key_tail_id("1234567", 7), 0);
}

/* ---- Materials. */

static void check_hash(const char *text, size_t repeat, const char *hex)
{
    static char bytes[1024];
    size_t len = strlen(text);
    for (size_t i = 0; i < repeat; i++) {
        memcpy(bytes + i * len, text, len);
    }
    jzx_mf_key key = jzx_mf_key_material(jzx_mf_blob(bytes, len * repeat));
    char shown[33];
    for (uint32_t i = 0; i < 16; i++) {
        shown[2 * i] = "0123456789abcdef"[key.bytes[i] >> 4];
        shown[2 * i + 1] = "0123456789abcdef"[key.bytes[i] & 15];
    }
    shown[32] = 0;
    CHECK_EQ(key.len, 16);
    CHECK_STR(shown, hex);
}

static void test_a_material_is_found_by_what_b2sum_says(void)
{
    check_hash("a", 0, "cae66941d9efbd404e4d88758ea67670");
    check_hash("a", 3, "ee2e9220cc929996830515e6ba304f76");
    check_hash("a", 128, "1271d28e731afb57bdfba6bdaf3501be");
    check_hash("a", 129, "68b7bafbad5055c4ebe6eb170a0f8524");
    check_hash("a", 256, "2dbe331c95d600bb74dcd669f0618bd7");
    check_hash("a", 300, "ccc6f168e83a9fcfde99f7d9ddeeae49");
}

static void test_materials_of_a_status_are_ordered_by_time(void)
{
    jzt_rng rng = jzt_rng_seeded();
    jzx_mf_key hash = jzx_mf_key_material(jzx_mf_text("m"));
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t a[] = {draw(&rng, UINT8_MAX), draw(&rng, UINT64_MAX)};
        uint64_t b[] = {draw(&rng, UINT8_MAX), draw(&rng, UINT64_MAX)};
        jzx_mf_key key_a = mfi_key_material_status((uint8_t)a[0], a[1], &hash);
        jzx_mf_key key_b = mfi_key_material_status((uint8_t)b[0], b[1], &hash);
        CHECK_EQ(key_a.len, 25);
        CHECK_EQ(order_of(&key_a, &key_b), compare(a, b, 2));
    }
}

#define T(name)                                                                                    \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    T(memcmp_orders_keys_as_their_numbers_are),
    T(the_longest_keys_fit_and_their_ends_name_the_job),
    T(no_prefix_of_one_resource_is_a_prefix_of_another),
    T(unique_keys_differ_in_each_of_their_parts),
    T(too_long_texts_do_not_overflow),
    T(a_material_is_found_by_what_b2sum_says),
    T(materials_of_a_status_are_ordered_by_time),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
