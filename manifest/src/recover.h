/* What happens between opening the file and serving: one new boot, records brought to this schema,
 * leases of older boots settled. A crash in the middle leaves less to do for the next time. */
#ifndef MFI_RECOVER_H
#define MFI_RECOVER_H

#include "writer.h"

/* Fills in the writer's meta and the report. Needs mf->store, mf->opts and mf->clock's loop. */
jzx_err mfi_recover(mfi_writer *writer, jzx_mf_recovery *report);
/* The numbers of a report that are numbers of rows. */
void mfi_describe(const mfi_view *view, jzx_mf_recovery *report);

#endif
