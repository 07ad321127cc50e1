/* Which requests are allowed. */
#include "guard.h"

#include <string.h>
#include <strings.h>

enum { TOKEN_MAX = 128 };

bool jzc_token_equal(const char *ours, const char *theirs)
{
    size_t ours_len = strlen(ours);
    size_t theirs_len = strlen(theirs);
    volatile unsigned char different = ours_len != theirs_len;
    for (size_t i = 0; i < theirs_len; i++) {
        /* Past our end it is compared with our beginning, for the sake of the time it takes. */
        unsigned char mine = (unsigned char)ours[ours_len == 0 ? 0 : i % ours_len];
        different = (unsigned char)(different | (mine ^ (unsigned char)theirs[i]));
    }
    return different == 0;
}

bool jzc_token_is_sane(const char *token)
{
    size_t len = strlen(token);
    return len > 0 && len <= TOKEN_MAX &&
           strspn(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~") ==
               len;
}

/* A page of ours has the Host that it was asked by as its origin, here or behind a proxy. */
static bool origin_is_ours(const char *origin, const char *host)
{
    size_t scheme = 0;
    if (strncmp(origin, "http://", 7) == 0) {
        scheme = 7;
    } else if (strncmp(origin, "https://", 8) == 0) {
        scheme = 8;
    }
    return scheme != 0 && strcasecmp(origin + scheme, host) == 0;
}

static const char *bearer_of(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0) {
        return NULL;
    }
    return authorization + sizeof scheme - 1;
}

/* An action needs the token where no foreign page can put it: in a header. */
static bool has_token(const char *token, const jzc_guard_request *request)
{
    const char *bearer = bearer_of(request->authorization);
    if (request->token_header != NULL) {
        return jzc_token_equal(token, request->token_header);
    }
    if (bearer != NULL) {
        return jzc_token_equal(token, bearer);
    }
    return !request->acts && request->token_query != NULL &&
           jzc_token_equal(token, request->token_query);
}

jzc_refusal jzc_guard_check(const jzc_place *place, const char *token,
                            const jzc_guard_request *request)
{
    if (request->host == NULL || request->host_count != 1 ||
        !jzc_place_is_host(place, request->host)) {
        return (jzc_refusal){
            421, "FOREIGN_HOST",
            "This console is not called by that name. Open the address that it printed, or give "
            "the name as `host` where it is started."};
    }
    if (request->origin != NULL && !origin_is_ours(request->origin, request->host)) {
        return (jzc_refusal){403, "FOREIGN_ORIGIN",
                             "Pages of other origins may not ask this console."};
    }
    if (request->site != NULL && strcmp(request->site, "same-origin") != 0 &&
        strcmp(request->site, "none") != 0) {
        return (jzc_refusal){403, "FOREIGN_ORIGIN",
                             "Another site sent this request. Type the console's address into the "
                             "browser, or open it from a bookmark."};
    }
    if (request->acts && !has_token(token, request)) {
        return (jzc_refusal){403, "BAD_TOKEN",
                             "Actions need the token that the console printed with its address, in "
                             "the header X-Jzx-Token."};
    }
    if (!place->loopback && !request->open && !has_token(token, request)) {
        return (jzc_refusal){403, "BAD_TOKEN",
                             "This console is not on loopback, so it needs the token that it "
                             "printed with its address: in the header X-Jzx-Token, as "
                             "Authorization: Bearer, or as ?token=."};
    }
    return (jzc_refusal){0};
}
