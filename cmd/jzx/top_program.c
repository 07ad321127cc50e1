#include "top_program.h"

#include "field.h"

#include <stdio.h>
#include <string.h>

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}

static void read_worker(top_dispatcher *dispatcher, const json_t *worker)
{
    if (dispatcher->worker_count < TOP_WORKERS) {
        dispatcher->busy[dispatcher->worker_count++] =
            field_has(worker, "busy") ? field_real(worker, "busy") : -1.0;
    }
    uint64_t for_ms = field_u64(worker, "for_ms");
    if (strcmp(field_text(worker, "state"), "running") == 0 &&
        (dispatcher->longest_actor[0] == '\0' || for_ms > dispatcher->longest_ms)) {
        const char *name = field_text(worker, "name");
        const char *id = field_text(worker, "actor");
        dispatcher->longest_ms = for_ms;
        copy_text(dispatcher->longest_actor, sizeof dispatcher->longest_actor,
                  name[0] != '\0' ? name : id);
        copy_text(dispatcher->longest_id, sizeof dispatcher->longest_id, id);
    }
}

static void read_dispatcher(top_dispatcher *dispatcher, const json_t *answer)
{
    *dispatcher = (top_dispatcher){.longest_tag = -1};
    copy_text(dispatcher->name, sizeof dispatcher->name, field_text(answer, "name"));
    copy_text(dispatcher->kind, sizeof dispatcher->kind, field_text(answer, "kind"));
    dispatcher->actors = field_u64(answer, "actors");
    dispatcher->latency_us = field_u64(answer, "latency_us");
    dispatcher->answering = field_bool(answer, "answering");
    const json_t *workers = field_list(answer, "workers");
    for (size_t i = 0; i < json_array_size(workers); i++) {
        read_worker(dispatcher, json_array_get(workers, i));
    }
}

static bool allows(const json_t *answer, const char *what)
{
    const json_t *list = field_list(answer, "allow");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (word != NULL && strcmp(word, what) == 0) {
            return true;
        }
    }
    return false;
}

/* Per second of the program's clock. A counter that went back has begun anew. */
static double rate_of(uint64_t before, uint64_t now, uint64_t ns)
{
    return now < before ? -1.0 : (double)(now - before) * 1e9 / (double)ns;
}

static void set_rates(top_program *program, const top_program *before)
{
    uint64_t ns = program->now_ns - before->now_ns;
    program->rate = program->dead_rate = program->cpu = -1.0;
    if (!before->known || before->pid != program->pid || program->now_ns <= before->now_ns) {
        return;
    }
    program->rate = rate_of(before->handled, program->handled, ns);
    program->dead_rate = rate_of(before->dead, program->dead, ns);
    program->cpu = rate_of(before->cpu_ms, program->cpu_ms, ns) / 1000.0;
}

/* An actor that still hangs in the same message has the tag that was found out before. */
static void keep_tag(top_dispatcher *dispatcher, const top_program *before)
{
    for (size_t i = 0; i < before->dispatcher_count; i++) {
        const top_dispatcher *old = &before->dispatchers[i];
        if (strcmp(old->name, dispatcher->name) == 0 && dispatcher->longest_id[0] != '\0' &&
            strcmp(old->longest_id, dispatcher->longest_id) == 0 &&
            old->longest_ms <= dispatcher->longest_ms) {
            dispatcher->longest_tag = old->longest_tag;
        }
    }
}

void top_program_take(top_program *program, const json_t *answer)
{
    const json_t *counters = field_object(answer, "counters");
    const json_t *list = field_list(answer, "dispatchers");
    top_program before = *program;
    *program = (top_program){.known = true};
    copy_text(program->name, sizeof program->name, field_text(answer, "name"));
    program->pid = field_u64(answer, "pid");
    program->uptime_ms = field_u64(answer, "uptime_ms");
    program->now_ns = field_u64(answer, "now_ns");
    program->actors = field_u64(answer, "actors");
    program->rss_bytes = field_u64(answer, "rss_bytes");
    program->cpu_ms = field_u64(answer, "cpu_ms");
    program->threads = field_u64(answer, "threads");
    program->handled = field_u64(counters, "handled");
    program->queued = field_u64(counters, "queued");
    program->dead = field_u64(counters, "dead");
    program->failures = field_u64(counters, "failures");
    program->restarts = field_u64(counters, "restarts");
    program->may_stop = allows(answer, "stop");
    program->may_kill = allows(answer, "kill");
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (program->dispatcher_count == TOP_DISPATCHERS) {
            program->dispatchers_more++;
            continue;
        }
        top_dispatcher *dispatcher = &program->dispatchers[program->dispatcher_count++];
        read_dispatcher(dispatcher, json_array_get(list, i));
        keep_tag(dispatcher, &before);
        program->silent = program->silent || !dispatcher->answering;
    }
    set_rates(program, &before);
}

void top_program_take_stuck(top_program *program, const json_t *answer)
{
    const json_t *running = field_list(answer, "running");
    for (size_t i = 0; i < json_array_size(running); i++) {
        const json_t *one = json_array_get(running, i);
        for (size_t k = 0; k < program->dispatcher_count; k++) {
            top_dispatcher *dispatcher = &program->dispatchers[k];
            if (strcmp(dispatcher->name, field_text(one, "dispatcher")) == 0 &&
                strcmp(dispatcher->longest_id, field_text(one, "actor")) == 0 &&
                field_has(one, "tag")) {
                dispatcher->longest_tag = (int64_t)field_u64(one, "tag");
            }
        }
    }
}
