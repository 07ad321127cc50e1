/* Names for what events know by number. Actors lie in a table without chains: two that fall on the
 * same place take turns, which costs a look and nothing else. */
#include "base/alloc.h"
#include "control/flight.h"

#include <string.h>

jzi_names *jzi_names_open(const jzi_view *view)
{
    jzi_names *names = jzi_alloc_zeroed(&view->alloc, sizeof *names);
    if (names != NULL) {
        names->view = view;
        jzi_names_refresh(names);
    }
    return names;
}

void jzi_names_close(jzi_names *names)
{
    const jzx_allocator *alloc = &names->view->alloc;
    jzi_free(alloc, names->dispatchers, names->dispatcher_cap * sizeof *names->dispatchers);
    jzi_free(alloc, names, sizeof *names);
}

/* Without memory the ones that are known stay known. */
static void look_at_dispatchers(jzi_names *names)
{
    size_t there = jzi_peek_dispatchers(names->view, names->dispatchers, names->dispatcher_cap);
    if (there > names->dispatcher_cap) {
        size_t size = sizeof *names->dispatchers;
        void *more = jzi_realloc(&names->view->alloc, names->dispatchers,
                                 names->dispatcher_cap * size, there * size);
        if (more != NULL) {
            names->dispatchers = more;
            names->dispatcher_cap = there;
            there = jzi_peek_dispatchers(names->view, names->dispatchers, there);
        }
    }
    names->dispatcher_count = there < names->dispatcher_cap ? there : names->dispatcher_cap;
}

void jzi_names_refresh(jzi_names *names)
{
    look_at_dispatchers(names);
    for (size_t i = 0; i < JZI_NAMES; i++) {
        if (names->slots[i].name[0] == '\0') {
            names->slots[i].id = JZX_NOBODY;
        }
    }
}

static void look_up(const jzi_view *view, jzx_actor_id id, char name[48])
{
    jzi_actor_snapshot snapshot;
    jzi_failure failure;
    name[0] = '\0';
    if (jzi_peek_actor(view, id, &snapshot)) {
        memcpy(name, snapshot.name, sizeof snapshot.name);
    } else if (jzi_board_name(view->board, id, name)) {
        return;
    } else if (jzi_board_failures(view->board, id, &failure, 1) == 1) {
        memcpy(name, failure.name, sizeof failure.name);
    }
}

const char *jzi_names_actor(jzi_names *names, jzx_actor_id id)
{
    if (id == JZX_NOBODY) {
        return "";
    }
    /* Neighbours differ in the low bits only; an actor and its peer are often neighbours. */
    uint32_t at =
        (jzx_id_slot(id) + jzx_id_dispatcher(id) * 31u + jzx_id_generation(id) * 7u) % JZI_NAMES;
    if (names->slots[at].id != id) {
        look_up(names->view, id, names->slots[at].name);
        names->slots[at].id = id;
    }
    return names->slots[at].name;
}

const jzi_dispatcher_snapshot *jzi_names_dispatcher(const jzi_names *names, uint32_t index)
{
    for (size_t i = 0; i < names->dispatcher_count; i++) {
        if (names->dispatchers[i].index == index) {
            return &names->dispatchers[i];
        }
    }
    return NULL;
}
