/* Shared by the sources of supervisor_spec only. */
#ifndef JZI_SUPERVISOR_SPEC_STEPS_H
#define JZI_SUPERVISOR_SPEC_STEPS_H

#include "supervision/supervisor_spec.h"

#include "base/alloc.h"
#include "base/assert.h"

#define NS_PER_MS UINT64_C(1000000)

static inline const void *jzi_spec_child_at(const jzx_supervisor_init *init,
                                            const jzx_supervisor_sizes *sizes, size_t index)
{
    return (const unsigned char *)init->children + index * sizes->child;
}

/* What was checked before: cannot fail. */
static inline void jzi_spec_adopt(void *out, size_t known, const void *given, size_t given_size)
{
    jzx_err err = jzi_struct_adopt(out, known, given, given_size);
    jzi_assert(err == JZX_OK);
}

/* Copies of what was checked; NULL: no memory. The copies do not own their arguments yet: the
 * caller may still run out of memory elsewhere. */
jzi_supervisor_plan *jzi_spec_copy_supervisor(const jzx_allocator *alloc,
                                              const jzx_supervisor_init *given,
                                              const jzx_supervisor_sizes *sizes);
jzi_child_plan *jzi_spec_copy_child(const jzx_allocator *alloc, const void *given,
                                    const jzx_supervisor_sizes *sizes, const jzi_policy *policy);
void jzi_spec_own_argument(jzi_child_plan *plan);
void jzi_spec_own_arguments(jzi_supervisor_plan *plan);

#endif
