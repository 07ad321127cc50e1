#include "actor/dead_letter.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/publish.h"

#include <stddef.h>
#include <string.h>

static void dead_letter_lock(jzi_letter_office *office)
{
    (void)pthread_mutex_lock(&office->lock);
}
static void dead_letter_unlock(jzi_letter_office *office)
{
    (void)pthread_mutex_unlock(&office->lock);
}

void jzi_letter_office_init(jzi_letter_office *office)
{
    *office = (jzi_letter_office){0};
    (void)pthread_mutex_init(&office->lock, NULL);
}

void jzi_letter_office_deinit(jzi_letter_office *office, const jzx_allocator *alloc)
{
    jzi_assert(office->readers == NULL);
    jzi_dead_letters_deinit(&office->all, alloc);
    (void)pthread_mutex_destroy(&office->lock);
}

jzx_err jzi_dead_letters_init(jzi_dead_letters *letters, const jzx_allocator *alloc, uint32_t cap)
{
    *letters = (jzi_dead_letters){.cap = cap};
    letters->ring = jzi_alloc(alloc, cap * sizeof *letters->ring);
    return letters->ring == NULL ? JZX_ERR_NO_MEMORY : JZX_OK;
}

jzx_err jzi_dead_letters_join(jzi_dead_letters *letters, jzi_letter_office *office,
                              const jzx_allocator *alloc, uint32_t cap)
{
    *letters = (jzi_dead_letters){.office = office};
    return office->all.ring != NULL ? JZX_OK : jzi_dead_letters_init(&office->all, alloc, cap);
}

void jzi_dead_letters_deinit(jzi_dead_letters *letters, const jzx_allocator *alloc)
{
    if (letters->office != NULL) {
        jzi_dead_letters_ignore(letters);
    }
    jzi_free(alloc, letters->ring, letters->cap * sizeof *letters->ring);
    *letters = (jzi_dead_letters){0};
}

static void add_shared(jzi_letter_office *office, const jzi_letter_reader *self,
                       jzx_dead_letter *letter)
{
    dead_letter_lock(office);
    /* Each dispatcher reads the clock when it likes. What is later in the sequence was not
     * earlier. */
    if (letter->time_ns < office->last_ns) {
        letter->time_ns = office->last_ns;
    }
    office->last_ns = letter->time_ns;
    jzi_dead_letters_add(&office->all, letter);
    for (jzi_letter_reader *reader = office->readers; reader != NULL; reader = reader->next) {
        if (reader != self && !reader->called) {
            reader->called = reader->call(reader);
        }
    }
    dead_letter_unlock(office);
}

/* Other threads may be reading the ring of a loop: by words, and the number first and last, as in
 * event_ring.c. */
enum { WORDS = sizeof(jzx_dead_letter) / 8 };
static void dead_letter_put(jzx_dead_letter *at, const jzx_dead_letter *letter)
{
    uint64_t words[WORDS];
    uint64_t *to = (uint64_t *)(void *)at;
    memcpy(words, letter, sizeof words);
    JZI_PUBLISH(to[0], 0);
    for (size_t i = 1; i < WORDS; i++) {
        JZI_PUBLISH_READY(to[i], words[i]);
    }
    JZI_PUBLISH_READY(to[0], words[0]);
}
/* False: the letter was overwritten meanwhile. */
static bool get(const jzx_dead_letter *at, uint64_t seq, jzx_dead_letter *out)
{
    uint64_t words[WORDS];
    const uint64_t *from = (const uint64_t *)(const void *)at;
    for (size_t i = 0; i < WORDS; i++) {
        words[i] = JZI_PEEK_READY(from[i]);
    }
    if (words[0] != seq || JZI_PEEK(from[0]) != seq) {
        return false;
    }
    memcpy(out, words, sizeof *out);
    return true;
}
_Static_assert(sizeof(jzx_dead_letter) % 8 == 0 && offsetof(jzx_dead_letter, seq) == 0,
               "words, the number first");

void jzi_dead_letters_add(jzi_dead_letters *letters, jzx_dead_letter *letter)
{
    if (jzi_unlikely(letters->office != NULL)) {
        add_shared(letters->office, &letters->reader, letter);
        return;
    }
    letter->seq = letters->count + 1;
    dead_letter_put(&letters->ring[letters->count % letters->cap], letter);
    JZI_PUBLISH_READY(letters->count, letter->seq);
}

static size_t read_ring(const jzi_dead_letters *letters, uint64_t *cursor, jzx_dead_letter *out,
                        size_t cap, uint64_t *out_lagged)
{
    uint64_t count = JZI_PEEK_READY(letters->count);
    uint64_t next = *cursor < count ? *cursor : count;
    uint64_t oldest = count > letters->cap ? count - letters->cap : 0;
    uint64_t lagged = next < oldest ? oldest - next : 0;
    next += lagged;
    size_t read = 0;
    for (; read < cap && next < count; next++) {
        bool there = get(&letters->ring[next % letters->cap], next + 1, &out[read]);
        read += there;
        lagged += !there;
    }
    *cursor = next;
    if (out_lagged != NULL) {
        *out_lagged = lagged;
    }
    return read;
}

size_t jzi_dead_letters_read(const jzi_dead_letters *letters, uint64_t *cursor,
                             jzx_dead_letter *out, size_t cap, uint64_t *out_lagged)
{
    jzi_letter_office *office = letters->office;
    if (office == NULL) {
        return read_ring(letters, cursor, out, cap, out_lagged);
    }
    dead_letter_lock(office);
    size_t read = read_ring(&office->all, cursor, out, cap, out_lagged);
    dead_letter_unlock(office);
    return read;
}

uint64_t jzi_dead_letters_count(const jzi_dead_letters *letters)
{
    jzi_letter_office *office = letters->office;
    if (office == NULL) {
        return letters->count;
    }
    dead_letter_lock(office);
    uint64_t count = office->all.count;
    dead_letter_unlock(office);
    return count;
}

uint64_t jzi_dead_letters_listen(jzi_dead_letters *letters, bool (*call)(jzi_letter_reader *reader))
{
    jzi_letter_office *office = letters->office;
    jzi_letter_reader *self = &letters->reader;
    if (office == NULL) {
        return letters->count;
    }
    dead_letter_lock(office);
    if (self->pprev == NULL) {
        self->call = call;
        JZI_LIST_PUSH(&office->readers, self);
    }
    uint64_t count = office->all.count;
    dead_letter_unlock(office);
    return count;
}

uint64_t jzi_dead_letters_hear(jzi_dead_letters *letters)
{
    dead_letter_lock(letters->office);
    letters->reader.called = false;
    uint64_t count = letters->office->all.count;
    dead_letter_unlock(letters->office);
    return count;
}

void jzi_dead_letters_ignore(jzi_dead_letters *letters)
{
    jzi_letter_reader *self = &letters->reader;
    if (letters->office == NULL) {
        return;
    }
    dead_letter_lock(letters->office);
    if (self->pprev != NULL) {
        JZI_LIST_REMOVE(self);
    }
    dead_letter_unlock(letters->office);
}
