/* Descriptors of the program's own, watched for actors (jzx_watch_fd). The public calls are thin
 * covers over these, which know an I/O layer and no loop. */
#ifndef JZI_WATCH_H
#define JZI_WATCH_H

#include "io/source.h"

jzx_err jzi_watch_open(jzi_io *io, int fd, jzx_actor_id owner, uint32_t interest, uint32_t tag,
                       jzx_io_ref *out_ref);
jzx_err jzi_watch_update(jzi_io *io, jzx_io_ref ref, uint32_t interest);
/* Ends a watch of a descriptor, signal, child or path. */
jzx_err jzi_watch_end(jzi_io *io, jzx_io_ref ref);

#endif
