#include "dead_letter.h"

#include "base/alloc.h"
#include "base/assert.h"

static void lock(jzi_letter_office *office)
{
    (void)pthread_mutex_lock(&office->lock);
}
static void unlock(jzi_letter_office *office)
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
    lock(office);
    /* Each dispatcher reads the clock when it likes. What is later in the sequence was not earlier.
     */
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
    unlock(office);
}

void jzi_dead_letters_add(jzi_dead_letters *letters, jzx_dead_letter *letter)
{
    if (jzi_unlikely(letters->office != NULL)) {
        add_shared(letters->office, &letters->reader, letter);
        return;
    }
    letter->seq = ++letters->count;
    letters->ring[(letter->seq - 1) % letters->cap] = *letter;
}

static size_t read_ring(const jzi_dead_letters *letters, uint64_t *cursor, jzx_dead_letter *out,
                        size_t cap, uint64_t *out_lagged)
{
    uint64_t next = *cursor < letters->count ? *cursor : letters->count;
    uint64_t oldest = letters->count > letters->cap ? letters->count - letters->cap : 0;
    uint64_t lagged = next < oldest ? oldest - next : 0;
    next += lagged;
    size_t read = 0;
    while (read < cap && next < letters->count) {
        out[read++] = letters->ring[next++ % letters->cap];
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
    lock(office);
    size_t read = read_ring(&office->all, cursor, out, cap, out_lagged);
    unlock(office);
    return read;
}

uint64_t jzi_dead_letters_count(const jzi_dead_letters *letters)
{
    jzi_letter_office *office = letters->office;
    if (office == NULL) {
        return letters->count;
    }
    lock(office);
    uint64_t count = office->all.count;
    unlock(office);
    return count;
}

uint64_t jzi_dead_letters_listen(jzi_dead_letters *letters, bool (*call)(jzi_letter_reader *reader))
{
    jzi_letter_office *office = letters->office;
    jzi_letter_reader *self = &letters->reader;
    if (office == NULL) {
        return letters->count;
    }
    lock(office);
    if (self->pprev == NULL) {
        self->call = call;
        self->next = office->readers;
        self->pprev = &office->readers;
        if (self->next != NULL) {
            self->next->pprev = &self->next;
        }
        office->readers = self;
    }
    uint64_t count = office->all.count;
    unlock(office);
    return count;
}

uint64_t jzi_dead_letters_hear(jzi_dead_letters *letters)
{
    lock(letters->office);
    letters->reader.called = false;
    uint64_t count = letters->office->all.count;
    unlock(letters->office);
    return count;
}

void jzi_dead_letters_ignore(jzi_dead_letters *letters)
{
    jzi_letter_reader *self = &letters->reader;
    if (letters->office == NULL) {
        return;
    }
    lock(letters->office);
    if (self->pprev != NULL) {
        *self->pprev = self->next;
        if (self->next != NULL) {
            self->next->pprev = self->pprev;
        }
        self->pprev = NULL;
    }
    unlock(letters->office);
}
