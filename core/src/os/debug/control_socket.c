#define _GNU_SOURCE
#include "os/debug/control_socket.h"

#include "base/alloc.h"
#include "os/error.h"
#include "os/thread.h"
#include "os/wakeup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 128, LINES_MAX = 1024, LOCK_TRIES = 100 };
#define REFUSED_NS UINT64_C(50000000)

static jzx_err refusal(void)
{
    return errno == EMFILE || errno == ENFILE ? JZX_ERR_NO_FDS
           : errno == ENOMEM                  ? JZX_ERR_NO_MEMORY
                                              : JZX_ERR_IO;
}

static char *copy_text(const jzx_allocator *alloc, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = jzi_alloc(alloc, bytes);
    if (copy == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(copy, text, bytes);
    return copy;
}

static void free_text(const jzx_allocator *alloc, char *text)
{
    jzi_free(alloc, text, text == NULL ? 0 : strlen(text) + 1);
}

/* Descriptors. A child of fork(2) must not keep them: while it lives, clients of a program that is
 * gone would not be hung up on, and its socket would look served. So the child closes what is noted
 * here, and nothing is opened, closed or noted while a fork is under way. */

enum { NOTED_MAX = 65536 }; /* a descriptor above is not noted */
static pthread_mutex_t noted_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t noted[NOTED_MAX / 64];
static int noted_max = -1; /* the highest there ever was */

static bool is_noted(int fd)
{
    return fd >= 0 && fd < NOTED_MAX && (noted[fd / 64] >> (fd % 64) & 1u) != 0;
}

static void note_open(int fd)
{
    if (fd >= 0 && fd < NOTED_MAX) {
        noted[fd / 64] |= UINT64_C(1) << (fd % 64);
        noted_max = fd > noted_max ? fd : noted_max;
    }
}

/* In a child the number may be another file's by now: only a noted one is closed. */
static void close_noted(int fd)
{
    (void)pthread_mutex_lock(&noted_lock);
    if (is_noted(fd)) {
        noted[fd / 64] &= ~(UINT64_C(1) << (fd % 64));
        (void)close(fd);
    } else if (fd >= NOTED_MAX) {
        (void)close(fd);
    }
    (void)pthread_mutex_unlock(&noted_lock);
}

static void before_fork(void)
{
    (void)pthread_mutex_lock(&noted_lock);
}
static void after_fork(void)
{
    (void)pthread_mutex_unlock(&noted_lock);
}
static void in_child(void)
{
    for (int fd = 0; fd <= noted_max; fd++) {
        if (is_noted(fd)) {
            (void)close(fd);
        }
    }
    memset(noted, 0, sizeof noted);
    noted_max = -1;
    (void)pthread_mutex_unlock(&noted_lock);
}

static int watch_forks_result;
static void watch_forks(void)
{
    watch_forks_result = pthread_atfork(before_fork, after_fork, in_child);
}

static int open_socket(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    if (watch_forks_result != 0) {
        errno = watch_forks_result;
        return -1;
    }
    (void)pthread_mutex_lock(&noted_lock);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    note_open(fd);
    (void)pthread_mutex_unlock(&noted_lock);
    return fd;
}

/* Files. */

/* What is about to be made at a path; then nothing can keep it from being removed again. */
static bool name_own(const jzx_allocator *alloc, jzi_own_file *file, const char *path)
{
    file->path = copy_text(alloc, path);
    return file->path != NULL;
}

/* The file was made; or it was not, and the name goes. */
static bool note_own(const jzx_allocator *alloc, jzi_own_file *file, bool made)
{
    struct stat seen;
    if (made && lstat(file->path, &seen) == 0) {
        file->device = (uint64_t)seen.st_dev;
        file->inode = (uint64_t)seen.st_ino;
        return true;
    }
    int saved = errno;
    free_text(alloc, file->path);
    *file = (jzi_own_file){0};
    errno = saved;
    return false;
}

static void remove_own(const jzx_allocator *alloc, jzi_own_file *file)
{
    struct stat seen;
    if (file->path != NULL && lstat(file->path, &seen) == 0 &&
        (uint64_t)seen.st_dev == file->device && (uint64_t)seen.st_ino == file->inode) {
        (void)unlink(file->path);
    }
    free_text(alloc, file->path);
    *file = (jzi_own_file){0};
}

static bool is_private(const struct stat *seen)
{
    return S_ISDIR(seen->st_mode) && seen->st_uid == geteuid() && (seen->st_mode & 077u) == 0;
}

/* A directory that is this user's alone; made if it is not there. */
static bool private_directory(const char *path)
{
    struct stat seen;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return false;
    }
    if (lstat(path, &seen) != 0) {
        return false;
    }
    if (!is_private(&seen)) {
        errno = EACCES; /* the directory was there, and is not this user's alone */
        return false;
    }
    return true;
}

/* Another user has /tmp/jzx-UID, which any user can make: then the directory is
 * /tmp/jzx-UID-XXXXXX, of a name that cannot be guessed. One of this user's that is there already
 * is taken. `jzx` looks into all that belong to the user. */
static bool spare_directory(char out[JZI_CONTROL_PATH_MAX + 1])
{
    char prefix[32];
    struct stat seen;
    int len = snprintf(prefix, sizeof prefix, "jzx-%u-", (unsigned)geteuid());
    DIR *dir = opendir("/tmp");
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, prefix, (size_t)len) != 0 || strlen(entry->d_name) > 40) {
            continue;
        }
        (void)snprintf(out, JZI_CONTROL_PATH_MAX + 1, "/tmp/%.40s", entry->d_name);
        if (lstat(out, &seen) == 0 && is_private(&seen)) {
            (void)closedir(dir);
            return true;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    (void)snprintf(out, JZI_CONTROL_PATH_MAX + 1, "/tmp/%sXXXXXX", prefix);
    return mkdtemp(out) != NULL;
}

/* Room for "/PID-99.sock" must be left. */
static bool default_directory(char out[JZI_CONTROL_PATH_MAX + 1])
{
    enum { NAME_BYTES = 24 };
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/' &&
        strlen(runtime) + sizeof "/jzx" + NAME_BYTES < JZI_CONTROL_PATH_MAX) {
        (void)snprintf(out, JZI_CONTROL_PATH_MAX + 1, "%s/jzx", runtime);
        if (private_directory(out)) {
            return true;
        }
    }
    (void)snprintf(out, JZI_CONTROL_PATH_MAX + 1, "/tmp/jzx-%u", (unsigned)geteuid());
    return private_directory(out) || spare_directory(out);
}

static bool fill_address(struct sockaddr_un *address, const char *path)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) > JZI_CONTROL_PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address->sun_path, path, strlen(path));
    return true;
}

/* Whether a program answers there; when in doubt, yes. */
static bool is_served(const char *path)
{
    struct sockaddr_un address;
    if (!fill_address(&address, path)) {
        return true;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return true;
    }
    int rc = connect(fd, (const struct sockaddr *)&address, sizeof address);
    bool served = rc == 0 || (errno != ECONNREFUSED && errno != ENOENT);
    (void)close(fd);
    return served;
}

/* Takes a socket away that no program serves. False: there is something else, and it stays. */
static bool clear_place(const char *path)
{
    struct stat seen;
    if (lstat(path, &seen) != 0) {
        return errno == ENOENT;
    }
    if (!S_ISSOCK(seen.st_mode) || seen.st_uid != geteuid()) {
        errno = EEXIST;
        return false;
    }
    if (is_served(path)) {
        errno = EADDRINUSE;
        return false;
    }
    return unlink(path) == 0;
}

/* Two programs that look at one stale socket at the same time must not take each other's away: a
 * program that changes something in a directory holds its lock. After a while, or with -1, the
 * program goes on without. */
static int lock_directory_of(const char *path)
{
    char directory[JZI_CONTROL_PATH_MAX + 1] = ".";
    const char *slash = strrchr(path, '/');
    if (slash != NULL && strlen(path) <= JZI_CONTROL_PATH_MAX) {
        size_t len = slash == path ? 1 : (size_t)(slash - path);
        memcpy(directory, path, len);
        directory[len] = '\0';
    }
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        jzi_thread_pause(10000000);
    }
    return fd;
}

/* Binds and listens. The kernel gives the file the permissions of the descriptor, less the umask;
 * what that took away is added afterwards. */
static bool bind_at(int fd, const char *path, uint32_t mode)
{
    struct sockaddr_un address;
    if (!fill_address(&address, path) || fchmod(fd, mode) != 0 || !clear_place(path) ||
        bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        return false;
    }
    if (chmod(path, mode) != 0 || listen(fd, BACKLOG) != 0) {
        int saved = errno;
        (void)unlink(path);
        errno = saved;
        return false;
    }
    return true;
}

static bool serve_at(jzi_control_socket *socket, const char *path, uint32_t mode)
{
    int lock = lock_directory_of(path);
    bool good = name_own(&socket->alloc, &socket->file, path) &&
                note_own(&socket->alloc, &socket->file, bind_at(socket->fd, path, mode));
    int saved = errno;
    if (lock >= 0) {
        (void)close(lock);
    }
    errno = saved;
    return good;
}

/* The program may go to another directory: from here on the path is absolute. */
static bool settle_path(jzi_control_socket *socket)
{
    char whole[PATH_MAX];
    if (socket->file.path[0] == '/' || realpath(socket->file.path, whole) == NULL) {
        return true;
    }
    char *copy = copy_text(&socket->alloc, whole);
    if (copy == NULL) {
        return false;
    }
    free_text(&socket->alloc, socket->file.path);
    socket->file.path = copy;
    return true;
}

/* Takes the link of an earlier process with this number away; one that leads to a served socket
 * stays. */
static void clear_stale_link(const char *path)
{
    struct stat seen;
    if (lstat(path, &seen) == 0 && S_ISLNK(seen.st_mode) && !is_served(path)) {
        (void)unlink(path);
    }
}

/* In the default directory; a second control of this process has a number. What is in the way
 * there may also be the link of one that is served elsewhere. */
static bool serve_at_default(jzi_control_socket *socket, uint32_t mode)
{
    char directory[JZI_CONTROL_PATH_MAX + 1];
    char path[JZI_CONTROL_PATH_MAX + 1 + 24];
    if (!default_directory(directory)) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s/%d.sock", directory, (int)getpid());
    clear_stale_link(path);
    bool served = serve_at(socket, path, mode);
    for (int i = 2; !served && (errno == EADDRINUSE || errno == EEXIST) && i < 100; i++) {
        (void)snprintf(path, sizeof path, "%s/%d-%d.sock", directory, (int)getpid(), i);
        clear_stale_link(path);
        served = serve_at(socket, path, mode);
    }
    return served;
}

/* Leaves a link to a socket elsewhere. Without one the program is not found, and runs as well. */
static void leave_link(jzi_control_socket *socket)
{
    char directory[JZI_CONTROL_PATH_MAX + 1];
    char link[JZI_CONTROL_PATH_MAX + 1 + 24];
    char target[PATH_MAX];
    if (!default_directory(directory) || realpath(socket->file.path, target) == NULL) {
        return;
    }
    int lock = lock_directory_of(directory);
    for (int i = 1; i < 100 && socket->link.path == NULL; i++) {
        char number[16] = "";
        if (i > 1) {
            (void)snprintf(number, sizeof number, "-%d", i);
        }
        (void)snprintf(link, sizeof link, "%s/%d%s.sock", directory, (int)getpid(), number);
        if (strcmp(link, target) == 0) {
            break; /* the socket itself is there */
        }
        if (!is_served(link)) {
            (void)unlink(link); /* of an earlier process with this number */
        }
        if (!name_own(&socket->alloc, &socket->link, link) ||
            (!note_own(&socket->alloc, &socket->link, symlink(target, link) == 0) &&
             errno != EEXIST)) {
            break;
        }
    }
    if (lock >= 0) {
        (void)close(lock);
    }
}

void jzi_control_socket_explain(char *out, size_t cap)
{
    const char *words = strerrordesc_np(errno);
    switch (errno) {
    case EADDRINUSE:
        words = "Another program is served there";
        break;
    case EEXIST:
        words = "Something is there that is not a socket of this user's, and it stays";
        break;
    case ENAMETOOLONG:
        words = "The path of a socket has at most 107 bytes";
        break;
    case ENOENT:
        words = "There is no such directory";
        break;
    case EACCES:
        words = "The directory is not this user's, or the default one is open to others";
        break;
    default:
        break;
    }
    (void)snprintf(out, cap, "%s.", words == NULL ? "Unknown error" : words);
}

jzx_err jzi_control_socket_open(jzi_control_socket *out, const jzx_allocator *alloc,
                                const char *path, uint32_t mode)
{
    *out = (jzi_control_socket){.alloc = *alloc, .fd = -1, .wake_fd = -1};
    jzx_err err = jzi_wake_open(NULL, &out->wake_fd);
    if (err != JZX_OK) {
        return err;
    }
    out->fd = open_socket();
    if (out->fd < 0 || !(path == NULL ? serve_at_default(out, mode)
                                      : serve_at(out, path, mode) && settle_path(out))) {
        err = refusal();
        int saved = errno;
        jzi_control_socket_close(out);
        errno = saved;
        return err;
    }
    if (path != NULL) {
        leave_link(out);
    }
    return JZX_OK;
}

void jzi_control_socket_abandon(const jzi_control_socket *socket)
{
    close_noted(socket->fd);
}

void jzi_control_socket_close(jzi_control_socket *socket)
{
    remove_own(&socket->alloc, &socket->link);
    remove_own(&socket->alloc, &socket->file);
    jzi_control_socket_abandon(socket);
    if (socket->wake_fd >= 0) {
        (void)close(socket->wake_fd);
    }
    socket->fd = socket->wake_fd = -1;
}

/* Waiting. */

void jzi_control_socket_wake(const jzi_control_socket *socket)
{
    jzi_wake_signal(NULL, socket->wake_fd);
}

static short wishes(bool read, bool write)
{
    return (short)((read ? POLLIN : 0) | (write ? POLLOUT : 0));
}

bool jzi_control_socket_wait(jzi_control_socket *socket, bool *listens, jzi_control_line *lines,
                             size_t count, uint64_t ns)
{
    struct pollfd fds[LINES_MAX + 2];
    count = count > LINES_MAX ? LINES_MAX : count;
    fds[0] = (struct pollfd){.fd = socket->wake_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = *listens ? socket->fd : -1, .events = POLLIN};
    for (size_t i = 0; i < count; i++) {
        fds[i + 2] =
            (struct pollfd){.fd = lines[i].fd, .events = wishes(lines[i].read, lines[i].write)};
    }
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    int ready = ppoll(fds, (nfds_t)(count + 2), ns == UINT64_MAX ? NULL : &time, NULL);
    if (ready < 0 && errno != EINTR) {
        jzi_thread_pause(REFUSED_NS); /* as without RLIMIT_NOFILE: it must not spin */
    }
    if (ready <= 0) { /* also when it was interrupted */
        for (size_t i = 0; i < count + 2; i++) {
            fds[i].revents = 0;
        }
    }
    bool woken = (fds[0].revents & POLLIN) != 0;
    if (woken) {
        uint64_t wakes = 0;
        ssize_t ignored = read(socket->wake_fd, &wakes, sizeof wakes);
        (void)ignored;
    }
    *listens = fds[1].revents != 0;
    for (size_t i = 0; i < count; i++) {
        short seen = fds[i + 2].revents;
        bool over = (seen & (POLLERR | POLLNVAL)) != 0;
        bool hung_up = (seen & POLLHUP) != 0;
        lines[i].read = (seen & POLLIN) != 0 || over || (hung_up && lines[i].read);
        lines[i].write = (seen & POLLOUT) != 0 || over || hung_up;
    }
    return woken;
}

/* Connections. */

jzx_err jzi_control_accept(const jzi_control_socket *socket, int *out_fd)
{
    int fd;
    (void)pthread_mutex_lock(&noted_lock);
    do {
        fd = accept4(socket->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    note_open(fd);
    (void)pthread_mutex_unlock(&noted_lock);
    if (fd < 0) {
        return errno == EAGAIN ? JZX_ERR_AGAIN : refusal();
    }
    *out_fd = fd;
    return JZX_OK;
}

jzx_err jzi_control_read(int fd, char *out, size_t cap, size_t *out_len)
{
    ssize_t n;
    do {
        n = recv(fd, out, cap, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return errno == EAGAIN ? JZX_ERR_AGAIN : JZX_ERR_IO;
    }
    *out_len = (size_t)n;
    return JZX_OK;
}

jzx_err jzi_control_write(int fd, const char *bytes, size_t len, size_t *out_len)
{
    ssize_t n;
    do {
        n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return errno == EAGAIN || errno == ENOBUFS ? JZX_ERR_AGAIN : JZX_ERR_IO;
    }
    *out_len = (size_t)n;
    return JZX_OK;
}

void jzi_control_hang_up(int fd)
{
    close_noted(fd);
}
