/* Answers of a program that does not exist, as docs/reference/CONTROL.md has them: the part between
 * {"id":N, and the last brace. */
#ifndef JZT_COMMAND_ANSWERS_H
#define JZT_COMMAND_ANSWERS_H

/* An escape sequence, its one-character form, and what turns the direction of writing. */
#define EVIL "evil\\u001b[31m\\u009b1m\\u202ename"

#define ACTOR                                                                                      \
    "{\"id\":\"100000003\",\"name\":\"" EVIL "\",\"parent\":\"100000001\",\"depth\":1,"            \
    "\"state\":\"running\",\"mailbox\":12,\"cap\":1024,\"accepted\":10012,\"dead\":0,"             \
    "\"rate\":950.5,\"cpu\":0.12,\"restarts\":1,\"incarnation\":2,\"children\":0,\"memory\":704,"  \
    "\"uptime_ms\":12000,\"dispatcher\":\"loop\",\"supervisor\":false,\"stopping\":false,"         \
    "\"running\":false}"
#define ROOT                                                                                       \
    "{\"id\":\"100000001\",\"name\":\"root\",\"parent\":null,\"depth\":0,\"state\":\"running\","   \
    "\"mailbox\":0,\"cap\":64,\"restarts\":0,\"children\":9,\"uptime_ms\":null,"                   \
    "\"supervisor\":true}"
#define FRAMES                                                                                     \
    "[{\"pc\":\"55d0c0de\",\"text\":\"handle+0x1c (node)\"},{\"pc\":\"x\",\"text\":null}]"

static const struct {
    const char *op;
    const char *answer;
} answers[] = {
    {"program",
     "\"ok\":true,\"pid\":1,\"name\":\"" EVIL "\",\"uptime_ms\":93211,\"now_ns\":81234567890,"
     "\"time_ms\":1794826400000,\"actors\":120,\"rss_bytes\":5242880,\"counters\":{\"handled\":7},"
     "\"dispatchers\":[]"},
    {"actors", "\"ok\":true,\"total\":2,\"matched\":2,\"actors\":[" ROOT "," ACTOR "]"},
    {"actor",
     "\"ok\":true,\"actor\":" ACTOR ",\"history\":[\"created\",\"running\"],"
     "\"doing\":{\"running\":true,\"for_ms\":12,\"tag\":7,\"kind\":\"user\",\"hook\":false,"
     "\"frames\":" FRAMES "},\"detail\":{\"names\":[\"db\"],\"groups\":[\"g\"],\"stashed\":1,"
     "\"full_policy\":\"reject\",\"max_messages\":64,\"stop_timeout_ms\":5000,"
     "\"timers\":[{\"tag\":3,\"due_ms\":120,\"period_ms\":1000}],\"watching\":[\"100000009\"],"
     "\"asks\":[{\"to\":\"100000004\",\"age_ms\":3,\"left_ms\":997}],\"owes\":[],"
     "\"supervision\":{\"strategy\":\"one_for_one\",\"intensity\":3,\"period_ms\":5000,"
     "\"restarts\":1,\"children\":[{\"id\":\"100000005\",\"name\":\"w\",\"state\":\"up\","
     "\"mode\":\"permanent\",\"restarts\":1,\"attempt\":0,\"due_ms\":null}]}},"
     "\"failures\":[{\"seq\":9,\"ago_ms\":3000,\"actor\":\"100000003\",\"incarnation\":1,"
     "\"reason\":\"crash\",\"code\":11,\"text\":\"SIGSEGV\",\"tag\":7,\"frames\":" FRAMES "}]"},
    {"dead", "\"ok\":true,\"next\":57,\"lagged\":3,\"by_reason\":{\"stopped\":3,\"expired\":1},"
             "\"letters\":[{\"seq\":57,\"time_ns\":1,\"ago_ms\":3,\"target\":\"10000000a\","
             "\"target_name\":\"" EVIL "\",\"sender\":null,\"tag\":7,\"kind\":\"user\","
             "\"reason\":\"stopped\",\"len\":8}]"},
    {"stuck",
     "\"ok\":true,\"limit_ms\":1000,\"running\":[{\"dispatcher\":\"loop\",\"worker\":0,"
     "\"actor\":\"100000003\",\"name\":\"" EVIL "\",\"tag\":7,\"kind\":\"user\",\"hook\":false,"
     "\"for_ms\":5200,\"answered\":true,\"frames\":" FRAMES "}],\"full\":[" ACTOR "],"
     "\"asks\":[{\"asker\":\"1\",\"asker_name\":\"a\",\"callee\":\"2\",\"callee_name\":\"b\","
     "\"age_ms\":4000}],\"waits\":[[\"1\",\"2\"],[\"2\",\"1\"],[]],\"silent\":[\"loop\"]"},
    {"facts",
     "\"ok\":true,\"now_ns\":1,\"running\":[],\"families\":[{\"actor\":\"100000001\","
     "\"name\":\"" EVIL "\",\"what\":\"spec\",\"rule\":\"no-backoff\",\"child\":\"" EVIL "\","
     "\"text\":\"it may be " EVIL ": set backoff_min_ms\"},{\"actor\":\"100000001\","
     "\"name\":null,\"what\":\"child\",\"child\":\"w\",\"child_actor\":\"100000005\","
     "\"child_name\":\"w\",\"attempt\":3,\"restarts\":12,\"ago_ms\":5,\"backoff\":false,"
     "\"together\":true}],\"guard_wanted\":true,\"guard_installed\":false,\"asks\":[],"
     "\"actors\":[{\"actor\":\"100000003\",\"name\":\"" EVIL "\",\"mailbox\":1,\"cap\":1,"
     "\"accepted\":10,\"dead\":0,\"children\":0,\"supervisor\":false}],\"slow\":[],"
     "\"counters\":{\"accepted\":7,\"abandoned\":1},\"names\":[],\"dispatchers\":[{\"index\":0,"
     "\"name\":\"" EVIL "\",\"pool\":false,\"workers\":1,\"actors\":3,\"run\":true,"
     "\"answering\":true}],\"processors\":4,\"watchdog\":false,\"cut\":true,"
     "\"silent\":[\"" EVIL "\"]"},
    {"record", "\"ok\":true,\"events\":[{\"seq\":1,\"t_ns\":1,\"ago_ms\":3,\"dispatcher\":\"loop\","
               "\"worker\":0,\"what\":\"restart\",\"actor\":\"100000003\",\"name\":\"" EVIL "\","
               "\"peer\":null,\"tag\":0,\"detail\":2,\"value\":0,\"text\":\"restart " EVIL "\"}]"},
    {"metrics", "\"ok\":true,\"text\":\"# HELP a b\\na{who=\\\"\\\\\\\\" EVIL "\\\"} 1\\n\""},
    {"trace", "\"ok\":true"},
    {"end", "\"ok\":true"},
    {"send", "\"ok\":true,\"new\":\"" EVIL "\""},
    {"stop", "\"ok\":false,\"error\":\"NOT_ALLOWED\",\"text\":\"No " EVIL ".\""},
};
enum { ANSWERS = sizeof answers / sizeof answers[0] };

/* What comes after the answer of `trace`; each line is {"id":N, this and a brace. */
static const char *const traced[] = {
    "\"event\":{\"what\":\"sent\",\"t_ns\":5000,\"actor\":\"\",\"peer\":\"100000003\",\"tag\":7,"
    "\"stamp\":17}",
    "\"event\":{\"what\":\"handled\",\"t_ns\":6000,\"dur_ns\":800,\"actor\":\"100000003\","
    "\"name\":\"" EVIL "\",\"peer\":null,\"tag\":7,\"kind\":\"user\",\"result\":\"ok\","
    "\"stamp\":17}",
    "\"event\":{\"what\":\"fail\",\"t_ns\":5500,\"actor\":\"100000003\",\"detail\":-3,"
    "\"reason\":\"failed\",\"text\":\"" EVIL "\"}",
    "\"skipped\":120,\"lost\":0",
};
enum { TRACED = sizeof traced / sizeof traced[0] };

#endif
