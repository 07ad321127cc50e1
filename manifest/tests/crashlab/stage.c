#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void cl_dir_clear(const char *dir, const char *keep)
{
    DIR *d = opendir(dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        if (e->d_type == DT_REG && !(keep && strcmp(e->d_name, keep) == 0)) {
            (void)unlinkat(dirfd(d), e->d_name, 0);
        }
    }
    if (d) {
        (void)closedir(d);
    }
}

void cl_file_copy(const char *from, const char *to)
{
    static unsigned char bytes[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (in < 0 || out < 0) {
        cl_refuse("copying a file");
    }
    for (ssize_t n; (n = read(in, bytes, sizeof bytes)) > 0;) {
        if (write(out, bytes, (size_t)n) != n) {
            cl_refuse("copying a file");
        }
    }
    (void)close(in);
    (void)close(out);
}

void cl_stage_init(cl_stage *stage, const char *dir, const char *main_name)
{
    memset(stage, 0, sizeof *stage);
    (void)snprintf(stage->dir, sizeof stage->dir, "%s", dir);
    (void)snprintf(stage->main_name, sizeof stage->main_name, "%s", main_name);
    (void)snprintf(stage->path, sizeof stage->path, "%s/%s", stage->dir, main_name);
    stage->fd = -1;
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        cl_refuse(dir);
    }
    cl_dir_clear(dir, NULL);
}

static void drop_main(cl_stage *stage)
{
    cl_watch(0, 0, NULL, NULL);
    if (stage->fd >= 0) {
        (void)close(stage->fd);
        (void)unlink(stage->path);
    }
    stage->fd = -1;
    stage->version = 0;
}

void cl_stage_deinit(cl_stage *stage)
{
    drop_main(stage);
    cl_dir_clear(stage->dir, NULL);
    (void)rmdir(stage->dir);
    free(stage->dirty);
    stage->dirty = NULL;
}

/* ---- which pages differ */

static void mark_dirty(void *arg, uint64_t off, uint64_t len)
{
    cl_stage *stage = arg;
    if (len > UINT64_MAX - CL_PAGE - off) {
        stage->version = 0; /* a truncation: everything is put back */
        return;
    }
    uint64_t end = (off + len + CL_PAGE - 1) / CL_PAGE;
    if (end > stage->dirty_cap) {
        uint64_t cap = 2 * end + 64;
        stage->dirty = realloc(stage->dirty, cap);
        if (!stage->dirty) {
            cl_refuse("pages");
        }
        memset(stage->dirty + stage->dirty_cap, 0, cap - stage->dirty_cap);
        stage->dirty_cap = cap;
    }
    for (uint64_t page = off / CL_PAGE; page < end; page++) {
        stage->dirty[page] = 1;
    }
    stage->dirty_end = end > stage->dirty_end ? end : stage->dirty_end;
}

static void put(int fd, uint64_t off, const unsigned char *data, uint64_t len)
{
    while (len) {
        ssize_t done = pwrite(fd, data, len, (off_t)off);
        if (done <= 0) {
            cl_refuse("writing a state");
        }
        data += done;
        off += (uint64_t)done;
        len -= (uint64_t)done;
    }
}

/* The durable bytes again, where the last state changed them. */
static void put_back(cl_stage *stage, const cl_inode *inode, uint64_t version)
{
    struct stat st;
    if (fstat(stage->fd, &st) != 0) {
        cl_refuse(stage->path);
    }
    bool whole = stage->version != version || (uint64_t)st.st_size < inode->len;
    if ((uint64_t)st.st_size != inode->len && ftruncate(stage->fd, (off_t)inode->len) != 0) {
        cl_refuse("resizing a state");
    }
    if (whole) {
        put(stage->fd, 0, inode->bytes, inode->len);
    }
    for (uint64_t page = 0; !whole && page < stage->dirty_end; page++) {
        uint64_t off = page * CL_PAGE;
        if (stage->dirty[page] && off < inode->len) {
            put(stage->fd, off, inode->bytes + off,
                inode->len - off < CL_PAGE ? inode->len - off : CL_PAGE);
        }
    }
    if (stage->dirty_end) {
        memset(stage->dirty, 0, stage->dirty_end);
    }
    stage->dirty_end = 0;
}

/* ---- putting a state on */

static void apply_items(int fd, const cl_state *state, uint32_t inode)
{
    for (uint32_t i = 0; i < state->disk->item_count; i++) {
        const cl_item *item = &state->disk->items[i];
        if (!state->chosen[i] || item->inode != inode) {
            continue;
        }
        if (item->op == CL_TRUNC && ftruncate(fd, (off_t)item->off) != 0) {
            cl_refuse("resizing a state");
        }
        if (item->op == CL_WRITE) {
            put(fd, item->off, item->data, i == state->torn ? state->keep : item->len);
        }
    }
}

/* Whether the file under its name is still the one we opened. */
static bool same_file(const cl_stage *stage)
{
    struct stat mine, there;
    return stage->fd >= 0 && fstat(stage->fd, &mine) == 0 && stat(stage->path, &there) == 0 &&
           mine.st_ino == there.st_ino && mine.st_nlink == 1;
}

static void set_main(cl_stage *stage, const cl_state *state, uint32_t inode)
{
    if (stage->inode != inode || !same_file(stage)) {
        drop_main(stage);
        (void)unlink(stage->path);
    }
    if (stage->fd < 0) {
        stage->fd = open(stage->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (stage->fd < 0) {
            cl_refuse(stage->path);
        }
        stage->inode = inode;
        struct stat st;
        (void)fstat(stage->fd, &st);
        cl_watch(st.st_dev, st.st_ino, mark_dirty, stage);
    }
    put_back(stage, &state->disk->inodes[inode], state->disk->version);
    apply_items(stage->fd, state, inode);
}

static void set_other(cl_stage *stage, const cl_state *state, const cl_name *name)
{
    char path[PATH_MAX + CL_NAME_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", stage->dir, name->name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        cl_refuse(path);
    }
    const cl_inode *inode = &state->disk->inodes[name->inode];
    put(fd, 0, inode->bytes, inode->len);
    apply_items(fd, state, name->inode);
    (void)close(fd);
}

bool cl_stage_set(cl_stage *stage, const cl_state *state)
{
    static cl_name names[CL_NAMES_MAX];
    uint32_t count = cl_disk_names(state->disk, state->chosen, names);
    cl_dir_clear(stage->dir, stage->main_name);
    bool there = false;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i].name, stage->main_name) == 0) {
            set_main(stage, state, names[i].inode);
            there = true;
        } else {
            set_other(stage, state, &names[i]);
        }
    }
    if (!there) {
        drop_main(stage);
        (void)unlink(stage->path);
    }
    stage->version = state->disk->version;
    return there;
}
