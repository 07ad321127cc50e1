/* What people and programs read: a table, JSON lines, the RESULT line of the peers' harness. */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double grown_kb(const bench_sample *sample)
{
    return (double)sample->rss_after_kb - (double)sample->rss_before_kb;
}

bool bench_target_met(const bench_result *result)
{
    const bench_target *target = &result->workload->target;
    return (target->ratio == 0 || result->ratio <= target->ratio) &&
           (target->ns == 0 || result->ns_per_op <= target->ns) &&
           (target->peer_ns == 0 || result->ns_per_op <= target->peer_ns * target->peer_ratio) &&
           (target->bytes == 0 || result->jzx.bytes_per_actor <= target->bytes) &&
           (target->p99_us == 0 || result->jzx.latency.p99_us <= target->p99_us) &&
           (target->grown_kb == 0 || grown_kb(&result->jzx) <= target->grown_kb);
}

static bool target_exists(const bench_target *target)
{
    return target->ratio != 0 || target->ns != 0 || target->peer_ns != 0 || target->bytes != 0 ||
           target->p99_us != 0 || target->grown_kb != 0;
}

/* "<= 1.3x, p99 <= 2 ms"; "<= 0.7 peer(81)" is a share of a peer's ns in BASELINES.md. */
static void target_text(const bench_target *target, char *out, size_t cap)
{
    char part[6][40] = {"", "", "", "", "", ""};
    if (target->ratio != 0) {
        snprintf(part[0], sizeof part[0], "<= %gx", target->ratio);
    }
    if (target->ns != 0) {
        snprintf(part[1], sizeof part[1], "<= %g ns", target->ns);
    }
    if (target->bytes != 0) {
        snprintf(part[2], sizeof part[2], "<= %g B each", target->bytes);
    }
    if (target->p99_us >= 1000) {
        snprintf(part[3], sizeof part[3], "p99 <= %g ms", target->p99_us / 1e3);
    } else if (target->p99_us != 0) {
        snprintf(part[3], sizeof part[3], "p99 <= %g us", target->p99_us);
    }
    if (target->grown_kb != 0) {
        snprintf(part[4], sizeof part[4], "<= %g KiB more", target->grown_kb);
    }
    if (target->peer_ns != 0 && target->peer_ratio == 1) {
        snprintf(part[5], sizeof part[5], "<= peer(%g)", target->peer_ns);
    } else if (target->peer_ns != 0) {
        snprintf(part[5], sizeof part[5], "<= %g peer(%g)", target->peer_ratio, target->peer_ns);
    }
    out[0] = '\0';
    for (int i = 0; i < 6; i++) {
        if (part[i][0] != '\0') {
            size_t used = strlen(out);
            snprintf(out + used, cap - used, "%s%s", used > 0 ? ", " : "", part[i]);
        }
    }
}

static double wall_per_op(const bench_sample *sample)
{
    return sample->ops == 0 ? 0 : (double)sample->wall_ns / (double)sample->ops;
}

static double cpu_per_op(const bench_sample *sample)
{
    return sample->ops == 0 ? 0 : (double)sample->cpu_ns / (double)sample->ops;
}

void bench_report_header(bool colour)
{
    printf("%s%-20s %10s %10s %7s  %-25s %-7s %9s  %s%s\n", colour ? "\033[1m" : "", "workload",
           "jzx ns/op", "raw ns/op", "ratio", "target", "verdict", "RSS MiB", "more",
           colour ? "\033[0m" : "");
}

void bench_report_row(const bench_result *result, bool colour)
{
    char target[96];
    char more[160] = "";
    target_text(&result->workload->target, target, sizeof target);
    const bench_latency *ours = &result->jzx.latency;
    const bench_latency *raw = &result->raw.latency;
    if (result->jzx.bytes_per_actor > 0) {
        snprintf(more, sizeof more, "%.0f bytes per actor (raw %.0f)", result->jzx.bytes_per_actor,
                 result->raw.bytes_per_actor);
    } else if (result->jzx.rss_after_kb > 0) {
        snprintf(more, sizeof more, "KiB: %" PRIu64 " before, %" PRIu64 " after",
                 result->jzx.rss_before_kb, result->jzx.rss_after_kb);
    } else if (ours->max_us > 0 && ours->p99_us < 1000) {
        snprintf(more, sizeof more, "us: p50 %.3g p99 %.3g max %.0f (raw %.3g %.3g %.0f)",
                 ours->p50_us, ours->p99_us, ours->max_us, raw->p50_us, raw->p99_us, raw->max_us);
    } else if (ours->max_us > 0) {
        snprintf(more, sizeof more, "us: p50 %.1f p99 %.1f max %.0f (raw %.1f %.1f %.0f)",
                 ours->p50_us, ours->p99_us, ours->max_us, raw->p50_us, raw->p99_us, raw->max_us);
    }
    if (more[0] == '\0' && result->jzx.note[0] != '\0') {
        snprintf(more, sizeof more, "%s", result->jzx.note);
    }
    if (result->workload->serve != NULL) {
        size_t used = strlen(more);
        snprintf(more + used, sizeof more - used, "; server CPU ns/op %.0f (raw %.0f)",
                 cpu_per_op(&result->jzx), cpu_per_op(&result->raw));
    }
    bool judged = target_exists(&result->workload->target);
    bool met = bench_target_met(result);
    const char *paint = !colour || !judged ? "" : met ? "\033[32m" : "\033[31m";
    printf("%-20s %10.1f %10.1f %6.2fx  %-25s %s%-7s%s %9.1f  %s\n", result->workload->report,
           result->ns_per_op, result->raw_ns_per_op, result->ratio, judged ? target : "-", paint,
           !judged ? "-"
           : met   ? "ok"
                   : "missed",
           *paint != '\0' ? "\033[0m" : "", (double)result->jzx.peak_rss_kb / 1024.0, more);
    fflush(stdout);
}

/* Quotes and control characters cannot be in what git describe prints, but a user can set the
 * variable: what would break the line is left out. */
static void commit_text(char *out, size_t cap)
{
    const char *from = getenv("JZX_COMMIT");
    size_t used = 0;
    for (; from != NULL && *from != '\0' && used + 1 < cap; from++) {
        if (*from >= ' ' && *from <= '~' && *from != '"' && *from != '\\') {
            out[used++] = *from;
        }
    }
    out[used] = '\0';
}

void bench_report_json(const bench_result *result, void *file)
{
    FILE *to = file;
    const bench_workload *workload = result->workload;
    char text[96];
    static const char *const costs[] = {"wall", "cpu", "mean_latency"};
    fprintf(to, "{\"bench\":\"%s\",\"ns_per_op\":%.3f,\"raw_ns_per_op\":%.3f,\"ratio\":%.4f",
            workload->report, result->ns_per_op, result->raw_ns_per_op, result->ratio);
    fprintf(to, ",\"cost\":\"%s\",\"wall_ns_per_op\":%.3f,\"raw_wall_ns_per_op\":%.3f",
            costs[workload->cost], wall_per_op(&result->jzx), wall_per_op(&result->raw));
    fprintf(to, ",\"cpu_ns_per_op\":%.3f,\"raw_cpu_ns_per_op\":%.3f", cpu_per_op(&result->jzx),
            cpu_per_op(&result->raw));
    fprintf(to, ",\"ops\":%" PRIu64 ",\"rounds\":%" PRIu32 ",\"threads\":%" PRIu32, result->jzx.ops,
            result->rounds, workload->threads);
    fprintf(to, ",\"rss_kb\":%" PRIu64 ",\"raw_rss_kb\":%" PRIu64, result->jzx.peak_rss_kb,
            result->raw.peak_rss_kb);
    if (result->jzx.bytes_per_actor > 0) {
        fprintf(to, ",\"bytes_per_actor\":%.1f,\"raw_bytes_per_actor\":%.1f",
                result->jzx.bytes_per_actor, result->raw.bytes_per_actor);
    }
    if (result->jzx.latency.max_us > 0) {
        const bench_latency *ours = &result->jzx.latency;
        const bench_latency *raw = &result->raw.latency;
        fprintf(to, ",\"mean_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f",
                ours->mean_us, ours->p50_us, ours->p99_us, ours->max_us);
        fprintf(to, ",\"raw_p50_us\":%.3f,\"raw_p99_us\":%.3f", raw->p50_us, raw->p99_us);
    }
    if (result->jzx.rss_after_kb > 0) {
        fprintf(to, ",\"rss_before_kb\":%" PRIu64 ",\"rss_after_kb\":%" PRIu64,
                result->jzx.rss_before_kb, result->jzx.rss_after_kb);
    }
    if (target_exists(&workload->target)) {
        target_text(&workload->target, text, sizeof text);
        if (workload->target.peer_ns != 0) {
            fprintf(to, ",\"baseline_peer_ns\":%g", workload->target.peer_ns);
        }
        fprintf(to, ",\"target\":\"%s\",\"verdict\":\"%s\"", text,
                bench_target_met(result) ? "ok" : "missed");
    }
    if (result->jzx.note[0] != '\0') {
        fprintf(to, ",\"note\":\"%s\"", result->jzx.note);
    }
    commit_text(text, sizeof text);
    if (text[0] != '\0') {
        fprintf(to, ",\"commit\":\"%s\"", text);
    }
    fputs("}\n", to);
    fflush(to);
}

void bench_report_result(const bench_workload *workload, const bench_sample *sample)
{
    char extra[256] = "";
    size_t used = 0;
    /* The harness divides wall time by operations; for timers it wants CPU time there. */
    bool timers = strncmp(workload->name, "timers", 6) == 0;
    if (sample->bytes_per_actor > 0) {
        snprintf(extra, sizeof extra, "bytes_per_actor=%.1f;actors=%" PRIu64 ";",
                 sample->bytes_per_actor, sample->ops);
    } else if (sample->latency.max_us > 0) {
        snprintf(extra, sizeof extra,
                 "wall_ms=%.0f;mean_us=%.3f;p50_us=%.3f;p99_us=%.3f;max_us=%.3f;",
                 (double)sample->wall_ns / 1e6, sample->latency.mean_us, sample->latency.p50_us,
                 sample->latency.p99_us, sample->latency.max_us);
    }
    if (sample->rss_after_kb > 0) {
        used = strlen(extra);
        snprintf(extra + used, sizeof extra - used,
                 "rss_before_kb=%" PRIu64 ";rss_after_kb=%" PRIu64 ";", sample->rss_before_kb,
                 sample->rss_after_kb);
    }
    used = strlen(extra);
    snprintf(extra + used, sizeof extra - used, "%s", sample->note);
    used = strlen(extra);
    if (used > 0 && extra[used - 1] == ';') {
        extra[used - 1] = '\0';
    }
    printf("RESULT %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", workload->name,
           sample->ops, timers ? sample->cpu_ns : sample->wall_ns, sample->cpu_ns,
           sample->peak_rss_kb, extra[0] != '\0' ? extra : "-");
    fflush(stdout);
}
