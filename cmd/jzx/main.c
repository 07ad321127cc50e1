/* jzx: looks into running Jazz programs, and at what they leave behind. */
#include "jzx.h"
#include "text.h"
#include "ui.h"

#include <jzx/jzx.h>

#include <string.h>

typedef struct command {
    const char *name;
    const char *what;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"ps", "the programs that jzx can look into", ps_main},
#if JZX_COMMAND_TOP
    {"top", "the busiest actors, live", top_main},
#endif
    {"tree", "the supervision tree", tree_main},
    {"actor", "everything about one actor", actor_main},
    {"dead", "dead letters, live", dead_main},
    {"trace", "messages as they are handled, live or for Perfetto", trace_main},
    {"stuck", "what makes no progress, with backtraces", stuck_main},
    {"doctor", "likely mistakes in how a program is put together", doctor_main},
    {"record", "the flight recorder: recent events", record_main},
    {"metrics", "counters and histograms for Prometheus", metrics_main},
    {"stop", "ask actors to stop", order_main},
    {"kill", "kill actors", order_main},
    {"restart", "let supervisors restart actors", order_main},
    {"send", "send a message to actors", order_main},
#if JZX_COMMAND_CONSOLE
    {"console", "the same and more in a browser", console_main},
#endif
#if JZX_COMMAND_MANIFEST
    {"manifest", "inspect, check and copy a manifest file, and repair its queue", manifest_main},
#endif
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void help(FILE *out)
{
    fputs("usage: jzx COMMAND ...\n\nCommands:\n", out);
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
    }
    fputs("\n"
          "  --help     this text; `jzx COMMAND --help` explains a command\n"
          "  --version  the version of Jazz\n"
          "\n"
          "Colours appear on a terminal, unless NO_COLOR is set. See man 1 jzx for more.\n",
          out);
}

static int main_run(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help(stdout);
        return EXIT_FINE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("jzx %s\n", jzx_version());
        return EXIT_FINE;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return ui_usage("jzx", "There is no command '%s'.", argv[1]);
}

int main(int argc, char **argv)
{
    ui_init();
    text_init();
    return ui_finish(main_run(argc, argv));
}
