/* Goal: a damaged file is refused with a sentence, or nothing of it can make the process crash.
 * Method: a real file is damaged in thousands of ways, at random and by position; child processes
 * open each, and what was not refused is read to the last byte, written, emptied and walked again.
 */
#include "store_kit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096u
#define BATCH 250u

/* What a child tells its parent. */
typedef struct outcome {
    unsigned at; /* the damage it works on */
    unsigned refused;
    unsigned survived;
    unsigned wrong;
    char text[400];
} outcome;

static kit place;
static uint8_t *original;
static size_t original_len;
static outcome *told;
static volatile unsigned sink; /* so that reading cannot be left out */

static void write_file(const uint8_t *bytes, size_t len)
{
    int fd = open(place.path, O_WRONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    CHECK_EQ(pwrite(fd, bytes, len, 0), len);
    CHECK_EQ(ftruncate(fd, (off_t)len), 0);
    (void)close(fd);
}

static void read_original(void)
{
    FILE *file = fopen(place.path, "rb");
    REQUIRE(file != NULL);
    (void)fseek(file, 0, SEEK_END);
    original_len = (size_t)ftell(file);
    rewind(file);
    original = malloc(original_len);
    REQUIRE(original != NULL);
    REQUIRE_EQ(fread(original, 1, original_len, file), original_len);
    (void)fclose(file);
}

/* A file with everything in it: several tables, branches, long values, a free list. */
static void make_original(void)
{
    place = kit_make();
    jzt_rng rng = {42};
    mfi_store *store = kit_open(&place);
    kit_fill(store, &rng, 8, 60);
    char copy[128];
    (void)snprintf(copy, sizeof copy, "%s-copy", place.path);
    REQUIRE_OK(mfi_store_backup(store, copy)); /* without pages that nobody uses */
    mfi_store_close(store);
    REQUIRE_EQ(rename(copy, place.path), 0);
    store = kit_open(&place);
    kit_fill(store, &rng, 3, 4);
    mfi_store_close(store);
    read_original();
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(told != MAP_FAILED);
}

static void drop_original(void)
{
    (void)munmap(told, sizeof *told);
    free(original);
    kit_drop(&place);
}

/* Looks at every byte that LMDB shows. */
static unsigned read_all(mfi_store *store, MDB_txn *txn)
{
    unsigned sum = 0;
    for (uint32_t table = 0; table < JZX_MF_TABLES; table++) {
        MDB_cursor *cursor;
        MDB_val key;
        MDB_val value;
        if (mdb_cursor_open(txn, mfi_store_dbi(store, table), &cursor) != 0) {
            continue;
        }
        while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
            for (size_t i = 0; i < key.mv_size; i++) {
                sum += ((const uint8_t *)key.mv_data)[i];
            }
            for (size_t i = 0; i < value.mv_size; i++) {
                sum += ((const uint8_t *)value.mv_data)[i];
            }
        }
        mdb_cursor_close(cursor);
    }
    return sum;
}

/* Deletes most records one by one, so that pages are merged and the free list is used. */
static void delete_most(mfi_store *store, MDB_txn *txn)
{
    for (uint32_t table = 1; table < JZX_MF_TABLES; table++) {
        MDB_cursor *cursor;
        MDB_val key;
        MDB_val value;
        if (mdb_cursor_open(txn, mfi_store_dbi(store, table), &cursor) != 0) {
            continue;
        }
        for (unsigned i = 0; mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0; i++) {
            if (i % 8 != 0) {
                (void)mdb_cursor_del(cursor, 0);
            }
        }
        mdb_cursor_close(cursor);
    }
}

static void use_store(mfi_store *store)
{
    jzt_rng rng = {7};
    for (unsigned i = 0; i < 3; i++) {
        MDB_txn *txn = kit_txn(store);
        sink += read_all(store, txn);
        kit_put_some(store, txn, &rng, 40);
        if (i == 1) {
            delete_most(store, txn);
        }
        REQUIRE_EQ(mdb_txn_commit(txn), 0);
    }
}

static bool is_refusal(jzx_err err)
{
    return err == JZX_ERR_CORRUPT || err == JZX_ERR_NOT_A_MANIFEST ||
           err == JZX_ERR_FOREIGN_PAGES || err == JZX_ERR_NEWER_SCHEMA;
}

static void note_wrong(const char *what, jzx_err err, const char *text)
{
    told->wrong++;
    (void)snprintf(told->text, sizeof told->text, "%s: %s: %.250s", what, jzx_err_name(err), text);
}

static void try_file(bool readonly)
{
    mfi_store_opts opts = kit_opts();
    opts.readonly = readonly;
    mfi_store_facts facts;
    mfi_store *store;
    jzx_err err = mfi_store_open(place.path, &opts, &store, &facts);
    if (err != JZX_OK) {
        told->refused++;
        if (!is_refusal(err) || strlen(facts.text) < strlen(place.path) + 10) {
            note_wrong("a bad refusal", err, facts.text);
        }
        return;
    }
    told->survived++;
    if (readonly) {
        MDB_txn *txn = NULL;
        if (mdb_txn_begin(mfi_store_env(store), NULL, MDB_RDONLY, &txn) == 0) {
            sink += read_all(store, txn);
            mdb_txn_abort(txn);
        }
        mfi_store_close(store);
        return;
    }
    use_store(store);
    mfi_store_close(store);
    /* What was harmless must still be so after having been written. */
    err = mfi_store_open(place.path, &opts, &store, &facts);
    if (err != JZX_OK) {
        note_wrong("a file that was taken got worse", err, facts.text);
        return;
    }
    mfi_store_close(store);
}

/* Damages a copy; returns its new length. */
typedef size_t (*damage_fn)(unsigned at, uint8_t *bytes, size_t len);

static void run_child(damage_fn damage, unsigned from, unsigned to)
{
    (void)alarm(600); /* a hang is a crash */
    uint8_t *copy = malloc(2 * original_len);
    for (unsigned i = from; i < to && copy != NULL; i++) {
        told->at = i;
        memcpy(copy, original, original_len);
        write_file(copy, damage(i, copy, original_len));
        try_file(i % 4 == 3);
    }
    free(copy);
    _exit(jzt_failures() == 0 ? 0 : 1);
}

static void run_batch(damage_fn damage, unsigned from, unsigned to)
{
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        run_child(damage, from, to);
    }
    int status = 0;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    if (status != 0 || told->wrong != 0) {
        (void)fprintf(stderr, "seed %llu, damage %u, status %x %s\n",
                      (unsigned long long)jzt_seed(), told->at, (unsigned)status, told->text);
    }
    CHECK_EQ(status, 0);
    CHECK_EQ(told->wrong, 0);
}

static void run_all(damage_fn damage, unsigned count)
{
    make_original();
    count = JZT_SANITIZED ? count / 4 : count;
    for (unsigned from = 0; from < count && jzt_failures() == 0; from += BATCH) {
        run_batch(damage, from, from + BATCH < count ? from + BATCH : count);
    }
    CHECK(told->refused > 0);
    (void)fprintf(stderr, "    %u refused, %u harmless\n", told->refused, told->survived);
    drop_original();
}

static jzt_rng rng_of(unsigned at)
{
    jzt_rng rng = {jzt_seed() + (uint64_t)at * 0x9E3779B97F4A7C15u};
    (void)jzt_rng_next(&rng);
    return rng;
}

/* A page that looks like a part of a tree, if there is one soon. */
static size_t pick_page(jzt_rng *rng, const uint8_t *bytes, size_t len)
{
    size_t page = 0;
    for (unsigned i = 0; i < 20; i++) {
        page = jzt_rng_below(rng, len / PAGE) * PAGE;
        uint64_t number;
        memcpy(&number, bytes + page, sizeof number);
        if (number == page / PAGE) {
            break;
        }
    }
    return page;
}

/* Anywhere; every second one at the beginning of a page, for most of a file is empty space. */
static size_t flip_bits(unsigned at, uint8_t *bytes, size_t len)
{
    jzt_rng rng = rng_of(at);
    for (uint64_t n = 1 + jzt_rng_below(&rng, 3); n > 0; n--) {
        size_t spot = at % 2 == 0 ? jzt_rng_below(&rng, len)
                                  : pick_page(&rng, bytes, len) + jzt_rng_below(&rng, 64);
        bytes[spot] ^= (uint8_t)(1u << jzt_rng_below(&rng, 8));
    }
    return len;
}

/* Heads of pages and their offsets are where the structure is. */
static size_t break_heads(unsigned at, uint8_t *bytes, size_t len)
{
    jzt_rng rng = rng_of(at);
    size_t page = pick_page(&rng, bytes, len);
    uint16_t lower;
    memcpy(&lower, bytes + page + 12, sizeof lower);
    size_t spot = page + 2 * jzt_rng_below(&rng, lower < 16 || lower > 200 ? 80 : lower / 2);
    static const uint16_t values[] = {0, 1, 2, 8, 15, 16, 17, 18, 0x7FFF, 0xFFFF, 4095, 4096};
    uint16_t value = values[jzt_rng_below(&rng, sizeof values / sizeof values[0])];
    uint16_t was;
    memcpy(&was, bytes + spot, sizeof was);
    if (jzt_rng_below(&rng, 2) == 0) {
        value = (uint16_t)(was + jzt_rng_below(&rng, 9) - 4);
    }
    memcpy(bytes + spot, &value, sizeof value);
    return len;
}

static size_t break_nodes(unsigned at, uint8_t *bytes, size_t len)
{
    jzt_rng rng = rng_of(at);
    size_t page = pick_page(&rng, bytes, len);
    uint16_t lower;
    memcpy(&lower, bytes + page + 12, sizeof lower);
    if (page < 2 * PAGE || lower <= 16 || lower > PAGE) {
        return flip_bits(at, bytes, len);
    }
    uint16_t node;
    memcpy(&node, bytes + page + 16 + 2 * jzt_rng_below(&rng, (lower - 16u) / 2u), sizeof node);
    if (node > PAGE - 8) {
        return flip_bits(at, bytes, len);
    }
    bytes[page + node + jzt_rng_below(&rng, 8)] = (uint8_t)jzt_rng_next(&rng);
    return len;
}

static size_t move_pages(unsigned at, uint8_t *bytes, size_t len)
{
    jzt_rng rng = rng_of(at);
    size_t from = jzt_rng_below(&rng, len / PAGE) * PAGE;
    size_t to = jzt_rng_below(&rng, len / PAGE) * PAGE;
    memmove(bytes + to, bytes + from, PAGE);
    if (jzt_rng_below(&rng, 2) == 0) { /* and its number fits */
        uint64_t number = to / PAGE;
        memcpy(bytes + to, &number, sizeof number);
    }
    return len;
}

static size_t zero_or_cut(unsigned at, uint8_t *bytes, size_t len)
{
    jzt_rng rng = rng_of(at);
    size_t from = jzt_rng_below(&rng, len);
    if (at % 3 == 0) {
        return from;
    }
    if (at % 3 == 1) {
        from -= from % PAGE;
    }
    size_t count = 1 + jzt_rng_below(&rng, PAGE);
    memset(bytes + from, at % 2 == 0 ? 0 : 0xFF, count < len - from ? count : len - from);
    return len;
}

/* Every third bit of the meta pages, beginning where the seed says; every page zeroed; every length
 * in pages. */
static size_t every_region(unsigned at, uint8_t *bytes, size_t len)
{
    enum { META_BITS = 152 * 8, THIRD = 2 * META_BITS / 3 };
    size_t pages = len / PAGE;
    if (at < THIRD) {
        unsigned bit = at * 3 + (unsigned)(jzt_seed() % 3);
        bytes[bit / META_BITS * PAGE + bit / 8 % 152] ^= (uint8_t)(1u << bit % 8);
        return len;
    }
    at -= THIRD;
    size_t page = at / 2 % pages;
    if (at % 2 == 0) {
        memset(bytes + page * PAGE, 0, PAGE);
        return len;
    }
    return page * PAGE;
}

static void test_flipped_bits_never_crash(void)
{
    run_all(flip_bits, 400);
}
static void test_broken_page_heads_never_crash(void)
{
    run_all(break_heads, 600);
}
static void test_broken_nodes_never_crash(void)
{
    run_all(break_nodes, 600);
}
static void test_pages_in_the_wrong_place_never_crash(void)
{
    run_all(move_pages, 250);
}
static void test_zeroed_and_cut_files_never_crash(void)
{
    run_all(zero_or_cut, 250);
}
static void test_every_meta_bit_and_every_page_region(void)
{
    run_all(every_region, 1000);
}

static const jzt_test tests[] = {
    {"flipped_bits_never_crash", test_flipped_bits_never_crash},
    {"broken_page_heads_never_crash", test_broken_page_heads_never_crash},
    {"broken_nodes_never_crash", test_broken_nodes_never_crash},
    {"pages_in_the_wrong_place_never_crash", test_pages_in_the_wrong_place_never_crash},
    {"zeroed_and_cut_files_never_crash", test_zeroed_and_cut_files_never_crash},
    {"every_meta_bit_and_every_page_region", test_every_meta_bit_and_every_page_region},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
