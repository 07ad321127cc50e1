#!/bin/sh
# Three clients talk to the server, the second one makes its connection panic, the others are still
# served; SIGINT ends it all. What clients and server said is compared with supervised_tcp.expected.
set -eu
here=$(dirname "$0")
command -v bash >/dev/null || exit 77 # it has sockets
work=$(mktemp -d)
"$1" 127.0.0.1:0 >"$work/server" &
server=$!
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
tries=0
while ! grep -q listening "$work/server"; do
    tries=$((tries + 1))
    if [ "$tries" -ge 400 ] || ! kill -0 "$server" 2>/dev/null; then
        echo "The server does not listen."
        exit 1
    fi
    sleep 0.05
done

bash -eu -c '
    exec 3<>"/dev/tcp/127.0.0.1/$0" 4<>"/dev/tcp/127.0.0.1/$0" 5<>"/dev/tcp/127.0.0.1/$0"
    say() { # CLIENT DESCRIPTOR LINE
        echo "$3" >&"$2"
        if read -r -t 60 answer <&"$2"; then
            echo "client $1: $answer"
        else
            echo "client $1 was cut off"
        fi
    }
    say 1 3 hello
    say 2 4 hello
    say 3 5 hello
    say 2 4 boom
    say 1 3 "still here"
    say 3 5 "still here"
    kill -INT "$1"
    read -r -t 60 answer <&3 || echo "client 1 was told goodbye"
' "$(sed -n 's/^listening on .*://p' "$work/server")" "$server" >"$work/clients"
wait "$server"
server=
sed 's/:[0-9]*$/:PORT/' "$work/server" | cat "$work/clients" - |
    diff -u "$here/supervised_tcp.expected" -
