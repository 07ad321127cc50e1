/* What a snapshot of the public API is made of: jzx_mf_read() makes one, read.c reads from it. */
#ifndef MFI_SNAP_H
#define MFI_SNAP_H

#include "tx.h"

#include <jzx/manifest_read.h>

struct jzx_mf_snap {
    mfi_view view;
};

#endif
