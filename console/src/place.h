/* Where the console listens, and by which names it may be called. */
#ifndef JZC_PLACE_H
#define JZC_PLACE_H

#include <jzx/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JZC_HOST_MAX 255

typedef struct jzc_place {
    int fd; /* listens; owned; -1: closed */
    uint16_t port;
    bool loopback; /* only this machine gets in */
    bool wildcard; /* every address of this machine */
    bool ipv6;
    char address[64];            /* as numbers, an IPv6 one without brackets */
    char host[JZC_HOST_MAX + 1]; /* the further name; "": none */
} jzc_place;

/* Listens. `address` is a number or "localhost", NULL is 127.0.0.1. Thread: any. Errors:
 * BAD_ADDRESS, ADDRESS_IN_USE, NO_ACCESS, NO_FDS, NO_MEMORY, IO; INVALID_ARG: such a host is none.
 */
jzx_err jzc_place_open(jzc_place *out, const char *address, uint16_t port, const char *host);
void jzc_place_close(jzc_place *place);

/* Whether a value of Host names us. With a name that an attacker's DNS resolves to this machine the
 * attacker's page would read ours, so only names that cannot be the attacker's will do. */
bool jzc_place_is_host(const jzc_place *place, const char *value);
/* "127.0.0.1:8417" as it is in a URL. */
int jzc_place_format(const jzc_place *place, char *out, size_t cap);

#endif
