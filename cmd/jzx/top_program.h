/* What the head of `jzx top` says of the program, from two answers to `program`. Pure. */
#ifndef JZX_CMD_TOP_PROGRAM_H
#define JZX_CMD_TOP_PROGRAM_H

#include <jansson.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOP_DISPATCHERS = 64, TOP_WORKERS = 64, TOP_NAME_TEXT = 64 };

typedef struct top_dispatcher {
    char name[TOP_NAME_TEXT];
    char kind[16];
    uint64_t actors;
    uint64_t latency_us;
    bool answering;
    double busy[TOP_WORKERS]; /* negative: not known yet */
    size_t worker_count;
    /* Of the worker that is in an actor's code for the longest time. */
    uint64_t longest_ms;
    char longest_actor[TOP_NAME_TEXT]; /* its name, or its id; "": none */
    char longest_id[24];
    int64_t longest_tag; /* -1: not known */
} top_dispatcher;

typedef struct top_program {
    bool known; /* there was an answer */
    char name[TOP_NAME_TEXT];
    uint64_t pid;
    uint64_t uptime_ms;
    uint64_t now_ns;
    uint64_t actors;
    uint64_t rss_bytes;
    uint64_t cpu_ms;
    uint64_t threads;
    uint64_t handled;
    uint64_t queued;
    uint64_t dead;
    uint64_t failures;
    uint64_t restarts;
    bool may_stop;
    bool may_kill;
    /* Since the answer before; negative: there was none. */
    double rate;      /* messages handled per second */
    double dead_rate; /* per second */
    double cpu;       /* share of one processor */
    top_dispatcher dispatchers[TOP_DISPATCHERS];
    size_t dispatcher_count;
    size_t dispatchers_more; /* that there is no room for here */
    bool silent;             /* one does not answer */
} top_program;

/* Takes an answer; what was there is the one before. */
void top_program_take(top_program *program, const json_t *answer);
/* Adds from an answer to `stuck` which messages are in hand where it hangs. */
void top_program_take_stuck(top_program *program, const json_t *answer);

#endif
