#!/bin/sh
# Without arguments the server talks to itself; with an address it serves until SIGINT and then ends
# with status 0. The signal is watched before the socket appears.
set -eu
here=$(dirname "$0")
sh "$here/../tools/expect" "$here/tcp_echo.expected" "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "unix:$work/echo.sock" &
server=$!
tries=0
while [ ! -S "$work/echo.sock" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 400 ] || { kill "$server"; echo "The server does not listen."; exit 1; }
    sleep 0.05
done
kill -INT "$server"
wait "$server"
