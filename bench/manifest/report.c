/* What people and programs read: a table, and JSON lines. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "mfb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool judged(const mfb_workload *workload, uint32_t side)
{
    return side == workload->judged &&
           (workload->ratio_min > 0 || workload->p99_max > 0 || workload->millis_max > 0);
}

static bool met(const mfb_workload *workload, const mfb_side_result *side)
{
    return (workload->ratio_min == 0 || side->ratio.median >= workload->ratio_min) &&
           (workload->p99_max == 0 || side->p99.median <= workload->p99_max) &&
           (workload->millis_max == 0 || side->value.median <= workload->millis_max);
}

/* When most runs began on a machine that was not itself, the numbers say nothing. */
static const char *verdict_of(const mfb_result *result, uint32_t side)
{
    if (result->gate.forced * 2 > result->pairs * result->side_count) {
        return "busy";
    }
    return met(result->workload, &result->sides[side]) ? "ok" : "missed";
}

static void target_text(const mfb_workload *workload, char *out, size_t cap)
{
    int used = 0;
    out[0] = '\0';
    if (workload->ratio_min > 0) {
        used = snprintf(out, cap, ">= %.2fx", workload->ratio_min);
    }
    if (workload->p99_max > 0 && used >= 0) {
        snprintf(out + used, cap - (size_t)used, ", p99 <= %.1fx", workload->p99_max);
    }
    if (workload->millis_max > 0) {
        snprintf(out, cap, "<= %.0f ms", workload->millis_max);
    }
}

void mfb_report_start(const mfb_plan *plan, bool colour)
{
    char fs[64], load[64] = "?";
    mfb_probe probe = mfb_probe_now(plan->dir);
    mfb_fs_name(plan->dir, fs, sizeof fs);
    FILE *file = fopen("/proc/loadavg", "r");
    if (file != NULL) {
        if (fscanf(file, "%63s", load) != 1) {
            snprintf(load, sizeof load, "?");
        }
        fclose(file);
    }
    printf("files in %s (%s); probe: %.0f fdatasync/s, %.0f %% of two CPUs; load %s; %u turns%s\n",
           plan->dir, fs, probe.syncs_per_s, probe.cpu_share * 100, load, plan->pairs,
           plan->quick ? ", quick: for a look, not for a claim" : "");
    printf("%s%-11s %-10s %10s %7s %8s %8s  %-18s %-18s %-21s %-7s %s%s\n", colour ? "\033[1m" : "",
           "workload", "side", "", "CPU us", "p50 us", "p99 us", "ratio (spread)",
           "p99 ratio (spread)", "target", "verdict", "more", colour ? "\033[0m" : "");
    fflush(stdout);
}

static void spread_text(const mfb_spread *spread, bool shown, char *out, size_t cap)
{
    out[0] = '\0';
    if (shown) {
        snprintf(out, cap, "%.2f (%.2f..%.2f)", spread->median, spread->min, spread->max);
    }
}

static void print_side(const mfb_result *result, uint32_t index, bool colour)
{
    const mfb_workload *workload = result->workload;
    const mfb_side_result *side = &result->sides[index];
    const bench_latency *latency = &side->middle.latency;
    char value[32], cpu[16] = "", p50[16] = "", p99[16] = "", ratio[32], tail[32], target[48] = "";
    bool millis = workload->unit == MFB_MILLISECONDS;
    snprintf(value, sizeof value, millis ? "%.0f ms" : "%.0f/s", side->value.median);
    if (latency->max_us > 0) {
        snprintf(p50, sizeof p50, "%.0f", latency->p50_us);
        snprintf(p99, sizeof p99, "%.0f", latency->p99_us);
    }
    if (side->middle.cpu_ns > 0) {
        snprintf(cpu, sizeof cpu, "%.2f", mfb_cpu_us(&side->middle));
    }
    spread_text(&side->ratio, index > 0, ratio, sizeof ratio);
    spread_text(&side->p99, index > 0 && latency->max_us > 0, tail, sizeof tail);
    const char *verdict = "", *paint = "";
    if (judged(workload, index)) {
        target_text(workload, target, sizeof target);
        verdict = verdict_of(result, index);
        paint = !colour ? "" : strcmp(verdict, "ok") == 0 ? "\033[32m" : "\033[31m";
    }
    printf("%-11s %-10s %10s %7s %8s %8s  %-18s %-18s %-21s %s%-7s%s %s\n",
           index == 0 ? workload->name : "", workload->sides[index].name, value, cpu, p50, p99,
           ratio, tail, target, paint, verdict, *paint != '\0' ? "\033[0m" : "", side->middle.note);
}

void mfb_report_table(const mfb_result *result, bool colour, const char *command)
{
    const mfb_gate *gate = &result->gate;
    for (uint32_t i = 0; i < result->side_count; i++) {
        print_side(result, i, colour);
    }
    printf("            %s\n            probe %.0f to %.0f fdatasync/s, CPUs %.0f to %.0f %%; "
           "%u probes too slow, %u runs in spite of it\n",
           command, gate->worst.syncs_per_s, gate->best.syncs_per_s, gate->worst.cpu_share * 100,
           gate->best.cpu_share * 100, gate->waits, gate->forced);
    fflush(stdout);
}

static void json_spread(FILE *to, const char *name, const mfb_spread *spread)
{
    fprintf(to, ",\"%s\":%.4f,\"%s_min\":%.4f,\"%s_max\":%.4f", name, spread->median, name,
            spread->min, name, spread->max);
}

static void json_side(FILE *to, const mfb_result *result, uint32_t index, const char *command)
{
    const mfb_workload *workload = result->workload;
    const mfb_side_result *side = &result->sides[index];
    const bench_latency *latency = &side->middle.latency;
    bool millis = workload->unit == MFB_MILLISECONDS;
    fprintf(to, "{\"bench\":\"%s\",\"side\":\"%s\"", workload->name, workload->sides[index].name);
    json_spread(to, millis ? "ms" : "per_s", &side->value);
    json_spread(to, "ratio", &side->ratio);
    if (latency->max_us > 0) {
        fprintf(to, ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f", latency->p50_us,
                latency->p99_us, latency->max_us);
        json_spread(to, "p99_ratio", &side->p99);
    }
    if (side->middle.cpu_ns > 0) {
        fprintf(to, ",\"cpu_us\":%.3f", mfb_cpu_us(&side->middle));
    }
    fprintf(to, ",\"clients\":%u,\"pairs\":%u,\"ops\":%" PRIu64, workload->clients, result->pairs,
            side->middle.ops);
    fprintf(to, ",\"probe_worst\":%.0f,\"probe_best\":%.0f,\"probes_slow\":%u,\"forced\":%u",
            result->gate.worst.syncs_per_s, result->gate.best.syncs_per_s, result->gate.waits,
            result->gate.forced);
    if (judged(workload, index)) {
        char target[48];
        target_text(workload, target, sizeof target);
        fprintf(to, ",\"target\":\"%s\",\"verdict\":\"%s\"", target, verdict_of(result, index));
    }
    fprintf(to, ",\"note\":\"%s\",\"command\":\"%s\"}\n", side->middle.note, command);
}

void mfb_report_json(const mfb_result *result, void *file, const char *command)
{
    for (uint32_t i = 0; i < result->side_count; i++) {
        json_side(file, result, i, command);
    }
    fflush(file);
}
