/* `dead`: dead letters after a number. */
#include "control/server.h"

#include "base/alloc.h"

enum { LETTERS_MAX = 1000 };

static void write_letter(jzi_client *client, const jzx_dead_letter *letter, uint64_t now_ns)
{
    jzi_json *out = &client->out;
    jzi_json_open(out, NULL, '{');
    jzi_json_u64(out, "seq", letter->seq);
    jzi_json_u64(out, "time_ns", letter->time_ns);
    jzi_json_u64(out, "ago_ms",
                 now_ns > letter->time_ns ? (now_ns - letter->time_ns) / 1000000u : 0);
    jzi_json_actor(out, "target", letter->target);
    jzi_write_actor_name(client, "target_name", letter->target);
    jzi_json_actor(out, "sender", letter->sender);
    jzi_json_u64(out, "tag", letter->tag);
    jzi_json_text(out, "kind", jzi_kind_name(letter->kind));
    jzi_json_text(out, "reason", jzi_dead_name(letter->reason));
    jzi_json_u64(out, "len", letter->len);
    jzi_write_actor_name(client, "sender_name", letter->sender);
    jzi_json_close(out, '}');
}

static void write_reasons(jzi_client *client)
{
    jzx_counters totals;
    jzi_peek_counters(&client->control->view, &totals);
    jzi_json_open(&client->out, "by_reason", '{');
    for (uint32_t i = 0; i < JZX_DEAD_REASONS; i++) {
        if (totals.dead_by[i] > 0) {
            jzi_json_u64(&client->out, jzi_dead_name(i), totals.dead_by[i]);
        }
    }
    jzi_json_close(&client->out, '}');
}

bool jzi_op_dead(jzi_client *client, jzi_request *request)
{
    const jzx_control *control = client->control;
    uint64_t cursor = jzi_request_u64(request, "after", 0, UINT64_MAX);
    size_t limit = (size_t)jzi_request_u64(request, "limit", 100, LETTERS_MAX);
    uint64_t lagged = 0;
    if (request->wrong != NULL) {
        return true; /* and refused */
    }
    jzx_dead_letter *letters =
        jzi_alloc(&control->view.alloc, LETTERS_MAX * sizeof(jzx_dead_letter));
    if (letters == NULL) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    size_t count = jzi_peek_letters(&control->view, &cursor, letters, limit, &lagged);
    uint64_t now_ns = jzi_control_now_ns(control);
    jzi_json_u64(&client->out, "next", cursor);
    jzi_json_u64(&client->out, "lagged", lagged);
    write_reasons(client);
    jzi_json_open(&client->out, "letters", '[');
    for (size_t i = 0; i < count; i++) {
        write_letter(client, &letters[i], now_ns);
    }
    jzi_json_close(&client->out, ']');
    jzi_free(&control->view.alloc, letters, LETTERS_MAX * sizeof(jzx_dead_letter));
    return true;
}
