/* Goal: the walk over pages finds nothing in files that LMDB wrote, and names what was damaged. */
#include "pages.h"
#include "store_kit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096u
#define BRANCH 1u
#define LEAF 2u
#define OVERFLOW 4u

/* The bytes of a file, to be damaged and looked at. */
typedef struct image {
    uint8_t *bytes;
    size_t len;
} image;

static image read_image(const char *path)
{
    FILE *file = fopen(path, "rb");
    REQUIRE(file != NULL);
    (void)fseek(file, 0, SEEK_END);
    image out = {NULL, (size_t)ftell(file)};
    rewind(file);
    out.bytes = malloc(out.len);
    REQUIRE(out.bytes != NULL);
    REQUIRE_EQ(fread(out.bytes, 1, out.len, file), out.len);
    (void)fclose(file);
    return out;
}

/* A compacted file, in which every page is in use; with branches and long values. */
static image make_image(void)
{
    kit k = kit_make();
    jzt_rng rng = {3};
    mfi_store *store = kit_open(&k);
    kit_fill(store, &rng, 10, 100);
    char copy[128];
    (void)snprintf(copy, sizeof copy, "%s-copy", k.path);
    REQUIRE_OK(mfi_store_backup(store, copy));
    mfi_store_close(store);
    image out = read_image(copy);
    kit_drop(&k);
    return out;
}

static int image_fd(const image *in)
{
    int fd = memfd_create("image", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(write(fd, in->bytes, in->len), in->len);
    return fd;
}

typedef struct found {
    jzx_err err;
    char text[MFI_PAGES_TEXT];
    mfi_pages_report report;
} found;

static found look(const image *in, jzx_mf_check_fn fn, void *arg)
{
    found out = {.err = JZX_OK};
    mfi_pages_meta meta;
    int fd = image_fd(in);
    out.err = mfi_pages_head(fd, &meta, out.text);
    if (out.err == JZX_OK) {
        out.err = mfi_pages_walk(fd, &meta, fn, arg, &out.report);
        memcpy(out.text, out.report.text, sizeof out.text);
    }
    (void)close(fd);
    return out;
}

static void expect(const image *in, jzx_err want, const char *words)
{
    found f = look(in, NULL, NULL);
    CHECK_EQ(f.err, want);
    if (strstr(f.text, words) == NULL) {
        (void)fprintf(stderr, "it says \"%s\", not \"%s\"\n", f.text, words);
    }
    CHECK(strstr(f.text, words) != NULL);
}

static uint16_t get_u16(const image *in, size_t at)
{
    uint16_t v;
    memcpy(&v, in->bytes + at, sizeof v);
    return v;
}

/* The start of the first page of this kind, from a page on. */
static size_t find_page(const image *in, unsigned flags, size_t from)
{
    for (size_t at = from; at < in->len; at += PAGE) {
        uint64_t number;
        memcpy(&number, in->bytes + at, sizeof number);
        if (number == at / PAGE && get_u16(in, at + 10) == flags) {
            return at;
        }
    }
    REQUIRE(false);
    return 0;
}

static void set(image *in, size_t at, uint64_t value, size_t width)
{
    memcpy(in->bytes + at, &value, width);
}

static void test_a_real_file_has_no_problems(void)
{
    image in = make_image();
    found f = look(&in, NULL, NULL);
    CHECK_OK(f.err);
    CHECK_EQ(f.report.problems, 0);
    CHECK_EQ(f.report.lost, 0);
    CHECK_EQ(f.report.total, in.len / PAGE);
    CHECK_EQ(f.report.used + f.report.reusable, f.report.total);
    CHECK(f.report.has_meta);
    CHECK(!f.report.is_foreign);
    free(in.bytes);
}

typedef struct damage {
    unsigned page; /* flags of the page to be damaged; 8: the newer meta page */
    unsigned at;
    unsigned width;
    uint64_t value;
    const char *words;
} damage;

static void test_each_damage_is_named(void)
{
    static const damage damages[] = {
        {LEAF, 0, 8, 12345, "has the number 12345"},
        {LEAF, 10, 2, 0x42, "has flags 42 instead of 2"},
        {BRANCH, 10, 2, LEAF, "has flags 2 instead of 1"},
        {LEAF, 12, 2, 14, "free space is said to be from 14"},
        {LEAF, 14, 2, 5000, "to 5000"},
        {LEAF, 16, 2, 4095, "offset 4095 names no node"},
        {LEAF, 16, 2, 0xFFFE, "offset 65534 names no node"},
        {OVERFLOW, 12, 4, 0, "has 0 pages for"},
        {OVERFLOW, 12, 4, UINT32_MAX, "but the last one is"},
        {OVERFLOW, 10, 2, LEAF, "has flags 2 instead of 4"},
        {8, 10, 2, 0x0A, "flags of other pages"},
        {8, 0, 8, 7, "another page's number"},
        {8, 16, 4, 0, "page"},
        {8, 40, 4, 8192, "page"},
        {8, 44, 2, 0x4009, "flags that a manifest does not have"},
        {8, 92, 2, 0x04, "has flags 4, which a manifest does not use"},
        {8, 94, 2, 33, "depth of 33"},
        {8, 94, 2, 0, "depth of 0"},
        {8, 120, 8, 1, "there should be 1 records"},
        {8, 96, 8, 9, "there should be 9 branch pages"},
        {8, 104, 8, 9, "there should be 9 leaf pages"},
        {8, 112, 8, 9, "there should be 9 overflow pages"},
        {8, 128, 8, 0, "names page 0"},
        {8, 128, 8, UINT64_MAX - 1, "but the last one is"},
        {8, 136, 8, UINT64_MAX, "the last page is said to be"},
        {8, 136, 8, 0, "the last page is said to be 0"},
        {8, 136, 8, 70000, "the last page is said to be 70000"},
        {8, 136, 8, 3, "but the last one is 3"},
        {8, 144, 8, 4, "has commit 4, the other one 0, and these do not follow each other"},
    };
    image in = make_image();
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        const damage *d = &damages[i];
        size_t page = d->page == 8 ? PAGE : find_page(&in, d->page, 2 * (size_t)PAGE);
        uint8_t before[8];
        memcpy(before, in.bytes + page + d->at, sizeof before);
        set(&in, page + d->at, d->value, d->width);
        found f = look(&in, NULL, NULL);
        bool is_named = strstr(f.text, d->words) != NULL;
        if (!is_named || f.err != JZX_ERR_CORRUPT) {
            (void)fprintf(stderr, "damage %zu: %s: \"%s\"\n", i, jzx_err_name(f.err), f.text);
        }
        CHECK(is_named);
        CHECK_EQ(f.err, JZX_ERR_CORRUPT);
        memcpy(in.bytes + page + d->at, before, sizeof before);
    }
    found f = look(&in, NULL, NULL);
    CHECK_OK(f.err);
    free(in.bytes);
}

static void test_keys_out_of_order_are_found(void)
{
    image in = make_image();
    size_t page = find_page(&in, LEAF, 2 * (size_t)PAGE);
    uint16_t first = get_u16(&in, page + 16);
    set(&in, page + 16, get_u16(&in, page + 18), 2);
    set(&in, page + 18, first, 2);
    expect(&in, JZX_ERR_CORRUPT, "is not in order");
    free(in.bytes);
}

static void test_a_child_in_the_wrong_place_is_found(void)
{
    image in = make_image();
    size_t page = find_page(&in, BRANCH, 2 * (size_t)PAGE);
    size_t first = page + get_u16(&in, page + 16);
    size_t second = page + get_u16(&in, page + 18);
    uint16_t child = get_u16(&in, first);
    set(&in, first, get_u16(&in, second), 2);
    expect(&in, JZX_ERR_CORRUPT, "belongs into the next page");
    set(&in, second, get_u16(&in, first), 2);
    set(&in, first, child, 2);
    set(&in, second, child, 2);
    expect(&in, JZX_ERR_CORRUPT, "is used in two places");
    free(in.bytes);
}

static void test_a_circle_ends(void)
{
    image in = make_image();
    size_t page = find_page(&in, BRANCH, 2 * (size_t)PAGE);
    set(&in, page + get_u16(&in, page + 16), page / PAGE, 2);
    expect(&in, JZX_ERR_CORRUPT, "is used in two places");
    free(in.bytes);
}

static void test_files_of_others_are_named(void)
{
    image in = make_image();
    set(&in, 16, 0xDEC0EFBE, 4);
    expect(&in, JZX_ERR_FOREIGN_PAGES, "other byte order");
    set(&in, 16, 0, 4);
    expect(&in, JZX_ERR_CORRUPT, "the first meta page is damaged");
    set(&in, 12, 0xBEEFC0DE, 4);
    expect(&in, JZX_ERR_FOREIGN_PAGES, "32-bit");
    set(&in, 12, 0, 4);
    set(&in, 16, 0xBEEFC0DE, 4);
    set(&in, 20, 2, 4);
    expect(&in, JZX_ERR_NOT_A_MANIFEST, "version 2 of LMDB's format");
    set(&in, 20, 1, 4);
    set(&in, 40, 16384, 4);
    expect(&in, JZX_ERR_FOREIGN_PAGES, "pages of 16384 bytes");
    set(&in, 40, 1000, 4);
    expect(&in, JZX_ERR_CORRUPT, "pages of 1000 bytes cannot be");
    memset(in.bytes, 'x', in.len);
    expect(&in, JZX_ERR_NOT_A_MANIFEST, "is no LMDB file");
    in.len = 100;
    expect(&in, JZX_ERR_NOT_A_MANIFEST, "too short");
    in.len = 0;
    expect(&in, JZX_ERR_NOT_A_MANIFEST, "is empty");
    free(in.bytes);
}

static void test_a_file_that_was_cut_off_is_named(void)
{
    image in = make_image();
    size_t whole = in.len;
    for (in.len = 2 * (size_t)PAGE; in.len < whole; in.len += PAGE) {
        found f = look(&in, NULL, NULL);
        CHECK_EQ(f.err, JZX_ERR_CORRUPT);
        CHECK(strstr(f.text, "behind the end of the file") != NULL);
    }
    in.len = PAGE + 10;
    expect(&in, JZX_ERR_CORRUPT, "cut off in its second page");
    free(in.bytes);
}

typedef struct listener {
    unsigned problems;
    unsigned progress;
    uint64_t done;
    uint64_t total;
    unsigned enough; /* problems after which it stops */
} listener;

static int listen(void *arg, const char *text, uint64_t done, uint64_t total)
{
    listener *l = arg;
    CHECK(done <= total);
    CHECK(done >= l->done);
    l->done = done;
    l->total = total;
    if (text == NULL) {
        l->progress++;
        return 0;
    }
    CHECK(strncmp(text, "page ", 5) == 0);
    return ++l->problems == l->enough;
}

static void test_a_listener_hears_of_every_problem(void)
{
    image in = make_image();
    unsigned broken = 0;
    for (size_t at = find_page(&in, LEAF, 2 * (size_t)PAGE); broken < 3; broken++) {
        set(&in, at, 99999, 8);
        at = find_page(&in, LEAF, at + PAGE);
    }
    listener l = {.problems = 0};
    found f = look(&in, listen, &l);
    CHECK_EQ(f.err, JZX_ERR_CORRUPT);
    CHECK_EQ(l.problems, 3);
    CHECK_EQ(f.report.problems, 3);
    CHECK(l.progress > 0);
    CHECK_EQ(l.done, in.len / PAGE);
    CHECK_EQ(l.total, in.len / PAGE);
    listener short_one = {.enough = 2};
    f = look(&in, listen, &short_one);
    CHECK_EQ(f.err, JZX_ERR_CLOSED);
    CHECK_EQ(short_one.problems, 2);
    free(in.bytes);
}

static void check_path(const char *path, mfi_pages_report *report)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    mfi_pages_meta meta;
    char text[MFI_PAGES_TEXT] = "";
    jzx_err err = mfi_pages_head(fd, &meta, text);
    if (err == JZX_OK) {
        err = mfi_pages_walk(fd, &meta, NULL, NULL, report);
        memcpy(text, report->text, sizeof text);
    }
    if (err != JZX_OK) {
        (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)jzt_seed(), text);
    }
    REQUIRE_OK(err);
    (void)close(fd);
}

/* One transaction of everything that can happen to pages: nested, aborted, emptied. */
static void shake(mfi_store *store, jzt_rng *rng)
{
    MDB_txn *txn = kit_txn(store);
    MDB_txn *child = NULL;
    kit_put_some(store, txn, rng, (unsigned)jzt_rng_below(rng, 80));
    REQUIRE_EQ(mdb_txn_begin(mfi_store_env(store), txn, 0, &child), 0);
    kit_put_some(store, child, rng, (unsigned)jzt_rng_below(rng, 80));
    if (jzt_rng_below(rng, 2) == 0) {
        mdb_txn_abort(child);
    } else {
        REQUIRE_EQ(mdb_txn_commit(child), 0);
    }
    for (uint64_t n = jzt_rng_below(rng, 300); n > 0; n--) {
        char name[32];
        (void)snprintf(name, sizeof name, "%06u", (unsigned)jzt_rng_below(rng, 2000));
        MDB_val key = {strlen(name), name};
        (void)mdb_del(txn, mfi_store_dbi(store, 1 + (uint32_t)jzt_rng_below(rng, 4)), &key, NULL);
    }
    if (jzt_rng_below(rng, 30) == 0) {
        REQUIRE_EQ(mdb_drop(txn, mfi_store_dbi(store, 2), 0), 0);
    }
    if (jzt_rng_below(rng, 10) == 0) {
        mdb_txn_abort(txn);
    } else {
        REQUIRE_EQ(mdb_txn_commit(txn), 0);
    }
}

static void test_whatever_lmdb_writes_has_no_problems(void)
{
    kit k = kit_make();
    jzt_rng rng = jzt_rng_seeded();
    mfi_store *store = kit_open(&k);
    mfi_reader *reader = NULL; /* makes the free list long now and then */
    mfi_pages_report report;
    for (unsigned i = 0; i < (JZT_SANITIZED ? 60 : 300); i++) {
        if (reader == NULL && jzt_rng_below(&rng, 10) == 0) {
            REQUIRE_OK(mfi_reader_begin(store, &reader));
        } else if (reader != NULL && jzt_rng_below(&rng, 10) == 0) {
            mfi_reader_end(store, reader);
            reader = NULL;
        }
        shake(store, &rng);
        check_path(k.path, &report);
        CHECK_EQ(report.lost, 0);
    }
    if (reader != NULL) {
        mfi_reader_end(store, reader);
    }
    mfi_store_close(store);
    kit_drop(&k);
}

/* A record of the free list that is too long for a page. */
static void test_a_long_free_list_is_walked(void)
{
    kit k = kit_make();
    jzt_rng rng = {9};
    mfi_store *store = kit_open(&k);
    kit_fill(store, &rng, 4, 2500);
    MDB_txn *txn = kit_txn(store);
    for (uint32_t table = 1; table < 5; table++) {
        REQUIRE_EQ(mdb_drop(txn, mfi_store_dbi(store, table), 0), 0);
    }
    REQUIRE_EQ(mdb_txn_commit(txn), 0);
    mfi_pages_report report;
    check_path(k.path, &report);
    CHECK(report.reusable > 510);
    mfi_store_close(store);
    image in = read_image(k.path);
    kit_drop(&k);
    mfi_pages_meta meta;
    char text[MFI_PAGES_TEXT];
    int fd = image_fd(&in);
    REQUIRE_OK(mfi_pages_head(fd, &meta, text));
    (void)close(fd);
    CHECK(meta.free_db.overflow_pages > 0);
    /* Its first number again as the second one. */
    size_t page = 2 * (size_t)PAGE;
    uint64_t words[3];
    do {
        page = find_page(&in, OVERFLOW, page + PAGE);
        memcpy(words, in.bytes + page + 16, sizeof words);
    } while (words[0] < 500 || words[0] > report.reusable || words[1] <= words[2]);
    set(&in, page + 32, words[1], 8);
    expect(&in, JZX_ERR_CORRUPT, "the free list names page");
    /* One that is in use: the page it is written on. */
    set(&in, page + 32, words[2], 8);
    size_t at = page + 24;
    uint64_t larger = 0; /* numbers descend: in the place of the last one that is larger */
    for (uint64_t number = UINT64_MAX; number > page / PAGE; at += 8) {
        larger = number;
        memcpy(&number, in.bytes + at, sizeof number);
    }
    at -= 16;
    set(&in, at, page / PAGE, 8);
    expect(&in, JZX_ERR_CORRUPT, "is on the free list, and used");
    set(&in, at, larger, 8);
    /* One page more or less than there is room for, or none. */
    set(&in, page + 16, words[0] - 1, 8);
    expect(&in, JZX_ERR_CORRUPT, "the free list has ");
    set(&in, page + 16, 0, 8);
    expect(&in, JZX_ERR_CORRUPT, "where it should be empty");
    set(&in, page + 16, 100000, 8);
    expect(&in, JZX_ERR_CORRUPT, "the free list has 100000 pages in");
    free(in.bytes);
}

static void test_the_meta_page_of_a_commit_is_there_until_the_next_but_one(void)
{
    kit k = kit_make();
    jzt_rng rng = {5};
    mfi_store *store = kit_open(&k);
    kit_fill(store, &rng, 1, 10);
    mfi_reader *reader;
    REQUIRE_OK(mfi_reader_begin(store, &reader));
    uint64_t txnid = mdb_txn_id(mfi_reader_txn(reader));
    int fd = open(k.path, O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    mfi_pages_meta meta;
    char text[MFI_PAGES_TEXT];
    kit_fill(store, &rng, 1, 10);
    REQUIRE_OK(mfi_pages_head_of(fd, txnid, &meta, text));
    CHECK_EQ(meta.txnid, txnid);
    kit_fill(store, &rng, 1, 10);
    mfi_pages_meta gone;
    CHECK_EQ(mfi_pages_head_of(fd, txnid, &gone, text), JZX_ERR_AGAIN);
    /* What it led to is still there, because of the reader. */
    mfi_pages_report report;
    CHECK_OK(mfi_pages_walk(fd, &meta, NULL, NULL, &report));
    (void)close(fd);
    mfi_reader_end(store, reader);
    mfi_store_close(store);
    kit_drop(&k);
}

static const jzt_test tests[] = {
    {"a_real_file_has_no_problems", test_a_real_file_has_no_problems},
    {"each_damage_is_named", test_each_damage_is_named},
    {"keys_out_of_order_are_found", test_keys_out_of_order_are_found},
    {"a_child_in_the_wrong_place_is_found", test_a_child_in_the_wrong_place_is_found},
    {"a_circle_ends", test_a_circle_ends},
    {"files_of_others_are_named", test_files_of_others_are_named},
    {"a_file_that_was_cut_off_is_named", test_a_file_that_was_cut_off_is_named},
    {"a_listener_hears_of_every_problem", test_a_listener_hears_of_every_problem},
    {"whatever_lmdb_writes_has_no_problems", test_whatever_lmdb_writes_has_no_problems},
    {"a_long_free_list_is_walked", test_a_long_free_list_is_walked},
    {"the_meta_page_of_a_commit_is_there_until_the_next_but_one",
     test_the_meta_page_of_a_commit_is_there_until_the_next_but_one},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
}
