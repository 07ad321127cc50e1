/* The trace as text. Ids are printed as slot.generation, behind their dispatcher where it is not
 * the first one: they come from the seed, addresses would not. */
#include "sim.h"

#include <inttypes.h>

static const char *const world_names[] = {"read",   "write",   "open",     "close",
                                          "accept", "connect", "shutdown", "ready"};
static const char *const loop_names[] = {"?", "spawn", "handled", "dead", "end"};
static const char *const kind_names[] = {"user", "timer", "io", "notice", "reply", "job", "file"};

static void id_print(jzx_actor_id id, FILE *out)
{
    if (jzx_id_dispatcher(id) != 0) {
        (void)fprintf(out, "%" PRIu32 "/", jzx_id_dispatcher(id));
    }
    (void)fprintf(out, "%" PRIu32 ".%" PRIx32, jzx_id_slot(id), jzx_id_generation(id));
}

static void line_print(const jzx_trace_event *line, FILE *out)
{
    (void)fprintf(out, "%" PRIu64 ".%06u ms  ", line->now_ns / 1000000,
                  (unsigned)(line->now_ns % 1000000));
    if (line->what >= SIM_TRACE_READ) {
        unsigned what = (unsigned)line->what - SIM_TRACE_READ;
        (void)fprintf(out, "%-8s fd %" PRIu64 " n %" PRIu64 " %s\n",
                      what < sizeof world_names / sizeof *world_names ? world_names[what] : "?",
                      line->actor, line->sender, jzx_err_name(-(int)line->detail));
        return;
    }
    (void)fprintf(out, "%-8s actor ",
                  line->what < sizeof loop_names / sizeof *loop_names ? loop_names[line->what]
                                                                      : "?");
    id_print(line->actor, out);
    if (line->what == JZX_TRACE_HANDLED || line->what == JZX_TRACE_DEAD) {
        (void)fprintf(out, " %s tag %" PRIu32 " from ",
                      line->kind < sizeof kind_names / sizeof *kind_names ? kind_names[line->kind]
                                                                          : "?",
                      line->tag);
        id_print(line->sender, out);
    }
    (void)fprintf(out, " detail %u\n", (unsigned)line->detail);
}

void jzx_sim_trace_print(const jzx_sim *sim, FILE *out)
{
    uint64_t first = sim->lines_seen > sim->lines_cap ? sim->lines_seen - sim->lines_cap : 0;
    (void)fprintf(out, "seed %" PRIu64 ", %" PRIu64 " events, the last %" PRIu64 ":\n", sim->seed,
                  sim->lines_seen, sim->lines_seen - first);
    for (uint64_t i = first; i < sim->lines_seen; i++) {
        line_print(&sim->lines[i % sim->lines_cap], out);
    }
}
