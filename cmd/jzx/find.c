#include "find.h"

#include "field.h"
#include "text.h"
#include "ui.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ANYBODY ULLONG_MAX
enum { GREETING_MS = 1500, PROGRAMS_MAX = 10000, PATH_BYTES = 4096 };

/* The pid that a socket's name begins with: "4711.sock", "4711-2.sock". 0: it is no such name, and
 * what else others put there, whose names root would print, is none of ours. */
static pid_t pid_of_name(const char *name)
{
    char *end;
    size_t len = strlen(name);
    if (len < 6 || strcmp(name + len - 5, ".sock") != 0 || *name < '1' || *name > '9' ||
        strspn(name, "0123456789-") != len - 5) {
        return 0;
    }
    errno = 0;
    long pid = strtol(name, &end, 10);
    return errno != 0 || (*end != '.' && *end != '-') || pid != (pid_t)pid ? 0 : (pid_t)pid;
}

/* A socket of ours, which no program serves, of a process that is gone. */
static bool is_stale(const char *path, pid_t pid)
{
    struct stat entry;
    return lstat(path, &entry) == 0 && entry.st_uid == geteuid() &&
           (S_ISSOCK(entry.st_mode) || S_ISLNK(entry.st_mode)) && kill(pid, 0) != 0 &&
           errno == ESRCH;
}

static bool is_known(const finding *f, const char *path)
{
    struct stat mine, other;
    if (stat(path, &mine) != 0) {
        return false;
    }
    for (size_t i = 0; i < f->count; i++) {
        if (stat(attach_path(f->programs[i].link), &other) == 0 && mine.st_dev == other.st_dev &&
            mine.st_ino == other.st_ino) {
            return true;
        }
    }
    return false;
}

static void add(finding *f, const char *path, pid_t pid, uid_t owner)
{
    if (f->count >= PROGRAMS_MAX || is_known(f, path)) {
        return;
    }
    attach *link = attach_connect(path);
    if (link == NULL) {
        return;
    }
    int error = attach_error(link);
    if (error == ECONNREFUSED || error == ENOENT || error == ENOTSOCK) {
        if (error != ENOTSOCK && is_stale(path, pid)) {
            (void)unlink(path);
        }
        attach_close(link);
        return;
    }
    if (error == 0 && attach_owner(link) != owner && attach_owner(link) != 0) {
        attach_close(link); /* a link to what another user serves */
        return;
    }
    found *programs = realloc(f->programs, (f->count + 1) * sizeof *programs);
    if (programs == NULL) {
        attach_close(link);
        return;
    }
    f->programs = programs;
    f->programs[f->count++] = (found){.link = link, .state = ATTACH_LOST, .pid = pid};
}

/* `owner` must be the owner of the directory: in /tmp any user can make one of that name. */
static void look_in(finding *f, const char *directory, uid_t owner)
{
    struct stat info;
    if (lstat(directory, &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != owner) {
        return;
    }
    DIR *dir = opendir(directory);
    if (dir == NULL) {
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[PATH_BYTES];
        pid_t pid = pid_of_name(entry->d_name);
        int len = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (pid > 0 && len > 0 && (size_t)len < sizeof path) {
            add(f, path, pid, owner);
        }
    }
    (void)closedir(dir);
}

/* Every directory PARENT/PREFIXnumberSUFFIX of the user with that number: `only` this one. Without
 * a suffix also PARENT/PREFIXnumber-anything. */
static void look_at_users(finding *f, const char *parent, const char *prefix, const char *suffix,
                          unsigned long long only)
{
    DIR *dir = opendir(parent);
    if (dir == NULL) {
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[PATH_BYTES];
        char *end;
        size_t len = strlen(prefix);
        if (strncmp(entry->d_name, prefix, len) != 0 || entry->d_name[len] < '0' ||
            entry->d_name[len] > '9') {
            continue;
        }
        unsigned long long uid = strtoull(entry->d_name + len, &end, 10);
        bool mine = only == ANYBODY || uid == only;
        bool named = *end == '\0' || (*end == '-' && *suffix == '\0'); /* the spare one */
        if (named && mine && uid == (uid_t)uid) {
            (void)snprintf(path, sizeof path, "%s/%s%s", parent, entry->d_name, suffix);
            look_in(f, path, (uid_t)uid);
        }
    }
    (void)closedir(dir);
}

static int by_pid(const void *left, const void *right)
{
    const found *a = left, *b = right;
    return a->pid != b->pid ? (a->pid < b->pid ? -1 : 1)
                            : strcmp(attach_path(a->link), attach_path(b->link));
}

static int left_of(const struct timespec *start)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t passed =
        (int64_t)(now.tv_sec - start->tv_sec) * 1000 + (now.tv_nsec - start->tv_nsec) / 1000000;
    return passed >= GREETING_MS ? 0 : GREETING_MS - (int)passed;
}

void find_all(finding *out)
{
    *out = (finding){0};
    char path[PATH_BYTES];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && *runtime == '/') {
        (void)snprintf(path, sizeof path, "%s/jzx", runtime);
        look_in(out, path, geteuid());
    }
    look_at_users(out, "/tmp", "jzx-", "", geteuid() == 0 ? ANYBODY : geteuid());
    if (geteuid() == 0) {
        look_at_users(out, "/run/user", "", "/jzx", ANYBODY);
    }
    /* All of them were connected to before: they greet at the same time. */
    struct timespec start;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t i = 0; i < out->count; i++) {
        found *program = &out->programs[i];
        program->state = attach_greet(program->link, left_of(&start));
        if (program->state == ATTACH_OK && attach_pid(program->link) > 0) {
            program->pid = attach_pid(program->link);
        }
    }
    if (out->count > 0) {
        qsort(out->programs, out->count, sizeof out->programs[0], by_pid);
    }
}

void find_free(finding *f)
{
    for (size_t i = 0; i < f->count; i++) {
        attach_close(f->programs[i].link);
    }
    free(f->programs);
    *f = (finding){0};
}

void find_warn(void)
{
    struct stat info;
    char path[PATH_BYTES];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    (void)snprintf(path, sizeof path, "/tmp/jzx-%u", (unsigned)geteuid());
    if ((runtime == NULL || *runtime != '/') && lstat(path, &info) == 0 &&
        (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())) {
        fprintf(stderr,
                "jzx: %s belongs to another user (uid %u), so programs of yours are in %s-XXXXXX\n"
                "instead, and are found there.\n",
                path, (unsigned)info.st_uid, path);
    }
}

static bool is_meant(const found *program, const char *what)
{
    char *end;
    if (program->state == ATTACH_OK &&
        strcmp(field_text(attach_greeting(program->link), "name"), what) == 0) {
        return true;
    }
    long pid = strtol(what, &end, 10);
    return *what != '\0' && *end == '\0' && pid == (long)program->pid;
}

/* The programs that are meant; `what` NULL: all. */
static void list(const finding *f, const char *what)
{
    for (size_t i = 0; i < f->count; i++) {
        const found *program = &f->programs[i];
        if (what != NULL && !is_meant(program, what)) {
            continue;
        }
        fprintf(stderr, "  %7d  ", (int)program->pid);
        text_cell(stderr, program->state == ATTACH_OK ? attach_name(program->link) : "(no answer)",
                  20);
        fputc(' ', stderr);
        text_put(stderr, attach_path(program->link));
        fputc('\n', stderr);
    }
}

static attach *none(int *out_status)
{
    *out_status = ui_fail("No Jazz program that can be looked into runs here. A program can after "
                          "jzx_control_start(), or when JZX_CONTROL=auto is in its environment.");
    return NULL;
}

/* Takes the connection of one out of the finding. */
static attach *take(finding *f, size_t which, int *out_status)
{
    found *program = &f->programs[which];
    if (program->state != ATTACH_OK) {
        *out_status = ui_fail("%s", attach_text(program->link));
        return NULL;
    }
    attach *link = program->link;
    program->link = NULL;
    return link;
}

static attach *choose(finding *f, const char *what, int *out_status)
{
    size_t which = 0, count = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (what == NULL || is_meant(&f->programs[i], what)) {
            which = i;
            count++;
        }
    }
    if (count == 1) {
        return take(f, which, out_status);
    }
    if (f->count == 0 && what == NULL) {
        return none(out_status);
    }
    if (count == 0) {
        *out_status = ui_fail("There is no program '%s' that can be looked into.%s", what,
                              f->count > 0 ? " These can:" : "");
        list(f, NULL);
        return NULL;
    }
    (void)ui_fail("%zu programs %s. Say which one, by -p and its pid, name or socket:", count,
                  what == NULL ? "can be looked into" : "have that name");
    list(f, what);
    *out_status = EXIT_USAGE;
    return NULL;
}

static attach *find_path(const char *path, int *out_status)
{
    attach *link = attach_connect(path);
    if (link == NULL) {
        *out_status = ui_fail("There is not enough memory.");
        return NULL;
    }
    if (attach_greet(link, ATTACH_PATIENCE_MS) != ATTACH_OK) {
        *out_status = ui_fail("%s", attach_text(link));
        attach_close(link);
        return NULL;
    }
    return link;
}

attach *find_one(const char *what, int *out_status)
{
    if (what != NULL && strchr(what, '/') != NULL) {
        return find_path(what, out_status);
    }
    finding f;
    find_all(&f);
    attach *link = choose(&f, what, out_status);
    find_free(&f);
    return link;
}
