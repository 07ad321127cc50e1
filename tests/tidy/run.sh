#!/bin/sh
# Goal: tools/tidy is silent about a good tree and catches each thing it is there for. Method: make a
# small good tree, spoil one thing at a time, and look for the finding at its file and line.
set -u
tidy=$(pwd)/tools/tidy
config=$(pwd)/.clang-format
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

good_tree() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/src/base" "$work/tree/src/os" "$work/tree/include/jzx" \
        "$work/tree/man" "$work/tree/tests/unit" "$work/tree/examples"
    cd "$work/tree" || exit 2
    cp "$config" .clang-format
    printf '# order\n0 base/\n1 os/\n2 door lane\n3 actor\n' >src/layers.txt
    cat >include/jzx/types.h <<'C'
#ifndef JZX_TYPES_H
#define JZX_TYPES_H
#define JZX_VERSION_MAJOR 1
#define JZX_VERSION_MINOR 2
#define JZX_VERSION_PATCH 3
#define JZX_VERSION_STRING "1.2.3"
JZX_API int jzx_version(void);
#endif
C
    printf '#include <jzx/types.h>\n' >include/jzx/jzx.h
    printf 'int base;\n' >src/base/alloc.h
    printf '#include "base/alloc.h"\n' >src/base/alloc.c
    printf '#include "base/alloc.h"\n' >src/os/clock.h
    printf '#include "os/clock.h"\n\n#include <unistd.h>\n' >src/os/clock.c
    printf '#include "base/alloc.h"\n' >src/door.h
    printf '#include "door.h"\n' >src/door.c
    printf '#include "base/alloc.h"\n' >src/lane.h
    printf '#include "door.h"\n#include "lane.h"\n#include "os/clock.h"\n' >src/actor.h
    printf '#include "actor.h"\n' >src/actor.c
    printf '#include <jzx/jzx.h>\n' >examples/hello.c
    printf 'cmake_minimum_required(VERSION 3.25)\nproject(jzx VERSION 1.2.3)\n' >CMakeLists.txt
    printf '# Changes\n\n## 1.2.3 (unreleased)\n' >CHANGELOG.md
    cat >man/jzx_version.3 <<'M'
.Dd November 15, 2026
.Dt JZX_VERSION 3
.Os "jzx 1.2.3"
.Sh NAME
.Nm jzx_version
.Nd the version
.Sh DESCRIPTION
Gives the version.
M
}

# catches WHAT PATTERN: the tree as spoiled now has a finding that matches
catches() {
    if "$tidy" "$work/tree" >"$work/out" 2>&1; then
        echo "FAILED $1: tidy found nothing"
        failed=$((failed + 1))
    elif ! grep -qE "$2" "$work/out"; then
        echo "FAILED $1: no finding matches $2 in:"
        cat "$work/out"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
    good_tree
}

# accepts WHAT: the tree as it is now has no finding
accepts() {
    if "$tidy" "$work/tree" >"$work/out" 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAILED $1:"
        cat "$work/out"
        failed=$((failed + 1))
    fi
    good_tree
}

good_tree
accepts "a good tree"

# Names in comments, strings and members are not calls.
cat >>src/actor.c <<'C'
/* time(NULL) and
 * printf("x") are banned */
const char *text = "rand() /*"; // sleep(1)
void *grow(struct a *a)
{
    return a->realloc(a->ctx, 0);
}
C
accepts "names that are no calls"

# A source without a header of its own belongs to the module its name starts with.
printf '#include "actor.h"\n#include "door.h"\n' >src/actor_start.c
accepts "a module of two sources"

printf '#include "actor.h"\n' >src/door_late.c
catches "the second source of a lower module" '^src/door_late\.c:1: door .*must not include actor'
printf '#include "actor.h"\n' >>src/door.c
catches "a lower layer that includes a higher one" '^src/door\.c:2: .*must not include actor'
printf '#include "lane.h"\n' >>src/door.h
catches "siblings outside base and os" '^src/door\.h:2: .*must not include lane'
printf '#include "os/clock.h"\n' >>src/base/alloc.c
catches "base that includes os" '^src/base/alloc\.c:2: .*must not include os/'
printf 'base base/alloc\nos os/clock\nlater door lane actor\n' >src/rooms.txt
accepts "a tree with rooms"
printf 'base base/alloc\nos os/clock\nroom actor\nlater door lane\n' >src/rooms.txt
catches "an include from a room to a later one" '^src/actor\.h:1: actor \(room\) must not include door'
printf 'base base/alloc\npatterns door\nos os/clock\nlater lane actor\n' >src/rooms.txt
accepts "patterns that stand on base"
printf 'base base/alloc\nos os/clock\nlater door lane\npatterns actor\n' >src/rooms.txt
catches "patterns that see a private header" '^src/actor\.h:1: actor \(patterns\) must not include door'
printf 'base base/alloc\nos os/clock\nlater door lane\n' >src/rooms.txt
catches "a file without a room" '^src/actor\.[ch]:1: File actor is in no room'
printf 'base base/alloc\nos os/clock\nlater door lane actor gone\n' >src/rooms.txt
catches "a room with a file that is gone" 'There is no file src/gone'
printf 'int x;\n' >src/stray.c
catches "a module without a layer" '^src/stray\.c:1: Module stray is in no layer'
printf '#include "door.h"\n' >>examples/hello.c
catches "a private header in an example" '^examples/hello\.c:2: "door.h" is private'

for call in 'rand()' 'time(0)' 'printf("x")' 'fprintf(stderr, "x")' 'sleep(1)' 'usleep(1)' \
    'strcpy(a, b)' 'sprintf(a, "x")' 'gets(a)' 'alloca(8)' 'malloc(8)' 'free(a)' 'calloc(1, 8)' \
    'realloc(a, 8)' 'getentropy(a, 8)' 'eventfd(0, 0)'; do
    printf 'void f(void)\n{\n    %s;\n}\n' "$call" >>src/actor.c
    catches "the call $call" "^src/actor\\.c:4: ${call%%(*}\\(\\) "
done
printf '#include <sys/epoll.h>\n' >>src/actor.c
catches "a system header outside os" '^src/actor\.c:2: <sys/epoll.h> belongs to src/os/'

awk 'BEGIN { for (i = 0; i < 601; i++) print "int a" i ";" }' >>src/actor.c
catches "a long source" '^src/actor\.c:60[0-9]: The file has more than 600 lines'
awk 'BEGIN { for (i = 0; i < 100; i++) print "int a" i ";" }' >>examples/hello.c
catches "a long example" '^examples/hello\.c:101: The file has more than 100 lines'

printf 'int x;\n' >src/base/unused.h
catches "a header that nobody includes" '^src/base/unused\.h:1: Nobody includes'
mkdir -p tests/unit && printf 'int x;\n' >tests/unit/door.c
catches "a test that no target compiles" '^tests/unit/door\.c:1: No target compiles'

printf 'A line  \n' >README.md
catches "blanks at the end of a line" '^README\.md:1: There are blanks'
sed -i 's/STRING "1.2.3"/STRING "1.2.4"/' include/jzx/types.h
catches "a version string that differs" '^include/jzx/types\.h:6: JZX_VERSION_STRING'
sed -i 's/1\.2\.3/1.3.0/' CMakeLists.txt
catches "a project version that differs" '^CMakeLists\.txt:2: .*not 1\.2\.3'
sed -i 's/1\.2\.3/1.2.2/' CHANGELOG.md
catches "a changelog that lags" '^CHANGELOG\.md:3: .*not 1\.2\.3'
mkdir -p debian && echo 'jzx (1.2.2-1) unstable; urgency=medium' >debian/changelog
catches "packages that lag" '^debian/changelog:1: .*not of 1\.2\.3'
printf '\n## 1.2.2 (unreleased)\n' >>CHANGELOG.md
catches "a release without its date" '^CHANGELOG\.md:5: .*its date'
sed -i 's/unreleased/soon/' CHANGELOG.md
catches "a newest section that says neither date nor unreleased" '^CHANGELOG\.md:3: .*its date'
printf '\n## 1.2.2 (2026-01-31)\n' >>CHANGELOG.md
accepts "an older release with its date"
sed -i 's/1\.2\.3/1.2.2/' man/jzx_version.3
catches "a man page of another version" '^man/jzx_version\.3:3: .*version 1\.2\.3'
sed -i 's/jzx_version/jzx_other/' man/jzx_version.3
catches "a function without a man page" '^include/jzx/types\.h:7: No man page .* jzx_version'
if command -v python3 >/dev/null; then
    printf '/* See jzx_nothing(). */\n' >>src/actor.c
    catches "a function that does not exist" '^src/actor\.c:2: There is no jzx_nothing'
    printf '/* As in src/gone.c. */\n' >>src/actor.c
    catches "a path that does not exist" '^src/actor\.c:2: There is no src/gone\.c'
    printf '/* As in gone.h. */\n' >>src/actor.c
    catches "a file that does not exist" '^src/actor\.c:2: There is no file gone\.h'
    printf 'It is JZX_ERR_NONE.\n' >README.md
    catches "a constant that does not exist" '^README\.md:1: There is no JZX_ERR_NONE'
    printf 'See test_a_fact_R1 of unit/test_gone.c.\n' >README.md
    catches "a test that does not exist" '^README\.md:1: There is no test test_a_fact_R1'
    printf 'See `test_a_fact_R1` in `unit/test_gone.c`.\n' >README.md
    catches "a suite that does not exist" '^README\.md:1: There is no tests/unit/test_gone\.c'
    printf 'See jzx_gone(3).\n' >README.md
    catches "a page that does not exist" '^README\.md:1: There is no manual page jzx_gone'
    printf 'all:\n' >Makefile
    printf 'Run `make nothing`.\n' >README.md
    catches "a target that does not exist" '^README\.md:1: The Makefile has no target nothing'
    printf 'It was jzx_nothing().\n' >>CHANGELOG.md
    printf '/* jzx_version() of include/jzx/types.h, JZX_VERSION_* and types.h. */\n' >>src/actor.c
    accepts "names that are there, and a changelog that tells of those that were"
fi
if command -v mandoc >/dev/null; then
    printf '.Xx nonsense\n' >>man/jzx_version.3
    catches "a man page that does not render" '^man/jzx_version\.3:9: mandoc says'
fi
if command -v clang-format >/dev/null; then
    printf 'int   x;\n' >>src/actor.c
    catches "a line that is not formatted" '^src/actor\.c:2: This is not how'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
