#!/bin/sh
# jzx top in a terminal: top.sh JZX FIXTURE SCREENS
#
# The actors of the fixture with their numbers, sorting, filter, pause, the pages, and resizing, at
# 80x24 and at 140x45.
set -u
. "$(dirname "$0")/lib.sh"

# The rows of the table: what is between the titles and the last line.
rows() {
    screen | awk '/ NAME .*STATE/ { table = 1; next } table' | sed '$d' | grep -v '^$'
}

# The row of a name.
row_of() {
    rows | awk -v name="$1" '$2 == name'
}

row_has() {
    row_of "$1" | grep -q -- "$2"
}

# first_are "A B C": the names in the first rows. Titles change with a key, rows with the answer: so
# what is new is waited for as a whole.
first_are() {
    case "$(rows | awk '{ printf "%s ", $2 }')" in
    "$1 "*) ;;
    *) return 1 ;;
    esac
}

rows_have() {
    rows | grep -q -- "$1"
}

count_is() {
    [ "$(rows | wc -l)" -eq "$1" ]
}

head_changed() {
    [ "$(screen | head -n 2)" != "$1" ]
}

# ticker gets 100 messages per second; a machine that is busy may be late.
rate_is_there() {
    row_of ticker | awk '{ rate = $5 ~ /^[0-9.]+$/ ? $5 : $6; exit !(rate >= 10 && rate <= 300) }'
}

check_numbers() {
    see 'actors 28'
    see 'queued 37'
    see 'restarts 3'
    see 'failures 3'
    within 'box is not first by mailbox' first_are box
    within 'the mailbox of box' row_has box ' 37/64 '
    within 'ticker has no rate' rate_is_there
    keys e
    within 'flaky is not first by restarts' first_are flaky
    within 'the restarts of flaky' row_has flaky ' 3 '
    keys m
    within 'box is not first again' first_are box
}

check_sorting() {
    keys n
    see 'by name'
    within 'the order by name' first_are 'box café-日本 crew flaky hand service spinner'
    keys R
    see 'by name reversed'
    within 'the order in reverse' first_are 'worker-20 worker-19 worker-18'
    keys End
    see '28 of 28'
    within 'box is not last in reverse' last_is box
    keys Home
    within 'Home does not go back' first_are worker-20
    # The arrows go to the columns that sort: from the name to the id and to the mailbox.
    keys Right
    see 'by mailbox'
    keys Left
    see 'by name'
    keys t
    see 'tree'
    within 'the order of the tree' first_are 'hand service box ticker café-日本 crew worker-01'
    within 'box is not below service' rows_have '^ *[0-9a-f]*   box '
    within 'worker-01 is not below crew' rows_have '^ *[0-9a-f]*     worker-01 '
    keep "top-tree-$1"
    keys m
    see 'by mailbox'
}

last_is() {
    [ "$(rows | tail -n 1 | awk '{ print $2 }')" = "$1" ]
}

check_filter() {
    keys /
    see 'Filter:'
    keys -l 'worker-1'
    within 'the filter leaves other rows' count_is 10
    [ "$(rows | grep -c 'worker-1')" -eq 10 ] || fail "the filter shows others"
    keys BSpace 2
    see 'Filter: worker-2'
    within 'backspace does not widen the filter' count_is 1
    keys Enter
    see 'filter worker-2'
    keys Escape
    see_not 'filter worker-2'
    within 'the filter stays' first_are box
}

check_pause() {
    keys p
    see PAUSED
    before=$(screen)
    # Three looks would have come meanwhile.
    sleep 0.7
    [ "$(screen)" = "$before" ] || fail "a paused screen changed"
    keys n
    within 'a paused table is not sorted' shows 'by name'
    [ "$(screen | head -n 2)" = "$(echo "$before" | head -n 2)" ] || fail "the head changed in pause"
    keys m p
    see_not PAUSED
    within 'it does not go on' head_changed "$(echo "$before" | head -n 2)"
}

check_pages() {
    keys /
    see 'Filter:'
    keys -l flaky
    within 'flaky is not found' count_is 1
    keys Enter Enter
    see 'lines'
    see 'fell over'
    see 'history'
    keep "top-actor-$1"
    keys q
    see 'NAME'
    keys Escape d
    see 'Dead letters by reason'
    keys q s
    see 'What makes no progress'
    keys Escape h
    see 'Keys of jzx top'
    keys q
    within 'the list is not back' first_are box
}

# Every row once, one line of titles, and the last line at the bottom.
is_whole() {
    [ "$(screen | grep -c 'NAME')" -eq 1 ] && first_are box &&
        [ -z "$(rows | awk '{ print $2 }' | sort | uniq -d)" ] &&
        screen | tail -n 1 | grep -q "of 28, by mailbox"
}

check_resize() {
    size 140 45
    see DISPATCHER
    within 'leftovers after growing' is_whole
    within 'not all rows after growing' count_is 28
    size 20 5
    see_not DISPATCHER
    see 'NAME'
    check_width 20
    size 19 5
    see 'terminal too'
    size 20 4
    see 'terminal too'
    size 80 24
    see_not 'terminal too'
    within 'leftovers after shrinking' is_whole
    check_width 80
}

look_at() {
    pane "$1" "$2"
    run "$jzx top -p $socket --interval 0.2"
    check_numbers
    keep "top-$1x$2"
    check_width "$1"
    check_sorting "$1x$2"
    check_filter
    check_pause
    check_pages "$1x$2"
}

start_fixture
look_at 80 24
check_resize
keys q
check_restored 'q'
look_at 140 45
keys q
check_restored 'q'
