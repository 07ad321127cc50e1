#!/bin/sh
# Goal: `jzx console` shows a program, says so when it is gone, finds the next one at the same place,
# and ends with Ctrl-C. Method: a real program, the real command, curl:
# command.sh JZX PROGRAM
set -eu
jzx=$1
program=$2
command -v curl >/dev/null || {
    echo "skipped: there is no curl"
    exit 77
}
work=$(mktemp -d)
export XDG_RUNTIME_DIR="$work"
served=
console=
cleanup() {
    [ -z "$served" ] || kill "$served" 2>/dev/null || true
    [ -z "$console" ] || kill "$console" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

fail() {
    echo "$1"
    for file in out err answer; do
        [ ! -s "$work/$file" ] || sed "s/^/$file: /" "$work/$file"
    done
    exit 1
}
# until_so SENTENCE COMMAND...: tries for 20 s
until_so() {
    sentence=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 400 ] || fail "$sentence"
        sleep 0.05
    done
}
start_program() {
    JZX_CONTROL=$work/program.sock "$program" 127.0.0.1:0 >/dev/null &
    served=$!
    until_so "The program has no control socket." \
        "$jzx" actor -p "$work/program.sock" acceptor >/dev/null 2>&1
}
get() { # PATH [CURL-OPTION...]
    path=$1
    shift
    curl -s --max-time 20 --noproxy '*' -o "$work/answer" -w '%{http_code}' "$@" "$url$path"
}
gives() { # STATUS PART PATH [CURL-OPTION...]
    wanted=$1 part=$2
    shift 2
    status=$(get "$@") || true
    [ "$status" = "$wanted" ] && grep -q -F -- "$part" "$work/answer"
}

# Nobody is there yet, and wrong calls say what is wrong.
if "$jzx" console -p "$work/program.sock" >"$work/out" 2>"$work/err"; then
    fail "There was a console of nobody."
fi
start_program
status=0
"$jzx" console -p "$work/program.sock" --port 70000 >"$work/out" 2>"$work/err" || status=$?
[ "$status" -eq 2 ] || fail "--port 70000 gave status $status."
status=0
"$jzx" console -p "$work/program.sock" --token 'a b' >"$work/out" 2>"$work/err" || status=$?
[ "$status" -eq 2 ] || fail "--token 'a b' gave status $status."
"$jzx" console -p "$work/program.sock" --port 0 --once --json >"$work/out"
grep -q '"url":"http://127.0.0.1:[0-9]*/#token=[0-9a-f]\{32\}"' "$work/out" ||
    fail "--json has no url."

"$jzx" console -p "$work/program.sock" --port 0 --token t0ken >"$work/out" 2>"$work/err" &
console=$!
until_so "The console did not say where it is." grep -q '#token=t0ken' "$work/out"
url=$(sed -n 's|.*\(http://[^/]*\)/.*|\1|p' "$work/out")

gives 200 '<!doctype html>' / || fail "The page is not there."
gives 200 '"name":"acceptor"' '/api/actors?sort=tree' || fail "The tree has no acceptor."
gives 200 '"actor"' '/api/actor?actor=acceptor' || fail "There is nothing about the acceptor."
for path in program failures dead stuck doctor 'record?limit=5' 'trace?ms=100'; do
    gives 200 '{"ok":true' "/api/$path" || fail "/api/$path does not answer."
done
gives 200 '# TYPE jzx_' /metrics || fail "There are no metrics."
gives 403 '"BAD_TOKEN"' /api/kill -d '{"actor":"acceptor"}' || fail "It acts without a token."
gives 403 '"NOT_ALLOWED"' /api/kill -H 'X-Jzx-Token: t0ken' -d '{"actor":"acceptor"}' ||
    fail "A program that allows nothing was changed."
gives 421 '"FOREIGN_HOST"' /api/program -H 'Host: evil.example' || fail "A foreign Host got in."
gives 404 '"NO_SUCH_ACTOR"' '/api/actor?actor=nobody' || fail "Nobody was found."

# The program ends, and another one comes.
kill -9 "$served"
wait "$served" 2>/dev/null || true
until_so "It does not notice the end." gives 503 '"since_ms":' /api/program
start_program
until_so "It does not find the next one." gives 200 '"pid":'"$served" /api/program

kill -INT "$console"
status=0
wait "$console" || status=$?
console=
[ "$status" -eq 0 ] || fail "Ctrl-C gave status $status."
echo "the console of a real program: all of it"
