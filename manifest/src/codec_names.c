/* Names and small things of the public record headers. */
#include "codec.h"

#include <string.h>

jzx_mf_span jzx_mf_text(const char *text)
{
    return jzx_mf_blob(text, text != NULL ? strlen(text) : 0);
}

const char *jzx_mf_table_name(uint32_t table)
{
    static const char *const names[] = {
        [JZX_MF_TABLE_META] = "meta",
        [JZX_MF_TABLE_DB] = "db",
        [JZX_MF_TABLE_DB_NAME] = "db_name",
        [JZX_MF_TABLE_WAL] = "wal",
        [JZX_MF_TABLE_CHUNK] = "chunk",
        [JZX_MF_TABLE_JOB] = "job",
        [JZX_MF_TABLE_UNIQUE] = "unique",
        [JZX_MF_TABLE_READY] = "ready",
        [JZX_MF_TABLE_SCHEDULED] = "scheduled",
        [JZX_MF_TABLE_LEASE] = "lease",
        [JZX_MF_TABLE_ACTIVE] = "active",
        [JZX_MF_TABLE_BLOCKED] = "blocked",
        [JZX_MF_TABLE_FINISHED] = "finished",
        [JZX_MF_TABLE_DEPENDENCY] = "dependency",
        [JZX_MF_TABLE_GATE] = "gate",
        [JZX_MF_TABLE_KIND] = "kind",
        [JZX_MF_TABLE_CRON] = "cron",
        [JZX_MF_TABLE_METRIC] = "metric",
        [JZX_MF_TABLE_GENERATION] = "generation",
        [JZX_MF_TABLE_MATERIAL] = "material",
        [JZX_MF_TABLE_MATERIAL_STATUS] = "material_status",
        [JZX_MF_TABLE_EVENT] = "event",
    };
    _Static_assert(sizeof names / sizeof names[0] == JZX_MF_TABLES, "every table has a name");
    return table < JZX_MF_TABLES ? names[table] : "unknown";
}

const char *jzx_mf_job_state_name(uint32_t state)
{
    static const char *const names[] = {
        [JZX_MF_JOB_WAITING] = "waiting",
        [JZX_MF_JOB_SCHEDULED] = "scheduled",
        [JZX_MF_JOB_READY] = "ready",
        [JZX_MF_JOB_BLOCKED] = "blocked",
        [JZX_MF_JOB_ACTIVE] = "active",
        [JZX_MF_JOB_DONE] = "done",
        [JZX_MF_JOB_DEAD] = "dead",
        [JZX_MF_JOB_CANCELLED] = "cancelled",
        [JZX_MF_JOB_SUPERSEDED] = "superseded",
    };
    bool known = state < sizeof names / sizeof names[0] && names[state] != NULL;
    return known ? names[state] : "unknown";
}
