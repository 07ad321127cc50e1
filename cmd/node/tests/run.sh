#!/bin/sh
# The node that `make run` starts: run.sh NODE [JZX]
#
# It says where to look, what it says is there, `jzx` sees what goes on in it, and it stops cleanly on
# Ctrl-C and SIGTERM, also under load and while an actor loops for ever: exit status 0, every message
# accounted for, nothing left behind.
set -u
node=$1
jzx=${2:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/jzx-node.XXXXXX") || exit 1
export XDG_RUNTIME_DIR="$work"
process=
other=
trap '[ -z "$process$other" ] || kill -9 $process $other 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "node: $*"
    [ -z "$process" ] || cat "$work/out" "$work/err"
    exit 1
}

# Tries a command until it succeeds, for at most two minutes.
wait_for() {
    tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 1200 ] || fail "in vain: $*"
        sleep 0.1
    done
}

start() {
    : >"$work/out"
    "$node" "$@" >"$work/out" 2>"$work/err" &
    process=$!
    wait_for grep -q '^Ctrl-C stops' "$work/out"
}

# Ends it by a signal and looks at how it went.
stop() {
    kill -s "$1" "$process"
    wait "$process"
    status=$?
    [ "$status" -eq 0 ] || fail "exit status $status after SIG$1"
    process=
    grep -q 'None was lost' "$work/out" || fail "no word of what became of the messages"
    grep -q '^Stopped in [12]\{0,1\}[0-9]\.' "$work/out" || fail "$(grep Stopped "$work/out")"
    grep -q ', 0 killed' "$work/out" || fail "$(grep Stopped "$work/out")"
    [ ! -s "$work/err" ] || fail "$(cat "$work/err")"
    left=$(find "$work" -name '*.sock')
    [ -z "$left" ] || fail "left behind: $left"
    # What the crash guard caught is on record, and stays.
    silent=$(find "$work" -name '*.flight' ! -exec grep -q crash {} \; -print)
    [ -z "$silent" ] || fail "no crash in $silent"
}

# refused ARGUMENT...: says why, does nothing, ends with 2.
refused() {
    "$node" "$@" >"$work/out" 2>"$work/err"
    status=$?
    { [ "$status" -eq 2 ] && [ -s "$work/err" ] && [ ! -s "$work/out" ]; } ||
        fail "status $status for: $*"
}

# What it tells to try works as it is printed, also while another node runs. `--once`: here is no
# terminal, and time is short.
try_commands() {
    "$node" --no-console >"$work/other" 2>&1 &
    other=$!
    wait_for grep -q '^Ctrl-C stops' "$work/other"
    sed -n 's/^  \(.* -p [0-9]*\) .*/\1 --once/p' "$work/out" >"$work/tries"
    [ "$(wc -l <"$work/tries")" -ge 9 ] || fail "few commands to try: $(cat "$work/tries")"
    while read -r try; do
        sh -c "$try" >"$work/tried" 2>&1 </dev/null
        status=$?
        # Something is stuck in it, and there is a mistake for the doctor.
        case $status in
        0 | 4 | 5) ;;
        *) fail "status $status of: $try: $(cat "$work/tried")" ;;
        esac
    done <"$work/tries"
    kill "$other"
    wait "$other"
    other=
}

look() { # VIEW ARGUMENT...: one look at the node, whose output has to have all patterns of $want
    "$jzx" "$@" -p "$process" >"$work/look" 2>&1 # `stuck` ends with 4 when it found something
    for pattern in $want; do
        grep -q -e "$pattern" "$work/look" || return 1
    done
}

"$node" --help | grep -q '^usage: jzx-node' || fail "no help"
refused --load
refused --load 0
refused --faults 121
refused --faults -1
refused --port 65536
refused --seconds 1x
refused --what

# The line that changes is for terminals: this one runs beside the rest.
if command -v script >/dev/null; then
    script -qec "stty cols 60; TERM=vt100 exec $node --seconds 3 --no-console" /dev/null \
        >"$work/terminal" </dev/null &
    terminal=$!
    script -qec "TERM=dumb exec $node --seconds 3 --no-console" /dev/null >"$work/dumb" </dev/null &
    dumb=$!
fi

start --stuck --faults 120 --port 0
socket=$(sed -n 's/^The control socket is //p' "$work/out")
[ -S "$socket" ] || fail "there is no $socket"
[ "$(stat -c %a "$socket")" = 600 ] || fail "others may look: $(stat -c %a "$socket")"
if [ -n "$jzx" ]; then
    want='shop database bank pay mailer clerk-6 parcel gate-4 meter gremlin looper hen'
    wait_for look tree --once
    want='looper tag.109 search_for_the_last_prime hen egg'
    wait_for look stuck --once
    "$jzx" send bank --tag 103 -p "$process" >/dev/null || fail "jzx send"
    want='SIGSEGV parse_the_banks_answer'
    wait_for look actor bank --once
    want='mailer dropped'
    wait_for look dead --once
    want='bank NAME'
    wait_for look top --once
    try_commands
fi
url=$(sed -n 's/^The console: *//p' "$work/out")
if [ -n "$url" ] && command -v curl >/dev/null; then
    curl -sf --max-time 10 "$url" | grep -qi '<html' || fail "there is no console at $url"
fi
# From where `make run` starts it, all of it fits on a terminal of the usual width.
folder=$(dirname "$node")
{ sed "s|^  $folder/|  build/release/|" "$work/out" && "$node" --help; } >"$work/wide"
! grep -v '^The control socket' "$work/wide" | grep -E '.{81}' || fail "more than 80 columns"
stop INT
! grep -v '^The control socket\|^  ' "$work/out" | grep -E '.{81}' || fail "more than 80 columns"
! grep -q "$(printf '\r')" "$work/out" || fail "a line for terminals in a file"

start --load 2000 --faults 120 --no-console
stop TERM
! grep -q '^The console' "$work/out" || fail "a console that nobody wanted"

if [ -n "${terminal:-}" ]; then
    wait "$terminal" || fail "status $? on a terminal: $(cat "$work/terminal")"
    grep -q 'orders/s' "$work/terminal" || fail "nothing live on a terminal"
    # What is behind the end of a line of the terminal, as ^C, would stay when the next one comes.
    tr '\r' '\n' <"$work/terminal" | sed "s/^$(printf '\033')\[K//" | grep 'orders/s' >"$work/live"
    ! grep -E '.{58}' "$work/live" || fail "wider than the terminal"
    wait "$dumb" || fail "status $? on a dumb terminal: $(cat "$work/dumb")"
    ! grep -q "$(printf '\033')" "$work/dumb" || fail "escape sequences on a dumb terminal"
fi
