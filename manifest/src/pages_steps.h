/* Offsets and flags of LMDB's pages on machines with words of 64 bits, in the machine's order. */
#ifndef MFI_PAGES_STEPS_H
#define MFI_PAGES_STEPS_H

#include "pages.h"

#include <string.h>

/* A page: u64 number | u16 pad | u16 flags | u16 lower | u16 upper | u16 offsets[]; an overflow run
 * has a u32 count of pages where lower and upper are. */
#define PAGE_HEAD 16u
#define PAGE_BRANCH 0x01u
#define PAGE_LEAF 0x02u
#define PAGE_OVERFLOW 0x04u
#define PAGE_META 0x08u

/* A node: u16 low | u16 high | u16 flags | u16 key length | key | data. In a leaf low and high are
 * the length of the data, in a branch low, high and flags the number of the child. */
#define NODE_HEAD 8u
#define NODE_BIG 0x01u
#define NODE_TABLE 0x02u

/* A tree: u32 pad | u16 flags | u16 depth | u64 branch, leaf, overflow pages, entries, root. */
#define DB_BYTES 48u
#define NO_ROOT UINT64_MAX

/* Meta page 0 and 1 come first. */
#define FIRST_PAGE 2u

static inline uint16_t get16(const uint8_t *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return v;
}
static inline uint32_t get32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}
static inline uint64_t get64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* A key, in the page it is in. */
typedef struct key {
    const uint8_t *bytes; /* NULL: none, no limit */
    size_t len;
} key;

static inline unsigned nodes_of(const uint8_t *page)
{
    return (get16(page + 12) - PAGE_HEAD) / 2;
}

static inline const uint8_t *node_at(const uint8_t *page, unsigned i)
{
    return page + get16(page + PAGE_HEAD + 2 * i);
}

static inline uint32_t data_len(const uint8_t *node)
{
    return (uint32_t)get16(node + 2) << 16 | get16(node);
}

static inline uint64_t child_of(const uint8_t *node)
{
    return (uint64_t)get16(node + 4) << 32 | data_len(node);
}

static inline key key_of(const uint8_t *node)
{
    return (key){node + NODE_HEAD, get16(node + 6)};
}

static inline const uint8_t *data_of(const uint8_t *node)
{
    return node + NODE_HEAD + get16(node + 6);
}

/* pages_head.c */
mfi_pages_db mfi_pages_db_at(const uint8_t *at);
/* Reads all of it; IO, or CORRUPT when the file ends before. */
jzx_err mfi_pages_read(int fd, void *buf, size_t len, uint64_t offset);

#define DEPTH_MAX 32u /* of LMDB's cursors */
#define TABLES_MAX 64u
#define NAME_SHOWN 32u
#define STARTS_BYTES (32768u / 2 / 8)

/* Trees differ in their keys and in what their leaves hold. */
typedef enum tree_kind { TREE_FREE, TREE_MAIN, TREE_TABLE } tree_kind;

typedef struct tree {
    char name[NAME_SHOWN + 1];
    tree_kind kind;
    mfi_pages_db db;                              /* what it should be */
    uint64_t branches, leaves, overflow, entries; /* what was found */
    bool is_damaged;
} tree;

typedef struct walk {
    int fd;
    const mfi_pages_meta *meta;
    uint64_t file_pages;
    uint8_t *seen;                /* a bit per page */
    uint8_t *levels[DEPTH_MAX];   /* the page per level that is being looked at */
    uint64_t *chunk;              /* of a free list record */
    uint8_t starts[STARTS_BYTES]; /* a bit per even offset: a node begins there */
    jzx_mf_check_fn fn;
    void *arg;
    mfi_pages_report *report;
    tree tables[TABLES_MAX];
    unsigned table_count;
    jzx_err stop; /* not OK: leave everything */
} walk;

/* pages.c: puts a problem into the report and tells it; false. */
bool mfi_pages_problem(walk *w, tree *in, uint64_t page, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* pages_node.c: whether a page is what its place says; false: a problem was told. */

bool mfi_pages_check_head(walk *w, tree *in, uint64_t number, const uint8_t *page, unsigned want);
/* Nodes and offsets fit each other and the page. */
bool mfi_pages_check_layout(walk *w, tree *in, uint64_t number, const uint8_t *page, bool is_leaf);
/* Keys ascend, from `low` on and below `high`. The first key of a branch means nothing. */
bool mfi_pages_check_keys(walk *w, tree *in, uint64_t number, const uint8_t *page, bool is_leaf,
                          key low, key high);

#endif
