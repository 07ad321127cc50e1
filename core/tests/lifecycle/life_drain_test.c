/* Goal: what becomes of messages whose actor ends first (R16): dead letters, silence, or another
 * actor, also when that one is full, gone, dying, the same or part of a circle. Nothing is lost and
 * nothing is released twice (R4, R5). Method: simulation; each payload counts its drops. */
#include "puppet.h"

enum { FIRST = 1, LEFT = 5 };

static uint64_t drops;
static int payload;

static void count_drop(void *data)
{
    CHECK(data == &payload);
    drops++;
}

static uint64_t msg_drops;

static void count_msg_drop(const jzx_message *msg)
{
    CHECK(msg->data == &payload);
    msg_drops++;
}

static uint64_t letters_seen;

static void note_letter(void *ctx, const jzx_dead_letter *letter, const jzx_message *msg)
{
    (void)ctx;
    CHECK_EQ(letter->tag, msg->tag);
    letters_seen++;
}

static puppet *start(rig *r, uint32_t drain, jzx_actor_id redirect_to, uint32_t cap)
{
    jzx_spawn_opts opts = {.drain = drain,
                           .redirect_to = redirect_to,
                           .mailbox_cap = cap,
                           .drop_msg = count_msg_drop,
                           .max_msgs = 1};
    return puppet_start(r, NULL, &opts);
}

static void open_rig(rig *r)
{
    static const jzx_observer observer = {.on_dead_letter = note_letter};
    *r = rig_open_fifo(NULL);
    drops = msg_drops = letters_seen = 0;
    REQUIRE_OK(jzx_loop_set_observer(r->loop, &observer, NULL));
}

/* LEFT messages with tags FIRST, FIRST + 1, ...: the first has a drop, the second is bare. */
static void fill(rig *r, const puppet *to)
{
    for (uint32_t i = 0; i < LEFT; i++) {
        jzx_send_opts send = {.data = &payload, .drop = count_drop, .tag = FIRST + i};
        if (i == 1) {
            send.drop = NULL;
        } else if (i == 2) {
            send = (jzx_send_opts){.u64 = 4711, .flags = JZX_SEND_VALUE, .tag = FIRST + i};
        } else if (i == 3) {
            send.flags = JZX_SEND_COPY;
            send.len = sizeof payload;
            send.drop = NULL;
        }
        REQUIRE_OK(jzx_send_with(r->loop, to->id, &send));
    }
}

static void finish(rig *r, puppet **all, size_t count)
{
    const char *wrong = jzx_testkit_check(r->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
    rig_close(r);
    for (size_t i = 0; i < count; i++) {
        puppet_free(all[i]);
    }
}

static void test_by_default_they_are_dead_letters_R16(void)
{
    rig r;
    open_rig(&r);
    puppet *s = start(&r, JZX_DRAIN_DEAD_LETTERS, JZX_NOBODY, 0);
    fill(&r, s);
    CHECK_OK(jzx_stop(r.loop, s->id));
    rig_idle(&r);
    CHECK_EQ(letters_seen, LEFT);
    CHECK_EQ(drops, 2);
    CHECK_EQ(msg_drops, 1);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED], LEFT);
    finish(&r, &s, 1);
}

static void test_with_drop_they_are_released_and_counted_and_nobody_hears_of_them_R16(void)
{
    rig r;
    open_rig(&r);
    puppet *s = start(&r, JZX_DRAIN_DROP, JZX_NOBODY, 0);
    fill(&r, s);
    CHECK_OK(jzx_kill(r.loop, s->id));
    rig_idle(&r);
    CHECK_EQ(letters_seen, 0);
    CHECK_EQ(drops, 2);
    CHECK_EQ(msg_drops, 1);
    CHECK_EQ(rig_counters(&r).dead, LEFT);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_DROPPED], LEFT);
    uint32_t facts[4];
    CHECK_EQ(dead_facts(&r, facts, COUNT_OF(facts)), 0);
    finish(&r, &s, 1);
}

static jzx_behavior_result inspect_parcel(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    (void)ctx;
    CHECK_EQ(msg->kind, JZX_KIND_USER);
    CHECK_EQ(msg->sender, JZX_NOBODY); /* who sent it first, not who passed it on */
    if (msg->tag == FIRST + 2) {
        CHECK_EQ(msg->u64, 4711);
        CHECK((msg->flags & JZX_MSG_VALUE) != 0);
    } else if (msg->tag == FIRST + 3) {
        CHECK_EQ(msg->len, sizeof payload);
        CHECK(memcmp(msg->data, &payload, sizeof payload) == 0);
    } else {
        CHECK(msg->data == &payload);
    }
    self->number++;
    return JZX_BEHAVIOR_OK;
}

static void test_with_redirect_they_arrive_elsewhere_in_order_R16(void)
{
    rig r;
    open_rig(&r);
    puppet *heir = start(&r, JZX_DRAIN_DEAD_LETTERS, JZX_NOBODY, 0);
    puppet *s = start(&r, JZX_DRAIN_REDIRECT, heir->id, 0);
    heir->on = inspect_parcel;
    payload = 12345;
    fill(&r, s);
    CHECK_OK(jzx_stop(r.loop, s->id));
    rig_idle(&r);
    CHECK_LOG(heir, 1, 2, 3, 4, 5);
    CHECK_EQ(heir->number, LEFT);
    CHECK_EQ(drops, 2);     /* after the heir handled them */
    CHECK_EQ(msg_drops, 0); /* the bare one is the heir's now */
    CHECK_EQ(rig_counters(&r).redirected, LEFT);
    CHECK_EQ(rig_counters(&r).dead, 0);
    CHECK_EQ(letters_seen, 0);
    finish(&r, (puppet *[]){s, heir}, 2);
}

static void test_what_the_heir_refuses_is_a_dead_letter_R16(void)
{
    rig r;
    open_rig(&r);
    puppet *heir = start(&r, JZX_DRAIN_DEAD_LETTERS, JZX_NOBODY, 2);
    puppet *s = start(&r, JZX_DRAIN_REDIRECT, heir->id, 0);
    fill(&r, s);
    CHECK_OK(jzx_stop(r.loop, s->id));
    tell(&r, heir, 9); /* its turn comes after the stop: one slot is left then */
    rig_idle(&r);
    CHECK_LOG(heir, 9, 1);
    CHECK_EQ(rig_counters(&r).redirected, 1);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED], LEFT - 1);
    CHECK_EQ(letters_seen, LEFT - 1);
    CHECK_EQ(drops, 2);
    CHECK_EQ(msg_drops, 1);
    finish(&r, (puppet *[]){s, heir}, 2);
}

static void test_an_heir_that_is_gone_or_dying_gets_nothing_R16(void)
{
    for (int dying = 0; dying < 2; dying++) {
        rig r;
        open_rig(&r);
        puppet *heir = start(&r, JZX_DRAIN_DEAD_LETTERS, JZX_NOBODY, 0);
        puppet *s = start(&r, JZX_DRAIN_REDIRECT, heir->id, 0);
        fill(&r, s);
        if (dying) {
            CHECK_OK(jzx_stop(r.loop, s->id));
            CHECK_OK(jzx_stop(r.loop, heir->id)); /* closed at once, its turn is the second one */
        } else {
            CHECK_OK(jzx_stop(r.loop, heir->id));
            REQUIRE_OK(jzx_loop_step(r.loop, 0));
            CHECK_OK(jzx_stop(r.loop, s->id));
        }
        rig_idle(&r);
        CHECK_EQ(heir->handled, 0);
        CHECK_EQ(rig_counters(&r).redirected, 0);
        CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED] + s->handled, LEFT);
        CHECK_EQ(rig_counters(&r).live, 0);
        finish(&r, (puppet *[]){s, heir}, 2);
    }
}

/* The id that the next spawn gets: the warmest slot comes first, one generation later. */
static jzx_actor_id next_id(rig *r)
{
    puppet *s = start(r, 0, JZX_NOBODY, 0);
    jzx_actor_id id = s->id;
    CHECK_OK(jzx_stop(r->loop, id));
    rig_idle(r);
    puppet_free(s);
    return id + (UINT64_C(1) << 32);
}

static void test_who_is_its_own_heir_buries_its_messages_R16(void)
{
    rig r;
    open_rig(&r);
    jzx_actor_id own = next_id(&r);
    puppet *s = start(&r, JZX_DRAIN_REDIRECT, own, 0);
    REQUIRE_EQ(s->id, own);
    fill(&r, s);
    CHECK_OK(jzx_stop(r.loop, s->id));
    rig_idle(&r);
    CHECK_EQ(s->handled, 0);
    CHECK_EQ(s->deinits, 1);
    CHECK_EQ(rig_counters(&r).redirected, 0);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED], LEFT);
    CHECK_EQ(drops, 2);
    finish(&r, &s, 1);
}

enum { CIRCLE = 3 };

static void start_and_end(rig *r, jzx_actor_id ids[CIRCLE])
{
    puppet *all[CIRCLE];
    for (int i = 0; i < CIRCLE; i++) {
        all[i] = start(r, 0, JZX_NOBODY, 0);
        ids[i] = all[i]->id;
    }
    for (int i = 0; i < CIRCLE; i++) {
        CHECK_OK(jzx_stop(r->loop, ids[i]));
        rig_idle(r);
        puppet_free(all[i]);
    }
}

static void test_heirs_in_a_circle_do_not_pass_messages_round_for_ever_R16(void)
{
    rig r;
    jzx_actor_id ids[CIRCLE], between[CIRCLE];
    puppet *all[CIRCLE];
    open_rig(&r);
    start_and_end(&r,
                  ids); /* slots come back last in, first out: every second time in this order */
    start_and_end(&r, between);
    for (int i = 0; i < CIRCLE; i++) {
        ids[i] += UINT64_C(2) << 32;
    }
    for (int i = 0; i < CIRCLE; i++) {
        all[i] = start(&r, JZX_DRAIN_REDIRECT, ids[(i + 1) % CIRCLE], 0);
        REQUIRE_EQ(all[i]->id, ids[i]);
    }
    fill(&r, all[0]);
    for (int i = 0; i < CIRCLE; i++) {
        CHECK_OK(jzx_kill(r.loop, all[i]->id)); /* all are closed before the first one ends */
    }
    rig_idle(&r);
    CHECK_EQ(rig_counters(&r).live, 0);
    CHECK_EQ(rig_counters(&r).redirected, 0);
    CHECK_EQ(rig_counters(&r).dead_by[JZX_DEAD_STOPPED], LEFT);
    CHECK_EQ(drops, 2);
    finish(&r, all, CIRCLE);
}

static void test_a_chain_of_heirs_hands_the_same_message_on_R16(void)
{
    enum { CHAIN = 50 };
    rig r;
    open_rig(&r);
    puppet *all[CHAIN];
    all[0] = start(&r, JZX_DRAIN_DEAD_LETTERS, JZX_NOBODY, 0);
    for (int i = 1; i < CHAIN; i++) {
        all[i] = start(&r, JZX_DRAIN_REDIRECT, all[i - 1]->id, 0);
    }
    fill(&r, all[CHAIN - 1]);
    for (int i = CHAIN - 1; i > 0; i--) {
        CHECK_OK(jzx_kill(r.loop, all[i]->id));
        REQUIRE_OK(jzx_loop_step(r.loop, 0));
    }
    rig_idle(&r);
    uint64_t handled = 0;
    for (int i = 0; i < CHAIN; i++) {
        handled += all[i]->handled;
    }
    CHECK_EQ(handled, LEFT); /* by somebody of the family, each once */
    CHECK_EQ(rig_counters(&r).dead, 0);
    CHECK(rig_counters(&r).redirected >= LEFT);
    CHECK_EQ(drops, 2);
    finish(&r, all, CHAIN);
}

static void test_urgent_messages_are_inherited_as_well_R16(void)
{
    rig r;
    open_rig(&r);
    puppet *heir = start(&r, JZX_DRAIN_DEAD_LETTERS, JZX_NOBODY, 0);
    puppet *s = start(&r, JZX_DRAIN_REDIRECT, heir->id, 0);
    tell(&r, s, 1);
    REQUIRE_OK(try_urgent(r.loop, s->id, 2));
    REQUIRE_OK(jzx_send_after(r.loop, s->id, 0, NULL, 0, 3, NULL)); /* events are not */
    CHECK_OK(jzx_kill(r.loop, s->id));
    rig_idle(&r);
    CHECK_LOG(heir, 2, 1);
    CHECK_EQ(rig_counters(&r).redirected, 2);
    finish(&r, (puppet *[]){s, heir}, 2);
}

static void test_a_policy_that_makes_no_sense_is_refused_R36(void)
{
    static const struct {
        uint32_t drain;
        bool heir;
        jzx_err want;
    } cases[] = {{JZX_DRAIN_DEAD_LETTERS, true, JZX_ERR_INVALID_ARG},
                 {JZX_DRAIN_DROP, true, JZX_ERR_INVALID_ARG},
                 {JZX_DRAIN_REDIRECT, false, JZX_ERR_INVALID_ARG},
                 {JZX_DRAIN_REDIRECT + 1, false, JZX_ERR_INVALID_ARG},
                 {UINT32_MAX, true, JZX_ERR_INVALID_ARG},
                 {JZX_DRAIN_REDIRECT, true, JZX_OK}};
    rig r;
    open_rig(&r);
    puppet *s = start(&r, 0, JZX_NOBODY, 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        jzx_spawn_opts opts = {.behavior = puppet_behavior,
                               .state = s,
                               .drain = cases[i].drain,
                               .redirect_to = cases[i].heir ? s->id : JZX_NOBODY};
        CHECK_EQ(jzx_spawn(r.loop, &opts, NULL), cases[i].want);
    }
    finish(&r, &s, 1);
}

/* Every message of a loop that is destroyed has nowhere to go. */
static void test_destroying_the_loop_inherits_nothing_and_releases_everything_R16(void)
{
    for (uint32_t drain = JZX_DRAIN_DEAD_LETTERS; drain <= JZX_DRAIN_REDIRECT; drain++) {
        rig r;
        open_rig(&r);
        puppet *heir = start(&r, JZX_DRAIN_DEAD_LETTERS, JZX_NOBODY, 0);
        puppet *s = start(&r, drain, drain == JZX_DRAIN_REDIRECT ? heir->id : JZX_NOBODY, 0);
        fill(&r, s);
        finish(&r, (puppet *[]){NULL}, 1);
        CHECK_EQ(heir->handled, 0);
        CHECK_EQ(s->handled, 0);
        CHECK_EQ(drops, 2);
        CHECK_EQ(msg_drops, 1);
        puppet_free(s);
        puppet_free(heir);
    }
}

static const jzt_test tests[] = {
    {"by_default_they_are_dead_letters_R16", test_by_default_they_are_dead_letters_R16},
    {"with_drop_they_are_released_and_counted_and_nobody_hears_of_them_R16",
     test_with_drop_they_are_released_and_counted_and_nobody_hears_of_them_R16},
    {"with_redirect_they_arrive_elsewhere_in_order_R16",
     test_with_redirect_they_arrive_elsewhere_in_order_R16},
    {"what_the_heir_refuses_is_a_dead_letter_R16", test_what_the_heir_refuses_is_a_dead_letter_R16},
    {"an_heir_that_is_gone_or_dying_gets_nothing_R16",
     test_an_heir_that_is_gone_or_dying_gets_nothing_R16},
    {"who_is_its_own_heir_buries_its_messages_R16",
     test_who_is_its_own_heir_buries_its_messages_R16},
    {"heirs_in_a_circle_do_not_pass_messages_round_for_ever_R16",
     test_heirs_in_a_circle_do_not_pass_messages_round_for_ever_R16},
    {"a_chain_of_heirs_hands_the_same_message_on_R16",
     test_a_chain_of_heirs_hands_the_same_message_on_R16},
    {"urgent_messages_are_inherited_as_well_R16", test_urgent_messages_are_inherited_as_well_R16},
    {"a_policy_that_makes_no_sense_is_refused_R36",
     test_a_policy_that_makes_no_sense_is_refused_R36},
    {"destroying_the_loop_inherits_nothing_and_releases_everything_R16",
     test_destroying_the_loop_inherits_nothing_and_releases_everything_R16},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
