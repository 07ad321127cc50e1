/* The HTTP side: answers and their headers. */
#include "http.h"

#include "page.h"

#include <stdlib.h>

/* Answers that wait for slow readers may take as much; the next one is then refused. */
static const size_t held_max = (size_t)64 << 20;

static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
static const char data_policy[] = "default-src 'none'; frame-ancestors 'none'";

static void answer_release(void *cls)
{
    jzc_answer *answer = cls;
    if (answer->held != NULL) {
        *answer->held -= answer->len;
    }
    jzc_answer_drop(answer);
}

/* Transfers the response. NULL: no memory. */
static jzc_cell *cell_new(struct MHD_Response *response, unsigned status, const char *type,
                          const char *policy)
{
    const struct {
        const char *name;
        const char *value;
    } headers[] = {
        {"Content-Type", type},
        {"Content-Security-Policy", policy},
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    jzc_cell *cell = calloc(1, sizeof *cell);
    bool fine = cell != NULL;
    for (size_t i = 0; fine && i < sizeof headers / sizeof headers[0]; i++) {
        fine = MHD_add_response_header(response, headers[i].name, headers[i].value) == MHD_YES;
    }
    if (!fine) {
        MHD_destroy_response(response);
        free(cell);
        return NULL;
    }
    *cell = (jzc_cell){.response = response, .refs = 1, .status = status};
    return cell;
}

jzc_cell *jzc_cell_of_answer(jzc_http *http, jzc_answer *answer, const char *type)
{
    if (answer == NULL) {
        return NULL;
    }
    if (http->held + answer->len > held_max) {
        jzc_answer_drop(answer);
        answer = jzc_answer_error(503, "BUSY",
                                  "Too many answers wait for slow readers; try again later.");
        if (answer == NULL) {
            return NULL;
        }
        type = "application/json";
    }
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        answer->len, answer->bytes, answer_release, answer);
    if (response == NULL) {
        jzc_answer_drop(answer);
        return NULL;
    }
    answer->held = &http->held;
    http->held += answer->len;
    return cell_new(response, answer->status, type, data_policy);
}

jzc_cell *jzc_cell_error(jzc_http *http, unsigned status, const char *error, const char *text)
{
    return jzc_cell_of_answer(http, jzc_answer_error(status, error, text), "application/json");
}

jzc_cell *jzc_cell_of_page(const char *path)
{
    const jzc_page_file *file = jzc_page_find(path);
    if (file == NULL) {
        return NULL;
    }
    /* The library does not write to what is persistent. */
    struct MHD_Response *response = MHD_create_response_from_buffer(
        file->len, (void *)(uintptr_t)file->bytes, MHD_RESPMEM_PERSISTENT);
    return response == NULL ? NULL : cell_new(response, 200, file->type, page_policy);
}

void jzc_cell_give(jzc_cell *cell)
{
    if (cell != NULL && --cell->refs == 0) {
        MHD_destroy_response(cell->response);
        free(cell);
    }
}
