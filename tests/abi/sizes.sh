#!/bin/sh
# Goal: no public struct changes its size unnoticed (R36: they grow at their end, and jzx_message and
# jzx_allocator never do). Method: a generated program prints the size of every struct that the
# headers define; compare with a checked-in list, which UPDATE=1 rewrites: sizes.sh CC
set -eu
cc=$1
list=tests/abi/sizes.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

{
    echo '#include <stdio.h>'
    for path in core/include/jzx/*.h testkit/include/jzx/*.h manifest/include/jzx/*.h console/include/jzx/*.h; do
        echo "#include <jzx/${path##*/}>"
    done
    echo 'int main(void)'
    echo '{'
    sed -n 's/^typedef struct \(jzx_[a-z0-9_]*\) {$/\1/p' core/include/jzx/*.h testkit/include/jzx/*.h manifest/include/jzx/*.h console/include/jzx/*.h | LC_ALL=C sort |
        sed 's/.*/    printf("%s %zu\\n", "&", sizeof(&));/'
    echo '    return 0;'
    echo '}'
} >"$work/sizes.c"
"$cc" -std=c17 -Icore/include -Itestkit/include -Imanifest/include -Iconsole/include -c -o "$work/sizes.o" "$work/sizes.c"
# The headers' inline functions refer to the library; nothing here calls them.
"$cc" -Wl,--unresolved-symbols=ignore-all -o "$work/sizes" "$work/sizes.o"
"$work/sizes" >"$work/got"

if [ "${UPDATE:-}" = 1 ]; then
    cp "$work/got" "$list"
fi
diff -u "$list" "$work/got" || {
    echo "If this change is meant: UPDATE=1 sh tests/abi/sizes.sh $cc"
    exit 1
}
