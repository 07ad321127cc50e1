#include "actor/node.h"

#include "base/alloc.h"
#include "base/assert.h"

/* A page is a header and an array of nodes, aligned to a cache line by hand because allocators only
 * promise 16 bytes. */
enum { LINE = 64 };

static unsigned char *page_nodes(const jzi_node_page *page)
{
    uintptr_t first = (uintptr_t)(page + 1);
    return (unsigned char *)((first + LINE - 1) & ~(uintptr_t)(LINE - 1));
}

/* Bursts past the pages that are kept come in bigger pages: fewer calls, fewer page faults. */
static uint32_t page_size_for(const jzi_node_pool *pool)
{
    return pool->page_count < JZI_POOL_KEEP ? JZI_PAGE_NODES : JZI_PAGE_NODES * 16;
}

static void page_thread(jzi_node_pool *pool, jzi_node_page *page)
{
    unsigned char *nodes = page_nodes(page);
    for (uint32_t i = page->count; i-- > 0;) {
        jzi_node *node = (jzi_node *)(void *)(nodes + (size_t)i * page->node_bytes);
        node->msg.drop = NULL;
        node->msg.deadline_ns = 0;
        jzi_node_pool_give(pool, node);
    }
}

bool jzi_node_pool_grow(jzi_node_pool *pool, const jzx_allocator *alloc)
{
    uint32_t count = page_size_for(pool);
    size_t bytes = sizeof(jzi_node_page) + LINE + (size_t)count * pool->node_bytes;
    jzi_node_page *page = jzi_alloc(alloc, bytes);
    if (page == NULL) {
        return false;
    }
    *page = (jzi_node_page){
        .next = pool->pages, .bytes = bytes, .count = count, .node_bytes = pool->node_bytes};
    pool->pages = page;
    pool->page_count++;
    page_thread(pool, page);
    return true;
}

void jzi_node_pool_trim(jzi_node_pool *pool, const jzx_allocator *alloc)
{
    if (pool->page_count <= JZI_POOL_KEEP) {
        return;
    }
    jzi_debug_assert(jzi_node_pool_count_free(pool) == jzi_node_pool_count_all(pool));
    pool->free_nodes = NULL;
    while (pool->page_count > JZI_POOL_KEEP) {
        jzi_node_page *page = pool->pages;
        pool->pages = page->next;
        pool->page_count--;
        jzi_free(alloc, page, page->bytes);
    }
    for (jzi_node_page *page = pool->pages; page != NULL; page = page->next) {
        page_thread(pool, page);
    }
}

void jzi_node_pool_deinit(jzi_node_pool *pool, const jzx_allocator *alloc)
{
    while (pool->pages != NULL) {
        jzi_node_page *page = pool->pages;
        pool->pages = page->next;
        jzi_free(alloc, page, page->bytes);
    }
    *pool = (jzi_node_pool){.node_bytes = pool->node_bytes};
}

uint64_t jzi_node_pool_count_free(const jzi_node_pool *pool)
{
    uint64_t count = 0;
    for (const jzi_node *node = pool->free_nodes; node != NULL; node = node->next) {
        count++;
    }
    return count;
}

uint64_t jzi_node_pool_count_all(const jzi_node_pool *pool)
{
    uint64_t count = 0;
    for (const jzi_node_page *page = pool->pages; page != NULL; page = page->next) {
        count += page->count;
    }
    return count;
}

bool jzi_node_pool_is_clean(const jzi_node_pool *pool)
{
    for (const jzi_node *node = pool->free_nodes; node != NULL; node = node->next) {
        if (node->msg.drop != NULL || node->msg.deadline_ns != 0) {
            return false;
        }
    }
    return true;
}
