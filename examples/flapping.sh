#!/bin/sh
# The program prints what it should, and the documents show this very output and code: a block in
# README.md or docs/guide/SUPERVISION.md that is fenced as "text NAME" is NAME.expected, and one that is
# fenced as "c NAME" is a part of NAME.c.
set -eu
here=$(dirname "$0")
sh "$here/../tools/expect" "$here/flapping.expected" "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for document in "$here/../README.md" "$here/../docs/guide/SUPERVISION.md"; do
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
        rm "$block"
    done
done
