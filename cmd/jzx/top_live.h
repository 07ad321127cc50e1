/* The live view of `jzx top`: asks, waits for answers and keys at the same time, draws. */
#ifndef JZX_CMD_TOP_LIVE_H
#define JZX_CMD_TOP_LIVE_H

#include "attach.h"
#include "top_state.h"

/* Until the user ends it, or after so many refreshes (0: no such end). The connection is
 * transferred. Returns an exit status. */
int top_live(attach *link, top_state *state, uint64_t iterations);

#endif
