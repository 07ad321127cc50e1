/* Goal: bad specs are refused before anything starts, with a sentence that names child and field,
 * and every good combination is taken (R19, R36). Method: tables; the meaning of OTP's child_specs
 * and sup_flags cases, which docs/reference/SPEC.md lists. */
#include "sup_fixture.h"

#define START .id = "kid", .behavior = puppet_behavior, .init = puppet_init

static const jzx_supervisor_init nested = {.name = "nested"};

/* The check, the call that makes a supervisor and the one that adds a child agree. */
static void refuses(const jzx_supervisor_spec *spec, const jzx_child_spec *children, size_t count,
                    jzx_err err, const char *child, const char *field)
{
    tree t;
    char why[256] = "?";
    jzx_actor_id id = 12345;
    jzx_supervisor_init init = {
        .name = "sup", .spec = spec, .children = children, .child_count = count};
    tree_open(&t);
    unsigned before = jzt_failures();
    CHECK_EQ(jzx_supervisor_check(&init, why, sizeof why), err);
    CHECK_EQ(jzx_supervisor_check(&init, NULL, 0), err);
    CHECK(strstr(why, field) != NULL);
    CHECK(child == NULL || strstr(why, child) != NULL);
    CHECK_EQ(jzx_spawn_supervisor(t.loop, &init, &id), err);
    CHECK_EQ(id, 12345);
    if (jzt_failures() != before) {
        fprintf(stderr, "  the case of \"%s\"; the sentence is \"%s\"\n", field, why);
    }
    tree_idle(&t);
    CHECK_EQ(rig_counters(&t.r).spawned, 0);
    tree_close(&t);
}

static void test_every_field_of_a_child_spec_is_checked_R19(void)
{
    static const char long_id[] = "an_id_that_is_one_byte_longer_than_it_may_be_48_";
    _Static_assert(sizeof long_id - 1 == JZX_CHILD_ID_MAX + 1, "one byte too long");
    const struct {
        jzx_child_spec spec;
        jzx_err err;
        const char *field;
    } cases[] = {
        {{.behavior = puppet_behavior, .init = puppet_init}, JZX_ERR_BAD_SPEC, "id"},
        {{.id = "", .behavior = puppet_behavior, .init = puppet_init}, JZX_ERR_BAD_SPEC, "id"},
        {{.id = long_id, .behavior = puppet_behavior, .init = puppet_init}, JZX_ERR_TOO_BIG, "id"},
        {{.id = "kid", .init = puppet_init}, JZX_ERR_BAD_SPEC, "behavior"},
        {{START, .supervisor = &nested}, JZX_ERR_BAD_SPEC, "supervisor"},
        {{START, .mode = 3}, JZX_ERR_BAD_SPEC, "mode"},
        {{START, .significant = 2, .mode = JZX_TRANSIENT}, JZX_ERR_BAD_SPEC, "significant"},
        {{START, .significant = 1, .mode = JZX_TRANSIENT}, JZX_ERR_BAD_SPEC, "significant"},
        {{START, .full_policy = 3}, JZX_ERR_BAD_SPEC, "full_policy"},
        {{START, .drain = 3}, JZX_ERR_BAD_SPEC, "drain"},
        {{START, .drain = JZX_DRAIN_REDIRECT}, JZX_ERR_BAD_SPEC, "redirect_to"},
        {{START, .redirect_to = 5}, JZX_ERR_BAD_SPEC, "redirect_to"},
        {{START, .flags = 0x80}, JZX_ERR_BAD_SPEC, "flags"},
        {{START, .flags = 0x80000000u}, JZX_ERR_BAD_SPEC, "flags"},
        {{START, .mailbox_cap = 4, .low_water = 5}, JZX_ERR_BAD_SPEC, "low_water"},
        {{START, .mailbox_cap = JZX_MAILBOX_CAP_MAX + 1}, JZX_ERR_TOO_BIG, "mailbox_cap"},
        {{START, .intensity = JZX_INTENSITY_MAX + 1}, JZX_ERR_TOO_BIG, "intensity"},
        {{.id = "kid", .behavior = puppet_behavior}, JZX_ERR_NOT_RESTARTABLE, "init"},
        {{.id = "kid", .behavior = puppet_behavior, .mode = JZX_TRANSIENT},
         JZX_ERR_NOT_RESTARTABLE,
         "init"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *id = cases[i].spec.id;
        refuses(NULL, &cases[i].spec, 1, cases[i].err,
                id == NULL || id[0] == '\0' || id == long_id ? NULL : "kid", cases[i].field);
    }
}

static void test_the_same_checks_hold_for_a_child_that_is_added_R19(void)
{
    tree t;
    tree_open(&t);
    tree_start(&t, NULL, NULL, 0);
    const struct {
        jzx_child_spec spec;
        jzx_err err;
    } cases[] = {
        {{.behavior = puppet_behavior, .init = puppet_init}, JZX_ERR_BAD_SPEC},
        {{.id = "kid"}, JZX_ERR_BAD_SPEC},
        {{START, .mode = 3}, JZX_ERR_BAD_SPEC},
        {{START, .significant = 1, .mode = JZX_TRANSIENT}, JZX_ERR_BAD_SPEC},
        {{START, .mailbox_cap = JZX_MAILBOX_CAP_MAX + 1}, JZX_ERR_TOO_BIG},
        {{.id = "kid", .behavior = puppet_behavior}, JZX_ERR_NOT_RESTARTABLE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        jzx_actor_id id = 12345;
        CHECK_EQ(jzx_supervisor_start_child(t.loop, t.sup, &cases[i].spec, &id), cases[i].err);
        CHECK_EQ(id, 12345);
        tree_idle(&t);
        CHECK_COUNTS(&t, 0, 0, 0, 0);
    }
    tree_close(&t);
}

static void test_every_good_combination_of_a_child_spec_is_taken_R19(void)
{
    static const uint32_t times[] = {0, 1, 5000, JZX_SHUTDOWN_BRUTAL, JZX_SHUTDOWN_INFINITE};
    for (uint32_t mode = JZX_PERMANENT; mode <= JZX_TEMPORARY; mode++) {
        for (uint32_t significant = 0; significant <= (mode == JZX_PERMANENT ? 0 : 1);
             significant++) {
            for (size_t i = 0; i < COUNT_OF(times); i++) {
                tree t;
                tree_open(&t);
                kid *k = kid_new(&t, "kid");
                jzx_child_spec specs[] = {kid_spec(k, mode),
                                          {.id = "nested",
                                           .supervisor = &nested,
                                           .mode = mode,
                                           .significant = significant,
                                           .shutdown_ms = times[i]}};
                specs[0].significant = significant;
                specs[0].shutdown_ms = times[i];
                jzx_supervisor_spec spec = {.auto_shutdown = JZX_AUTO_ANY_SIGNIFICANT};
                tree_start(&t, &spec, specs, COUNT_OF(specs));
                CHECK_COUNTS(&t, 2, 2, 1, 1);
                jzx_child_spec got = {0};
                CHECK_OK(jzx_supervisor_get_spec(t.loop, t.sup, "kid", &got));
                CHECK_EQ(got.mode, mode);
                CHECK_EQ(got.significant, significant);
                CHECK_EQ(got.shutdown_ms, times[i] == 0 ? 5000 : times[i]);
                tree_stop_now(&t);
                tree_close(&t);
            }
        }
    }
}

static void test_an_id_may_be_used_once_in_a_supervisor_R19(void)
{
    const jzx_child_spec other = {.id = "other", .behavior = puppet_behavior, .init = puppet_init};
    const jzx_child_spec twice[] = {{START}, other, {START}};
    refuses(NULL, twice, COUNT_OF(twice), JZX_ERR_DUPLICATE_CHILD, "kid", "");
    /* In another supervisor it means another child. */
    tree t;
    tree_open(&t);
    kid *outer = kid_new(&t, "kid");
    kid *inner = kid_new(&t, "kid");
    jzx_child_spec inner_spec = kid_spec(inner, JZX_PERMANENT);
    jzx_supervisor_init below = {.name = "below", .children = &inner_spec, .child_count = 1};
    jzx_child_spec specs[] = {kid_spec(outer, JZX_PERMANENT), {.id = "s", .supervisor = &below}};
    tree_start(&t, NULL, specs, COUNT_OF(specs));
    CHECK_EQ(outer->me.ups + inner->me.ups, 2);
    CHECK(outer->me.id != inner->me.id);
    tree_close(&t);
}

static void test_a_nested_spec_is_checked_before_anything_starts_R19(void)
{
    static const jzx_child_spec bad[] = {{.id = "deep", .behavior = puppet_behavior}};
    static const jzx_supervisor_init low = {.name = "low", .children = bad, .child_count = 1};
    static const jzx_child_spec middle[] = {{.id = "low", .supervisor = &low}};
    static const jzx_supervisor_init mid = {.name = "mid", .children = middle, .child_count = 1};
    const jzx_child_spec top[] = {{START}, {.id = "mid", .supervisor = &mid}};
    refuses(NULL, top, COUNT_OF(top), JZX_ERR_NOT_RESTARTABLE, "deep", "init");
}

static void test_a_dynamic_supervisor_needs_exactly_one_spec_R19(void)
{
    const jzx_supervisor_spec dynamic = {.strategy = JZX_DYNAMIC};
    const jzx_child_spec two[] = {
        {START}, {.id = "other", .behavior = puppet_behavior, .init = puppet_init}};
    refuses(&dynamic, NULL, 0, JZX_ERR_BAD_SPEC, NULL, "");
    refuses(&dynamic, two, 2, JZX_ERR_BAD_SPEC, NULL, "");
    jzx_supervisor_init init = {.spec = &dynamic, .children = two, .child_count = 1};
    char why[100] = "?";
    CHECK_OK(jzx_supervisor_check(&init, why, sizeof why));
    CHECK_STR(why, "");
}

static void test_every_rule_of_a_supervisor_is_checked_R19(void)
{
    const struct {
        jzx_supervisor_spec spec;
        jzx_err err;
        const char *field;
    } cases[] = {
        {{.strategy = 4}, JZX_ERR_BAD_SPEC, "strategy"},
        {{.action = JZX_ACTIONS}, JZX_ERR_BAD_SPEC, "action"},
        {{.on_limit = 2}, JZX_ERR_BAD_SPEC, "on_limit"},
        {{.auto_shutdown = 3}, JZX_ERR_BAD_SPEC, "auto_shutdown"},
        {{.intensity = JZX_INTENSITY_MAX + 1}, JZX_ERR_TOO_BIG, "intensity"},
        {{.intensity = JZX_INTENSITY_NEVER - 1}, JZX_ERR_TOO_BIG, "intensity"},
        {{.backoff_min_ms = 1, .backoff_factor = 0.5}, JZX_ERR_BAD_SPEC, "backoff_factor"},
        {{.backoff_min_ms = 1, .backoff_factor = -1}, JZX_ERR_BAD_SPEC, "backoff_factor"},
        {{.backoff_min_ms = 1, .backoff_jitter = 1.5}, JZX_ERR_BAD_SPEC, "backoff_jitter"},
        {{.backoff_min_ms = 1, .backoff_jitter = -0.5}, JZX_ERR_BAD_SPEC, "backoff_jitter"},
        {{.backoff_min_ms = 200, .backoff_max_ms = 100}, JZX_ERR_BAD_SPEC, "backoff_m"},
        {{.strategy = JZX_DYNAMIC, .auto_shutdown = JZX_AUTO_ALL_SIGNIFICANT},
         JZX_ERR_BAD_SPEC,
         "auto_shutdown"},
    };
    const jzx_child_spec child = {START};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        refuses(&cases[i].spec, &child, 1, cases[i].err, NULL, cases[i].field);
    }
}

static void test_a_running_supervisor_refuses_bad_rules_and_keeps_its_own_R19(void)
{
    static const jzx_supervisor_spec bad[] = {
        {.strategy = 4}, {.strategy = JZX_DYNAMIC}, {.auto_shutdown = 3}, {.action = JZX_ACTIONS}};
    tree t;
    kid *kids[2];
    jzx_supervisor_spec spec = {.strategy = JZX_ONE_FOR_ALL, .intensity = 2};
    tree_open(&t);
    tree_start_kids(&t, &spec, kids, NULL, 2);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_EQ(jzx_supervisor_reconfigure(t.loop, t.sup, &bad[i]), JZX_ERR_BAD_SPEC);
    }
    spec.intensity = JZX_INTENSITY_MAX + 1;
    CHECK_EQ(jzx_supervisor_reconfigure(t.loop, t.sup, &spec), JZX_ERR_TOO_BIG);
    jzx_actor_id b = kids[1]->me.id;
    kid_end(kids[0], JZX_REASON_FAILED);
    KID_CHECK_LIFE(kids[1], b, 2); /* still one for all */
    tree_close(&t);
}

static const jzt_test tests[] = {
    {"every_field_of_a_child_spec_is_checked_R19", test_every_field_of_a_child_spec_is_checked_R19},
    {"the_same_checks_hold_for_a_child_that_is_added_R19",
     test_the_same_checks_hold_for_a_child_that_is_added_R19},
    {"every_good_combination_of_a_child_spec_is_taken_R19",
     test_every_good_combination_of_a_child_spec_is_taken_R19},
    {"an_id_may_be_used_once_in_a_supervisor_R19", test_an_id_may_be_used_once_in_a_supervisor_R19},
    {"a_nested_spec_is_checked_before_anything_starts_R19",
     test_a_nested_spec_is_checked_before_anything_starts_R19},
    {"a_dynamic_supervisor_needs_exactly_one_spec_R19",
     test_a_dynamic_supervisor_needs_exactly_one_spec_R19},
    {"every_rule_of_a_supervisor_is_checked_R19", test_every_rule_of_a_supervisor_is_checked_R19},
    {"a_running_supervisor_refuses_bad_rules_and_keeps_its_own_R19",
     test_a_running_supervisor_refuses_bad_rules_and_keeps_its_own_R19},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
