/* Goal: text becomes exactly one address or is refused, and comes back as the same text.
 * Method: tables of good and bad text, with the text at the very end of a heap block so that a
 * sanitizer sees a read past its NUL; random damage to good text. */
#include "check.h"

#include <jzx/net.h>

#include "os/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Parses a copy that ends with its block. */
static jzx_err parse(const char *text, struct sockaddr_storage *out, socklen_t *out_len)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    REQUIRE(copy != NULL);
    memcpy(copy, text, size);
    jzx_err err = jzi_address_parse(copy, out, out_len);
    free(copy);
    return err;
}

static void test_good_text_comes_back_as_it_was(void)
{
    static const char *const good[] = {
        "127.0.0.1:8080",
        "0.0.0.0:0",
        "255.255.255.255:65535",
        "[::1]:8080",
        "[::]:0",
        "[2001:db8::ff00:42:8329]:443",
        "[::ffff:1.2.3.4]:1",
        "[fe80::1%3]:80",
        "[fe80::1%4294967295]:80",
        "unix:/run/app.sock",
        "unix:relative.sock",
        "unix:/",
        "unix:@abstract",
        "unix:@@",
        "unix:@a:b@c",
        "unix:./@file",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct sockaddr_storage addr;
        socklen_t len = 0;
        char text[JZX_ADDRESS_MAX + 1] = "";
        CHECK_OK(parse(good[i], &addr, &len));
        CHECK_OK(jzi_address_format(&addr, len, text, sizeof(text)));
        CHECK_STR(text, good[i]);
    }
}

static void test_fields_are_where_the_system_wants_them(void)
{
    struct sockaddr_storage addr;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    socklen_t len = 0;
    CHECK_OK(parse("127.0.0.1:8080", &addr, &len));
    memcpy(&in, &addr, sizeof(in));
    CHECK_EQ(len, sizeof(in));
    CHECK_EQ(in.sin_family, AF_INET);
    CHECK_EQ(ntohs(in.sin_port), 8080);
    CHECK_EQ(ntohl(in.sin_addr.s_addr), 0x7F000001);

    CHECK_OK(parse("[::1%7]:9", &addr, &len));
    memcpy(&in6, &addr, sizeof(in6));
    CHECK_EQ(len, sizeof(in6));
    CHECK_EQ(in6.sin6_family, AF_INET6);
    CHECK_EQ(ntohs(in6.sin6_port), 9);
    CHECK_EQ(in6.sin6_scope_id, 7);
    CHECK_EQ(memcmp(&in6.sin6_addr, &in6addr_loopback, sizeof(in6addr_loopback)), 0);

    CHECK_OK(parse("unix:/a", &addr, &len));
    memcpy(&un, &addr, sizeof(un));
    CHECK_EQ(len, offsetof(struct sockaddr_un, sun_path) + sizeof("/a"));
    CHECK_STR(un.sun_path, "/a");

    /* The length of an abstract name says where it ends; there is no NUL. */
    CHECK_OK(parse("unix:@ab", &addr, &len));
    memcpy(&un, &addr, sizeof(un));
    CHECK_EQ(len, offsetof(struct sockaddr_un, sun_path) + 3);
    CHECK_EQ(memcmp(un.sun_path, "\0ab", 3), 0);
}

static void test_junk_is_refused_and_changes_nothing(void)
{
    static const char *const bad[] = {
        "",
        ":",
        ":80",
        "80",
        "localhost:80",
        "*:80",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:99999",
        "127.0.0.1:4294967376",
        "127.0.0.1:99999999999999999999",
        "127.0.0.1:-1",
        "127.0.0.1:+1",
        "127.0.0.1: 1",
        "127.0.0.1:1 ",
        "127.0.0.1:080",
        "127.0.0.1:0x50",
        "127.0.0.1:80a",
        " 127.0.0.1:80",
        "127.0.0.1 :80",
        "127.0.0.1::80",
        "127.1:80",
        "127.0.0.01:80",
        "127.0.0.256:80",
        "127.0.0.1.5:80",
        "127.0.0.1000000000000000:80",
        "[]:80",
        "[:80",
        "]:80",
        "[::1]",
        "[::1]80",
        "[::1]:",
        "[::1]x:80",
        "[[::1]]:80",
        "[::1:80",
        "::1:80",
        "[127.0.0.1]:80",
        "[::1%]:80",
        "[::1%0]:80",
        "[::1%eth0]:80",
        "[::1%4294967296]:80",
        "[1:2:3:4:5:6:7:8:9]:80",
        "[::1::]:80",
        "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:80",
        "unix:",
        "unix:@",
        "unix",
        "UNIX:/a",
        "tcp:127.0.0.1:80",
    };
    struct sockaddr_storage untouched;
    memset(&untouched, 0x5A, sizeof(untouched));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct sockaddr_storage addr = untouched;
        socklen_t len = 77;
        if (parse(bad[i], &addr, &len) != JZX_ERR_BAD_ADDRESS) {
            CHECK_STR("taken", bad[i]);
        }
        CHECK_EQ(len, 77);
        CHECK_EQ(memcmp(&addr, &untouched, sizeof(addr)), 0);
    }
    struct sockaddr_storage addr;
    socklen_t len;
    CHECK_EQ(jzi_address_parse(NULL, &addr, &len), JZX_ERR_INVALID_ARG);
}

static void test_names_fill_their_field_and_no_more(void)
{
    enum { FIELD = sizeof(((struct sockaddr_un *)0)->sun_path) };
    static const struct {
        const char *prefix;
        size_t longest; /* bytes after the prefix */
    } kinds[] = {{"unix:/", FIELD - 2}, {"unix:@", FIELD - 1}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        for (size_t n = kinds[i].longest - 1; n < 400; n++) {
            char text[512];
            char back[JZX_ADDRESS_MAX + 1];
            struct sockaddr_storage addr;
            socklen_t len;
            size_t prefix = strlen(kinds[i].prefix);
            memcpy(text, kinds[i].prefix, prefix);
            memset(text + prefix, 'p', n);
            text[prefix + n] = '\0';
            jzx_err err = parse(text, &addr, &len);
            CHECK_EQ(err, n <= kinds[i].longest ? JZX_OK : JZX_ERR_BAD_ADDRESS);
            if (err == JZX_OK) {
                CHECK(len <= sizeof(struct sockaddr_un));
                CHECK_OK(jzi_address_format(&addr, len, back, sizeof(back)));
                CHECK_STR(back, text);
            }
        }
    }
}

static void test_what_the_kernel_may_report_can_be_shown(void)
{
    struct sockaddr_storage addr = {.ss_family = AF_UNIX};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    char text[JZX_ADDRESS_MAX + 1];
    /* An unnamed socket, as the client side of a Unix connection is. */
    CHECK_OK(jzi_address_format(&addr, sizeof(sa_family_t), text, sizeof(text)));
    CHECK_STR(text, "unix:");
    /* A path that fills the field without a NUL, and one that looks abstract but is not. */
    memset(un.sun_path, 'x', sizeof(un.sun_path));
    un.sun_path[0] = '@';
    memcpy(&addr, &un, sizeof(un));
    CHECK_OK(jzi_address_format(&addr, sizeof(un), text, sizeof(text)));
    CHECK_EQ(strlen(text), strlen("unix:./") + sizeof(un.sun_path));
    /* An abstract name with a NUL inside. */
    memcpy(un.sun_path, "\0a\0b", 4);
    memcpy(&addr, &un, sizeof(un));
    CHECK_OK(
        jzi_address_format(&addr, offsetof(struct sockaddr_un, sun_path) + 4, text, sizeof(text)));
    CHECK_STR(text, "unix:@a@b");
    addr.ss_family = AF_APPLETALK;
    CHECK_EQ(jzi_address_format(&addr, sizeof(addr), text, sizeof(text)), JZX_ERR_BAD_ADDRESS);
    CHECK_EQ(jzi_address_format(&addr, 0, text, sizeof(text)), JZX_ERR_BAD_ADDRESS);
}

static void test_a_small_buffer_is_refused_and_left_alone(void)
{
    struct sockaddr_storage addr;
    socklen_t len;
    char text[32];
    CHECK_OK(parse("127.0.0.1:80", &addr, &len));
    for (size_t cap = 0; cap < sizeof("127.0.0.1:80"); cap++) {
        memset(text, '#', sizeof(text));
        CHECK_EQ(jzi_address_format(&addr, len, text, cap), JZX_ERR_TOO_BIG);
        CHECK_EQ(text[0], '#');
    }
    CHECK_OK(jzi_address_format(&addr, len, text, sizeof("127.0.0.1:80")));
    CHECK_STR(text, "127.0.0.1:80");
}

static void test_damaged_text_is_refused_or_means_what_it_shows(void)
{
    static const char *const good[] = {"127.0.0.1:8080", "[fe80::1%3]:80", "unix:/a/b", "unix:@n"};
    static const char alphabet[] = "0123456789.:[]%@/uniax \x80";
    jzt_rng rng = jzt_rng_seeded();
    for (int step = 0; step < 200000 && jzt_failures() == 0; step++) {
        char text[64];
        char shown[JZX_ADDRESS_MAX + 1];
        char again[JZX_ADDRESS_MAX + 1];
        struct sockaddr_storage addr;
        socklen_t len;
        strncpy(text, good[jzt_rng_below(&rng, COUNT_OF(good))], sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        for (uint64_t n = 1 + jzt_rng_below(&rng, 3); n > 0; n--) {
            size_t at = (size_t)jzt_rng_below(&rng, strlen(text) + 1);
            text[at] = alphabet[jzt_rng_below(&rng, sizeof(alphabet))];
        }
        if (parse(text, &addr, &len) != JZX_OK) {
            continue;
        }
        CHECK_OK(jzi_address_format(&addr, len, shown, sizeof(shown)));
        CHECK_OK(parse(shown, &addr, &len));
        CHECK_OK(jzi_address_format(&addr, len, again, sizeof(again)));
        CHECK_STR(again, shown);
    }
}

static const jzt_test tests[] = {
    {"good_text_comes_back_as_it_was", test_good_text_comes_back_as_it_was},
    {"fields_are_where_the_system_wants_them", test_fields_are_where_the_system_wants_them},
    {"junk_is_refused_and_changes_nothing", test_junk_is_refused_and_changes_nothing},
    {"names_fill_their_field_and_no_more", test_names_fill_their_field_and_no_more},
    {"what_the_kernel_may_report_can_be_shown", test_what_the_kernel_may_report_can_be_shown},
    {"a_small_buffer_is_refused_and_left_alone", test_a_small_buffer_is_refused_and_left_alone},
    {"damaged_text_is_refused_or_means_what_it_shows",
     test_damaged_text_is_refused_or_means_what_it_shows},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
