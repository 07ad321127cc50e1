#include "control/visit.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "os/thread.h"

#define SLICE_NS UINT64_C(5000000)

struct jzi_visit {
    jzi_errand errand; /* first */
    jzx_allocator alloc;
    size_t bytes;
    void (*run)(jzi_worker *worker, void *payload);
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool answered; /* under the lock, as refs */
    uint32_t refs; /* the visitor, and the dispatcher while it has it */
    _Alignas(16) unsigned char payload[];
};

jzi_visit *jzi_visit_make(const jzi_view *view, size_t payload_bytes,
                          void (*run)(jzi_worker *worker, void *payload))
{
    size_t bytes = sizeof(jzi_visit) + payload_bytes;
    jzi_visit *visit = jzi_alloc_zeroed(&view->alloc, bytes);
    if (visit != NULL) {
        visit->alloc = view->alloc;
        visit->bytes = bytes;
        visit->run = run;
        visit->refs = 1;
        jzi_mutex_init(&visit->lock);
        jzi_cond_init(&visit->told);
    }
    return visit;
}

void *jzi_visit_payload(jzi_visit *visit)
{
    return visit->payload;
}

void jzi_visit_drop(jzi_visit *visit)
{
    if (visit == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&visit->lock);
    bool last = --visit->refs == 0;
    (void)pthread_mutex_unlock(&visit->lock);
    if (last) {
        (void)pthread_cond_destroy(&visit->told);
        (void)pthread_mutex_destroy(&visit->lock);
        jzi_free(&visit->alloc, visit, visit->bytes);
    }
}

/* On the dispatcher's thread. */
static void arrive(jzi_worker *worker, jzi_errand *errand)
{
    jzi_visit *visit = jzi_container_of(errand, jzi_visit, errand);
    visit->run(worker, visit->payload);
    (void)pthread_mutex_lock(&visit->lock);
    visit->answered = true;
    (void)pthread_cond_signal(&visit->told);
    (void)pthread_mutex_unlock(&visit->lock);
    jzi_visit_drop(visit);
}

/* With what keeps the dispatcher: in a system its lock. */
static jzi_inbox *inbox_of(const jzi_view *view, uint32_t dispatcher)
{
    jzx_loop *loop = NULL;
    if (view->system == NULL) {
        loop = dispatcher == 0 ? view->loop : NULL;
    } else {
        loop = jzi_system_loop_at(view->system, dispatcher);
    }
    return loop == NULL ? NULL : loop->inbox;
}

bool jzi_visit_send(const jzi_view *view, jzi_visit *visit, uint32_t dispatcher)
{
    visit->errand.run = arrive;
    if (view->system != NULL) {
        (void)pthread_mutex_lock(&view->system->lock);
    }
    jzi_inbox *inbox = inbox_of(view, dispatcher);
    visit->refs = 2;
    bool sent = inbox != NULL && jzi_errand_post(inbox, &visit->errand);
    if (!sent) {
        visit->refs = 1;
    }
    if (view->system != NULL) {
        (void)pthread_mutex_unlock(&view->system->lock);
    }
    return sent;
}

bool jzi_visit_is_answered(jzi_visit *visit)
{
    (void)pthread_mutex_lock(&visit->lock);
    bool answered = visit->answered;
    (void)pthread_mutex_unlock(&visit->lock);
    return answered;
}

jzi_visit_end jzi_visit_go(const jzi_view *view, jzi_visit *visit, uint32_t dispatcher,
                           uint64_t timeout_ns, const _Atomic uint32_t *over)
{
    if (!jzi_visit_send(view, visit, dispatcher)) {
        return JZI_VISIT_GONE;
    }
    uint64_t end = jzi_clock_now_ns(NULL) + timeout_ns;
    (void)pthread_mutex_lock(&visit->lock);
    for (uint64_t now = jzi_clock_now_ns(NULL);
         !visit->answered && now < end &&
         (over == NULL || atomic_load_explicit(over, memory_order_relaxed) == 0);
         now = jzi_clock_now_ns(NULL)) {
        uint64_t left = end - now;
        jzi_cond_wait(&visit->told, &visit->lock, left < SLICE_NS ? left : SLICE_NS);
    }
    bool answered = visit->answered;
    (void)pthread_mutex_unlock(&visit->lock);
    return answered ? JZI_VISIT_ANSWERED : JZI_VISIT_SILENT;
}
