/* Events are kept until the end: they come from several workers, nearly but not quite in the order
 * of time, and an arrow may only be drawn when both of its ends are there. */
#include "perfetto.h"

#include "field.h"

#include <stdlib.h>
#include <string.h>

typedef enum role { ROLE_HANDLED, ROLE_SENT, ROLE_MARK } role;

typedef struct event {
    uint64_t t_ns, dur_ns;
    uint64_t stamp;
    int64_t detail, value;
    uint64_t flow;  /* the arrow's number; 0: none */
    uint32_t order; /* in which it came */
    uint32_t track, peer;
    uint32_t tag;
    uint32_t what, kind, result, correlation; /* words */
    role role;
} event;

/* Texts by number. */
typedef struct texts {
    json_t *numbers; /* text -> number */
    char **escaped;  /* number -> JSON, with its quotes; owned */
    size_t count, cap;
} texts;

struct perfetto {
    event *events;
    size_t count, cap;
    texts words;
    texts ids;    /* of actors: their numbers are the tracks */
    char **names; /* of tracks, as JSON; owned; NULL: none known */
    size_t names_cap;
};

perfetto *perfetto_create(void)
{
    perfetto *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->words.numbers = json_object();
    p->ids.numbers = json_object();
    if (p->words.numbers == NULL || p->ids.numbers == NULL) {
        perfetto_destroy(p);
        return NULL;
    }
    return p;
}

static void texts_free(texts *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->escaped[i]);
    }
    free(t->escaped);
    json_decref(t->numbers);
}

void perfetto_destroy(perfetto *p)
{
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->names_cap; i++) {
        free(p->names[i]);
    }
    free(p->names);
    texts_free(&p->words);
    texts_free(&p->ids);
    free(p->events);
    free(p);
}

static char *escape(const char *text)
{
    json_t *string = json_string(text);
    char *json = json_dumps(string, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    json_decref(string);
    return json;
}

/* The number of a text. False: no memory. */
static bool number_of(texts *t, const char *text, uint32_t *out)
{
    const json_t *known = json_object_get(t->numbers, text);
    if (known != NULL) {
        *out = (uint32_t)json_integer_value(known);
        return true;
    }
    if (t->count == t->cap) {
        size_t cap = t->cap == 0 ? 64 : t->cap * 2;
        char **grown = realloc(t->escaped, cap * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        t->escaped = grown;
        t->cap = cap;
    }
    char *escaped = escape(text);
    if (escaped == NULL ||
        json_object_set_new(t->numbers, text, json_integer((json_int_t)t->count)) != 0) {
        free(escaped);
        return false;
    }
    t->escaped[t->count] = escaped;
    *out = (uint32_t)t->count++;
    return true;
}

/* The track of an actor, with its name as soon as one is known. */
static bool track_of(perfetto *p, const char *id, const char *name, uint32_t *out)
{
    if (!number_of(&p->ids, id, out)) {
        return false;
    }
    if (*name == '\0' || (*out < p->names_cap && p->names[*out] != NULL)) {
        return true;
    }
    if (*out >= p->names_cap) {
        size_t cap = p->ids.cap;
        char **grown = realloc(p->names, cap * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        memset(grown + p->names_cap, 0, (cap - p->names_cap) * sizeof *grown);
        p->names = grown;
        p->names_cap = cap;
    }
    p->names[*out] = escape(name);
    return p->names[*out] != NULL;
}

static bool perfetto_make_room(perfetto *p)
{
    if (p->count < p->cap) {
        return true;
    }
    size_t cap = p->cap == 0 ? 1024 : p->cap * 2;
    event *grown = realloc(p->events, cap * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    p->events = grown;
    p->cap = cap;
    return true;
}

bool perfetto_add(perfetto *p, const json_t *json)
{
    const char *what = field_text(json, "what");
    event e = {.t_ns = field_u64(json, "t_ns"),
               .dur_ns = field_u64(json, "dur_ns"),
               .stamp = field_u64(json, "stamp"),
               .detail = field_i64(json, "detail"),
               .value = field_i64(json, "value"),
               .order = (uint32_t)p->count,
               .tag = (uint32_t)field_u64(json, "tag"),
               .role = strcmp(what, "handled") == 0 ? ROLE_HANDLED
                       : strcmp(what, "sent") == 0  ? ROLE_SENT
                                                    : ROLE_MARK};
    if (p->count >= PERFETTO_EVENTS_MAX || !perfetto_make_room(p) ||
        !track_of(p, field_text(json, "actor"), field_text(json, "name"), &e.track) ||
        !track_of(p, field_text(json, "peer"), field_text(json, "peer_name"), &e.peer) ||
        !number_of(&p->words, what, &e.what) ||
        !number_of(&p->words, field_text(json, "kind"), &e.kind) ||
        !number_of(&p->words, field_text(json, "result"), &e.result) ||
        !number_of(&p->words, field_text(json, "correlation"), &e.correlation)) {
        return false;
    }
    p->events[p->count++] = e;
    return true;
}

size_t perfetto_count(const perfetto *p)
{
    return p->count;
}

static int by_time(const void *left, const void *right)
{
    const event *a = left, *b = right;
    if (a->t_ns != b->t_ns) {
        return a->t_ns < b->t_ns ? -1 : 1;
    }
    /* What is sent at the beginning of a slice is in it. */
    if (a->role != b->role) {
        return a->role < b->role ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

/* An actor does one thing at a time: a slice begins no earlier than the one before it ended. The
 * clock's grain may say otherwise. */
static void untangle(perfetto *p, uint64_t *busy_until)
{
    for (size_t i = 0; i < p->count; i++) {
        event *e = &p->events[i];
        e->order = (uint32_t)i; /* those that come to begin at the same time stay in this order */
        if (e->role != ROLE_HANDLED) {
            continue;
        }
        uint64_t end = e->t_ns + e->dur_ns;
        if (e->t_ns < busy_until[e->track]) {
            e->t_ns = busy_until[e->track];
            e->dur_ns = end > e->t_ns ? end - e->t_ns : 0;
        }
        busy_until[e->track] = e->t_ns + e->dur_ns;
    }
    qsort(p->events, p->count, sizeof *p->events, by_time);
}

/* The actor that a message went to, and its stamp there: the same for both ends of an arrow. */
static uint32_t receiver_of(const event *e)
{
    return e->role == ROLE_SENT ? e->peer : e->track;
}

static int by_message(const void *left, const void *right)
{
    const event *a = *(event *const *)left, *b = *(event *const *)right;
    if (receiver_of(a) != receiver_of(b)) {
        return receiver_of(a) < receiver_of(b) ? -1 : 1;
    }
    if (a->stamp != b->stamp) {
        return a->stamp < b->stamp ? -1 : 1;
    }
    return a->role != b->role ? (a->role == ROLE_SENT ? -1 : 1) : 0;
}

/* Numbers the arrows whose both ends are there, and that go forward in time. */
static bool match_flows(perfetto *p)
{
    event **ends = calloc(p->count + 1, sizeof *ends);
    size_t count = 0;
    uint64_t flows = 0;
    if (ends == NULL) {
        return false;
    }
    for (size_t i = 0; i < p->count; i++) {
        if (p->events[i].role != ROLE_MARK) {
            ends[count++] = &p->events[i];
        }
    }
    qsort(ends, count, sizeof(event *), by_message);
    for (size_t i = 0; i + 1 < count; i++) {
        event *from = ends[i], *to = ends[i + 1];
        if (from->role == ROLE_SENT && to->role == ROLE_HANDLED && from->stamp == to->stamp &&
            receiver_of(from) == receiver_of(to) && from->kind == to->kind &&
            from->t_ns <= to->t_ns) {
            from->flow = to->flow = ++flows;
        }
    }
    free(ends);
    return true;
}

/* What people call a track. */
static const char *label_of(const perfetto *p, uint32_t track)
{
    const char *name = track < p->names_cap ? p->names[track] : NULL;
    const char *label = name != NULL ? name : p->ids.escaped[track];
    return strcmp(label, "\"\"") == 0 ? "\"outside\"" : label;
}

typedef struct writer {
    const perfetto *p;
    FILE *out;
    int pid;
} writer;

/* What all events begin with. Times are microseconds with three digits after the point. */
static void put_start(const writer *w, char phase, uint32_t track, uint64_t t_ns)
{
    fprintf(w->out, ",\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%u,\"ts\":%llu.%03u", phase, w->pid,
            track + 1, (unsigned long long)(t_ns / 1000), (unsigned)(t_ns % 1000));
}

static void put_slice(const writer *w, const event *e)
{
    const texts *words = &w->p->words;
    put_start(w, 'X', e->track, e->t_ns);
    fprintf(w->out,
            ",\"dur\":%llu.%03u,\"cat\":\"message\",\"name\":\"tag %u\",\"args\":{\"tag\":%u,"
            "\"kind\":%s,\"from\":%s,\"result\":%s,\"stamp\":%llu,\"correlation\":%s}}",
            (unsigned long long)(e->dur_ns / 1000), (unsigned)(e->dur_ns % 1000), e->tag, e->tag,
            words->escaped[e->kind], label_of(w->p, e->peer), words->escaped[e->result],
            (unsigned long long)e->stamp, words->escaped[e->correlation]);
    if (e->flow != 0) {
        put_start(w, 'f', e->track, e->t_ns);
        fprintf(w->out, ",\"bp\":\"e\",\"cat\":\"message\",\"name\":\"message\",\"id\":%llu}",
                (unsigned long long)e->flow);
    }
}

/* An arrow begins in a slice: one of its own if the sender's is not there. */
static void put_sent(const writer *w, const event *e, bool in_slice)
{
    if (!in_slice) {
        put_start(w, 'X', e->track, e->t_ns);
        fprintf(w->out,
                ",\"dur\":0,\"cat\":\"message\",\"name\":\"send tag %u\",\"args\":{\"tag\":%u,"
                "\"to\":%s,\"stamp\":%llu,\"correlation\":%s}}",
                e->tag, e->tag, label_of(w->p, e->peer), (unsigned long long)e->stamp,
                w->p->words.escaped[e->correlation]);
    }
    if (e->flow != 0) {
        put_start(w, 's', e->track, e->t_ns);
        fprintf(w->out, ",\"cat\":\"message\",\"name\":\"message\",\"id\":%llu}",
                (unsigned long long)e->flow);
    }
}

static void put_mark(const writer *w, const event *e)
{
    put_start(w, 'i', e->track, e->t_ns);
    fprintf(w->out,
            ",\"s\":\"t\",\"cat\":\"life\",\"name\":%s,\"args\":{\"tag\":%u,\"peer\":%s,"
            "\"detail\":%lld,\"value\":%lld}}",
            w->p->words.escaped[e->what], e->tag, label_of(w->p, e->peer), (long long)e->detail,
            (long long)e->value);
}

/* Names of the process and of the tracks that have events. */
static void put_names(const writer *w, const char *program, const bool *used)
{
    char *name = escape(program);
    fprintf(w->out,
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
            "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":%s}}",
            w->pid, name == NULL ? "\"?\"" : name);
    free(name);
    for (size_t i = 0; i < w->p->ids.count; i++) {
        if (used[i]) {
            fprintf(w->out,
                    ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%zu,\"name\":\"thread_name\",\"args\":{"
                    "\"name\":%s}}",
                    w->pid, i + 1, label_of(w->p, (uint32_t)i));
        }
    }
}

static void put_events(const writer *w, uint64_t *busy_until)
{
    for (size_t i = 0; i < w->p->count; i++) {
        const event *e = &w->p->events[i];
        if (e->role == ROLE_HANDLED) {
            put_slice(w, e);
            busy_until[e->track] = e->t_ns + e->dur_ns;
        } else if (e->role == ROLE_SENT) {
            put_sent(w, e, e->t_ns <= busy_until[e->track]);
        } else {
            put_mark(w, e);
        }
    }
    fputs("\n]}\n", w->out);
}

bool perfetto_write(perfetto *p, FILE *out, pid_t pid, const char *program)
{
    size_t tracks = p->ids.count + 1;
    uint64_t *busy_until = calloc(tracks, sizeof *busy_until);
    bool *used = calloc(tracks, sizeof *used);
    bool fine = busy_until != NULL && used != NULL;
    if (fine && p->count > 0) {
        qsort(p->events, p->count, sizeof *p->events, by_time);
        untangle(p, busy_until);
        memset(busy_until, 0, tracks * sizeof *busy_until);
    }
    if (fine && match_flows(p)) {
        writer w = {p, out, (int)pid};
        for (size_t i = 0; i < p->count; i++) {
            used[p->events[i].track] = true;
        }
        put_names(&w, program, used);
        put_events(&w, busy_until);
    } else {
        fine = false;
    }
    free(busy_until);
    free(used);
    return fine && ferror(out) == 0;
}
