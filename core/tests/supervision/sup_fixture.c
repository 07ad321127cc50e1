#define _GNU_SOURCE
#include "sup_fixture.h"

void words_add(words *w, const char *word)
{
    size_t len = strlen(w->text);
    snprintf(w->text + len, sizeof w->text - len, "%s%s", len == 0 ? "" : " ", word);
}

const char *words_take(words *w)
{
    memcpy(w->taken, w->text, sizeof w->text);
    w->text[0] = '\0';
    return w->taken;
}

bool words_in_order(const char *text, const char *wanted)
{
    const char *at = text;
    for (const char *word = wanted; *word != '\0'; word += strspn(word, " ")) {
        size_t len = strcspn(word, " ");
        while (*at != '\0' && !(strcspn(at, " ") == len && strncmp(at, word, len) == 0)) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
        if (*at == '\0') {
            fprintf(stderr, "  not in this order: \"%s\" in \"%s\"\n", wanted, text);
            return false;
        }
        at += len;
        at += strspn(at, " ");
        word += len;
    }
    return true;
}

unsigned words_count(const char *text, const char *word)
{
    unsigned count = 0;
    size_t len = strlen(word);
    for (const char *at = text; *at != '\0'; at += strspn(at, " ")) {
        size_t here = strcspn(at, " ");
        count += here == len && strncmp(at, word, len) == 0;
        at += here;
    }
    return count;
}

static void kid_note(kid *k, words *w, char sign)
{
    char word[64];
    snprintf(word, sizeof word, "%c%s", sign, k->id);
    words_add(w, word);
}

static jzx_behavior_result kid_start(jzx_context *ctx, kid *k)
{
    char plan = k->plan == NULL ? KID_STARTS : k->plan[0];
    if (k->plan != NULL && k->plan[1] != '\0') {
        k->plan++;
    }
    if (k->me.inits <= KID_TIMES) {
        k->at_ns[k->me.inits - 1] = jzx_loop_now(ctx->loop);
    }
    kid_note(k, &k->t->life, plan == KID_STARTS ? '+' : plan == KID_DECLINES ? '~' : '!');
    switch (plan) {
    case KID_FAILS:
        return jzx_fail(ctx, KID_INIT_CODE, "told not to start");
    case KID_PANICS:
        jzx_panic(ctx, KID_INIT_CODE, "told not to start");
    case KID_DECLINES:
        return JZX_BEHAVIOR_STOP;
    case KID_ODD:
        return (jzx_behavior_result)77;
    default:
        break;
    }
    k->seen = 0;
    k->lingers = k->deferred = false;
    if (k->on_init != NULL) {
        k->on_init(ctx, k);
    }
    return JZX_BEHAVIOR_OK;
}

static void kid_release(jzx_context *ctx, kid *k)
{
    k->down_ns = jzx_loop_now(ctx->loop);
    kid_note(k, &k->t->life, '-');
    if (k->on_deinit != NULL) {
        k->on_deinit(ctx, k);
    }
}

static jzx_behavior_result kid_pre_stop(jzx_context *ctx, kid *k)
{
    words_add(&k->t->asked, k->id);
    if (k->lingers) {
        k->deferred = true;
        return JZX_BEHAVIOR_DEFER;
    }
    switch (k->at_stop) {
    case 'd':
        return JZX_BEHAVIOR_DEFER;
    case 'f':
        return jzx_fail(ctx, KID_STOP_CODE, "told to fail at the end");
    case 'p':
        jzx_panic(ctx, KID_STOP_CODE, "told to panic at the end");
    case 'k':
        CHECK_OK(jzx_kill(ctx->loop, ctx->self));
        return JZX_BEHAVIOR_OK;
    default:
        return JZX_BEHAVIOR_OK;
    }
}

static void kid_hook(jzx_context *ctx, puppet *self, uint32_t what)
{
    kid *k = (kid *)self;
    if (what == IN_INIT) {
        self->answer[what] = kid_start(ctx, k);
    } else if (what == IN_DEINIT) {
        kid_release(ctx, k);
    } else if (what == JZX_SIGNAL_PRE_STOP) {
        self->answer[what] = kid_pre_stop(ctx, k);
    }
}

static jzx_behavior_result kid_on(jzx_context *ctx, const jzx_message *msg, puppet *self)
{
    kid *k = (kid *)self;
    k->seen++;
    if (msg->tag == KID_LINGER) {
        k->lingers = true;
        CHECK_OK(
            jzx_send_after(ctx->loop, ctx->self, (uint32_t)msg->u64, NULL, 0, KID_FINISH, NULL));
    } else if (msg->tag == KID_FINISH) {
        k->lingers = false;
        if (k->deferred) {
            CHECK_OK(jzx_stop(ctx->loop, ctx->self));
        }
    }
    return JZX_BEHAVIOR_OK;
}

void kid_drop_arg(void *arg)
{
    ((kid *)arg)->drops++;
}

static void tree_on_stop(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    tree *t = ctx;
    char word[96];
    snprintf(word, sizeof word, "%s:%s", name, jzx_reason_name(reason->kind));
    words_add(&t->ends, word);
    if (id == t->sup) {
        t->sup_end = *reason;
    }
}

static void tree_on_fail(void *ctx, jzx_actor_id id, const char *name, const jzx_reason *reason)
{
    tree *t = ctx;
    char word[96];
    (void)id;
    snprintf(word, sizeof word, "%s:%s", name, jzx_reason_name(reason->kind));
    words_add(&t->fails, word);
    t->last_fail = *reason;
}

static void tree_on_restart(void *ctx, const jzx_restart_event *event)
{
    tree *t = ctx;
    char word[96];
    snprintf(word, sizeof word, "%s#%u", event->name, (unsigned)event->incarnation);
    words_add(&t->restarts, word);
}

static void tree_on_escalate(void *ctx, const jzx_escalation_event *event)
{
    tree *t = ctx;
    char word[160];
    if (t->escalations.text[0] == '\0') {
        t->cause = *event->cause;
    }
    snprintf(word, sizeof word, "%s:%s:%s", event->supervisor_name, jzx_reason_name(event->reason),
             event->child_name);
    words_add(&t->escalations, word);
}

const jzx_observer tree_observer = {.on_actor_stop = tree_on_stop,
                                    .on_actor_fail = tree_on_fail,
                                    .on_restart = tree_on_restart,
                                    .on_escalate = tree_on_escalate};

void tree_open_seeded(tree *t, uint64_t seed)
{
    jzx_sim_opts sim = {.seed = seed};
    memset(t, 0, sizeof *t);
    t->r = rig_open_with(NULL, &sim);
    t->loop = t->r.loop;
    REQUIRE_OK(jzx_loop_set_observer(t->loop, &tree_observer, t));
}

void tree_open(tree *t)
{
    tree_open_seeded(t, jzt_seed() | 1);
}

void tree_close(tree *t)
{
    rig_close(&t->r);
    while (t->kids != NULL) {
        kid *k = t->kids;
        CHECK_EQ(k->me.ups, k->me.deinits);
        t->kids = k->next;
        free(k); /* mute: it has no log */
    }
}

kid *kid_new(tree *t, const char *id)
{
    kid *k = calloc(1, sizeof *k);
    REQUIRE(k != NULL);
    *k = (kid){.id = id, .t = t, .next = t->kids};
    k->me.mute = true;
    k->me.on = kid_on;
    k->me.during = kid_hook;
    t->kids = k;
    return k;
}

jzx_child_spec kid_spec(kid *k, uint32_t mode)
{
    return (jzx_child_spec){.id = k->id,
                            .behavior = puppet_behavior,
                            .init = puppet_init,
                            .arg = k,
                            .deinit = puppet_deinit,
                            .on_signal = puppet_signal,
                            .mode = mode};
}

void tree_idle(tree *t)
{
    rig_idle(&t->r);
}

void tree_pass(tree *t, uint64_t ms)
{
    REQUIRE_OK(jzx_kit_run(t->r.kit, ms));
    const char *wrong = jzx_testkit_check(t->loop);
    CHECK_STR(wrong == NULL ? "" : wrong, "");
}

uint64_t tree_ms(const tree *t)
{
    return jzx_sim_now(t->r.sim) / MS;
}

void tree_spawn(tree *t, const jzx_supervisor_spec *spec, const jzx_child_spec *children,
                size_t count)
{
    jzx_supervisor_init init = {
        .name = "sup", .spec = spec, .children = children, .child_count = count};
    REQUIRE_OK(jzx_spawn_supervisor(t->loop, &init, &t->sup));
}

void tree_start(tree *t, const jzx_supervisor_spec *spec, const jzx_child_spec *children,
                size_t count)
{
    tree_spawn(t, spec, children, count);
    REQUIRE_OK(jzx_loop_run_until_started(t->loop, t->sup));
    REQUIRE_EQ(jzx_actor_state(t->loop, t->sup), JZX_STATE_RUNNING);
}

void tree_start_kids(tree *t, const jzx_supervisor_spec *spec, kid **kids, const uint32_t *modes,
                     size_t count)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e", "f"};
    jzx_child_spec specs[COUNT_OF(ids)];
    REQUIRE(count <= COUNT_OF(ids));
    for (size_t i = 0; i < count; i++) {
        kids[i] = kid_new(t, ids[i]);
        specs[i] = kid_spec(kids[i], modes == NULL ? JZX_PERMANENT : modes[i]);
    }
    tree_start(t, spec, specs, count);
}

void tree_start_dynamic(tree *t, const jzx_supervisor_spec *given, uint32_t mode,
                        uint32_t shutdown_ms)
{
    jzx_supervisor_spec spec = given == NULL ? (jzx_supervisor_spec){0} : *given;
    jzx_child_spec child = kid_spec(&(kid){.id = "kid"}, mode);
    spec.strategy = JZX_DYNAMIC;
    child.arg = NULL;
    child.shutdown_ms = shutdown_ms;
    tree_start(t, &spec, &child, 1);
}

kid *tree_add_dynamic(tree *t, const char *plan)
{
    kid *k = kid_new(t, "kid");
    k->plan = plan;
    jzx_actor_id actor = JZX_NOBODY;
    REQUIRE_OK(jzx_supervisor_start_dynamic(t->loop, t->sup, k, &actor));
    k->me.id = actor;
    return k;
}

void kid_tell(const kid *k, uint32_t tag, uint64_t value)
{
    REQUIRE_OK(jzx_send_u64(k->t->loop, k->me.id, value, tag));
}

void kid_begin_end(const kid *k, uint32_t reason)
{
    switch (reason) {
    case JZX_REASON_NORMAL:
        kid_tell(k, T_STOP, 0);
        break;
    case JZX_REASON_SHUTDOWN:
        CHECK_OK(jzx_stop(k->t->loop, k->me.id));
        break;
    case JZX_REASON_KILLED:
        CHECK_OK(jzx_kill(k->t->loop, k->me.id));
        break;
    case JZX_REASON_PANIC:
        kid_tell(k, T_PANIC, 0);
        break;
    default:
        kid_tell(k, T_FAIL, 0);
        break;
    }
}

void kid_end(kid *k, uint32_t reason)
{
    kid_begin_end(k, reason);
    tree_idle(k->t);
}

jzx_state kid_state_of(const kid *k)
{
    return jzx_actor_state(k->t->loop, k->me.id);
}

uint32_t kid_incarnation(const kid *k)
{
    return jzx_actor_incarnation(k->t->loop, k->me.id);
}

void kid_check_life(int line, kid *k, jzx_actor_id id, uint32_t incarnation)
{
    jzt_check_eq(JZT_CHECK, k->id, line, "actor", "the id it had", (intmax_t)k->me.id,
                 (intmax_t)id);
    jzt_check_eq(JZT_CHECK, k->id, line, "state", "RUNNING", kid_state_of(k), JZX_STATE_RUNNING);
    jzt_check_eq(JZT_CHECK, k->id, line, "incarnation", "as expected", kid_incarnation(k),
                 incarnation);
    if (kid_state_of(k) != JZX_STATE_RUNNING) {
        return;
    }
    uint32_t seen = k->seen;
    uint64_t handled = k->me.handled;
    kid_tell(k, KID_NOTE, 0);
    tree_idle(k->t);
    jzt_check_eq(JZT_CHECK, k->id, line, "handled", "one more", (intmax_t)k->me.handled,
                 (intmax_t)handled + 1);
    jzt_check_eq(JZT_CHECK, k->id, line, "seen in this life", "one more", k->seen, seen + 1);
}

uint32_t tree_status(const tree *t, const char *id)
{
    jzx_child_info info = {0};
    jzx_err err = jzx_supervisor_child(t->loop, t->sup, id, &info);
    if (err == JZX_ERR_NO_SUCH_CHILD) {
        return NO_CHILD;
    }
    CHECK_OK(err);
    return info.status;
}

jzx_child_info tree_child(const tree *t, const char *id)
{
    jzx_child_info info = {0};
    REQUIRE_OK(jzx_supervisor_child(t->loop, t->sup, id, &info));
    return info;
}

void tree_check_counts(int line, const tree *t, uint32_t specs, uint32_t active,
                       uint32_t supervisors, uint32_t workers)
{
    jzx_child_counts got = {0};
    jzt_check_ok(JZT_REQUIRE, __FILE__, line, "jzx_supervisor_count()",
                 jzx_supervisor_count(t->loop, t->sup, &got));
    jzt_check_eq(JZT_CHECK, "counts", line, "specs", "as expected", got.specs, specs);
    jzt_check_eq(JZT_CHECK, "counts", line, "active", "as expected", got.active, active);
    jzt_check_eq(JZT_CHECK, "counts", line, "supervisors", "as expected", got.supervisors,
                 supervisors);
    jzt_check_eq(JZT_CHECK, "counts", line, "workers", "as expected", got.workers, workers);
}

void tree_check_gone(int line, tree *t, uint32_t reason)
{
    jzt_check_eq(JZT_CHECK, "sup", line, "state", "TERMINATED", jzx_actor_state(t->loop, t->sup),
                 JZX_STATE_TERMINATED);
    jzt_check_str(JZT_CHECK, "sup", line, "reason", jzx_reason_name(t->sup_end.kind),
                  jzx_reason_name(reason));
    jzt_check_eq(JZT_CHECK, "sup", line, "live actors", "none", (intmax_t)rig_counters(&t->r).live,
                 0);
}

void tree_stop_now(tree *t)
{
    CHECK_OK(jzx_stop(t->loop, t->sup));
    tree_idle(t);
    CHECK_GONE(t, JZX_REASON_SHUTDOWN);
}
