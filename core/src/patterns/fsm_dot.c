/* The table as a picture: a node for each state, an edge for each row, in the language of Graphviz.
 */
#include "patterns/fsm.h"

#include <stdarg.h>
#include <stdio.h>

/* As snprintf: counts what does not fit. */
typedef struct page {
    char *buf;
    size_t cap;
    size_t len;
} page;

__attribute__((format(printf, 2, 3))) static void fsm_dot_put(page *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool fits = p->len < p->cap;
    int len = vsnprintf(fits ? p->buf + p->len : NULL, fits ? p->cap - p->len : 0, format, args);
    va_end(args);
    p->len += len > 0 ? (size_t)len : 0;
}

/* Inside of a quoted string. */
static void fsm_dot_put_text(page *p, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            fsm_dot_put(p, "\\n");
        } else {
            fsm_dot_put(p, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
        }
    }
}

static void put_node(page *p, const jzx_fsm_spec *spec, uint32_t at)
{
    const jzx_fsm_state_spec *state = &spec->states[at];
    fsm_dot_put(p, "    s%u [label=\"", (unsigned)at);
    fsm_dot_put_text(p, state->name);
    if (state->timeout_ms > 0) {
        fsm_dot_put(p, "\\n%u ms", (unsigned)state->timeout_ms);
    }
    fsm_dot_put(p, "\"%s%s];\n", (state->flags & JZX_FSM_FINAL) != 0 ? ", peripheries=2" : "",
                (state->flags & JZX_FSM_BY_GOTO) != 0 ? ", style=\"rounded,dashed\"" : "");
}

static void put_end(page *p, uint32_t state)
{
    if (state == JZX_FSM_ANY) {
        fsm_dot_put(p, "any");
    } else {
        fsm_dot_put(p, "s%u", (unsigned)state);
    }
}

static const char *note_of(uint32_t next)
{
    return next == JZX_FSM_POSTPONE ? "\\npostponed" : next == JZX_FSM_REPEAT ? "\\nrepeat" : "";
}

static void put_edge(page *p, const jzx_fsm_spec *spec, const jzx_fsm_row *row)
{
    char tag[24];
    bool stays = row->next >= spec->state_count;
    bool timeout = row->tag - JZI_FSM_TAG_FIRST < jzi_fsm_slots(spec);
    fsm_dot_put(p, "    ");
    put_end(p, row->state);
    fsm_dot_put(p, " -> ");
    put_end(p, stays ? row->state : row->next);
    fsm_dot_put(p, " [label=\"");
    fsm_dot_put_text(p, jzi_fsm_tag_name(spec, row->tag, tag, sizeof tag));
    if (row->guard != NULL) {
        fsm_dot_put(p, " [");
        fsm_dot_put_text(p, row->guard_name == NULL ? "guard" : row->guard_name);
        fsm_dot_put(p, "]");
    }
    fsm_dot_put(p, "%s\"%s%s];\n", note_of(row->next), timeout ? ", style=dashed" : "",
                row->next == JZX_FSM_POSTPONE ? ", arrowhead=open, style=dotted" : "");
}

static bool has_any(const jzx_fsm_spec *spec)
{
    for (uint32_t i = 0; i < spec->row_count; i++) {
        if (spec->rows[i].state == JZX_FSM_ANY) {
            return true;
        }
    }
    return false;
}

int jzx_fsm_dot_sized(const jzx_fsm_spec *spec, jzx_fsm_sizes sizes, char *buf, size_t cap)
{
    page p = {buf, buf == NULL ? 0 : cap, 0};
    if (jzx_fsm_check_sized(spec, sizes, NULL, 0) != JZX_OK) {
        return -1;
    }
    fsm_dot_put(&p, "digraph \"");
    fsm_dot_put_text(&p, spec->name == NULL ? "fsm" : spec->name);
    fsm_dot_put(
        &p, "\" {\n    rankdir=LR;\n    node [shape=box, style=rounded, fontname=\"sans-serif\"];\n"
            "    edge [fontname=\"sans-serif\", fontsize=11];\n    start [shape=point];\n");
    for (uint32_t i = 0; i < spec->state_count; i++) {
        put_node(&p, spec, i);
    }
    if (has_any(spec)) {
        fsm_dot_put(&p, "    any [label=\"any state\", shape=plaintext];\n");
    }
    fsm_dot_put(&p, "    start -> s%u;\n", (unsigned)spec->initial);
    for (uint32_t i = 0; i < spec->row_count; i++) {
        put_edge(&p, spec, &spec->rows[i]);
    }
    fsm_dot_put(&p, "}\n");
    return (int)p.len;
}
