/* `actors`: one look at all of them, then the best `limit` of those that pass the filters. Keys are
 * 64 bits; a heap keeps the best, the worst of them on top, so that what is not shown is not
 * sorted. */
#include "control/server.h"

#include <jzx/lifecycle.h>

#include "base/alloc.h"

#include <string.h>

enum { LIMIT_DEFAULT = 1000, LIMIT_MAX = 20000, ROW_BYTES_MAX = 1024 };
#define NONE UINT32_MAX

typedef enum sort {
    BY_MAILBOX,
    BY_RATE,
    BY_CPU,
    BY_RESTARTS,
    BY_MEMORY,
    BY_DEAD,
    BY_UPTIME,
    BY_NAME,
    BY_ID,
    BY_TREE,
    BY_HANDLED,
    BY_STATE,
    BY_DISPATCHER,
    SORTS
} sort;
static const char *const sort_names[SORTS] = {
    "mailbox", "rate", "cpu",  "restarts", "memory", "dead",      "uptime",
    "name",    "id",   "tree", "handled",  "state",  "dispatcher"};

/* One that passed the filters. */
typedef struct entry {
    uint64_t key; /* the lower comes first */
    uint32_t at;  /* in server->snapshots */
    uint32_t depth;
} entry;

typedef struct question {
    jzi_connection *connection;
    jzi_server *server;
    uint32_t sort;
    bool reverse;
    size_t limit;
    size_t offset;
    const char *filter;
    uint32_t state; /* NONE: any */
    bool by_dispatcher;
    bool dispatchers[256]; /* by index */
    jzx_actor_id under;
    uint32_t depth; /* NONE: any */

    uint64_t now_ns;
    uint64_t since_ns; /* of the base; 0: there is none */
    const jzi_seen_list *base;
    size_t base_at; /* where the walk through it is */
    uint32_t *done; /* by place in snapshots: messages since the base; NULL: there is no base */
    entry *entries;
    size_t count;
    size_t cap;
    size_t matched;
} question;

/* Asking. */

static bool read_dispatcher(question *ask, jzi_request *request)
{
    jzi_dispatcher_snapshot all[JZX_DISPATCHERS_MAX];
    const char *name = jzi_request_text(request, "dispatcher");
    if (name == NULL) {
        return true;
    }
    size_t count = jzi_peek_dispatchers(&ask->server->control->view, all, JZX_DISPATCHERS_MAX);
    for (size_t i = 0; i < count && i < JZX_DISPATCHERS_MAX; i++) {
        if (strcmp(all[i].name, name) == 0) {
            ask->by_dispatcher = ask->dispatchers[all[i].index & 0xFFu] = true;
        }
    }
    return ask->by_dispatcher || jzi_refuse(&ask->connection->client, "NO_SUCH_DISPATCHER",
                                            "There is no dispatcher %.48s.", name);
}

static bool read_sort(question *ask, jzi_request *request)
{
    const char *name = jzi_request_text(request, "sort");
    ask->sort = BY_ID;
    if (name == NULL) {
        return true;
    }
    for (ask->sort = 0; ask->sort < SORTS; ask->sort++) {
        if (strcmp(sort_names[ask->sort], name) == 0) {
            return true;
        }
    }
    return jzi_refuse(&ask->connection->client, "BAD_REQUEST", "sort: there is no order %.40s.",
                      name);
}

static bool read_state(question *ask, jzi_request *request)
{
    const char *name = jzi_request_text(request, "state");
    ask->state = NONE;
    for (uint32_t i = 0; name != NULL && i <= JZX_STATE_TERMINATED; i++) {
        if (strcmp(jzx_state_name(i), name) == 0) {
            ask->state = i;
        }
    }
    return name == NULL || ask->state != NONE ||
           jzi_refuse(&ask->connection->client, "BAD_REQUEST", "state: there is no state %.40s.",
                      name);
}

static bool read_question(question *ask, jzi_request *request)
{
    ask->limit = (size_t)jzi_request_u64(request, "limit", LIMIT_DEFAULT, LIMIT_MAX);
    ask->offset = (size_t)jzi_request_u64(request, "offset", 0, UINT32_MAX);
    ask->depth = (uint32_t)jzi_request_u64(request, "depth", NONE, NONE);
    ask->reverse = jzi_request_bool(request, "reverse", false);
    ask->filter = jzi_request_text(request, "filter");
    if (ask->filter != NULL && ask->filter[0] == '\0') {
        ask->filter = NULL;
    }
    return read_sort(ask, request) && read_state(ask, request) && read_dispatcher(ask, request) &&
           (!jzi_request_has(request, "under") ||
            jzi_request_actor(&ask->connection->client, request, "under", &ask->under));
}

/* Since the base. Both looks are in the same order. */
static void count_done(question *ask)
{
    const jzi_server *server = ask->server;
    size_t base = 0;
    for (size_t i = 0; i < server->snapshot_count; i++) {
        const jzi_actor_snapshot *snapshot = &server->snapshots[i];
        uint32_t index = jzx_id_index(snapshot->id);
        while (base < ask->base->count && jzx_id_index(ask->base->seen[base].id) < index) {
            base++;
        }
        /* One that was not there began with nothing done. */
        bool known = base < ask->base->count && ask->base->seen[base].id == snapshot->id;
        ask->done[i] = jzi_snapshot_done(snapshot) - (known ? ask->base->seen[base].done : 0);
    }
}

static uint32_t samples_of(const question *ask, jzx_actor_id id)
{
    return jzi_samples_of(&ask->connection->before, id) + jzi_samples_of(&ask->connection->now, id);
}

/* Filters. */

static bool has_part(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static void write_hex(jzx_actor_id id, char out[17])
{
    char digits[17];
    size_t at = 16;
    digits[16] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[id & 0xFu];
        id >>= 4;
    } while (id > 0);
    memcpy(out, digits + at, 17 - at);
}

static bool passes(const question *ask, const jzi_actor_snapshot *snapshot)
{
    if (ask->state != NONE && snapshot->state != ask->state) {
        return false;
    }
    if (ask->by_dispatcher && !ask->dispatchers[jzx_id_dispatcher(snapshot->id)]) {
        return false;
    }
    if (ask->filter == NULL || has_part(snapshot->name, ask->filter)) {
        return true;
    }
    char id[17];
    write_hex(snapshot->id, id);
    return has_part(id, ask->filter);
}

/* Order. */

static uint64_t name_key(const char *name)
{
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++) {
        key = key << 8 | (unsigned char)*name;
        name += *name != '\0';
    }
    return key == 0 ? UINT64_MAX : key; /* those without one come last */
}

/* The larger first; of equal ones the one with the larger second number. */
static uint64_t larger_first(uint32_t first, uint32_t second)
{
    return (uint64_t)(UINT32_MAX - first) << 32 | (UINT32_MAX - second);
}

/* Among equals those that keep the program busy come first: with empty mailboxes, or without a
 * restart, an order by id would hide them. */
static uint64_t key_of(const question *ask, const jzi_actor_snapshot *snapshot, size_t at)
{
    uint32_t done = ask->done == NULL ? 0 : ask->done[at];
    switch ((sort)ask->sort) {
    case BY_MAILBOX:
        return larger_first(snapshot->mailbox, done);
    case BY_RATE:
        return larger_first(done, snapshot->mailbox);
    case BY_CPU:
        return larger_first(samples_of(ask, snapshot->id), done);
    case BY_RESTARTS:
        return larger_first(snapshot->incarnation, done);
    case BY_MEMORY:
        return larger_first(snapshot->memory, done);
    case BY_DEAD:
        return larger_first(snapshot->dead, done);
    case BY_UPTIME:
        return snapshot->since_ns == 0 ? UINT64_MAX : snapshot->since_ns;
    case BY_NAME:
        return name_key(snapshot->name);
    case BY_HANDLED:
        return UINT32_MAX - jzi_snapshot_handled(snapshot);
    case BY_STATE:
        return snapshot->state;
    case BY_DISPATCHER:
        return jzx_id_dispatcher(snapshot->id);
    default:
        return snapshot->id;
    }
}

/* Whether a comes before b. */
static bool is_before(const question *ask, const entry *a, const entry *b)
{
    if (a->key != b->key) {
        return (a->key < b->key) != ask->reverse;
    }
    const jzi_actor_snapshot *left = &ask->server->snapshots[a->at];
    const jzi_actor_snapshot *right = &ask->server->snapshots[b->at];
    int names = ask->sort == BY_NAME ? strcmp(left->name, right->name) : 0;
    return (names != 0 ? names < 0 : left->id < right->id) != ask->reverse;
}

/* In the heap no entry comes before the one above it. */
static void sift_down(const question *ask, size_t at, size_t count)
{
    entry moved = ask->entries[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && is_before(ask, &ask->entries[child], &ask->entries[child + 1])) {
            child++;
        }
        if (!is_before(ask, &moved, &ask->entries[child])) {
            break;
        }
        ask->entries[at] = ask->entries[child];
        at = child;
    }
    ask->entries[at] = moved;
}

static void sift_up(const question *ask, size_t at)
{
    entry moved = ask->entries[at];
    while (at > 0 && is_before(ask, &ask->entries[(at - 1) / 2], &moved)) {
        ask->entries[at] = ask->entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    ask->entries[at] = moved;
}

static void consider(question *ask, size_t at, uint32_t depth)
{
    const jzi_actor_snapshot *snapshot = &ask->server->snapshots[at];
    if (!passes(ask, snapshot)) {
        return;
    }
    entry mine = {.key = key_of(ask, snapshot, at), .at = (uint32_t)at, .depth = depth};
    ask->matched++;
    if (ask->sort == BY_TREE) { /* in their order already */
        if (ask->count < ask->cap) {
            ask->entries[ask->count++] = mine;
        }
    } else if (ask->count < ask->cap) {
        ask->entries[ask->count] = mine;
        sift_up(ask, ask->count++);
    } else if (ask->cap > 0 && is_before(ask, &mine, &ask->entries[0])) {
        ask->entries[0] = mine;
        sift_down(ask, 0, ask->count);
    }
}

static void put_in_order(question *ask)
{
    for (size_t left = ask->count; ask->sort != BY_TREE && left > 1; left--) {
        entry last = ask->entries[left - 1];
        ask->entries[left - 1] = ask->entries[0];
        ask->entries[0] = last;
        sift_down(ask, 0, left - 1);
    }
}

/* The tree. */

/* Which actor is whose child, by place in snapshots; siblings in the order of their slots. */
typedef struct family_tree {
    uint32_t *parent; /* NONE: the root, or an actor that went during the look */
    uint32_t *first;  /* child */
    uint32_t *next;   /* sibling */
    uint32_t root;
    size_t count;
} family_tree;

static void grow_tree(const jzi_server *server, family_tree *tree)
{
    jzx_actor_id last_id = JZX_NOBODY; /* siblings are often neighbours */
    uint32_t last_at = NONE;
    tree->root = NONE;
    memset(tree->first, 0xFF, tree->count * sizeof *tree->first);
    for (size_t i = tree->count; i-- > 0;) {
        jzx_actor_id id = server->snapshots[i].parent;
        if (id != last_id) {
            size_t found = id == JZX_NOBODY ? SIZE_MAX : jzi_server_find(server, id);
            last_id = id;
            last_at = found == SIZE_MAX ? NONE : (uint32_t)found;
        }
        uint32_t *head = last_at == NONE ? &tree->root : &tree->first[last_at];
        tree->parent[i] = last_at;
        tree->next[i] = *head;
        *head = (uint32_t)i;
    }
}

/* Parents before their children. */
static void walk_tree(question *ask, const family_tree *tree, uint32_t start, bool alone)
{
    uint32_t at = start;
    uint32_t depth = 0;
    while (at != NONE) {
        consider(ask, at, depth);
        if (tree->first[at] != NONE && depth < ask->depth) {
            at = tree->first[at];
            depth++;
            continue;
        }
        while (at != NONE && (depth > 0 || !alone) && tree->next[at] == NONE) {
            at = depth == 0 ? NONE : tree->parent[at];
            depth -= depth > 0;
        }
        at = at == NONE || (depth == 0 && alone) ? NONE : tree->next[at];
    }
}

static bool look_at_tree(question *ask)
{
    const jzx_allocator *alloc = jzi_server_alloc(ask->server);
    size_t count = ask->server->snapshot_count;
    size_t bytes = 3 * (count + 1) * sizeof(uint32_t);
    uint32_t *memory = jzi_alloc(alloc, bytes);
    if (memory == NULL) {
        return jzi_refuse_err(&ask->connection->client, JZX_ERR_NO_MEMORY);
    }
    family_tree tree = {.parent = memory,
                        .first = memory + count + 1,
                        .next = memory + 2 * (count + 1),
                        .count = count};
    grow_tree(ask->server, &tree);
    if (ask->under == JZX_NOBODY) {
        walk_tree(ask, &tree, tree.root, false);
    } else {
        size_t top = jzi_server_find(ask->server, ask->under);
        if (top != SIZE_MAX) {
            walk_tree(ask, &tree, (uint32_t)top, true);
        }
    }
    jzi_free(alloc, memory, bytes);
    return true;
}

static bool look_at_all(question *ask)
{
    for (size_t i = 0; i < ask->server->snapshot_count; i++) {
        consider(ask, i, NONE);
    }
    return true;
}

/* Answering. */

/* From the root, by the same look. */
static uint32_t actors_depth_of(const jzi_server *server, const jzi_actor_snapshot *snapshot)
{
    uint32_t depth = 0;
    while (snapshot->parent != JZX_NOBODY && depth < NONE - 1) {
        size_t parent = jzi_server_find(server, snapshot->parent);
        if (parent == SIZE_MAX || depth > server->snapshot_count) {
            break;
        }
        snapshot = &server->snapshots[parent];
        depth++;
    }
    return depth;
}

static void write_entry(const question *ask, const entry *one, const char *dispatcher)
{
    const jzi_actor_snapshot *snapshot = &ask->server->snapshots[one->at];
    const jzi_connection *connection = ask->connection;
    uint32_t looks = connection->before.looks + connection->now.looks;
    double since_s = (double)ask->since_ns / 1e9;
    bool known = ask->done != NULL;
    jzi_row row = {
        .snapshot = snapshot,
        .dispatcher = dispatcher,
        .depth = one->depth == NONE ? actors_depth_of(ask->server, snapshot) : one->depth,
        .rate = known ? ask->done[one->at] / since_s : JZI_UNKNOWN,
        .cpu = known && looks > 0 ? (double)samples_of(ask, snapshot->id) / looks : JZI_UNKNOWN,
        .now_ns = ask->now_ns,
        .running = jzi_server_runs(ask->server, snapshot->id),
    };
    jzi_write_row(&ask->connection->client.out, NULL, &row);
}

static void write_answer(question *ask)
{
    jzi_client *client = &ask->connection->client;
    jzi_json *out = &client->out;
    jzi_dispatcher_snapshot all[JZX_DISPATCHERS_MAX];
    const char *names[256] = {0};
    size_t count = jzi_peek_dispatchers(&client->control->view, all, JZX_DISPATCHERS_MAX);
    for (size_t i = 0; i < count && i < JZX_DISPATCHERS_MAX; i++) {
        names[all[i].index & 0xFFu] = all[i].name;
    }
    jzi_server_snapshot_workers(ask->server);
    jzi_json_u64(out, "total", ask->server->snapshot_count);
    jzi_json_u64(out, "matched", ask->matched);
    jzi_json_u64(out, "took_us", (jzi_control_now_ns(client->control) - ask->now_ns) / 1000u);
    if (ask->done != NULL) {
        jzi_json_u64(out, "since_ms", ask->since_ns / 1000000u);
    } else {
        jzi_json_null(out, "since_ms");
    }
    jzi_json_open(out, "actors", '[');
    for (size_t i = ask->offset; i < ask->count; i++) {
        if (out->len - ask->connection->written > JZI_AHEAD_MAX - ROW_BYTES_MAX) {
            break;
        }
        const entry *one = &ask->entries[i];
        const char *name = names[jzx_id_dispatcher(ask->server->snapshots[one->at].id)];
        write_entry(ask, one, name);
    }
    jzi_json_close(out, ']');
}

/* The look is taken. Makes room for what comes of it. */
static bool actors_prepare(question *ask)
{
    const jzx_allocator *alloc = jzi_server_alloc(ask->server);
    size_t all = ask->server->snapshot_count;
    size_t wanted = ask->offset + ask->limit;
    ask->cap = wanted < all ? wanted : all;
    ask->entries = jzi_alloc(alloc, (ask->cap + 1) * sizeof *ask->entries);
    if (ask->base->time_ns != 0) {
        ask->since_ns = ask->now_ns - ask->base->time_ns;
        ask->done = jzi_alloc(alloc, (all + 1) * sizeof *ask->done);
    }
    if (ask->done != NULL) {
        count_done(ask);
    }
    return ask->entries != NULL || jzi_refuse_err(&ask->connection->client, JZX_ERR_NO_MEMORY);
}

bool jzi_op_actors(jzi_client *client, jzi_request *request)
{
    jzi_connection *connection = (jzi_connection *)client;
    jzi_server *server = client->control->server;
    const jzx_allocator *alloc = jzi_server_alloc(server);
    question ask = {.connection = connection, .server = server, .base = &connection->base};
    if (!read_question(&ask, request)) {
        return false;
    }
    if (request->wrong != NULL) {
        return true; /* and refused */
    }
    ask.now_ns = jzi_control_now_ns(client->control);
    if (!jzi_server_snapshot_actors(server)) {
        return jzi_refuse_err(client, JZX_ERR_NO_MEMORY);
    }
    jzi_connection_samples_actors(connection, ask.now_ns);
    bool good = actors_prepare(&ask);
    bool tree = ask.sort == BY_TREE || ask.under != JZX_NOBODY;
    good = good && (tree ? look_at_tree(&ask) : look_at_all(&ask));
    if (good) {
        put_in_order(&ask);
        write_answer(&ask);
    }
    jzi_free(alloc, ask.entries, ask.entries == NULL ? 0 : (ask.cap + 1) * sizeof *ask.entries);
    jzi_free(alloc, ask.done,
             ask.done == NULL ? 0 : (server->snapshot_count + 1) * sizeof *ask.done);
    return good;
}
