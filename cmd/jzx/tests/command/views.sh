#!/bin/sh
# Goal: jzx tells the truth about running programs, and behaves in pipes and scripts. Method: the
# fixture runs, things are made to happen in it by `jzx send`, and jzx looks: views.sh JZX FIXTURE
#
# When root runs it, all of it runs as a user without programs, so that others on this machine are
# not seen.
# shellcheck disable=SC2086 # $as and $order are words, or none
set -u
work=$(mktemp -d /tmp/jzx-views-XXXXXX)
pids=
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
    # shellcheck disable=SC2086 # the list is meant to split
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
chmod 755 "$work"
# Where the build is may be closed to that user.
cp "$1" "$work/jzx" && cp "$2" "$work/fixture" || exit 1
mkdir "$work/run"
chmod 700 "$work/run"
as=
if [ "$(id -u)" -eq 0 ]; then
    user=61234
    chown $user "$work" "$work/run"
    as="setpriv --reuid=$user --regid=$user --clear-groups"
    $as true 2>/dev/null || as=
fi
jzx=$work/jzx
out=$work/out
err=$work/err
export XDG_RUNTIME_DIR="$work/run" LC_ALL=C.UTF-8 TZ=UTC
failed=0
checks=0

complain() {
    echo "$*"
    sed 's/^/    out: /' "$out" | head -n 12
    sed 's/^/    err: /' "$err" | head -n 5
    failed=1
}

# run STATUS ARGUMENT...: jzx must end with that status.
run() {
    wanted=$1
    shift
    timeout 60 $as "$jzx" "$@" >"$out" 2>"$err" </dev/null
    status=$?
    checks=$((checks + 1))
    [ "$status" -eq "$wanted" ] || complain "jzx $* ended with $status, not with $wanted:"
}

says() {
    checks=$((checks + 1))
    grep -qE -- "$1" "$out" || complain "The output does not say: $1"
}

never_says() {
    checks=$((checks + 1))
    ! grep -qE -- "$1" "$out" || complain "The output says: $1"
}

warns() {
    checks=$((checks + 1))
    grep -qE -- "$1" "$err" || complain "Standard error does not say: $1"
}

silent() {
    checks=$((checks + 1))
    [ ! -s "$1" ] || complain "Nothing should be in $1:"
}

is_json() {
    checks=$((checks + 1))
    [ -s "$out" ] || complain "There should be JSON:"
    cat "$out" >>"$work/json"
}

give_up() {
    complain "$*"
    cat "$work/shop.ready"
    exit 1
}

# until_says PATTERN ARGUMENT...: jzx says it sooner or later.
until_says() {
    pattern=$1
    shift
    tries=0
    until timeout 60 $as "$jzx" "$@" >"$out" 2>"$err" </dev/null || [ $? -eq 4 ] &&
        grep -qE -- "$pattern" "$out"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || give_up "jzx $* never said: $pattern"
        kill -0 "$shop" 2>/dev/null || give_up "The fixture died, before it said: $pattern"
        sleep 0.05
    done
    checks=$((checks + 1))
}

# `jzx dead` from now on, into $work/follow.
follow_dead() {
    : >"$work/follow" # now, not when the shell behind gets to it
    $as "$jzx" dead -p shop >"$work/follow" 2>&1 &
    follow=$!
    pids="$pids $follow"
}

# await_letters N: `jzx dead`, which runs behind, has shown as many.
await_letters() {
    tries=0
    until [ "$(grep -c 'tag 77' "$work/follow")" -eq "$1" ]; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || give_up "jzx dead does not show $1 letters: $(cat "$work/follow")"
        sleep 0.05
    done
    checks=$((checks + 1))
}

# start NAME [VARIABLE=VALUE...]: a fixture; its pid is in $pid.
start() {
    name=$1
    shift
    : >"$work/$name.ready"
    env "$@" $as "$work/fixture" "$name" >"$work/$name.ready" 2>&1 &
    pid=$!
    pids="$pids $pid"
    tries=0
    until grep -q '^ready' "$work/$name.ready"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || {
            echo "The fixture does not start:"
            cat "$work/$name.ready"
            exit 1
        }
        sleep 0.05
    done
}

# Help and wrong calls need no program.
run 0 --help && says '^usage: jzx' && never_says '.{81}'
for command in ps tree actor dead trace stuck doctor record metrics stop kill restart send; do
    run 0 $command --help && says "^usage: jzx $command" && says '--json' && silent "$err"
    never_says '.{81}' # on a terminal of the usual width
    run 2 $command --nonsense && warns "There is no option --nonsense" && silent "$out"
done
for command in top console manifest; do
    $as "$jzx" --help | grep -q "^  $command " || continue # this jzx has none
    run 0 $command --help && says "^usage: jzx $command" && never_says '.{81}'
done
run 2 nonsense && warns "There is no command 'nonsense'"
run 2 actor && warns '`actor` takes ACTOR'
run 2 tree --depth x && warns 'takes a number'
run 2 trace --for -1 && warns 'takes seconds'
run 2 trace --rate 0 && warns 'takes a number from 1 to 100000'
run 2 trace --rate 100001 && warns 'takes a number from 1 to 100000'
run 2 trace --tag 4294967296 && warns 'takes a number from 0 to 4294967295'
run 2 send a --tag 4294967296 && warns 'takes a number from 0 to 4294967295'
run 2 send a --u64 99999999999999999999 && warns 'takes a number from 0 to 9223372036854775807'
run 2 tree --depth 4294967296 && warns 'takes a number from 0 to'
run 2 stuck --limit 99999999999 && warns 'takes a number from 0 to'
run 2 record --limit 10001 && warns 'takes a number from 0 to 10000'
for words in 'tree --under' 'trace --under' 'trace --actor' 'send a --text'; do
    # shellcheck disable=SC2086 # the words are meant to split
    run 2 $words "$(printf 'caf\351')" && warns 'not UTF-8'
done
run 2 tree -xy && warns 'There is no option -x\.'
run 0 ps --help && never_says 'PROGRAM|--program'
run 2 ps -p 1 && warns 'takes none'
run 2 send a --u64 1 --text b && warns 'not both'
run 2 tree a b && warns 'one program at most'
run 1 tree -p "$work/no.sock" && warns 'There is no socket'
run 1 tree -p "$work" && warns 'not the socket of a Jazz program'
run 1 tree -p "$work/jzx" && warns 'not the socket of a Jazz program'
if [ -n "$as" ]; then
    run 0 ps && says 'No Jazz program'
    run 1 tree && warns 'No Jazz program' && warns 'JZX_CONTROL=auto'
fi

# One program: it is found, by itself, by name, by pid and by socket.
start shop ALLOW=1
shop=$pid
run 0 ps && says "^ *$shop  shop " && says "$work/run/jzx/$shop.sock"
run 0 ps --json && says "\"pid\":$shop" && says '"control":"' && is_json
[ -z "$as" ] || run 0 tree
for program in shop $shop "$work/run/jzx/$shop.sock"; do
    run 0 tree -p "$program" && says '^shop '
    run 0 tree "$program" && says '^shop '
done
run 1 tree -p nobody && warns "no program 'nobody'" && warns "$shop +shop"

# The tree, as it is, in Unicode and ASCII; names of others do nothing to a terminal.
run 0 tree -p shop && says '^├─ crew ' && says '^│  ├─ worker-1 ' && says '^│  └─ worker-2 ' &&
    says '^└─ evil\?\[31m名' && says 'running +0/4 ' && never_says "$(printf '\033')"
run 0 tree -p shop --ascii && says '^\|- crew ' && says '^\|  `- worker-2 ' &&
    says '^`- evil\?\[31m\?' && never_says '├'
run 0 tree -p shop --under crew && says '^crew ' && says '^├─ worker-1' && never_says 'clock'
run 0 tree -p shop --depth 1 && says 'crew' && never_says 'worker-1'
run 0 tree -p shop --children 2 && says '^└─ \.\.\. and 3 more' && says '5 of 8 actors are shown'
run 0 tree -p shop --limit 3 && says '3 of 8 actors are shown'
run 0 tree -p shop --json && says '"matched":8' && is_json
run 1 tree -p shop --under nobody && warns 'nobody'

# One actor.
until_says 'timers +tag 10 in' actor -p shop clock
says '^clock \([0-9a-f]+\)  running' && says 'every 5ms' && says '^mailbox +[0-9]+ of 1,024'
until_says 'one_for_one, at most 100 restarts in 1.0s' actor -p shop crew
says 'worker-1 \([0-9a-f]+\)  up, permanent'
run 0 actor -p shop crew --json && is_json
id=$(sed -n 's/.*"actor":{"id":"\([0-9a-f]*\)".*/\1/p' "$out")
run 0 actor -p shop "$id" && says "^crew \($id\)"
run 1 actor -p shop nobody && warns 'nobody' && silent "$out"

# A crash shows with its place in the source, and as a restart.
run 0 send -p shop worker-1 --tag 3 && says 'worker-1 was sent'
until_says 'worker-1 .* running .* 1 +[0-9.]+m?s' tree -p shop
run 0 actor -p shop worker-1 && says 'crash 11: SIGSEGV at 0x0' && says 'incarnation 1' &&
    says '#0 .*(read_through at fixture.c:[0-9]+|fixture)' && says 'restarting'
run 0 send -p shop worker-2 --tag 4
until_says 'it was asked to' actor -p shop worker-2
run 0 record -p shop && says 'worker-1' && says 'fail' && never_says "$(printf '\033')"
run 0 record -p shop --limit 2 --json && is_json && says '"events":\['
run 0 record -p shop --dump && says 'Written to'
file=$(sed -n 's/^Written to \(.*\)\.$/\1/p' "$out")
[ -s "$file" ] || complain "There is no flight recorder in '$file':"

# Dead letters: those that are kept, those that come, and how many by reason.
run 0 send -p shop worker-1 --tag 5 --u64 3
until_says '^ +3  stopped' dead -p shop --once
# Also of those that are gone one sees who it was.
says 'stopped +tag 77 +user .* to victim \([0-9a-f]+\) from worker-1 \([0-9a-f]+\)$'
if command -v script >/dev/null; then
    for columns in 80 60 25; do
        $as script -qec "stty cols $columns; NO_COLOR=1 $jzx dead -p shop --once --ascii" /dev/null \
            </dev/null 2>"$err" | tr -d '\r' >"$out"
        never_says ".{$((columns + 1))}"
        # Nothing is missing: without its line ends it is what a file would have.
        tr -d ' \n' <"$out" >"$work/flat" && cp "$work/flat" "$out"
        says 'stoppedtag77user8?0?bytestovictim\([0-9a-f]+\)fromworker-1\([0-9a-f]+\)' && never_says '\.\.\.'
    done
    $as script -qec "stty cols 60; NO_COLOR=1 $jzx trace -p shop --for 0.1" /dev/null \
        </dev/null 2>"$err" | tr -d '\r' >"$out"
    never_says '.{61}' && says '^ +from clock \([0-9a-f]+\)$'
fi
run 0 dead -p shop --once --json && is_json && says '"by_reason":\{'
follow_dead
await_letters 3
run 0 send -p shop worker-1 --tag 5 --u64 2
await_letters 5
kill -INT $follow
wait $follow
status=$?
cp "$work/follow" "$out"
[ $status -eq 0 ] || complain "jzx dead ended with $status after an interrupt:"
says '^ +5  stopped'

# A trace: lines, JSON, and a file for Perfetto.
until_says 'handled +tag 10 .*  mute .* from clock' trace -p shop --for 0.2
says 'handled +tag 10 +[0-9.]+[nu]s  clock \([0-9a-f]+\) .* as timer$' && never_says 'sent ' &&
    warns '^[0-9,]+ events'
until_says 'mute' trace -p shop --for 0.2 --actor mute --sends
never_says 'handled .*s  clock'
run 0 trace -p shop --for 0.1 --tag 99 && never_says 'tag '
run 0 trace -p shop --for 0.1 --under crew && never_says 'tag '
until_says '"what":"handled"' trace -p shop --for 0.1 --json
is_json
# What belongs to one request: the request and its reply, and nothing else.
until_says 'handled +tag 12 .*  clock .* as reply .*correlation c0ffee$' \
    trace -p shop --for 0.2 --correlation C0FFEE --sends
says 'handled +tag 12 .*  mute .* from clock .*correlation c0ffee$' && never_says 'tag 10 '
until_says '"correlation":"c0ffee"' trace -p shop --for 0.1 --correlation c0ffee --json
is_json && never_says '"correlation":null'
run 0 trace -p shop --for 0.1 --correlation c0ffe && never_says 'tag '
run 1 trace -p shop --for 0.1 --correlation coffee && warns 'hexadecimal'
run 1 trace -p shop --actor nobody && warns 'nobody'
run 1 trace -p shop --for 0.1 --perfetto "$work/none/x" && warns 'cannot be written'
run 1 trace -p shop --for 0.1 --perfetto /dev/full && warns 'cannot be written: No space left' &&
    ! grep -q 'can be opened' "$err" || complain "What was not written can hardly be opened:"
# One that does not come about leaves alone what is there, and nothing where nothing was.
$as sh -c 'yes precious | head -n 100000 >"$1"' sh "$work/run/trace.json"
run 1 trace -p shop --actor nobody --perfetto "$work/run/trace.json" && warns 'nobody'
grep -q precious "$work/run/trace.json" || complain "The file that was there is gone:"
run 1 trace -p shop --actor nobody --perfetto "$work/run/new.json" && warns 'nobody'
[ ! -e "$work/run/new.json" ] || complain "There is a file without a trace:"
run 0 trace -p shop --for 0.3 --sends --perfetto "$work/run/trace.json" && warns 'ui.perfetto.dev'
cp "$work/run/trace.json" "$out"
says '"ph":"M".*"process_name".*"shop"' && says '"thread_name".*"clock"' && says '"ph":"s"' &&
    says '"ph":"f"' && says '"ph":"X".*"dur":[0-9]+\.[0-9]{3},' &&
    says '"ph":"X".*"correlation":"c0ffee"' && says '"correlation":""'
tr -d '\n' <"$out" >"$work/flat" && cp "$work/flat" "$out" && echo >>"$out" && is_json

# Metrics and advice.
run 0 metrics -p shop && says '^# TYPE jzx_messages_handled_total counter' &&
    says '^jzx_messages_handled_total [0-9]'
run 0 metrics -p shop --json && is_json
timeout 60 $as "$jzx" doctor -p shop >"$out" 2>"$err"
case $? in
0 | 4 | 5) says 'notes$|Nothing to complain' ;;
*) complain "jzx doctor failed:" ;;
esac

# Orders are obeyed, and refused in words.
run 0 restart -p shop worker-2
until_says 'worker-2 .* running .* 2 +[0-9.]+m?s' tree -p shop
run 1 stop -p shop nobody && warns 'nobody'
run 0 kill -p shop worker-2
until_says 'worker-2 .* running .* 3 +[0-9.]+m?s' tree -p shop
run 1 send -p shop worker-1 --text "$(printf '%5000s' x)" && warns 'longer than 4096'

# An ask that nobody answers.
until_says 'Nothing is stuck' stuck -p shop
run 0 send -p shop worker-2 --tag 6
until_says 'worker-2 \([0-9a-f]+\) waits for mute' stuck -p shop --limit 1
run 4 stuck -p shop --limit 1

# For ever in a behavior: who, which tag, for how long, where. Nothing else needs the loop.
run 0 send -p shop worker-1 --tag 2
until_says '  worker-1 \([0-9a-f]+\): handles a message for [0-9.]+m?s, tag 2' stuck -p shop --limit 20
run 4 stuck -p shop --limit 20 && says 'spin_for_ever at fixture.c:[0-9]+|#0 ' && says 'loop does not answer'
run 4 stuck -p shop --limit 20 --json && is_json && says '"tag":2'
for _ in 1 2 3 4 5 6; do
    timeout 60 $as "$jzx" send -p shop small --tag 1 >/dev/null 2>&1
done
until_says '  small \([0-9a-f]+\): 4 of 4 messages' stuck -p shop --limit 20
run 0 actor -p shop worker-1 && says 'handles a message for .*, tag 2' && says 'does not answer'
run 0 tree -p shop && says 'worker-1'
run 0 ps && says 'shop'
kill -USR1 "$shop"
until_says 'worker-1 .* does not run|now +does not run' actor -p shop worker-1

# Pipes: a reader that goes away ends it quietly.
$as "$jzx" metrics -p shop 2>"$err" | head -n 1 >"$out"
silent "$err"
$as "$jzx" trace -p shop --json 2>"$err" | head -n 1 >"$out"
is_json

# A full disk is noticed by every command, also by those that go on and have nothing to tell, and a
# reader that is gone too. `quiet` has no dead letters.
start quiet ALLOW=1
quiet=$pid
full() {
    : >"$out"
    timeout 20 $as "$jzx" "$@" >/dev/full 2>"$err" </dev/null
    status=$?
    checks=$((checks + 1))
    [ $status -eq 1 ] || complain "jzx $* ended with $status on a full disk, not with 1:"
    warns 'The output cannot be written: No space left'
}
gone() {
    : >"$out"
    { timeout 20 $as "$jzx" "$@" 2>"$err" </dev/null; echo $? >"$work/status"; } | true
    checks=$((checks + 1))
    [ "$(cat "$work/status")" -eq 141 ] ||
        complain "jzx $* ended with $(cat "$work/status") in a pipe without a reader, not with 141:"
}
for command in ps tree dead trace stuck doctor record metrics stop kill restart send; do
    full $command --help
done
full --help
full --version
for words in 'tree' 'tree --json' 'tree --watch' 'actor crew' 'actor crew --json' 'dead' \
    'dead --json' 'dead --once' 'dead --once --json' 'trace' 'trace --tag 99' 'trace --tag 99 --json' \
    'stuck' 'stuck --json' 'doctor' 'doctor --json' 'record' 'record --json' 'record --dump' \
    'metrics' 'metrics --json' 'send small --tag 1' 'send small --tag 1 --json' 'top --once' \
    'top --json' 'console' 'console --json'; do
    $as "$jzx" --help | grep -q "^  ${words%% *} " || continue # this jzx has none
    # shellcheck disable=SC2086 # the words are meant to split
    full $words -p quiet
done
full ps
full ps --json
for words in 'tree --watch' 'dead' 'dead --json' 'trace --tag 99' 'trace --tag 99 --json' 'top --json'; do
    $as "$jzx" --help | grep -q "^  ${words%% *} " || continue
    # shellcheck disable=SC2086 # the words are meant to split
    gone $words -p quiet
done
kill -9 "$quiet"
wait "$quiet" 2>/dev/null

# Many actors: the tree is cut, and says so.
run 0 send -p shop worker-1 --tag 7 --u64 3000
until_says '\.\.\. and 2,950 more' tree -p shop
run 0 tree -p shop --children 0 --limit 0 && says 'child-2999 '
[ "$(wc -l <"$out")" -eq 3009 ] || complain "There should be 3,008 actors and a heading:"

# So many that one answer does not hold them: what is beside and above them is there all the same.
run 0 send -p shop worker-2 --tag 7 --u64 30000
until_says 'of 33,008 actors are shown' tree -p shop
says '\.\.\. and 29,950 more'
says '^│  │  ├─ child-49 ' && says '^│  │  └─ \.\.\. and 2,950 more' && says '^└─ evil' &&
    says '^│     ├─ child-49 '
[ "$(wc -l <"$out")" -eq 112 ] || complain "There should be 108 actors and four other lines:"

# As many without anybody above them are counted all the same.
start crowd ALLOW=1 ROOTS=20000
run 0 tree -p crowd && says '^\.\.\. and 19,951 more' && says ' of 20,008 actors are shown'
run 0 tree -p crowd --depth 0 && says '^\.\.\. and 19,951 more'
if $as "$jzx" top --help >/dev/null 2>&1; then
    run 0 top -p crowd --once --limit 20000 && never_says '^ *\.\.\. *$' && says '^and [0-9]+ more'
    more=$(sed -n 's/^and \([0-9]*\) more.*/\1/p' "$out")
    [ $(($(grep -c ' running ' "$out") + ${more:-0})) -eq 20008 ] ||
        complain "Those that are shown and those that are not should be all:"
fi
# However deep they are, their lines fit on a terminal, and one sees who it is.
run 0 send -p crowd worker-1 --tag 8 --u64 100
until_says '"matched":101,' tree -p crowd --under worker-1 --json
if command -v script >/dev/null; then
    $as script -qec "stty cols 80; NO_COLOR=1 $jzx tree -p crowd --under worker-1 --ascii" /dev/null \
        </dev/null 2>"$err" | tr -d '\r' >"$out"
    [ "$(grep -c ' running ' "$out")" -eq 101 ] || complain "There should be 101 lines:"
    never_says '.{81}' && never_says '^[ |`-]+\.\.\. '
fi
run 0 send -p crowd worker-1 --tag 9
wait "$pid"

# Two of them: one has to choose. This one allows nothing, and has its socket elsewhere.
start other CONTROL="$work/elsewhere.sock"
other=$pid
run 0 ps && says "^ *$shop  shop" && says "^ *$other  other"
[ -z "$as" ] || { run 2 tree && warns '2 programs can be looked into' && warns "$other +other"; }
run 0 tree -p "$work/elsewhere.sock" && says '^shop '
for order in stop kill restart send; do
    run 1 $order -p other worker-1 && warns 'allow' &&
        warns "JZX_CONTROL_$(echo $order | tr "[:lower:]" "[:upper:]")"
done

# Of several with one name those are told that have it.
start twin
first=$pid
start twin
run 2 tree -p twin && warns '2 programs have that name' && warns "^ *$first  twin" &&
    warns "^ *$pid  twin"
! grep -qE "^ *$shop " "$err" || complain "That one was not meant:"
kill -9 "$first" "$pid"

# What has no name of ours is not looked at, and nothing of it gets to a terminal.
$as mv "$work/run/jzx/$other.sock" "$work/run/jzx/1-$(printf '\033')[31m.sock"
run 1 tree -p nobody && warns "^ *$shop " && ! grep -q "$(printf '\033')" "$err" ||
    complain "The name of a file is on the terminal as it is:"
$as mv "$work/run/jzx/1-$(printf '\033')[31m.sock" "$work/run/jzx/$other.sock"

# A program that does not answer is told, and a folder of somebody else is not looked into.
kill -STOP "$other"
run 0 ps && says "^ *$other  The program at .* says nothing" && says "^ *$shop  shop"
kill -CONT "$other"
if [ -n "$as" ]; then
    mkdir -p "$work/theirs/jzx"
    ln -s "$work/run/jzx/$shop.sock" "$work/theirs/jzx/$shop.sock"
    XDG_RUNTIME_DIR=$work/theirs
    run 0 ps && never_says shop
    chown -R "$user" "$work/theirs"
    run 0 ps && says shop
    XDG_RUNTIME_DIR=$work/run
fi

# Another user made our directory in /tmp first: the program has one that nobody can guess, and is
# found there. What is not ours of that name is not looked into.
if [ -n "$as" ]; then
    victim=$((61300 + $$ % 500))
    as="setpriv --reuid=$victim --regid=$victim --clear-groups env -u XDG_RUNTIME_DIR"
    mkdir -p "/tmp/jzx-$victim" "/tmp/jzx-$victim-planted"
    chmod 755 "/tmp/jzx-$victim" "/tmp/jzx-$victim-planted"
    ln -s "$work/run/jzx/$shop.sock" "/tmp/jzx-$victim-planted/$shop.sock"
    start denied
    spare=$(sed -n 's/^ready \(.*\)\/[0-9]*\.sock$/\1/p' "$work/denied.ready")
    case $spare in
    /tmp/jzx-"$victim"-??????) ;;
    *) complain "The program is served in '$spare':" ;;
    esac
    [ "$(stat -c %a:%u "$spare")" = "700:$victim" ] || complain "$spare is not private:"
    run 0 ps && says "^ *$pid  denied .*$spare/$pid.sock" && never_says shop &&
        warns "/tmp/jzx-$victim belongs to another user \\(uid 0\\)"
    run 0 tree && says '^shop '
    first=$pid
    start again # the same one is taken again
    [ "$(sed -n 's/^ready \(.*\)\/[0-9]*\.sock$/\1/p' "$work/again.ready")" = "$spare" ] ||
        complain "There is another directory for each program:"
    kill -9 "$pid" "$first"
    wait "$pid" "$first" 2>/dev/null
    rm -rf "/tmp/jzx-$victim" "/tmp/jzx-$victim-planted" "$spare"
    as="setpriv --reuid=$user --regid=$user --clear-groups"
fi

# Programs that ended are not shown. What one left behind that was killed is cleared away.
kill -9 "$other"
wait "$other" 2>/dev/null
[ -e "$work/run/jzx/$other.sock" ] || [ -L "$work/run/jzx/$other.sock" ] ||
    complain "The killed program left no link, so this proves nothing:"
# One that is not served while its process lives may be about to be.
$as ln -s "$work/nowhere" "$work/run/jzx/$$.sock"
run 0 ps && never_says "^ *$other "
[ -L "$work/run/jzx/$$.sock" ] || complain "The link of a process that lives is gone:"
[ ! -L "$work/run/jzx/$other.sock" ] || complain "The stale link is still there:"
run 1 tree -p "$work/elsewhere.sock" && warns 'Nobody serves'
follow_dead
await_letters 5
run 0 send -p shop worker-1 --tag 9
wait "$shop" || complain "The fixture did not end well:"
wait $follow
status=$?
cp "$work/follow" "$out"
[ $status -eq 1 ] || complain "jzx dead ended with $status when the program did:"
says 'hung up'
run 1 tree -p shop && warns 'no program'

if command -v python3 >/dev/null; then
    python3 -c '
import json, sys
def no(name): raise ValueError(name)
for line in open(sys.argv[1], encoding="utf-8"):
    o = json.loads(line, parse_constant=no)
    times = [e["ts"] for e in o.get("traceEvents", []) if "ts" in e]
    assert times == sorted(times), "times go back"' "$work/json" >"$out" 2>"$err" ||
        complain "There is wrong JSON:"
fi

echo "$checks checks"
exit $failed
