#include "bus.h"

void jzi_bus_init(jzi_worker *worker)
{
    (void)worker;
}
