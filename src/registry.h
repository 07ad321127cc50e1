/* Names and groups: one locked table for a system. */
#ifndef JZI_REGISTRY_H
#define JZI_REGISTRY_H

#include "worker.h"

/* Installs the operations. */
void jzi_registry_init(jzi_worker *worker);

#endif
