#!/bin/sh
# Goal: the browser tests are skipped, with the reason, where node is too old for what the lock file
# names; the lock file names what Debian 12's node can run, and no host. Method: tools/browser-deps in
# a tree of its own, with a lock file that wants a node nobody has: browser_deps.sh
set -u
root=$(pwd)
for program in node npm chromium; do
    command -v "$program" >/dev/null || {
        echo "$program is not installed"
        exit 77
    }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fails() { # FACT
    echo "FAILED $1"
    [ ! -f "$work/out" ] || cat "$work/out"
    failed=1
}

lock=console/tests/browser/package-lock.json
grep -q '://' "$lock" && fails "the lock file names no host"
grep -A1 '"engines"' "$lock" | grep -q '"node": ">=18"' ||
    fails "the lock file wants node 18, which Debian 12 has, and no newer one"

mkdir -p "$work/tools" "$work/console/tests/browser"
cp tools/browser-deps "$work/tools/"
cp console/tests/browser/package.json "$work/console/tests/browser/"
sed 's/"node": "[^"]*"/"node": ">=999"/' "$root/$lock" >"$work/$lock"
status=0
"$work/tools/browser-deps" >"$work/out" 2>&1 || status=$?
[ "$status" -eq 77 ] || fails "a node that is too old is a skip: status $status"
grep -q 'too old' "$work/out" || fails "the skip says so"
grep -q '>=999' "$work/out" || fails "and what is wanted"
grep -qF "$(node --version)" "$work/out" || fails "and what is there"
[ ! -e "$work/build/browser/installed" ] || fails "nothing counts as installed"
exit "$failed"
