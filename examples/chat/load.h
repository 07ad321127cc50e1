/* The load generator: many clients of the chat server, and a judge who compares what they heard
 * with what was said. */
#ifndef CHAT_LOAD_H
#define CHAT_LOAD_H

#include <jzx/jzx.h>
#include <jzx/protocol.h>

/* What the command line says. */
typedef struct load_plan {
    const char *address;
    uint32_t speakers; /* clients that say `lines` lines each */
    uint32_t slow;     /* clients that read nothing until the speakers have heard everything */
    uint32_t rooms;    /* client i is in room i % rooms */
    uint32_t lines;
    uint32_t bytes;   /* of a line */
    uint32_t window;  /* lines that a speaker has said and not yet heard */
    uint32_t seconds; /* until we give up */
    int crash;        /* in each room somebody crashes the room, and later its own session */
    int json;
} load_plan;

/* Clients are numbered: speakers first, then slow ones, then a saboteur for each room. */
typedef enum part { SPEAKER, SLOW, SABOTEUR } part;

/* How long lines took: eight buckets for each power of two of nanoseconds. */
enum { BUCKETS = 8 * 48 };
uint64_t bucket_begin_ns(uint32_t bucket);

/* What a client heard. */
typedef struct load_report {
    uint64_t heard;  /* lines of speakers */
    uint64_t missed; /* lines of any kind, as the server told */
    uint64_t lost;   /* lines of speakers that did not come, and that the server did not tell of */
    uint64_t wrong;  /* lines that came twice, or before an earlier one */
    uint64_t untold; /* 1: it was not told once that the saboteur left */
    uint64_t broken; /* 1: it was cut off */
    uint32_t took[BUCKETS];
} load_report;

/* To the judge: I am in my room; I heard all that I wait for; this is what I heard. */
#define JUDGE_MESSAGES(M, P)                                                                       \
    M(P, ready, void, none)                                                                        \
    M(P, content, void, none)                                                                      \
    M(P, report, load_report, copy)                                                                \
    M(P, too_late, void, none)
JZX_PROTOCOL(judge, 0x100, JUDGE_MESSAGES);

/* To a client: say your lines; read, if you are slow; say good-bye and report. */
typedef enum phase { SPEAK, READ, FINISH } phase;
#define CLIENT_MESSAGES(M, P) M(P, begin, phase, value)
JZX_PROTOCOL(client, 0x200, CLIENT_MESSAGES);

/* Who a client is. */
typedef struct identity {
    const load_plan *plan;
    jzx_actor_id judge;
    uint32_t number;
    uint32_t saboteur; /* the number of that of its room */
    part part;
} identity;

/* load_ear.c: the line of this number, padded to so many bytes. */
enum { LINE_CAP = 512 };
void line_make(char *out, uint32_t bytes, uint32_t number, uint64_t now_ns);
/* Checks what a client hears. */
typedef struct ear {
    const identity *who;
    uint32_t speakers; /* in its room */
    uint32_t own;      /* lines of its own that came back, or may have been missed */
    uint32_t left;     /* how often it heard that the saboteur left */
    int inside;        /* it is in its room */
    int back;          /* the saboteur was heard after it crashed the room */
    load_report report;
    uint32_t next[]; /* of each speaker in its room, the line to come */
} ear;
ear *ear_open(const identity *who); /* NULL: no memory; else for free() */
void ear_hear(ear *ear, const char *line, uint64_t now_ns);
/* What part of the lines it knows of, heard or missed: 0 to 1. */
double ear_share(const ear *ear);
/* 1: there is nothing more to wait for. */
int ear_knows_all(const ear *ear);
/* Completes the report. */
const load_report *ear_close(ear *ear);
void report_add(load_report *sum, const load_report *one);

/* load_client.c: a client. Its identity is borrowed. */
jzx_spawn_opts client_opts(identity *who);

/* load_judge.c: what came of it all. */
typedef struct load_verdict {
    const load_plan *plan;
    uint32_t connections;
    uint32_t reports;
    uint64_t begun_ns, ended_ns; /* of the speaking */
    load_report sum;
} load_verdict;
jzx_spawn_opts judge_opts(load_verdict *out);

#endif
