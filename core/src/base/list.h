/* Lists whose links are members of what they link, so that nothing is allocated when an object is
 * put into one (R9), and any object leaves its list without a search.
 *
 * These are macros, because the links keep the type of the object: a walk is
 * `for (job *at = head; at != NULL; at = at->next)`, and a wrong list does not compile. Arguments
 * are used more than once, so they are names and members, not calls.
 *
 * A list has one pointer, its head. The object has `next` and `pprev`: the pointer that points to
 * it, which is the head or another object's `next`.
 *
 *     head -> [next|pprev] -> [next|pprev] -> NULL
 *       ^_____________|  ^__________|
 *
 * Invariants:
 *   I1  *object->pprev == object for every object of a list.
 *   I2  pprev is NULL after a removal. In a zeroed object it says: in no list. */
#ifndef JZI_LIST_H
#define JZI_LIST_H

/* Puts an object that is in no list in front. With `head` the place of another object's `next`, or
 * that of the last one, it goes behind that object. */
#define JZI_LIST_PUSH(head, item) JZI_LINKS_PUSH(head, item, next, pprev)

/* Takes an object out of its list. */
#define JZI_LIST_REMOVE(item) JZI_LINKS_REMOVE(item, next, pprev)

/* The same for objects that are in two lists, with the names of the members. */
#define JZI_LINKS_PUSH(head, item, next_link, pprev_link)                                          \
    do {                                                                                           \
        (item)->next_link = *(head);                                                               \
        (item)->pprev_link = (head);                                                               \
        if ((item)->next_link != NULL) {                                                           \
            (item)->next_link->pprev_link = &(item)->next_link;                                    \
        }                                                                                          \
        *(head) = (item);                                                                          \
    } while (0)

#define JZI_LINKS_REMOVE(item, next_link, pprev_link)                                              \
    do {                                                                                           \
        *(item)->pprev_link = (item)->next_link;                                                   \
        if ((item)->next_link != NULL) {                                                           \
            (item)->next_link->pprev_link = (item)->pprev_link;                                    \
        }                                                                                          \
        (item)->pprev_link = NULL;                                                                 \
    } while (0)

/* A queue is walked both ways and knows its `first` and `last`; its objects have `next` and `prev`,
 * both NULL in an object that is alone or in no queue. */
#define JZI_QUEUE_APPEND(queue, item)                                                              \
    do {                                                                                           \
        (item)->next = NULL;                                                                       \
        (item)->prev = (queue)->last;                                                              \
        *((queue)->last == NULL ? &(queue)->first : &(queue)->last->next) = (item);                \
        (queue)->last = (item);                                                                    \
    } while (0)

/* The links of the object stay as they were, for a walk that stands on it. */
#define JZI_QUEUE_REMOVE(queue, item)                                                              \
    do {                                                                                           \
        *((item)->prev == NULL ? &(queue)->first : &(item)->prev->next) = (item)->next;            \
        *((item)->next == NULL ? &(queue)->last : &(item)->next->prev) = (item)->prev;             \
    } while (0)

#endif
