/* Goal: whatever a program answers, jzx ends with a sentence or with a view of it: no crash, no
 * waiting for ever, no escape sequence of others on the terminal. Method: a server that answers as
 * docs/reference/CONTROL.md says but for one seeded mutilation, and jzx as a child process:
 * nonsense JZX [SEEDS]; JZX_SEED=n has other mutilations. */
#include "answers.h"

#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 120000, ROOM = 1 << 20 };

static const char *jzx;
static int seeds = JZT_SANITIZED ? 3 : 25;
static char folder[] = "/tmp/jzx-nonsense-XXXXXX";
static char place[64], out_path[64], err_path[64], file_path[64];

/* One call of jzx: its words after -p SOCKET. */
typedef struct call {
    const char *words[6];
} call;
static const call calls[] = {
    {.words = {"tree"}},
    {.words = {"tree", "--ascii", "--children", "1"}},
    {.words = {"actor", "db"}},
    {.words = {"actor", "db", "--json"}},
    {.words = {"dead", "--once"}},
    {.words = {"trace", "--for", "0.02", "--sends"}},
    {.words = {"trace", "--for", "0.02", "--perfetto", file_path}},
    {.words = {"stuck"}},
    {.words = {"doctor"}},
    {.words = {"record"}},
    {.words = {"metrics"}},
    {.words = {"stop", "db"}},
    {.words = {"tree", "--json"}},
    {.words = {"dead", "--once", "--json"}},
    {.words = {"trace", "--for", "0.02", "--json"}},
    {.words = {"stuck", "--json"}},
    {.words = {"doctor", "--json"}},
    {.words = {"record", "--json"}},
    {.words = {"metrics", "--json"}},
    {.words = {"send", "db", "--json"}},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

typedef struct told {
    int status; /* -1: it did not end by itself, or by a signal */
    char out[ROOM], err[ROOM];
} told;
static told result;

/* How one answer is made wrong. */
typedef enum damage {
    NONE,
    CUT,       /* the line ends in the middle, and so does the connection */
    FLIP,      /* bytes are others */
    DROP,      /* a piece is missing */
    OTHER,     /* a value is something else */
    DEEP,      /* brackets without end */
    NOTHING,   /* hung up without an answer */
    OTHER_ID,  /* the answer of another question */
    LONG,      /* a text of half a mebibyte */
    NO_OBJECT, /* valid JSON of another kind */
    DAMAGES
} damage;

static void spoil_value(char *line, size_t size, jzt_rng *rng)
{
    static const char *const others[] = {"null",
                                         "-1",
                                         "1e308",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "true",
                                         "[[1]]",
                                         "18446744073709551615",
                                         "\"\\u001b]0;x\\u0007\\u0000\""};
    size_t len = strlen(line), colons = 0;
    for (size_t i = 0; i < len; i++) {
        colons += line[i] == ':';
    }
    size_t chosen = jzt_rng_below(rng, colons == 0 ? 1 : colons);
    char *at = line;
    for (size_t i = 0; i <= chosen && at != NULL; i++) {
        at = strchr(at + 1, ':');
    }
    if (at == NULL) {
        return;
    }
    char *end = at + 1;
    int depth = 0;
    bool quoted = false;
    for (; *end != '\0'; end++) {
        if (*end == '"' && end[-1] != '\\') {
            quoted = !quoted;
        } else if (!quoted && (*end == '[' || *end == '{')) {
            depth++;
        } else if (!quoted && depth > 0 && (*end == ']' || *end == '}')) {
            depth--;
        } else if (!quoted && depth == 0 && (*end == ',' || *end == '}' || *end == ']')) {
            break;
        }
    }
    const char *other = others[jzt_rng_below(rng, sizeof others / sizeof others[0])];
    char *rest = strdup(end);
    (void)snprintf(at + 1, size - (size_t)(at + 1 - line), "%s%s", other, rest);
    free(rest);
}

static void spoil(char *line, size_t size, damage how, jzt_rng *rng)
{
    size_t len = strlen(line);
    size_t at = jzt_rng_below(rng, len - 1);
    switch (how) {
    case CUT:
        line[at] = '\0';
        break;
    case FLIP:
        for (uint64_t i = jzt_rng_below(rng, 4) + 1; i > 0; i--) {
            char byte = (char)jzt_rng_below(rng, 256);
            line[jzt_rng_below(rng, len - 1)] = byte == '\0' ? '\n' : byte;
        }
        break;
    case DROP: {
        size_t much = jzt_rng_below(rng, (len - at) < 40 ? len - at : 40);
        memmove(line + at, line + at + much, len - at - much + 1);
        break;
    }
    case OTHER:
        spoil_value(line, size, rng);
        break;
    case DEEP:
        memset(line, '[', 100000);
        memcpy(line + 100000, "\n", 2);
        break;
    case LONG: {
        char *quote = strstr(line, ":\"");
        if (quote != NULL && len + 500000 < size) {
            memmove(quote + 2 + 500000, quote + 2, strlen(quote + 2) + 1);
            memset(quote + 2, 'x', 500000);
        }
        break;
    }
    case NO_OBJECT:
        (void)snprintf(line, size, "[1,2]\n");
        break;
    default:
        break;
    }
}

static bool say(int fd, const char *text)
{
    size_t len = strlen(text);
    while (len > 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        (void)poll(&p, 1, LIMIT_MS);
        ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        text += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* What a request asks, and its id. */
static const char *answer_of(const char *request, unsigned *id)
{
    const char *at = strstr(request, "\"id\":");
    *id = at == NULL ? 0 : (unsigned)strtoul(at + 5, NULL, 10);
    for (size_t i = 0; i < ANSWERS; i++) {
        char op[32];
        (void)snprintf(op, sizeof op, "\"op\":\"%s\"", answers[i].op);
        if (strstr(request, op) != NULL) {
            return answers[i].answer;
        }
    }
    return "\"ok\":false,\"error\":\"UNKNOWN_OP\",\"text\":\"?\"";
}

/* Answers one request; what is spoiled is the last thing said. False: it is over. */
static bool serve_request(int fd, const char *request, damage how, jzt_rng *rng)
{
    static char line[ROOM];
    unsigned id;
    const char *answer = answer_of(request, &id);
    bool trace = strstr(request, "\"op\":\"trace\"") != NULL;
    bool program = strstr(request, "\"op\":\"program\"") != NULL && how != NONE;
    if (how == NOTHING) {
        return false;
    }
    /* A trace is spoiled in its events, and everything else in its first answer. */
    bool spared = trace || (program && jzt_rng_below(rng, 2) == 0);
    (void)snprintf(line, sizeof line, "{\"id\":%u,%s}\n", how == OTHER_ID && !spared ? id + 1 : id,
                   answer);
    if (spared) {
        if (!say(fd, line)) {
            return false;
        }
        for (size_t i = 0; trace && i < TRACED; i++) {
            (void)snprintf(line, sizeof line, "{\"id\":%u,%s}\n", id, traced[i]);
            bool wrong = how != NONE && jzt_rng_below(rng, TRACED) == i;
            if (wrong) {
                spoil(line, sizeof line, how, rng);
            }
            if (!say(fd, line) || (wrong && how != OTHER && how != LONG)) {
                return false;
            }
        }
        return true;
    }
    spoil(line, sizeof line, how, rng);
    return say(fd, line) && how == NONE;
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void serve(int fd, const char *greeting, damage how, jzt_rng *rng)
{
    char request[8192];
    size_t have = 0;
    bool more = say(fd, greeting);
    while (more) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, LIMIT_MS) <= 0) {
            break;
        }
        ssize_t got = recv(fd, request + have, sizeof request - 1 - have, 0);
        if (got <= 0) {
            break;
        }
        have += (size_t)got;
        request[have] = '\0';
        for (char *end; more && (end = strchr(request, '\n')) != NULL;) {
            *end = '\0';
            more = serve_request(fd, request, how, rng);
            have -= (size_t)(end + 1 - request);
            memmove(request, end + 1, have + 1);
        }
    }
    (void)close(fd);
}

static void slurp(const char *path, char *into)
{
    FILE *file = fopen(path, "r");
    size_t len = file == NULL ? 0 : fread(into, 1, ROOM - 1, file);
    into[len] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
}

static pid_t start(const call *c)
{
    pid_t child = fork();
    if (child != 0) {
        return child;
    }
    const char *words[12] = {jzx};
    size_t count = 1;
    for (; c->words[count - 1] != NULL; count++) {
        words[count] = c->words[count - 1];
    }
    words[count++] = "-p";
    words[count++] = place;
    int out = open(out_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int err = open(err_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    char *argv[12] = {NULL};
    for (size_t i = 0; i < count; i++) {
        argv[i] = strdup(words[i]);
    }
    (void)execv(jzx, argv);
    _exit(127);
}

static int wait_for(pid_t child)
{
    int status = 0;
    int64_t deadline = now_ms() + LIMIT_MS;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (now_ms() > deadline) {
            (void)kill(child, SIGKILL);
            (void)waitpid(child, &status, 0);
            return -1;
        }
        (void)poll(NULL, 0, 1);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char plain_greeting[] =
    "{\"jzx\":\"0.1.0\",\"protocol\":1,\"pid\":1,\"name\":\"" EVIL "\",\"uptime_ms\":5,"
    "\"allow\":[],\"new\":{}}\n";

static void run(const call *c, const char *greeting, damage how, jzt_rng *rng)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", place);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)unlink(place);
    REQUIRE_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    REQUIRE_EQ(listen(listener, 4), 0);
    pid_t child = start(c);
    struct pollfd p = {.fd = listener, .events = POLLIN};
    if (poll(&p, 1, LIMIT_MS) == 1) {
        serve(accept4(listener, NULL, NULL, SOCK_CLOEXEC), greeting, how, rng);
    }
    result.status = wait_for(child);
    slurp(out_path, result.out);
    slurp(err_path, result.err);
    (void)close(listener);
}

static bool is_harmless(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        bool c1 = byte == 0xc2 && (unsigned char)at[1] >= 0x80 && (unsigned char)at[1] < 0xa0;
        if ((byte < 0x20 && byte != '\n') || byte == 0x7f || c1) {
            return false;
        }
    }
    return strstr(text, "\u202e") == NULL;
}

static void check_result(const call *c, damage how, int seed)
{
    unsigned before = jzt_failures();
    CHECK(result.status == 0 || result.status == 1 || result.status == 4 || result.status == 5);
    CHECK(result.status != 1 || strncmp(result.err, "jzx: ", 5) == 0);
    CHECK(is_harmless(result.out));
    CHECK(is_harmless(result.err));
    if (jzt_failures() != before) {
        printf("    jzx %s, damage %d, seed %d: status %d\n%.2000s\n", c->words[0], how, seed,
               result.status, result.err);
    }
}

static void test_any_answer_ends_in_a_sentence_or_a_view(void)
{
    jzt_rng rng = jzt_rng_seeded();
    for (int seed = 0; seed < seeds && jzt_failures() == 0; seed++) {
        for (size_t i = 0; i < CALLS; i++) {
            damage how = (damage)(1 + jzt_rng_below(&rng, DAMAGES - 1));
            run(&calls[i], plain_greeting, how, &rng);
            check_result(&calls[i], how, seed);
        }
    }
}

static void test_a_sound_answer_is_shown_without_its_escapes(void)
{
    jzt_rng rng = jzt_rng_seeded();
    static const int statuses[CALLS] = {0, 0, 0, 0, 0, 0, 0, 4, 4, 0, 0, 1, 0, 0, 0, 4, 4, 0, 0, 0};
    for (size_t i = 0; i < CALLS; i++) {
        run(&calls[i], plain_greeting, NONE, &rng);
        check_result(&calls[i], NONE, 0);
        CHECK_EQ(result.status, statuses[i]);
        CHECK(i == 6 || i == 11 || strstr(result.out, "evil") != NULL);
    }
    /* What programs read is the same text to them: JSON has numbers for characters, and Prometheus
     * a backslash for itself. */
    run(&calls[3], plain_greeting, NONE, &rng);
    CHECK(strstr(result.out, "\"name\":\"evil\\u001B[31m\\u009b1m\\u202ename\"") != NULL ||
          strstr(result.out, "\"name\":\"evil\\u001b[31m\\u009b1m\\u202ename\"") != NULL);
    run(&calls[10], plain_greeting, NONE, &rng);
    CHECK_STR(result.out, "# HELP a b\na{who=\"\\\\evil\\\\x1b[31m\\\\x9b1m\\\\u202ename\"} 1\n");
}

static void greeted_by(const char *greeting, const char *sentence)
{
    jzt_rng rng = jzt_rng_seeded();
    run(&calls[0], greeting, NONE, &rng);
    CHECK_EQ(result.status, 1);
    CHECK(strstr(result.err, sentence) != NULL);
    CHECK_STR(result.out, "");
    CHECK(is_harmless(result.err));
}

static void test_a_wrong_greeting_is_told_in_a_sentence(void)
{
    greeted_by("{\"jzx\":\"9.0\\u001b[1m\",\"protocol\":2,\"pid\":1}\n", "speaks version 2");
    greeted_by("{\"ok\":false,\"error\":\"BUSY\",\"text\":\"16 clients are connected.\"}\n",
               "16 clients are connected.");
    greeted_by("220 mail.example.org ESMTP\r\n", "not in the protocol");
    greeted_by("{\"hello\":1}\n", "not the socket of a Jazz program");
    greeted_by("\n", "not in the protocol");
    greeted_by("[1]\n", "not in the protocol");
    greeted_by("{\"jzx\":\"0.1.0\",\"protocol\":\"one\"}\n", "not the socket of a Jazz program");
}

static const jzt_test tests[] = {
    {"a_sound_answer_is_shown_without_its_escapes",
     test_a_sound_answer_is_shown_without_its_escapes},
    {"a_wrong_greeting_is_told_in_a_sentence", test_a_wrong_greeting_is_told_in_a_sentence},
    {"any_answer_ends_in_a_sentence_or_a_view", test_any_answer_ends_in_a_sentence_or_a_view},
};

int main(int argc, char **argv)
{
    if (argc < 2 || mkdtemp(folder) == NULL) {
        fprintf(stderr, "usage: nonsense JZX [SEEDS]\n");
        return 2;
    }
    jzx = argv[1];
    seeds = argc > 2 ? atoi(argv[2]) : seeds;
    (void)snprintf(place, sizeof place, "%s/s", folder);
    (void)snprintf(out_path, sizeof out_path, "%s/out", folder);
    (void)snprintf(err_path, sizeof err_path, "%s/err", folder);
    (void)snprintf(file_path, sizeof file_path, "%s/trace.json", folder);
    int status = jzt_main(1, argv, tests, sizeof tests / sizeof tests[0]);
    (void)unlink(place);
    (void)unlink(out_path);
    (void)unlink(err_path);
    (void)unlink(file_path);
    (void)rmdir(folder);
    return status;
}
