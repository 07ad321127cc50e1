/* A dump on its way. */
#ifndef JZX_CMD_DUMP_H
#define JZX_CMD_DUMP_H

#include "record.h"

#include <jzx/manifest_read.h>

typedef struct dumping {
    uint32_t tables[JZX_MF_TABLES];
    size_t count;
    bool json;
    uint64_t done, total;
    ui_page page;
    jzx_mf_snap *snap; /* for walks within walks */
    uint64_t db;       /* whose rows these are, in such a walk */
    uint32_t table;    /* the one in hand */
} dumping;

/* After each record: lets pages go out now and then. STOPPING: stdout has no reader any more.
 */
jzx_err dump_next(dumping *dump);

/* A table record by record, as JSON with the names and types of the fields; false: it has no such
 * records, and goes line by line. */
bool dump_has_records(uint32_t table);
jzx_err dump_records(dumping *dump);

#endif
