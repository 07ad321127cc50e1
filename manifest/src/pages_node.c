/* One page of a tree: its head, its nodes and the order of its keys. */
#include "pages_steps.h"

#define KEY_MAX 511u

/* What a node takes in its page; may be more than any page has. */
static uint64_t node_size(const uint8_t *node, bool is_leaf)
{
    uint64_t size = NODE_HEAD + (uint64_t)get16(node + 6);
    if (is_leaf) {
        size += (get16(node + 4) & NODE_BIG) != 0 ? sizeof(uint64_t) : data_len(node);
    }
    return (size + 1) & ~(uint64_t)1;
}

/* Nodes fill the page from `upper` to its end without a gap: LMDB moves them when it deletes one,
 * by what it believes to be their sizes. Marks where each begins. */
static bool tile_nodes(walk *w, tree *in, uint64_t number, const uint8_t *page, bool is_leaf,
                       unsigned *out_count)
{
    uint32_t size = w->meta->page_size;
    uint32_t at = get16(page + 14);
    /* Two nodes must always fit; what is longer has pages of its own. */
    uint32_t most = ((size - PAGE_HEAD) / 2 & ~1u) - 2;
    unsigned count = 0;
    memset(w->starts, 0, size / 16);
    while (at < size) {
        uint64_t node = at + NODE_HEAD <= size ? node_size(page + at, is_leaf) : size;
        if (node > size - at || node > most) {
            return mfi_pages_problem(w, in, number, "the node at %u is too long", at);
        }
        w->starts[at >> 4] |= (uint8_t)(1u << (at >> 1 & 7));
        at += (uint32_t)node;
        count++;
    }
    *out_count = count;
    return true;
}

/* Every offset names a node, and each node is named once. */
static bool match_offsets(walk *w, tree *in, uint64_t number, const uint8_t *page)
{
    unsigned count = nodes_of(page);
    for (unsigned i = 0; i < count; i++) {
        uint32_t at = get16(page + PAGE_HEAD + 2 * i);
        uint8_t bit = (uint8_t)(1u << (at >> 1 & 7));
        if ((at & 1) != 0 || at >= w->meta->page_size || (w->starts[at >> 4] & bit) == 0) {
            return mfi_pages_problem(w, in, number, "offset %u names no node, or one named before",
                                     at);
        }
        w->starts[at >> 4] &= (uint8_t)~bit;
    }
    return true;
}

bool mfi_pages_check_head(walk *w, tree *in, uint64_t number, const uint8_t *page, unsigned want)
{
    if (get64(page) != number) {
        return mfi_pages_problem(w, in, number, "has the number %llu written in it",
                                 (unsigned long long)get64(page));
    }
    if (get16(page + 10) != want) {
        return mfi_pages_problem(w, in, number, "has flags %x instead of %x", get16(page + 10),
                                 want);
    }
    return true;
}

bool mfi_pages_check_layout(walk *w, tree *in, uint64_t number, const uint8_t *page, bool is_leaf)
{
    unsigned lower = get16(page + 12);
    unsigned upper = get16(page + 14);
    if (!mfi_pages_check_head(w, in, number, page, is_leaf ? PAGE_LEAF : PAGE_BRANCH)) {
        return false;
    }
    if (lower < PAGE_HEAD || lower > upper || upper > w->meta->page_size || ((lower | upper) & 1)) {
        return mfi_pages_problem(w, in, number, "its free space is said to be from %u to %u", lower,
                                 upper);
    }
    unsigned count = 0;
    if (!tile_nodes(w, in, number, page, is_leaf, &count)) {
        return false;
    }
    if (count != nodes_of(page)) {
        return mfi_pages_problem(w, in, number, "has %u nodes and %u offsets", count,
                                 nodes_of(page));
    }
    /* LMDB asserts that a branch has two children; the free list may do with one. */
    unsigned least = is_leaf || in->kind == TREE_FREE ? 1 : 2;
    if (count < least) {
        return mfi_pages_problem(w, in, number, "has %u nodes; %u is the least", count, least);
    }
    return match_offsets(w, in, number, page);
}

static int pages_node_compare(const tree *in, key a, key b)
{
    if (in->kind == TREE_FREE) {
        uint64_t x = get64(a.bytes);
        uint64_t y = get64(b.bytes);
        return x < y ? -1 : x > y;
    }
    int order = memcmp(a.bytes, b.bytes, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : a.len < b.len ? -1 : a.len > b.len;
}

static bool is_key_len(const tree *in, size_t len)
{
    return in->kind == TREE_FREE ? len == sizeof(uint64_t) : len > 0 && len <= KEY_MAX;
}

bool mfi_pages_check_keys(walk *w, tree *in, uint64_t number, const uint8_t *page, bool is_leaf,
                          key low, key high)
{
    unsigned count = nodes_of(page);
    key before = low;
    for (unsigned i = is_leaf ? 0 : 1; i < count; i++) {
        key now = key_of(node_at(page, i));
        if (!is_key_len(in, now.len)) {
            return mfi_pages_problem(w, in, number, "key %u has %zu bytes", i, now.len);
        }
        if (before.bytes != NULL) {
            int order = pages_node_compare(in, before, now);
            if (order > 0 || (order == 0 && before.bytes != low.bytes)) {
                return mfi_pages_problem(w, in, number, "key %u is not in order", i);
            }
        }
        before = now;
    }
    if (high.bytes != NULL && before.bytes != NULL && pages_node_compare(in, before, high) >= 0) {
        return mfi_pages_problem(w, in, number, "its last key belongs into the next page");
    }
    return true;
}
