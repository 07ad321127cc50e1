/* The operation `failures`: how actors failed of late. */
#include "base/alloc.h"
#include "control/detail.h"

#include <string.h>

void jzi_write_failure(jzi_client *client, uint64_t now_ns, const jzi_failure *failure)
{
    jzi_json *out = &client->out;
    bool no_message = failure->kind == JZI_FAILURE_HOOK;
    uint64_t ago_ns = now_ns > failure->time_ns ? now_ns - failure->time_ns : 0;
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "seq", failure->seq);
    jzi_json_u64(out, "ago_ms", ago_ns / 1000000u);
    jzi_json_actor(out, "actor", failure->actor);
    jzi_json_text(out, "name", failure->name[0] == '\0' ? NULL : failure->name);
    jzi_json_u64(out, "incarnation", failure->incarnation);
    jzi_json_text(out, "reason", jzx_reason_name(failure->reason.kind));
    jzi_json_i64(out, "code", failure->reason.code);
    jzi_json_text(out, "text", failure->reason.text);
    jzi_json_actor(out, "from", failure->reason.from);
    if (no_message) {
        jzi_json_null(out, "tag");
        jzi_json_null(out, "kind");
    } else {
        jzi_json_u64(out, "tag", failure->tag);
        jzi_json_text(out, "kind", jzi_kind_name(failure->kind));
    }
    jzi_json_bool(out, "hook", jzi_failure_was_in_hook(failure));
    jzi_write_frames(client, "frames", failure->frames, failure->frame_count);
    jzi_json_close(out, '}');
}

/* Digits of an id; JZX_NOBODY: it is none. */
static jzx_actor_id parse_id(const char *text)
{
    jzx_actor_id id = 0;
    size_t digits = 0;
    for (; text[digits] != '\0'; digits++) {
        static const char all[] = "0123456789abcdef";
        const char *at = memchr(all, text[digits] | 0x20, sizeof all - 1);
        if (at == NULL || digits == 16) {
            return JZX_NOBODY;
        }
        id = id << 4 | (jzx_actor_id)(at - all);
    }
    return id;
}

/* Also of actors that are gone, by id or by the name they had. */
static bool is_of(const jzi_failure *failure, jzx_actor_id id, const char *name)
{
    return failure->actor == id || strcmp(failure->name, name) == 0;
}

/* Which ones a request means, in *out_count at the front of the list. False: refused. */
static bool failures_choose(jzi_client *client, const char *who, jzi_failure *list,
                            size_t *out_count)
{
    jzx_actor_id id = parse_id(who);
    size_t kept = 0;
    for (size_t i = 0; i < *out_count; i++) {
        if (is_of(&list[i], id, who)) {
            list[kept++] = list[i];
        }
    }
    *out_count = kept;
    return kept > 0 || jzi_find_actor(client, who, &id);
}

bool jzi_op_failures(jzi_client *client, jzi_request *request)
{
    jzx_control *control = client->control;
    const char *who = jzi_request_text(request, "actor");
    uint64_t limit = jzi_request_u64(request, "limit", JZI_FAILURES_KEPT, UINT32_MAX);
    size_t bytes = JZI_FAILURES_KEPT * sizeof(jzi_failure);
    jzi_failure *list = jzi_alloc(&control->view.alloc, bytes);
    if (list == NULL) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    size_t count = jzi_board_failures(control->view.board, JZX_NOBODY, list, JZI_FAILURES_KEPT);
    bool ok = who == NULL || failures_choose(client, who, list, &count);
    if (ok) {
        uint64_t now = jzi_control_now_ns(control);
        jzi_json_open(&client->out, "failures", '[');
        for (size_t i = 0; i < count && i < limit; i++) {
            jzi_write_failure(client, now, &list[i]);
        }
        jzi_json_close(&client->out, ']');
    }
    jzi_free(&control->view.alloc, list, bytes);
    return ok;
}
