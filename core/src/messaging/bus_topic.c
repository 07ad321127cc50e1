/* Topics by name and by number, and the prefixes that have subscriptions. */
#include "messaging/bus_priv.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <string.h>

jzi_topic *jzi_topic_find(const jzx_bus *bus, const char *name)
{
    uint32_t hash = (uint32_t)jzi_hash_text(name);
    jzi_topic *topic = bus->buckets[hash & (bus->topic_room - 1)];
    while (topic != NULL && (topic->hash != hash || strcmp(topic->name, name) != 0)) {
        topic = topic->next;
    }
    return topic;
}

static void put_in_bucket(jzx_bus *bus, jzi_topic *topic)
{
    jzi_topic **bucket = &bus->buckets[topic->hash & (bus->topic_room - 1)];
    topic->next = *bucket;
    *bucket = topic;
}

static bool bus_topic_make_room(jzx_bus *bus)
{
    size_t bytes = bus->topic_room * sizeof(jzi_topic *);
    jzi_topic **buckets = jzi_alloc_zeroed(&bus->alloc, bytes * 2);
    jzi_topic **topics =
        buckets == NULL ? NULL : jzi_realloc(&bus->alloc, bus->topics, bytes, bytes * 2);
    if (topics == NULL) {
        jzi_free(&bus->alloc, buckets, bytes * 2);
        return false;
    }
    jzi_free(&bus->alloc, bus->buckets, bytes);
    bus->topics = topics;
    bus->buckets = buckets;
    bus->topic_room *= 2;
    for (uint32_t i = 0; i < bus->topic_count; i++) {
        put_in_bucket(bus, topics[i]);
    }
    return true;
}

/* With the lock. */
static jzx_err bus_topic_add(jzx_bus *bus, const char *name, const jzx_topic_opts *opts,
                             jzi_topic **out_topic)
{
    size_t len = strlen(name);
    if (bus->topic_count == JZX_TOPICS_MAX) {
        return JZX_ERR_TOO_BIG;
    }
    if (bus->topic_count == bus->topic_room && !bus_topic_make_room(bus)) {
        return JZX_ERR_NO_MEMORY;
    }
    jzi_topic *topic = jzi_alloc(&bus->alloc, sizeof *topic + len + 1);
    if (topic == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    *topic = (jzi_topic){
        .number = ++bus->topic_count, .hash = (uint32_t)jzi_hash_text(name), .len = len};
    if (opts != NULL) {
        topic->opts = *opts;
    }
    memcpy(topic->name, name, len + 1);
    bus->topics[topic->number - 1] = topic;
    put_in_bucket(bus, topic);
    *out_topic = topic;
    return JZX_OK;
}

static bool is_same(const jzx_topic_opts *a, const jzx_topic_opts *b)
{
    return a->keep == b->keep && a->flags == b->flags &&
           ((a->flags & JZX_TOPIC_TAG) == 0 || a->tag == b->tag) &&
           ((a->flags & JZX_TOPIC_LEN) == 0 || a->len == b->len);
}

jzx_err jzi_bus_declare(jzx_bus *bus, const char *name, const jzx_topic_opts *opts,
                        jzx_topic *out_topic)
{
    jzx_err err = JZX_OK;
    (void)pthread_mutex_lock(&bus->lock);
    jzi_topic *topic = jzi_topic_find(bus, name);
    if (topic == NULL) {
        err = bus_topic_add(bus, name, opts, &topic);
    } else if (opts != NULL && !is_same(opts, &topic->opts)) {
        err = JZX_ERR_WRONG_TYPE;
    }
    if (err == JZX_OK) {
        *out_topic = topic->number;
    }
    (void)pthread_mutex_unlock(&bus->lock);
    return err;
}

jzx_err jzi_bus_look_up(jzx_bus *bus, const char *name, jzx_topic *out_topic)
{
    (void)pthread_mutex_lock(&bus->lock);
    const jzi_topic *topic = jzi_topic_find(bus, name);
    if (topic != NULL) {
        *out_topic = topic->number;
    }
    (void)pthread_mutex_unlock(&bus->lock);
    return topic == NULL ? JZX_ERR_NO_SUCH_TOPIC : JZX_OK;
}

jzi_prefix *jzi_prefix_join(jzx_bus *bus, const char *text, size_t len)
{
    for (jzi_prefix *prefix = bus->prefixes; prefix != NULL; prefix = prefix->next) {
        if (prefix->len == len && memcmp(prefix->text, text, len) == 0) {
            prefix->users++;
            return prefix;
        }
    }
    jzi_prefix *prefix = jzi_alloc(&bus->alloc, sizeof *prefix + len);
    if (prefix == NULL) {
        return NULL;
    }
    *prefix = (jzi_prefix){.next = bus->prefixes, .users = 1, .len = len};
    memcpy(prefix->text, text, len);
    const jzi_bus_stream *all = &bus->all;
    const jzi_bus_event *event = all->oldest;
    for (uint64_t i = all->evicted; i < all->published; i++) {
        prefix->published += jzi_prefix_covers(prefix, event->topic);
        event = event->next[JZI_BY_BUS];
    }
    bus->prefixes = prefix;
    return prefix;
}

void jzi_prefix_leave(jzx_bus *bus, jzi_prefix *prefix)
{
    if (--prefix->users > 0) {
        return;
    }
    jzi_prefix **at = &bus->prefixes;
    while (*at != prefix) {
        at = &(*at)->next;
    }
    *at = prefix->next;
    jzi_free(&bus->alloc, prefix, sizeof *prefix + prefix->len);
}
