#include "registry.h"

void jzi_registry_init(jzi_worker *worker)
{
    (void)worker;
}
