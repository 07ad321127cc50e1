/* Shared by the sources of family, and by nobody else. */
#ifndef JZI_FAMILY_STEPS_H
#define JZI_FAMILY_STEPS_H

#include "supervision/family.h"

#define JZI_NEWS_DUE 0x100u /* a backoff is over; besides JZI_NEWS_* */

/* What is the parent's, also if that is the root. */
jzi_life *jzi_family_life(const jzi_family *family);
/* Has the parent look at its family. */
void jzi_family_wake(jzi_family *family);
/* Whether its children stop one after the other. */
bool jzi_family_in_order(const jzi_family *family);
/* One step further with the children that go down and up together. */
void jzi_family_step(jzi_family *family);
/* A child failed, could not start, or ended by itself and is clean. */
void jzi_family_judge(jzi_child *child);
/* The same for those that had to wait until the supervisor, or a group, was up. */
void jzi_family_judge_all(jzi_family *family);
void jzi_family_order_end(jzi_child *child);
void jzi_family_start_when_due(jzi_child *child);
jzx_err jzi_family_spawn_child(jzi_child *child);

#endif
