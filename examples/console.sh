#!/bin/sh
# A browser, played by curl, finds the counters in the console, restarts one with the token, and is
# refused without it; Ctrl-C ends the program.
set -eu
command -v curl >/dev/null || exit 77
work=$(mktemp -d)
env -u JZX_CONTROL XDG_RUNTIME_DIR="$work" "$1" >"$work/out" &
program=$!
trap 'kill "$program" 2>/dev/null || true; rm -rf "$work"' EXIT
tries=0
while ! grep -q '^console: ' "$work/out"; do
    tries=$((tries + 1))
    if [ "$tries" -ge 400 ] || ! kill -0 "$program" 2>/dev/null; then
        echo "The program does not serve a console."
        exit 1
    fi
    sleep 0.05
done
url=$(sed -n 's/^console: \(.*\)#token=.*/\1/p' "$work/out")
token=$(sed -n 's/.*#token=//p' "$work/out")

fail() {
    echo "$1"
    cat "$work/answer"
    exit 1
}
# wants PART PATH [CURL-OPTION...]: what the answer has to contain
wants() {
    part=$1 path=$2
    shift 2
    curl -s --max-time 20 --noproxy '*' "$@" "$url$path" >"$work/answer"
    grep -q -F -- "$part" "$work/answer" || fail "$path does not have: $part"
}
wants '<!doctype html>' ''
wants '"name":"counters"' api/program
wants '"name":"moody"' 'api/actors?sort=tree'
wants '"name":"steady"' 'api/actor?actor=steady'
wants '"BAD_TOKEN"' api/restart -d '{"actor":"steady"}'
wants '{"ok":true' api/restart -H "X-Jzx-Token: $token" -d '{"actor":"steady"}'
wants '"NOT_ALLOWED"' api/kill -H "X-Jzx-Token: $token" -d '{"actor":"steady"}'
wants 'jzx_' metrics
tries=0
until curl -s --max-time 20 --noproxy '*' "${url}api/failures" | grep -q 'I cannot count'; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || fail "No actor has failed yet."
    sleep 0.05
done
kill -INT "$program"
wait "$program"
tail -n 1 "$work/out" | grep -q '^stopped$'
