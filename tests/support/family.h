/* A parent with a policy and its children, all of them puppets. */
#ifndef JZT_FAMILY_H
#define JZT_FAMILY_H

#include "puppet.h"

/* A parent p that gives the children a, b, c... it spawns in its init a policy. */
enum { FAMILY_MAX = 6 };
typedef struct family {
    puppet p;
    puppet child[FAMILY_MAX];
    jzx_supervisor_spec policy;
    uint32_t flags; /* of the children */
    size_t count;
} family;

/* Opened, started and quiet. */
void family_open(rig *r, family *f, const jzx_config *config, const jzx_supervisor_spec *policy,
                 size_t count, uint32_t flags);

#endif
