/* The file as LMDB 0.9 lays it out, looked at page by page with pread().
 *
 * LMDB trusts what it maps: a damaged page makes it read or write where it must not. So the whole
 * tree of trees is walked here before LMDB follows a single pointer of it, with every number
 * checked against the file before it is used. What a value says is not looked at; records have
 * checksums of their own. docs/internals/adr/0021 says why it is done like this. */
#ifndef MFI_PAGES_H
#define MFI_PAGES_H

#include <jzx/manifest_store.h>
#include <jzx/types.h>

#include <stdbool.h>

#define MFI_PAGES_TEXT 200u

/* The root of a tree, as a meta page or the main table has it. */
typedef struct mfi_pages_db {
    uint64_t branch_pages, leaf_pages, overflow_pages, entries;
    uint64_t root; /* UINT64_MAX: there is none */
    uint32_t pad;
    uint16_t flags;
    uint16_t depth;
} mfi_pages_db;

/* What one commit left: where to begin. */
typedef struct mfi_pages_meta {
    mfi_pages_db free_db;
    mfi_pages_db main_db;
    uint64_t last_page;
    uint64_t txnid;
    uint32_t page_size;
    uint32_t which; /* 0 or 1: the meta page */
} mfi_pages_meta;

/* The size of the pages that LMDB makes on this machine. */
uint32_t mfi_pages_size_here(void);

/* Reads the meta pages and takes the one that LMDB would take. May run beside a writer. `text` gets
 * a sentence after an error, without the file's name.
 * Errors: NOT_A_MANIFEST (no LMDB file), FOREIGN_PAGES (another page size, byte order or word
 * size), CORRUPT, IO. */
jzx_err mfi_pages_head(int fd, mfi_pages_meta *out, char text[MFI_PAGES_TEXT]);
/* The meta page of this commit, for a caller with a read transaction of it: AGAIN if two commits
 * happened since and the page is gone (renew, and try again). */
jzx_err mfi_pages_head_of(int fd, uint64_t txnid, mfi_pages_meta *out, char text[MFI_PAGES_TEXT]);

typedef struct mfi_pages_report {
    uint64_t total;    /* pages up to the last one */
    uint64_t used;     /* reached from the roots, meta pages included */
    uint64_t reusable; /* on the free list */
    uint64_t lost;     /* neither; harmless */
    uint64_t problems;
    bool has_meta;             /* there is a table "meta" */
    bool is_foreign;           /* there are tables of a kind that a manifest does not have */
    char text[MFI_PAGES_TEXT]; /* the first problem: "page 17: ..." */
} mfi_pages_report;

/* Walks everything that a commit can reach. The pages must not change meanwhile: the caller owns
 * the file, or has a read transaction of that commit. `fn` is told every problem, and now and then
 * how many pages of how many are done; NULL: the walk ends with the first problem.
 * Errors: CORRUPT (there are problems), CLOSED (fn had enough), NO_MEMORY, IO. */
jzx_err mfi_pages_walk(int fd, const mfi_pages_meta *meta, jzx_mf_check_fn fn, void *arg,
                       mfi_pages_report *out);

#endif
