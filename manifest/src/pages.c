/* The walk over the trees of a file. Every function here returns whether it makes sense to go on;
 * what was wrong is in the report by then. */
#include "pages_steps.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define TELL_EVERY 1024u /* pages between two reports of progress */
#define CHUNK_WORDS 8192u

static bool stop(walk *w, jzx_err err)
{
    w->stop = err;
    return false;
}

bool mfi_pages_problem(walk *w, tree *in, uint64_t page, const char *format, ...)
{
    char text[MFI_PAGES_TEXT];
    int used = snprintf(text, sizeof text, "page %llu (%s): ", (unsigned long long)page, in->name);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    in->is_damaged = true;
    if (w->report->problems++ == 0) {
        memcpy(w->report->text, text, sizeof text);
    }
    if (w->fn == NULL) {
        return stop(w, JZX_ERR_CORRUPT);
    }
    if (w->fn(w->arg, text, w->report->used, w->report->total) != 0) {
        return stop(w, JZX_ERR_CLOSED);
    }
    return false;
}

static bool tell_progress(walk *w)
{
    if (w->fn != NULL && w->report->used % TELL_EVERY == 0 &&
        w->fn(w->arg, NULL, w->report->used, w->report->total) != 0) {
        return stop(w, JZX_ERR_CLOSED);
    }
    return true;
}

/* False: it was seen before. */
static bool mark(walk *w, uint64_t page)
{
    uint8_t bit = (uint8_t)(1u << (page & 7));
    bool is_new = (w->seen[page >> 3] & bit) == 0;
    w->seen[page >> 3] |= bit;
    return is_new;
}

/* Takes pages for a tree: they are in the file, and no other tree has them. */
static bool claim(walk *w, tree *in, uint64_t from, uint64_t page, uint64_t count)
{
    if (page < FIRST_PAGE || page > w->meta->last_page || count > w->meta->last_page - page + 1) {
        return mfi_pages_problem(w, in, from,
                                 "names page %llu (and %llu more), but the last one is %llu",
                                 (unsigned long long)page, (unsigned long long)(count - 1),
                                 (unsigned long long)w->meta->last_page);
    }
    if (page + count > w->file_pages) {
        return mfi_pages_problem(w, in, page,
                                 "lies behind the end of the file, which was cut off after %llu "
                                 "pages",
                                 (unsigned long long)w->file_pages);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!mark(w, page + i)) {
            return mfi_pages_problem(w, in, page + i, "is used in two places; page %llu is one",
                                     (unsigned long long)from);
        }
    }
    w->report->used += count;
    return true;
}

static bool read_at(walk *w, tree *in, uint64_t page, uint64_t offset, void *buf, size_t len)
{
    jzx_err err = mfi_pages_read(w->fd, buf, len, page * w->meta->page_size + offset);
    if (err == JZX_OK) {
        return true;
    }
    return err == JZX_ERR_IO ? stop(w, err)
                             : mfi_pages_problem(w, in, page, "the file ends within it");
}

static uint8_t *level_buf(walk *w, unsigned level)
{
    if (w->levels[level] == NULL) {
        w->levels[level] = mfi_alloc(w->meta->page_size);
        if (w->levels[level] == NULL) {
            (void)stop(w, JZX_ERR_NO_MEMORY);
        }
    }
    return w->levels[level];
}

/* A value that is too long for a page has pages of its own. */
static bool check_overflow(walk *w, tree *in, uint64_t number, const uint8_t *node)
{
    uint64_t first = get64(data_of(node));
    uint64_t need = (PAGE_HEAD - 1 + (uint64_t)data_len(node)) / w->meta->page_size + 1;
    uint8_t head[PAGE_HEAD];
    if (first < FIRST_PAGE || first > w->meta->last_page) {
        return mfi_pages_problem(w, in, number,
                                 "names page %llu for a long value, but the last one is %llu",
                                 (unsigned long long)first, (unsigned long long)w->meta->last_page);
    }
    if (first >= w->file_pages) {
        return claim(w, in, number, first, 1);
    }
    if (!read_at(w, in, first, 0, head, sizeof head) ||
        !mfi_pages_check_head(w, in, first, head, PAGE_OVERFLOW)) {
        return false;
    }
    uint32_t count = get32(head + 12);
    if (count < need) {
        return mfi_pages_problem(w, in, first, "has %u pages for %u bytes", count, data_len(node));
    }
    in->overflow += count;
    return claim(w, in, number, first, count);
}

/* A record of the free list: a count, and page numbers that descend. */
typedef struct free_record {
    uint64_t page; /* where it is */
    uint64_t left; /* numbers still to come */
    uint64_t before;
    bool has_count;
} free_record;

static bool take_free_page(walk *w, tree *in, free_record *record, uint64_t page)
{
    if (page < FIRST_PAGE || page > w->meta->last_page || page >= record->before) {
        return mfi_pages_problem(w, in, record->page,
                                 "the free list names page %llu after %llu; the last "
                                 "page is %llu",
                                 (unsigned long long)page, (unsigned long long)record->before,
                                 (unsigned long long)w->meta->last_page);
    }
    if (!mark(w, page)) {
        return mfi_pages_problem(w, in, page, "is on the free list, and used or there twice");
    }
    record->before = page;
    w->report->reusable++;
    return true;
}

static bool take_free_words(walk *w, tree *in, free_record *record, const uint8_t *words,
                            uint64_t count, uint64_t all)
{
    for (uint64_t i = 0; i < count; i++, words += sizeof(uint64_t)) {
        if (!record->has_count) {
            record->has_count = true;
            record->left = get64(words);
            /* LMDB makes them as long as they must be, or leaves them empty. */
            if (record->left + 1 != all && record->left != 0) {
                return mfi_pages_problem(w, in, record->page,
                                         "the free list has %llu pages in %llu words",
                                         (unsigned long long)record->left, (unsigned long long)all);
            }
        } else if (record->left == 0) {
            if (get64(words) != 0) {
                return mfi_pages_problem(w, in, record->page,
                                         "the free list has a page where it should be empty");
            }
        } else {
            record->left--;
            if (!take_free_page(w, in, record, get64(words))) {
                return false;
            }
        }
    }
    return true;
}

static bool walk_free_record(walk *w, tree *in, uint64_t number, const uint8_t *node, bool is_big)
{
    uint64_t words = data_len(node) / sizeof(uint64_t);
    free_record record = {.page = number, .before = UINT64_MAX};
    uint64_t commit = get64(key_of(node).bytes);
    if (commit > w->meta->txnid) {
        return mfi_pages_problem(w, in, number,
                                 "the free list has pages of a commit that is to come");
    }
    if (commit == 0) { /* LMDB would take them, and not the record away: then take them again */
        return mfi_pages_problem(w, in, number, "the free list has pages of no commit");
    }
    if (words == 0) {
        return mfi_pages_problem(w, in, number, "a record of the free list has %u bytes",
                                 data_len(node));
    }
    if (!is_big) {
        return take_free_words(w, in, &record, data_of(node), words, words);
    }
    uint64_t first = get64(data_of(node));
    for (uint64_t done = 0; done < words;) {
        uint64_t count = words - done < CHUNK_WORDS ? words - done : CHUNK_WORDS;
        if (!read_at(w, in, first, PAGE_HEAD + done * sizeof(uint64_t), w->chunk,
                     (size_t)count * sizeof(uint64_t)) ||
            !take_free_words(w, in, &record, (const uint8_t *)w->chunk, count, words)) {
            return false;
        }
        done += count;
    }
    return true;
}

/* Notes a table for later. */
static bool take_table(walk *w, tree *in, uint64_t number, const uint8_t *node)
{
    key name = key_of(node);
    if (data_len(node) != DB_BYTES) {
        return mfi_pages_problem(w, in, number, "a table has a record of %u bytes", data_len(node));
    }
    if (w->table_count == TABLES_MAX) {
        return mfi_pages_problem(w, in, number, "has more than %u tables", TABLES_MAX);
    }
    tree *table = &w->tables[w->table_count++];
    *table = (tree){.kind = TREE_TABLE, .db = mfi_pages_db_at(data_of(node))};
    for (size_t i = 0; i < name.len && i < NAME_SHOWN; i++) {
        bool is_plain = name.bytes[i] >= ' ' && name.bytes[i] < 0x7F;
        table->name[i] = is_plain ? (char)name.bytes[i] : '?';
    }
    w->report->has_meta |= name.len == 4 && memcmp(name.bytes, "meta", 4) == 0;
    return true;
}

static bool walk_entry(walk *w, tree *in, uint64_t number, const uint8_t *node)
{
    unsigned flags = get16(node + 4);
    in->entries++;
    if (in->kind == TREE_MAIN) {
        if (flags == NODE_TABLE) {
            return take_table(w, in, number, node);
        }
        w->report->is_foreign = true;
        return mfi_pages_problem(w, in, number, "has a record that is no table");
    }
    if ((flags & ~NODE_BIG) != 0) {
        return mfi_pages_problem(w, in, number, "has a record with flags %x", flags);
    }
    bool is_big = flags == NODE_BIG;
    if (is_big && !check_overflow(w, in, number, node)) {
        return false;
    }
    return in->kind != TREE_FREE || walk_free_record(w, in, number, node, is_big);
}

static bool walk_leaf(walk *w, tree *in, uint64_t number, const uint8_t *page)
{
    in->leaves++;
    for (unsigned i = 0; i < nodes_of(page); i++) {
        /* After a problem with one value the others may still be told about. */
        if (!walk_entry(w, in, number, node_at(page, i)) && w->stop != JZX_OK) {
            return false;
        }
    }
    return true;
}

static bool walk_page(walk *w, tree *in, uint64_t from, uint64_t number, unsigned level, key low,
                      key high);

static bool walk_branch(walk *w, tree *in, uint64_t number, const uint8_t *page, unsigned level,
                        key low, key high)
{
    unsigned count = nodes_of(page);
    in->branches++;
    for (unsigned i = 0; i < count; i++) {
        key from = i == 0 ? low : key_of(node_at(page, i));
        key to = i + 1 == count ? high : key_of(node_at(page, i + 1));
        uint64_t child = child_of(node_at(page, i));
        if (!walk_page(w, in, number, child, level + 1, from, to) && w->stop != JZX_OK) {
            return false;
        }
    }
    return true;
}

/* `level` counts from 1; the leaves are at the tree's depth. Recursion ends there. */
static bool walk_page(walk *w, tree *in, uint64_t from, uint64_t number, unsigned level, key low,
                      key high)
{
    bool is_leaf = level == in->db.depth;
    if (!claim(w, in, from, number, 1) || !tell_progress(w)) {
        return false;
    }
    uint8_t *page = level_buf(w, level - 1);
    if (page == NULL || !read_at(w, in, number, 0, page, w->meta->page_size) ||
        !mfi_pages_check_layout(w, in, number, page, is_leaf) ||
        !mfi_pages_check_keys(w, in, number, page, is_leaf, low, high)) {
        return false;
    }
    return is_leaf ? walk_leaf(w, in, number, page)
                   : walk_branch(w, in, number, page, level, low, high);
}

static void check_count(walk *w, tree *in, uint64_t from, const char *what, uint64_t said,
                        uint64_t found)
{
    if (said != found && w->stop == JZX_OK) {
        (void)mfi_pages_problem(w, in, from, "there should be %llu %s, and there are %llu",
                                (unsigned long long)said, what, (unsigned long long)found);
    }
}

static void check_counts(walk *w, tree *in, uint64_t from)
{
    if (w->stop != JZX_OK || in->is_damaged) {
        return; /* the damage was told already */
    }
    check_count(w, in, from, "branch pages", in->db.branch_pages, in->branches);
    check_count(w, in, from, "leaf pages", in->db.leaf_pages, in->leaves);
    check_count(w, in, from, "overflow pages", in->db.overflow_pages, in->overflow);
    check_count(w, in, from, "records", in->db.entries, in->entries);
}

/* `from` is the page that has the tree's record. */
static void walk_tree(walk *w, tree *in, uint64_t from)
{
    const mfi_pages_db *db = &in->db;
    if (in->kind != TREE_FREE && (db->flags != 0 || db->pad != 0)) {
        w->report->is_foreign = true;
        (void)mfi_pages_problem(w, in, from, "the tree has flags %x, which a manifest does not use",
                                db->flags);
        return;
    }
    bool is_empty = db->root == NO_ROOT;
    if (is_empty ? db->depth != 0 : db->depth == 0 || db->depth > DEPTH_MAX) {
        (void)mfi_pages_problem(w, in, from, "the tree has a depth of %u", db->depth);
        return;
    }
    key none = {NULL, 0};
    if (!is_empty) {
        (void)walk_page(w, in, from, db->root, 1, none, none);
    }
    check_counts(w, in, from);
}

/* Pages that were never written are all on the free list. */
static void check_end(walk *w, tree *in)
{
    for (uint64_t page = w->file_pages; page <= w->meta->last_page; page++) {
        if (mark(w, page)) {
            (void)mfi_pages_problem(
                w, in, w->meta->which,
                "the last page is said to be %llu, but the file ends with page %llu",
                (unsigned long long)w->meta->last_page, (unsigned long long)w->file_pages - 1);
            return;
        }
    }
}

static void walk_trees(walk *w)
{
    uint64_t from = w->meta->which;
    tree main_tree = {.name = "main", .kind = TREE_MAIN, .db = w->meta->main_db};
    tree free_tree = {.name = "free list", .kind = TREE_FREE, .db = w->meta->free_db};
    walk_tree(w, &main_tree, from);
    for (unsigned i = 0; i < w->table_count && w->stop == JZX_OK; i++) {
        walk_tree(w, &w->tables[i], main_tree.db.root);
    }
    if (w->stop == JZX_OK) {
        walk_tree(w, &free_tree, from);
    }
    if (w->report->problems == 0 && w->stop == JZX_OK) {
        check_end(w, &free_tree);
    }
}

static jzx_err pages_finish(walk *w)
{
    mfi_pages_report *report = w->report;
    report->lost = report->total - report->used - report->reusable;
    if (w->stop != JZX_OK) {
        return w->stop;
    }
    if (w->fn != NULL && w->fn(w->arg, NULL, report->total, report->total) != 0) {
        return JZX_ERR_CLOSED;
    }
    return report->problems == 0 ? JZX_OK : JZX_ERR_CORRUPT;
}

jzx_err mfi_pages_walk(int fd, const mfi_pages_meta *meta, jzx_mf_check_fn fn, void *arg,
                       mfi_pages_report *out)
{
    struct stat st;
    *out = (mfi_pages_report){.total = meta->last_page + 1, .used = FIRST_PAGE};
    if (fstat(fd, &st) != 0) {
        return JZX_ERR_IO;
    }
    walk *w = mfi_alloc_zeroed(1, sizeof *w);
    if (w == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    w->fd = fd;
    w->meta = meta;
    w->file_pages = (uint64_t)st.st_size / meta->page_size;
    w->fn = fn;
    w->arg = arg;
    w->report = out;
    w->seen = mfi_alloc_zeroed(1, (size_t)(meta->last_page / 8 + 1));
    w->chunk = mfi_alloc(CHUNK_WORDS * sizeof(uint64_t));
    jzx_err err = JZX_ERR_NO_MEMORY;
    if (w->seen != NULL && w->chunk != NULL) {
        /* The order of the walk is not that of the file. */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
        walk_trees(w);
        err = pages_finish(w);
    }
    for (unsigned i = 0; i < DEPTH_MAX; i++) {
        mfi_free(w->levels[i]);
    }
    mfi_free(w->chunk);
    mfi_free(w->seen);
    mfi_free(w);
    return err;
}
