#!/bin/sh
# Goal: what is wrong in a protocol, or in the use of one, does not compile, and the message says
# what it is. Method: each file of tests/abi/protocol/ must be refused, without any flag, with the
# words that it says itself; accepted.c must be accepted with all of them: protocol_refused.sh CC CXX
set -u
cc=$1
cxx=$2
for tool in "$cc" "$cxx"; do
    command -v "$tool" >/dev/null || {
        echo "skipped: there is no $tool"
        exit 77
    }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
folder=tests/abi/protocol
failed=0
refused=0

complain() {
    echo "$*"
    failed=1
}

for file in "$folder"/*.c; do
    [ "$file" = "$folder/accepted.c" ] && continue
    words=$(sed -n "s|^ \* ${cc##*/}: \(.*\)|\1|p" "$file" | sed 's| \*/$||')
    [ -n "$words" ] || complain "$file:1: It does not say what $cc says."
    if "$cc" -std=c17 -Icore/include -fsyntax-only "$file" 2>"$work/said"; then
        complain "$file:1: $cc accepts it."
    elif ! grep 'error:' "$work/said" | grep -q -e "$words"; then
        complain "$file:1: $cc refuses it, but does not say: $words"
        cat "$work/said"
    fi
    refused=$((refused + 1))
done
[ "$refused" -ge 30 ] || complain "Only $refused files were tried; where are the others?"

accept() { # COMPILER FLAG...
    "$@" -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -Icore/include -I"$folder" \
        -c -o "$work/accepted.o" "$work/accepted.$language" || complain "$* refuses accepted.c."
}
for language in c cpp; do
    cp "$folder/accepted.c" "$work/accepted.$language"
done
for checks in -UNDEBUG -DNDEBUG; do
    for level in -O0 -O2; do
        language=c
        accept "$cc" -std=c11 -Wmissing-prototypes -Wstrict-prototypes "$checks" "$level"
        accept "$cc" -std=c17 -Wmissing-prototypes -Wstrict-prototypes "$checks" "$level"
        language=cpp
        accept "$cxx" -std=c++17 "$checks" "$level"
    done
done
exit $failed
