/* What the suites on flow control share: a source that counts, stages that hand on, a sink that
 * checks, each with its counters, in the worlds of rig.h. */
#ifndef JZT_FLOW_FIXTURE_H
#define JZT_FLOW_FIXTURE_H

#include "puppet.h"

#include <jzx/flow.h>

/* One stage of a test. Its options live here, as long as it does. */
typedef struct station {
    jzx_flow_opts opts;
    jzx_flow_stats stats;
    jzx_actor_id id;
    uint64_t next;  /* a source: what it emits next */
    uint64_t total; /* a source: how many it has; 0: no end */
    uint64_t seen;  /* items handled */
    uint64_t sum;
    uint64_t last;
    uint64_t deepest;   /* the most that ever waited in its mailbox */
    uint64_t unordered; /* items that were not larger than the one before */
    uint64_t fail_at;   /* the item that it fails with, once; 0: none */
    uint64_t cost_ns;   /* of an item, in virtual time */
    uint32_t inits;
    uint32_t deinits;
    uint32_t done;
    uint32_t losses;
    uint32_t lost_reason;
    uint32_t most_asked; /* the most that on_demand was asked for */
    uint32_t short_by;   /* a source: gives so many fewer than asked for at a time */
} station;

jzx_behavior_result count_up(jzx_flow *flow, uint32_t n);
bool fails_now(station *me, const jzx_message *item);
jzx_behavior_result hand_on(jzx_flow *flow, const jzx_message *item);
jzx_behavior_result take_in(jzx_flow *flow, const jzx_message *item);
jzx_behavior_result note_done(jzx_flow *flow);
jzx_behavior_result note_lost(jzx_flow *flow, jzx_actor_id peer, const jzx_reason *reason);
jzx_behavior_result note_init(jzx_flow *flow, void *arg);
void note_deinit(jzx_flow *flow);
/* Zeroed but for its kind and callbacks; not spawned. The caller frees it after the rig. */
station *station_new(uint32_t kind);
station *source_new(uint64_t total);
void station_spawn(rig *r, station *s);
void join_with(rig *r, const station *producer, const station *consumer, uint32_t max);
/* What a stage emitted is somewhere. */
void check_kept(const station *s);
bool station_gone(rig *r, const station *s);
/* Items among the dead letters; at most 64 are looked at. Around restarts a word of the protocol
 * may be there too, such as an invitation to somebody who has just ended. */
uint64_t dead_items(rig *r);
/* Source, stage, sink. */
typedef struct line {
    station *source;
    station *stage;
    station *sink;
} line;

line line_new(uint64_t total);
void line_spawn(rig *r, line *l, uint32_t max);
void line_free(line *l);
/* The sum of 1 to n. */
uint64_t sum_to(uint64_t n);
#endif
