/* Entry points for the bus: checks of arguments over the module below. */
#include <jzx/bus.h>

#include "base/alloc.h"
#include "messaging/bus.h"
#include "sched/entry.h"
#include "sched/mailbox.h"

#include <string.h>

jzx_err jzx_bus_create_sized(jzx_loop *loop, const jzx_bus_opts *opts, size_t opts_size,
                             jzx_bus **out_bus)
{
    jzx_bus_opts known = {0};
    if (loop == NULL || out_bus == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = opts == NULL ? JZX_OK : jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    if (known.reserved != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (known.keep > JZX_BUS_KEEP_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    JZI_ENTER(loop, "jzx_bus_create");
    return jzi_bus_create(worker, &known, out_bus);
}

jzx_bus *jzx_bus_retain(jzx_bus *bus)
{
    if (bus != NULL) {
        jzi_bus_retain(bus);
    }
    return bus;
}

void jzx_bus_release(jzx_bus *bus)
{
    if (bus != NULL) {
        jzi_bus_release(bus);
    }
}

/* Topics. */

static jzx_err check_name(const char *name, bool pattern)
{
    size_t len = name == NULL ? 0 : strlen(name);
    if (len == 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (len > JZX_TOPIC_NAME_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    const char *star = memchr(name, '*', len);
    return star == NULL || (pattern && star == name + len - 1) ? JZX_OK : JZX_ERR_INVALID_ARG;
}

jzx_err jzx_bus_topic_sized(jzx_bus *bus, const char *name, const jzx_topic_opts *opts,
                            size_t opts_size, jzx_topic *out_topic)
{
    jzx_topic_opts known = {0};
    if (bus == NULL || out_topic == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = check_name(name, false);
    if (err == JZX_OK && opts != NULL) {
        err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    }
    if (err != JZX_OK) {
        return err;
    }
    if ((known.flags & ~(JZX_TOPIC_TAG | JZX_TOPIC_LEN)) != 0 || known.reserved != 0) {
        return JZX_ERR_INVALID_ARG;
    }
    if (known.keep > JZX_BUS_KEEP_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    return jzi_bus_declare(bus, name, opts == NULL ? NULL : &known, out_topic);
}

jzx_err jzx_bus_find(jzx_bus *bus, const char *name, jzx_topic *out_topic)
{
    if (bus == NULL || name == NULL || out_topic == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    return jzi_bus_look_up(bus, name, out_topic);
}

/* Publishing. */

static jzx_err publish(jzx_bus *bus, jzx_topic topic, const char *name, const jzx_send_opts *opts)
{
    uint32_t flags = 0;
    jzx_err err = jzi_mailbox_check_opts(opts, &flags);
    if (err == JZX_OK &&
        ((opts->flags & JZX_SEND_URGENT) != 0 || opts->deadline_ns != 0 || opts->margin != 0)) {
        err = JZX_ERR_INVALID_ARG;
    }
    return err != JZX_OK
               ? err
               : jzi_bus_publish(bus, topic, name, opts, flags & (JZX_MSG_VALUE | JZX_MSG_COPY));
}

/* The short forms have less to check. */
static jzx_err publish_plain(jzx_bus *bus, jzx_topic topic, const jzx_send_opts *opts,
                             uint32_t flags)
{
    if (bus == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    return opts->tag >= JZX_TAG_SYSTEM_FIRST ? JZX_ERR_RESERVED_TAG
                                             : jzi_bus_publish(bus, topic, NULL, opts, flags);
}

jzx_err jzx_bus_publish(jzx_bus *bus, jzx_topic topic, void *data, size_t len,
                        void (*drop)(void *data), uint32_t tag)
{
    jzx_send_opts opts = {.data = data, .len = len, .drop = drop, .tag = tag};
    return publish_plain(bus, topic, &opts, 0);
}

jzx_err jzx_bus_publish_u64(jzx_bus *bus, jzx_topic topic, uint64_t value, uint32_t tag)
{
    jzx_send_opts opts = {.u64 = value, .tag = tag};
    return publish_plain(bus, topic, &opts, JZX_MSG_VALUE);
}

jzx_err jzx_bus_publish_copy(jzx_bus *bus, jzx_topic topic, const void *bytes, size_t len,
                             uint32_t tag)
{
    /* The bytes are only read; the options have one pointer for both ways. */
    jzx_send_opts opts = {.len = len, .tag = tag, .flags = JZX_SEND_COPY};
    memcpy(&opts.data, &bytes, sizeof opts.data);
    return bus == NULL ? JZX_ERR_INVALID_ARG : publish(bus, topic, NULL, &opts);
}

jzx_err jzx_bus_publish_to_sized(jzx_bus *bus, const char *name, const jzx_send_opts *opts,
                                 size_t opts_size)
{
    jzx_send_opts known;
    if (bus == NULL || name == NULL || opts == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    if (err != JZX_OK) {
        return err;
    }
    err = publish(bus, 0, name, &known);
    if (err != JZX_OK && (known.flags & JZX_SEND_CONSUME) != 0 && known.drop != NULL &&
        known.data != NULL) {
        known.drop(known.data);
    }
    return err;
}

/* Subscriptions. */

static bool is_inside(const jzi_worker *worker)
{
    return worker != NULL && worker->current != NULL && worker->ctx.self != JZX_NOBODY &&
           worker->phase != JZI_PHASE_NONE;
}

static bool is_stopping(const jzi_worker *worker)
{
    uint32_t flags = worker->current->flags;
    return ((flags & JZI_ACTOR_STOPPING) != 0 && (flags & JZI_ACTOR_DEFERRED) == 0) ||
           worker->phase == JZI_PHASE_DEINIT || worker->dispatcher->destroying;
}

jzx_err jzx_bus_subscribe_sized(jzx_loop *loop, jzx_bus *bus, const char *topic,
                                const jzx_sub_opts *opts, size_t opts_size, jzx_sub_ref *out_ref)
{
    jzx_sub_opts known = {0};
    JZI_ENTER(loop, "jzx_bus_subscribe");
    if (!is_inside(worker) || bus == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzx_err err = check_name(topic, true);
    if (err == JZX_OK && opts != NULL) {
        err = jzi_struct_adopt(&known, sizeof known, opts, opts_size);
    }
    if (err != JZX_OK) {
        return err;
    }
    if ((known.flags & ~JZX_SUB_FROM_OLDEST) != 0 || known.reserved != 0 ||
        known.tag_last < known.tag_first) {
        return JZX_ERR_INVALID_ARG;
    }
    return is_stopping(worker)
               ? JZX_ERR_STOPPING
               : jzi_bus_subscribe(worker, worker->current, bus, topic, &known, out_ref);
}

jzx_err jzx_bus_unsubscribe(jzx_loop *loop, jzx_sub_ref ref)
{
    JZI_ENTER(loop, "jzx_bus_unsubscribe");
    return is_inside(worker) ? jzi_bus_unsubscribe(worker, worker->current, ref)
                             : JZX_ERR_INVALID_ARG;
}

const jzx_event *jzx_bus_event_of(const jzx_context *ctx)
{
    const jzi_worker *worker = ctx == NULL ? NULL : jzi_container_of(ctx, const jzi_worker, ctx);
    if (worker == NULL || worker->phase != JZI_PHASE_BEHAVIOR || worker->in_hand == NULL ||
        (jzi_msg_flags(&worker->in_hand->msg) & JZI_MSG_EVENT) == 0 ||
        worker->in_hand->ops != JZI_EVENT_BUS) {
        return NULL;
    }
    return jzi_bus_facts(worker->in_hand);
}

/* Counts. */

jzx_err jzx_bus_sub_stats_sized(jzx_loop *loop, jzx_actor_id subscriber, jzx_sub_ref ref,
                                jzx_sub_counts *out, size_t out_size)
{
    jzx_sub_counts counts;
    JZI_ENTER(loop, "jzx_bus_sub_stats");
    if (worker == NULL || out == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_actor *actor = jzi_worker_find(worker, subscriber);
    if (actor == NULL) {
        return jzi_worker_not_here(worker, subscriber);
    }
    jzx_err err = jzi_bus_sub_counts(actor, ref, &counts);
    if (err == JZX_OK) {
        memcpy(out, &counts, out_size < sizeof counts ? out_size : sizeof counts);
    }
    return err;
}

jzx_err jzx_bus_stats_sized(jzx_bus *bus, jzx_bus_counts *out, size_t out_size)
{
    jzx_bus_counts counts;
    if (bus == NULL || out == NULL) {
        return JZX_ERR_INVALID_ARG;
    }
    jzi_bus_counts(bus, &counts);
    memcpy(out, &counts, out_size < sizeof counts ? out_size : sizeof counts);
    return JZX_OK;
}
