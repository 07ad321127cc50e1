#!/bin/sh
# Goal: tools/lint looks at the sources of products and at all scripts, fails when there is a finding, and does not look again
# at what it found good until that changed. Method: a small tree with a made-up clang-tidy and shellcheck that write down
# what they are asked about: lint.sh
set -u
command -v python3 >/dev/null || {
    echo "python3 is not installed"
    exit 77
}
root=$(pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir -p "$work/bin" "$tree/tools" "$tree/src" "$tree/tests/unit" "$tree/build/dev"
cp "$root/tools/lint" "$tree/tools/"
printf '#!/bin/sh\n' >"$tree/tools/plain"
printf 'no script\n' >"$tree/tools/notes"
printf '#!/bin/bash\n' >"$tree/tests/run.sh"
printf 'Checks: none\n' >"$tree/.clang-tidy"
printf '#include "lane.h"\n' >"$tree/src/actor.h"
printf 'int lane;\n' >"$tree/src/lane.h"
printf '#include "actor.h"\n' >"$tree/src/actor.c"
printf 'int door;\n' >"$tree/src/door.c"
printf 'int t;\n' >"$tree/tests/unit/test_door.c"
{
    printf '['
    for file in src/actor.c src/door.c src/door.c tests/unit/test_door.c; do
        printf '{"directory":"%s","file":"%s","command":"cc -I%s/src -c %s"},' "$tree/build/dev" "$tree/$file" "$tree" "$file"
    done
    printf '{"directory":"%s","file":"%s","command":"cc"}]' "$tree/build/dev" "$tree/src/gone.c"
} >"$tree/build/dev/compile_commands.json"
cat >"$work/bin/clang-tidy" <<EOF
#!/bin/sh
[ "\$1" != --version ] || { echo 14; exit 0; }
for last; do :; done
echo "\${last#$tree/}" >>"$work/asked"
! grep -q BAD "\$last" || { echo "\$last:1:1: error: bad"; exit 1; }
EOF
cat >"$work/bin/shellcheck" <<EOF
#!/bin/sh
for word; do echo "\$word" >>"$work/scripts"; done
[ ! -f "$work/spoiled" ] || { echo 'tools/plain:1:1: note: spoiled'; exit 1; }
EOF
chmod +x "$work/bin/clang-tidy" "$work/bin/shellcheck"
failed=0
passed=0

lint() { # ARGUMENT...: its status, and what was asked about
    : >"$work/asked"
    : >"$work/scripts"
    status=0
    PATH="$work/bin:$PATH" "$tree/tools/lint" "$@" >"$work/out" 2>&1 || status=$?
    asked=$(sort "$work/asked" | tr '\n' ' ')
}

holds() { # FACT STATUS ASKED
    if [ "$status" -eq "$2" ] && [ "$asked" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1: status $status, asked about: $asked"
        cat "$work/out"
    fi
}

lint
holds "each source of a product once, no test, none that is gone" 0 "src/actor.c src/door.c "
asked=$(grep -v '^-' "$work/scripts" | sort | tr '\n' ' ')
holds "scripts by their first line or their name" 0 "tests/run.sh tools/plain "
lint c
holds "nothing twice" 0 ""
printf 'int lane2;\n' >>"$tree/src/lane.h"
lint c
holds "again when a header below it changed" 0 "src/actor.c "
printf 'BAD\n' >>"$tree/src/door.c"
lint c
holds "a finding fails" 1 "src/door.c "
lint c
holds "and is found again" 1 "src/door.c "
grep -q 'src/door.c:1:1: error: bad' "$work/out" || {
    failed=$((failed + 1))
    echo "FAILED the finding is shown"
}
printf 'int door;\n' >"$tree/src/door.c"
lint c
holds "what is as it once was is known" 0 ""
printf 'Checks: more\n' >"$tree/.clang-tidy"
lint c
holds "other checks look at all" 0 "src/actor.c src/door.c "
lint c --all
holds "--all too" 0 "src/actor.c src/door.c "
: >"$work/spoiled"
lint shell
holds "a finding in a script fails" 1 ""
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
