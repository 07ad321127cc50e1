#!/bin/sh
# The program prints what it should, and README.md shows this very program.
set -eu
here=$(dirname "$0")
sh "$here/../tools/expect" "$here/hello.expected" "$1"
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$here/../README.md" |
    diff -u "$here/hello.c" -
