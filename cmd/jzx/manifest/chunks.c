/* jzx manifest FILE chunks. */
#include "manifest.h"
#include "record.h"
#include "show.h"

#include <jzx/manifest_read.h>

#include <stdlib.h>

enum { CHUNKS_PER_PAGE = 2048 };

typedef struct chunk_list {
    uint64_t *dbs;
    size_t db_count, db_cap;
    uint64_t db;   /* whose chunks these are */
    uint64_t next; /* the chunk to go on with */
    uint64_t left; /* to be shown yet */
    uint32_t seen; /* in this page */
    uint64_t looked_at;
    bool json;
    FILE *out;
} chunk_list;

const char *show_compression(uint8_t compression)
{
    switch (compression) {
    case JZX_MF_COMPRESSION_NONE:
        return "none";
    case JZX_MF_COMPRESSION_LZ4:
        return "lz4";
    case JZX_MF_COMPRESSION_ZSTD:
        return "zstd";
    default:
        return "other";
    }
}

static const char *residency_name(uint8_t residency)
{
    switch (residency) {
    case JZX_MF_LOCAL:
        return "local";
    case JZX_MF_REMOTE:
        return "remote";
    case JZX_MF_EVICTED:
        return "evicted";
    default:
        return "unknown";
    }
}

void show_chunk(ui_record *r, uint64_t db, uint64_t id, const jzx_mf_chunk *chunk)
{
    ui_u64(r, "db", db);
    ui_u64(r, "chunk", id);
    ui_blob(r, "file_name", chunk->file_name);
    ui_blob(r, "object", chunk->object);
    ui_u64(r, "generation", chunk->generation);
    ui_u64(r, "size_bytes", chunk->size_bytes);
    ui_u64(r, "wal_begin", chunk->wal_begin);
    ui_u64(r, "wal_end", chunk->wal_end);
    ui_u64(r, "uploaded_ms", chunk->uploaded_ms);
    ui_u64(r, "purge_after_ms", chunk->purge_after_ms);
    ui_string(r, "compression", show_compression(chunk->compression));
    ui_bool(r, "encrypted", chunk->encrypted != 0);
    ui_string(r, "residency", residency_name(chunk->residency));
    ui_bool(r, "verified", chunk->verified != 0);
}

static void chunk_heading(FILE *out)
{
    fprintf(out, "%s%6s %10s %10s %10s  %-7s %-5s %-3s %21s  %-9s %s%s\n", ui_colour_on(UI_BOLD),
            "DB", "CHUNK", "GENERATION", "SIZE", "WHERE", "PACK", "ENC", "LOG", "PURGE", "FILE",
            ui_colour_on(UI_PLAIN));
}

static void chunk_row(FILE *out, uint64_t db, uint64_t id, const jzx_mf_chunk *chunk)
{
    ui_text range = ui_format("%llu-%llu", (unsigned long long)chunk->wal_begin,
                              (unsigned long long)chunk->wal_end);
    fprintf(out, "%6llu %10llu %10llu %10s  %-7s %-5s %-3s %21s  %-9s %s\n", (unsigned long long)db,
            (unsigned long long)id, (unsigned long long)chunk->generation,
            ui_bytes(chunk->size_bytes).text, residency_name(chunk->residency),
            show_compression(chunk->compression), chunk->encrypted != 0 ? "yes" : "no", range.text,
            ui_age(chunk->purge_after_ms).text, ui_span(chunk->file_name, 60).text);
}

static jzx_err list_chunk(void *arg, uint64_t id, const jzx_mf_chunk *chunk)
{
    chunk_list *list = arg;
    if (list->left == 0) {
        return JZX_ERR_STOPPING;
    }
    if (list->seen++ == CHUNKS_PER_PAGE) {
        list->next = id;
        return JZX_ERR_AGAIN;
    }
    list->left--;
    list->looked_at++;
    if (list->json) {
        ui_record r = ui_begin(list->out, true);
        show_chunk(&r, list->db, id, chunk);
        ui_end(&r);
    } else {
        chunk_row(list->out, list->db, id, chunk);
    }
    return JZX_OK;
}

static jzx_err list_page(jzx_mf_snap *snap, void *arg)
{
    chunk_list *list = arg;
    list->seen = 0;
    return jzx_mf_chunk_each(snap, list->db, list->next, list_chunk, list);
}

static jzx_err list_db(jzx_mf *mf, chunk_list *list, uint64_t total)
{
    jzx_err err;
    list->next = 0;
    do {
        ui_page page;
        if (!ui_page_begin(&page)) {
            return JZX_ERR_NO_MEMORY;
        }
        list->out = page.out;
        err = jzx_mf_read(mf, list_page, list);
        if (!ui_page_end(&page)) {
            return JZX_ERR_STOPPING;
        }
        ui_progress("chunks", list->looked_at, total);
    } while (err == JZX_ERR_AGAIN);
    return err;
}

static jzx_err add_db(void *arg, uint64_t db, const jzx_mf_db *record)
{
    (void)record;
    chunk_list *list = arg;
    if (list->db_count == list->db_cap) {
        size_t cap = list->db_cap == 0 ? 64 : 2 * list->db_cap;
        uint64_t *dbs = realloc(list->dbs, cap * sizeof *dbs);
        if (dbs == NULL) {
            return JZX_ERR_NO_MEMORY;
        }
        list->dbs = dbs;
        list->db_cap = cap;
    }
    list->dbs[list->db_count++] = db;
    return JZX_OK;
}

static jzx_err read_dbs(jzx_mf_snap *snap, void *arg)
{
    return jzx_mf_db_each(snap, add_db, arg);
}

static jzx_err list_all(jzx_mf *mf, chunk_list *list)
{
    jzx_mf_stats stats = {0};
    jzx_err err = jzx_mf_stats_read(mf, &stats);
    if (!list->json) {
        chunk_heading(stdout);
    }
    for (size_t i = 0; i < list->db_count && err == JZX_OK; i++) {
        list->db = list->dbs[i];
        err = list_db(mf, list, stats.entries[JZX_MF_TABLE_CHUNK]);
    }
    return err == JZX_ERR_STOPPING ? JZX_OK : err;
}

static int list_wanted(const call *c, jzx_mf *mf, chunk_list *list)
{
    uint64_t db = 0;
    int status = EXIT_FINE;
    if (c->given & OPT_LIMIT) {
        status = word_u64(c, "--limit", c->limit, &list->left);
    }
    if (status == EXIT_FINE && c->given & OPT_DB) {
        status = word_db(mf, c->db, &db);
    }
    if (status != EXIT_FINE) {
        return status;
    }
    jzx_err err = c->given & OPT_DB ? add_db(list, db, NULL) : jzx_mf_read(mf, read_dbs, list);
    if (err == JZX_OK) {
        err = list_all(mf, list);
    }
    return err == JZX_OK ? EXIT_FINE : ui_error(err, "The chunks of %s cannot be read", c->file);
}

int cmd_chunks(const call *c)
{
    int status = EXIT_FAILED;
    jzx_mf *mf = file_open_reading(c, &status);
    if (mf == NULL) {
        return status;
    }
    chunk_list list = {.json = c->json, .left = UINT64_MAX};
    status = list_wanted(c, mf, &list);
    free(list.dbs);
    file_close(mf);
    return status;
}
