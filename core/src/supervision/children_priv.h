/* Shared by the sources of children only. */
#ifndef JZI_CHILDREN_PRIV_H
#define JZI_CHILDREN_PRIV_H

#include "supervision/children.h"

#define JZI_CHILD_EVENT_DUE 0x100u /* a backoff is over; besides JZI_CHILD_EVENT_* */

/* The parent; not of the root's children. */
jzi_actor *jzi_children_self(const jzi_children *children);
/* The parent's life, also if the parent is the root. */
jzi_life *jzi_children_life(const jzi_children *children);
/* Has the parent look at its children. */
void jzi_children_wake(jzi_children *children);
/* Whether the children stop one after the other. */
bool jzi_children_in_order(const jzi_children *children);
/* One step further with the children that go down and up together. */
void jzi_children_step(jzi_children *children);
/* A child failed, could not start, or ended by itself and is clean. */
void jzi_child_judge(jzi_child *child);
/* The same for children that had to wait until the supervisor, or a group, was up. */
void jzi_children_judge_all(jzi_children *children);
void jzi_child_order_end(jzi_child *child);
void jzi_child_start_when_due(jzi_child *child);
jzx_err jzi_child_spawn(jzi_child *child);

#endif
