#!/bin/sh
# The program prints what it should, README.md shows this very program, and what it says with JZX_LOG.
set -eu
here=$(dirname "$0")
sh "$here/../tools/expect" "$here/hello.expected" "$1"
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$here/../README.md" |
    diff -u "$here/hello.c" -
# Times and ids differ from run to run.
plain() {
    grep '^jzx' | sed -e 's/[0-9.]* \(info\)/T \1/' -e 's/([0-9a-f]*)/(ID)/'
}
shown=$(awk '/^```log hello$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
    "$here/../README.md" | plain)
said=$(JZX_LOG=info "$1" 2>&1 >/dev/null | plain)
[ "$shown" = "$said" ] || {
    printf 'README.md shows:\n%s\nthe program says:\n%s\n' "$shown" "$said"
    exit 1
}
[ -z "$(JZX_LOG=warn "$1" 2>&1 >/dev/null)" ]
[ -z "$("$1" 2>&1 >/dev/null)" ]
