/* jzx-tour: what `make tour` runs. */
#define _POSIX_C_SOURCE 200809L
#include "tour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const tour_step steps[] = {
    {"An actor and its messages", step_messages},
    {"Order, and the urgent lane", step_order},
    {"A full mailbox and a room notice", step_backpressure},
    {"Timers, and ticks that were missed", step_timers},
    {"A panic ends one actor, not the others", step_panic},
    {"Dead letters, with reasons", step_dead_letters},
    {"Sends from other threads", step_threads},
    {"TCP, one actor per connection", step_tcp},
    {"Nothing was lost", step_conservation},
};

static void usage(FILE *out)
{
    fprintf(out, "usage: jzx-tour [--fast] [--help]\n"
                 "Runs the library step by step and shows what happens. Uses loopback only.\n"
                 "  --fast   no pauses for reading\n"
                 "Colours appear on a terminal, unless NO_COLOR is set. The exit status is 0 when\n"
                 "every step saw what it tells, else 1.\n");
}

int main(int argc, char **argv)
{
    const char *no_color = getenv("NO_COLOR");
    bool terminal = isatty(STDOUT_FILENO) == 1;
    tour t = {.paced = terminal, .colour = terminal && (no_color == NULL || *no_color == '\0')};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            return 0;
        }
        if (strcmp(argv[i], "--fast") != 0) {
            usage(stderr);
            return 2;
        }
        t.paced = false;
    }
    tour_say(&t,
             "Jazz %s: actors for C. This program runs the library; every number below was\n"
             "measured or counted just now.",
             jzx_version());
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        tour_title(&t, i + 1, steps[i].title);
        steps[i].run(&t);
    }
    if (t.wrong > 0) {
        fflush(stdout);
        fprintf(stderr, "jzx-tour: %u of %u facts were not as told; they are marked above.\n",
                t.wrong, t.wrong + t.facts);
        return 1;
    }
    tour_title(&t, 0, "Where to read on");
    tour_say(&t,
             "README.md                       a complete program, installing and linking\n"
             "man 7 jzx                       the library in one page; section 3 has the calls\n"
             "examples/                       fifteen programs of under 100 lines\n"
             "docs/guide/SUPERVISION.md       supervision from the beginning\n"
             "docs/reference/SPEC.md          what is promised, and which test pins it\n"
             "docs/internals/ARCHITECTURE.md  how it works inside");
    printf("\nAll %u facts were as told.\n", t.facts);
    return 0;
}
