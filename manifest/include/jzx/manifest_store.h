/* A manifest as a whole: open, close, look at, copy and check.
 *
 * A manifest is one file, FILE, with two companions: FILE-lock (LMDB's readers) and FILE-owner (one
 * process at a time may write). Its space is allocated ahead of its use, in steps of 1 MiB or more.
 * It must lie on a local file system. After fork() a manifest of the parent is of no use in the
 * child: every call says JZX_ERR_FORKED. */
#ifndef JZX_MANIFEST_STORE_H
#define JZX_MANIFEST_STORE_H

#include <jzx/loop.h>
#include <jzx/system.h>
#include <jzx/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jzx_mf jzx_mf;

/* Bits of jzx_mf_opts.flags. */
#define JZX_MF_READONLY 0x1u   /* reads only, also beside an owner and of a newer schema */
#define JZX_MF_MUST_EXIST 0x2u /* else a file that is not there is created */
#define JZX_MF_NO_VERIFY                                                                           \
    0x4u                       /* does not walk the pages of the file before it is used, nor check \
                                  one of an older schema before it is migrated */
#define JZX_MF_NO_RESERVE 0x8u /* keeps no space for what ends on a full disk */
#define JZX_MF_ALL_EVENTS 0x10u /* jobs, logs and metrics are put into the events too */

typedef enum jzx_mf_alarm_kind {
    JZX_MF_ALARM_MAP_80 = 1,       /* value: bytes in use, of map_max */
    JZX_MF_ALARM_MAP_95 = 2,       /* likewise */
    JZX_MF_ALARM_DISK_FULL = 3,    /* what adds records is refused; value: bytes for what ends */
    JZX_MF_ALARM_OLD_SNAPSHOT = 4, /* value: its age in ms. While it lives the file can only grow */
    JZX_MF_ALARM_IN_DOUBT = 5,     /* a commit failed in a way that leaves its outcome open: no more
                                      writes until the manifest was closed and opened again */
    JZX_MF_ALARM_CLOCK_BACK = 6    /* the system's clock was set back; value: ms */
} jzx_mf_alarm_kind;
typedef struct jzx_mf_alarm {
    uint32_t kind; /* jzx_mf_alarm_kind */
    int32_t err;   /* jzx_err, where there is one */
    uint64_t value;
} jzx_mf_alarm;
/* Called by the writer, on its thread; calls nothing of the manifest. */
typedef void (*jzx_mf_alarm_fn)(void *arg, const jzx_mf_alarm *alarm);

/* How long finished jobs are kept, and how many go at most in one commit. Zero is the default. */
#define JZX_MF_KEEP_FOREVER UINT64_MAX
typedef struct jzx_mf_retention {
    uint64_t done_ms;      /* one day */
    uint64_t dead_ms;      /* 180 days */
    uint64_t cancelled_ms; /* 7 days; superseded ones too */
    uint32_t prune_max;    /* 256 */
    uint32_t reserved;
} jzx_mf_retention;

/* Zero is the default everywhere, and so are NULL options. */
typedef struct jzx_mf_opts {
    /* Where the writer runs: on this loop, or pinned in this system (or on its dispatcher named
     * below); with neither, the manifest has a thread of its own. Borrowed until it was closed. */
    jzx_loop *loop;
    jzx_system *system;
    const char *dispatcher; /* borrowed for the call */
    uint64_t
        map_max; /* no record is added beyond; 16 GiB. What ends or deletes has some more room */
    uint64_t reserve_bytes;     /* allocated, for what ends or deletes on a full disk; 4 MiB */
    uint32_t queue_cap;         /* requests that may wait for the writer; 4,096 */
    uint32_t batch_bytes;       /* what goes into one commit at most; 32 MiB */
    uint32_t readers_max;       /* snapshots at once, of all processes; 1,024 */
    uint32_t snapshot_alarm_ms; /* 10,000 */
    uint32_t events_kept;       /* for actors that follow changes; 65,536 */
    uint32_t flags;             /* JZX_MF_* */
    jzx_mf_alarm_fn on_alarm;
    void *alarm_arg;
    /* The system's clock in ms, for tests; NULL: CLOCK_REALTIME. Called on any thread. */
    uint64_t (*wall_ms)(void *arg);
    void *wall_arg;
    jzx_mf_retention retention;
} jzx_mf_opts;

/* What jzx_mf_open() found and did. */
typedef struct jzx_mf_recovery {
    uint64_t boot;       /* how many times the file was opened for writing, this time included */
    uint64_t commit_seq; /* the last commit before this time */
    uint64_t duration_ms;
    uint64_t databases;
    uint64_t shards; /* logs */
    uint64_t chunks;
    uint64_t jobs;      /* of all states */
    uint64_t ready;     /* may be claimed now */
    uint64_t scheduled; /* wait for their time */
    uint64_t blocked;   /* wait for a gate, a slot or a limit */
    uint64_t finished;  /* kept for looking at */
    uint64_t orphans;   /* had a lease of an older boot: */
    uint64_t requeued;  /*   may be claimed again */
    uint64_t died;      /*   had used up their attempts */
    uint64_t repairs;   /*   repair jobs that were put before them */
    uint64_t gates_held;
    uint64_t readers_reaped; /* left behind by processes that died */
    uint64_t migrated;       /* records brought to this schema */
    uint64_t clock_back_ms;  /* the system's clock stood before the last commit */
    uint32_t created;        /* 1: the file is new */
    uint32_t clean;          /* 1: it was closed properly */
    char text[256]; /* also after an error: a sentence with the facts, "process 17 owns ..." */
} jzx_mf_recovery;

/* Opens a manifest, creates it if it is not there, and recovers: migrates old records, settles the
 * leases of an older boot, then serves. Doing it again changes nothing. Nothing of this is half
 * done: a crash at any moment leaves the old file, the new file, or none. `out_report` may be NULL.
 * On an error *out_mf is unchanged. Thread: any but inside an actor. Errors: INVALID_ARG (an
 * argument is missing, or options contradict each other), NEWER_STRUCT, NO_MEMORY, NOT_FOUND
 * (JZX_MF_MUST_EXIST and the file is not there, or there is no such directory), NO_ACCESS, ALREADY
 * (this process has the file open), OWNED (another process has the file open for writing; the
 * report names it), REMOTE_FS, BAD_FD (descriptor 0, 1 or 2 is closed: what is printed would go
 * into the file), NOT_A_MANIFEST, CORRUPT, FOREIGN_PAGES, NEWER_SCHEMA (a newer version wrote the
 * file; it can be opened for reading only), NO_SPACE, IO, NO_FDS, NO_THREADS, MAX_ACTORS, STOPPING,
 * NO_SUCH_DISPATCHER, MAX_DISPATCHERS. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_open_sized(const char *path, const jzx_mf_opts *opts,
                                                size_t opts_size, jzx_mf **out_mf,
                                                jzx_mf_recovery *out_report, size_t report_size);
static inline JZX_NODISCARD jzx_err jzx_mf_open(const char *path, const jzx_mf_opts *opts,
                                                jzx_mf **out_mf, jzx_mf_recovery *out_report)
{
    return jzx_mf_open_sized(path, opts, sizeof(jzx_mf_opts), out_mf, out_report,
                             sizeof(jzx_mf_recovery));
}

/* Refuses new requests (CLOSED), commits and acknowledges those that wait, tells waiters CLOSED,
 * then frees everything. After drain_ms (0: 30,000) what still waits is told CLOSED without being
 * done. No thread may be inside another call on this manifest, but for threads that wait in
 * jzx_mf_commit() or jzx_mf_generation_wait(): they are told and have left when it returns. On a
 * loop of the caller it runs that loop meanwhile. In a child after fork() it only frees memory.
 * NULL is fine. Thread: any but inside an actor. Errors: DEADLOCK (called inside an actor; nothing
 * happened), TIMED_OUT (requests that still waited were given up; the manifest is closed). */
JZX_API jzx_err jzx_mf_close(jzx_mf *mf, uint32_t drain_ms);

/* A moment's numbers. Counters are since the file was opened. */
typedef struct jzx_mf_stats {
    uint64_t commit_seq;
    uint64_t boot;
    uint64_t now_ms;     /* on the manifest's clock */
    uint64_t file_bytes; /* used by live and reusable pages */
    uint64_t free_bytes; /* of these, reusable */
    uint64_t map_max;
    uint64_t commits;
    uint64_t requests;  /* taken up by the writer */
    uint64_t refused;   /* of these, answered with an error */
    uint64_t queued;    /* wait for the writer now */
    uint64_t batch_max; /* most requests in one commit */
    uint64_t commit_ns; /* time spent in commits */
    uint64_t commit_max_ns;
    uint64_t snapshots; /* alive now */
    uint64_t oldest_snapshot_ms;
    uint64_t readers; /* slots in use, of all processes */
    uint64_t readers_reaped;
    uint64_t waiters; /* for generations */
    uint64_t claims_waiting;
    uint64_t followers; /* subscriptions to events */
    uint64_t leases_expired;
    uint64_t pruned;
    uint64_t entries[24]; /* per jzx_mf_table */
    int32_t err;          /* JZX_OK, or why nothing can be written any more */
    uint32_t reserved;
} jzx_mf_stats;
/* A commit in doubt is no error of this call: it is in `err`. Thread: any. Errors: as jzx_mf_read()
 * but IN_DOUBT. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_stats_read_sized(jzx_mf *mf, jzx_mf_stats *out,
                                                      size_t out_size);
static inline JZX_NODISCARD jzx_err jzx_mf_stats_read(jzx_mf *mf, jzx_mf_stats *out)
{
    return jzx_mf_stats_read_sized(mf, out, sizeof *out);
}

/* Copies the manifest as it is now to a new file, compacted, while others write: to a temporary
 * file that is synced and renamed. Errors: ALREADY (the target is there), NO_ACCESS, NO_SPACE, IO,
 * NO_MEMORY, FORKED, INVALID_ARG. Thread: any but inside an actor: it may take long. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_backup(jzx_mf *mf, const char *path);

/* What a check found. Frozen. */
typedef struct jzx_mf_check_report {
    uint64_t pages;
    uint64_t records;
    uint64_t problems;
    uint64_t entries[24]; /* per jzx_mf_table */
} jzx_mf_check_report;
/* Called for every problem with a sentence, and now and then with a NULL sentence and how much was
 * done of how much. Returns 0 to go on. */
typedef int (*jzx_mf_check_fn)(void *arg, const char *problem, uint64_t done, uint64_t total);
/* Looks at every page and every record of a file, at the checksums of all keys, and at whether the
 * indexes say what the records say. Changes nothing; also beside a process that has it open. `fn`
 * and `out` may be NULL. Thread: any. Errors: CORRUPT (there are problems), as jzx_mf_open() but
 * CORRUPT and OWNED and NO_THREADS and MAX_ACTORS and STOPPING and NO_SUCH_DISPATCHER and
 * MAX_DISPATCHERS. */
JZX_API JZX_NODISCARD jzx_err jzx_mf_check(const char *path, jzx_mf_check_fn fn, void *arg,
                                           jzx_mf_check_report *out);

#ifdef __cplusplus
}
#endif
#endif
