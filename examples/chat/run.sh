#!/bin/sh
# Drives the chat server: run.sh CHAT CHAT_LOAD [OPTION OF THE SERVER...]
#
# First two people talk, and what they read is compared with run.expected. Then the load generator
# crashes rooms and sessions in the middle of it all, and overtakes clients that do not read. In the
# end the server is stopped while all clients are talking. Each time it has to end in order.
set -eu
here=$(dirname "$0")
chat=$1
load=$2
shift 2
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

start() { # ADDRESS [OPTION...]: sets server and address
    wanted=$1
    shift
    : >"$work/log"
    "$chat" --crash "$@" "$wanted" >"$work/log" &
    server=$!
    tries=0
    until address=$(sed -n 's/^listening on //p' "$work/log") && [ -n "$address" ]; do
        tries=$((tries + 1))
        if [ "$tries" -ge 400 ] || ! kill -0 "$server" 2>/dev/null; then
            echo "The server does not listen."
            exit 1
        fi
        sleep 0.05
    done
}

stop() { # waits for the end; no actor may have had to be killed
    [ "${1-}" = told ] || kill -TERM "$server"
    wait "$server" || { echo "The server ended with status $?."; exit 1; }
    server=
    grep -q '^stopped [0-9]* actors, killed 0$' "$work/log" || { cat "$work/log"; exit 1; }
}

talk() { # what the two read, with bash because it has sockets
    bash -eu -c '
        exec 3<>"/dev/tcp/127.0.0.1/$0" 4<>"/dev/tcp/127.0.0.1/$0"
        read_line() { # NAME DESCRIPTOR [LINES]
            for _ in $(seq "${3-1}"); do
                read -r -t 20 line <&"$2" || line="(cut off)"
                echo "$1 reads: $line"
            done
        }
        say() { # NAME DESCRIPTOR LINE [LINES OF THE ANSWER]
            printf "%b\n" "$3" >&"$2"
            read_line "$1" "$2" "${4-1}"
        }
        read_line alice 3 | sed "s/guest\.[0-9]*/GUEST/"
        read_line bob 4 | sed "s/guest\.[0-9]*/GUEST/"
        say alice 3 "hello?"
        say alice 3 "/nick alice"
        say bob 4 "/nick alice"
        say bob 4 "/nick b o b"
        say bob 4 "/nick bob"
        say alice 3 "/join #lobby" 2
        say bob 4 "/join lobby" 2
        read_line alice 3
        say alice 3 "hi \001bob\r"
        read_line bob 4
        say bob 4 "/who"
        say bob 4 "/rooms"
        say bob 4 "/dance"
        say bob 4 "$(head -c 1000 /dev/zero | tr "\0" x)"
        say bob 4 "/crash room\nis anybody here?"
        read_line alice 3
        say bob 4 "/nick robert" 2
        read_line alice 3
        say bob 4 "/leave"
        read_line alice 3
        say bob 4 "/join lobby" 2
        read_line alice 3
        say bob 4 "/crash"
        read_line alice 3
        kill -TERM "$1"
        read_line alice 3 2
    ' "${address##*:}" "$server"
}

if command -v bash >/dev/null; then
    start 127.0.0.1:0 "$@"
    talk >"$work/talk"
    stop told
    sed -n '/failed/p' "$work/log" >>"$work/talk"
    diff -u "$here/run.expected" "$work/talk"
fi

start "unix:$work/chat.sock" "$@"
"$load" --clients 60 --rooms 6 --lines 20 --window 16 --crash "$address"
"$load" --clients 20 --rooms 2 --lines 100 --bytes 390 --slow 2 --json "$address" >"$work/slow" ||
    { cat "$work/slow"; exit 1; }
stop
grep -q '"missed": [1-9]' "$work/slow" || { echo "No client missed anything."; exit 1; }
[ "$(grep -c 'r[0-9] failed: panic 1' "$work/log")" -eq 6 ] || { cat "$work/log"; exit 1; }

start "unix:$work/chat2.sock" "$@"
"$load" --lines 1000000 "$address" >/dev/null 2>&1 &
busy=$!
sleep 0.5
stop
if wait "$busy"; then
    echo "The clients did not notice the end."
    exit 1
fi
