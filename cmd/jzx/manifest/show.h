/* The fields of records that more than one subcommand shows. */
#ifndef JZX_CMD_SHOW_H
#define JZX_CMD_SHOW_H

#include "record.h"

#include <jzx/manifest_job.h>
#include <jzx/manifest_record.h>

void show_job(ui_record *r, const jzx_mf_job *job);
void show_chunk(ui_record *r, uint64_t db, uint64_t id, const jzx_mf_chunk *chunk);
const char *show_compression(uint8_t compression);

#endif
