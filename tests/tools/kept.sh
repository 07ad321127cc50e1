#!/bin/sh
# Goal: a test whose files are as they were when it passed is skipped, any other runs, and only one that passes is kept.
# Method: a tree of its own with one file, and commands that say that they ran.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tools" "$work/tests" "$work/page/deep"
cp tools/kept "$work/tools/"
echo one >"$work/page/deep/file"
failed=0

# holds FACT STATUS WORD COMMAND...: it ends with that status, and says the word.
holds() {
    fact=$1
    wanted=$2
    word=$3
    shift 3
    status=0
    "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] && grep -q -- "$word" "$work/out" && return
    echo "FAILED $fact: status $status"
    cat "$work/out"
    failed=1
}

kept="$work/tools/kept"
holds "without words it says how it is called" 2 usage "$kept"
holds "what was never kept runs" 0 ran "$kept" a/b page -- echo ran
holds "and runs again" 0 ran "$kept" a/b page -- echo ran
holds "what fails is not kept" 3 ran env JZX_KEEP=1 "$kept" a/b page -- sh -c 'echo ran; exit 3'
holds "so it runs" 0 ran "$kept" a/b page -- echo ran
holds "what passes is kept when that is asked for" 0 ran env JZX_KEEP=1 "$kept" a/b page -- echo ran
holds "then it is skipped" 77 'a/b@all' "$kept" a/b page -- echo ran
holds "another with these files is not" 0 ran "$kept" a/c page -- echo ran
holds "and both can be kept" 0 ran env JZX_KEEP=1 "$kept" a/c page -- echo ran
holds "the first still is" 77 unchanged "$kept" a/b page -- echo ran
holds "it runs if it is to be kept again" 0 ran env JZX_KEEP=1 "$kept" a/b page -- echo ran
echo two >"$work/page/deep/file"
holds "with another content it runs" 0 ran "$kept" a/b page -- echo ran
echo one >"$work/page/deep/file"
touch "$work/page/more"
holds "with another file it runs" 0 ran "$kept" a/b page -- echo ran
rm "$work/page/more"
holds "as it was it is skipped" 77 unchanged "$kept" a/b page -- echo ran
[ "$(wc -l <"$work/tests/kept.sha256")" -eq 2 ] || {
    echo "FAILED a name has one line"
    failed=1
}
exit "$failed"
