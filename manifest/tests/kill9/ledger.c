/* Facts on disk. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t ledger_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int open_file(const char *dir, uint32_t client, int flags)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/client-%02u", dir, client);
    return open(path, flags | O_CLOEXEC, 0600);
}

int ledger_open(const char *dir, uint32_t client)
{
    int fd = open_file(dir, client, O_WRONLY | O_CREAT | O_APPEND);
    if (fd < 0) {
        fprintf(stderr, "kill9: no ledger in %s: %s\n", dir, strerror(errno));
        exit(2);
    }
    return fd;
}

void ledger_write(int fd, const fact *one)
{
    if (write(fd, one, sizeof *one) != (ssize_t)sizeof *one) {
        fprintf(stderr, "kill9: a fact could not be written: %s\n", strerror(errno));
        exit(2);
    }
}

void ledger_read(const char *dir, uint32_t client, uint64_t *offset, ledger_fn fn, void *arg)
{
    fact facts[256];
    int fd = open_file(dir, client, O_RDONLY);
    if (fd < 0) {
        return; /* it never came so far */
    }
    ssize_t got;
    while ((got = pread(fd, facts, sizeof facts, (off_t)*offset)) > 0) {
        size_t count = (size_t)got / sizeof facts[0];
        for (size_t i = 0; i < count; i++) {
            fn(arg, &facts[i]);
        }
        *offset += count * sizeof facts[0];
        if (count == 0) {
            fprintf(stderr, "kill9: a fact of client %u is torn\n", client);
            exit(2);
        }
    }
    close(fd);
}
