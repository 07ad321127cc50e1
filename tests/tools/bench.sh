#!/bin/sh
# Goal: each workload of the benchmarks does what it counts, on both sides: a run that lost something
# fails. Method: each once, short, and nothing is measured: bench.sh JZX-BENCH
set -u
bench=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0
"$bench" --list >"$work/list"
while read -r name threads rest; do
    for side in '' --raw; do
        # shellcheck disable=SC2086 # an empty $side is no argument
        if "$bench" "$name" "$threads" --result --quick --ops 2000 $side >"$work/out" 2>&1 </dev/null &&
            grep -q '^RESULT ' "$work/out"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "FAILED $name $threads $side:"
            cat "$work/out"
        fi
    done
done <"$work/list"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
