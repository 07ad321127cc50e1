/* jzx stop, kill, restart, send: what a program lets others do to its actors. */
#include "field.h"
#include "jzx.h"
#include "text.h"
#include "view.h"

#include <string.h>

typedef struct order {
    const char *text; /* of send; NULL: none */
    uint64_t tag, number;
    bool has_number;
} order;

/* How a program gives the permission that was missing. */
static void tell_how(const char *what)
{
    char flag[16];
    size_t i = 0;
    for (; what[i] != '\0' && i + 1 < sizeof flag; i++) {
        flag[i] = (char)(what[i] - 'a' + 'A');
    }
    flag[i] = '\0';
    (void)ui_fail("A program allows it itself, when it is started: jzx_control_opts.allow with "
                  "JZX_CONTROL_%s; see jzx_control_start(3).",
                  flag);
}

static json_t *order_request_of(const order *o, const char *what, const char *actor)
{
    json_t *request = json_pack("{s:s,s:s}", "op", what, "actor", actor);
    if (request == NULL || strcmp(what, "send") != 0) {
        return request;
    }
    (void)json_object_set_new(request, "tag", json_integer((json_int_t)o->tag));
    if (o->text != NULL) {
        (void)json_object_set_new(request, "text", json_string(o->text));
    } else if (o->has_number) {
        (void)json_object_set_new(request, "u64", json_integer((json_int_t)o->number));
    }
    return request;
}

static int give(attach *a, const view *v, const order *o, const char *actor)
{
    static const char *const done[][2] = {{"stop", "was asked to stop"},
                                          {"kill", "was killed"},
                                          {"restart", "will be restarted"},
                                          {"send", "was sent the message"}};
    json_t *answer = NULL;
    attach_result result = attach_ask(a, order_request_of(o, v->spec->name, actor), &answer);
    if (result != ATTACH_OK) {
        int status = view_failed(a);
        if (result == ATTACH_REFUSED && strcmp(attach_code(a), "NOT_ALLOWED") == 0) {
            tell_how(v->spec->name);
        }
        return status;
    }
    if (v->json) {
        (void)view_json(answer);
    } else {
        for (size_t i = 0; i < sizeof done / sizeof done[0]; i++) {
            if (strcmp(done[i][0], v->spec->name) == 0) {
                text_put(stdout, actor);
                printf(" %s.\n", done[i][1]);
            }
        }
    }
    json_decref(answer);
    return EXIT_FINE;
}

int order_main(int argc, char **argv)
{
    static const char *const whats[][2] = {
        {"stop", "Asks actors to stop, gracefully"},
        {"kill", "Kills actors: they get no chance to clean up"},
        {"restart", "Has supervised actors restarted by their supervisor"},
        {"send", "Sends a message to actors"},
    };
    order o = {0};
    const view_option options[] = {
        {.name = "tag",
         .value = "N",
         .help = "the message's tag; default: 0",
         .number = &o.tag,
         .most = UINT32_MAX},
        {.name = "u64",
         .value = "N",
         .help = "the number to send",
         .number = &o.number,
         .flag = &o.has_number},
        {.name = "text", .value = "TEXT", .help = "the bytes to send instead", .text = &o.text},
        {0}};
    view_spec spec = {.operands = "ACTOR...",
                      .more = "ACTOR is an id or a unique name. The program must allow it; see\n"
                              "jzx_control_start(3).\n",
                      .min = 1,
                      .max = argc};
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
        if (strcmp(argv[0], whats[i][0]) == 0) {
            spec.name = whats[i][0];
            spec.what = whats[i][1];
        }
    }
    if (strcmp(spec.name, "send") == 0) {
        spec.options = options;
    }
    view v;
    int status;
    if (!view_begin(&v, &spec, argc, argv, &status)) {
        return status;
    }
    if (o.text != NULL && o.has_number) {
        return ui_usage(v.help, "A message has --u64 or --text, not both.");
    }
    attach *a = view_attach(&v, &status);
    if (a == NULL) {
        return status;
    }
    status = EXIT_FINE;
    for (int i = 0; i < v.operand_count; i++) {
        int one = give(a, &v, &o, v.operands[i]);
        status = one == EXIT_FINE ? status : one;
    }
    attach_close(a);
    return status;
}
