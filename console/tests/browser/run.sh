#!/bin/sh
# Runs the browser tests: run.sh [FILTER]
#
# SHOTS: where the pictures go. JZX_NODE, JZX_COMMAND: the demonstration node and the jzx command, to
# look at a real program too. UPDATE=1 puts the pictures of the documentation into docs/img. Ends
# with status 77 where there is no browser.
set -eu
cd "$(dirname "$0")/../../.."
shots=${SHOTS:-build/screenshots}

status=0
tools/browser-deps || status=$?
[ "$status" -eq 0 ] || exit "$status"

node console/tests/browser/run.mjs build/browser "$shots" "$@"
if [ "${UPDATE:-0}" = 1 ]; then
    mkdir -p docs/img
    cp "$shots"/console*.png docs/img/
fi
