#include "model.h"

#include "stage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct builder {
    cl_model *model;
    const cl_reader *reader;
    cl_disk disk;
    cl_stage stage;
} builder;

static void add(cl_model *model, const cl_commit *commit)
{
    if (model->count == model->cap) {
        model->cap = model->cap ? 2 * model->cap : 256;
        model->commits = realloc(model->commits, model->cap * sizeof *model->commits);
        if (!model->commits) {
            abort();
        }
    }
    model->commits[model->count++] = *commit;
}

static bool put_on(builder *b)
{
    unsigned char none = 0;
    cl_state state = {.disk = &b->disk, .chosen = &none, .torn = UINT32_MAX};
    return cl_stage_set(&b->stage, &state);
}

/* A file that has its name before its first commit is not yet one. */
static bool look(builder *b, char why[256])
{
    if (!put_on(b)) {
        return true;
    }
    cl_commit commit = {.seq = 0};
    int rc = cl_raw_walk(b->stage.path, b->reader->counters, b->reader->row, &commit.seq,
                         &commit.digest);
    if (rc == 0) {
        add(b->model, &commit);
        return true;
    }
    if (b->model->count == 0) {
        return true;
    }
    (void)snprintf(why, 256, "commit %u of the log cannot be read: %s", b->model->count,
                   mdb_strerror(rc));
    return false;
}

static bool same_bytes(builder *b, const char *real, char why[256])
{
    uint32_t at = cl_disk_find(b->disk.names, b->disk.name_count, b->reader->main_name);
    const cl_inode *inode = at == UINT32_MAX ? NULL : &b->disk.inodes[b->disk.names[at].inode];
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    bool same = inode && size == (off_t)inode->len;
    unsigned char page[CL_PAGE];
    for (uint64_t off = 0; same && off < inode->len; off += CL_PAGE) {
        ssize_t got = pread(fd, page, sizeof page, (off_t)off);
        same = got > 0 && memcmp(page, inode->bytes + off, (size_t)got) == 0;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (!same) {
        (void)snprintf(why, 256, "the log does not lead to the bytes of %s", real);
    }
    return same;
}

static bool commits(const cl_entry *entry)
{
    return entry->op == CL_FILE || entry->op == CL_RENAME || entry->op == CL_LINK ||
           (entry->op == CL_WRITE && entry->dsync);
}

bool cl_model_build(cl_model *model, const cl_log *log, const cl_reader *reader,
                    const char *scratch, const char *real, char why[256])
{
    memset(model, 0, sizeof *model);
    if (log->full) {
        (void)snprintf(why, 256, "the log is too small");
        return false;
    }
    builder *b = calloc(1, sizeof *b);
    if (!b) {
        abort();
    }
    b->model = model;
    b->reader = reader;
    cl_disk_init(&b->disk, (cl_rules){.instant = true});
    cl_stage_init(&b->stage, scratch, reader->main_name);
    bool good = true;
    uint64_t at = 0;
    for (const cl_entry *e = cl_log_next(log, &at); e && good; e = cl_log_next(log, &at)) {
        cl_disk_begin(&b->disk, e);
        good = !commits(e) || look(b, why);
    }
    good = good && (!real || same_bytes(b, real, why));
    cl_stage_deinit(&b->stage);
    cl_disk_deinit(&b->disk);
    free(b);
    return good;
}

void cl_model_free(cl_model *model)
{
    free(model->commits);
    memset(model, 0, sizeof *model);
}

const cl_commit *cl_model_find(const cl_model *model, const cl_digest *digest)
{
    for (uint32_t i = model->count; i-- > 0;) {
        if (model->commits[i].digest.all == digest->all) {
            return &model->commits[i];
        }
    }
    return NULL;
}
