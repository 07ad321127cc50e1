/* What the loop needs to know of its senders. */
#ifndef JZI_SENDER_H
#define JZI_SENDER_H

#include <jzx/sender.h>

#include "post.h"

/* Messages that other threads were told are accepted. Thread: any. */
uint64_t jzi_senders_sent(jzi_post *post);

#endif
