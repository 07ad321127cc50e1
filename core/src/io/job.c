#include "io/job.h"

#include "base/alloc.h"
#include "base/list.h"

#include <string.h>

/* Where the job is, as its owner's dispatcher sees it. */
enum {
    OUT,    /* with the pool, or its errand is on its way home */
    INLINE, /* simulation: the job's alarm will run it */
    QUEUED, /* in a lane of its owner */
    IN_HAND
};

/* A reference: the job's number, and a mark of its owner so that other actors do not take it for
 * theirs. The mark is the actor's index, folded. An actor that cancels the reference of another
 * actor with the same mark may get ALREADY instead of NO_SUCH_REF; nothing else happens. */
enum { MARK_BITS = 24 };
#define MARK_MASK ((UINT64_C(1) << MARK_BITS) - 1)

static uint64_t mark_of(jzx_actor_id id)
{
    return (jzx_id_slot(id) ^ (uint64_t)jzx_id_dispatcher(id) << 16) & MARK_MASK;
}

static jzi_job_list *list_of(const jzi_actor *actor)
{
    return actor->cold == NULL ? NULL : actor->cold->jobs;
}

static void unlink_job(jzi_job *job)
{
    if (job->pprev != NULL) {
        JZI_LIST_REMOVE(job);
    }
}

/* What the owner sees, or its drop_msg. */
static void fill_message(jzi_job *job)
{
    job->errand.node.ops = JZI_EVENT_JOB;
    job->errand.node.msg = (jzx_message){
        .data = job->result,
        .len = job->kind == JZX_KIND_JOB ? (size_t)job->ref : sizeof(jzx_file_event),
        .tag = job->tag,
        .kind = job->kind,
        JZI_MSG_FLAGS(job->flags),
        .drop = job->drop_result,
    };
}

/* False: there is a result, and no function to release it. */
static bool drop_result(jzi_job *job)
{
    if (job->result == NULL || (job->flags & JZX_MSG_BORROWED) != 0) {
        return true;
    }
    if (job->drop_result != NULL) {
        job->drop_result(job->result);
        return true;
    }
    if (job->drop_msg != NULL) {
        fill_message(job);
        job->drop_msg(&job->errand.node.msg);
        return true;
    }
    return false;
}

static void drop_arg(const jzi_job *job)
{
    if (job->drop_arg != NULL) {
        job->drop_arg(job->arg);
    }
}

jzi_job *jzi_job_new(jzi_worker *worker, jzi_actor *owner, size_t bytes)
{
    jzi_cold *cold = jzi_worker_cold(worker, owner);
    if (cold == NULL) {
        return NULL;
    }
    if (cold->jobs == NULL) {
        cold->jobs = jzi_alloc_zeroed(&worker->alloc, sizeof(jzi_job_list));
    }
    jzi_job *job = cold->jobs == NULL ? NULL : jzi_alloc(&worker->alloc, bytes);
    if (job == NULL) {
        return NULL;
    }
    memset(job, 0, sizeof *job);
    job->bytes = bytes;
    job->owner = owner->id;
    job->drop_msg = owner->type->drop_msg;
    return job;
}

void jzi_job_free(jzi_worker *worker, jzi_job *job)
{
    jzi_free(&worker->alloc, job, job->bytes);
}

/* The last step of a job that is not handed over, in its owner's dispatcher. After fork(2) no code
 * of the program runs; a file is closed all the same. */
static void dispose_now(jzi_worker *worker, jzi_job *job)
{
    bool ours = job->kind == JZX_KIND_FILE;
    if (!worker->dispatcher->abandoned || ours) {
        if (!job->ran) {
            drop_arg(job);
        } else if (!drop_result(job)) {
            jzi_count_add(&worker->counters.abandoned, 1);
        }
    }
    jzi_job_free(worker, job);
}

static void disposal(jzi_worker *worker, jzi_errand *errand)
{
    dispose_now(worker, jzi_container_of(errand, jzi_job, errand));
}

static void dispose(jzi_worker *worker, jzi_job *job)
{
    if (jzi_unlikely(worker->pooled) && !worker->dispatcher->destroying) {
        job->errand.run = disposal;
        jzi_worker_defer(worker, &job->errand);
    } else {
        dispose_now(worker, job);
    }
}

/* The result, or what is left of it, is home. */
static void come_home(jzi_worker *worker, jzi_job *job)
{
    if (job->orphan || !job->ran) {
        unlink_job(job);
        dispose(worker, job);
        return;
    }
    jzi_actor *owner = jzi_worker_find(worker, job->owner);
    jzi_assert(owner != NULL); /* an actor that ends forgets its jobs first */
    job->state = QUEUED;
    fill_message(job);
    jzi_worker_post_event(worker, owner, &job->errand.node);
}

static void errand_of_pool(jzi_worker *worker, jzi_errand *errand)
{
    come_home(worker, jzi_container_of(errand, jzi_job, errand));
}

static void run_inline(jzi_alarms *alarms, jzi_alarm *alarm)
{
    jzi_job *job = jzi_container_of(alarm, jzi_job, alarm);
    jzi_jobs_let_go(job->jobs);
    job->result = job->fn(job->arg);
    job->ran = true;
    come_home(alarms->dispatcher->acting, job);
}

static void run_job(jzi_work *work)
{
    jzi_job *job = jzi_container_of(work, jzi_job, work);
    job->result = job->fn(job->arg);
}

/* On a thread of the pool, or on the one that closes it. The inbox is ours until we let go of it:
 * the job may be gone as soon as its errand is posted. */
static void send_home(jzi_work *work, bool ran)
{
    jzi_job *job = jzi_container_of(work, jzi_job, work);
    jzi_inbox *inbox = job->inbox;
    job->ran = ran;
    if (ran && job->finish != NULL) {
        job->finish(job);
    }
    if (!jzi_errand_post(inbox, &job->errand)) {
        if (ran) {
            (void)drop_result(job);
        } else {
            drop_arg(job);
        }
        jzi_free(&inbox->alloc, job, job->bytes);
    }
    jzi_inbox_release_helper(inbox);
}

static void leave_behind(jzi_work *work)
{
    jzi_job *job = jzi_container_of(work, jzi_job, work);
    if (job->finish != NULL) {
        job->finish(job);
    }
    (void)drop_result(job);
}

static const jzi_work_ops work_ops = {.run = run_job, .done = send_home, .left = leave_behind};

static jzx_err start_inline(jzi_worker *worker, jzi_jobs *jobs, jzi_job *job)
{
    jzx_err err = jzi_jobs_hold(jobs);
    if (err == JZX_OK) {
        job->state = INLINE;
        job->alarm.fire = run_inline;
        jzi_alarm_set(worker->alarms, &job->alarm, 0);
    }
    return err;
}

static jzx_err start_out(jzi_worker *worker, jzi_jobs *jobs, jzi_job *job)
{
    job->state = OUT;
    job->work.ops = &work_ops;
    job->errand.run = errand_of_pool;
    jzi_inbox_retain_helper(worker->inbox);
    jzx_err err = jzi_jobs_submit(jobs, &job->work);
    if (err != JZX_OK) {
        jzi_inbox_release_helper(worker->inbox);
    }
    return err;
}

jzx_err jzi_job_start(jzi_worker *worker, jzi_actor *owner, jzi_jobs *jobs, jzi_job *job)
{
    jzi_job_list *list = list_of(owner);
    uint64_t number = jzi_jobs_number(jobs);
    job->ref = number << MARK_BITS | mark_of(owner->id);
    job->jobs = jobs;
    job->inbox = worker->inbox;
    jzx_err err = jzi_job_has_threads(worker) ? start_out(worker, jobs, job)
                                              : start_inline(worker, jobs, job);
    if (err != JZX_OK) {
        return err;
    }
    /* The job may be over by now, but it cannot be home. */
    JZI_LIST_PUSH(&list->newest, job);
    list->first = list->first == 0 ? number : list->first;
    return JZX_OK;
}

/* True: the job will not run, and only the caller has it. */
static bool call_off(jzi_worker *worker, jzi_job *job)
{
    if (job->state == INLINE) {
        jzi_alarm_clear(worker->alarms, &job->alarm);
        jzi_jobs_let_go(job->jobs);
    } else if (job->state == OUT && jzi_jobs_withdraw(job->jobs, &job->work)) {
        jzi_inbox_release_helper(job->inbox);
    } else {
        return false;
    }
    unlink_job(job);
    return true;
}

jzx_err jzi_job_cancel(jzi_worker *worker, jzi_actor *actor, jzi_jobs *jobs, jzx_job_ref ref)
{
    const jzi_job_list *list = list_of(actor);
    uint64_t number = ref >> MARK_BITS;
    if (list == NULL || (ref & MARK_MASK) != mark_of(actor->id) || list->first == 0 ||
        number < list->first || number > jzi_jobs_last_number(jobs)) {
        return JZX_ERR_NO_SUCH_REF;
    }
    jzi_job *job = list->newest;
    while (job != NULL && job->ref > ref) {
        job = job->next;
    }
    if (job == NULL || job->ref != ref || !call_off(worker, job)) {
        return JZX_ERR_ALREADY;
    }
    dispose(worker, job);
    return JZX_OK;
}

/* The job stays where it is and comes to nothing. */
static void forsake(jzi_worker *worker, jzi_job *job)
{
    job->orphan = true;
    if (job->state == OUT) {
        JZI_LIST_PUSH(&worker->dispatcher->orphans, job);
    } else if (job->state == IN_HAND) {
        jzi_job_free(worker, job); /* after fork(2), in the middle of a message that does not end */
    }
}

/* An incarnation is over. Arguments are dropped last, when nothing here is half done. */
void jzi_job_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    (void)restarts;
    jzi_job_list *list = list_of(actor);
    jzi_job *called_off = NULL;
    actor->cold->jobs = NULL;
    while (list->newest != NULL) {
        jzi_job *job = list->newest;
        /* After fork(2) the lock of the pool may be held for ever. */
        bool out_of_reach = worker->dispatcher->abandoned && job->state == OUT;
        if (!out_of_reach && call_off(worker, job)) {
            JZI_LIST_PUSH(&called_off, job); /* the oldest comes first */
        } else {
            unlink_job(job);
            forsake(worker, job);
        }
    }
    jzi_free(&worker->alloc, list, sizeof *list);
    while (called_off != NULL) {
        jzi_job *job = called_off;
        unlink_job(job);
        dispose(worker, job);
    }
}

static bool claim_result(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    (void)worker;
    (void)actor;
    jzi_job *job = jzi_container_of(node, jzi_job, errand.node);
    job->state = IN_HAND;
    return !job->orphan;
}

static void result_is_handled(jzi_worker *worker, jzi_node *node)
{
    jzi_job *job = jzi_container_of(node, jzi_job, errand.node);
    unlink_job(job);
    jzi_job_free(worker, job);
}

static void result_is_revoked(jzi_worker *worker, jzi_node *node)
{
    jzi_job *job = jzi_container_of(node, jzi_job, errand.node);
    unlink_job(job);
    dispose(worker, job);
}

void jzi_job_init(jzi_worker *worker)
{
    worker->dispatcher->event_ops[JZI_EVENT_JOB] = (jzi_event_ops){
        .claim = claim_result, .done = result_is_handled, .revoke = result_is_revoked};
}

bool jzi_job_close(jzi_worker *worker, jzi_jobs **jobs)
{
    if (worker->dispatcher->abandoned) {
        return true;
    }
    bool quiet = jobs == NULL || jzi_jobs_close(*jobs, JZI_JOB_PATIENCE_NS);
    if (!quiet) {
        *jobs = NULL;
    }
    /* From the moment the inbox is closed, the thread that ran an orphan frees it. */
    while (worker->dispatcher->orphans != NULL) {
        unlink_job(worker->dispatcher->orphans);
    }
    return quiet;
}

/* After fork(2) there may be orphans that threads of the parent were at, and others that came home
 * while such a thread had not yet let go of the inbox. */
void jzi_job_deinit(jzi_worker *worker, jzi_jobs *jobs)
{
    while (worker->dispatcher->orphans != NULL) {
        jzi_job *job = worker->dispatcher->orphans;
        unlink_job(job);
        job->ran = false;
        dispose(worker, job);
    }
    if (worker->dispatcher->abandoned) {
        jzi_inbox_forget_helpers(worker->inbox);
        jzi_jobs_abandon(jobs);
    } else {
        jzi_jobs_destroy(jobs);
    }
}
