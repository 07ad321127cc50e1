/* Jazz: supervised actors for C. This header includes what the tour (man 7 jzx) is about; programs
 * include the headers of what else they use by name, or jzx/all.h. */
#ifndef JZX_JZX_H
#define JZX_JZX_H

#include <jzx/actor.h>
#include <jzx/ask.h>
#include <jzx/dead_letter.h>
#include <jzx/io.h>
#include <jzx/lifecycle.h>
#include <jzx/loop.h>
#include <jzx/monitor.h>
#include <jzx/net.h>
#include <jzx/observe.h>
#include <jzx/sender.h>
#include <jzx/supervisor.h>
#include <jzx/timer.h>
#include <jzx/types.h>

#endif
