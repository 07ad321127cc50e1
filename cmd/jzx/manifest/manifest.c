/* jzx manifest FILE ...: which subcommand, with which options. */
#include "manifest.h"

#include "jzx.h"
#include "ui.h"

#include <getopt.h>
#include <string.h>

typedef struct subcommand {
    const char *name;
    const char *second;   /* second word, NULL: there is none */
    const char *operands; /* as usage shows them */
    const char *what;
    const char *more; /* further lines of --help, or NULL */
    int (*run)(const call *c);
    unsigned options; /* OPT_* that the subcommand takes */
    int min, max;     /* operands; max -1: any number */
} subcommand;

static const char list_more[] =
    "  --state S   only jobs in these states, with commas: waiting, scheduled, ready, blocked,\n"
    "              active, done, dead, cancelled, superseded; queued: the first four;\n"
    "              finished: the last four\n"
    "  --kind K    only jobs of this kind, by number or name\n"
    "  --db D      only jobs of this database, by number or name\n"
    "  --limit N   not more than this many\n"
    "\nWith --json one object per line. The list is read piece by piece, so jobs that change\n"
    "meanwhile are shown as they were when their piece was read.\n";
static const char writing_more[] =
    "\nOpens the file for writing, so no other process may have it open: its owner would have to\n"
    "be stopped first, or to do it itself. What an owner that died left behind is settled by this\n"
    "as by every other opening.\n";

static const subcommand subcommands[] = {
    {"stats", NULL, "", "size, commits, records, jobs by kind and state (default)",
     "\nWith --json one object.\n", cmd_stats, 0, 0, 0},
    {"jobs", "list", "", "jobs, by id", list_more, cmd_jobs_list,
     OPT_STATE | OPT_KIND | OPT_DB | OPT_LIMIT, 0, 0},
    {"jobs", "show", "ID...", "everything about some jobs", "\nWith --json one object per line.\n",
     cmd_jobs_show, 0, 1, -1},
    {"jobs", "retry", "ID...", "queue dead or cancelled jobs again", writing_more, cmd_jobs_retry,
     0, 1, -1},
    {"jobs", "cancel", "ID...", "cancel queued jobs, ask active ones to stop", writing_more,
     cmd_jobs_cancel, 0, 1, -1},
    {"jobs", "pause", "KIND", "claim no more jobs of a kind", writing_more, cmd_jobs_pause, 0, 1,
     1},
    {"jobs", "resume", "KIND", "claim them again", writing_more, cmd_jobs_resume, 0, 1, 1},
    {"chunks", NULL, "", "the chunks of the databases",
     "  --db D      only those of this database, by number or name\n"
     "  --limit N   not more than this many\n"
     "\nWith --json one object per line.\n",
     cmd_chunks, OPT_DB | OPT_LIMIT, 0, 0},
    {"check", NULL, "", "look at every page, record and index",
     "\nThe exit status is 1 when there is a problem. With --json one object.\n", cmd_check, 0, 0,
     0},
    {"dump", NULL, "[TABLE...]", "records as text, a line each",
     "\nAll tables, or those that are named. With --json one object per line: fields where there\n"
     "are records, the line as text where there are not. It reads one snapshot: while it runs,\n"
     "the file of a busy owner grows.\n",
     cmd_dump, 0, 0, -1},
    {"backup", NULL, "TARGET", "copy to a new file, while others write",
     "\nThe target must not be there. With --json one object.\n", cmd_backup, 0, 1, 1},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static void help_all(FILE *out)
{
    fputs("usage: jzx manifest FILE [SUBCOMMAND] [OPTIONS]\n\nSubcommands:\n", out);
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        const subcommand *s = &subcommands[i];
        char words[40];
        (void)snprintf(words, sizeof words, "%s%s%s%s%s", s->name, s->second == NULL ? "" : " ",
                       s->second == NULL ? "" : s->second, *s->operands == '\0' ? "" : " ",
                       s->operands);
        fprintf(out, "  %-18s %s\n", words, s->what);
    }
    fputs("\n"
          "  --json      for programs: an object, or an object per line\n"
          "  --help      this text; with a subcommand, about that\n"
          "\n"
          "Reading works beside the process that has the file open. Exit status: 0 fine, 1\n"
          "failed or problems found, 2 called wrongly, 3 another process owns the file.\n",
          out);
}

static void help_one(const subcommand *s)
{
    printf("usage: jzx manifest FILE %s%s%s%s%s%s [--json]\n", s->name,
           s->second == NULL ? "" : " ", s->second == NULL ? "" : s->second,
           s->options == 0 ? "" : " [OPTIONS]", *s->operands == '\0' ? "" : " ", s->operands);
    printf("%s.\n%s", s->what, s->more == NULL ? "" : s->more);
}

/* The subcommand that the words name; *words is how many they are. Bare `jobs` is `jobs list`. */
static const subcommand *find(char **argv, int argc, int *words)
{
    *words = 0;
    if (argc == 0) {
        return &subcommands[0];
    }
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        const subcommand *s = &subcommands[i];
        if (strcmp(argv[0], s->name) != 0) {
            continue;
        }
        bool second = argc > 1 && s->second != NULL && strcmp(argv[1], s->second) == 0;
        if (s->second == NULL || second || argc == 1) {
            *words = second ? 2 : 1;
            return s;
        }
    }
    return NULL;
}

typedef struct parsed {
    call c;
    bool help;
} parsed;

static bool parse_options(int argc, char **argv, parsed *out)
{
    enum { JSON = 256, STATE, KIND, DB, LIMIT };
    static const struct option options[] = {
        {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, 'h'},
        {"state", required_argument, NULL, STATE},
        {"kind", required_argument, NULL, KIND},
        {"db", required_argument, NULL, DB},
        {"limit", required_argument, NULL, LIMIT},
        {NULL, 0, NULL, 0},
    };
    call *c = &out->c;
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        switch (option) {
        case JSON:
            c->json = true;
            break;
        case 'h':
            out->help = true;
            break;
        case STATE:
            c->states = optarg;
            c->given |= OPT_STATE;
            break;
        case KIND:
            c->kind = optarg;
            c->given |= OPT_KIND;
            break;
        case DB:
            c->db = optarg;
            c->given |= OPT_DB;
            break;
        case LIMIT:
            c->limit = optarg;
            c->given |= OPT_LIMIT;
            break;
        case ':':
            (void)ui_usage(c->help, "The option %s needs a value.", argv[optind - 1]);
            return false;
        default:
            (void)ui_usage(c->help, "There is no option %s.", argv[optind - 1]);
            return false;
        }
    }
    return true;
}

/* The file may be missing when only help is wanted. */
static int help(char **words, int count)
{
    int used;
    const subcommand *s = count > 0 ? find(words, count, &used) : NULL;
    if (s == NULL && count > 1) {
        s = find(words + 1, count - 1, &used);
    }
    if (s == NULL) {
        help_all(stdout);
    } else {
        help_one(s);
    }
    return EXIT_FINE;
}

static int manifest_run(const subcommand *s, call *c)
{
    if ((c->given & ~s->options) != 0) {
        return ui_usage(c->help, "`%s` does not take that option.", s->name);
    }
    if (c->operand_count < s->min || (s->max >= 0 && c->operand_count > s->max)) {
        return ui_usage(c->help, "`%s%s%s` takes %s.", s->name, s->second == NULL ? "" : " ",
                        s->second == NULL ? "" : s->second,
                        *s->operands == '\0' ? "no operands" : s->operands);
    }
    return s->run(c);
}

int manifest_main(int argc, char **argv)
{
    parsed p = {.c = {.help = "jzx manifest"}};
    if (!parse_options(argc, argv, &p)) {
        return EXIT_USAGE;
    }
    char **words = argv + optind;
    int count = argc - optind;
    if (p.help) {
        return help(words, count);
    }
    if (count == 0) {
        help_all(stderr);
        return EXIT_USAGE;
    }
    int used;
    const subcommand *s = find(words + 1, count - 1, &used);
    if (s == NULL) {
        return ui_usage(p.c.help, "There is no subcommand '%s%s%s'.", words[1],
                        count > 2 ? " " : "", count > 2 ? words[2] : "");
    }
    p.c.file = words[0];
    p.c.operands = words + 1 + used;
    p.c.operand_count = count - 1 - used;
    return manifest_run(s, &p.c);
}
