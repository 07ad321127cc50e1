/* Every public header of libjzx: for tests and for trying things out. Programs compile
 * faster, and say what they use, with jzx/jzx.h and a few headers by name. */
#ifndef JZX_ALL_H
#define JZX_ALL_H

#include <jzx/admin.h>
#include <jzx/behavior.h>
#include <jzx/blocking.h>
#include <jzx/breaker.h>
#include <jzx/bus.h>
#include <jzx/control.h>
#include <jzx/env.h>
#include <jzx/flow.h>
#include <jzx/fsm.h>
#include <jzx/guard.h>
#include <jzx/jzx.h>
#include <jzx/log.h>
#include <jzx/protocol.h>
#include <jzx/registry.h>
#include <jzx/retry.h>
#include <jzx/router.h>
#include <jzx/system.h>
#include <jzx/watchdog.h>

#endif
