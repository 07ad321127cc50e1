/* Goal: a bus serves all dispatchers of its system: whoever publishes where, every subscriber gets
 * every event in order, or is told how many it missed, and ends leave nothing behind while others
 * publish (section 7, R6, R16, R31).
 * Method: real threads; readers and publishers in every place, plain threads too, subscribers that
 * come and go meanwhile; sums are compared at rest. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "world.h"

#include <jzx/bus.h>

enum { COUNT = JZT_SANITIZED ? 400 : 3000, GO = 1, NOTE = 2, THREADS = 3 };

static puppet *somebody(world *w, const char *what, const char *place)
{
    static uint32_t count;
    char name[32];
    snprintf(name, sizeof name, "%s %u", what, count++);
    puppet *a = puppet_at(w, name, place);
    a->mute = true;
    return a;
}

/* Readers: per source the values must count up; gaps are lost events. */

enum { SOURCES = 16 };
typedef struct reader {
    puppet *self;
    jzx_bus *bus;
    const char *pattern;
    jzx_sub_ref ref;
    uint64_t last[SOURCES];
    uint64_t gaps;
    _Atomic uint64_t got;
    _Atomic uint64_t lost;
    uint64_t notes; /* messages of the publisher whose events tell how many there were */
    bool slow;
} reader;

static void hear(jzx_context *ctx, const jzx_message *msg, reader *rd)
{
    const jzx_event *facts = jzx_bus_event_of(ctx);
    CHECK(facts != NULL && facts->sub == rd->ref);
    uint64_t source = msg->u64 >> 32;
    uint64_t value = msg->u64 & UINT32_MAX;
    source %= SOURCES;
    CHECK(value > rd->last[source]);
    rd->gaps += value - rd->last[source] - 1;
    rd->last[source] = value;
    CHECK(rd->notes >= msg->tag); /* R6 */
    atomic_fetch_add(&rd->got, 1);
    if (rd->slow) {
        pause_us(20);
    }
}

static jzx_behavior_result reader_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    reader *rd = self->arg;
    if (msg->kind == JZX_KIND_EVENT) {
        hear(ctx, msg, rd);
    } else if (msg->tag == JZX_TAG_LAGGED) {
        atomic_fetch_add(&rd->lost, ((const jzx_lag_notice *)msg->data)->lost);
    } else if (msg->tag == NOTE) {
        rd->notes++;
    }
    return JZX_BEHAVIOR_OK;
}

static void do_subscribe(jzx_context *ctx, puppet *self, void *arg)
{
    reader *rd = self->arg;
    (void)arg;
    CHECK_OK(jzx_bus_subscribe(ctx->loop, rd->bus, rd->pattern, NULL, &rd->ref));
}

static void do_unsubscribe(jzx_context *ctx, puppet *self, void *arg)
{
    reader *rd = self->arg;
    (void)arg;
    CHECK_OK(jzx_bus_unsubscribe(ctx->loop, rd->ref));
}

static reader *reader_start(world *w, jzx_bus *bus, const char *place, const char *pattern)
{
    reader *rd = calloc(1, sizeof *rd);
    REQUIRE(rd != NULL);
    rd->bus = bus;
    rd->pattern = pattern;
    rd->self = somebody(w, "reader", place);
    rd->self->arg = rd;
    rd->self->on = reader_on;
    puppet_up(rd->self);
    puppet_call(rd->self, do_subscribe, NULL);
    return rd;
}

/* At rest: what was published under its topics is what it got and what it missed. */
static void reader_settled(reader *rd, uint64_t published)
{
    WAIT(rd->self->w, atomic_load(&rd->got) + atomic_load(&rd->lost) >= published);
    CHECK_EQ(atomic_load(&rd->got) + atomic_load(&rd->lost), published);
    CHECK(rd->gaps <= atomic_load(&rd->lost));
}

static jzx_bus *bus_of(world *w, uint32_t keep, jzx_topic *t)
{
    jzx_bus *bus = NULL;
    jzx_bus_opts opts = {.keep = keep};
    REQUIRE_OK(jzx_bus_create(w->loop, &opts, &bus));
    REQUIRE_OK(jzx_bus_topic(bus, "t", NULL, t));
    return bus;
}

static void close_all(world *w, jzx_bus *bus, reader **all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        puppet_end(all[i]->self);
        free(all[i]);
    }
    jzx_bus_counts c;
    CHECK_OK(jzx_bus_stats(bus, &c));
    CHECK_EQ(c.subscriptions, 0);
    jzx_bus_release(bus);
    world_close(w);
}

/* Publishers. */

typedef struct source {
    jzx_bus *bus;
    jzx_topic topic;
    uint64_t number;
    uint64_t count;
    jzx_actor_id notes_to;
} source;

static void publish_all(jzx_context *ctx, puppet *self, void *arg)
{
    const source *s = arg;
    (void)ctx;
    (void)self;
    for (uint64_t i = 1; i <= s->count; i++) {
        CHECK_OK(jzx_bus_publish_u64(s->bus, s->topic, s->number << 32 | i, 0));
    }
}

static void *publish_thread(void *arg)
{
    publish_all(NULL, NULL, arg);
    return NULL;
}

static void test_events_reach_all_places_from_all_places_R31(void)
{
    jzx_topic t;
    world *w = world_open();
    jzx_bus *bus = bus_of(w, 65536, &t);
    reader *rd[PLACES * 2];
    for (size_t i = 0; i < PLACES * 2; i++) {
        rd[i] = reader_start(w, bus, places[i / 2], i % 2 ? "*" : "t");
    }
    for (size_t i = 0; i < PLACES; i++) {
        puppet *a = puppet_up(somebody(w, "source", places[i]));
        source s = {bus, t, i, 50, 0};
        puppet_call(a, publish_all, &s);
        puppet_end(a);
        for (size_t k = 0; k < PLACES * 2; k++) {
            reader_settled(rd[k], (i + 1) * 50);
            CHECK_EQ(rd[k]->last[i], 50);
        }
    }
    close_all(w, bus, rd, PLACES * 2);
}

static void test_threads_publish_at_once_and_nobody_is_skipped(void)
{
    for (int small = 0; small < 2; small++) {
        jzx_topic t;
        world *w = world_open();
        jzx_bus *bus = bus_of(w, small ? 16 : 65536, &t);
        reader *rd[PLACES];
        source s[THREADS];
        pthread_t thread[THREADS];
        for (size_t i = 0; i < PLACES; i++) {
            rd[i] = reader_start(w, bus, places[i], i % 2 ? "*" : "t");
            rd[i]->slow = small && i == 1;
        }
        for (size_t i = 0; i < THREADS; i++) {
            s[i] = (source){bus, t, i, COUNT, 0};
            REQUIRE_EQ(pthread_create(&thread[i], NULL, publish_thread, &s[i]), 0);
        }
        for (size_t i = 0; i < PLACES; i++) {
            reader_settled(rd[i], THREADS * COUNT);
            CHECK(small || atomic_load(&rd[i]->lost) == 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
        }
        jzx_bus_counts c;
        CHECK_OK(jzx_bus_stats(bus, &c));
        CHECK_EQ(c.published, THREADS * COUNT);
        CHECK_EQ(c.delivered + c.lagged, PLACES * THREADS * COUNT);
        close_all(w, bus, rd, PLACES);
    }
}

/* Each event says how many messages its publisher had sent to the reader before. */
static void publish_with_notes(jzx_context *ctx, puppet *self, void *arg)
{
    const source *s = arg;
    uint32_t notes = 0;
    (void)self;
    for (uint64_t i = 1; i <= s->count; i++) {
        notes += jzx_send_u64(ctx->loop, s->notes_to, i, NOTE) == JZX_OK;
        CHECK_OK(jzx_bus_publish_u64(s->bus, s->topic, s->number << 32 | i, notes));
    }
}

static void test_no_event_overtakes_a_message_between_dispatchers_R6(void)
{
    jzx_topic t;
    world *w = world_open();
    jzx_bus *bus = bus_of(w, 1024, &t);
    jzx_topic noise;
    REQUIRE_OK(jzx_bus_topic(bus, "noise", NULL, &noise));
    for (size_t from = 0; from < PLACES; from++) {
        for (size_t to = 0; to < PLACES; to++) {
            reader *rd = reader_start(w, bus, places[to], "t");
            puppet *a = puppet_up(somebody(w, "source", places[from]));
            source loud = {bus, noise, 1, 200, 0};
            pthread_t thread;
            REQUIRE_EQ(pthread_create(&thread, NULL, publish_thread, &loud), 0);
            source s = {bus, t, 0, 60, ID_OF(rd->self)};
            puppet_call(a, publish_with_notes, &s);
            reader_settled(rd, 60);
            pthread_join(thread, NULL);
            puppet_end(a);
            puppet_end(rd->self);
            free(rd);
        }
    }
    close_all(w, bus, NULL, 0);
}

static void *publish_until_stopped(void *arg)
{
    source *s = arg;
    jzx_err err = JZX_OK;
    for (uint64_t i = 1; err == JZX_OK; i++) {
        err = jzx_bus_publish_u64(s->bus, s->topic, s->number << 32 | i, 0);
        s->count = i;
    }
    CHECK_EQ(err, JZX_ERR_LOOP_CLOSED);
    jzx_bus_release(s->bus);
    return NULL;
}

/* Subscribers come and go in the middle of it, by every way there is; then the system goes. */
static void test_ends_leave_nothing_behind_while_others_publish_R16(void)
{
    enum { TURNS = JZT_SANITIZED ? 12 : 40 };
    jzx_topic t;
    world *w = world_open_with(NULL, false);
    jzx_bus *bus = bus_of(w, 8, &t);
    pthread_t thread[THREADS];
    source s[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        s[i] = (source){jzx_bus_retain(bus), t, i, 0, 0};
        REQUIRE_EQ(pthread_create(&thread[i], NULL, publish_until_stopped, &s[i]), 0);
    }
    for (size_t n = 0; n < TURNS; n++) {
        reader *rd[PLACES];
        for (size_t i = 0; i < PLACES; i++) {
            rd[i] = reader_start(w, bus, places[i], (i + n) % 2 ? "*" : "t");
        }
        for (size_t i = 0; i < PLACES; i++) {
            WAIT(w, atomic_load(&rd[i]->got) > 0);
            switch ((i + n) % 3) {
            case 0:
                puppet_call(rd[i]->self, do_unsubscribe, NULL);
                break;
            case 1:
                (void)jzx_system_kill(w->system, ID_OF(rd[i]->self));
                break;
            default:
                break;
            }
        }
        for (size_t i = 0; i < PLACES; i++) {
            puppet_end(rd[i]->self);
            free(rd[i]);
        }
    }
    jzx_bus_counts c;
    CHECK_OK(jzx_bus_stats(bus, &c));
    CHECK_EQ(c.subscriptions, 0);
    CHECK_EQ(c.kept, 8);
    jzx_bus_release(bus);
    jzx_sender_release(w->sender);
    REQUIRE_OK(jzx_system_destroy(w->system));
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    cast_close(&w->cast);
    pthread_mutex_destroy(&w->cast.lock);
    free(w);
}

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }
static const jzt_test tests[] = {
    TEST(events_reach_all_places_from_all_places_R31),
    TEST(threads_publish_at_once_and_nobody_is_skipped),
    TEST(no_event_overtakes_a_message_between_dispatchers_R6),
    TEST(ends_leave_nothing_behind_while_others_publish_R16),
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
