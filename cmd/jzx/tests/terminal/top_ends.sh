#!/bin/sh
# How jzx top ends, and what it is not stopped by: top_ends.sh JZX FIXTURE SCREENS
#
# The terminal is given back after q, Ctrl-C, SIGTERM, a crash of jzx, and during Ctrl-Z; an actor
# that hangs and a program that stands still or dies are told; a program that comes back is shown.
set -u
. "$(dirname "$0")/lib.sh"

start_top() {
    run "$1 $jzx top -p $socket --interval 0.2 $2"
    see 'actors 28'
    see 'box'
}

# The process in the pane that is jzx.
top_pid() {
    pgrep -P "$(t display-message -p '#{pane_pid}')" -x jzx
}

check_job_control() {
    start_top '' ''
    keys C-z
    see 'ready>'
    check_restored 'Ctrl-Z'
    run fg
    see 'actors 28'
    see 'by mailbox'
    # Another size meanwhile.
    keys C-z
    see 'ready>'
    size 100 30
    run fg
    see 'by mailbox'
    within 'not as large as the terminal' at_bottom 30
    size 80 24
    within 'not as large as the terminal' at_bottom 24
    keys C-c
    check_restored 'Ctrl-C'
}

at_bottom() {
    screen | sed -n "$1p" | grep -q 'by mailbox'
}

check_signals() {
    start_top '' ''
    kill -TERM "$(top_pid)"
    check_restored SIGTERM
    start_top '' ''
    kill -SEGV "$(top_pid)"
    check_restored SIGSEGV
    start_top '' '--iterations 4'
    check_restored 'the last iteration'
}

check_looks() {
    start_top NO_COLOR=1 ''
    keep top-no-color
    # Attributes are fine, colours are not: 30 to 49, 90 to 107.
    esc=$(printf '\033')
    if grep -qE "$esc\[([0-9;]*;)?(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]" "$screens/top-no-color.ansi"; then
        fail "colours in spite of NO_COLOR"
    fi
    keys q
    see 'ready>'
    start_top 'LC_ALL=C' ''
    within 'no rows' shows 'box'
    screen | LC_ALL=C grep -q '[^ -~]' && fail "other characters than ASCII in the locale C"
    keep top-ascii
    keys q
    see 'ready>'
}

# What cannot be drawn on is not scribbled on.
check_terminals() {
    for kind in dumb nonesuch ''; do
        run_until_end "TERM=$kind $jzx top -p $socket"
        [ "$ended" = 1 ] || fail "status $ended with TERM=$kind"
        see 'is TERM right?'
    done
    check_restored 'a terminal that is not known'
}

check_stuck() {
    start_top '' ''
    kill -USR1 "$fixture_pid"
    see 'NOT ANSWERING'
    see 'in spinner (tag 7)'
    keep top-stuck
    keys s
    see 'spinner'
    see 'tag 7'
    keep top-stuck-page
    keys q
    kill -USR2 "$fixture_pid"
    see_not 'NOT ANSWERING'
    see 'desk pinned'
}

check_orders() {
    keys /
    see 'Filter:'
    keys -l 'worker-07'
    see_not 'worker-08'
    keys Enter
    see '1-1 of 1,'
    keys k
    see 'Stop worker-07'
    keys n
    see 'Left alone'
    keys K
    see 'Kill worker-07'
    keys y
    see 'worker-07 was told to die'
    keys Escape
    # Its supervisor starts it again.
    keys e
    within 'worker-07 is not restarted' restarted
    keys m
}

restarted() {
    screen | grep 'worker-07' | grep -q ' 1 '
}

check_program() {
    # Stopped as by a debugger: keys work on.
    kill -STOP "$fixture_pid"
    see 'No answer for'
    keys h
    see 'Keys of jzx top'
    kill -CONT "$fixture_pid"
    keys q
    see_not 'No answer for'
    end_fixture
    see 'fixture has ended'
    keep top-ended
    keys w
    see 'Waiting until it is back'
    start_fixture
    see 'fixture is back'
    see "pid $fixture_pid"
    see 'box'
    end_fixture
    see 'fixture has ended'
    keys q
    check_restored 'q after the end of the program'
}

start_fixture
pane 80 24
check_looks
check_terminals
check_job_control
check_signals
check_stuck
check_orders
check_program
