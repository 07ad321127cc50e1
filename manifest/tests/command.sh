#!/bin/sh
# Goal: `jzx manifest` tells the truth about a file, changes what it is asked to, and behaves in
# pipes and scripts. Method: a file with something of everything, made by sample_test, looked at by
# the command itself: command.sh JZX SAMPLE_TEST
set -u
jzx=$1
sample=$2
base=/tmp
[ -w /dev/shm ] && base=/dev/shm
work=$(mktemp -d "$base/jzx-command-XXXXXX")
holder=
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
    [ -n "$holder" ] && kill "$holder" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
file=$work/m.mf
out=$work/out
err=$work/err
failed=0
checks=0

complain() {
    echo "$*"
    sed 's/^/    out: /' "$out" | head -n 5
    sed 's/^/    err: /' "$err" | head -n 5
    failed=1
}

# run STATUS ARGUMENT...: the command must end with that status.
run() {
    wanted=$1
    shift
    timeout 20 "$jzx" "$@" >"$out" 2>"$err" </dev/null
    status=$?
    checks=$((checks + 1))
    [ "$status" -eq "$wanted" ] || complain "jzx $* ended with $status, not with $wanted:"
}

says() {
    checks=$((checks + 1))
    grep -qF -- "$1" "$out" || complain "The output does not say: $1"
}

warns() {
    checks=$((checks + 1))
    grep -qF -- "$1" "$err" || complain "Standard error does not say: $1"
}

silent() {
    checks=$((checks + 1))
    [ ! -s "$1" ] || complain "Nothing should be in $1:"
}

lines() {
    checks=$((checks + 1))
    [ "$(wc -l <"$out")" -eq "$1" ] || complain "There should be $1 lines:"
}

# Every line is a JSON value of its own: looked at together in the end.
is_json() {
    checks=$((checks + 1))
    [ -s "$out" ] || complain "There should be JSON:"
    cat "$out" >>"$work/json"
}

"$sample" --make "$file" >"$out" 2>"$err" || {
    complain "The sample cannot be made:"
    exit 1
}

# Help and wrong calls.
run 0 --help && says "usage: jzx COMMAND" && silent "$err"
run 0 --version && says "jzx "
run 0 manifest --help && says "usage: jzx manifest FILE"
for words in stats 'jobs list' 'jobs show' 'jobs retry' 'jobs cancel' 'jobs pause' 'jobs resume' \
    chunks check dump backup; do
    # shellcheck disable=SC2086 # two words are two words
    run 0 manifest "$file" $words --help && says "usage: jzx manifest FILE $words"
    # shellcheck disable=SC2086
    run 0 manifest $words --help && says "usage: jzx manifest FILE $words"
done
run 2 && warns "usage:" && silent "$out"
run 2 manifest && warns "usage:"
run 2 nonsense && warns "There is no command 'nonsense'."
run 2 manifest "$file" nonsense && warns "There is no subcommand 'nonsense'."
run 2 manifest "$file" jobs nonsense && warns "There is no subcommand 'jobs nonsense'."
run 2 manifest "$file" jobs show && warns "takes ID..."
run 2 manifest "$file" jobs show x1 && warns "'x1' is not a number"
run 2 manifest "$file" jobs show -- -1 && warns "'-1' is not a number"
run 2 manifest "$file" jobs show 99999999999999999999 && warns "is not a number"
run 2 manifest "$file" jobs retry 2 x && warns "'x' is not a number"
run 2 manifest "$file" stats more && warns "takes no operands"
run 2 manifest "$file" backup && warns "takes TARGET"
run 2 manifest "$file" jobs --state sleepy && warns "'sleepy' is not a state"
run 2 manifest "$file" jobs --state '' && warns "--state needs a state"
run 2 manifest "$file" jobs --limit && warns "needs a value"
run 2 manifest "$file" jobs --kind 0 && warns "is not a kind"
run 2 manifest "$file" jobs --kind 70000 && warns "is not a kind"
run 2 manifest "$file" check --limit 3 && warns "does not take that option"
run 2 manifest "$file" --colour && warns "There is no option --colour"
run 2 manifest "$file" dump job planets && warns "There is no table 'planets'"
run 1 manifest "$file" jobs --kind nobody && warns "There is no kind of the name 'nobody'"
run 1 manifest "$file" jobs --db nobody && warns "There is no database of the name 'nobody'"

# What is no manifest.
run 1 manifest "$work/none" && warns "there is no such file" && silent "$out"
[ ! -e "$work/none" ] || complain "Looking at a file that is not there made it:"
echo "this is no manifest" >"$work/text"
run 1 manifest "$work/text" && warns "$work/text"
run 1 manifest "$work/text" check && warns "$work/text"
run 1 manifest "$work" stats && warns "$work"

# Stats.
run 0 manifest "$file" && says "thumbnail" && says "RECORDS db 2" && silent "$err"
run 0 manifest "$file" stats --json && is_json && lines 1 && says '"dead":1' && says '"chunk":3'
run 0 manifest --json "$file" && is_json && lines 1

# Jobs.
run 0 manifest "$file" jobs && lines 9 && says "shard-7" && silent "$err"
run 0 manifest "$file" jobs list --json && is_json && lines 8
run 0 manifest "$file" jobs --state dead && lines 2 && says 'no "such"'
run 0 manifest "$file" jobs --state queued --json && lines 5
run 0 manifest "$file" jobs --state finished,ready --json && lines 6
run 0 manifest "$file" jobs --kind thumbnail --json && lines 3
run 0 manifest "$file" jobs --kind 1 --state ready --json && lines 1 && says '"key":"shard-7"'
run 0 manifest "$file" jobs --db alpha --json && lines 2
run 0 manifest "$file" jobs --db 700 --json && silent "$out"
run 0 manifest "$file" jobs --limit 3 --json && lines 3
run 0 manifest "$file" jobs --limit 0 --json && silent "$out"
run 0 manifest "$file" jobs show 2 && says "dead" && says '\x1b[31mno' && says "-7"
if grep -q "$(printf '\033')" "$out"; then
    complain "An escape sequence of a job reached the terminal:"
fi
run 0 manifest "$file" jobs show 2 8 --json && is_json && lines 2
says '"payload":{"hex":"fffe006279746573"}'
says '\u001b[31mno \"such\"\\file\u000a'
run 1 manifest "$file" jobs show 3 77 && says "shard-7" && warns "There is no job 77"

# Chunks.
run 0 manifest "$file" chunks && lines 4 && says "2.0 MiB"
run 0 manifest "$file" chunks --json && is_json && lines 3
run 0 manifest "$file" chunks --db 'be"ta' --json && lines 1 && says '"residency":"remote"'
run 0 manifest "$file" chunks --limit 1 --json && lines 1

# Check, dump, backup.
run 0 manifest "$file" check && says "fine" && silent "$err"
run 0 manifest "$file" check --json && is_json && lines 1 && says '"ok":true'
run 0 manifest "$file" dump && says "job id=3" && says 'material hash=' && silent "$err"
run 0 manifest "$file" dump --json && is_json
run 0 manifest "$file" dump kind db --json && is_json && lines 4 && says '"name":"be\"ta"'
run 0 manifest "$file" dump metric --json && lines 1 && says '"sum":2.5,"min":2.5,'
run 0 manifest "$file" dump wal chunk job gate cron generation --json && is_json && lines 14
run 0 manifest "$file" dump material --json && lines 1 && says '"payload":{"hex":"00ff"}'
run 0 manifest "$file" dump ready event --json && is_json && says '"line":"ready kind=1'
run 0 manifest "$file" backup "$work/copy" && says "copied to"
run 1 manifest "$file" backup "$work/copy" && warns "is there already"
run 1 manifest "$file" backup "$work/no/such/place" && warns "cannot be copied"
run 0 manifest "$work/copy" check && says "fine"
run 0 manifest "$file" backup "$work/copy2" --json && is_json && says '"size_bytes":'
run 0 manifest "$work/copy2" jobs --json && lines 8

# Damage is named and ends with 1; nothing crashes.
size=$(wc -c <"$work/copy2")
page=2
while [ $((page * 4096)) -lt "$size" ]; do
    cp "$work/copy2" "$work/damaged"
    dd if=/dev/zero of="$work/damaged" bs=4096 seek="$page" count=1 conv=notrunc 2>/dev/null
    run 1 manifest "$work/damaged" check && says "problem"
    page=$((page + 5))
done
run 1 manifest "$work/damaged" check --json && is_json && says '"ok":false'

# What takes several pieces loses nothing and doubles nothing.
many=$work/many.mf
"$sample" --many "$many" >"$out" 2>"$err" || complain "The large sample cannot be made:"
for words in 'jobs' 'chunks' 'dump job'; do
    # shellcheck disable=SC2086 # two words are two words
    run 0 manifest "$many" $words --json && lines 5000
    sed 's/.*"\(id\|chunk\)":\([0-9]*\).*/\2/' "$out" | sort -nu >"$work/ids"
    seq 5000 | cmp -s - "$work/ids" || complain "Some of $words are missing:"
done
run 0 manifest "$many" jobs --limit 4500 --json && lines 4500
run 0 manifest "$many" check && says "fine"

# Pipes, full disks, colours.
for words in 'jobs' 'chunks' 'dump'; do
    # shellcheck disable=SC2016 # for the inner shell
    sh -c '{ "$1" manifest "$2" $3; echo $? >"$4"; } | head -n 1' sh "$jzx" "$many" "$words" \
        "$work/status" >"$out" 2>"$err"
    lines 1
    silent "$err"
    checks=$((checks + 1))
    # 128 and the number of SIGPIPE: as other programs in a pipe.
    [ "$(cat "$work/status")" -eq 141 ] || complain "$words ended with $(cat "$work/status"):"
done
if [ -w /dev/full ]; then
    "$jzx" manifest "$file" dump >/dev/full 2>"$err"
    [ $? -eq 1 ] || complain "A full disk should end with 1:"
    warns "cannot be written"
    "$jzx" manifest "$file" >/dev/full 2>"$err"
    [ $? -eq 1 ] || complain "A full disk should end with 1:"
fi
if command -v script >/dev/null; then
    TERM=xterm script -qec "'$jzx' manifest '$file' jobs" /dev/null >"$out" 2>"$err" </dev/null
    checks=$((checks + 1))
    grep -q "$(printf '\033')" "$out" || complain "There should be colours on a terminal:"
    NO_COLOR=1 TERM=xterm script -qec "'$jzx' manifest '$file' jobs" /dev/null >"$out" 2>"$err" </dev/null
    checks=$((checks + 1))
    ! grep -q "$(printf '\033')" "$out" || complain "NO_COLOR means no colours:"
fi

# Beside an owner: reading goes on, writing is refused with its name.
mkfifo "$work/hold"
"$sample" --hold "$file" <"$work/hold" >"$work/ready" 2>&1 &
holder=$!
exec 3>"$work/hold"
tries=0
while ! grep -q ready "$work/ready" && [ "$tries" -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
run 0 manifest "$file" jobs --state active --json && lines 1 && says '"worker":42'
run 0 manifest "$file" dump gate && says "job_id=8"
run 0 manifest "$file" check && says "fine"
run 0 manifest "$file" backup "$work/copy3"
run 3 manifest "$file" jobs retry 2 && warns "process $holder" && warns "Stop that process"
run 3 manifest "$file" jobs pause 1 && silent "$out"
exec 3>&-
wait "$holder" || complain "The owner did not end well:"
holder=

# Writing. The job that the owner had in hand is ready again.
run 0 manifest "$file" jobs retry 2 && says "job 2: queued again"
run 1 manifest "$file" jobs retry 2 1 99 --json && is_json && lines 3
run 1 manifest "$file" jobs retry 99 && warns "there is no such job"
run 0 manifest "$file" jobs cancel 3 5
run 1 manifest "$file" jobs cancel 3 && warns "in a state in which that is not possible"
run 0 manifest "$file" jobs --state cancelled --json && lines 4 # 6 came after 5
run 0 manifest "$file" jobs resume upload && says "kind 2: resumed"
run 0 manifest "$file" jobs pause 1 --json && is_json && says '"paused":true'
run 0 manifest "$file" stats --json && says '"kind":1,"name":"thumbnail","paused":true'
run 0 manifest "$file" jobs --state active --json && silent "$out"
run 0 manifest "$file" check && says "fine"
run 1 manifest "$work/none" jobs retry 1
[ ! -e "$work/none" ] || complain "Writing to a file that is not there made it:"

if command -v python3 >/dev/null; then
    python3 -c '
import json, sys
def no(name): raise ValueError(name)
for line in open(sys.argv[1], encoding="utf-8"):
    json.loads(line, parse_constant=no)' "$work/json" >"$out" 2>"$err" || complain "There is wrong JSON:"
fi

echo "$checks checks"
exit $failed
