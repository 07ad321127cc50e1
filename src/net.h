/* Stream sockets as messages: what listeners and connections know of each other. */
#ifndef JZI_NET_H
#define JZI_NET_H

#include <jzx/net.h>

#include "net_buffer.h"
#include "source.h"

typedef struct jzi_conn jzi_conn;

/* The caller's options with the defaults filled in; given NULL is all defaults. Errors:
 * NEWER_STRUCT, RESERVED_TAG. */
jzx_err jzi_net_opts_adopt(jzx_net_opts *out, const jzx_net_opts *given, size_t given_size);
/* Takes the descriptor out of the poller and closes it, if there is one. */
void jzi_net_fd_release(jzi_io *io, jzi_source *source);

jzx_err jzi_listener_open(jzi_io *io, const char *address, jzx_actor_id owner,
                          const jzx_net_opts *opts, jzx_io_ref *out_ref);
jzx_err jzi_listener_close(jzi_io *io, jzx_io_ref ref);

/* A connection without a descriptor yet. Errors: as jzi_source_open(). */
jzx_err jzi_conn_open(jzi_io *io, jzx_actor_id owner, const jzx_net_opts *opts, jzi_conn **out_conn,
                      jzx_io_ref *out_ref);
/* Gives it the socket that was accepted. If the poller refuses that, the owner gets CLOSED. */
void jzi_conn_accepted(jzi_io *io, jzi_conn *conn, int fd);
/* Ends one that was given no socket. */
void jzi_conn_cancel(jzi_io *io, jzi_conn *conn);

jzx_err jzi_conn_connect(jzi_io *io, const char *address, jzx_actor_id owner,
                         const jzx_net_opts *opts, jzx_io_ref *out_ref);
jzx_err jzi_conn_write(jzi_io *io, jzx_io_ref ref, const void *bytes, size_t len);
jzx_err jzi_conn_shutdown(jzi_io *io, jzx_io_ref ref);
jzx_err jzi_conn_close(jzi_io *io, jzx_io_ref ref, bool now);
jzx_err jzi_conn_pause(jzi_io *io, jzx_io_ref ref, bool paused);
jzx_err jzi_conn_give(jzi_io *io, jzx_io_ref ref, jzx_actor_id owner, uint32_t tag);
jzx_err jzi_conn_buffered(jzi_io *io, jzx_io_ref ref, size_t *out_bytes);

/* Of a listener or a connection. */
jzx_err jzi_net_address(jzi_io *io, jzx_io_ref ref, bool peer, char *out, size_t cap);

#endif
