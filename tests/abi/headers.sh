#!/bin/sh
# Goal: each public header is valid on its own, in C11 and C++17, and can be included in two files of
# one program. Method: compile two files per header and link them: headers.sh CC CXX
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
exit $failed
