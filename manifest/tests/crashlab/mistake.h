/* Mistakes of a program that are not in how its log is read: they are made in the file. */
#ifndef CL_MISTAKE_H
#define CL_MISTAKE_H

#include "engine.h"
#include "facts.h"

/* Makes of the file before a commit what it would be if records and indexes were two transactions
 * and the crash came between them. false: this crash is not at the end of a commit. */
bool cl_mistake_index_later(const cl_case *c);
/* Gives every job that was active before recovery its attempt back. */
void cl_mistake_no_attempts(const char *path, const cl_facts *before);

#endif
