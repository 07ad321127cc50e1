/* jzx manifest FILE dump. */
#include "dump.h"
#include "manifest.h"

#include <string.h>

enum { LINES_PER_PAGE = 1024 };

static int parse_tables(const call *c, dumping *dump)
{
    if (c->operand_count == 0) {
        while (dump->count < JZX_MF_TABLES) {
            dump->tables[dump->count] = (uint32_t)dump->count;
            dump->count++;
        }
    }
    for (int i = 0; i < c->operand_count; i++) {
        uint32_t table = 0;
        while (table < JZX_MF_TABLES && strcmp(jzx_mf_table_name(table), c->operands[i]) != 0) {
            table++;
        }
        if (table == JZX_MF_TABLES || dump->count == JZX_MF_TABLES) {
            char names[512] = "";
            for (uint32_t t = 0; t < JZX_MF_TABLES; t++) {
                size_t used = strlen(names);
                (void)snprintf(names + used, sizeof names - used, " %s", jzx_mf_table_name(t));
            }
            return ui_usage(c->help, "There is no table '%s'. The tables are%s.", c->operands[i],
                            names);
        }
        dump->tables[dump->count++] = table;
    }
    return EXIT_FINE;
}

jzx_err dump_next(dumping *dump)
{
    if (++dump->done % LINES_PER_PAGE != 0) {
        return JZX_OK;
    }
    if (!ui_page_end(&dump->page)) {
        return JZX_ERR_STOPPING;
    }
    ui_progress("records", dump->done, dump->total);
    return ui_page_begin(&dump->page) ? JZX_OK : JZX_ERR_NO_MEMORY;
}

static jzx_err dump_line(void *arg, const char *line, size_t len)
{
    dumping *dump = arg;
    FILE *out = dump->page.out;
    if (dump->json) {
        ui_record r = ui_begin(out, true);
        ui_string(&r, "table", jzx_mf_table_name(dump->table));
        ui_blob(&r, "line", jzx_mf_blob(line, len));
        ui_end(&r);
    } else {
        (void)fwrite(line, 1, len, out);
        fputc('\n', out);
    }
    return dump_next(dump);
}

static jzx_err dump_all(jzx_mf_snap *snap, void *arg)
{
    dumping *dump = arg;
    jzx_err err = JZX_OK;
    dump->snap = snap;
    for (size_t i = 0; i < dump->count && err == JZX_OK; i++) {
        dump->table = dump->tables[i];
        bool records = dump->json && dump_has_records(dump->table);
        err = records ? dump_records(dump) : jzx_mf_dump(snap, dump->table, dump_line, dump);
    }
    return err;
}

static int dump_file(const call *c, jzx_mf *mf, dumping *dump)
{
    jzx_mf_stats stats = {0};
    jzx_err err = jzx_mf_stats_read(mf, &stats);
    for (size_t i = 0; i < dump->count; i++) {
        dump->total += stats.entries[dump->tables[i]];
    }
    if (err == JZX_OK && !ui_page_begin(&dump->page)) {
        err = JZX_ERR_NO_MEMORY;
    }
    if (err == JZX_OK) {
        err = jzx_mf_read(mf, dump_all, dump);
    }
    if (dump->page.out != NULL) {
        (void)ui_page_end(&dump->page);
    }
    if (err == JZX_OK || err == JZX_ERR_STOPPING) {
        return EXIT_FINE;
    }
    return ui_error(err, "%s cannot be dumped beyond table %s", c->file,
                    jzx_mf_table_name(dump->table));
}

int cmd_dump(const call *c)
{
    dumping dump = {.json = c->json};
    int status = parse_tables(c, &dump);
    if (status != EXIT_FINE) {
        return status;
    }
    jzx_mf *mf = file_open_reading(c, &status);
    if (mf == NULL) {
        return status;
    }
    status = dump_file(c, mf, &dump);
    file_close(mf);
    return status;
}
