#define _GNU_SOURCE
#include "os/address.h"

#include <jzx/net.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#define UNIX_PREFIX "unix:"
#define UNIX_PREFIX_LEN (sizeof(UNIX_PREFIX) - 1)
#define UNIX_PATH_OFFSET offsetof(struct sockaddr_un, sun_path)
#define UNIX_PATH_SIZE sizeof(((struct sockaddr_un *)0)->sun_path)
#define UINT32_DIGITS 10

/* The longest text: a path that fills sun_path, with the prefix and "./". */
_Static_assert(UNIX_PREFIX_LEN + 2 + UNIX_PATH_SIZE <= JZX_ADDRESS_MAX, "room for every address");
_Static_assert(INET6_ADDRSTRLEN + sizeof("[%4294967295]:65535") <= JZX_ADDRESS_MAX, "the same");

/* One number, written in the one way we would write it: no sign, no leading zero. */
static int parse_number(const char *text, size_t len, uint32_t max, uint32_t *out)
{
    if (len == 0 || len > UINT32_DIGITS || (len > 1 && text[0] == '0')) {
        return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return 0;
        }
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    if (value > max) {
        return 0;
    }
    *out = (uint32_t)value;
    return 1;
}

static int parse_unix(const char *name, size_t len, struct sockaddr_storage *out,
                      socklen_t *out_len)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int abstract = len > 0 && name[0] == '@';
    if (len == 0 || (abstract && len == 1)) {
        return 0;
    }
    /* An abstract name is a NUL and its bytes; a path needs its NUL at the end. */
    if (len + !abstract > UNIX_PATH_SIZE) {
        return 0;
    }
    memcpy(un.sun_path, name, len);
    if (abstract) {
        un.sun_path[0] = '\0';
    }
    memset(out, 0, sizeof(*out));
    memcpy(out, &un, sizeof(un));
    *out_len = (socklen_t)(UNIX_PATH_OFFSET + len + !abstract);
    return 1;
}

static int parse_v4(const char *host, size_t len, uint16_t port, struct sockaddr_storage *out,
                    socklen_t *out_len)
{
    char text[INET_ADDRSTRLEN];
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (len >= sizeof(text)) {
        return 0;
    }
    memcpy(text, host, len);
    text[len] = '\0';
    if (inet_pton(AF_INET, text, &in.sin_addr) != 1) {
        return 0;
    }
    memset(out, 0, sizeof(*out));
    memcpy(out, &in, sizeof(in));
    *out_len = sizeof(in);
    return 1;
}

static int parse_v6(const char *host, size_t len, uint16_t port, struct sockaddr_storage *out,
                    socklen_t *out_len)
{
    char text[INET6_ADDRSTRLEN];
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const char *scope = memchr(host, '%', len);
    size_t host_len = scope == NULL ? len : (size_t)(scope - host);
    if (host_len >= sizeof(text)) {
        return 0;
    }
    if (scope != NULL) {
        uint32_t id = 0;
        if (!parse_number(scope + 1, len - host_len - 1, UINT32_MAX, &id) || id == 0) {
            return 0;
        }
        in6.sin6_scope_id = id;
    }
    memcpy(text, host, host_len);
    text[host_len] = '\0';
    if (inet_pton(AF_INET6, text, &in6.sin6_addr) != 1) {
        return 0;
    }
    memset(out, 0, sizeof(*out));
    memcpy(out, &in6, sizeof(in6));
    *out_len = sizeof(in6);
    return 1;
}

static int parse_inet(const char *text, size_t len, struct sockaddr_storage *out,
                      socklen_t *out_len)
{
    const char *colon = memrchr(text, ':', len);
    if (colon == NULL) {
        return 0;
    }
    size_t host_len = (size_t)(colon - text);
    uint32_t port = 0;
    if (!parse_number(colon + 1, len - host_len - 1, UINT16_MAX, &port)) {
        return 0;
    }
    if (host_len >= 2 && text[0] == '[' && text[host_len - 1] == ']') {
        return parse_v6(text + 1, host_len - 2, (uint16_t)port, out, out_len);
    }
    return parse_v4(text, host_len, (uint16_t)port, out, out_len);
}

jzx_err jzi_address_parse(const char *text, struct sockaddr_storage *out, socklen_t *out_len)
{
    if (text == NULL || out == NULL || out_len == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    size_t len = strnlen(text, JZX_ADDRESS_MAX + 1);
    if (len > JZX_ADDRESS_MAX) {
        return JZX_ERR_BAD_ADDRESS;
    }
    int ok;
    if (len >= UNIX_PREFIX_LEN && memcmp(text, UNIX_PREFIX, UNIX_PREFIX_LEN) == 0) {
        ok = parse_unix(text + UNIX_PREFIX_LEN, len - UNIX_PREFIX_LEN, out, out_len);
    } else {
        ok = parse_inet(text, len, out, out_len);
    }
    return ok ? JZX_OK : JZX_ERR_BAD_ADDRESS;
}

/* Writes the digits of value and returns how many there are. */
static size_t format_number(uint32_t value, char *out)
{
    char reversed[UINT32_DIGITS];
    size_t n = 0;
    do {
        reversed[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < n; i++) {
        out[i] = reversed[n - 1 - i];
    }
    return n;
}

static size_t format_unix(const struct sockaddr_storage *addr, size_t len, char *out)
{
    struct sockaddr_un un = {0};
    memcpy(&un, addr, len < sizeof(un) ? len : sizeof(un));
    size_t name_len = len > UNIX_PATH_OFFSET ? len - UNIX_PATH_OFFSET : 0;
    if (name_len > UNIX_PATH_SIZE) {
        name_len = UNIX_PATH_SIZE;
    }
    memcpy(out, UNIX_PREFIX, UNIX_PREFIX_LEN);
    size_t at = UNIX_PREFIX_LEN;
    if (name_len > 0 && un.sun_path[0] == '\0') {
        for (size_t i = 0; i < name_len; i++) {
            out[at++] = un.sun_path[i] == '\0' ? '@' : un.sun_path[i];
        }
        return at;
    }
    name_len = strnlen(un.sun_path, name_len);
    if (name_len > 0 && un.sun_path[0] == '@') {
        out[at++] = '.';
        out[at++] = '/';
    }
    memcpy(out + at, un.sun_path, name_len);
    return at + name_len;
}

static size_t format_v4(const struct sockaddr_storage *addr, char *out)
{
    struct sockaddr_in in;
    memcpy(&in, addr, sizeof(in));
    (void)inet_ntop(AF_INET, &in.sin_addr, out, INET_ADDRSTRLEN);
    size_t at = strlen(out);
    out[at++] = ':';
    return at + format_number(ntohs(in.sin_port), out + at);
}

static size_t format_v6(const struct sockaddr_storage *addr, char *out)
{
    struct sockaddr_in6 in6;
    memcpy(&in6, addr, sizeof(in6));
    out[0] = '[';
    (void)inet_ntop(AF_INET6, &in6.sin6_addr, out + 1, INET6_ADDRSTRLEN);
    size_t at = strlen(out);
    if (in6.sin6_scope_id != 0) {
        out[at++] = '%';
        at += format_number(in6.sin6_scope_id, out + at);
    }
    out[at++] = ']';
    out[at++] = ':';
    return at + format_number(ntohs(in6.sin6_port), out + at);
}

jzx_err jzi_address_format(const struct sockaddr_storage *addr, socklen_t len, char *out,
                           size_t cap)
{
    char text[JZX_ADDRESS_MAX + 1];
    size_t n = 0;
    if (len < sizeof(sa_family_t)) {
        return JZX_ERR_BAD_ADDRESS;
    }
    if (addr->ss_family == AF_UNIX) {
        n = format_unix(addr, len, text);
    } else if (addr->ss_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
        n = format_v4(addr, text);
    } else if (addr->ss_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
        n = format_v6(addr, text);
    } else {
        return JZX_ERR_BAD_ADDRESS;
    }
    if (n >= cap) {
        return JZX_ERR_TOO_BIG;
    }
    memcpy(out, text, n);
    out[n] = '\0';
    return JZX_OK;
}
