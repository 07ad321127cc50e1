#!/bin/sh
# Checks the models of this directory with spin: each must have no error, and each of its mutants
# (-D MUT_x, named in the model's own text) must have one. Bounded in memory and time.
#
# What becomes of a mutant depends on the code of its model alone. So the mutants of a model are tried
# when that code is another one than in caught.sha256 (comments do not count), or with --all.
#
# --changed checks those models only whose code is another one than there: the others passed with it. `make test` does
# so; `make check` and CI check all models. --record is --changed and, when all is as expected, writes that file.
# Exits with 0, 1 when something was not as expected, or 77 when spin is not installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v spin >/dev/null 2>&1; then
    echo "models: spin is not installed; skipped."
    exit 77
fi
case ${1:-}:$# in
:0 | --all:1 | --record:1 | --changed:1) mode=${1:-} ;;
*)
    echo "usage: run.sh [--all | --record | --changed]" >&2
    exit 2
    ;;
esac
cc=${CC:-gcc}
work=$(mktemp -d "${TMPDIR:-/tmp}/jzx-models.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failed=0 # the model at hand
status=0 # any of them

# code_sum MODEL: of its code and the names of its mutants, without the rest of its comments.
code_sum() {
    {
        mutants_of "$1"
        awk '{
            line = ""
            for (text = $0; text != "";) {
                mark = inside ? "*/" : "/*"
                at = index(text, mark)
                if (!inside) line = line (at ? substr(text, 1, at - 1) : text)
                text = at ? substr(text, at + 2) : ""
                if (at) inside = !inside
            }
            sub(/[ \t]+$/, "", line)
            if (line != "") print line
        }' "$here/$1.pml"
    } | sha256sum | cut -d ' ' -f 1
}

mutants_of() { # MODEL
    sed -n 's/^ \*   \(MUT_[A-Z_]*\).*/\1/p' "$here/$1.pml"
}

# is_known MODEL: whether it passed with this code.
is_known() {
    grep -q "^$(code_sum "$1") $1\$" "$here/caught.sha256"
}

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
    # Seconds of the processor: a busy machine is no reason to give up.
    # shellcheck disable=SC3045 # the shells of Linux have it
    (ulimit -t 60 && exec ./pan -m200000) >pan.log 2>&1
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

check_mutants() { # MODEL
    if [ -z "$mode" ] && is_known "$1"; then
        echo "models: $1: its mutants were caught when it was written; --all tries them again"
        return
    fi
    # shellcheck disable=SC2013 # the names have no blanks
    for mutant in $(mutants_of "$1"); do
        check "$1" "$mutant" error
    done
}

for model in "$here"/*.pml; do
    base=$(basename "$model" .pml)
    case $mode in
    --changed | --record)
        if is_known "$base"; then
            echo "models: $base: unchanged since it passed"
            continue
        fi
        ;;
    esac
    failed=0
    check "$base" "" clean
    check_mutants "$base"
    [ "$failed" -eq 0 ] || status=1
done
if [ "$mode" = --record ] && [ "$status" -eq 0 ]; then
    for model in "$here"/*.pml; do
        base=$(basename "$model" .pml)
        echo "$(code_sum "$base") $base"
    done >"$here/caught.sha256"
fi
exit $status
