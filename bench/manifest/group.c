/* Group commit: one writer thread for many clients. */
#include "group.h"

#include "mfb.h"

static mfb_request *take_all(mfb_group *group)
{
    pthread_mutex_lock(&group->lock);
    while (group->first == NULL && !group->stopping) {
        pthread_cond_wait(&group->filled, &group->lock);
    }
    mfb_request *all = group->first;
    group->first = NULL;
    group->last = &group->first;
    pthread_mutex_unlock(&group->lock);
    return all;
}

static void *writer(void *arg)
{
    mfb_group *group = arg;
    const mfb_engine *engine = &group->engine;
    mfb_request *all;
    while ((all = take_all(group)) != NULL) {
        engine->begin(engine->arg);
        for (mfb_request *each = all; each != NULL; each = each->next) {
            engine->apply(engine->arg, each);
        }
        engine->commit(engine->arg);
        group->commits++;
        while (all != NULL) {
            /* Once woken, its owner may use it again. */
            mfb_request *next = all->next;
            sem_post(&all->done);
            all = next;
        }
    }
    return NULL;
}

void mfb_group_start(mfb_group *group, const mfb_engine *engine)
{
    *group = (mfb_group){.engine = *engine};
    group->last = &group->first;
    pthread_mutex_init(&group->lock, NULL);
    pthread_cond_init(&group->filled, NULL);
    if (pthread_create(&group->thread, NULL, writer, group) != 0) {
        bench_fail("no thread for the writer");
    }
}

void mfb_group_do(mfb_group *group, mfb_request *request)
{
    request->next = NULL;
    pthread_mutex_lock(&group->lock);
    bool wake = group->first == NULL;
    *group->last = request;
    group->last = &request->next;
    pthread_mutex_unlock(&group->lock);
    if (wake) {
        pthread_cond_signal(&group->filled);
    }
    while (sem_wait(&request->done) != 0) {
    }
}

void mfb_group_stop(mfb_group *group)
{
    pthread_mutex_lock(&group->lock);
    group->stopping = true;
    pthread_mutex_unlock(&group->lock);
    pthread_cond_signal(&group->filled);
    pthread_join(group->thread, NULL);
    pthread_cond_destroy(&group->filled);
    pthread_mutex_destroy(&group->lock);
}
