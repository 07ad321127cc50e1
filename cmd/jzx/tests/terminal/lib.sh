# What the terminal tests share: . lib.sh JZX FIXTURE SCREENS
# shellcheck shell=sh disable=SC2034 # what is set here is used by the scripts that read this one
#
# A tmux server of its own with one pane, in which a shell runs; a fixture to look at; waiting until
# the screen shows something. Screens that are kept go to SCREENS/NAME.txt, with the escape sequences
# to NAME.ansi, and as a picture to NAME.svg.
command -v tmux >/dev/null || { echo "tmux is missing"; exit 77; }
jzx=$1
fixture=$2
screens=$3
tools=$(cd "$(dirname "$0")/../../../../tools" && pwd)
folder=$(mktemp -d)
socket=$folder/fixture.sock
server="jzx-test-$$"
fixture_pid=
mkdir -p "$screens"
# `jzx ps` looks here first, and tmux leaves its sockets here.
export XDG_RUNTIME_DIR="$folder" TMUX_TMPDIR="$folder"
unset TMUX NO_COLOR COLUMNS LINES LC_ALL

t() {
    tmux -L "$server" -f /dev/null "$@"
}

finish() {
    status=$?
    t kill-server 2>/dev/null
    [ -n "$fixture_pid" ] && kill -9 "$fixture_pid" 2>/dev/null
    rm -rf "$folder"
    exit $status
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

fail() {
    echo "FAILED: $*"
    echo "The screen:"
    screen | sed 's/^/  |/'
    exit 1
}

# within WHAT COMMAND...: polls until the command succeeds, for 20 s unless JZX_PATIENCE says otherwise.
within() {
    what=$1
    shift
    tries=$((20 * ${JZX_PATIENCE:-20}))
    while ! "$@"; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "$what"
        sleep 0.05
    done
}

screen() {
    t capture-pane -p
}

shows() {
    screen | grep -qF -- "$1"
}

shows_not() {
    ! shows "$1"
}

see() {
    within "never seen: $1" shows "$1"
}

see_not() {
    within "does not go away: $1" shows_not "$1"
}

keys() {
    t send-keys "$@"
}

keep() {
    screen >"$screens/$1.txt"
    t capture-pane -p -e >"$screens/$1.ansi"
    # Without what the test needs itself.
    sed '/^end-[0-9]*-/d; /^ready>/d' "$screens/$1.ansi" | "$tools/screen2svg" >"$screens/$1.svg"
    grep -q '^</svg>$' "$screens/$1.svg" || fail "no picture of $1"
}

# run COMMAND: in the pane's shell, which has an empty screen before.
run() {
    keys "clear; $1" Enter
}

# run_until_end COMMAND: also waits for its end; $ended is its status. The number tells its last line
# from that of the command before, which may still be on the screen.
runs=0
run_until_end() {
    runs=$((runs + 1))
    run "$1; echo end-$runs-\$?."
    within "does not end: $1" ended_is_told
    ended=$(screen | sed -n "s/^end-$runs-\([0-9]*\)\.\$/\1/p")
}

ended_is_told() {
    screen | grep -q "^end-$runs-[0-9]"
}

# pane COLUMNS ROWS [VARIABLE=VALUE...]: a shell in a terminal of that size.
pane() {
    columns=$1
    rows=$2
    shift 2
    # A server that is ending would still take the next session, and end with it: another one.
    t kill-server 2>/dev/null
    server=$server+
    t new-session -d -x "$columns" -y "$rows" \
        "exec env TERM=$term LANG=C.UTF-8 PS1='ready> ' $* sh"
    # Sizes are set by hand: no client ever looks.
    t set-option -g window-size manual >/dev/null
    see 'ready>'
}

term=screen-256color
infocmp tmux-256color >/dev/null 2>&1 && term=tmux-256color

size() {
    t resize-window -x "$1" -y "$2"
}

start_fixture() {
    : >"$folder/out"
    "$fixture" "$socket" fixture >"$folder/out" 2>&1 &
    fixture_pid=$!
    within "the fixture does not start: $(cat "$folder/out")" grep -q ready "$folder/out"
}

end_fixture() {
    kill -9 "$fixture_pid" 2>/dev/null
    wait "$fixture_pid" 2>/dev/null
    fixture_pid=
}

# The shell is back, on a terminal as it was: echo, lines, a cursor, the usual screen.
restored() {
    [ "$(t display-message -p '#{alternate_on}')" = 0 ] &&
        [ "$(t display-message -p '#{cursor_flag}')" = 1 ]
}

check_restored() {
    within "the terminal is not given back: $1" restored
    run_until_end 'stty -a'
    screen >"$folder/stty"
    for word in echo icanon isig icrnl onlcr; do
        grep -qE "(^| )$word( |;|\$)" "$folder/stty" || fail "$1: the terminal lacks $word"
    done
}

# No line is wider than the terminal, none is there twice, and none but the last line is empty.
check_width() {
    screen | awk -v columns="$1" '
        { gsub(/[\200-\277]/, ""); if (length($0) > columns) { print "too wide: " $0; bad = 1 } }
        END { exit bad }' || fail "lines are wider than $1 columns"
}
