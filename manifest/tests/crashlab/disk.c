#include "disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cl_disk_init(cl_disk *disk, cl_rules rules)
{
    memset(disk, 0, sizeof *disk);
    disk->rules = rules;
    disk->items = calloc(CL_ITEMS_MAX, sizeof *disk->items);
    if (!disk->items) {
        cl_refuse("no memory");
    }
}

void cl_disk_deinit(cl_disk *disk)
{
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        free(disk->inodes[i].bytes);
    }
    free(disk->items);
    memset(disk, 0, sizeof *disk);
}

static uint32_t inode_of(cl_disk *disk, uint64_t inode)
{
    for (uint32_t i = 0; i < disk->inode_count; i++) {
        if (disk->inodes[i].inode == inode) {
            return i;
        }
    }
    if (disk->inode_count == CL_INODES_MAX) {
        cl_refuse("too many files");
    }
    disk->inodes[disk->inode_count].inode = inode;
    return disk->inode_count++;
}

/* ---- what becomes durable */

static void inode_resize(cl_inode *inode, uint64_t len)
{
    if (len > inode->cap) {
        uint64_t cap = len > 2 * inode->cap ? len : 2 * inode->cap;
        inode->bytes = realloc(inode->bytes, cap);
        if (!inode->bytes) {
            cl_refuse("no memory");
        }
        inode->cap = cap;
    }
    if (len > inode->len) {
        memset(inode->bytes + inode->len, 0, len - inode->len);
    }
    inode->len = len;
}

static void inode_write(cl_inode *inode, uint64_t off, const unsigned char *data, uint32_t len)
{
    if (off + len > inode->len) {
        inode_resize(inode, off + len);
    }
    memcpy(inode->bytes + off, data, len);
}

uint32_t cl_disk_find(const cl_name *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i].name, name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void names_set(cl_name *names, uint32_t *count, const char *name, uint32_t inode)
{
    uint32_t at = cl_disk_find(names, *count, name);
    if (at == UINT32_MAX) {
        if (*count == CL_NAMES_MAX || strlen(name) >= CL_NAME_MAX) {
            cl_refuse("too many names, or too long a one");
        }
        at = (*count)++;
        memcpy(names[at].name, name, strlen(name) + 1);
    }
    names[at].inode = inode;
}

/* Only if it is that file: another may have the name by now. */
static void names_drop(cl_name *names, uint32_t *count, const char *name, uint32_t inode)
{
    uint32_t at = cl_disk_find(names, *count, name);
    if (at != UINT32_MAX && names[at].inode == inode) {
        names[at] = names[--*count];
    }
}

/* An operation may be there though one before it is not: a rename of a file whose first name was
 * never durable gives it its second. */
static void names_apply(cl_name *names, uint32_t *count, const cl_item *item)
{
    const char *name = (const char *)item->data;
    switch (item->op) {
    case CL_CREATE:
    case CL_LINK:
        names_set(names, count, name, item->inode);
        break;
    case CL_UNLINK:
        names_drop(names, count, name, item->inode);
        break;
    case CL_RENAME:
        names_drop(names, count, name, item->inode);
        names_set(names, count, name + strlen(name) + 1, item->inode);
        break;
    default:
        break;
    }
}

uint32_t cl_disk_names(const cl_disk *disk, const unsigned char *chosen, cl_name *out)
{
    uint32_t count = disk->name_count;
    memcpy(out, disk->names, count * sizeof *out);
    for (uint32_t i = 0; i < disk->item_count; i++) {
        if (chosen[i] && cl_item_is_name(&disk->items[i])) {
            names_apply(out, &count, &disk->items[i]);
        }
    }
    return count;
}

static void make_durable(cl_disk *disk, const cl_item *item)
{
    cl_inode *inode = &disk->inodes[item->inode];
    if (item->op == CL_WRITE) {
        inode_write(inode, item->off, item->data, item->len);
    } else if (item->op == CL_TRUNC) {
        inode_resize(inode, item->off);
    } else {
        names_apply(disk->names, &disk->name_count, item);
    }
    disk->version++;
}

/* ---- what is pending */

static void push(cl_disk *disk, cl_item item)
{
    item.minor = disk->inodes[item.inode].minor;
    if (disk->rules.instant) {
        make_durable(disk, &item);
        return;
    }
    if (disk->item_count == CL_ITEMS_MAX) {
        cl_refuse("too many writes without a sync");
    }
    disk->items[disk->item_count++] = item;
}

static void push_write(cl_disk *disk, uint32_t inode, const cl_entry *entry)
{
    const unsigned char *data = cl_entry_data(entry);
    uint64_t off = entry->off;
    for (uint32_t left = entry->len; left;) {
        uint32_t part = CL_PAGE - (uint32_t)(off % CL_PAGE);
        part = part < left ? part : left;
        push(disk,
             (cl_item){.op = CL_WRITE, .inode = inode, .off = off, .len = part, .data = data});
        data += part;
        off += part;
        left -= part;
    }
}

static void old_file(cl_disk *disk, uint32_t inode, const cl_entry *entry)
{
    const char *name = (const char *)cl_entry_data(entry);
    uint32_t head = (uint32_t)strlen(name) + 1;
    disk->inodes[inode].minor = cl_name_is_minor(name);
    inode_write(&disk->inodes[inode], 0, cl_entry_data(entry) + head, entry->len - head);
    names_set(disk->names, &disk->name_count, name, inode);
    disk->version++;
}

void cl_disk_begin(cl_disk *disk, const cl_entry *entry)
{
    if (entry->op == CL_MARK) {
        uint64_t *at = &disk->registers[entry->inode % CL_REGISTERS];
        *at = entry->off > *at ? entry->off : *at;
        return;
    }
    if (entry->op == CL_DIRSYNC || entry->op == CL_SYNC || entry->op == CL_NOTE) {
        return;
    }
    uint32_t inode = inode_of(disk, entry->inode);
    switch (entry->op) {
    case CL_FILE:
        old_file(disk, inode, entry);
        break;
    case CL_WRITE:
        push_write(disk, inode, entry);
        break;
    case CL_CREATE:
        disk->inodes[inode].minor = cl_name_is_minor((const char *)cl_entry_data(entry));
        push(disk, (cl_item){.op = CL_CREATE, .inode = inode, .data = cl_entry_data(entry)});
        break;
    default:
        push(disk, (cl_item){.op = (cl_op)entry->op,
                             .inode = inode,
                             .off = entry->off,
                             .data = cl_entry_data(entry)});
        break;
    }
}

/* ---- syncs */

/* Whether `entry`, a sync, makes this item durable. */
static bool covered(const cl_entry *entry, uint32_t inode, const cl_item *item)
{
    if (entry->op == CL_DIRSYNC) {
        return cl_item_is_name(item);
    }
    if (cl_item_is_name(item) || item->inode != inode) {
        return false;
    }
    if (entry->op == CL_SYNC) {
        return true;
    }
    /* Also what was written there before: it is the same page of the cache. */
    return item->op == CL_WRITE && item->off >= entry->off &&
           item->off + item->len <= entry->off + entry->len;
}

bool cl_entry_syncs(const cl_entry *entry)
{
    return entry->op == CL_SYNC || entry->op == CL_DIRSYNC ||
           (entry->op == CL_WRITE && entry->dsync);
}

static bool forgotten(const cl_rules *rules, const cl_entry *entry)
{
    switch (entry->op) {
    case CL_SYNC:
        return rules->no_data_sync;
    case CL_DIRSYNC:
        return rules->no_dir_sync;
    default:
        return rules->no_meta_sync;
    }
}

void cl_disk_end(cl_disk *disk, const cl_entry *entry)
{
    if (!cl_entry_syncs(entry) || forgotten(&disk->rules, entry)) {
        return;
    }
    uint32_t inode = entry->op == CL_DIRSYNC ? UINT32_MAX : inode_of(disk, entry->inode);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < disk->item_count; i++) {
        if (covered(entry, inode, &disk->items[i])) {
            make_durable(disk, &disk->items[i]);
        } else {
            disk->items[kept++] = disk->items[i];
        }
    }
    disk->item_count = kept;
}
