/* Whether the file and the ledgers can both be true. */
#ifndef KILL9_JUDGE_H
#define KILL9_JUDGE_H

#include <jzx/manifest_store.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct judge judge;

judge *judge_create(const char *file, const char *dir);
void judge_destroy(judge *self);
/* Reads the ledgers on, checks the file as the victim left it, recovers it and looks at every job.
 * Returns how many things were wrong; each was printed, unless quiet. */
uint64_t judge_round(judge *self, bool quiet);
uint64_t judge_facts(const judge *self);
/* How often the interesting things happened, as text. */
void judge_tally(const judge *self, char *out, size_t cap);

#endif
