#!/bin/sh
# The program prints what it should, and docs/guide/DISPATCHERS.md shows what the examples print and say: a
# block that is fenced as "text NAME" is NAME.expected, one fenced as "c NAME" is a part of NAME.c.
set -eu
here=$(dirname "$0")
sh "$here/../tools/expect" "$here/pool.expected" "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
document=$here/../docs/guide/DISPATCHERS.md
awk -v work="$work" '
    /^```$/ { if (file) close(file); file = ""; next }
    /^```(text|c) [a-z_]+$/ { file = work "/" ++count "." substr($1, 4) "." $2; next }
    file { print >file }' "$document"
for block in "$work"/*; do
    name=${block##*.}
    case $block in
    *.text.*) diff -u "$here/$name.expected" "$block" ;;
    *.c.*)
        awk 'NR == FNR { part = part $0 "\n"; next } { whole = whole $0 "\n" }
             END { exit index(whole, part) == 0 }' "$block" "$here/$name.c" || {
            echo "$document shows code of $name.c that is not there."
            exit 1
        } ;;
    esac
done
