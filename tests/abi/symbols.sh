#!/bin/sh
# Goal: the shared library exports what its headers declare and nothing else, and no symbol comes or
# goes unnoticed. Method: compare both with a checked-in list, which UPDATE=1 rewrites:
# symbols.sh LIBRARY LIST HEADER...
set -eu
library=$1
list=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u >"$work/exported"
awk '/^JZX_API/ { wanted = 1 }
     wanted && match($0, /jzx_[a-z0-9_]+\(/) { print substr($0, RSTART, RLENGTH - 1); wanted = 0 }' \
    "$@" | sort -u >"$work/declared"

diff -u "$work/declared" "$work/exported" || {
    echo "The library does not export exactly what its headers declare with JZX_API."
    exit 1
}
if [ "${UPDATE:-}" = 1 ]; then
    cp "$work/exported" "$list"
fi
diff -u "$list" "$work/exported" || {
    echo "If this change is meant: UPDATE=1 sh tests/abi/symbols.sh $library $list $*"
    exit 1
}
