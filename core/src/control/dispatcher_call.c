#include "control/dispatcher_call.h"

#include "base/alloc.h"
#include "os/clock.h"
#include "os/thread.h"

#define SLICE_NS UINT64_C(5000000)

struct jzi_dispatcher_call {
    jzi_errand errand; /* first */
    jzx_allocator alloc;
    size_t bytes;
    void (*run)(jzi_worker *worker, void *payload);
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool answered; /* under the lock, as refs */
    uint32_t refs; /* the caller, and the dispatcher while it has it */
    _Alignas(16) unsigned char payload[];
};

jzi_dispatcher_call *jzi_dispatcher_call_make(const jzi_view *view, size_t payload_bytes,
                                              void (*run)(jzi_worker *worker, void *payload))
{
    size_t bytes = sizeof(jzi_dispatcher_call) + payload_bytes;
    jzi_dispatcher_call *call = jzi_alloc_zeroed(&view->alloc, bytes);
    if (call != NULL) {
        call->alloc = view->alloc;
        call->bytes = bytes;
        call->run = run;
        call->refs = 1;
        jzi_mutex_init(&call->lock);
        jzi_cond_init(&call->told);
    }
    return call;
}

void *jzi_dispatcher_call_payload(jzi_dispatcher_call *call)
{
    return call->payload;
}

void jzi_dispatcher_call_drop(jzi_dispatcher_call *call)
{
    if (call == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&call->lock);
    bool last = --call->refs == 0;
    (void)pthread_mutex_unlock(&call->lock);
    if (last) {
        (void)pthread_cond_destroy(&call->told);
        (void)pthread_mutex_destroy(&call->lock);
        jzi_free(&call->alloc, call, call->bytes);
    }
}

/* On the dispatcher's thread. */
static void dispatcher_call_arrive(jzi_worker *worker, jzi_errand *errand)
{
    jzi_dispatcher_call *call = jzi_container_of(errand, jzi_dispatcher_call, errand);
    call->run(worker, call->payload);
    (void)pthread_mutex_lock(&call->lock);
    call->answered = true;
    (void)pthread_cond_signal(&call->told);
    (void)pthread_mutex_unlock(&call->lock);
    jzi_dispatcher_call_drop(call);
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

bool jzi_dispatcher_call_send(const jzi_view *view, jzi_dispatcher_call *call, uint32_t dispatcher)
{
    call->errand.run = dispatcher_call_arrive;
    if (view->system != NULL) {
        (void)pthread_mutex_lock(&view->system->lock);
    }
    jzi_inbox *inbox = inbox_of(view, dispatcher);
    call->refs = 2;
    bool sent = inbox != NULL && jzi_errand_post(inbox, &call->errand);
    if (!sent) {
        call->refs = 1;
    }
    if (view->system != NULL) {
        (void)pthread_mutex_unlock(&view->system->lock);
    }
    return sent;
}

bool jzi_dispatcher_call_is_answered(jzi_dispatcher_call *call)
{
    (void)pthread_mutex_lock(&call->lock);
    bool answered = call->answered;
    (void)pthread_mutex_unlock(&call->lock);
    return answered;
}

jzi_dispatcher_call_end jzi_dispatcher_call_run(const jzi_view *view, jzi_dispatcher_call *call,
                                                uint32_t dispatcher, uint64_t timeout_ns,
                                                const _Atomic uint32_t *over)
{
    if (!jzi_dispatcher_call_send(view, call, dispatcher)) {
        return JZI_CALL_GONE;
    }
    uint64_t end = jzi_clock_now_ns(NULL) + timeout_ns;
    (void)pthread_mutex_lock(&call->lock);
    for (uint64_t now = jzi_clock_now_ns(NULL);
         !call->answered && now < end &&
         (over == NULL || atomic_load_explicit(over, memory_order_relaxed) == 0);
         now = jzi_clock_now_ns(NULL)) {
        uint64_t left = end - now;
        jzi_cond_wait(&call->told, &call->lock, left < SLICE_NS ? left : SLICE_NS);
    }
    bool answered = call->answered;
    (void)pthread_mutex_unlock(&call->lock);
    return answered ? JZI_CALL_ANSWERED : JZI_CALL_SILENT;
}
