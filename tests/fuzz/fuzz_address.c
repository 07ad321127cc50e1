/* Goal: no text makes the address parser read or write where it must not, and whatever it takes
 * means the same after being shown and parsed again. */
#include <jzx/net.h>

#include "os/address.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int fact)
{
    if (!fact) {
        abort();
    }
}

/* Any bytes may come from getpeername; showing them must stay within bounds. */
static void show_raw(const uint8_t *data, size_t size)
{
    struct sockaddr_storage addr = {0};
    char shown[JZX_ADDRESS_MAX + 1];
    size_t len = size < sizeof(addr) ? size : sizeof(addr);
    memcpy(&addr, data, len);
    if (jzi_address_format(&addr, (socklen_t)len, shown, sizeof(shown)) == JZX_OK) {
        require(strlen(shown) <= JZX_ADDRESS_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0) {
        show_raw(data, size);
    }
    /* The block ends with the text, so the sanitizer sees every read past its NUL. */
    char *text = malloc(size + 1);
    require(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    struct sockaddr_storage first = {0};
    struct sockaddr_storage second = {0};
    socklen_t first_len = 0;
    socklen_t second_len = 0;
    if (jzi_address_parse(text, &first, &first_len) == JZX_OK) {
        char shown[JZX_ADDRESS_MAX + 1];
        require(jzi_address_format(&first, first_len, shown, sizeof(shown)) == JZX_OK);
        require(jzi_address_parse(shown, &second, &second_len) == JZX_OK);
        require(first_len == second_len && memcmp(&first, &second, sizeof(first)) == 0);
        require(first.ss_family == AF_INET6 || strcmp(text, shown) == 0);
    }
    free(text);
    return 0;
}
