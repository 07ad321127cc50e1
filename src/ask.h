/* Asks: requests that are answered exactly once. */
#ifndef JZI_ASK_H
#define JZI_ASK_H

#include "worker.h"

/* Installs the operations. */
void jzi_ask_init(jzi_worker *worker);

#endif
