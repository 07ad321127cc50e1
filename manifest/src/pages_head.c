/* The two meta pages: whose file it is, and which commit is the last. */
#include "pages_steps.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* u32 magic | u32 version | u64 address | u64 map size | free tree | main tree | u64 last page |
 * u64 txnid, behind the head of a page. The flags of the file and the size of its pages are in the
 * free tree's fields. */
#define META_MAGIC 0xBEEFC0DEu
#define META_MAGIC_SWAPPED 0xDEC0EFBEu
#define META_VERSION 1u
#define META_MAGIC_AT PAGE_HEAD
#define META_MAGIC_AT_32BIT 12u
#define META_FREE_AT (PAGE_HEAD + 24u)
#define META_MAIN_AT (META_FREE_AT + DB_BYTES)
#define META_LAST_AT (META_MAIN_AT + DB_BYTES)
#define META_TXNID_AT (META_LAST_AT + 8u)
#define META_BYTES (META_TXNID_AT + 8u)

/* Integer keys, which the free list has; and whether the file is in a directory of its own. */
#define FILE_FLAGS 0x0008u
#define FILE_FLAGS_FREE 0x4000u

/* A commit may allocate pages that are free again at its end and never written. A commit cannot
 * have more of them than LMDB keeps dirty (131,071), so a file that lacks more was cut off. */
#define UNWRITTEN_MAX ((uint64_t)1 << 20)

#define PAGE_SIZE_MIN 512u
#define PAGE_SIZE_MAX 32768u

static jzx_err say(char text[MFI_PAGES_TEXT], jzx_err err, const char *sentence)
{
    (void)snprintf(text, MFI_PAGES_TEXT, "%s", sentence);
    return err;
}

jzx_err mfi_pages_read(int fd, void *buf, size_t len, uint64_t offset)
{
    uint8_t *at = buf;
    while (len > 0) {
        ssize_t got = pread(fd, at, len, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? JZX_ERR_IO : JZX_ERR_CORRUPT;
        }
        at += got;
        len -= (size_t)got;
        offset += (uint64_t)got;
    }
    return JZX_OK;
}

mfi_pages_db mfi_pages_db_at(const uint8_t *at)
{
    return (mfi_pages_db){
        .pad = get32(at),
        .flags = get16(at + 4),
        .depth = get16(at + 6),
        .branch_pages = get64(at + 8),
        .leaf_pages = get64(at + 16),
        .overflow_pages = get64(at + 24),
        .entries = get64(at + 32),
        .root = get64(at + 40),
    };
}

uint32_t mfi_pages_size_here(void)
{
    uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
    return size < PAGE_SIZE_MAX ? (uint32_t)size : PAGE_SIZE_MAX;
}

static bool is_page_size(uint32_t size)
{
    return size >= PAGE_SIZE_MIN && size <= PAGE_SIZE_MAX && (size & (size - 1)) == 0;
}

static bool is_meta(const uint8_t *page)
{
    return get32(page + META_MAGIC_AT) == META_MAGIC && (get16(page + 10) & PAGE_META) == PAGE_META;
}

/* The first page is no meta page of ours. Whose is it, or is it one that was damaged? */
static jzx_err judge_stranger(int fd, const uint8_t *first, char text[MFI_PAGES_TEXT])
{
    if (get32(first + META_MAGIC_AT) == META_MAGIC_SWAPPED) {
        return say(text, JZX_ERR_FOREIGN_PAGES,
                   "was written on a machine of the other byte order: move it with mdb_dump and "
                   "mdb_load");
    }
    if (get32(first + META_MAGIC_AT_32BIT) == META_MAGIC) {
        return say(text, JZX_ERR_FOREIGN_PAGES,
                   "was written on a 32-bit machine: move it with mdb_dump and mdb_load");
    }
    uint8_t second[META_BYTES];
    uint32_t page_size = mfi_pages_size_here();
    bool damaged =
        get32(first + META_MAGIC_AT) == META_MAGIC ||
        (mfi_pages_read(fd, second, sizeof second, page_size) == JZX_OK && is_meta(second));
    return damaged ? say(text, JZX_ERR_CORRUPT, "page 0: the first meta page is damaged")
                   : say(text, JZX_ERR_NOT_A_MANIFEST, "is no LMDB file");
}

static jzx_err judge_page_size(uint32_t page_size, char text[MFI_PAGES_TEXT])
{
    uint32_t here = mfi_pages_size_here();
    if (!is_page_size(page_size)) {
        (void)snprintf(text, MFI_PAGES_TEXT, "page 0: pages of %u bytes cannot be", page_size);
        return JZX_ERR_CORRUPT;
    }
    if (page_size != here) {
        (void)snprintf(text, MFI_PAGES_TEXT,
                       "has pages of %u bytes, this machine has %u: move it with mdb_dump and "
                       "mdb_load",
                       page_size, here);
        return JZX_ERR_FOREIGN_PAGES;
    }
    return JZX_OK;
}

static jzx_err judge_first(int fd, const uint8_t *first, char text[MFI_PAGES_TEXT])
{
    if (!is_meta(first)) {
        return judge_stranger(fd, first, text);
    }
    uint32_t version = get32(first + META_MAGIC_AT + 4);
    if (version != META_VERSION) {
        (void)snprintf(text, MFI_PAGES_TEXT,
                       "has version %u of LMDB's format; this library reads version %u", version,
                       META_VERSION);
        return JZX_ERR_NOT_A_MANIFEST;
    }
    return judge_page_size(get32(first + META_FREE_AT), text);
}

/* What must be right in both meta pages, since LMDB looks at both. */
static jzx_err judge_meta(const uint8_t *page, uint32_t which, uint32_t page_size,
                          char text[MFI_PAGES_TEXT])
{
    const char *wrong = NULL;
    if (!is_meta(page)) {
        wrong = "is no meta page";
    } else if (get64(page) != which) {
        wrong = "has another page's number";
    } else if (get16(page + 10) != PAGE_META) {
        wrong = "has flags of other pages";
    } else if (get32(page + META_MAGIC_AT + 4) != META_VERSION) {
        wrong = "has another version than the first";
    } else if (get32(page + META_FREE_AT) != page_size) {
        wrong = "has another page size than the first";
    } else if ((get16(page + META_FREE_AT + 4) & ~FILE_FLAGS_FREE) != FILE_FLAGS) {
        wrong = "has flags that a manifest does not have";
    }
    if (wrong == NULL) {
        return JZX_OK;
    }
    (void)snprintf(text, MFI_PAGES_TEXT, "page %u: the meta page %s", which, wrong);
    return JZX_ERR_CORRUPT;
}

typedef struct metas {
    uint8_t bytes[2][META_BYTES];
} metas;

static jzx_err read_metas(int fd, metas *out, uint32_t *out_page_size, char text[MFI_PAGES_TEXT])
{
    jzx_err err = mfi_pages_read(fd, out->bytes[0], META_BYTES, 0);
    if (err != JZX_OK) {
        struct stat st;
        bool empty = fstat(fd, &st) == 0 && st.st_size == 0;
        return err == JZX_ERR_IO ? say(text, err, "cannot be read")
                                 : say(text, JZX_ERR_NOT_A_MANIFEST,
                                       empty ? "is empty" : "is too short to be an LMDB file");
    }
    err = judge_first(fd, out->bytes[0], text);
    if (err != JZX_OK) {
        return err;
    }
    *out_page_size = get32(out->bytes[0] + META_FREE_AT);
    err = mfi_pages_read(fd, out->bytes[1], META_BYTES, *out_page_size);
    return err == JZX_OK       ? JZX_OK
           : err == JZX_ERR_IO ? say(text, err, "cannot be read")
                               : say(text, err, "was cut off in its second page");
}

/* A writer may be writing one of them: twice the same means that it was not. */
static jzx_err read_settled(int fd, metas *out, uint32_t *out_page_size, char text[MFI_PAGES_TEXT])
{
    enum { TRIES = 100 };
    jzx_err err = JZX_OK;
    for (int i = 0; i < TRIES; i++) {
        metas again;
        err = read_metas(fd, out, out_page_size, text);
        if (err == JZX_OK) {
            err = read_metas(fd, &again, out_page_size, text);
        }
        if (err != JZX_OK || memcmp(out, &again, sizeof again) == 0) {
            return err;
        }
    }
    return say(text, JZX_ERR_IO, "its meta pages change all the time");
}

static jzx_err judge_chosen(int fd, const mfi_pages_meta *meta, char text[MFI_PAGES_TEXT])
{
    if ((meta->txnid & 1) != meta->which) {
        (void)snprintf(text, MFI_PAGES_TEXT, "page %u: the meta page has the other one's commit",
                       meta->which);
        return JZX_ERR_CORRUPT;
    }
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return say(text, JZX_ERR_IO, "cannot be looked at");
    }
    uint64_t there = (uint64_t)st.st_size / meta->page_size;
    if (meta->last_page < FIRST_PAGE - 1 || meta->last_page >= there + UNWRITTEN_MAX) {
        (void)snprintf(text, MFI_PAGES_TEXT,
                       "page %u: the last page is said to be %llu, but the file has %llu pages: it "
                       "was cut off, or the meta page is damaged",
                       meta->which, (unsigned long long)meta->last_page, (unsigned long long)there);
        return JZX_ERR_CORRUPT;
    }
    return JZX_OK;
}

static jzx_err take_meta(int fd, const metas *both, uint32_t which, uint32_t page_size,
                         mfi_pages_meta *out, char text[MFI_PAGES_TEXT])
{
    for (uint32_t i = 0; i < 2; i++) {
        jzx_err err = judge_meta(both->bytes[i], i, page_size, text);
        if (err != JZX_OK) {
            return err;
        }
    }
    const uint8_t *page = both->bytes[which];
    /* Commits take turns. Pages that do not follow each other were not left by two of them: the
     * number of one was damaged, and what looks like the last commit may not be it. */
    uint64_t other = get64(both->bytes[1 - which] + META_TXNID_AT);
    uint64_t own = get64(page + META_TXNID_AT);
    if (other + 1 != own && own + 1 != other && other + own != 0) {
        (void)snprintf(text, MFI_PAGES_TEXT,
                       "page %u: the meta page has commit %llu, the other one %llu, and these do "
                       "not follow each other",
                       which, (unsigned long long)own, (unsigned long long)other);
        return JZX_ERR_CORRUPT;
    }
    mfi_pages_meta meta = {
        .free_db = mfi_pages_db_at(page + META_FREE_AT),
        .main_db = mfi_pages_db_at(page + META_MAIN_AT),
        .last_page = get64(page + META_LAST_AT),
        .txnid = get64(page + META_TXNID_AT),
        .page_size = page_size,
        .which = which,
    };
    jzx_err err = judge_chosen(fd, &meta, text);
    if (err == JZX_OK) {
        *out = meta;
    }
    return err;
}

jzx_err mfi_pages_head(int fd, mfi_pages_meta *out, char text[MFI_PAGES_TEXT])
{
    metas both;
    uint32_t page_size;
    jzx_err err = read_settled(fd, &both, &page_size, text);
    if (err != JZX_OK) {
        return err;
    }
    uint32_t which =
        get64(both.bytes[1] + META_TXNID_AT) > get64(both.bytes[0] + META_TXNID_AT) ? 1 : 0;
    return take_meta(fd, &both, which, page_size, out, text);
}

jzx_err mfi_pages_head_of(int fd, uint64_t txnid, mfi_pages_meta *out, char text[MFI_PAGES_TEXT])
{
    metas both;
    uint32_t page_size;
    jzx_err err = read_settled(fd, &both, &page_size, text);
    if (err != JZX_OK) {
        return err;
    }
    uint32_t which = txnid & 1;
    if (get64(both.bytes[which] + META_TXNID_AT) != txnid) {
        return say(text, JZX_ERR_AGAIN, "has a newer commit");
    }
    return take_meta(fd, &both, which, page_size, out, text);
}
