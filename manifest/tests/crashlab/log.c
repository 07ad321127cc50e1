#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

_Noreturn void cl_refuse(const char *what)
{
    if (errno) {
        fprintf(stderr, "crashlab: %s (%s)\n", what, strerror(errno));
    } else {
        fprintf(stderr, "crashlab: %s\n", what);
    }
    abort();
}

cl_log *cl_log_create(size_t cap)
{
    void *mem = mmap(NULL, sizeof(cl_log) + cap, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED) {
        cl_refuse("no memory for the log");
    }
    cl_log *log = mem;
    log->cap = cap;
    return log;
}

void cl_log_clear(cl_log *log)
{
    log->tail = 0;
    log->full = 0;
}

static const char log_magic[8] = "crashlg1";

void cl_log_save(const cl_log *log, const char *path, uint64_t seed)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(log_magic, sizeof log_magic, 1, file) != 1 ||
        fwrite(&seed, sizeof seed, 1, file) != 1 ||
        fwrite(log->bytes, 1, log->tail, file) != log->tail || fclose(file) != 0) {
        cl_refuse("cannot write the log");
    }
}

bool cl_log_load(cl_log *log, const char *path, uint64_t *out_seed)
{
    FILE *file = fopen(path, "rb");
    char magic[sizeof log_magic];
    cl_log_clear(log);
    bool good = file && fread(magic, sizeof magic, 1, file) == 1 &&
                memcmp(magic, log_magic, sizeof magic) == 0 &&
                fread(out_seed, sizeof *out_seed, 1, file) == 1;
    if (good) {
        log->tail = fread(log->bytes, 1, log->cap, file);
    }
    if (file) {
        (void)fclose(file);
    }
    return good;
}

const cl_entry *cl_log_next(const cl_log *log, uint64_t *at)
{
    if (*at >= log->tail) {
        return NULL;
    }
    const cl_entry *entry = (const cl_entry *)(const void *)(log->bytes + *at);
    *at += sizeof *entry + ((entry->len + 7u) & ~7u);
    return entry;
}
