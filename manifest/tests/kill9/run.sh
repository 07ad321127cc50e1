#!/bin/sh
# kill -9 with 64 clients: run.sh PROGRAM
#
# The files lie in memory when they can: a kill never loses the page cache, so a disk would only
# make the rounds slower. JZX_KILL9_DIR names another place, JZX_ROUNDS a number of rounds (30),
# JZX_SEED the moments of death (the order in which threads run stays the machine's).
set -eu
program=$1
parent=${JZX_KILL9_DIR:-/dev/shm}
[ -d "$parent" ] && [ -w "$parent" ] || parent=${TMPDIR:-/tmp}
dir=$(mktemp -d "$parent/jzx-kill9-XXXXXX")
trap 'rm -rf "$dir"' EXIT INT TERM
"$program" "$dir"
