/* Goal: no single flipped bit of a file gives a wrong answer in silence (issue 15, section 3).
 * Method: 5,000 bits of a small file with rows in every table, drawn over the whole of it: keys,
 * values, page heads, branches, free pages, meta pages; every second one where there is something.
 * Each file is checked, opened for reading and
 * asked everything, then opened for writing, asked, given work and asked again. Each time it is
 * refused with a sentence, or an answer says that something is wrong, or all answers are true; and
 * a check says "fine" only of a file that holds what it should. */
#include "flip_kit.h"

#include <lmdb.h>

enum { FLIPS = 5000, SHOWN = 10 };
enum { STEP = JZT_SANITIZED ? 17 : 1 }; /* a sanitizer is slow */

typedef struct tally {
    unsigned refused, noticed, harmless, silent, check_missed;
} tally;

static flip_world world;
static flip_answers truth, truth_worked, said;
static uint32_t true_rows;
static tally count;

static void tell(uint64_t bit, const char *where, const flip_answer *wrong)
{
    if (count.silent + count.check_missed >= SHOWN) {
        return;
    }
    printf("    bit %llu (page %llu, byte %llu): %s", (unsigned long long)bit,
           (unsigned long long)(bit / 8 / 4096), (unsigned long long)(bit / 8 % 4096), where);
    if (wrong != NULL) {
        printf(": %s %llu %llu says %s", wrong->what, (unsigned long long)wrong->a,
               (unsigned long long)wrong->b, jzx_err_name(wrong->err));
    }
    printf("\n");
}

/* Every row of every table, as LMDB has it. Only for files whose pages were found sound. */
static uint32_t hash_rows(void)
{
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    flip_answers *to = &said;
    REQUIRE_EQ(mdb_env_create(&env), 0);
    REQUIRE_EQ(mdb_env_set_maxdbs(env, 64), 0);
    REQUIRE_EQ(mdb_env_set_mapsize(env, 64u << 20), 0); /* not what the file says */
    REQUIRE_EQ(mdb_env_open(env, world.dir.file, MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0600), 0);
    REQUIRE_EQ(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    flip_begin(to, "rows", 0, 0);
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        MDB_dbi dbi;
        MDB_cursor *cursor;
        MDB_val key, value;
        REQUIRE_EQ(mdb_dbi_open(txn, jzx_mf_table_name(table), 0, &dbi), 0);
        REQUIRE_EQ(mdb_cursor_open(txn, dbi, &cursor), 0);
        while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
            flip_mix(to, key.mv_data, key.mv_size);
            flip_mix(to, value.mv_data, value.mv_size);
        }
        flip_mix_u64(to, table);
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    mdb_env_close(env);
    return to->now.hash;
}

/* ---- What is done with each file. */

/* Opens for reading and asks everything. False: refused. */
static bool ask_reading(flip_answers *to)
{
    jzx_mf *mf = NULL;
    jzx_mf_recovery report = {0};
    jzx_err err = flip_open(&world, JZX_MF_READONLY, &mf, &report);
    if (err != JZX_OK) {
        CHECK(flip_is_notice(err));
        CHECK(strstr(report.text, "m.mf") != NULL);
        return false;
    }
    flip_ask(mf, to);
    REQUIRE_OK(jzx_mf_close(mf, 0));
    return true;
}

static void note_reply(flip_answers *to, const char *what, const flip_reply *reply)
{
    flip_begin(to, what, 0, 0);
    for (uint32_t i = 0; i < reply->slots; i++) {
        flip_mix_u64(to, reply->slot[i].id);
        flip_mix_u64(to, reply->slot[i].outcome);
    }
    for (uint32_t i = 0; i < reply->jobs; i++) {
        flip_mix_u64(to, reply->job[i]);
        flip_mix_u64(to, reply->attempt[i]);
    }
    flip_end(to, reply->err);
}

static void work(jzx_mf *mf, flip_answers *to)
{
    jzx_mf_txn *txn = mft_begin(mf);
    CHECK_OK(jzx_mf_job_claim(txn, &(jzx_mf_claim){.max = 6, .lease_ms = 600000}));
    flip_reply claimed = flip_commit(&world, txn);
    note_reply(to, "claim", &claimed);
    txn = mft_begin(mf);
    flip_put_jobs(txn, 5, 8); /* some of these are there */
    flip_reply reply = flip_commit(&world, txn);
    note_reply(to, "enqueue", &reply);
    txn = mft_begin(mf);
    jzx_mf_chunk chunk = {.file_name = jzx_mf_text("another"), .wal_end = 5};
    CHECK_OK(jzx_mf_chunk_put(txn, 1, 2, &chunk));
    CHECK_OK(jzx_mf_wal_del(txn, 3, 1));
    CHECK_OK(jzx_mf_generation_bump(txn, 4, 1));
    reply = flip_commit(&world, txn);
    note_reply(to, "put", &reply);
}

/* After one refusal of work everything later may differ: the answers before it count. */
static void stop_at_refusals(flip_answers *to)
{
    for (size_t i = 0; i < to->count; i++) {
        bool is_work = strcmp(to->list[i].what, "claim") == 0 ||
                       strcmp(to->list[i].what, "enqueue") == 0 ||
                       strcmp(to->list[i].what, "put") == 0;
        if (is_work && flip_is_notice(to->list[i].err)) {
            to->count = i + 1;
        }
    }
}

static void note_report(flip_answers *to, const jzx_mf_recovery *report)
{
    flip_begin(to, "recovery", 0, 0);
    flip_mix_u64(to, report->jobs);
    flip_mix_u64(to, report->ready);
    flip_mix_u64(to, report->orphans);
    flip_mix_u64(to, report->requeued);
    flip_mix_u64(to, report->chunks);
    flip_end(to, JZX_OK);
}

/* Opens for writing, works, and asks everything. False: refused. */
static bool ask_writing(flip_answers *to)
{
    jzx_mf *mf = NULL;
    jzx_mf_recovery report = {0};
    jzx_err err = flip_open(&world, 0, &mf, &report);
    if (err != JZX_OK) {
        CHECK(flip_is_notice(err));
        CHECK(strstr(report.text, "m.mf") != NULL);
        return false;
    }
    static flip_answers after;
    to->count = 0;
    note_report(to, &report);
    work(mf, to);
    flip_ask(mf, &after);
    REQUIRE_OK(jzx_mf_close(mf, 0));
    for (size_t i = 1; i < after.count; i++) { /* the first has the free pages */
        to->now = after.list[i];
        flip_end(to, after.list[i].err);
    }
    stop_at_refusals(to);
    return true;
}

static bool has_notice(const flip_answers *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (flip_is_notice(list->list[i].err)) {
            return true;
        }
    }
    return false;
}

/* Whether it was right to say nothing; *noticed: something was said. */
static bool judge(bool opened, const flip_answers *should, uint64_t bit, const char *where,
                  bool *noticed)
{
    if (!opened) {
        *noticed = true;
        return true;
    }
    const flip_answer *wrong = flip_wrong(should, &said);
    *noticed |= has_notice(&said);
    if (wrong != NULL) {
        tell(bit, where, wrong);
    }
    return wrong == NULL;
}

static void try_bit(uint64_t bit)
{
    bool noticed = false;
    flip_bit(&world, bit);
    jzx_err checked = jzx_mf_check(world.dir.file, NULL, NULL, NULL);
    CHECK(checked == JZX_OK || flip_is_notice(checked));
    if (checked == JZX_OK && hash_rows() != true_rows) {
        tell(bit, "check says fine", NULL);
        count.check_missed++;
    }
    bool opened = ask_reading(&said);
    bool fine = judge(opened, &truth, bit, "reading", &noticed);
    bool writes = ask_writing(&said);
    fine = judge(writes, &truth_worked, bit, "writing", &noticed) && fine;
    flip_restore(&world);
    count.silent += !fine;
    count.refused += fine && !opened;
    count.noticed += fine && opened && noticed;
    count.harmless += fine && !noticed;
    /* What a reader notices is in the file, so a check must find it. */
    if (checked == JZX_OK && noticed) {
        tell(bit, "check says fine, but it was noticed", NULL);
        count.check_missed++;
    }
}

static void learn_truth(void)
{
    REQUIRE(ask_reading(&truth));
    true_rows = hash_rows();
    REQUIRE(ask_writing(&said));
    truth_worked = said;
    flip_restore(&world);
    CHECK(!has_notice(&truth) && !has_notice(&truth_worked));
    /* The same again is the same: else nothing could be said of flips. */
    REQUIRE(ask_reading(&said));
    CHECK(flip_wrong(&truth, &said) == NULL);
    REQUIRE(ask_writing(&said));
    CHECK(flip_wrong(&truth_worked, &said) == NULL);
    flip_restore(&world);
}

/* Anywhere, or anywhere but in the long runs of zeros of half-empty pages. */
static uint64_t draw_bit(jzt_rng *rng, bool in_use)
{
    static const uint8_t zeros[16];
    for (;;) {
        uint64_t bit = jzt_rng_below(rng, world.len * 8);
        const uint8_t *near = world.bytes + (bit / 8 & ~(uint64_t)15);
        if (!in_use || memcmp(near, zeros, sizeof zeros) != 0) {
            return bit;
        }
    }
}

static void test_no_flipped_bit_of_5000_gives_a_wrong_answer_in_silence(void)
{
    count = (tally){0};
    flip_world_make(&world);
    learn_truth();
    jzt_rng rng = jzt_rng_seeded();
    unsigned flips = FLIPS / flip_step(STEP);
    for (unsigned i = 0; i < flips; i++) {
        try_bit(draw_bit(&rng, i % 2 == 0));
    }
    printf("    %u flips in %zu pages: %u refused at open, %u noticed, %u without effect, "
           "%u silent, %u missed by check\n",
           flips, world.len / 4096, count.refused, count.noticed, count.harmless, count.silent,
           count.check_missed);
    CHECK_EQ(count.silent, 0);
    CHECK_EQ(count.check_missed, 0);
    CHECK(count.refused > flips / 50 && count.noticed > flips / 10);
    flip_world_drop(&world);
}

/* LMDB believes the free list most of all: a page that is on it twice, or again, is written by two. */
static void test_no_flipped_bit_of_the_free_list_or_the_meta_pages_does_harm(void)
{
    enum { PAGE = 4096, META = 176, META_ROOT = 80, META_TXNID = 144 };
    static const uint8_t zeros[16];
    uint64_t txnid = 0, root = 0;
    count = (tally){0};
    flip_world_make(&world);
    learn_truth();
    for (uint64_t meta = 0; meta < 2; meta++) {
        uint64_t now = 0;
        memcpy(&now, world.bytes + meta * PAGE + META_TXNID, sizeof now);
        if (now > txnid) {
            txnid = now;
            memcpy(&root, world.bytes + meta * PAGE + META_ROOT, sizeof root);
        }
        for (uint64_t bit = 0; bit < (uint64_t)META * 8; bit += flip_step(STEP)) {
            try_bit(meta * PAGE * 8 + bit);
        }
    }
    REQUIRE(root * PAGE < world.len);
    for (uint64_t bit = 0; bit < (uint64_t)PAGE * 8; bit += flip_step(STEP)) {
        if (memcmp(world.bytes + root * PAGE + (bit / 8 & ~(uint64_t)15), zeros, 16) != 0) {
            try_bit(root * PAGE * 8 + bit);
        }
    }
    CHECK_EQ(count.silent, 0);
    CHECK_EQ(count.check_missed, 0);
    flip_world_drop(&world);
}

static const jzt_test tests[] = {
    {"no_flipped_bit_of_the_free_list_or_the_meta_pages_does_harm",
     test_no_flipped_bit_of_the_free_list_or_the_meta_pages_does_harm},
    {"no_flipped_bit_of_5000_gives_a_wrong_answer_in_silence",
     test_no_flipped_bit_of_5000_gives_a_wrong_answer_in_silence},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
