#!/bin/sh
# The other views of jzx at two sizes: views.sh JZX FIXTURE SCREENS
#
# Each shows what it has to, within the terminal; lines of tables never wrap.
set -u
. "$(dirname "$0")/lib.sh"

# text NAME WORDS COMMAND [STATUS]: ends as it should and shows the words.
text() {
    run_until_end "$3"
    [ "$ended" -eq "${4:-0}" ] || fail "$1 ends with $ended, not with ${4:-0}"
    shows "$2" || fail "$1 does not show $2"
    keep "$1-${columns}x$rows"
}

# table NAME WORDS COMMAND: the same, and no line wraps. tmux joins those that did with -J.
table() {
    text "$@"
    [ "$(t capture-pane -p | wc -l)" -eq "$(t capture-pane -p -J | wc -l)" ] ||
        fail "$1 has lines that wrap"
}

# look_at COLUMNS ROWS STUCK: sentences of stuck are longer than 80 columns.
look_at() {
    pane "$1" "$2"
    table tree worker-20 "$jzx tree -p $socket"
    text ps fixture "$jzx ps"
    $3 stuck spinner "$jzx stuck --limit 100 -p $socket" 4
    table top box "$jzx top --once --interval 0.1 --limit 10 -p $socket"
    screen | grep ' ticker ' | grep -qE ' [1-9][0-9]{1,2} ' || fail "top --once has no rates"
    text actor 'fell over' "$jzx actor -p $socket flaky"
    text dead '' "$jzx dead --once -p $socket"
    text doctor no-backoff "$jzx doctor -p $socket" 5
}

# A terminal that is said to be dumb gets text only.
coloured() {
    run_until_end "$1 $jzx tree -p $socket"
    [ "$ended" -eq 0 ] || fail "$1: tree ends with $ended"
    t capture-pane -p -e | grep -q "$(printf '\033')\["
}

look_when_dumb() {
    pane 80 40
    coloured '' || fail "no colours on a terminal, so this proves nothing"
    ! coloured TERM=dumb || fail "colours on a dumb terminal"
    ! coloured 'env -u TERM' || fail "colours on a terminal of no known kind"
}

start_fixture
kill -USR1 "$fixture_pid"
look_at 80 40 text
look_at 140 45 table
look_when_dumb
