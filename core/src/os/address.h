/* Text to socket address and back. Pure: no system call, no name is looked up.
 *
 *   127.0.0.1:8080    four decimal numbers without leading zeros
 *   [::1]:8080        also [fe80::1%3]:8080 with a numeric scope
 *   unix:/path        absolute or relative, at most 107 bytes
 *   unix:@name        abstract, at most 107 bytes after the @ */
#ifndef JZI_OS_ADDRESS_H
#define JZI_OS_ADDRESS_H

#include <jzx/types.h>

#include <sys/socket.h>

/* On an error nothing is written. Errors: INVALID_ARG (NULL), BAD_ADDRESS. Thread: any. */
jzx_err jzi_address_parse(const char *text, struct sockaddr_storage *out, socklen_t *out_len);

/* JZX_ADDRESS_MAX + 1 bytes always suffice. An unnamed Unix socket is "unix:", a NUL inside an
 * abstract name is shown as '@', and a path that starts with '@' gets "./" in front.
 * Errors: TOO_BIG (nothing is written), BAD_ADDRESS (a family we do not speak). Thread: any. */
jzx_err jzi_address_format(const struct sockaddr_storage *addr, socklen_t len, char *out,
                           size_t cap);

#endif
