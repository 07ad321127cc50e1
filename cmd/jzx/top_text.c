#include "top_text.h"

#include <stdio.h>
#include <string.h>

/* With the first unit that leaves three digits. */
static top_word scaled(double value, double step, const char *units)
{
    top_word word;
    size_t unit = 0;
    while (value >= 999.5 && units[unit + 1] != '\0') {
        value /= step;
        unit++;
    }
    /* What is rounded up to four digits is said without a fraction. */
    const char *format = value < 9.95 ? "%.1f%c" : "%.0f%c";
    snprintf(word.text, sizeof word.text, format, value, units[unit]);
    return word;
}

top_word top_word_count(uint64_t value)
{
    top_word word;
    if (value >= 100000) {
        return scaled((double)value / 1000.0, 1000.0, "kMGTPE");
    }
    snprintf(word.text, sizeof word.text, "%u", (unsigned)value);
    return word;
}

top_word top_word_rate(double per_second)
{
    top_word word;
    if (!(per_second >= 0.0)) {
        snprintf(word.text, sizeof word.text, "-");
        return word;
    }
    if (per_second > 0.0 && per_second < 9.95) {
        snprintf(word.text, sizeof word.text, "%.1f", per_second);
        return word;
    }
    return top_word_count(per_second < 1e18 ? (uint64_t)(per_second + 0.5) : (uint64_t)1e18);
}

top_word top_word_percent(double share)
{
    top_word word;
    if (!(share >= 0.0)) {
        snprintf(word.text, sizeof word.text, "-");
    } else {
        double percent = share * 100.0 < 99999.0 ? share * 100.0 : 99999.0;
        snprintf(word.text, sizeof word.text, percent < 99.95 ? "%.1f" : "%.0f", percent);
    }
    return word;
}

top_word top_word_bytes(uint64_t bytes)
{
    top_word word;
    if (bytes >= 1000) {
        return scaled((double)bytes / 1024.0, 1024.0, "KMGTPE");
    }
    snprintf(word.text, sizeof word.text, "%u", (unsigned)bytes);
    return word;
}

top_word top_word_ms(uint64_t ms)
{
    top_word word;
    uint64_t seconds = ms / 1000;
    if (ms < 1000) {
        snprintf(word.text, sizeof word.text, "%ums", (unsigned)ms);
    } else if (seconds < 60) {
        snprintf(word.text, sizeof word.text, "%u.%us", (unsigned)seconds,
                 (unsigned)(ms % 1000 / 100));
    } else if (seconds < 3600) {
        snprintf(word.text, sizeof word.text, "%um%02us", (unsigned)(seconds / 60),
                 (unsigned)(seconds % 60));
    } else if (seconds < 86400) {
        snprintf(word.text, sizeof word.text, "%uh%02um", (unsigned)(seconds / 3600),
                 (unsigned)(seconds / 60 % 60));
    } else if (seconds < 100 * 86400) {
        snprintf(word.text, sizeof word.text, "%ud%02uh", (unsigned)(seconds / 86400),
                 (unsigned)(seconds / 3600 % 24));
    } else {
        uint64_t days = seconds / 86400 < 99999 ? seconds / 86400 : 99999;
        snprintf(word.text, sizeof word.text, "%ud", (unsigned)days);
    }
    return word;
}

top_word top_word_us(uint64_t us)
{
    top_word word;
    if (us >= 10000) {
        return top_word_ms(us / 1000);
    }
    if (us >= 1000) {
        snprintf(word.text, sizeof word.text, "%u.%ums", (unsigned)(us / 1000),
                 (unsigned)(us % 1000 / 100));
    } else {
        snprintf(word.text, sizeof word.text, "%uus", (unsigned)us);
    }
    return word;
}

top_word top_word_box(uint64_t depth, uint64_t cap)
{
    top_word word = top_word_count(depth);
    if (cap > 0) {
        size_t len = strlen(word.text);
        snprintf(word.text + len, sizeof word.text - len, "/%.8s", top_word_count(cap).text);
    }
    return word;
}

void top_text_bar(char *out, double share, int columns, bool utf8)
{
    static const char *const blocks[] = {" ",      "\u258f", "\u258e", "\u258d", "\u258c",
                                         "\u258b", "\u258a", "\u2589", "\u2588"};
    double part = share > 0.0 ? (share < 1.0 ? share : 1.0) : 0.0;
    int eighths = (int)(part * columns * 8.0 + 0.5);
    /* Something is told from nothing. */
    if (eighths == 0 && part > 0.0) {
        eighths = 1;
    }
    out[0] = '\0';
    for (int i = 0; i < columns; i++) {
        int here = eighths - 8 * i;
        here = here < 0 ? 0 : here > 8 ? 8 : here;
        const char *cell = utf8 ? blocks[here] : here >= 4 || (here > 0 && i == 0) ? "|" : " ";
        size_t len = strlen(cell);
        memcpy(out, cell, len + 1);
        out += len;
    }
}

const char *top_text_level(double share, bool utf8)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const digits[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    double part = share > 0.0 ? (share < 1.0 ? share : 1.0) : 0.0;
    return utf8 ? blocks[(int)(part * 7.0 + 0.5)] : digits[(int)(part * 9.0 + 0.5)];
}
