/* Step 9: the sum over everything the tour did. */
#include "tour.h"

void step_conservation(tour *t)
{
    const jzx_counters *c = &t->total;
    tour_say(t,
             "Each loop counts every message where something happens to it. If the terms of\n"
             "accepted = handled + dead + redirected + revoked + queued + in hand do not add up,\n"
             "something was lost. Over the %u loops of this tour:",
             t->loops);
    tour_saw(t,
             c->accepted ==
                 c->handled + c->dead + c->redirected + c->revoked + c->queued + c->in_hand,
             "%s accepted", tour_count(c->accepted));
    tour_saw(t, c->handled > 0 && c->dead >= 4, "%s handled + %s dead + %s redirected + %s revoked",
             tour_count(c->handled), tour_count(c->dead), tour_count(c->redirected),
             tour_count(c->revoked));
    tour_saw(t, c->queued == 0 && c->in_hand == 0, "nothing left in %s mailboxes",
             tour_count(c->spawned));
    tour_saw(t, c->abandoned == 0, "no data that could not be released");
    tour_say(t, "jzx_loop_audit() walked every mailbox of every loop at its end and agrees.");
}
