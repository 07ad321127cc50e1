/* The logical check: whether the records say what they may, and the indexes what the records say.
 *
 * Every row of every table is looked at once, and for each the few others that must be there, or
 * must not, are looked up: both directions, in memory that does not grow with the file. The check
 * reads only; the pages must have been found sound before (pages.h), since LMDB trusts them. */
#ifndef MFI_AUDIT_H
#define MFI_AUDIT_H

#include "tx.h"

#include <jzx/manifest_store.h>

/* More problems than this are counted, but not told one by one. */
#define MFI_CHECK_TOLD_MAX 1000u

/* fn may be NULL; *report is added to. CORRUPT: there are problems; NEWER_SCHEMA: the file may be
 * fine, this library cannot tell; NO_MEMORY. When fn ended it: whether there were any so far. */
jzx_err mfi_check_view(const mfi_view *view, jzx_mf_check_fn fn, void *arg,
                       jzx_mf_check_report *report);

#endif
