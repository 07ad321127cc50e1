/* What the net suites share: a listener with one accepted connection, and the test's own end. */
#ifndef JZT_NET_FIXTURE_H
#define JZT_NET_FIXTURE_H

#include "io_fixture.h"

enum { MEGABYTE = 1 << 20 };

/* A listener, an accepted connection, and the test's own end of it. */
typedef struct line {
    bench b;
    ear *server;
    jzx_io_ref listener;
    jzx_io_ref conn;
    int fd;
} line;

/* An abstract address of this process alone: other builds' tests may run at the same time. */
const char *unix_address(const char *name);
void listen_on(bench *b, const char *address, ear *owner, const jzx_net_opts *opts,
               jzx_io_ref *out_ref, char out_address[JZX_ADDRESS_MAX + 1]);
line line_open(const jzx_net_opts *opts);
void line_close(line *l);
/* Repeats itself every PERIOD bytes, so that most of it is copied: under a thread sanitizer byte by
 * byte took seconds for each of these. */
unsigned char *pattern(size_t len);
/* Writes until the socket takes no more and the buffer refuses. Returns how many bytes were taken;
 * the owner's log is empty then. */
size_t fill(line *l, const unsigned char *bytes, size_t len, size_t piece);
size_t buffered(line *l);
/* Echoes; what is refused is kept, and reading stops until there is room. */

#endif
