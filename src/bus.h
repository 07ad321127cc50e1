/* The event bus: topics, rings, subscriptions. */
#ifndef JZI_BUS_H
#define JZI_BUS_H

#include "worker.h"

/* Installs the operations. */
void jzi_bus_init(jzi_worker *worker);

#endif
