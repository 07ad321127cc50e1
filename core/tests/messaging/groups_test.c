/* Goal: a group is the set of those who joined and are alive, in the order of joining, kept across
 * restarts and left before an end is announced (R16, R18); who watches it misses no change and has
 * one notice waiting at most (R8, R9). Method: one simulated loop. */
#include "reg_fixture.h"

static void check_members(int line, rig *r, const char *group, const puppet *const *want, size_t n)
{
    jzx_actor_id out[8] = {0};
    size_t count = jzx_group_members(r->loop, group, out, 8);
    jzt_check_eq(JZT_CHECK, __FILE__, line, "members", "wanted", (intmax_t)count, (intmax_t)n);
    for (size_t i = 0; i < n && i < count; i++) {
        jzt_check_eq(JZT_CHECK, __FILE__, line, "member", "wanted", (intmax_t)out[i],
                     (intmax_t)want[i]->id);
    }
    CHECK_EQ(jzx_group_count(r->loop, group), n);
}
#define CHECK_MEMBERS(r_, group_, ...)                                                             \
    do {                                                                                           \
        const puppet *const want_[] = {__VA_ARGS__};                                               \
        check_members(__LINE__, (r_), (group_), want_, COUNT_OF(want_));                           \
    } while (0)
#define CHECK_EMPTY(r_, group_) check_members(__LINE__, (r_), (group_), NULL, 0)

static void test_members_are_listed_in_the_order_of_joining(void)
{
    rig r;
    puppet a, b, c;
    jzx_actor_id out[2];
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    born(&r, &c, "c");
    CHECK_EMPTY(&r, "g");
    CHECK_OK(jzx_group_join(r.loop, "g", b.id));
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    CHECK_OK(jzx_group_join(r.loop, "g", c.id));
    CHECK_OK(jzx_group_join(r.loop, "h", a.id));
    CHECK_MEMBERS(&r, "g", &b, &a, &c);
    CHECK_MEMBERS(&r, "h", &a);
    CHECK_EQ(jzx_group_members(r.loop, "g", out, 2), 3);
    CHECK_EQ(out[1], a.id);
    CHECK_EQ(jzx_group_members(r.loop, "g", NULL, 0), 3);
    uint64_t version = jzx_group_version(r.loop, "g");
    CHECK_OK(jzx_group_join(r.loop, "g", b.id)); /* once is enough */
    CHECK_MEMBERS(&r, "g", &b, &a, &c);
    CHECK_EQ(jzx_group_version(r.loop, "g"), version);
    CHECK_OK(jzx_group_leave(r.loop, "g", b.id));
    CHECK_EQ(jzx_group_leave(r.loop, "g", b.id), JZX_ERR_NO_SUCH_GROUP);
    CHECK_MEMBERS(&r, "g", &a, &c);
    CHECK_OK(jzx_group_join(r.loop, "g", b.id)); /* at the end, now */
    CHECK_MEMBERS(&r, "g", &a, &c, &b);
    play_close(&r);
}

static void test_groups_of_an_actor_and_all_groups_are_listed(void)
{
    rig r;
    puppet a, b;
    jzx_group_info info[4];
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    CHECK_OK(jzx_group_join(r.loop, "h", b.id));
    CHECK_OK(jzx_group_join(r.loop, "h", a.id));
    CHECK_OK(jzx_register(r.loop, "g", b.id)); /* names are no groups */
    (void)watch_by(&r, &b, "w");
    CHECK_EQ(jzx_groups_of(r.loop, a.id, info, 4), 2);
    CHECK_STR(info[0].group, "g");
    CHECK_STR(info[1].group, "h");
    CHECK_EQ(info[1].members, 2);
    CHECK_EQ(info[1].version, jzx_group_version(r.loop, "h"));
    CHECK_EQ(jzx_groups_of(r.loop, b.id, info, 4), 1);
    CHECK_EQ(jzx_groups_of(r.loop, JZX_NOBODY, NULL, 0), 0);
    CHECK_EQ(jzx_group_list(r.loop, info, 4), 3);
    CHECK_STR(info[0].group, "g");
    CHECK_STR(info[1].group, "h");
    CHECK_STR(info[2].group, "w");
    CHECK_EQ(info[2].members, 0);
    CHECK_EQ(info[2].watchers, 1);
    CHECK_EQ(jzx_group_list(r.loop, info, 1), 3);
    play_close(&r);
}

static void test_bad_input_is_refused(void)
{
    rig r;
    puppet a, b;
    char long_name[JZX_NAME_MAX + 2] = {0};
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    stop_life(&r, &b);
    memset(long_name, 'x', sizeof long_name - 1);
    CHECK_EQ(jzx_group_join(NULL, "g", a.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_group_join(r.loop, NULL, a.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_group_join(r.loop, "", a.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_group_join(r.loop, long_name, a.id), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_group_join(r.loop, "g", b.id), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_group_leave(NULL, "g", a.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_group_leave(r.loop, NULL, a.id), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_group_leave(r.loop, long_name, a.id), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_group_leave(r.loop, "g", a.id), JZX_ERR_NO_SUCH_GROUP);
    CHECK_EQ(jzx_group_leave(r.loop, "g", b.id), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(jzx_group_members(NULL, "g", NULL, 0), 0);
    CHECK_EQ(jzx_group_members(r.loop, NULL, NULL, 0), 0);
    CHECK_EQ(jzx_group_count(r.loop, long_name), 0);
    CHECK_EQ(jzx_group_version(NULL, "g"), 0);
    CHECK_EQ(jzx_group_version(r.loop, ""), 0);
    CHECK_EQ(jzx_groups_of(NULL, a.id, NULL, 0), 0);
    CHECK_EQ(jzx_group_list(NULL, NULL, 0), 0);
    CHECK_EQ(jzx_group_list(r.loop, NULL, 0), 0);
    CHECK_EQ(jzx_group_watch(r.loop, "g", NULL), JZX_ERR_INVALID_ARG); /* outside */
    CHECK_EQ(jzx_group_watch(NULL, "g", NULL), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_group_unwatch(r.loop, 1), JZX_ERR_INVALID_ARG);
    CHECK_EQ(jzx_group_unwatch(NULL, 1), JZX_ERR_INVALID_ARG);
    play_close(&r);
}

static void test_versions_never_come_back(void)
{
    rig r;
    puppet a;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    uint64_t last = 0;
    CHECK_EQ(jzx_group_version(r.loop, NULL), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(jzx_group_version(r.loop, "g"), 0);
        CHECK_OK(jzx_group_join(r.loop, "g", a.id));
        uint64_t version = jzx_group_version(r.loop, "g");
        CHECK(version > last);
        CHECK_EQ(jzx_group_version(r.loop, NULL), version);
        CHECK_OK(jzx_group_leave(r.loop, "g", a.id)); /* with it goes the group */
        last = jzx_group_version(r.loop, NULL);
        CHECK(last > version);
    }
    play_close(&r);
}

static void leave_or_look(jzx_context *ctx, puppet *self, uint32_t what)
{
    if (what == JZX_SIGNAL_TERMINATED) {
        self->number = 1 + jzx_group_count(ctx->loop, "g");
    }
}

static void watch_arg(jzx_context *ctx, puppet *self)
{
    CHECK_OK(jzx_watch(ctx->loop, ((puppet *)self->arg)->id, 0, NULL));
}

static void test_who_ends_has_left_before_that_is_announced_R16(void)
{
    rig r;
    puppet a, b, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    born(&r, &w, "w");
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    CHECK_OK(jzx_group_join(r.loop, "g", b.id));
    CHECK_OK(jzx_group_join(r.loop, "h", a.id));
    w.arg = &a;
    w.during = leave_or_look;
    inside(&r, &w, watch_arg);
    CHECK_OK(jzx_kill(r.loop, a.id));
    rig_idle(&r);
    CHECK_EQ(w.number, 2);
    CHECK_MEMBERS(&r, "g", &b);
    CHECK_EQ(jzx_group_list(r.loop, NULL, 0), 1); /* h is no more */
    play_close(&r);
}

static void test_groups_survive_a_restart_R18(void)
{
    rig r;
    puppet a, b;
    reg_open(&r, NULL);
    puppet_name(&a, "a");
    jzx_child_spec child = reg_child(&a, 0);
    jzx_supervisor_spec spec = {.intensity = 10, .backoff_min_ms = 50};
    (void)sup_of(&r, &spec, &child, 1);
    born(&r, &b, "b");
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    CHECK_OK(jzx_group_join(r.loop, "g", b.id));
    (void)watch_by(&r, &b, "g");
    uint64_t version = jzx_group_version(r.loop, "g");
    tell(&r, &a, T_PANIC);
    rig_idle(&r);
    CHECK_STATE(&r, &a, JZX_STATE_RESTARTING);
    CHECK_MEMBERS(&r, "g", &a, &b);
    run_ms(&r, 1000);
    CHECK_EQ(a.ups, 2);
    CHECK_MEMBERS(&r, "g", &a, &b);
    CHECK_EQ(jzx_group_version(r.loop, "g"), version);
    CHECK_EQ(notice_count, 1); /* nothing happened to the group */
    play_close(&r);
}

/* Watching. */

static void check_notice(int line, size_t index, const puppet *by, jzx_group_ref ref,
                         uint64_t joined, uint64_t left, uint64_t members)
{
    REQUIRE(index < notice_count);
    const seen *n = &notices[index];
    intmax_t got[] = {n->of_group,
                      (intmax_t)n->by,
                      (intmax_t)n->group.ref,
                      (intmax_t)n->group.joined,
                      (intmax_t)n->group.left,
                      (intmax_t)n->group.members};
    intmax_t want[] = {
        1, (intmax_t)by->id, (intmax_t)ref, (intmax_t)joined, (intmax_t)left, (intmax_t)members};
    static const char *const what[] = {"of_group", "by", "ref", "joined", "left", "members"};
    for (size_t i = 0; i < COUNT_OF(got); i++) {
        jzt_check_eq(JZT_CHECK, __FILE__, line, what[i], "wanted", got[i], want[i]);
    }
    CHECK_STR(n->group.group, "g");
}
#define CHECK_NOTICE(...) check_notice(__LINE__, __VA_ARGS__)

static void test_a_watcher_hears_of_what_is_and_of_every_change(void)
{
    rig r;
    puppet a, b, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    born(&r, &w, "w");
    jzx_group_ref ref = watch_by(&r, &w, "g"); /* there is none yet */
    CHECK_EQ(notice_count, 1);
    CHECK_NOTICE(0, &w, ref, 0, 0, 0);
    CHECK_EQ(notices[0].group.version, 0);
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    rig_idle(&r);
    CHECK_NOTICE(1, &w, ref, 1, 0, 1);
    CHECK_EQ(notices[1].group.version, jzx_group_version(r.loop, "g"));
    CHECK_OK(jzx_group_join(r.loop, "g", b.id));
    CHECK_OK(jzx_group_leave(r.loop, "g", a.id));
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    rig_idle(&r);
    CHECK_EQ(notice_count, 3); /* one for all of it */
    CHECK_NOTICE(2, &w, ref, 2, 1, 2);
    stop_life(&r, &a);
    stop_life(&r, &b);
    CHECK_EQ(notice_count, 5);
    CHECK_NOTICE(4, &w, ref, 0, 1, 0);
    CHECK_EQ(jzx_group_list(r.loop, NULL, 0), 1); /* while it is watched */
    called_ref = ref;
    inside(&r, &w, call_unwatch);
    CHECK_OK(called_err);
    CHECK_EQ(jzx_group_list(r.loop, NULL, 0), 0);
    play_close(&r);
}

static void test_a_watcher_that_comes_later_hears_how_many_there_are(void)
{
    rig r;
    puppet a, b, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &b, "b");
    born(&r, &w, "w");
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    CHECK_OK(jzx_group_join(r.loop, "g", b.id));
    jzx_group_ref ref = watch_by(&r, &w, "g");
    CHECK_EQ(notice_count, 1);
    CHECK_NOTICE(0, &w, ref, 0, 0, 2);
    play_close(&r);
}

/* What changes while the notice is in hand is told by the next one. */
static int changes_left;
static void change_in_hand(jzx_context *ctx, const seen *notice)
{
    (void)notice;
    if (changes_left-- > 0) {
        CHECK_OK(jzx_group_join(ctx->loop, "g", ctx->self));
        CHECK_OK(jzx_group_leave(ctx->loop, "g", ctx->self));
    }
}

static void test_a_change_while_the_notice_is_in_hand_is_news(void)
{
    rig r;
    puppet w;
    reg_open(&r, NULL);
    born(&r, &w, "w");
    on_notice = change_in_hand;
    changes_left = 3;
    jzx_group_ref ref = watch_by(&r, &w, "g");
    CHECK_EQ(notice_count, 4);
    CHECK_NOTICE(0, &w, ref, 0, 0, 0);
    CHECK_NOTICE(1, &w, ref, 1, 1, 0);
    CHECK_NOTICE(3, &w, ref, 1, 1, 0);
    play_close(&r);
}

/* However much happens, one notice waits, and it costs nothing (R8, R9). */
static void test_a_storm_of_changes_is_one_notice_and_no_memory(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    jzx_group_ref ref = watch_by(&r, &w, "g");
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    rig_idle(&r);
    CHECK_OK(jzx_group_leave(r.loop, "g", a.id));
    rig_idle(&r);
    notice_count = 0;
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(jzx_group_join(r.loop, "g", a.id));
        CHECK_OK(jzx_group_leave(r.loop, "g", a.id));
    }
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    CHECK_OK(jzx_kill(r.loop, a.id));
    jzx_fault_arm_alloc(r.fault, 1, 1);
    REQUIRE_OK(jzx_loop_run_until_idle(r.loop));
    jzx_fault_arm_alloc(r.fault, 0, 0);
    uint64_t joined = 0;
    uint64_t left = 0;
    CHECK(notice_count >= 1 && notice_count <= 2); /* the end may come before or after it is read */
    for (size_t i = 0; i < notice_count; i++) {
        joined += notices[i].group.joined;
        left += notices[i].group.left;
    }
    CHECK_EQ(joined, 1001);
    CHECK_EQ(left, 1001);
    CHECK_EQ(notices[notice_count - 1].group.members, 0);
    CHECK_EQ(notices[notice_count - 1].group.ref, ref);
    play_close(&r);
}

static void unwatch_own(jzx_context *ctx, const seen *notice)
{
    CHECK_OK(jzx_group_join(ctx->loop, "g", ctx->self)); /* it would be news */
    CHECK_OK(jzx_group_unwatch(ctx->loop, notice->group.ref));
    CHECK_EQ(jzx_group_unwatch(ctx->loop, notice->group.ref), JZX_ERR_NO_SUCH_REF);
}

static void watch_and_unwatch(jzx_context *ctx, puppet *self)
{
    jzx_name_ref name = 0;
    (void)self;
    CHECK_OK(jzx_group_watch(ctx->loop, "g", &called_ref));
    CHECK_OK(jzx_await_name(ctx->loop, "nobody", FOREVER, &name));
    CHECK_EQ(jzx_await_cancel(ctx->loop, called_ref), JZX_ERR_NO_SUCH_REF); /* not of that kind */
    CHECK_EQ(jzx_group_unwatch(ctx->loop, name), JZX_ERR_NO_SUCH_REF);
    CHECK_OK(jzx_group_unwatch(ctx->loop, called_ref));
    CHECK_OK(jzx_await_cancel(ctx->loop, name));
}

static void test_unwatch_is_final(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    inside(&r, &w, watch_and_unwatch); /* its first notice was queued */
    CHECK_EQ(notice_count, 0);
    CHECK_EQ(jzx_group_list(r.loop, NULL, 0), 0);
    on_notice = unwatch_own;
    (void)watch_by(&r, &w, "g");
    CHECK_EQ(notice_count, 1);
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    rig_idle(&r);
    CHECK_EQ(notice_count, 1);
    CHECK_MEMBERS(&r, "g", &w, &a);
    play_close(&r);
}

static void test_a_watch_ends_with_the_incarnation_R18(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    puppet_name(&w, "w");
    jzx_child_spec child = reg_child(&w, 0);
    jzx_supervisor_spec spec = {.intensity = 10};
    jzx_actor_id sup = sup_of(&r, &spec, &child, 1);
    CHECK_OK(jzx_group_join(r.loop, "g", w.id)); /* that is of the identity */
    (void)watch_by(&r, &w, "g");
    (void)watch_by(&r, &w, "g");
    CHECK_EQ(notice_count, 2);
    tell(&r, &w, T_PANIC);
    rig_idle(&r);
    CHECK_EQ(w.ups, 2);
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    rig_idle(&r);
    CHECK_EQ(notice_count, 2);
    CHECK_MEMBERS(&r, "g", &w, &a);
    (void)watch_by(&r, &w, "h");
    CHECK_EQ(jzx_group_list(r.loop, NULL, 0), 2);
    CHECK_OK(jzx_stop(r.loop, sup));
    rig_idle(&r);
    CHECK_EQ(jzx_group_list(r.loop, NULL, 0), 1);
    CHECK_MEMBERS(&r, "g", &a);
    play_close(&r);
}

static void test_the_end_of_a_loop_finds_watchers_and_members(void)
{
    rig r;
    puppet a, w;
    reg_open(&r, NULL);
    born(&r, &a, "a");
    born(&r, &w, "w");
    (void)watch_by(&r, &w, "g");
    (void)watch_by(&r, &a, "g");
    CHECK_OK(jzx_group_join(r.loop, "g", w.id));
    CHECK_OK(jzx_group_join(r.loop, "g", a.id));
    CHECK_OK(jzx_group_join(r.loop, "h", a.id));
    play_close(&r);
}

static const jzt_test tests[] = {
    {"members_are_listed_in_the_order_of_joining", test_members_are_listed_in_the_order_of_joining},
    {"groups_of_an_actor_and_all_groups_are_listed",
     test_groups_of_an_actor_and_all_groups_are_listed},
    {"bad_input_is_refused", test_bad_input_is_refused},
    {"versions_never_come_back", test_versions_never_come_back},
    {"who_ends_has_left_before_that_is_announced_R16",
     test_who_ends_has_left_before_that_is_announced_R16},
    {"groups_survive_a_restart_R18", test_groups_survive_a_restart_R18},
    {"a_watcher_hears_of_what_is_and_of_every_change",
     test_a_watcher_hears_of_what_is_and_of_every_change},
    {"a_watcher_that_comes_later_hears_how_many_there_are",
     test_a_watcher_that_comes_later_hears_how_many_there_are},
    {"a_change_while_the_notice_is_in_hand_is_news",
     test_a_change_while_the_notice_is_in_hand_is_news},
    {"a_storm_of_changes_is_one_notice_and_no_memory",
     test_a_storm_of_changes_is_one_notice_and_no_memory},
    {"unwatch_is_final", test_unwatch_is_final},
    {"a_watch_ends_with_the_incarnation_R18", test_a_watch_ends_with_the_incarnation_R18},
    {"the_end_of_a_loop_finds_watchers_and_members",
     test_the_end_of_a_loop_finds_watchers_and_members},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
