/* Where the console listens. */
#include "place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64, SEND_BUFFER = 262144 };

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} any_address;

static jzx_err error_of(int number)
{
    switch (number) {
    case EADDRINUSE:
        return JZX_ERR_ADDRESS_IN_USE;
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return JZX_ERR_BAD_ADDRESS;
    case EACCES:
    case EPERM:
        return JZX_ERR_NO_ACCESS;
    case EMFILE:
    case ENFILE:
        return JZX_ERR_NO_FDS;
    case ENOMEM:
    case ENOBUFS:
        return JZX_ERR_NO_MEMORY;
    default:
        return JZX_ERR_IO;
    }
}

/* Names as in Host: letters, digits, dots, hyphens, brackets and colons. */
static bool host_is_sane(const char *host)
{
    size_t len = strlen(host);
    return len > 0 && len <= JZC_HOST_MAX &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_[]:") ==
               len;
}

static socklen_t place_parse(jzc_place *place, uint16_t port, any_address *out)
{
    *out = (any_address){0};
    if (inet_pton(AF_INET, place->address, &out->v4.sin_addr) == 1) {
        uint32_t number = ntohl(out->v4.sin_addr.s_addr);
        place->loopback = number >> 24 == 127;
        place->wildcard = number == INADDR_ANY;
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        return sizeof out->v4;
    }
    if (inet_pton(AF_INET6, place->address, &out->v6.sin6_addr) == 1) {
        place->ipv6 = true;
        place->loopback = IN6_IS_ADDR_LOOPBACK(&out->v6.sin6_addr);
        place->wildcard = IN6_IS_ADDR_UNSPECIFIED(&out->v6.sin6_addr);
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        return sizeof out->v6;
    }
    return 0;
}

/* A port that was free a moment ago, and is waited for by old connections, can be had again. What
 * the system keeps for slow readers is bounded: connections inherit it. */
static jzx_err place_listen(jzc_place *place, const any_address *wanted, socklen_t len)
{
    int on = 1;
    int room = SEND_BUFFER;
    any_address got = {0};
    socklen_t got_len = sizeof got;
    place->fd = socket(wanted->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (place->fd < 0 || setsockopt(place->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(place->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) != 0 ||
        bind(place->fd, &wanted->any, len) != 0 || listen(place->fd, BACKLOG) != 0 ||
        getsockname(place->fd, &got.any, &got_len) != 0) {
        return error_of(errno);
    }
    place->port = ntohs(place->ipv6 ? got.v6.sin6_port : got.v4.sin_port);
    return JZX_OK;
}

jzx_err jzc_place_open(jzc_place *out, const char *address, uint16_t port, const char *host)
{
    *out = (jzc_place){.fd = -1};
    if (address == NULL || strcmp(address, "localhost") == 0) {
        address = "127.0.0.1";
    }
    if (host != NULL && !host_is_sane(host)) {
        return JZX_ERR_INVALID_ARG;
    }
    any_address wanted;
    (void)snprintf(out->host, sizeof out->host, "%s", host == NULL ? "" : host);
    (void)snprintf(out->address, sizeof out->address, "%s", address);
    socklen_t len = strlen(address) < sizeof out->address ? place_parse(out, port, &wanted) : 0;
    jzx_err err = len == 0 ? JZX_ERR_BAD_ADDRESS : place_listen(out, &wanted, len);
    if (err != JZX_OK) {
        jzc_place_close(out);
    }
    return err;
}

void jzc_place_close(jzc_place *place)
{
    if (place->fd >= 0) {
        (void)close(place->fd);
    }
    place->fd = -1;
}

/* Splits "name:port", "[::1]:port" or a bare name; brackets are not part of the name. */
static bool host_split(const char *value, char *name, size_t cap, int *out_port, bool *out_v6)
{
    bool bracket = value[0] == '[';
    const char *begin = value + bracket;
    const char *end = begin + strcspn(begin, bracket ? "]" : ":");
    const char *colon = bracket && *end == ']' ? end + 1 : end;
    size_t len = (size_t)(end - begin);
    if (len == 0 || len >= cap || (bracket && *end != ']')) {
        return false;
    }
    memcpy(name, begin, len);
    name[len] = '\0';
    *out_v6 = bracket;
    *out_port = -1;
    if (*colon == '\0') {
        return true;
    }
    size_t digits = strlen(colon + 1);
    if (*colon != ':' || digits == 0 || digits > 5 || strspn(colon + 1, "0123456789") != digits) {
        return false;
    }
    *out_port = (int)strtoul(colon + 1, NULL, 10);
    return true;
}

/* An address in numbers cannot be a name in an attacker's DNS. */
static bool is_own_number(const jzc_place *place, const char *name, bool v6)
{
    unsigned char theirs[16];
    unsigned char ours[16];
    int family = v6 ? AF_INET6 : AF_INET;
    size_t len = v6 ? 16 : 4;
    if (inet_pton(family, name, theirs) != 1) {
        return false;
    }
    if (place->wildcard) {
        return true;
    }
    return inet_pton(family, place->address, ours) == 1 && memcmp(theirs, ours, len) == 0;
}

bool jzc_place_is_host(const jzc_place *place, const char *value)
{
    char name[JZC_HOST_MAX + 1];
    int port = -1;
    bool v6 = false;
    if (!host_split(value, name, sizeof name, &port, &v6)) {
        return false;
    }
    if (place->host[0] != '\0') {
        /* Given with a port it means that one; without, whichever a proxy listens on. */
        char bare[JZC_HOST_MAX + 1];
        int given = -1;
        bool given_v6 = false;
        if (host_split(place->host, bare, sizeof bare, &given, &given_v6) &&
            strcasecmp(name, bare) == 0 && v6 == given_v6 && (given < 0 || given == port)) {
            return true;
        }
    }
    if (port != place->port && !(port < 0 && place->port == 80)) {
        return false;
    }
    bool usual = v6 ? strcmp(name, "::1") == 0
                    : strcmp(name, "127.0.0.1") == 0 || strcasecmp(name, "localhost") == 0;
    return usual || is_own_number(place, name, v6);
}

int jzc_place_format(const jzc_place *place, char *out, size_t cap)
{
    const char *address = place->address;
    if (place->wildcard) {
        address = place->ipv6 ? "::1" : "127.0.0.1";
    }
    if (!place->loopback && place->host[0] != '\0') {
        return strchr(place->host, ':') != NULL
                   ? snprintf(out, cap, "%s", place->host)
                   : snprintf(out, cap, "%s:%u", place->host, place->port);
    }
    return snprintf(out, cap, place->ipv6 ? "[%s]:%u" : "%s:%u", address, place->port);
}
