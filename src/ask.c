#include "ask.h"

void jzi_ask_init(jzi_worker *worker)
{
    (void)worker;
}
