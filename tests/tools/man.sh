#!/bin/sh
# Goal: tools/man writes the SYNOPSIS and ERRORS that the headers say. Method: a small tree with every form that a header and a
# page may have, compared with the page that a person would write: man.sh
set -eu
root=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/core/src/base" "$work/tree/core/include/jzx" "$work/tree/man/man3" "$work/tree/man/man7"
cd "$work/tree"

cat >core/src/base/error.c <<'C'
    {"JZX_OK", "No error."},
    {"JZX_ERR_BUSY",
     "It is busy; see jzx_run()."},
    {"JZX_ERR_FULL", "There is no room."},
C
cat >core/include/jzx/types.h <<'C'
typedef enum jzx_err {
    JZX_OK = 0,
    JZX_ERR_BUSY = -1,
    JZX_ERR_FULL = -2
} jzx_err;
C
cat >core/include/jzx/run.h <<'C'
/* Runs. Thread: loop. Errors: BUSY, FULL (`cap` is above JZX_MAX,
 * or NULL). More about it. */
JZX_API JZX_NODISCARD jzx_err jzx_run_sized(const char *name, size_t cap,
                                            size_t size);
static inline JZX_NODISCARD jzx_err jzx_run(const char *name, size_t cap)
{
    return jzx_run_sized(name, cap, sizeof cap);
}
/* Never fails; the comment above does not hold for it. */
JZX_API const char *jzx_name(void);

/* Errors: as jzx_run() but FULL, BUSY (called inside an actor). */
JZX_API jzx_err jzx_stop(void (*drop)(void *data, int n), int now);
/* Errors: none. */
JZX_API jzx_err jzx_fine(int);
/* Errors: as jzx_stop(), FULL. */
JZX_API jzx_err jzx_kill(int);
C
cat >man/man3/run.3 <<'M'
.Sh NAME
.Nm run ,
.Nm jzx_run ,
.Nm jzx_run_sized ,
.Nm jzx_name ,
.Nm jzx_stop ,
.Nm jzx_fine
.Nd run
.Sh SYNOPSIS
.\" synopsis: jzx/run.h
.Sh ERRORS
First:
.\" errors:
.Pp
Last.
M
cat >man/man3/kill.3 <<'M'
.Sh SYNOPSIS
.\" synopsis: jzx/run.h jzx_kill
.\" synopsis: jzx/run.h jzx_run*
.Sh ERRORS
.\" errors: jzx_kill
.\" errors: every
M
printf '.Sh DESCRIPTION\nNo line of it is changed.\n' >man/man7/plain.7

cat >"$work/run.3" <<'M'
.Sh NAME
.Nm run ,
.Nm jzx_run ,
.Nm jzx_run_sized ,
.Nm jzx_name ,
.Nm jzx_stop ,
.Nm jzx_fine
.Nd run
.Sh SYNOPSIS
.In jzx/run.h
.Ft jzx_err
.Fo jzx_run
.Fa "const char *name"
.Fa "size_t cap"
.Fc
.Ft jzx_err
.Fo jzx_run_sized
.Fa "const char *name"
.Fa "size_t cap"
.Fa "size_t size"
.Fc
.Ft "const char *"
.Fo jzx_name
.Fa void
.Fc
.Ft jzx_err
.Fo jzx_stop
.Fa "void (*drop)(void *data, int n)"
.Fa "int now"
.Fc
.Ft jzx_err
.Fo jzx_fine
.Fa int
.Fc
.Sh ERRORS
First:
.Bl -tag -width Ds
.It Dv JZX_ERR_BUSY
.Fn jzx_run :
it is busy; see
.Fn jzx_run .
.br
.Fn jzx_stop :
called inside an actor.
.It Dv JZX_ERR_FULL
.Fn jzx_run :
.Fa cap
is above
.Dv JZX_MAX ,
or
.Dv NULL .
.El
.Pp
Last.
M
cat >"$work/kill.3" <<'M'
.Sh SYNOPSIS
.In jzx/run.h
.Ft jzx_err
.Fo jzx_kill
.Fa int
.Fc
.Ft jzx_err
.Fo jzx_run
.Fa "const char *name"
.Fa "size_t cap"
.Fc
.Sh ERRORS
.Bl -tag -width Ds
.It Dv JZX_ERR_BUSY
Called inside an actor.
.It Dv JZX_ERR_FULL
There is no room.
.El
.Bl -tag -width Ds
.It Dv JZX_OK (0)
No error.
.It Dv JZX_ERR_BUSY (-1)
It is busy; see
.Fn jzx_run .
.It Dv JZX_ERR_FULL (-2)
There is no room.
.El
M
JZX_ROOT=. "$root/tools/man" "$work/out"
diff -u "$work/run.3" "$work/out/man3/run.3"
diff -u "$work/kill.3" "$work/out/man3/kill.3"
diff -u man/man7/plain.7 "$work/out/man7/plain.7"
JZX_ROOT=. "$root/tools/man" --check
