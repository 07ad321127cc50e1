#include <jzx/types.h>

#include <stddef.h>
#include <stdio.h>

typedef struct error_text {
    const char *name;
    const char *sentence;
} error_text;

/* Indexed by the negated value: name and sentence come from one place. */
static const error_text texts[] = {
    {"JZX_OK", "No error."},
    {"JZX_ERR_INVALID_ARG", "An argument is NULL, out of range, or contradicts another one."},
    {"JZX_ERR_NO_MEMORY", "The allocator has no memory left; free some or raise its limit."},
    {"JZX_ERR_NO_SUCH_ACTOR", "No actor has this id: it ended, or the id was never given out."},
    {"JZX_ERR_STOPPING", "The actor, or the whole loop, is stopping and takes nothing new."},
    {"JZX_ERR_MAILBOX_FULL",
     "The mailbox is full; wait for a room notice (jzx_notify_room) or raise mailbox_cap."},
    {"JZX_ERR_MAX_ACTORS", "As many actors are alive as max_actors in the config allows."},
    {"JZX_ERR_RESERVED_TAG", "Tags from 0xFF000000 up belong to the system; choose a lower one."},
    {"JZX_ERR_LOOP_CLOSED", "The loop was destroyed; release the sender."},
    {"JZX_ERR_BUSY", "Not possible from inside a behavior or while the loop is running."},
    {"JZX_ERR_ALREADY", "It already happened: delivered, ended, or watched before."},
    {"JZX_ERR_NO_SUCH_TIMER", "This timer id was never given out by this loop."},
    {"JZX_ERR_NO_SUCH_REF", "This reference is gone, was never given out, or is of another type."},
    {"JZX_ERR_NEWER_STRUCT",
     "A struct has fields that this library does not know; update the library."},
    {"JZX_ERR_TOO_BIG", "A size, capacity or delay is above the documented maximum."},
    {"JZX_ERR_NOT_SUPPORTED", "This kernel, build or environment cannot do it."},
    {"JZX_ERR_BAD_FD", "The descriptor is closed or of a kind that cannot be watched."},
    {"JZX_ERR_FD_WATCHED", "The descriptor is watched on this loop already; unwatch it first."},
    {"JZX_ERR_BUFFER_FULL", "The write buffer is full; nothing was written. Wait for DRAINED."},
    {"JZX_ERR_CLOSED", "The connection takes no more writes: it was shut down or closed."},
    {"JZX_ERR_AGAIN", "Nothing to do right now; try again when it is ready."},
    {"JZX_ERR_TIMED_OUT", "It did not happen in the time allowed."},
    {"JZX_ERR_BAD_ADDRESS",
     "Not an address: use 127.0.0.1:80, [::1]:80, unix:/path or unix:@name."},
    {"JZX_ERR_ADDRESS_IN_USE", "Another socket listens on this address."},
    {"JZX_ERR_CONN_REFUSED", "Nothing listens on this address."},
    {"JZX_ERR_CONN_RESET", "The other side ended the connection abruptly."},
    {"JZX_ERR_UNREACHABLE", "There is no route to this address."},
    {"JZX_ERR_NO_ACCESS", "The system denies permission."},
    {"JZX_ERR_NO_FDS", "Out of file descriptors; raise the limit (ulimit -n) or close some."},
    {"JZX_ERR_NOT_FOUND", "No such file, directory or child process."},
    {"JZX_ERR_IO", "The system reported an input or output error."},
    {"JZX_ERR_BAD_SPEC",
     "A supervisor or child spec contradicts itself; jzx_supervisor_check() says where."},
    {"JZX_ERR_DUPLICATE_CHILD", "Two children of one supervisor have the same id."},
    {"JZX_ERR_NOT_RESTARTABLE",
     "A child that may be restarted needs init, or the flag JZX_SPAWN_STATELESS."},
    {"JZX_ERR_NO_SUCH_CHILD", "The supervisor has no child with this id."},
    {"JZX_ERR_CHILD_PRESENT",
     "The child is known but down; restart it, or delete it before adding it anew."},
    {"JZX_ERR_CHILD_RUNNING", "The child is running; terminate it first."},
    {"JZX_ERR_CHILD_RESTARTING",
     "The child is being restarted; wait for it, or terminate it first."},
    {"JZX_ERR_WRONG_SUPERVISOR",
     "The call does not fit: the actor is no supervisor, or one of the other kind."},
    {"JZX_ERR_START_FAILED", "The actor ended before it was running."},
    {"JZX_ERR_STUCK", "An actor does not return from its code; C cannot end it."},
    {"JZX_ERR_NO_SUCH_DISPATCHER",
     "The system has no dispatcher with this name; name it in the system's config."},
    {"JZX_ERR_MAX_DISPATCHERS",
     "There are 255 dispatchers already; let several actors share a named pinned one."},
    {"JZX_ERR_WRONG_DISPATCHER",
     "This call works only on the dispatcher where the actor runs; send it a message instead."},
    {"JZX_ERR_QUEUE_FULL", "As many jobs wait for a thread as may; try again when one is done."},
    {"JZX_ERR_NO_THREADS", "The operating system refused another thread; raise its limit."},
    {"JZX_ERR_NO_SPACE", "No space is left on the device, or a quota is used up."},
    {"JZX_ERR_DEADLOCK",
     "A blocking call from inside an actor; use the form that answers by a message."},
    {"JZX_ERR_NOT_WANTED",
     "No asker waits for this reply: the ask timed out, was cancelled, or the asker ended."},
    {"JZX_ERR_STASH_FULL", "The stash holds as many messages as it may; see jzx_stash_set_cap()."},
    {"JZX_ERR_STASH_EMPTY", "There is no message in the stash."},
    {"JZX_ERR_NAME_TAKEN",
     "Another actor has this name; choose another one or wait until it is released."},
    {"JZX_ERR_NO_SUCH_NAME", "No actor is registered under this name."},
    {"JZX_ERR_NO_SUCH_GROUP", "There is no such group, or the actor is not in it."},
    {"JZX_ERR_NO_SUCH_TOPIC",
     "The bus has no topic of this name or number; declare it first (jzx_bus_topic)."},
    {"JZX_ERR_WRONG_TYPE", "The tag or the size is not what was declared for it."},
    {"JZX_ERR_NO_TRANSITION", "The state machine's table has no row for this event in this state."},
    {"JZX_ERR_BAD_DEMAND", "Demand must be at least 1 and stay below the documented maximum."},
    {"JZX_ERR_CIRCUIT_OPEN",
     "The circuit breaker is open after too many failures; try again later."},
    {"JZX_ERR_NO_BUDGET", "The budget for retries is used up; it fills again as calls succeed."},
    {"JZX_ERR_NO_WORKERS", "The router has no worker to send to: its pool or group is empty."},
    {"JZX_ERR_FENCED",
     "The lease is not valid any more: another worker may have the job; stop working on it."},
    {"JZX_ERR_CONFLICT",
     "The record is not what the transaction expects; read it again and decide anew."},
    {"JZX_ERR_IN_DOUBT",
     "The disk failed during a commit, whose outcome is open; close the manifest, open it again."},
    {"JZX_ERR_CORRUPT",
     "The file is damaged; check it with `jzx manifest FILE check` and restore a backup."},
    {"JZX_ERR_NEWER_SCHEMA",
     "The file was written by a newer version; open it read-only or use that version."},
    {"JZX_ERR_MAP_FULL",
     "The manifest has reached its largest size; delete records or raise map_max."},
    {"JZX_ERR_OWNED",
     "Another process has the manifest open for writing; stop it, or open read-only."},
    {"JZX_ERR_FORKED",
     "It belongs to the parent process; open the manifest here anew, abandon the system."},
    {"JZX_ERR_REMOTE_FS",
     "The file lies on a network file system, where locks and maps fail; use a local disk."},
    {"JZX_ERR_FOREIGN_PAGES",
     "The file was made on a machine with another page size or byte order; dump it there."},
    {"JZX_ERR_READ_ONLY", "The manifest was opened read-only; open it without JZX_MF_READONLY."},
    {"JZX_ERR_NOT_A_MANIFEST",
     "The file is not a manifest; give the path of one, or of a new file."},
    {"JZX_ERR_WRONG_STATE",
     "The job is in a state in which that is not possible; look at it first."},
};

static const error_text *error_find(int err)
{
    static const error_text unknown = {"JZX_ERR_UNKNOWN", "Not an error of this library."};
    int count = (int)(sizeof texts / sizeof texts[0]);
    return err <= 0 && err > -count ? &texts[-err] : &unknown;
}

const char *jzx_strerror(int err)
{
    return error_find(err)->sentence;
}

const char *jzx_err_name(int err)
{
    return error_find(err)->name;
}

const char *jzx_version(void)
{
    return JZX_VERSION_STRING;
}

const char *jzx_reason_name(uint32_t kind)
{
    static const char *const names[] = {
        "normal",       "shutdown", "killed",    "failed", "panic", "crash",  "start_failed",
        "stop_timeout", "gave_up",  "escalated", "linked", "stuck", "noproc", "noconnection"};
    return kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

int jzx_reason_is_normal(uint32_t kind)
{
    return kind == JZX_REASON_NORMAL || kind == JZX_REASON_SHUTDOWN;
}

int jzx_reason_format(const jzx_reason *reason, char *buf, size_t cap)
{
    if (reason == NULL) {
        return snprintf(buf, cap, "unknown");
    }
    const char *name = jzx_reason_name(reason->kind);
    const char *colon = reason->text[0] == '\0' ? "" : ": ";
    if (reason->code == 0) {
        return snprintf(buf, cap, "%s%s%s", name, colon, reason->text);
    }
    return snprintf(buf, cap, "%s %d%s%s", name, (int)reason->code, colon, reason->text);
}
