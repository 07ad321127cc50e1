#!/bin/sh
# The other views of jzx at two sizes: views.sh JZX FIXTURE SCREENS
#
# Each shows what it has to, and no line wraps: a wrapped line would make the screen longer than the
# output, which is the same with and without a terminal.
set -u
. "$(dirname "$0")/lib.sh"

# view NAME TEXT COMMAND: what it shows on the terminal fits, and has the text.
view() {
    keys "clear; $3; echo; echo done-\$?" Enter
    see 'done-'
    shows 'done-0' || fail "$1 does not end well"
    shows "$2" || fail "$1 does not show $2"
    check_width "$columns"
    # tmux joins lines that wrapped with -J: then there are fewer.
    [ "$(t capture-pane -p | wc -l)" -eq "$(t capture-pane -p -J | wc -l)" ] ||
        fail "$1 has lines that wrap"
    keep "$1-${columns}x$rows"
}

look_at() {
    pane "$1" "$2"
    view tree worker-20 "$jzx tree -p $socket"
    view ps fixture "$jzx ps"
    view actor 'flaky' "$jzx actor -p $socket flaky"
    view stuck spinner "$jzx stuck --once -p $socket"
    view dead '' "$jzx dead --once -p $socket"
    view doctor '' "$jzx doctor -p $socket"
}

start_fixture
kill -USR1 "$fixture_pid"
look_at 80 40
look_at 140 45
