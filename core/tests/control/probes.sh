#!/bin/sh
# Goal: the library has its USDT probes, and a tracer that attaches is told what happens: run.sh
# LIBRARY PROGRAM. Method: readelf lists them; gdb, where it is installed and may trace, stops at
# one. PROGRAM restarts an actor.
set -eu
library=$1
program=$2
probes='spawn exit send receive restart timer poll'

if ! command -v readelf >/dev/null; then
    echo "readelf is not installed."
    exit 77
fi
notes=$(readelf -n "$library" 2>/dev/null)
case $notes in
*stapsdt*) ;;
*)
    echo "The library was built without <sys/sdt.h>."
    exit 77
    ;;
esac
for probe in $probes; do
    echo "$notes" | grep -A 1 'Provider: jzx$' | grep -q "Name: $probe\$" || {
        echo "There is no probe jzx:$probe in $library."
        exit 1
    }
done
# Without a semaphore a probe is always on, or never reached.
without=$(echo "$notes" | grep -A 2 'Provider: jzx$' | grep -c 'Semaphore: 0x0*$' || true)
[ "$without" -eq 0 ] || {
    echo "$without probes have no semaphore."
    exit 1
}
for probe in $probes; do # docs/reference/FLIGHT.md lists them all
    grep -q "^| \`$probe\` |" docs/reference/FLIGHT.md || {
        echo "docs/reference/FLIGHT.md does not say what jzx:$probe is."
        exit 1
    }
done

command -v gdb >/dev/null || {
    echo "The probes are there; gdb is not, to stop at one."
    exit 0
}
# shellcheck disable=SC2016 # these are gdb's
out=$(gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set breakpoint pending on' \
    -ex 'break -probe-stap jzx:restart' -ex run \
    -ex 'printf "argc %d, actor %d, incarnation %d\n", $_probe_argc, $_probe_arg0 != 0, $_probe_arg2' \
    -ex kill "$program" 2>&1 </dev/null || true)
case $out in
*'argc 3, actor 1, incarnation 2'*) echo "gdb stopped at jzx:restart." ;;
*ptrace*) echo "The probes are there; gdb may not trace here." ;;
*)
    echo "gdb did not stop at jzx:restart:"
    echo "$out"
    exit 1
    ;;
esac
