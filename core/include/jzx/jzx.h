/* Jazz: supervised actors for C. This header includes the rest; man 7 jzx is the tour. */
#ifndef JZX_JZX_H
#define JZX_JZX_H

#include <jzx/actor.h>
#include <jzx/admin.h>
#include <jzx/ask.h>
#include <jzx/behavior.h>
#include <jzx/blocking.h>
#include <jzx/breaker.h>
#include <jzx/bus.h>
#include <jzx/control.h>
#include <jzx/dead_letter.h>
#include <jzx/flow.h>
#include <jzx/fsm.h>
#include <jzx/guard.h>
#include <jzx/io.h>
#include <jzx/lifecycle.h>
#include <jzx/log.h>
#include <jzx/loop.h>
#include <jzx/monitor.h>
#include <jzx/net.h>
#include <jzx/observe.h>
#include <jzx/protocol.h>
#include <jzx/registry.h>
#include <jzx/retry.h>
#include <jzx/router.h>
#include <jzx/sender.h>
#include <jzx/supervisor.h>
#include <jzx/system.h>
#include <jzx/timer.h>
#include <jzx/types.h>
#include <jzx/watchdog.h>

#endif
