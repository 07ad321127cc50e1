/* The event bus: topics, what is kept, subscriptions. See jzx/bus.h for what the bus promises. */
#ifndef JZI_BUS_H
#define JZI_BUS_H

#include <jzx/bus.h>

#include "sched/worker.h"

/* Installs the event operations (JZI_EVENT_BUS). */
void jzi_bus_init(jzi_worker *worker);
/* An incarnation leaves: its subscriptions end. */
void jzi_bus_subs_leave(jzi_worker *worker, jzi_actor *actor, bool restarts);

/* As the functions of jzx/bus.h; options were adopted and checked, names too. */
jzx_err jzi_bus_create(jzi_worker *worker, const jzx_bus_opts *opts, jzx_bus **out_bus);
/* On an error the data is the caller's. flags: JZX_MSG_VALUE, JZX_MSG_COPY or 0. By name, or with
 * name NULL by number. */
jzx_err jzi_bus_publish(jzx_bus *bus, jzx_topic topic, const char *name, const jzx_send_opts *opts,
                        uint32_t flags);
jzx_err jzi_bus_subscribe(jzi_worker *worker, jzi_actor *actor, jzx_bus *bus, const char *pattern,
                          const jzx_sub_opts *opts, jzx_sub_ref *out_ref);
jzx_err jzi_bus_unsubscribe(jzi_worker *worker, jzi_actor *actor, jzx_sub_ref ref);
jzx_err jzi_bus_sub_counts(jzi_actor *actor, jzx_sub_ref ref, jzx_sub_counts *out);
/* Of an event's node in hand; NULL for a notice. */
const jzx_event *jzi_bus_facts(jzi_node *node);
/* How many subscriptions an actor of this dispatcher has; `cap` if there are more. */
uint32_t jzi_bus_count_subs(const jzi_actor *actor, uint32_t cap);

/* Declares a topic; opts NULL: as the topic is, or with the defaults. */
jzx_err jzi_bus_declare(jzx_bus *bus, const char *name, const jzx_topic_opts *opts,
                        jzx_topic *out_topic);
jzx_err jzi_bus_look_up(jzx_bus *bus, const char *name, jzx_topic *out_topic);
void jzi_bus_counts(jzx_bus *bus, jzx_bus_counts *out);
void jzi_bus_retain(jzx_bus *bus);
/* The last owner frees the bus, and drops the events that the bus kept. */
void jzi_bus_release(jzx_bus *bus);

#endif
