#include "ui.h"

#include "text.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool colours;
static bool progress_wanted;
static bool progress_shown;
static uint64_t progress_next_ms;
static int output_errno; /* why stdout failed first; 0: it did not */

static uint64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool ui_obeys(int fd)
{
    const char *kind = getenv("TERM");
    return isatty(fd) == 1 && kind != NULL && *kind != '\0' && strcmp(kind, "dumb") != 0;
}

void ui_init(void)
{
    const char *no_color = getenv("NO_COLOR");
    colours = ui_obeys(STDOUT_FILENO) && (no_color == NULL || *no_color == '\0');
    progress_wanted = ui_obeys(STDERR_FILENO);
    progress_next_ms = clock_ms(CLOCK_MONOTONIC) + 300;
    /* A reader that goes away must not end us in the middle of a snapshot: others would have to
     * clean up behind us. */
    (void)signal(SIGPIPE, SIG_IGN);
}

const char *ui_colour_on(ui_colour colour)
{
    static const char *const sequences[] = {
        [UI_PLAIN] = "\033[0m",  [UI_BOLD] = "\033[1m",    [UI_RED] = "\033[31m",
        [UI_GREEN] = "\033[32m", [UI_YELLOW] = "\033[33m", [UI_CYAN] = "\033[36m",
        [UI_DIM] = "\033[2m"};
    return colours ? sequences[colour] : "";
}

static void complain(const char *format, va_list args)
{
    char *text = NULL;
    ui_progress_end();
    (void)ui_flush();
    fputs("jzx: ", stderr);
    /* Sentences of programs and names of files may hold anything. */
    if (vasprintf(&text, format, args) >= 0) {
        text_put(stderr, text);
        free(text);
    }
}

int ui_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_FAILED;
}

int ui_usage(const char *help, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
    fprintf(stderr, "\nTry: %s --help\n", help);
    return EXIT_USAGE;
}

int ui_error(jzx_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    complain(format, args);
    va_end(args);
    fprintf(stderr, ": %s\n", jzx_strerror(err));
    return EXIT_FAILED;
}

/* Remembers why stdout failed the first time. */
bool ui_flush(void)
{
    if ((fflush(stdout) != 0 || ferror(stdout) != 0) && output_errno == 0) {
        output_errno = errno != 0 ? errno : EIO;
    }
    return output_errno == 0;
}

void ui_lose_output(int error)
{
    output_errno = output_errno == 0 ? error : output_errno;
}

int ui_finish(int status)
{
    ui_progress_end();
    if (ui_flush()) {
        return status;
    }
    if (output_errno == EPIPE) {
        /* End as every other program in a pipe does. */
        (void)signal(SIGPIPE, SIG_DFL);
        (void)raise(SIGPIPE);
    }
    return ui_fail("The output cannot be written: %s.", strerror(output_errno));
}

void ui_progress(const char *what, uint64_t done, uint64_t total)
{
    if (!progress_wanted) {
        return;
    }
    uint64_t now_ms = clock_ms(CLOCK_MONOTONIC);
    if (now_ms < progress_next_ms) {
        return;
    }
    progress_next_ms = now_ms + 100;
    progress_shown = true;
    if (total == 0) {
        fprintf(stderr, "\r\033[K%s: %llu", what, (unsigned long long)done);
    } else {
        double part = done < total ? (double)done / (double)total : 1.0;
        fprintf(stderr, "\r\033[K%s: %.0f%% (%llu of %llu)", what, 100.0 * part,
                (unsigned long long)done, (unsigned long long)total);
    }
}

void ui_progress_end(void)
{
    if (progress_shown) {
        fputs("\r\033[K", stderr);
        progress_shown = false;
    }
}

ui_text ui_format(const char *format, ...)
{
    ui_text out;
    va_list args;
    va_start(args, format);
    vsnprintf(out.text, sizeof out.text, format, args);
    va_end(args);
    return out;
}

ui_text ui_duration(uint64_t ms)
{
    if (ms < 1000) {
        return ui_format("%llums", (unsigned long long)ms);
    }
    if (ms < 60000) {
        /* Cut and not rounded, as `jzx top` does: one age is the same text everywhere. */
        return ui_format("%u.%us", (unsigned)(ms / 1000), (unsigned)(ms % 1000 / 100));
    }
    static const struct {
        uint64_t ms;
        char unit;
    } units[] = {{86400000, 'd'}, {3600000, 'h'}, {60000, 'm'}};
    size_t i = 0;
    while (ms < 2 * units[i].ms && units[i].unit != 'm') {
        i++;
    }
    return ui_format("%llu%c", (unsigned long long)(ms / units[i].ms), units[i].unit);
}

ui_text ui_age(uint64_t ms)
{
    if (ms == 0) {
        return ui_format("-");
    }
    uint64_t now_ms = clock_ms(CLOCK_REALTIME);
    return ms <= now_ms ? ui_format("%s ago", ui_duration(now_ms - ms).text)
                        : ui_format("in %s", ui_duration(ms - now_ms).text);
}

ui_text ui_time(uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    char date[64];
    if (ms == 0) {
        return ui_format("-");
    }
    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%SZ", &parts) == 0) {
        return ui_format("%llu ms", (unsigned long long)ms);
    }
    return ui_format("%s (%s)", date, ui_age(ms).text);
}

ui_text ui_bytes(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < 1024) {
        return ui_format("%llu B", (unsigned long long)bytes);
    }
    double value = (double)bytes / 1024.0;
    size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024.0;
        unit++;
    }
    return ui_format("%.1f %s", value, units[unit]);
}

bool ui_page_begin(ui_page *page)
{
    *page = (ui_page){0};
    page->out = open_memstream(&page->bytes, &page->len);
    if (page->out == NULL) {
        (void)ui_error(JZX_ERR_NO_MEMORY, "The output cannot be prepared");
        return false;
    }
    return true;
}

bool ui_page_end(ui_page *page)
{
    bool whole = fclose(page->out) == 0;
    if (whole && page->len > 0) {
        ui_progress_end();
        if (fwrite(page->bytes, 1, page->len, stdout) != page->len && output_errno == 0) {
            output_errno = errno;
        }
    }
    free(page->bytes);
    *page = (ui_page){0};
    return whole && ui_flush();
}
