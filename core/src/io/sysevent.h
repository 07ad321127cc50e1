/* OS signals, child processes and paths as messages. Each is a descriptor of the environment that
 * turns readable; what happened is read when the message is handed over, so nothing is buffered
 * here. They end by jzi_watch_end(). */
#ifndef JZI_SYSEVENT_H
#define JZI_SYSEVENT_H

#include "io/source.h"

jzx_err jzi_signal_watch(jzi_io *io, int signo, jzx_actor_id owner, uint32_t tag,
                         jzx_io_ref *out_ref);
jzx_err jzi_child_watch(jzi_io *io, int32_t pid, jzx_actor_id owner, uint32_t tag,
                        jzx_io_ref *out_ref);
jzx_err jzi_path_watch(jzi_io *io, const char *path, uint32_t changes, jzx_actor_id owner,
                       uint32_t tag, jzx_io_ref *out_ref);

#endif
