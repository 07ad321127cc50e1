/* Goal: a supervisor on a named dispatcher is administered from every other one and from threads
 * that run no actors, by messages; each request is answered exactly once (R19, R31, R32). Routers
 * and flows on named dispatchers take their orders from anywhere as well. Method: real systems. */
/* not on: pinned pool; it says itself what its dispatchers are. */
#define _GNU_SOURCE
#include "nest.h"

/* A supervisor in this place, with kids "k0".."k4" everywhere, spawned from main. */
static nest *placed(world *w, size_t at, uint32_t mode)
{
    nest *n = nest_new(w, at, mode);
    jzx_supervisor_init init = {.name = "sup",
                                .spec = &n->spec,
                                .children = n->children,
                                .child_count = n->count,
                                .dispatcher = places[at]};
    REQUIRE_OK(jzx_spawn_supervisor(w->loop, &init, &n->sup));
    jzx_actor_id main_index = jzx_id_dispatcher(n->sup);
    CHECK((main_index == 0) == (at == AT_LOOP));
    for (size_t i = 0; i < KIDS; i++) {
        WAIT(w, puppet_signals(n->kid[i], JZX_SIGNAL_POST_START) == 1);
    }
    return n;
}

static void take_down(nest *n)
{
    CHECK_OK(jzx_system_stop(n->w->system, n->sup));
    for (size_t i = 0; i < KIDS; i++) {
        WAIT(n->w, atomic_load(&n->kid[i]->ends) >= 1);
    }
    WAIT(n->w, world_counters(n->w).live == 1); /* the boss, who is nobody's parent here */
    nest_close(n);
}

/* A thread that runs no actors asks; "loop" runs meanwhile. */
typedef struct visitor {
    world *w;
    jzx_actor_id sup;
    jzx_admin_request request;
    jzx_admin_answer *answer;
    jzx_err err;
    _Atomic int done;
} visitor;

static void *visit(void *arg)
{
    visitor *v = arg;
    v->err = jzx_admin_wait(v->w->sender, v->sup, &v->request, &v->answer);
    atomic_store(&v->done, 1);
    return NULL;
}

static visitor ask_by_thread(nest *n, const jzx_admin_request *request)
{
    visitor v = {.w = n->w, .sup = n->sup, .request = *request};
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, visit, &v), 0);
    WAIT(n->w, atomic_load(&v.done));
    pthread_join(thread, NULL);
    return v;
}

static jzx_err do_by_thread(nest *n, const jzx_admin_request *request)
{
    visitor v = ask_by_thread(n, request);
    if (v.answer != NULL) {
        CHECK_EQ(v.answer->err, v.err);
        CHECK_EQ(v.answer->what, request->what);
        CHECK_EQ(v.answer->supervisor, n->sup);
    }
    jzx_admin_answer_free(v.answer);
    return v.err;
}

static void check_list(nest *n)
{
    visitor v = ask_by_thread(n, &(jzx_admin_request){.what = JZX_ADMIN_CHILDREN});
    REQUIRE_OK(v.err);
    REQUIRE_EQ(v.answer->count, KIDS);
    for (uint32_t i = 0; i < KIDS; i++) {
        const jzx_child_info *info = jzx_admin_child_at(v.answer, i);
        CHECK_STR(info->id, n->kid[i]->name);
        CHECK_EQ(info->actor, atomic_load(&n->kid[i]->id));
        CHECK_EQ(info->status, JZX_CHILD_RUNNING);
    }
    jzx_admin_answer_free(v.answer);
    v = ask_by_thread(n, &(jzx_admin_request){.what = JZX_ADMIN_COUNT});
    REQUIRE_OK(v.err);
    CHECK_EQ(v.answer->counts.specs, KIDS);
    CHECK_EQ(v.answer->counts.active, KIDS);
    jzx_admin_answer_free(v.answer);
    jzx_actor_id last = atomic_load(&n->kid[KIDS - 1]->id);
    v = ask_by_thread(n, &(jzx_admin_request){.what = JZX_ADMIN_PLAN, .child = last});
    REQUIRE_OK(v.err);
    REQUIRE_EQ(v.answer->count, 2);
    CHECK_EQ(v.answer->steps[0].what, JZX_PLAN_RESTART);
    CHECK_STR(v.answer->steps[1].child_id, n->kid[KIDS - 1]->name);
    jzx_admin_answer_free(v.answer);
}

static uint32_t status_of(nest *n, const char *id)
{
    visitor v = ask_by_thread(n, &(jzx_admin_request){.what = JZX_ADMIN_CHILD, .child_id = id});
    uint32_t status = UINT32_MAX;
    if (v.err == JZX_OK) {
        status = v.answer->children[0].status;
        CHECK_STR(v.answer->children[0].id, id);
    } else {
        CHECK_EQ(v.err, JZX_ERR_NO_SUCH_CHILD);
    }
    jzx_admin_answer_free(v.answer);
    return status;
}

static void from_a_thread(world *w, size_t at)
{
    nest *n = placed(w, at, JZX_PERMANENT);
    const char *k1 = n->kid[1]->name;
    jzx_actor_id id1 = atomic_load(&n->kid[1]->id);
    check_list(n);
    CHECK_OK(do_by_thread(n, &(jzx_admin_request){.what = JZX_ADMIN_RESTART, .child = id1}));
    WAIT_LIFE(n->kid[1], id1, 2);
    world_settle(w);
    jzx_admin_request by_name = {.what = JZX_ADMIN_RESTART_CHILD, .child_id = k1};
    CHECK_EQ(do_by_thread(n, &by_name), JZX_ERR_CHILD_RUNNING);
    by_name.what = JZX_ADMIN_TERMINATE_CHILD;
    CHECK_OK(do_by_thread(n, &by_name));
    WAIT(w, atomic_load(&n->kid[1]->ends) == 1);
    world_settle(w);
    CHECK_EQ(status_of(n, k1), JZX_CHILD_DOWN);
    by_name.what = JZX_ADMIN_RESTART_CHILD;
    visitor v = ask_by_thread(n, &by_name);
    REQUIRE_OK(v.err);
    WAIT(w, atomic_load(&n->kid[1]->ups) == 3);
    CHECK_EQ(v.answer->child, atomic_load(&n->kid[1]->id));
    jzx_admin_answer_free(v.answer);
    world_settle(w);
    jzx_admin_request by_actor = {.what = JZX_ADMIN_TERMINATE,
                                  .child = atomic_load(&n->kid[1]->id)};
    CHECK_OK(do_by_thread(n, &by_actor));
    WAIT(w, atomic_load(&n->kid[1]->ends) == 2);
    world_settle(w);
    by_name.what = JZX_ADMIN_DELETE_CHILD;
    CHECK_OK(do_by_thread(n, &by_name));
    CHECK_EQ(status_of(n, k1), UINT32_MAX);
    jzx_admin_request start = {.what = JZX_ADMIN_START_CHILD, .spec = &n->children[1]};
    CHECK_OK(do_by_thread(n, &start));
    WAIT(w, atomic_load(&n->kid[1]->ups) == 4);
    world_settle(w);
    CHECK_EQ(do_by_thread(n, &start), JZX_ERR_CHILD_RUNNING);
    const jzx_supervisor_spec rules = {.action = JZX_ACTION_STOP};
    CHECK_OK(do_by_thread(n, &(jzx_admin_request){.what = JZX_ADMIN_RECONFIGURE, .rules = &rules}));
    puppet_end_by(n->kid[0], BY_FAIL);
    WAIT(w, atomic_load(&n->kid[0]->ends) == 1);
    take_down(n);
}

static void test_a_thread_administers_supervisors_on_every_dispatcher_R19(void)
{
    for_all_places(from_a_thread);
}

/* Actors ask, on every other dispatcher, and get one reply each. */
typedef struct asker {
    nest *n;
    jzx_admin_request request;
    jzx_err err;
    _Atomic uint32_t replies;
    jzx_err said;
    jzx_actor_id child;
} asker;

static asker *replying; /* one at a time */

static jzx_behavior_result hear_reply(jzx_context *ctx, const jzx_message *msg)
{
    const jzx_admin_answer *answer = jzx_admin_answer_of(msg);
    (void)ctx;
    CHECK_EQ(msg->kind, JZX_KIND_REPLY);
    replying->said = answer != NULL ? (jzx_err)answer->err : JZX_ERR_TIMED_OUT;
    replying->child = answer != NULL ? answer->child : JZX_NOBODY;
    atomic_fetch_add(&replying->replies, 1);
    return JZX_BEHAVIOR_OK;
}

static void ask_inside(jzx_context *ctx, puppet *self, void *arg)
{
    asker *a = arg;
    (void)self;
    a->err = jzx_admin_ask(ctx->loop, a->n->sup, &a->request, NULL);
}

static jzx_err ask_by_actor(puppet *from, nest *n, jzx_admin_request request)
{
    asker a = {.n = n, .request = request};
    a.request.on_reply = hear_reply;
    replying = &a;
    puppet_call(from, ask_inside, &a);
    REQUIRE_OK(a.err);
    WAIT(n->w, atomic_load(&a.replies) == 1);
    world_settle(n->w);
    CHECK_EQ(atomic_load(&a.replies), 1);
    return a.said;
}

static void from_actors(world *w, size_t at)
{
    nest *n = placed(w, at, JZX_PERMANENT);
    for (size_t i = 0; i < PLACES; i++) {
        puppet *from = puppet_up(puppet_at(w, "asker", places[i]));
        const char *id = n->kid[0]->name;
        jzx_actor_id old = atomic_load(&n->kid[0]->id);
        CHECK_OK(ask_by_actor(
            from, n, (jzx_admin_request){.what = JZX_ADMIN_TERMINATE_CHILD, .child_id = id}));
        WAIT(w, atomic_load(&n->kid[0]->ends) == i + 1);
        world_settle(w);
        CHECK_OK(ask_by_actor(
            from, n, (jzx_admin_request){.what = JZX_ADMIN_RESTART_CHILD, .child_id = id}));
        WAIT(w, atomic_load(&n->kid[0]->ups) == i + 2);
        CHECK(atomic_load(&n->kid[0]->id) != old);
        CHECK_EQ(
            ask_by_actor(from, n,
                         (jzx_admin_request){.what = JZX_ADMIN_DELETE_CHILD, .child_id = "nobody"}),
            JZX_ERR_NO_SUCH_CHILD);
        CHECK_OK(jzx_system_stop(w->system, atomic_load(&from->id)));
        WAIT(w, atomic_load(&from->ends) == 1);
    }
    take_down(n);
}

static void test_actors_administer_supervisors_on_every_dispatcher_R19(void)
{
    for_all_places(from_actors);
}

/* Arguments with a drop_arg are released once: by the child's spec, or because nobody took it. */
static _Atomic uint32_t drops;

static void count_drop(void *arg)
{
    (void)arg;
    atomic_fetch_add(&drops, 1);
}

static jzx_behavior_result nothing(jzx_context *ctx, const jzx_message *msg)
{
    (void)ctx;
    (void)msg;
    return JZX_BEHAVIOR_OK;
}

static jzx_behavior_result begin(jzx_context *ctx, void *arg)
{
    ctx->state = arg;
    return JZX_BEHAVIOR_OK;
}

static void test_arguments_are_released_once_R4(void)
{
    world *w = world_open();
    int thing = 0, taken = 0;
    jzx_supervisor_spec spec = {.strategy = JZX_DYNAMIC};
    jzx_child_spec child = {.id = "d",
                            .behavior = nothing,
                            .init = begin,
                            .drop_arg = count_drop,
                            .mode = JZX_TEMPORARY};
    jzx_supervisor_init init = {
        .name = "dyn", .spec = &spec, .children = &child, .child_count = 1, .dispatcher = "desk"};
    nest n = {.w = w};
    REQUIRE_OK(jzx_spawn_supervisor(w->loop, &init, &n.sup));
    jzx_admin_request request = {.what = JZX_ADMIN_START_DYNAMIC,
                                 .arg = &thing,
                                 .drop_arg = count_drop,
                                 .out_taken = &taken};
    visitor v = ask_by_thread(&n, &request);
    REQUIRE_OK(v.err);
    CHECK_EQ(taken, 1);
    CHECK_EQ(atomic_load(&drops), 0);
    request = (jzx_admin_request){.what = JZX_ADMIN_TERMINATE, .child = v.answer->child};
    jzx_admin_answer_free(v.answer);
    CHECK_OK(do_by_thread(&n, &request));
    WAIT(w, atomic_load(&drops) == 1);
    /* A static child is refused there: the answer says so, and the argument is gone. */
    child = (jzx_child_spec){
        .id = "s", .behavior = nothing, .init = begin, .arg = &thing, .drop_arg = count_drop};
    request =
        (jzx_admin_request){.what = JZX_ADMIN_START_CHILD, .spec = &child, .out_taken = &taken};
    CHECK_EQ(do_by_thread(&n, &request), JZX_ERR_WRONG_SUPERVISOR);
    CHECK_EQ(taken, 1);
    CHECK_EQ(atomic_load(&drops), 2);
    /* What is refused at once stays the caller's. */
    child.init = NULL;
    CHECK_EQ(do_by_thread(&n, &request), JZX_ERR_NOT_RESTARTABLE);
    CHECK_EQ(taken, 0);
    child.init = begin;
    CHECK_OK(jzx_system_stop(w->system, n.sup));
    WAIT(w, world_counters(w).live == 0);
    CHECK_EQ(do_by_thread(&n, &request), JZX_ERR_NO_SUCH_ACTOR);
    CHECK_EQ(taken, 0);
    CHECK_EQ(atomic_load(&drops), 2);
    world_close(w);
}

static void test_requests_without_what_they_need_are_refused_R19(void)
{
    world *w = world_open();
    puppet *plain = puppet_up(puppet_at(w, "plain", "crew"));
    nest n = {.w = w, .sup = atomic_load(&plain->id)};
    for (uint32_t what = 0; what <= JZX_ADMIN_PLAN + 1; what++) {
        bool bare = what == JZX_ADMIN_CHILDREN || what == JZX_ADMIN_COUNT ||
                    what == JZX_ADMIN_START_DYNAMIC;
        jzx_admin_request request = {.what = what, .timeout_ms = 50};
        /* A plain actor does not answer such a thing: it forgets it. */
        CHECK_EQ(do_by_thread(&n, &request), bare ? JZX_ERR_AGAIN : JZX_ERR_INVALID_ARG);
    }
    char id[JZX_CHILD_ID_MAX + 2];
    memset(id, 'x', sizeof id);
    id[sizeof id - 1] = '\0';
    jzx_admin_request request = {.what = JZX_ADMIN_CHILD, .child_id = id};
    CHECK_EQ(do_by_thread(&n, &request), JZX_ERR_TOO_BIG);
    CHECK_EQ(jzx_admin_wait(NULL, n.sup, &request, NULL), JZX_ERR_INVALID_ARG);
    CHECK_OK(jzx_system_stop(w->system, n.sup));
    WAIT(w, atomic_load(&plain->ends) == 1);
    world_close(w);
}

/* A supervisor whose dispatcher is named in its init, nested ones too; and a name that is none. */
static void test_a_supervisor_runs_where_it_is_told_R31(void)
{
    world *w = world_open();
    puppet *a = puppet_at(w, "leaf", NULL);
    jzx_child_spec leaf = puppet_spec(a, JZX_PERMANENT);
    jzx_supervisor_init inner = {
        .name = "inner", .children = &leaf, .child_count = 1, .dispatcher = "crew"};
    jzx_child_spec child = {.id = "inner", .supervisor = &inner};
    jzx_supervisor_init init = {
        .name = "outer", .children = &child, .child_count = 1, .dispatcher = "desk"};
    nest n = {.w = w};
    REQUIRE_OK(jzx_spawn_supervisor(w->loop, &init, &n.sup));
    visitor v = ask_by_thread(&n, &(jzx_admin_request){.what = JZX_ADMIN_CHILDREN});
    REQUIRE_OK(v.err);
    REQUIRE_EQ(v.answer->count, 1);
    jzx_loop *crew = jzx_system_dispatcher(w->system, "crew");
    jzx_loop *desk = jzx_system_dispatcher(w->system, "desk");
    CHECK(jzx_system_at(w->system, jzx_id_dispatcher(n.sup)) == desk);
    CHECK(jzx_system_at(w->system, jzx_id_dispatcher(v.answer->children[0].actor)) == crew);
    CHECK(jzx_system_at(w->system, jzx_id_dispatcher(atomic_load(&a->id))) == crew);
    jzx_admin_answer_free(v.answer);
    init.dispatcher = "nowhere";
    CHECK_EQ(jzx_spawn_supervisor(w->loop, &init, NULL), JZX_ERR_NO_SUCH_DISPATCHER);
    init.dispatcher = "";
    CHECK_EQ(jzx_spawn_supervisor(w->loop, &init, NULL), JZX_ERR_BAD_SPEC);
    CHECK_OK(jzx_system_stop(w->system, n.sup));
    WAIT(w, atomic_load(&a->ends) == 1);
    world_close(w);
}

/* Routers: the same messages, from a thread. */
typedef struct resize {
    world *w;
    jzx_actor_id router;
    uint64_t workers;
    uint64_t got;
    jzx_err err;
    _Atomic int done;
} resize;

static void *resize_router(void *arg)
{
    resize *r = arg;
    jzx_message msg = {0};
    jzx_ask_opts ask = {.u64 = r->workers, .tag = JZX_TAG_ROUTER_RESIZE, .flags = JZX_SEND_VALUE};
    r->err = jzx_ask_wait(r->w->sender, r->router, &ask, NULL, &msg);
    r->got = msg.u64;
    atomic_store(&r->done, 1);
    return NULL;
}

static void test_a_router_elsewhere_is_resized_by_a_thread_R31(void)
{
    world *w = world_open();
    for (size_t at = 0; at < PLACES; at++) {
        jzx_spawn_opts worker = {.behavior = nothing, .flags = JZX_SPAWN_STATELESS};
        jzx_router_opts opts = {.worker = &worker, .workers = 2, .dispatcher = places[at]};
        resize r = {.w = w, .workers = 5};
        REQUIRE_OK(jzx_router_spawn(w->loop, &opts, &r.router));
        pthread_t thread;
        REQUIRE_EQ(pthread_create(&thread, NULL, resize_router, &r), 0);
        WAIT(w, atomic_load(&r.done));
        pthread_join(thread, NULL);
        CHECK_OK(r.err);
        CHECK_EQ(r.got, 5);
        CHECK_OK(jzx_router_resize(w->loop, r.router, 1)); /* and from another dispatcher */
        WAIT(w, world_counters(w).live == 2);
        CHECK_OK(jzx_system_stop(w->system, r.router));
        WAIT(w, world_counters(w).live == 0);
    }
    world_close(w);
}

/* In a pool others change the family while its supervisor answers: the answer is of one moment. */
typedef struct churn {
    nest *n;
    _Atomic int over;
    uint64_t answers;
    uint64_t wrong;
} churn;

static void *list_all(void *arg)
{
    churn *c = arg;
    const jzx_admin_request requests[] = {
        {.what = JZX_ADMIN_CHILDREN},
        {.what = JZX_ADMIN_PLAN, .child = atomic_load(&c->n->kid[0]->id)},
    };
    for (size_t turn = 0; !atomic_load(&c->over); turn++) {
        jzx_admin_answer *answer = NULL;
        jzx_err err = jzx_admin_wait(c->n->w->sender, c->n->sup, &requests[turn % 2], &answer);
        c->wrong += err != JZX_OK;
        for (uint32_t i = 0; err == JZX_OK && turn % 2 == 0 && i < answer->count; i++) {
            const char *id = jzx_admin_child_at(answer, i)->id;
            c->wrong += id == NULL || (id[0] != 'k' && id[0] != 'x');
        }
        c->answers++;
        jzx_admin_answer_free(answer);
    }
    return NULL;
}

static void come_and_go(jzx_context *ctx, puppet *self, void *arg)
{
    enum { ROUNDS = 30, MANY = 8 };
    churn *c = arg;
    (void)self;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            const char id[3] = {'x', (char)('0' + i), '\0'};
            jzx_child_spec spec = {
                .id = id, .behavior = nothing, .flags = JZX_SPAWN_STATELESS, .dispatcher = "pool"};
            CHECK_OK(jzx_supervisor_start_child(ctx->loop, c->n->sup, &spec, NULL));
        }
        for (int i = 0; i < MANY; i++) {
            const char id[3] = {'x', (char)('0' + i), '\0'};
            CHECK_OK(jzx_supervisor_terminate_child(ctx->loop, c->n->sup, id));
            while (jzx_supervisor_delete_child(ctx->loop, c->n->sup, id) != JZX_OK) {
                pause_us(50);
            }
        }
    }
}

static void test_an_answer_is_of_one_moment_R32(void)
{
    world *w = world_open();
    nest *n = placed(w, AT_POOL, JZX_PERMANENT);
    churn c = {.n = n};
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, list_all, &c), 0);
    puppet_call(n->boss, come_and_go, &c);
    atomic_store(&c.over, 1);
    pthread_join(thread, NULL);
    CHECK(c.answers > 0);
    CHECK_EQ(c.wrong, 0);
    take_down(n);
    world_close(w);
}

static const jzt_test tests[] = {
    {"a_thread_administers_supervisors_on_every_dispatcher_R19",
     test_a_thread_administers_supervisors_on_every_dispatcher_R19},
    {"actors_administer_supervisors_on_every_dispatcher_R19",
     test_actors_administer_supervisors_on_every_dispatcher_R19},
    {"arguments_are_released_once_R4", test_arguments_are_released_once_R4},
    {"requests_without_what_they_need_are_refused_R19",
     test_requests_without_what_they_need_are_refused_R19},
    {"a_supervisor_runs_where_it_is_told_R31", test_a_supervisor_runs_where_it_is_told_R31},
    {"a_router_elsewhere_is_resized_by_a_thread_R31",
     test_a_router_elsewhere_is_resized_by_a_thread_R31},
    {"an_answer_is_of_one_moment_R32", test_an_answer_is_of_one_moment_R32},
};

int main(int argc, char **argv)
{
    return jzt_main(argc, argv, tests, COUNT_OF(tests));
}
