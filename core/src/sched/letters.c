/* A subscription is a record with its own node, so its notice cannot be refused, and waits at most
 * once. It is in the worker's list of feeds until it ends; a node that is in a lane or in hand then
 * keeps the record until it is out.
 *
 * In a system letters are made by all dispatchers. A dispatcher with feeds listens at the office:
 * another one that makes a letter sends the errand that each dispatcher has for this, unless the
 * errand is under way. Of its own letters a dispatcher knows without. */
#include "sched/letters.h"

#include "base/alloc.h"
#include "base/list.h"

typedef struct jzi_feed {
    jzi_node node;
    jzx_actor_id subscriber; /* 0: the feed is over, and freed when the node is out */
    uint64_t told;           /* letters up to here are no news */
    struct jzi_feed *next;
    struct jzi_feed **pprev;
    bool busy; /* the node is in a lane or in hand */
} jzi_feed;

/* An actor that is ending is told no more: it would hear of what it leaves behind, and for ever if
 * its answer is another letter. */
static void letters_tell(jzi_worker *worker, jzi_feed *feed)
{
    jzi_actor *actor = jzi_worker_find(worker, feed->subscriber);
    jzi_assert(actor != NULL);
    if ((actor->flags & JZI_ACTOR_ENDING) == 0) {
        feed->busy = true;
        jzi_worker_post_notice(worker, actor, &feed->node);
    }
}

static void tell_all(jzi_worker *worker)
{
    for (jzi_feed *feed = worker->dispatcher->feeds; feed != NULL; feed = feed->next) {
        if (!feed->busy) {
            letters_tell(worker, feed);
        }
    }
}

/* Other dispatchers made letters. A subscriber that was told of them since, or takes them in with
 * the notice that waits, needs no other one. */
static void others_wrote(jzi_worker *worker, jzi_errand *errand)
{
    (void)errand;
    uint64_t count = jzi_dead_letters_hear(&worker->dispatcher->dead_letters);
    for (jzi_feed *feed = worker->dispatcher->feeds; feed != NULL; feed = feed->next) {
        if (!feed->busy && feed->told < count) {
            letters_tell(worker, feed);
        }
    }
}

/* On the thread of the dispatcher that made the letter. */
static bool call_dispatcher(jzi_letter_reader *reader)
{
    jzi_dead_letters *letters = jzi_container_of(reader, jzi_dead_letters, reader);
    jzi_dispatcher *dispatcher = jzi_container_of(letters, jzi_dispatcher, dead_letters);
    return jzi_errand_post(dispatcher->letter_call.inbox, &dispatcher->letter_call.errand);
}

static uint64_t listen(jzi_worker *worker)
{
    jzi_dispatcher *dispatcher = worker->dispatcher;
    if (dispatcher->feeds == NULL) {
        dispatcher->letter_call.inbox = worker->inbox;
        dispatcher->letter_call.errand.run = others_wrote;
    }
    return jzi_dead_letters_listen(&dispatcher->dead_letters, call_dispatcher);
}

static bool letters_claim_notice(jzi_worker *worker, jzi_actor *actor, jzi_node *node)
{
    (void)actor;
    jzi_feed *feed = jzi_container_of(node, jzi_feed, node);
    if (feed->subscriber == JZX_NOBODY) {
        return false;
    }
    feed->told = node->msg.u64 = jzi_dead_letters_count(&worker->dispatcher->dead_letters);
    return true;
}

/* Letters that were made while the notice was in hand are news. */
static void letters_notice_is_handled(jzi_worker *worker, jzi_node *node)
{
    jzi_feed *feed = jzi_container_of(node, jzi_feed, node);
    feed->busy = false;
    if (feed->subscriber == JZX_NOBODY) {
        jzi_free(&worker->alloc, feed, sizeof *feed);
    } else if (feed->told < jzi_dead_letters_count(&worker->dispatcher->dead_letters)) {
        letters_tell(worker, feed);
    }
}

static void end_feed(jzi_worker *worker, jzi_feed *feed)
{
    jzi_actor *actor = jzi_worker_find(worker, feed->subscriber);
    jzi_assert(actor != NULL);
    actor->cold->feed = NULL;
    feed->subscriber = JZX_NOBODY;
    JZI_LIST_REMOVE(feed);
    if (worker->dispatcher->feeds == NULL) {
        worker->dispatcher->on_dead_letter = NULL;
        jzi_dead_letters_ignore(&worker->dispatcher->dead_letters);
    }
    if (!feed->busy) {
        jzi_free(&worker->alloc, feed, sizeof *feed);
    }
}

static void letters_notice_is_revoked(jzi_worker *worker, jzi_node *node)
{
    jzi_feed *feed = jzi_container_of(node, jzi_feed, node);
    feed->busy = false;
    if (feed->subscriber == JZX_NOBODY) {
        jzi_free(&worker->alloc, feed, sizeof *feed);
    }
}

void jzi_letters_init(jzi_worker *worker)
{
    worker->dispatcher->event_ops[JZI_EVENT_LETTERS] =
        (jzi_event_ops){.claim = letters_claim_notice,
                        .done = letters_notice_is_handled,
                        .revoke = letters_notice_is_revoked};
}

jzx_err jzi_letters_subscribe(jzi_worker *worker, jzi_actor *actor)
{
    jzi_cold *cold = jzi_worker_cold(worker, actor);
    if (cold == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    if (cold->feed != NULL) {
        return JZX_OK;
    }
    jzi_feed *feed = jzi_alloc_zeroed(&worker->alloc, sizeof *feed);
    if (feed == NULL) {
        return JZX_ERR_NO_MEMORY;
    }
    feed->node.ops = JZI_EVENT_LETTERS;
    feed->node.msg = (jzx_message){
        .tag = JZX_TAG_DEAD_LETTERS,
        .kind = JZX_KIND_NOTICE,
        JZI_MSG_FLAGS(JZX_MSG_VALUE | JZI_MSG_EVENT),
    };
    feed->subscriber = actor->id;
    feed->told = listen(worker);
    JZI_LIST_PUSH(&worker->dispatcher->feeds, feed);
    cold->feed = feed;
    worker->dispatcher->on_dead_letter = tell_all;
    return JZX_OK;
}

void jzi_letters_unsubscribe(jzi_worker *worker, jzi_actor *actor)
{
    if (actor->cold != NULL && actor->cold->feed != NULL) {
        end_feed(worker, actor->cold->feed);
    }
}

void jzi_letters_leave(jzi_worker *worker, jzi_actor *actor, bool restarts)
{
    (void)restarts;
    jzi_letters_unsubscribe(worker, actor);
}
