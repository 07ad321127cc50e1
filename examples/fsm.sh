#!/bin/sh
# The program prints what it should, and its picture is the one in the documentation.
set -eu
here=$(dirname "$0")
sh "$here/../tools/expect" "$here/fsm.expected" "$1"
sh "$here/../tools/expect" "$here/../docs/img/fsm_door.dot" "$1" --dot
