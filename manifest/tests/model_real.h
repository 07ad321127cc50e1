/* The library in a simulated world: requests from outside and from actors, time that passes or
 * jumps, and crashes.
 *
 * A crash: the file is copied as it is at some step of the loop, the manifest is closed, and the
 * copy takes the file's place. What the old process did after the copy never happened. */
#ifndef MODEL_REAL_H
#define MODEL_REAL_H

#include "model_law.h"

#include <jzx/all.h>
#include <jzx/testkit.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QR_OPS = 3, QR_REQUESTS = 3, QR_WAITING = 3, QR_ACTORS = 2, QR_WALL = 1700000000 };

typedef struct qr_request {
    qo_op ops[QR_OPS];
    uint32_t op_count;
    bool waiting;           /* a claim that nobody could serve so far */
    uint64_t wait_until_ms; /* on the lease clock */
    uint32_t answers;       /* must become 1 */
    /* The receipt, copied. */
    jzx_err err;
    uint32_t failed;
    uint64_t seq, now_ms;
    jzx_mf_slot slots[QR_OPS];
    jzx_mf_job jobs[QR_OPS * QM_CLAIMED];
    uint32_t job_count;
} qr_request;

static struct {
    jzx_kit *kit;
    jzx_mf *mf;
    char dir[64], path[96], copy[96];
    jzx_actor_id actors[QR_ACTORS];
    int64_t wall_offset_ms;
    uint64_t opened_at_ms; /* virtual time */
    uint64_t opened_ms;    /* the manifest's clock then */
    qr_request pool[QR_REQUESTS + QR_WAITING];
    qr_request *requests[QR_REQUESTS]; /* of this step */
    uint32_t request_count;
    qr_request *waiting[QR_WAITING]; /* of earlier steps, in order */
    uint32_t waiting_count;
    qr_request *order[QR_REQUESTS]; /* in which they were sent */
    uint32_t order_count;
} qr;

static uint64_t qr_virtual_ms(void)
{
    return jzx_sim_now(qr.kit->sim) / 1000000u;
}

static uint64_t qr_wall_ms(void *arg)
{
    (void)arg;
    return (uint64_t)QR_WALL * 1000u + qr_virtual_ms() + (uint64_t)qr.wall_offset_ms;
}

static uint64_t qr_lease_ms(void)
{
    return qr.opened_ms + (qr_virtual_ms() - qr.opened_at_ms);
}

static void qr_answered(void *arg, const jzx_mf_receipt *receipt)
{
    qr_request *request = arg;
    request->answers++;
    request->err = receipt->err;
    request->failed = receipt->failed;
    request->seq = receipt->seq;
    request->now_ms = receipt->now_ms;
    QC_WANT(receipt->slot_count == request->op_count, "a receipt with %u slots for %u operations",
            receipt->slot_count, request->op_count);
    QC_WANT(receipt->job_count <= QR_OPS * QM_CLAIMED, "a receipt with %u jobs",
            receipt->job_count);
    if (qc_verdict.bad) {
        return;
    }
    memcpy(request->slots, receipt->slots, request->op_count * sizeof(jzx_mf_slot));
    request->job_count = receipt->job_count;
    for (uint32_t i = 0; i < receipt->job_count; i++) {
        request->jobs[i] = receipt->jobs[i];
    }
}

/* The transaction of a request, complete. */
static jzx_mf_txn *qr_txn(qr_request *request)
{
    jzx_mf_txn *txn = NULL;
    REQUIRE_OK(jzx_mf_begin(qr.mf, &txn));
    for (uint32_t i = 0; i < request->op_count; i++) {
        REQUIRE_OK(qo_real(txn, &request->ops[i]));
    }
    REQUIRE_EQ(jzx_mf_txn_count(txn), request->op_count);
    qr.order[qr.order_count++] = request;
    return txn;
}

/* An actor that asks the writer when it is told to. */
static jzx_behavior_result qr_worker(jzx_context *ctx, const jzx_message *msg)
{
    jzx_ask_ref ref;
    if (msg->kind == JZX_KIND_REPLY) {
        const jzx_reply *reply = jzx_reply_of(ctx);
        qr_request *request = reply->arg;
        if (msg->tag == 7) {
            qr_answered(request, msg->data);
        } else { /* the writer ended while a claim waited */
            request->answers++;
            request->err = JZX_ERR_CLOSED;
            QC_WANT(request->ops[0].wait_ms != 0, "an ask failed: %d", reply->err);
        }
        return JZX_BEHAVIOR_OK;
    }
    qr_request *request = msg->data;
    REQUIRE_OK(jzx_mf_commit_ask(ctx->loop, qr_txn(request), 7, 0, request, &ref));
    return JZX_BEHAVIOR_OK;
}

/* Empty requests for a step. */
static void qr_prepare(uint32_t count)
{
    qr.request_count = 0;
    for (qr_request *request = qr.pool; qr.request_count < count; request++) {
        if (!request->waiting) {
            request->op_count = request->answers = 0;
            request->job_count = 0;
            request->seq = request->now_ms = 0;
            qr.requests[qr.request_count++] = request;
        }
    }
}

static void qr_wait(qr_request *request, uint64_t until_ms)
{
    request->waiting = true;
    request->wait_until_ms = until_ms;
    qr.waiting[qr.waiting_count++] = request;
}

static void qr_end_wait(uint32_t index)
{
    qr.waiting[index]->waiting = false;
    qr.waiting_count--;
    for (uint32_t i = index; i < qr.waiting_count; i++) {
        qr.waiting[i] = qr.waiting[i + 1];
    }
}

static void qr_send(bool by_actors)
{
    qr.order_count = 0;
    for (uint32_t i = 0; i < qr.request_count; i++) {
        qr_request *request = qr.requests[i];
        if (by_actors) {
            REQUIRE_OK(jzx_send(qr.kit->loop, qr.actors[i % QR_ACTORS], request, 0, 1));
        } else {
            REQUIRE_OK(jzx_mf_commit_async(qr_txn(request), qr_answered, request));
        }
    }
}

static void qr_settle(void)
{
    REQUIRE_OK(jzx_loop_run_until_idle(qr.kit->loop));
}

/* The file. */

static void qr_open(jzx_mf_recovery *report)
{
    jzx_mf_opts opts = {.loop = qr.kit->loop,
                        .map_max = 64u << 20,
                        .flags = JZX_MF_NO_VERIFY | JZX_MF_NO_RESERVE,
                        .wall_ms = qr_wall_ms,
                        .retention = {QG_RETENTION_MS, QG_RETENTION_MS, QG_RETENTION_MS, 0, 0}};
    jzx_err err = jzx_mf_open(qr.path, &opts, &qr.mf, report);
    if (err != JZX_OK) {
        (void)fprintf(stderr, "open: %s\n", report->text);
    }
    REQUIRE_OK(err);
    jzx_mf_stats stats;
    REQUIRE_OK(jzx_mf_stats_read(qr.mf, &stats));
    qr.opened_at_ms = qr_virtual_ms();
    qr.opened_ms = stats.now_ms;
}

static void qr_close(void)
{
    REQUIRE_OK(jzx_mf_close(qr.mf, 0));
    qr.mf = NULL;
}

static void qr_copy_file(void)
{
    int from = open(qr.path, O_RDONLY | O_CLOEXEC);
    int to = open(qr.copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(from >= 0 && to >= 0);
    struct stat st;
    REQUIRE_EQ(fstat(from, &st), 0);
    for (off_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);
        REQUIRE(n > 0);
        left -= n;
    }
    (void)close(from);
    (void)close(to);
}

static void qr_begin(uint64_t seed)
{
    jzx_sim_opts sim = {.seed = seed | 1, .cost_ns = JZX_SIM_NO_COST};
    jzx_kit_opts opts = {.sim = &sim};
    REQUIRE_OK(jzx_kit_open(&opts, &qr.kit));
    qr.wall_offset_ms = 0;
    for (uint32_t i = 0; i < QR_ACTORS; i++) {
        jzx_spawn_opts spawn = {.behavior = qr_worker};
        REQUIRE_OK(jzx_spawn(qr.kit->loop, &spawn, &qr.actors[i]));
    }
}

static void qr_end(void)
{
    const char *wrong = jzx_kit_close(qr.kit);
    REQUIRE(wrong == NULL);
    qr.kit = NULL;
    (void)unlink(qr.path);
}

#endif
