#!/bin/sh
# Checks the models of this directory with spin: each must have no error, and each of its mutants
# (-D MUT_x, named in the model's own text) must have one. Bounded in memory and time.
#
# What becomes of a mutant depends on the text of its model alone. So the mutants of a model are tried
# when that text is another one than in caught.sha256, or with --all; --record tries them all and
# writes that file.
# Exits with 0, 1 when something was not as expected, or 77 when spin is not installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v spin >/dev/null 2>&1; then
    echo "models: spin is not installed; skipped."
    exit 77
fi
case ${1:-} in
'' | --all | --record) mode=${1:-} ;;
*)
    echo "usage: run.sh [--all | --record]" >&2
    exit 2
    ;;
esac
cc=${CC:-gcc}
work=$(mktemp -d "${TMPDIR:-/tmp}/jzx-models.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failed=0

# check model mutant expected: expected is "clean" or "error".
check() {
    name=$1${2:+ $2}
    dir=$work/$1${2:+.$2}
    mkdir "$dir" && cd "$dir" || exit 1
    # A mutant is caught sooner than an optimizer is done with it.
    optimize=-O0
    if [ "$3" = clean ]; then
        optimize=-O1
    fi
    if ! spin -a ${2:+-D$2} "$here/$1.pml" >spin.log 2>&1 ||
        ! "$cc" $optimize -w -DSAFETY -DMEMLIM=1024 -DVECTORSZ=512 -o pan pan.c >cc.log 2>&1; then
        echo "models: $name: does not build"
        cat spin.log cc.log 2>/dev/null
        failed=1
        return
    fi
    timeout 50 ./pan -m200000 >pan.log 2>&1
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
    if grep -q 'Search not completed\|max search depth too small\|out of memory' pan.log &&
        [ "$3" = clean ]; then
        errors=incomplete
    fi
    case $3:$errors in
    clean:0) echo "models: $name: no error in $states states" ;;
    error:[1-9]*) echo "models: $name: caught: $(sed -n 's/^pan:[0-9]*: //p' pan.log | head -n 1)" ;;
    *)
        echo "models: $name: expected $3, got ${errors:-nothing}"
        cat pan.log
        failed=1
        ;;
    esac
}

for model in "$here"/*.pml; do
    base=$(basename "$model" .pml)
    check "$base" "" clean
    sum=$(sha256sum <"$model")
    if [ -z "$mode" ] && grep -q "^${sum%% *} $base\$" "$here/caught.sha256"; then
        echo "models: $base: its mutants were caught when it was written; --all tries them again"
        continue
    fi
    # shellcheck disable=SC2013 # the names have no blanks
    for mutant in $(sed -n 's/^ \*   \(MUT_[A-Z_]*\).*/\1/p' "$model"); do
        check "$base" "$mutant" error
    done
done
if [ "$mode" = --record ] && [ "$failed" -eq 0 ]; then
    for model in "$here"/*.pml; do
        sum=$(sha256sum <"$model")
        echo "${sum%% *} $(basename "$model" .pml)"
    done >"$here/caught.sha256"
fi
exit $failed
