/* One run after the other, each with its own seed, against model and laws; see jobs_model.c.
 *
 * Runs have consecutive seeds: JZX_SEED=n begins with the run that was reported with that seed.
 * JZX_MODEL_SEEDS says how many there are (1: only that one); JZX_MODEL_TRACE=1 prints each step.
 */
#ifndef MODEL_RUN_H
#define MODEL_RUN_H

#include "model_answers.h"

/* The one operation of the one request. */
static qo_op *single_op(qo_what what)
{
    qr_prepare(1);
    qr_request *request = qr.requests[0];
    request->op_count = 1;
    request->ops[0] = (qo_op){.what = what};
    return &request->ops[0];
}

static void make_requests(bool by_actors)
{
    qr_send(by_actors);
    qr_settle();
    check_requests();
    compare();
}

/* One operation that only looks at the clock. */
static void sync_now(void)
{
    (void)single_op(QO_SYNC);
    make_requests(false);
}

static void random_requests(void)
{
    qr_prepare(1 + qg_below(qg_chance(30) ? QR_REQUESTS : 1));
    uint32_t may_wait = QR_WAITING - qr.waiting_count;
    for (uint32_t i = 0; i < qr.request_count; i++) {
        qr_request *request = qr.requests[i];
        request->op_count = 1 + qg_below(qg_chance(25) ? QR_OPS : 1);
        for (uint32_t k = 0; k < request->op_count; k++) {
            qg_op(&M, &request->ops[k]);
        }
        bool waits = request->op_count == 1 && request->ops[0].what == QO_CLAIM;
        if (waits && may_wait > 0 && qg_chance(30)) {
            request->ops[0].wait_ms = QG_ANY(20, 100, 400);
            may_wait--;
        }
    }
}

/* When the model has something to do; in ms from now. */
static uint64_t next_due(uint64_t most)
{
    uint64_t in_ms = most;
    for (uint32_t i = 0; i < M.job_count; i++) {
        const qm_job *job = &M.jobs[i];
        uint64_t wait = most;
        if (job->state == JZX_MF_JOB_SCHEDULED) {
            wait = job->run_at_lo - M.now_ms;
        } else if (job->state == JZX_MF_JOB_ACTIVE) {
            wait = job->lease_until_ms - M.lease_now_ms;
        }
        in_ms = wait < in_ms ? wait : in_ms;
    }
    for (uint32_t i = 0; i < qr.waiting_count; i++) {
        uint64_t wait = qr.waiting[i]->wait_until_ms - M.lease_now_ms;
        in_ms = wait < in_ms ? wait : in_ms;
    }
    for (uint32_t i = 0; i < QM_CRONS; i++) {
        const qm_cron *cron = &M.crons[i];
        if (cron->put && !cron->paused && cron->next_ms - M.now_ms < in_ms) {
            in_ms = cron->next_ms - M.now_ms;
        }
    }
    return in_ms;
}

/* Stops wherever something is due, so that the model knows when it was done. */
static void run_for(uint64_t ms)
{
    while (ms > 0) {
        uint64_t part = next_due(ms);
        REQUIRE_OK(jzx_kit_run(qr.kit, part));
        sync_now();
        ms -= part;
    }
}

static void jump_clock(void)
{
    static const int64_t jumps[] = {-3600000, -1500, -10, 10, 900, 1500, 30000};
    qr.wall_offset_ms += jumps[qg_below(7)];
    if (tracing) {
        (void)fprintf(stderr, "step %u: the clock jumps\n", step_now);
    }
    sync_now();
}

/* Those that were done, whether anybody heard of it or not. */
static void settle_crash(uint64_t last_seq)
{
    uint64_t commit = 0;
    for (uint32_t i = 0; i < qr.order_count; i++) {
        qr_request *request = qr.order[i];
        if (!was_done(request, last_seq)) {
            continue;
        }
        if (commit != 0 && is_later(request, commit)) {
            serve_waiting(last_seq);
        }
        commit = request->seq;
        qm_time(&M, request->now_ms, M.lease_now_ms);
        check_one(request);
        totals.in_between++;
    }
    serve_waiting(last_seq);
    while (qr.waiting_count > 0) {
        qr_end_wait(0);
    }
}

/* The latest time that is in the file: commits without a write leave none. */
static uint64_t newest_time(void)
{
    uint64_t newest = 0;
    for (uint32_t i = 0; i < M.job_count; i++) {
        const qm_job *job = &M.jobs[i];
        newest = job->created_ms > newest ? job->created_ms : newest;
        newest = job->finished_ms > newest ? job->finished_ms : newest;
    }
    return newest;
}

static void reopen(bool crashed)
{
    jzx_mf_recovery report = {0};
    qm_recovery want = {.crashed = crashed};
    qr_open(&report);
    if (crashed) {
        settle_crash(report.commit_seq);
    }
    QC_WANT(qr.opened_ms >= (crashed ? newest_time() : M.now_ms),
            "the clock went back over a restart");
    QC_WANT(report.clean == !crashed, "clean: %u", report.clean);
    qm_reopen(&M, qr.opened_ms, &want);
    QC_WANT(report.boot == M.boot, "boot %" PRIu64 ", not %" PRIu64, report.boot, M.boot);
    QC_WANT(report.orphans == want.orphans && report.requeued == want.requeued &&
                report.died == want.died && report.repairs == want.repairs,
            "recovery: orphans %" PRIu64 "/%" PRIu64 ", requeued %" PRIu64 "/%" PRIu64
            ", died %" PRIu64 "/%" PRIu64 ", repairs %" PRIu64 "/%" PRIu64,
            report.orphans, want.orphans, report.requeued, want.requeued, report.died, want.died,
            report.repairs, want.repairs);
    totals.orphans += want.orphans;
    totals.requeued += want.requeued;
    totals.died += want.died;
    totals.repairs += want.repairs;
    must_be_well();
    qr_settle();
    compare();
}

/* Requests are on their way; the process dies at some step of the loop. */
static void crash(void)
{
    random_requests();
    qr_send(qg_chance(50));
    for (uint32_t i = qg_below(6); i > 0; i--) {
        REQUIRE_OK(jzx_loop_step(qr.kit->loop, 0));
    }
    qr_copy_file();
    qr_settle();
    qr_close();
    if (tracing) {
        (void)fprintf(stderr, "step %u: crash\n", step_now);
    }
    REQUIRE_EQ(rename(qr.copy, qr.path), 0);
    totals.crashes++;
    reopen(true);
}

/* Claims that wait are told at the end, and get nothing any more. */
static void end_waits(void)
{
    for (; qr.waiting_count > 0; qr_end_wait(0)) {
        const qr_request *request = qr.waiting[0];
        QC_WANT(request->answers == 1 && request->job_count == 0,
                "a claim that waits at the end: %u answers, %u jobs", request->answers,
                request->job_count);
    }
    must_be_well();
}

/* A proper end does what was asked for before. */
static void close_and_reopen(void)
{
    random_requests();
    qr_send(false);
    qr_close();
    if (tracing) {
        (void)fprintf(stderr, "step %u: close\n", step_now);
    }
    check_requests();
    end_waits();
    totals.closes++;
    reopen(false);
}

static void random_step(void)
{
    uint32_t dice = qg_below(100);
    if (dice < 66) {
        random_requests();
        make_requests(qg_chance(40));
    } else if (dice < 88) {
        run_for(1 + qg_below(qg_chance(15) ? 1500 : 70));
    } else if (dice < 92) {
        jump_clock();
    } else if (dice < 97) {
        crash();
    } else {
        close_and_reopen();
    }
}

/* The end of all trouble. */

static void calm_down(void)
{
    qr_prepare(QR_REQUESTS);
    for (uint16_t i = 0; i + 1 < QM_KINDS; i++) {
        qr_request *request = qr.requests[i / QR_OPS];
        request->ops[request->op_count++] =
            (qo_op){.what = QO_KIND_PUT, .number = i + 1u, .kind = {.put = true}};
    }
    for (uint16_t i = 0; i < QM_CRONS; i++) {
        qr_request *request = qr.requests[QR_REQUESTS - 1];

        request->ops[request->op_count++] = (qo_op){.what = QO_CRON_DEL, .number = i};
    }
    make_requests(false);
}

static uint32_t unfinished(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < M.job_count; i++) {
        count += !qm_is_finished(&M.jobs[i]);
    }
    return count;
}

static bool claim_and_complete(void)
{
    single_op(QO_CLAIM)->max = QM_CLAIMED;
    make_requests(false);
    uint32_t count = qr.requests[0]->job_count;
    jzx_mf_lease leases[QM_CLAIMED];
    for (uint32_t i = 0; i < count; i++) {
        leases[i] = jzx_mf_lease_of(&qr.requests[0]->jobs[i]);
    }
    qr_prepare((count + QR_OPS - 1) / QR_OPS);
    for (uint32_t i = 0; i < count; i++) {
        qr_request *request = qr.requests[i / QR_OPS];
        request->ops[request->op_count++] = (qo_op){.what = QO_COMPLETE, .lease = leases[i]};
    }
    make_requests(false);
    return count > 0;
}

/* Every job ends if somebody works: nothing is stuck, nothing is lost. */
static void drain(void)
{
    calm_down();
    uint32_t rounds = 0;
    while (unfinished() > 0) {
        QC_WANT(++rounds < DRAIN_ROUNDS, "%u jobs never end", unfinished());
        must_be_well();
        if (!claim_and_complete() && unfinished() > 0) {
            uint64_t wait = next_due(UINT64_MAX);
            QC_WANT(wait != UINT64_MAX, "%u jobs wait for nothing", unfinished());
            must_be_well();
            run_for(wait);
        }
    }
}

static void play(uint64_t seed)
{
    M = (qm){0};
    memset(&ql_book, 0, sizeof ql_book);
    memset(&qg_hands, 0, sizeof qg_hands);
    qc_verdict.bad = false;
    seed_now = seed;
    step_now = 0;
    qg_rng.state = seed;
    qg_rng.state = jzt_rng_next(&qg_rng); /* neighbours must not be shifted copies of each other */
    qr_begin(seed);
    jzx_mf_recovery report = {0};
    qr_open(&report);
    REQUIRE_EQ(report.created, 1);
    M.boot = report.boot;
    M.now_ms = M.lease_now_ms = qr.opened_ms;
    for (uint32_t steps = STEPS_MIN + qg_below(STEPS_SPAN); step_now < steps; step_now++) {
        random_step();
    }
    drain();
    totals.jobs += ql_book.count;
    qr_close();
    end_waits();
    for (uint32_t i = 0; i < M.job_count; i++) {
        totals.states[M.jobs[i].state]++;
    }
    if (seed % 16 == 0) {
        REQUIRE_OK(jzx_mf_check(qr.path, NULL, NULL, NULL));
    }
    qr_end();
}

static uint64_t number_from_env(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 0);
}

static void make_dir(void)
{
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(qr.dir, sizeof qr.dir, "%s/jzx-model-XXXXXX", where);
    REQUIRE(mkdtemp(qr.dir) != NULL);
    (void)snprintf(qr.path, sizeof qr.path, "%s/m", qr.dir);
    (void)snprintf(qr.copy, sizeof qr.copy, "%s/copy", qr.dir);
}

static void remove_dir(void)
{
    static const char *const ends[] = {"m", "m-lock", "m-owner", "copy"};
    for (uint32_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/%s", qr.dir, ends[i]);
        (void)unlink(path);
    }
    CHECK_EQ(rmdir(qr.dir), 0);
}

static void tell_totals(void)
{
    (void)printf("  jobs %" PRIu64 ", claims %" PRIu64 ", fenced %" PRIu64 ", crashes %" PRIu64
                 " (%" PRIu64 " requests done unheard), closes %" PRIu64 ", orphans %" PRIu64
                 " (requeued %" PRIu64 ", died %" PRIu64 ", repairs %" PRIu64 "), fired %" PRIu64
                 ", waits served %" PRIu64 ", given up %" PRIu64 "\n ",
                 totals.jobs, totals.claims, totals.fenced, totals.crashes, totals.in_between,
                 totals.closes, totals.orphans, totals.requeued, totals.died, totals.repairs,
                 totals.fired, totals.served, totals.gave_up);
    for (uint32_t i = 0; i < QO_WHATS; i++) {
        (void)printf(" %s %" PRIu64 "-%" PRIu64, qo_names[i], totals.ops[i], totals.refused[i]);
    }
    (void)printf("\n");
}

/* Crowded: see model_gen.h. */
static void run_all(bool crowded)
{
    qg_crowded = crowded;
    uint64_t seeds = number_from_env("JZX_MODEL_SEEDS", SEEDS_DEFAULT);
    uint64_t first = number_from_env("JZX_SEED", 1);
    tracing = getenv("JZX_MODEL_TRACE") != NULL;
    make_dir();
    for (uint64_t i = 0; i < seeds; i++) {
        play(first + i);
    }
    remove_dir();
    tell_totals();
    if (seeds < 500) {
        return;
    }
    for (uint32_t i = 0; i < QO_WHATS; i++) {
        CHECK(totals.ops[i] > totals.refused[i] || i == QO_REFUSE);
    }
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(totals.outcomes[i] > 0);
    }
    for (uint32_t i = JZX_MF_JOB_DONE; i <= JZX_MF_JOB_SUPERSEDED; i++) {
        CHECK(totals.states[i] > 0);
    }
    CHECK(totals.fenced > 0 && totals.requeued > 0 && totals.died > 0 && totals.repairs > 0);
    CHECK(totals.fired > 0 && totals.in_between > 0 && totals.served > 0 && totals.gave_up > 0);
}

#endif
