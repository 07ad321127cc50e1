#!/bin/sh
# Goal: each public header is valid on its own, in C11 and C++17, and can be included in two files of
# one program; jzx.h brings none of libc's large headers; all.h brings every header of libjzx.
# Method: compile two files per header and link them; ask the compiler what both include: headers.sh CC CXX
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
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror"
failed=0

check() { # HEADER LANGUAGE COMPILER FLAG...
    header=$1
    language=$2
    shift 2
    for part in one two; do
        printf '#include <jzx/%s>\nint %s(void);\nint %s(void)\n{\n    return 0;\n}\n' \
            "$header" "$part" "$part" >"$work/$part.$language"
    done
    # shellcheck disable=SC2086 # the warnings are words
    "$@" $warnings -Icore/include -Itestkit/include -Imanifest/include -Iconsole/include -shared -fPIC -o "$work/both.so" "$work/one.$language" \
        "$work/two.$language" || {
        echo "jzx/$header:1: $* does not accept this header on its own."
        failed=1
    }
}

for path in core/include/jzx/*.h testkit/include/jzx/*.h manifest/include/jzx/*.h console/include/jzx/*.h; do
    header=${path##*/}
    check "$header" c "$cc" -std=c11
    check "$header" cpp "$cxx" -std=c++17
done

brings() { # HEADER: the files that it includes, one per line
    printf '#include <jzx/%s>\n' "$1" | "$cc" -std=c11 -Icore/include -M -x c - | tr -s ' \134' '\n'
}
brings jzx.h | grep -E '/(stdio|stdlib|string|stdatomic|pthread)\.h$' && {
    echo "core/include/jzx/jzx.h:1: Every program would pay for this header of libc."
    failed=1
}
brings all.h >"$work/all"
for path in core/include/jzx/*.h; do
    grep -qx "$path" "$work/all" || {
        echo "core/include/jzx/all.h:1: It does not include <jzx/${path##*/}>."
        failed=1
    }
done
exit $failed
