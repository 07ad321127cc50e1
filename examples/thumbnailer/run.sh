#!/bin/sh
# Drives the thumbnailer: run.sh THUMBNAILER
#
# Once in peace, for what is right. Then on the same pictures with another manifest, killed with -9
# again and again in the middle, and started again each time. In the end each picture must have its
# one thumbnail, byte for byte, nothing else may lie around, and the manifest must say the same.
set -eu
thumbnailer=$1
pictures=40
base=/tmp
[ -w /dev/shm ] && base=/dev/shm
work=$(mktemp -d "$base/thumbnailer.XXXXXX")
process=
trap '[ -z "$process" ] || kill -9 "$process" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
fail() {
    echo "$*"
    exit 1
}

mkdir "$work/from" "$work/right" "$work/to"
awk -v n=$pictures -v dir="$work/from" 'BEGIN {
    for (i = 1; i <= n; i++) {
        file = sprintf("%s/picture %02d.%s", dir, i, i % 3 ? "pgm" : "ppm")
        width = 30 + i; height = 60 - i; depth = i % 3 ? 1 : 3
        printf "P%d # made by run.sh\n%d %d\n255\n", i % 3 ? 2 : 3, width, height > file
        for (k = 0; k < width * height * depth; k++) printf "%d\n", (k * i) % 256 > file
        close(file)
    }
}'

"$thumbnailer" --help >/dev/null || fail "It gives no help."
status=0
"$thumbnailer" 2>/dev/null || status=$?
[ "$status" = 2 ] || fail "Without arguments it ended with status $status."
status=0
"$thumbnailer" --status "$work/nothing.mf" 2>/dev/null || status=$?
[ "$status" = 1 ] || fail "The status of nothing ended with status $status."

"$thumbnailer" --once --size 16 "$work/right.mf" "$work/from" "$work/right" >/dev/null ||
    fail "In peace it ended with status $?."
[ "$(find "$work/right" -type f | wc -l)" = $pictures ] || fail "In peace it did not make all of them."
"$thumbnailer" --status "$work/right.mf" >/dev/null || fail "In peace its status was $?."

count_made() { find "$work/to" -name '[!.]*' -type f 2>/dev/null | wc -l; }

in_the_middle=0
for round in 1 2 3 4 5 6; do
    before=$(count_made)
    "$thumbnailer" --size 16 --slow 50 "$work/m.mf" "$work/from" "$work/to" >"$work/log" 2>&1 &
    process=$!
    tries=200 # until it makes progress, and a little longer
    while [ "$(count_made)" = "$before" ] && [ $tries -gt 0 ]; do
        sleep 0.05
        tries=$((tries - 1))
    done
    sleep 0.0$round
    kill -9 "$process" 2>/dev/null || { cat "$work/log"; fail "It had ended by itself."; }
    wait "$process" 2>/dev/null || true
    process=
    made=$(count_made)
    [ "$made" -gt 0 ] && [ "$made" -lt $pictures ] && in_the_middle=$((in_the_middle + 1))
done
[ "$in_the_middle" -gt 0 ] || fail "It was never killed in the middle."

"$thumbnailer" --once --size 16 "$work/m.mf" "$work/from" "$work/to" >"$work/log" ||
    fail "After it was killed it ended with status $?."
diff -r "$work/right" "$work/to" || fail "Thumbnails are missing or wrong."
[ -z "$(find "$work/to" -mindepth 1 -name '.*')" ] || fail "Temporary files are left."
said=$("$thumbnailer" --status "$work/m.mf") || fail "The manifest says: $said"
[ "$said" = "made $pictures, waiting 0, running 0, dead 0" ] || fail "The manifest says: $said"

# A second time there is nothing to do; a picture that changed is made again, and one that is none
# is said to be.
touch "$work/before"
"$thumbnailer" --once --size 16 "$work/m.mf" "$work/from" "$work/to" >/dev/null
[ -z "$(find "$work/to" -type f -newer "$work/before")" ] || fail "It made one that was made."
cp "$work/from/picture 01.pgm" "$work/from/picture 02.pgm"
echo "no picture" >"$work/from/broken.pgm"
"$thumbnailer" --once --size 16 "$work/m.mf" "$work/from" "$work/to" >/dev/null
cmp -s "$work/to/picture 01.pgm" "$work/to/picture 02.pgm" || fail "It did not see a change."
status=0
said=$("$thumbnailer" --status "$work/m.mf") || status=$?
[ "$status" = 3 ] && echo "$said" | grep -q '^dead: broken.pgm: it is no P2' ||
    fail "Of a broken picture it says: $said"
echo "each of $pictures pictures has its one thumbnail, after 6 kills"
