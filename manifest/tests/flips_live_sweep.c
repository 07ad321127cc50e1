/* Goal: a bit of a row or of a separator that flips while the file is open, in memory or on the
 * disk under it, gives no wrong answer in silence to those who read and write (issue 15, section
 * 3). Method: LMDB's map shows the file, so a byte that is written to it changes under an open
 * manifest. Every key of every leaf and branch is damaged in one bit after the other, and values at
 * random; each time every question is asked, and the writer is given work. What LMDB needs to find
 * its way (page heads, offsets, lengths, page numbers) is not damaged here: it trusts them while a
 * file is open, and the walk at the next open looks at them (docs/internals/adr/0021, 0024). */
#include "flip_kit.h"

#include "pages_steps.h"

enum { PLACES = 65536, VALUE_FLIPS = 1500, PAGE = 4096 };
enum { STEP = JZT_SANITIZED ? 35 : 1 }; /* a sanitizer is slow: not every key. Odd: every bit */

static flip_world world;
static flip_answers truth, said;
static unsigned silent, noticed;

/* Bytes of the file that belong to keys, or to values, of pages that the last commit uses. */
typedef struct places {
    uint32_t at[PLACES];
    size_t count;
} places;
static places leaf_keys, branch_keys, values;

static void add(places *to, size_t at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        REQUIRE(to->count < PLACES);
        to->at[to->count++] = (uint32_t)(at + i);
    }
}

static void take_tree(uint64_t root, unsigned depth);

static void take_leaf(const uint8_t *page)
{
    for (unsigned i = 0; i < nodes_of(page); i++) {
        const uint8_t *node = node_at(page, i);
        unsigned flags = get16(node + 4);
        if (flags == NODE_TABLE) {
            mfi_pages_db db = mfi_pages_db_at(data_of(node));
            if (db.root != NO_ROOT) {
                take_tree(db.root, db.depth);
            }
            continue;
        }
        add(&leaf_keys, (size_t)(key_of(node).bytes - world.bytes), key_of(node).len);
        if (flags == 0) {
            add(&values, (size_t)(data_of(node) - world.bytes), data_len(node));
        } else {
            add(&values, get64(data_of(node)) * PAGE + PAGE_HEAD, data_len(node));
        }
    }
}

static void take_tree(uint64_t root, unsigned depth)
{
    const uint8_t *page = world.bytes + root * PAGE;
    if (depth == 1) {
        take_leaf(page);
        return;
    }
    for (unsigned i = 0; i < nodes_of(page); i++) {
        const uint8_t *node = node_at(page, i);
        if (i > 0) { /* the first key of a branch means nothing */
            add(&branch_keys, (size_t)(key_of(node).bytes - world.bytes), key_of(node).len);
        }
        take_tree(child_of(node), depth - 1);
    }
}

static void find_places(void)
{
    mfi_pages_meta meta;
    char text[MFI_PAGES_TEXT];
    REQUIRE_EQ(mfi_pages_size_here(), PAGE);
    REQUIRE_OK(mfi_pages_head(world.fd, &meta, text));
    take_tree(meta.main_db.root, meta.main_db.depth);
    CHECK(leaf_keys.count > 2000 && branch_keys.count > 30 && values.count > 10000);
}

static void judge(uint64_t bit, const char *what)
{
    const flip_answer *wrong = flip_wrong(&truth, &said);
    bool told = false;
    for (size_t i = 0; i < said.count; i++) {
        told |= flip_is_notice(said.list[i].err);
    }
    noticed += told;
    if (wrong != NULL && silent++ < 10) {
        printf("    bit %llu of a %s: %s %llu %llu says %s\n", (unsigned long long)bit, what,
               wrong->what, (unsigned long long)wrong->a, (unsigned long long)wrong->b,
               jzx_err_name(wrong->err));
    }
}

static void read_under(jzx_mf *mf, uint64_t bit, const char *what)
{
    flip_bit(&world, bit);
    flip_ask(mf, &said);
    judge(bit, what);
    REQUIRE_EQ(pwrite(world.fd, world.bytes + bit / 8, 1, (off_t)(bit / 8)), 1);
}

static jzx_mf *open_for_reading(void)
{
    jzx_mf *mf = NULL;
    flip_world_make(&world);
    silent = noticed = 0;
    leaf_keys.count = branch_keys.count = values.count = 0;
    find_places();
    REQUIRE_OK(flip_open(&world, JZX_MF_READONLY, &mf, NULL));
    flip_ask(mf, &truth);
    return mf;
}

static void test_no_key_that_flips_under_a_reader_gives_a_wrong_answer_in_silence(void)
{
    jzx_mf *mf = open_for_reading();
    jzt_rng rng = jzt_rng_seeded();
    size_t step = flip_step(STEP);
    for (size_t i = 0; i < leaf_keys.count; i += step) {
        read_under(mf, leaf_keys.at[i] * UINT64_C(8) + jzt_rng_below(&rng, 8), "key");
    }
    size_t flips = (leaf_keys.count + step - 1) / step;
    CHECK_EQ(noticed, flips); /* every row is looked at */
    CHECK_EQ(silent, 0);
    for (size_t i = 0; i < branch_keys.count * 8; i += step) {
        read_under(mf, branch_keys.at[i / 8] * UINT64_C(8) + i % 8, "separator");
    }
    CHECK_EQ(silent, 0);
    CHECK(noticed > flips);
    REQUIRE_OK(jzx_mf_close(mf, 0));
    flip_world_drop(&world);
}

static void test_no_value_that_flips_under_a_reader_gives_a_wrong_answer_in_silence(void)
{
    jzx_mf *mf = open_for_reading();
    jzt_rng rng = jzt_rng_seeded();
    unsigned flips = VALUE_FLIPS / flip_step(STEP);
    for (unsigned i = 0; i < flips; i++) {
        uint64_t at = values.at[jzt_rng_below(&rng, values.count)];
        read_under(mf, at * 8 + jzt_rng_below(&rng, 8), "value");
    }
    CHECK_EQ(silent, 0);
    CHECK_EQ(noticed, flips);
    REQUIRE_OK(jzx_mf_close(mf, 0));
    flip_world_drop(&world);
}

/* ---- A writer: what it was given while something was damaged is in the file as if nothing had
 * been, or was refused; and nothing else was lost. */

static flip_reply give_work(jzx_mf *mf, uint64_t number)
{
    jzx_mf_txn *txn = mft_begin(mf);
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("live"), .wal_end = number};
    CHECK_OK(jzx_mf_chunk_put(txn, 1 + number % 3, 2 * (number % CHUNKS) + 1, &chunk));
    CHECK_OK(jzx_mf_chunk_del(txn, 1 + number % 3, 2 * ((number + 3) % CHUNKS) + 1));
    CHECK_OK(jzx_mf_generation_bump(txn, (uint32_t)(1 + number % (DBS + 3)), 1));
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.max = 1, .lease_ms = 600000}));
    return flip_commit(&world, txn);
}

static void test_no_key_that_flips_under_a_writer_lets_it_do_the_wrong_thing(void)
{
    flip_world_make(&world);
    leaf_keys.count = branch_keys.count = values.count = 0;
    find_places();
    jzt_rng rng = jzt_rng_seeded();
    static flip_answers done, should;
    unsigned refused = 0, worked = 0;
    for (unsigned i = 0; i < 600; i++) {
        const places *from = i % 2 == 0 ? &branch_keys : &leaf_keys;
        uint64_t bit = from->at[jzt_rng_below(&rng, from->count)] * UINT64_C(8);
        bit += jzt_rng_below(&rng, 8);
        flip_reply reply[2];
        for (int damaged = 0; damaged < 2; damaged++) {
            jzx_mf *mf = NULL;
            flip_restore(&world);
            REQUIRE_OK(flip_open(&world, 0, &mf, NULL));
            if (damaged) {
                flip_bit(&world, bit);
            }
            reply[damaged] = give_work(mf, i);
            if (damaged) { /* pages that were not written again have it still */
                uint8_t now;
                REQUIRE_EQ(pread(world.fd, &now, 1, (off_t)(bit / 8)), 1);
                bool is_ours = now == (world.bytes[bit / 8] ^ 1u << bit % 8);
                now = is_ours ? world.bytes[bit / 8] : now;
                REQUIRE_EQ(pwrite(world.fd, &now, 1, (off_t)(bit / 8)), 1);
            }
            flip_ask(mf, damaged ? &done : &should);
            REQUIRE_OK(jzx_mf_close(mf, 0));
        }
        if (flip_is_notice(reply[1].err)) {
            refused++;
            continue;
        }
        worked++;
        CHECK_EQ(reply[1].err, reply[0].err);
        CHECK_EQ(reply[1].job[0], reply[0].job[0]);
        const flip_answer *wrong = flip_wrong(&should, &done);
        if (wrong != NULL) {
            printf("    bit %llu: %s %llu %llu says %s\n", (unsigned long long)bit, wrong->what,
                   (unsigned long long)wrong->a, (unsigned long long)wrong->b,
                   jzx_err_name(wrong->err));
        }
        CHECK(wrong == NULL);
    }
    CHECK(refused > 0 && worked > 0);
    flip_world_drop(&world);
}

#define T(name)                                                                                    \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    T(no_key_that_flips_under_a_reader_gives_a_wrong_answer_in_silence),
    T(no_value_that_flips_under_a_reader_gives_a_wrong_answer_in_silence),
    T(no_key_that_flips_under_a_writer_lets_it_do_the_wrong_thing),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
