/* Shared by the sources of room, and by no other file. */
#ifndef JZI_ROOM_STEPS_H
#define JZI_ROOM_STEPS_H

#include "sched/room.h"

/* Of a request between dispatchers each side has its own fields, and the notice is the target's
 * until it is sent. */
typedef struct jzi_room {
    jzi_node node;
    jzx_room_notice notice;
    jzx_actor_id waiter;   /* 0: ended or ending; free the record when the node is out */
    struct jzi_room *next; /* in the waiter's list */
    struct jzi_room **pprev;
    bool waiting; /* for an answer; else the node is in the waiter's lane */
    bool far;     /* the target is in another dispatcher: part of a jzi_room_far */
    /* The target's side. */
    bool queued; /* in its queue */
    bool told;   /* counted in its `told` */
    struct jzi_room *after;
} jzi_room;

typedef struct jzi_room_far {
    jzi_room room;
    jzi_errand ask;
    jzi_errand tell;
    jzi_errand over;
    jzi_inbox *there;             /* the target's dispatcher; NULL: not asked */
    jzi_inbox *back;              /* the waiter's */
    struct jzi_room_wait *thread; /* instead of an actor, a thread waits; see room_wait.c */
    _Atomic uint32_t shares;
    /* The target's side: without memory a question comes again, and `over` may get ahead of it. */
    bool asked;
    bool withdrawn;
} jzi_room_far;
void jzi_room_far_init(jzi_room_far *far);
void jzi_room_far_end(const jzx_allocator *alloc, jzi_room_far *far, uint32_t count);
/* A thread's: tells the thread. False: that has gone already. */
bool jzi_room_wake(jzi_room_far *far);
void jzi_room_wait_free(const jzx_allocator *alloc, jzi_room_far *far);

/* The waiter's side. */
void jzi_room_link(jzi_room *room, jzi_actor *waiter, jzx_actor_id target);
/* The answer of `room` goes into the waiter's lane. */
void jzi_room_post(jzi_worker *worker, jzi_room *room);

/* The target's side: an answer at once or a place in its queue. The target has a cold part. */
void jzi_room_queue(jzi_worker *worker, jzi_actor *target, jzi_room *room);
void jzi_room_unqueue(jzi_worker *worker, jzi_room *room);
void jzi_room_answer(jzi_worker *worker, jzi_room *room, uint32_t free_slots, jzx_err err);
/* The notice is out: its slot is no longer promised, and the next ones may be told. */
void jzi_room_settled(jzi_worker *worker, jzx_actor_id target, bool told);

/* The target is in another dispatcher. */
jzx_err jzi_room_request_far(jzi_worker *worker, jzi_actor *waiter, jzx_actor_id target);
/* Sends the answer to the waiter. */
void jzi_room_tell(jzi_worker *worker, jzi_room *room);
/* The request is over on the waiter's side: its notice is out, or it is withdrawn. */
void jzi_room_over(jzi_worker *worker, jzi_room *room);

#endif
